//! How many bytes a short message takes from one node to the next: Table I of IST-150, by the code
//! that sends messages.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use proto::coap::stream::{self, Connection, Framing};
use proto::coap::transfer::Transfers;
use proto::coap::{Content, machine};
use tokio::io::AsyncReadExt as _;

use super::coap::posted;
use super::deliver::post;
use crate::Error;
use crate::client::Target;
use crate::messaging::forms::Form;
use crate::messaging::message::{DEFAULT_VALIDITY, Delivery, FREE_TEXT, Message, Precedence};
use crate::messaging::message::{Transfer, Wanted};

/// The path that nodes give messages to.
const PATH: &str = "/transfers";
/// Headers of IPv4 and UDP (RFC 791 §3.1, RFC 768).
const UDP_BYTES: usize = 20 + 8;
/// Headers of IPv4 and TCP with timestamps (RFC 9293 §3.1, RFC 7323 §3).
const TCP_BYTES: usize = 20 + 32;
/// More than any of these messages takes.
const MAX_READ_BYTES: usize = 4096;

/// What one message takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// `HTTP/JSON` and others: protocol and form.
    pub case: String,
    /// Bytes of the message of HTTP or CoAP, its header counted.
    pub message_bytes: usize,
    /// With the headers of IPv4 and of UDP or TCP, in one packet.
    pub ip_bytes: usize,
}

/// A message with all mandatory fields and a short text, as a node writes it.
#[must_use]
pub fn short_message() -> Transfer {
    let message = Message {
        id: "a1-mqs8d2k4".into(),
        precedence: Precedence::Routine,
        originator: "a1".into(),
        addressees: vec!["b1".to_owned()],
        time: Duration::from_millis(1_773_468_000_250),
        validity: DEFAULT_VALIDITY,
        references: Vec::new(),
        kind: FREE_TEXT.to_owned(),
        delivery: Delivery::Reliable,
        receipt: Wanted::Delivered,
        text: "Go.".to_owned(),
        extensions: Vec::new(),
        code: None,
    };
    Transfer { message: Arc::new(message), hops: Vec::new(), recipients: Vec::new() }
}

/// The sizes of [`short_message`] over each protocol in each form.
///
/// # Errors
/// [`Error`] where a request cannot be made, which does not happen.
pub async fn sizes() -> Result<Vec<Size>, Error> {
    let mut sizes = Vec::new();
    for protocol in ["HTTP", "CoAP/UDP", "CoAP/TCP"] {
        for form in Form::ALL {
            let content = short_message().encode(form);
            let content = content.map_err(|refusal| Error::Caller(refusal.line))?;
            let (message_bytes, below) = match protocol {
                "HTTP" => (http(form, content.into()).await?, TCP_BYTES),
                "CoAP/UDP" => (udp(posted(PATH, form, content.into())), UDP_BYTES),
                _ => (tcp(posted(PATH, form, content.into())), TCP_BYTES),
            };
            let case = format!("{protocol}/{}", form.name().to_uppercase());
            sizes.push(Size { case, message_bytes, ip_bytes: message_bytes + below });
        }
    }
    Ok(sizes)
}

/// What a connection of HTTP sends.
async fn http(form: Form, content: Bytes) -> Result<usize, Error> {
    let failed = |what: String| Error::Caller(format!("no request can be made: {what}"));
    let target = Target::parse("http://10.0.0.2:8091")?;
    let length = content.len();
    let request = post(&target, false, form, PATH, content).map_err(failed)?;
    let (near, mut far) = tokio::io::duplex(MAX_READ_BYTES);
    let opened = http1::handshake(TokioIo::new(near)).await;
    let (mut connection, driver) = opened.map_err(|error| failed(error.to_string()))?;
    let read = async {
        let mut bytes = Vec::new();
        loop {
            let head = bytes.windows(4).position(|four| four == b"\r\n\r\n");
            if head.is_some_and(|end| bytes.len() >= end + 4 + length) {
                return Ok(bytes.len());
            }
            let count = far.read_buf(&mut bytes).await;
            if count.map_err(|error| failed(error.to_string()))? == 0 {
                return Err(failed("the connection ended".to_owned()));
            }
        }
    };
    tokio::select! {
        bytes = read => bytes,
        _ = driver => Err(failed("the connection ended".to_owned())),
        _ = connection.send_request(request) => Err(failed("an answer came of nobody".to_owned())),
    }
}

/// What an endpoint of CoAP over UDP sends.
fn udp(content: Content) -> usize {
    let settings = machine::Settings { seed: [1, 2], is_challenging: false, rate_bps: None };
    let mut transfers = Transfers::new(&settings);
    let request = machine::Input::Request { request: 1, peer: (), content, is_confirmable: true };
    transfers.handle_input(Duration::ZERO, request);
    let mut sent = 0;
    while let Some(output) = transfers.poll_output() {
        if let machine::Output::Datagram { bytes, .. } = output {
            sent += bytes.len();
        }
    }
    sent
}

/// What a connection of CoAP over TCP sends once both ends have said what they take.
fn tcp(content: Content) -> usize {
    let settings =
        |seed| stream::Settings { seed: [seed, 2], framing: Framing::Stream, idle: None };
    let [mut near, mut far] = [1, 2].map(|seed| Connection::new(&settings(seed)));
    let take = |connection: &mut Connection| {
        let mut sent = Vec::new();
        while let Some(output) = connection.poll_output() {
            if let stream::Output::Transmit(bytes) = output {
                sent.extend_from_slice(&bytes);
            }
        }
        Bytes::from(sent)
    };
    near.handle_input(Duration::ZERO, stream::Input::Bytes(take(&mut far)));
    take(&mut near);
    near.handle_input(Duration::ZERO, stream::Input::Request { request: 1, content });
    take(&mut near).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table I of IST-150.
    const PAPER: [(&str, usize); 6] = [
        ("HTTP/JSON", 418),
        ("HTTP/CBOR", 369),
        ("HTTP/EXI", 377),
        ("CoAP/UDP/JSON", 153),
        ("CoAP/UDP/CBOR", 105),
        ("CoAP/TCP/CBOR", 104),
    ];

    #[tokio::test]
    async fn each_case_takes_no_more_than_the_paper_s() {
        let sizes = sizes().await.unwrap();
        assert_eq!(sizes.len(), 12);
        for size in &sizes {
            println!("{:<14} {:>4} {:>4}", size.case, size.message_bytes, size.ip_bytes);
        }
        for (case, paper_bytes) in PAPER {
            let ours = sizes.iter().find(|size| size.case == case).unwrap();
            let found = ours.message_bytes;
            assert!(found > 30 && found <= paper_bytes, "{case}: {found} over {paper_bytes}");
        }
    }

    /// The table of docs/messaging.md is this one.
    #[tokio::test]
    async fn the_documentation_has_these_sizes() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/messaging.md");
        let text = std::fs::read_to_string(path).unwrap();
        for Size { case, message_bytes, ip_bytes } in sizes().await.unwrap() {
            let paper = PAPER.iter().find(|(name, _)| *name == case);
            let paper = paper.map_or(String::new(), |(_, bytes)| bytes.to_string());
            let row = format!("| {case} | {message_bytes} | {paper} | {ip_bytes} |");
            assert!(text.contains(&row), "docs/messaging.md lacks {row}");
        }
    }

    #[test]
    fn the_message_has_all_mandatory_fields() {
        let bytes = short_message().encode(Form::Json).unwrap();
        assert_eq!(Transfer::decode(Form::Json, &bytes), Ok(short_message()));
    }
}
