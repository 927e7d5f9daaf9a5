//! The measuring client: a method over and over, each call split into what writing and parsing SOAP
//! takes (t_SOAP of the study) and what the call takes (t_call).
//!
//! Over WSP and CoAP the calls are those of the client for devices (`pocket`), over HTTP those of
//! [`crate::client`]; documents are written and read by `pocket` over all three, but for EXI.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use pocket::document::{self, Event, Reader, Writer};
use pocket::{Address, Content, Patience, Received, Request, Tokens, coap, soap, wsp};
use record::result::{Call, Calls, Summary};

use super::{Form, Method, character, element, number};
use crate::Error;
use crate::client::{Answer, Asking, Config, Item, Target};

/// Most bytes of a datagram, and of an answer over WSP and CoAP: the longest array takes 1.8 MB in
/// XML.
const MAX_DATAGRAM_BYTES: usize = 65_535;
const MAX_ANSWER_BYTES: usize = (2 << 20) + MAX_DATAGRAM_BYTES;
/// Until a request that nobody answered leaves again.
const FIRST_TIMEOUT: Duration = Duration::from_secs(3);
/// Of a series no more calls are made once so many in a row have failed: what a call may take is
/// waited for each time.
pub const MAX_FAILED: usize = 10;
/// Slower than this is taken for a mistake.
pub const MAX_SLOWDOWN: u32 = 1000;

/// What calls go over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// HTTP, as `Config` says.
    Http,
    /// Connectionless WSP, by a WAP gateway at this address.
    Wsp(SocketAddr),
    /// CoAP, by a proxy at this address.
    Coap(SocketAddr),
}

impl Over {
    /// The name on the command line and in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Wsp(_) => "wsp",
            Self::Coap(_) => "coap",
        }
    }
}

/// What is measured.
#[derive(Clone, Debug)]
pub struct Series {
    /// The service, such as `http://host:8080`.
    pub base: Target,
    /// A method that is timed.
    pub method: Method,
    /// How large its answer is; of no meaning for [`Method::Nop`].
    pub size: u32,
    /// In which form messages are.
    pub form: Form,
    /// What they go over.
    pub over: Over,
    /// How many calls are measured.
    pub count: usize,
    /// Calls before those, to warm up; at most as many.
    pub warm_up: usize,
    /// How many times slower than this machine's processor that of the client is to seem: writing
    /// and parsing take as many times longer. 1 to [`MAX_SLOWDOWN`].
    pub slowdown: u32,
}

/// Says how large the answer is, warms up, and measures.
///
/// Calls that fail are recorded with the reason: they are results. Once [`MAX_FAILED`] in a row
/// have failed the rest is not made, and [`Calls::not_made`] says how many those are.
///
/// # Errors
/// [`Error::Caller`] where the service does not take the size, or something of `series` or `config`
/// does not fit, and where there is no socket.
pub async fn measure(series: &Series, config: &Config) -> Result<Calls, Error> {
    if series.warm_up > series.count {
        let Series { count, warm_up, .. } = series;
        let line = format!("a warm-up of {warm_up} calls; choose one from 0 to {count}");
        return Err(Error::Caller(line));
    }
    if !(1..=MAX_SLOWDOWN).contains(&series.slowdown) {
        let Series { slowdown, .. } = series;
        let line = format!("a processor {slowdown} times slower; choose 1 to {MAX_SLOWDOWN}");
        return Err(Error::Caller(line));
    }
    if matches!((series.over, series.form), (Over::Coap(_), Form::Wbxml)) {
        let line = "WBXML has no content format of CoAP, so that no gateway knows it there; choose \
                    another form, or WBXML over WSP";
        return Err(Error::Caller(line.to_owned()));
    }
    if let Some((setter, _)) = series.method.setter() {
        let before = Series { method: setter, count: 1, warm_up: 0, ..series.clone() };
        let calls = run(&before, config).await?;
        if let Some(error) = calls.first().and_then(|call| call.error.as_ref()) {
            return Err(Error::Caller(format!("{}: {error}", setter.name())));
        }
    }
    let mut measured = run(series, config).await?;
    let not_made = series.count + series.warm_up - measured.len();
    measured.drain(..series.warm_up.min(measured.len()));
    let good = || measured.iter().filter(|call| call.error.is_none());
    let summary = |of: fn(&Call) -> f64| Summary::of(&good().map(of).collect::<Vec<_>>());
    Ok(Calls {
        url: series.base.to_string(),
        method: series.method.name().to_owned(),
        size: series.method.setter().map(|_| series.size),
        form: series.form.name().to_owned(),
        over: series.over.name().to_owned(),
        proxy: config.proxy.as_ref().map(ToString::to_string),
        new_connection: config.new_connection,
        slowdown: (series.slowdown > 1).then_some(series.slowdown),
        errors: measured.iter().filter(|call| call.error.is_some()).count(),
        not_made,
        t_soap: summary(|call| call.write_s + call.parse_s),
        t_call: summary(|call| call.call_s),
        t_inv: summary(|call| call.write_s + call.call_s + call.parse_s),
        measured,
    })
}

async fn run(series: &Series, config: &Config) -> Result<Vec<Call>, Error> {
    match series.over {
        Over::Http => over_http(series, config).await,
        Over::Wsp(peer) | Over::Coap(peer) => {
            let (series, timeout) = (series.clone(), config.timeout);
            let calls = tokio::task::spawn_blocking(move || over_udp(&series, peer, timeout));
            calls.await.map_err(|error| Error::Caller(format!("the client failed: {error}")))?
        }
    }
}

/// Whether so many calls have failed in a row that the rest is not made.
fn is_hopeless(calls: &[Call]) -> bool {
    calls.len() >= MAX_FAILED
        && calls.iter().rev().take(MAX_FAILED).all(|call| call.error.is_some())
}

/// The request in its form.
fn write(series: &Series) -> Result<Vec<u8>, String> {
    let mut room = vec![0; 1024];
    let form = pocket_form(series.form);
    let wrong = |error: pocket::Error| format!("the request: {error}");
    let put = |room: &mut [u8]| {
        let mut writer = Writer::new(room, form, Tokens::SOAP);
        soap::begin(&mut writer)?;
        writer.begin(element(series.method.name()))?;
        if matches!(series.method, Method::SetString | Method::SetIntArray) {
            writer.begin(element("size"))?;
            writer.integer(i32::try_from(series.size).unwrap_or(i32::MAX))?;
            writer.end()?;
        }
        writer.end()?;
        soap::end(writer)
    };
    let len = put(&mut room).map_err(wrong)?;
    room.truncate(len);
    if series.form == Form::Exi { Form::Exi.encode(&room) } else { Ok(room) }
}

/// What is read of an answer, with room for all of it.
#[derive(Debug)]
pub(super) struct Parsed {
    text: Vec<u8>,
    text_len: usize,
    numbers: Vec<i32>,
}

impl Parsed {
    /// Room for the answers of a series.
    pub(super) fn new(series: &Series) -> Self {
        let (chars, items) = match series.method {
            Method::GetString => (series.size as usize, 0),
            Method::GetIntArray => (0, series.size as usize),
            _ => (0, 0),
        };
        Self { text: vec![0; chars + 1], text_len: 0, numbers: Vec::with_capacity(items) }
    }
}

/// Reads an answer to its end into the room for it, and whether it is one of the method.
fn parse(series: &Series, body: &[u8], parsed: &mut Parsed) -> Result<(), String> {
    let decoded;
    let document = match series.form {
        Form::Exi => {
            decoded = Form::Exi.decode(body)?;
            &decoded[..]
        }
        _ => body,
    };
    let wrong = |error: pocket::Error| format!("the answer: {error}");
    let mut reader = Reader::new(document, pocket_form(series.form), Tokens::SOAP);
    let found = match soap::open(&mut reader) {
        Err(pocket::Error::Fault) => {
            let mut room = [0; 256];
            let reason = soap::fault(&mut reader, &mut room).map_err(wrong)?;
            return Err(format!("fault: {reason}"));
        }
        other => other.map_err(wrong)?,
    };
    if !found.is(&element(series.method.response())) {
        return Err(format!("the answer is a '{}'", found.local));
    }
    parsed.numbers.clear();
    match series.method {
        Method::GetString => {
            soap::expect(&mut reader, &element("value")).map_err(wrong)?;
            let text = soap::text(&mut reader, &mut parsed.text).map_err(wrong)?;
            parsed.text_len = text.len();
        }
        Method::GetIntArray => {
            for _ in 0..series.size {
                soap::expect(&mut reader, &element("item")).map_err(wrong)?;
                parsed.numbers.push(soap::integer(&mut reader).map_err(wrong)?);
            }
        }
        _ => {}
    }
    if let Some(found) = soap::child(&mut reader).map_err(wrong)? {
        return Err(format!("'{}' is too much", found.local));
    }
    while !matches!(reader.next().map_err(wrong)?, Event::Over) {}
    Ok(())
}

/// Says where what was read is not what the service has.
pub(super) fn verify(series: &Series, parsed: &Parsed) -> Result<(), String> {
    let size = series.size as usize;
    match series.method {
        Method::GetString => {
            let text = parsed.text.get(..parsed.text_len).unwrap_or_default();
            let same = text.iter().map(|byte| char::from(*byte)).eq((0..size).map(character));
            if same { Ok(()) } else { Err(format!("not the string of {size} characters")) }
        }
        Method::GetIntArray => {
            let mut pairs = parsed.numbers.iter().zip((0..size).map(number));
            match pairs.position(|(found, expected)| *found != expected) {
                None => Ok(()),
                Some(at) => Err(format!("another number at {at}")),
            }
        }
        _ => Ok(()),
    }
}

/// Whether what was read is right; takes time that is nobody's.
type Verifier = fn(&Series, &Parsed) -> Result<(), String>;

/// How long it took to read an answer, and what is wrong with it. A status that is no success comes
/// first, unless a fault in the body says why.
pub(super) fn judged(
    series: &Series,
    (status, body): (u16, &[u8]),
    parsed: &mut Parsed,
    verify: Verifier,
) -> (f64, Result<(), String>) {
    let (outcome, parse_s) = timed(series, || parse(series, body, parsed));
    let is_fault = outcome.as_ref().is_err_and(|error| error.starts_with("fault: "));
    let outcome = match status {
        200..300 => outcome.and_then(|()| verify(series, parsed)),
        _ if is_fault => outcome,
        status => Err(format!("status {status}")),
    };
    (parse_s, outcome)
}

/// What `pocket` writes and reads; EXI is made of XML.
fn pocket_form(form: Form) -> &'static document::Form {
    match form {
        Form::Xml | Form::Exi => &document::XML,
        Form::Wbxml => &document::WBXML,
        Form::Cbor => &document::CBOR,
    }
}

/// Writes a request and says how long that took.
fn written(series: &Series) -> Result<(Vec<u8>, f64), Error> {
    let (body, write_s) = timed(series, || write(series));
    Ok((body.map_err(Error::Caller)?, write_s))
}

/// Does something and says how long it took, with what a slower processor would need beyond this.
pub(super) fn timed<T>(series: &Series, work: impl FnOnce() -> T) -> (T, f64) {
    let begin = Instant::now();
    let done = work();
    let more = begin.elapsed() * series.slowdown.saturating_sub(1);
    if !more.is_zero() {
        // sleep: passing time is what a slower processor is.
        std::thread::sleep(more);
    }
    (done, begin.elapsed().as_secs_f64())
}

async fn over_http(series: &Series, config: &Config) -> Result<Vec<Call>, Error> {
    let value = |text: &str| {
        HeaderValue::from_str(text).map_err(|error| Error::Caller(format!("'{text}': {error}")))
    };
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, value(series.form.media_type())?);
    headers.insert(ACCEPT, value(series.form.media_type())?);
    let action = format!("\"{}\"", series.method.action());
    headers.insert(HeaderName::from_static("soapaction"), value(&action)?);
    let target = series.base.join("/methods");
    let parsed = Arc::new(Mutex::new((Parsed::new(series), 0.0)));
    let mut asking = Asking::new(config)?;
    let mut calls = Vec::new();
    // Each is written just before it leaves, as over WSP and CoAP.
    for at in 0..series.count + series.warm_up {
        if is_hopeless(&calls) {
            break;
        }
        let (body, write_s) = written(series)?;
        let request_bytes = body.len() as u64;
        locked(&parsed).1 = 0.0;
        let check = {
            let (series, parsed) = (series.clone(), Arc::clone(&parsed));
            move |answer: &Answer| {
                let mut parsed = locked(&parsed);
                let (room, parse_s) = &mut *parsed;
                let got = (answer.status.as_u16(), &answer.content[..]);
                let (took_s, outcome) = judged(&series, got, room, verify);
                *parse_s = took_s;
                outcome
            }
        };
        let item = Item {
            name: format!("call {}", at + 1),
            method: http::Method::POST,
            target: target.clone(),
            headers: headers.clone(),
            body: Bytes::from(body),
            keep: true,
            check: Box::new(check),
        };
        let exchange = asking.ask(&item).await;
        let cut = exchange.censored.then(|| "no answer in time".to_owned());
        calls.push(Call {
            write_s,
            call_s: exchange.elapsed_s,
            parse_s: locked(&parsed).1,
            request_bytes,
            answer_bytes: exchange.body_bytes,
            sent: 1,
            error: exchange.error.or(cut),
        });
    }
    Ok(calls)
}

/// The room for answers, and how long reading the last one took.
fn locked(parsed: &Mutex<(Parsed, f64)>) -> MutexGuard<'_, (Parsed, f64)> {
    parsed.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A client of `pocket`'s over WSP or CoAP.
enum Client {
    Wsp(wsp::Client),
    Coap(coap::Client),
}

impl Client {
    fn call<'r>(
        &mut self,
        socket: &mut Datagrams,
        request: &Request<'_>,
        patience: &Patience,
        room: &'r mut [u8],
    ) -> Result<pocket::Answer<'r>, pocket::Error> {
        let now = socket.epoch.elapsed();
        match self {
            Self::Wsp(client) => {
                let settings = wsp::Settings { patience: *patience, repeats: true };
                client.call(socket, now, request, &settings, room)
            }
            Self::Coap(client) => client.call(socket, now, request, patience, room),
        }
    }
}

fn over_udp(series: &Series, peer: SocketAddr, timeout: Duration) -> Result<Vec<Call>, Error> {
    let failed = |error: io::Error| Error::Caller(format!("no socket for {peer}: {error}"));
    let local = match peer {
        SocketAddr::V4(_) => SocketAddr::from(([0; 4], 0)),
        SocketAddr::V6(_) => SocketAddr::from(([0_u16; 8], 0)),
    };
    let socket = UdpSocket::bind(local).map_err(failed)?;
    let mut socket = Datagrams { socket, peer, epoch: Instant::now() };
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seed = seed.map_or(1, |since| since.subsec_nanos());
    let mut client = match series.over {
        Over::Coap(_) => Client::Coap(coap::Client::new(address(peer), seed)),
        _ => Client::Wsp(wsp::Client::new(address(peer), seed)),
    };
    let uri = series.base.join("/methods").to_string();
    let (mut room, mut parsed) = (vec![0; MAX_ANSWER_BYTES], Parsed::new(series));
    let mut calls = Vec::new();
    for _ in 0..series.count + series.warm_up {
        if is_hopeless(&calls) {
            break;
        }
        let (body, write_s) = written(series)?;
        let content = match series.form {
            Form::Xml => Content::Xml,
            Form::Wbxml => Content::Wbxml,
            Form::Cbor => Content::Cbor,
            Form::Exi => Content::Exi,
        };
        let action = series.method.action();
        let request = Request { uri: &uri, action: &action, content, body: &body };
        let patience = Patience { first: FIRST_TIMEOUT, copies: 5, limit: timeout };
        let begin = Instant::now();
        let answer = client.call(&mut socket, &request, &patience, &mut room);
        let call_s = begin.elapsed().as_secs_f64();
        let (parse_s, answer_bytes, sent, error) = match answer {
            Err(error) => (0.0, 0, 0, Some(error.to_string())),
            Ok(answer) => {
                let got = (answer.status, answer.body);
                let (parse_s, outcome) = judged(series, got, &mut parsed, verify);
                (parse_s, answer.body.len() as u64, u32::from(answer.sent), outcome.err())
            }
        };
        let request_bytes = body.len() as u64;
        calls.push(Call { write_s, call_s, parse_s, request_bytes, answer_bytes, sent, error });
    }
    Ok(calls)
}

/// A socket of the host's for `pocket`.
struct Datagrams {
    socket: UdpSocket,
    peer: SocketAddr,
    epoch: Instant,
}

fn address(of: SocketAddr) -> Address {
    let mut bytes = [0; 18];
    let (host, port) = bytes.split_at_mut(16);
    let ip = match of.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    host.copy_from_slice(&ip.octets());
    port.copy_from_slice(&of.port().to_be_bytes());
    Address(bytes)
}

impl pocket::Socket for Datagrams {
    fn send(&mut self, datagram: &[u8]) -> Result<(), pocket::Error> {
        match self.socket.send_to(datagram, self.peer) {
            Ok(_) => Ok(()),
            // Nobody there yet is as good as lost.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            Err(_) => Err(pocket::Error::Socket),
        }
    }

    fn receive(&mut self, room: &mut [u8], limit: Duration) -> Result<Received, pocket::Error> {
        // No time at all would mean without end.
        let limit = limit.max(Duration::from_micros(1));
        self.socket.set_read_timeout(Some(limit)).map_err(|_| pocket::Error::Socket)?;
        let datagram = match self.socket.recv_from(room) {
            // What fills the room may have been cut: then it is one byte more at least.
            Ok((len, from)) => Some((address(from), len + usize::from(len == room.len()))),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut
                | io::ErrorKind::Interrupted
                | io::ErrorKind::ConnectionRefused => None,
                _ => return Err(pocket::Error::Socket),
            },
        };
        Ok(Received { now: self.epoch.elapsed(), datagram })
    }
}
