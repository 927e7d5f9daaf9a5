//! Resources of HTTP that clients of CoAP observe (RFC 7641): where an origin answers with
//! server-sent events, each becomes a notification.
//!
//! The origin is asked as for a client that takes `text/event-stream` most of all. One that knows
//! no such thing answers as ever, without Observe, by which the client knows. An event is the new
//! state: of several that come at once the newest goes.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes};
use http::header::{self, HeaderMap, HeaderValue};
use http_body_util::BodyExt as _;
use proto::coap::machine::Input;
use proto::coap::{Code, Content, format, option};
use proto::events::{Event, Reader};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::coap::endpoint::Command;
use crate::coap::shares::{SharePlace, Shares};
use crate::flow::AnyBody;

/// Observations at once, of all clients: each has a connection to an origin.
const MAX_OBSERVED: usize = 64;
/// Longest event, in bytes.
const MAX_STATE_BYTES: usize = 64 * 1024;
/// So long a registration waits for the first event; then it is answered with an empty state.
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// Between two notifications of one observation. What comes sooner waits, the newest of it.
const MIN_PAUSE: Duration = Duration::from_millis(100);
/// How long a state is believed; then a client registers again (RFC 7641 §3.3.1), for which the
/// origin is asked anew.
const AGE_S: u32 = 600;
/// After so many seconds a client may register again whose stream has ended.
const RETRY_AFTER_S: u32 = 5;

/// Whether a request asks to observe what events may tell of: text, or whatever there is.
pub(super) fn wants(request: &Content) -> bool {
    request.code == Code::GET
        && request.uint(option::OBSERVE) == Some(0)
        && request.uint(option::ACCEPT).unwrap_or(0) == 0
}

/// Asks for events before anything else.
pub(super) fn ask(headers: &mut HeaderMap) {
    let wanted = match headers.contains_key(header::ACCEPT) {
        true => "text/event-stream, text/plain;q=0.5",
        false => "text/event-stream, */*;q=0.5",
    };
    headers.insert(header::ACCEPT, HeaderValue::from_static(wanted));
    // A stream is no state that somebody could have.
    headers.remove(header::IF_NONE_MATCH);
}

/// Whether an answer is a stream of events.
pub(super) fn is_stream(media: Option<&HeaderValue>) -> bool {
    let essence = media.and_then(|media| media.to_str().ok()?.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("text/event-stream"))
}

/// Who observes: tasks that end when their clients want no more.
pub(super) struct Observers {
    shares: Arc<Shares>,
    /// By the number of the exchange; at most as many as there are places, and those that have
    /// just ended.
    tasks: BTreeMap<u64, AbortHandle>,
}

impl Default for Observers {
    fn default() -> Self {
        Self { shares: Shares::new(MAX_OBSERVED), tasks: BTreeMap::new() }
    }
}

impl Observers {
    /// A place for one more of who is at this address, if it may have one.
    pub(super) fn shares(&self, from: IpAddr) -> Option<SharePlace> {
        self.shares.take(from)
    }

    pub(super) fn began(&mut self, exchange: u64, task: AbortHandle) {
        self.tasks.retain(|_, task| !task.is_finished());
        self.tasks.insert(exchange, task);
    }

    pub(super) fn ended(&mut self, exchange: u64) {
        if let Some(task) = self.tasks.remove(&exchange) {
            task.abort();
        }
    }
}

/// With the listener end those who observe there.
impl Drop for Observers {
    fn drop(&mut self) {
        self.tasks.values().for_each(AbortHandle::abort);
    }
}

/// What an origin tells of.
pub(super) struct Events {
    body: AnyBody,
    reader: Reader,
    /// What has come and is not read.
    left: Bytes,
}

impl Events {
    pub(super) fn of(body: AnyBody) -> Self {
        Self { body, reader: Reader::new(MAX_STATE_BYTES), left: Bytes::new() }
    }

    /// The next event; the code and the reason when there is none. Dropped amid its work it has
    /// lost nothing.
    async fn next(&mut self) -> Result<Event, (Code, String)> {
        loop {
            let mut rest = &self.left[..];
            let taken = self.reader.take(&mut rest);
            let used = self.left.len() - rest.len();
            self.left.advance(used);
            if let Some(event) = taken.map_err(|error| (Code::BAD_GATEWAY, error.to_string()))? {
                return Ok(event);
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.left = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => {
                    return Err((Code::BAD_GATEWAY, format!("the stream broke off: {error}")));
                }
                None => {
                    let reason = "the stream of events has ended".to_owned();
                    return Err((Code::SERVICE_UNAVAILABLE, reason));
                }
            }
        }
    }

    /// Answers the registration and then notifies, until the stream ends. Who has no use for it any
    /// more ends the task.
    pub(super) async fn follow(mut self, exchange: u64, commands: mpsc::Sender<Command>) {
        let first = match tokio::time::timeout(FIRST_WAIT, self.next()).await {
            Ok(Ok(event)) => state(&event),
            Ok(Err((code, reason))) => refusal(code, reason),
            Err(_) => state(&Event::default()),
        };
        let is_observed = first.code.is_success();
        let content = if is_observed { first.with_uint(option::OBSERVE, 0) } else { first };
        let respond = Command::Input(Input::Respond { exchange, content });
        if commands.send(respond).await.is_err() || !is_observed {
            return;
        }
        let mut newest: Option<Content> = None;
        let mut next_at = Instant::now() + MIN_PAUSE;
        loop {
            let is_waiting = newest.is_some();
            tokio::select! {
                event = self.next() => match event {
                    Ok(event) => newest = Some(state(&event)),
                    Err((code, reason)) => {
                        // Where it has to wait the state that came last is left out.
                        for content in newest.into_iter().chain([refusal(code, reason)]) {
                            let notify = Input::Notify { exchange, content };
                            let _ = commands.send(Command::Input(notify)).await;
                        }
                        return;
                    }
                },
                () = tokio::time::sleep_until(next_at.into()), if is_waiting => {
                    next_at = Instant::now() + MIN_PAUSE;
                    if let Some(content) = newest.take() {
                        let notify = Input::Notify { exchange, content };
                        if commands.send(Command::Input(notify)).await.is_err() {
                            return;
                        }
                    }
                }
            }
        }
    }
}

/// The state that an event tells of.
fn state(event: &Event) -> Content {
    let (format, payload) = match event.binary() {
        Some(binary) => (format::OCTET_STREAM, Bytes::from(binary)),
        None => (0, Bytes::from(event.data.clone())),
    };
    Content::new(Code::CONTENT)
        .with_uint(option::CONTENT_FORMAT, format.into())
        .with_uint(option::MAX_AGE, AGE_S)
        .with_payload(payload)
}

fn refusal(code: Code, reason: String) -> Content {
    Content::new(code).with_uint(option::MAX_AGE, RETRY_AFTER_S).with_payload(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_is_observed_and_only_read() {
        let get = Content::new(Code::GET).with_uint(option::OBSERVE, 0);
        assert!(wants(&get) && wants(&get.clone().with_uint(option::ACCEPT, 0)));
        assert!(!wants(&get.clone().with_uint(option::ACCEPT, 60)));
        assert!(!wants(&Content::new(Code::GET)));
        assert!(!wants(&Content::new(Code::GET).with_uint(option::OBSERVE, 1)));
        assert!(!wants(&Content::new(Code::FETCH).with_uint(option::OBSERVE, 0)));
        let media = |text| is_stream(Some(&HeaderValue::from_static(text)));
        assert!(media("text/event-stream") && media("Text/Event-Stream; charset=utf-8"));
        assert!(!media("text/plain") && !is_stream(None));
    }

    #[test]
    fn an_event_is_a_state() {
        let event = Event { data: "21 C".to_owned(), ..Event::default() };
        let text = state(&event);
        assert_eq!((text.uint(option::CONTENT_FORMAT), &text.payload[..]), (Some(0), &b"21 C"[..]));
        let binary = state(&Event::of_binary(String::new(), &[0xff]));
        let shown = (binary.uint(option::CONTENT_FORMAT), &binary.payload[..]);
        assert_eq!(shown, (Some(42), &[0xff][..]));
    }
}
