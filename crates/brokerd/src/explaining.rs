//! What became of publications: how somebody asks a broker that runs, over its admin address, and
//! how that is read there.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use broker::ExplainQuery;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use record::publication::Publication;
use tokio::net::TcpStream;

use crate::error::Error;

/// Where the admin interface has it.
pub(crate) const PATH: &str = "/publications";
/// Most publications of one answer.
pub(crate) const MAX_LAST: usize = 1000;
/// Publications of an answer to who does not say how many.
const LAST: usize = 10;
/// Longest query, in bytes.
const MAX_QUERY_BYTES: usize = 32 << 10;
/// Longest answer that is read, in bytes: more than a broker remembers, written out.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Asks the broker with an admin address what became of publications; the last of them, in the
/// order in which they came.
///
/// # Errors
/// [`Error::Caller`] where there is no such broker or it does not know the question,
/// [`Error::System`] for an answer that cannot be read.
pub fn explain(address: SocketAddr, query: &ExplainQuery) -> Result<Vec<Publication>, Error> {
    let broken = |what: &dyn std::fmt::Display| Error::System(format!("{address}: {what}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| broken(&error))?;
    let asked = async { tokio::time::timeout(PATIENCE, ask(address, query)).await };
    let (status, body) = runtime
        .block_on(asked)
        .map_err(|_| broken(&format_args!("no answer within {} s", PATIENCE.as_secs())))??;
    if status != StatusCode::OK {
        let line: String = String::from_utf8_lossy(&body).chars().take(300).collect();
        let line = line.trim_end();
        return Err(Error::Caller(format!("{address} answered with {status}: {line}")));
    }
    serde_json::from_slice(&body)
        .map_err(|error| broken(&format_args!("its answer is not of this version: {error}")))
}

async fn ask(address: SocketAddr, query: &ExplainQuery) -> Result<(StatusCode, Bytes), Error> {
    let broken = |error: &dyn std::fmt::Display| Error::System(format!("{address}: {error}"));
    let stream = TcpStream::connect(address).await.map_err(|error| {
        let text = format!("no broker has {address} as its admin address: {error}");
        Error::Caller(text)
    })?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| broken(&error))?;
    let request = Request::get(format!("{PATH}?{}", write(query)))
        .header(header::HOST, address.to_string())
        .header(header::CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(|error| broken(&error))?;
    let answered = async {
        let answer = sender.send_request(request).await.map_err(|error| broken(&error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MAX_ANSWER_BYTES).collect().await;
        let body = body.map_err(|error| broken(&error))?;
        Ok((status, body.to_bytes()))
    };
    tokio::select! {
        answer = answered => answer,
        // It ends behind the answer, which is polled first then.
        Err(error) = connection => Err(broken(&error)),
    }
}

/// A question as the query of a URL.
fn write(query: &ExplainQuery) -> String {
    let mut text = format!("last={}", query.last);
    if let Some(id) = query.id {
        let _ = write!(text, "&id={id}");
    }
    for (name, value) in [("origin", &query.origin), ("topic", &query.topic)] {
        if let Some(value) = value {
            let _ = write!(text, "&{name}=");
            value.bytes().for_each(|byte| escape(byte, &mut text));
        }
    }
    text
}

/// RFC 3986 §2.3: what is not reserved stands for itself.
fn escape(byte: u8, out: &mut String) {
    if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
        out.push(char::from(byte));
    } else {
        let _ = write!(out, "%{byte:02X}");
    }
}

/// Reads a question.
///
/// # Errors
/// A line that says what is wrong with it.
pub(crate) fn read(query: &str) -> Result<ExplainQuery, String> {
    if query.len() > MAX_QUERY_BYTES {
        let bytes = query.len();
        return Err(format!("a query of {bytes} bytes, over the limit of {MAX_QUERY_BYTES}"));
    }
    let mut read = ExplainQuery { id: None, origin: None, topic: None, last: LAST };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = unescape(value)
            .ok_or_else(|| format!("{name}: a percent sign without two digits of UTF-8"))?;
        let number = || value.parse().map_err(|_| format!("{name}={value} is no number"));
        match name {
            "id" => read.id = Some(number()?),
            "origin" => read.origin = Some(value),
            "topic" => {
                broker::check_filter(&value).map_err(|what| format!("topic={value}: {what}"))?;
                read.topic = Some(value);
            }
            "last" => {
                let last = usize::try_from(number()?).unwrap_or(usize::MAX);
                if !(1..=MAX_LAST).contains(&last) {
                    return Err(format!("last={last}: 1 to {MAX_LAST}"));
                }
                read.last = last;
            }
            _ => return Err(format!("there are id, origin, topic and last, not '{name}'")),
        }
    }
    Ok(read)
}

/// A value without its escapes (RFC 3986 §2.1).
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high << 4 | low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_arrives_as_it_was_asked() {
        for (id, origin, topic) in [
            (None, None, None),
            (Some(255), None, Some("unit/+/track")),
            (None, Some("ship-7:10.ff"), Some("a b/é%/#")),
        ] {
            let (origin, topic) = (origin.map(str::to_owned), topic.map(str::to_owned));
            let query = ExplainQuery { id, origin, topic, last: 7 };
            assert_eq!(read(&write(&query)), Ok(query));
        }
    }

    #[test]
    fn what_is_wrong_with_a_question_is_said() {
        for (query, said) in [
            ("id=x", "id=x is no number"),
            ("last=0", "1 to 1000"),
            ("last=99999999999", "1 to 1000"),
            ("topic=a%2", "percent"),
            ("topic=a%ff", "percent"),
            ("topic=a/%23/b", "topic=a/#/b"),
            ("color=red", "'color'"),
        ] {
            let error = read(query).unwrap_err();
            assert!(error.contains(said), "{query}: {error}");
        }
        assert!(read(&"x".repeat(MAX_QUERY_BYTES + 1)).is_err());
    }
}
