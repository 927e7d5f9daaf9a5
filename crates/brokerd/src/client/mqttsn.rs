//! MQTT-SN 1.2 over UDP.

use std::collections::BTreeSet;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use proto::mqttsn::client::{Action, Client, Input, Name, Output, Reason, Will};
use proto::mqttsn::{Code, Qos, client};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::again::Again;
use super::{Event, Message, Published, Settings, Take, Taken, Target, Wish};
use crate::error::Error;
use crate::store::random;

/// Messages that a publisher has open at once: the gateway takes one after the other.
const MAX_OPEN: usize = 100;
/// Longest datagram.
const MAX_DATAGRAM_BYTES: usize = 65_507;
/// Between two transmissions. The standard says 10 to 15 s for radios (MQTT-SN 1.2 §7.2).
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// A topic that is a number both sides know: `#7`.
const PREDEFINED: char = '#';
/// Requests of a subscriber are numbered by its filters.
const FIRST: u64 = 0;

/// See [`super::publish`].
pub(super) async fn publish(
    target: &Target,
    settings: &Settings,
    mut messages: mpsc::Receiver<Message>,
) -> Result<Published, Error> {
    let mut line = Line::open(target, settings).await?;
    let mut published = Published::default();
    let (mut request, mut is_over, mut is_connecting) = (0, false, false);
    loop {
        if is_over && published.ended() == request {
            line.leave().await;
            return Ok(published);
        }
        let has_room = !is_over && line.client.open_requests() < MAX_OPEN;
        tokio::select! {
            message = messages.recv(), if has_room => {
                let Some(message) = message else {
                    is_over = true;
                    continue;
                };
                request += 1;
                match publication(message) {
                    Ok((action, needs_connection)) => {
                        if needs_connection && !is_connecting {
                            line.input(Input::Connect);
                            is_connecting = true;
                        }
                        line.input(Input::Request { request, action });
                    }
                    Err(why) => published.fail(why),
                }
            }
            output = line.next() => match output? {
                Output::Done { .. } => published.accepted += 1,
                Output::Failed { reason, .. } => published.fail(words(reason)),
                output => line.watch(&output).await?,
            },
        }
    }
}

/// See [`super::subscribe`].
pub(super) async fn subscribe(
    target: &Target,
    settings: &Settings,
    wish: &Wish,
    take: &mut Take<'_>,
    mut end: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), Error> {
    let qos = match wish.qos {
        0 => Qos::Zero,
        1 => Qos::One,
        2 => Qos::Two,
        other => return Err(Error::Caller(format!("QoS {other}: 0 to 2"))),
    };
    let filters: Vec<Name> = wish
        .filters
        .iter()
        .map(|filter| name(filter))
        .collect::<Result<_, _>>()
        .map_err(Error::Caller)?;
    let mut line = tokio::select! {
        line = Line::open(target, settings) => line?,
        () = end.as_mut() => return Ok(()),
    };
    line.input(Input::Connect);
    let mut goes_on = |event| take(event) == Taken::More;
    let (mut waiting, mut refused) = (BTreeSet::new(), Vec::new());
    let result = loop {
        let output = tokio::select! {
            output = line.next() => output?,
            () = end.as_mut() => break Ok(()),
        };
        let is_wanted = match output {
            Output::Connected => {
                line.watch(&Output::Connected).await?;
                // What was asked before the gateway was lost is asked again by itself.
                let is_free = line.client.open_requests() == 0;
                for (request, filter) in (FIRST..).zip(filters.clone()).filter(|_| is_free) {
                    waiting.insert(request);
                    line.input(Input::Request {
                        request,
                        action: Action::Subscribe { filter, qos },
                    });
                }
                true
            }
            Output::Done { request, .. } => {
                waiting.remove(&request);
                !waiting.is_empty() || goes_on(Event::Subscribed(std::mem::take(&mut refused)))
            }
            Output::Failed { request, reason } => {
                let filter = usize::try_from(request).ok().and_then(|at| wish.filters.get(at));
                let filter = filter.map_or("?", String::as_str);
                refused.push(format!("{filter}: {}", words(reason)));
                waiting.remove(&request);
                if refused.len() == filters.len() {
                    break Err(Error::System(format!("all is refused: {}", refused.join(", "))));
                }
                !waiting.is_empty() || goes_on(Event::Subscribed(std::mem::take(&mut refused)))
            }
            Output::Message { retain: true, .. } if wish.no_retained => true,
            Output::Message { topic, data, qos, retain } => {
                goes_on(Event::Message(message(topic, data, qos, retain)))
            }
            output => {
                tokio::select! {
                    watched = line.watch(&output) => watched?,
                    () = end.as_mut() => break Ok(()),
                }
                true
            }
        };
        if !is_wanted {
            break Ok(());
        }
    };
    line.leave().await;
    result
}

/// A client and its socket.
struct Line<'a> {
    target: &'a Target,
    client: Client,
    socket: UdpSocket,
    began: Instant,
    room: Vec<u8>,
    wake_at: Option<Duration>,
    again: Again,
    has_been_open: bool,
}

impl<'a> Line<'a> {
    async fn open(target: &'a Target, settings: &Settings) -> Result<Self, Error> {
        let number = random()?;
        let client_id = match settings.client_id.as_str() {
            "" => format!("longwire-{:08x}", number & 0xffff_ffff),
            given => given.to_owned(),
        };
        if client_id.chars().count() > proto::mqttsn::MAX_CLIENT_ID_CHARS {
            let most = proto::mqttsn::MAX_CLIENT_ID_CHARS;
            return Err(Error::Caller(format!(
                "the client {client_id}: at most {most} characters"
            )));
        }
        let will = settings.will.clone().map(|will| match will.qos {
            0..=2 => Ok(Will {
                topic: will.topic,
                message: will.payload,
                qos: quality(will.qos),
                retain: will.retain,
            }),
            other => Err(Error::Caller(format!("a will of QoS {other}: 0 to 2"))),
        });
        let of_client = client::Settings {
            clean_session: settings.clean,
            will: will.transpose()?,
            keep_alive: settings.keep_alive,
            retry_after: RETRY_AFTER,
            first_msg_id: u16::try_from(number >> 48).unwrap_or(1).max(1),
            ..client::Settings::new(&client_id)
        };
        let address = &target.address;
        let socket =
            connect(address).await.map_err(|error| Error::System(format!("{address}: {error}")))?;
        Ok(Self {
            target,
            client: Client::new(of_client),
            socket,
            began: Instant::now(),
            room: vec![0; MAX_DATAGRAM_BYTES],
            wake_at: None,
            again: Again::new(settings.retry),
            has_been_open: false,
        })
    }

    fn input(&mut self, input: Input) {
        self.client.handle_input(self.began.elapsed(), input);
    }

    /// What the client says next. May be dropped while it waits.
    async fn next(&mut self) -> Result<Output, Error> {
        loop {
            while let Some(output) = self.client.poll_output() {
                match output {
                    // What is lost is sent again.
                    Output::Transmit(datagram) => {
                        let _ = self.socket.try_send(&datagram);
                    }
                    Output::WakeAt(at) => self.wake_at = Some(at),
                    other => return Ok(other),
                }
            }
            let has_wake = self.wake_at.is_some();
            let wake = self.began + self.wake_at.unwrap_or_default();
            let input = tokio::select! {
                received = self.socket.recv(&mut self.room) => match received {
                    Ok(len) => Input::Datagram(Bytes::copy_from_slice(&self.room[..len])),
                    // Nobody listens there, as ICMP says; somebody may soon.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                    Err(error) => return Err(Error::System(error.to_string())),
                },
                () = tokio::time::sleep_until(wake), if has_wake => {
                    self.wake_at = None;
                    Input::Wake
                }
            };
            self.input(input);
        }
    }

    /// What has become of the connection; one that is lost is made again.
    async fn watch(&mut self, output: &Output) -> Result<(), Error> {
        let address = &self.target.address;
        match output {
            Output::Connected => {
                self.has_been_open = true;
                self.again.connected();
                Ok(())
            }
            Output::Refused(code) => {
                let text = format!("{address}: the gateway refuses this client: {}", named(*code));
                Err(Error::System(text))
            }
            Output::Lost | Output::Disconnected => {
                let pause = self.again.pause(self.began.elapsed());
                if let Some(pause) = pause.filter(|_| self.has_been_open) {
                    tokio::time::sleep(pause).await;
                    self.input(Input::Connect);
                    return Ok(());
                }
                Err(Error::System(format!("{address}: the gateway does not answer")))
            }
            _ => Ok(()),
        }
    }

    /// Says that it leaves.
    async fn leave(&mut self) {
        if !self.client.is_active() {
            return;
        }
        self.input(Input::Disconnect);
        // Whether the gateway still hears it changes nothing any more.
        while let Ok(output) = self.next().await {
            if matches!(output, Output::Disconnected | Output::Lost | Output::Refused(_)) {
                return;
            }
        }
    }
}

async fn connect(address: &str) -> io::Result<UdpSocket> {
    let to = tokio::net::lookup_host(address)
        .await?
        .next()
        .ok_or_else(|| io::Error::other("the name has no address"))?;
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(to).await?;
    // The client's first datagrams are sent at once.
    socket.writable().await?;
    Ok(socket)
}

fn name(topic: &str) -> Result<Name, String> {
    match topic.strip_prefix(PREDEFINED).filter(|digits| !digits.is_empty()) {
        Some(digits) => digits
            .parse()
            .map(Name::Predefined)
            .map_err(|_| format!("the topic {topic}: {PREDEFINED}1 to {PREDEFINED}65534")),
        None => Ok(Name::Text(topic.to_owned())),
    }
}

/// What is to be done, and whether it needs a connection.
fn publication(message: Message) -> Result<(Action, bool), String> {
    let qos = match message.qos {
        -1..=2 => quality(message.qos),
        other => return Err(format!("QoS {other}: MQTT-SN has -1 to 2")),
    };
    let topic = name(&message.topic)?;
    let action = Action::Publish { topic, data: message.payload, qos, retain: message.retain };
    Ok((action, qos != Qos::MinusOne))
}

fn message(topic: Name, payload: Bytes, qos: Qos, retain: bool) -> Message {
    let topic = match topic {
        Name::Text(text) => text,
        Name::Predefined(id) => format!("{PREDEFINED}{id}"),
    };
    Message { topic, payload, qos: level(qos), retain, ..Message::default() }
}

fn quality(level: i8) -> Qos {
    match level {
        ..=-1 => Qos::MinusOne,
        0 => Qos::Zero,
        1 => Qos::One,
        2.. => Qos::Two,
    }
}

fn level(qos: Qos) -> i8 {
    match qos {
        Qos::MinusOne => -1,
        Qos::Zero => 0,
        Qos::One => 1,
        Qos::Two => 2,
    }
}

fn named(code: Code) -> String {
    match code {
        Code::ACCEPTED => "accepted".to_owned(),
        Code::CONGESTION => "congestion".to_owned(),
        Code::INVALID_TOPIC_ID => "invalid topic id".to_owned(),
        Code::NOT_SUPPORTED => "not supported".to_owned(),
        other => format!("{other:?}"),
    }
}

fn words(reason: Reason) -> String {
    match reason {
        Reason::Refused(code) => format!("the gateway refuses it: {}", named(code)),
        Reason::Invalid => "MQTT-SN cannot say it: a topic or a length".to_owned(),
        Reason::Full => "too many messages wait".to_owned(),
    }
}
