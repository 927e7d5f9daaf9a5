//! AMQP 0.9.1, over TCP or TLS: an exchange of topics, and a queue for who subscribes.

mod message;
mod publisher;
mod subscriber;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;
use proto::amqp091::client::{self, Client, Closed, Input, Output};
use proto::amqp091::machine::Credentials;

use super::again::Again;
use super::line::{self, Line, Machine, Step};
use super::{Settings, Target};
use crate::error::Error;

pub(super) use publisher::publish;
pub(super) use subscriber::subscribe;

/// The exchange that topics go over, where none is named.
const EXCHANGE: &str = "amq.topic";
/// Who one is where nobody says it: brokers have come to know this user at their own host.
const GUEST: &str = "guest";
/// Longest message that is taken.
const MAX_MESSAGE_BYTES: u64 = 256 << 20;
/// How long the broker may take to agree to the end.
const FAREWELL: Duration = Duration::from_secs(30);
/// Codes of closed connections that pass by: 320, an operator or the end; 541, a fault of the
/// server.
const PASSING: [u16; 2] = [320, 541];

/// A client, and its connection where there is one.
struct Talk<'a> {
    target: &'a Target,
    of_client: client::Settings,
    client: Client,
    line: Line<'a>,
    again: Again,
    has_been_open: bool,
}

/// What comes next.
type Next = line::Next<Output>;

impl Machine for Client {
    type Said = Output;

    fn poll(&mut self) -> Option<Step<Output>> {
        Some(match self.poll_output()? {
            Output::Transmit(bytes) => Step::Transmit(bytes),
            Output::WakeAt(at) => Step::WakeAt(at),
            other => Step::Said(other),
        })
    }

    fn received(&mut self, now: Duration, bytes: Bytes) {
        self.handle_input(now, Input::Bytes(&bytes));
    }

    fn woken(&mut self, now: Duration) {
        self.handle_input(now, Input::Wake);
    }
}

impl<'a> Talk<'a> {
    fn new(target: &'a Target, settings: &Settings) -> Result<Self, Error> {
        let seconds = settings.keep_alive_s();
        let heartbeat_s = u16::try_from(seconds).map_err(|_| {
            Error::Caller(format!("a keep-alive of {seconds} s: at most {} s", u16::MAX))
        })?;
        let of_client = client::Settings {
            name: settings.client_id.clone(),
            credentials: credentials(target)?,
            virtual_host: virtual_host(&target.path)?,
            heartbeat_s,
            max_message_bytes: MAX_MESSAGE_BYTES,
        };
        Ok(Self {
            target,
            client: Client::new(Duration::ZERO, of_client.clone()),
            of_client,
            line: Line::new(target),
            again: Again::new(settings.retry),
            has_been_open: false,
        })
    }

    /// Connects, once.
    async fn connect(&mut self) -> Result<(), Error> {
        self.line.connect().await?;
        self.client = Client::new(self.line.now(), self.of_client.clone());
        Ok(())
    }

    /// What comes next. May be dropped while it waits.
    async fn next(&mut self) -> Next {
        let next = self.line.next(&mut self.client).await;
        if matches!(next, Next::Said(Output::Opened)) {
            self.has_been_open = true;
            self.again.connected();
        }
        next
    }

    /// Bytes that have not left this process.
    fn unwritten_bytes(&self) -> usize {
        self.line.leaves.len() + self.client.unsent_bytes()
    }

    /// The connection is over: makes another.
    ///
    /// # Errors
    /// Where there is none to be had, or the broker does not want this client.
    async fn lost(&mut self, closed: Option<&Closed>) -> Result<(), Error> {
        self.line.drop();
        let (is_passing, what) = match closed {
            None => (true, "the connection is broken".to_owned()),
            Some(Closed::Asked) => (false, "the connection was ended".to_owned()),
            Some(Closed::Silent) => (true, "the broker does not answer".to_owned()),
            Some(Closed::Refused(why)) => {
                (false, format!("the broker sent what it may not send: {why}"))
            }
            Some(Closed::ByServer(code, text)) => {
                let what = format!("the broker has ended the connection: {code} {text}");
                (PASSING.contains(code), what)
            }
        };
        let mut why = Error::System(format!("{}: {what}", self.target.address));
        if !is_passing || !self.has_been_open {
            return Err(why);
        }
        while let Some(pause) = self.again.pause(self.line.now()) {
            tokio::time::sleep(pause).await;
            match self.connect().await {
                Ok(()) => return Ok(()),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// Says that it leaves, once all is written. What the broker has refused before it agrees is
    /// the outcome.
    ///
    /// # Errors
    /// Where bytes could not be written.
    async fn leave(&mut self) -> Result<Option<String>, Error> {
        self.client.close();
        let left = async {
            loop {
                match self.next().await {
                    Next::Said(
                        Output::ChannelClosed(code, text)
                        | Output::Closed(Closed::ByServer(code, text)),
                    ) => return Some(refusal(code, &text)),
                    Next::Said(Output::Closed(_)) | Next::Lost => return None,
                    Next::Said(_) | Next::Written => {}
                }
            }
        };
        let left = tokio::time::timeout(FAREWELL, left).await;
        self.line.finish().await?;
        Ok(left.unwrap_or(None))
    }
}

/// By a user, by the certificate of TLS, or as a guest.
fn credentials(target: &Target) -> Result<Credentials, Error> {
    let has_certificate = target.layers.tls.as_ref().is_some_and(|tls| tls.identity.is_some());
    let (user, password) = match &target.user {
        Some(user) => (user.clone(), target.password.clone().unwrap_or_default()),
        None if has_certificate => return Ok(Credentials::External),
        None => (GUEST.to_owned(), GUEST.as_bytes().to_vec()),
    };
    if user.contains('\0') {
        return Err(Error::Caller("a user has no zero in his name".to_owned()));
    }
    Ok(Credentials::Password { user, password })
}

fn refusal(code: u16, text: &str) -> String {
    format!("the broker refuses it: {code} {text}")
}

/// The virtual host of a URL's path, as brokers have come to read it: what stands behind the
/// slash, with escapes of URLs; without anything `/`.
fn virtual_host(path: &str) -> Result<String, Error> {
    let Some(name) = path.strip_prefix('/').filter(|name| !name.is_empty()) else {
        return Ok("/".to_owned());
    };
    let wrong = || Error::Caller(format!("the virtual host {name}: an escape is % and two digits"));
    let (mut bytes, mut rest) = (Vec::with_capacity(name.len()), name.as_bytes());
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2).ok_or_else(wrong)?;
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let value = match digits {
            [high, low] => digit(*high).zip(digit(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        bytes.push(value.and_then(|value| u8::try_from(value).ok()).ok_or_else(wrong)?);
        rest = behind;
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}
