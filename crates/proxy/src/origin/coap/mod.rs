//! Origins of the scheme coap: a request goes out as one of CoAP over UDP, its answer comes back as
//! one of HTTP (RFC 8075), and what a client wants to hear of is observed (RFC 7641).
//!
//! Each server is asked from one socket, over which it gets no more at once than RFC 7252 §4.7
//! allows, whoever asks. Bodies go in blocks (RFC 7959) and are not here as a whole, but for what
//! is kept of answers: the next block is sent when the client has more, or asked for when it has
//! taken the last. There is room for so many bytes of them, and each server has a share of the
//! places for requests, which last as long as their answers.

mod cache;
mod flowing;
mod observed;
mod servers;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{BufMut as _, Bytes, BytesMut};
use http::header::{self, HeaderValue};
use http::{Method, Response, StatusCode, request};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use proto::coap::machine::Reason;
use proto::coap::{Code, Content, MAX_NUM, option};
use proto::http1::{Framing, ResponseHead};
use relay::{Cause, CauseKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::cache::{Cache, Found, Key, Mark, Use};
use self::flowing::{Download, Gathering, Source, Upload};
use self::observed::Observed;
use self::servers::Servers;
use crate::clock::OwnClock;
use crate::coap::back::{self, Unfit};
use crate::coap::caller::{self, Call, Caller, Event, Failure, ROOM_BYTES};
use crate::coap::events;
use crate::coap::shares::{SharePlace, Shares};
use crate::coap::socket::Peer;
use crate::flow::{AnyBody, BoxError, Progress};
use crate::http1::OnInterim;

/// Requests that are open at once, to all servers; each may have [`ROOM_BYTES`] of an answer that
/// its client has not taken.
const MAX_OPEN: usize = 128;
/// Of a request's body so much is here before it is sent: what is no longer may be sent to another
/// address of the server's name.
const MAX_FIRST_BYTES: usize = 64 << 10;
/// What blocks of 1024 bytes can number (RFC 7959 §2.2).
const MAX_SENT_BYTES: u64 = (MAX_NUM as u64 + 1) << 10;
/// Observations, which last.
const MAX_OBSERVED: usize = 128;
/// Bytes of the bodies of requests, and of answers that are not with their clients yet.
const MAX_HELD_BYTES: usize = 64 << 20;
/// Most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;

/// How often who waits hears that blocks of a large body come (102, RFC 2518 §10.1): no silence
/// that an edge takes for a failure is so short.
const SIGN_OF_WORK: Duration = Duration::from_secs(30);

/// See the module.
pub(crate) struct Coap {
    servers: Servers,
    open: Arc<Shares>,
    observed: Arc<Shares>,
    held: Arc<Semaphore>,
    cache: Arc<Mutex<Cache>>,
}

/// A request for a resource of CoAP.
pub(super) struct Asked<'a> {
    /// The whole of what is asked for.
    pub(super) uri: String,
    /// Where it is, each of one host.
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) message: http::Request<AnyBody>,
    /// When the request last moved, and how long the server may be silent.
    pub(super) progress: &'a Progress,
    pub(super) patience: Duration,
    /// Who hears that the server is at work.
    pub(super) on_interim: Option<OnInterim>,
}

/// How long is waited for whom.
struct Patience<'a> {
    progress: &'a Progress,
    most: Duration,
    on_interim: Option<OnInterim>,
}

/// A server's answer, or its first part, and the request that it is for.
struct Answered {
    content: Content,
    /// Whether nothing more follows.
    is_last: bool,
    call: Call,
    caller: Arc<Caller>,
}

/// What a request is answered with.
enum Answer {
    Whole(Content),
    /// Its first part; and what is gathered of it to be kept.
    Begun(Box<Answered>, Option<Gathering>),
}

impl Coap {
    /// Nobody asked. Answers are kept in so many bytes, or in none (RFC 7252 §5.6).
    pub(crate) fn new(cache_bytes: usize) -> Self {
        Self {
            servers: Servers::default(),
            open: Shares::new(MAX_OPEN),
            observed: Shares::new(MAX_OBSERVED),
            held: Arc::new(Semaphore::new(MAX_HELD_BYTES)),
            cache: Arc::new(Mutex::new(Cache::new(cache_bytes))),
        }
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for `asked.uri`, and waits for the answer.
    pub(super) async fn send(&self, asked: Asked<'_>) -> Result<Response<AnyBody>, Cause> {
        let Asked { uri, addresses, message, progress, patience, on_interim } = asked;
        let first = addresses.first().map(SocketAddr::ip).ok_or_else(no_address)?;
        let place = self.open.take(first).ok_or_else(|| full("requests of CoAP are open"))?;
        let (head, body) = message.into_parts();
        let Some(mut upload) = self.read(body).await? else {
            let reason = format!("the body is over CoAP's limit of {MAX_SENT_BYTES} bytes");
            return Ok(refused(Unfit { status: StatusCode::PAYLOAD_TOO_LARGE, reason }));
        };
        let first = upload.first.clone();
        let content = match back::request(&head.method, &uri, &head.headers, first) {
            Ok(content) => content,
            Err(unfit) => return Ok(refused(unfit)),
        };
        let patience = Patience { progress, most: patience, on_interim };
        if back::wants_events(&head.method, &head.headers) {
            return self.observe(&head, content, &addresses, &patience).await;
        }
        let whom = (&addresses[..], &patience);
        if head.method == Method::HEAD {
            // Nobody has a use for it.
            upload.answer_bytes = 0;
        }
        match self.exchange(&head, &uri, (content, &mut upload), whom).await? {
            Answer::Whole(content) => self.respond(&head.method, content),
            Answer::Begun(answered, gathering) => {
                let held = (place, self.hold(ROOM_BYTES)?);
                Ok(begin(&head.method, *answered, gathering, (patience.most, held)))
            }
        }
    }

    /// Asks, unless the answer is here.
    async fn exchange(
        &self,
        head: &request::Parts,
        uri: &str,
        (mut content, upload): (Content, &mut Upload),
        (addresses, patience): (&[SocketAddr], &Patience<'_>),
    ) -> Result<Answer, Cause> {
        let has: Vec<_> = content.all(option::ETAG).map(<[u8]>::to_vec).collect();
        let key = Key::of(uri, &content);
        let usage = Use::of(&content, &head.headers);
        match self.cache().find(Instant::now(), &key, usage) {
            Found::Fresh(kept) => return Ok(Answer::Whole(cache::for_client(kept, &has))),
            Found::Stale(etag) if !has.contains(&etag) => content.push(option::ETAG, &etag),
            Found::Stale(_) | Found::Nothing => {}
        }
        let is_safe = content.code.is_safe();
        let asked = self.cache().mark(Instant::now());
        let answered = self.send_to(&content, upload, addresses, patience).await?;
        if !is_safe {
            // RFC 7252 §5.9.1: what is kept may be another by now, also after a failure.
            self.cache().forget(&key);
        }
        if !answered.is_last {
            let gathering = is_safe.then(|| self.gather((asked, key, usage), &answered.content));
            let gathering = gathering.flatten();
            return Ok(Answer::Begun(Box::new(answered), gathering));
        }
        let answer = answered.content;
        if !is_safe {
            return Ok(Answer::Whole(answer));
        }
        let whole = self.cache().update(asked, key, usage, &answer);
        match whole {
            Some(kept) => Ok(Answer::Whole(cache::for_client(kept, &has))),
            None if answer.code == Code::VALID && has.is_empty() => {
                let reason = "the origin says 'valid' (2.03) of what nobody has".to_owned();
                Err(failed(CauseKind::OriginFailed, reason))
            }
            None => Ok(Answer::Whole(answer)),
        }
    }

    /// What is to be gathered of an answer of which this is the first part, if it may be kept.
    fn gather(&self, (asked, key, usage): (Mark, Key, Use), first: &Content) -> Option<Gathering> {
        let mut cache = self.cache();
        if usage != Use::Never {
            cache.outdate(&key);
        }
        let most = cache.most_of_one();
        let is_kept = usage != Use::Never && first.code == Code::CONTENT && most > 0;
        is_kept.then(|| Gathering {
            cache: Arc::clone(&self.cache),
            asked,
            key,
            usage,
            head: first.clone().with_payload(Bytes::new()),
            bytes: BytesMut::new(),
            most,
            room: Arc::clone(&self.held),
            held: None,
        })
    }

    /// A resource as a stream of events: what it is, and what it becomes.
    async fn observe(
        &self,
        head: &request::Parts,
        mut content: Content,
        addresses: &[SocketAddr],
        patience: &Patience<'_>,
    ) -> Result<Response<AnyBody>, Cause> {
        let first = addresses.first().map(SocketAddr::ip).ok_or_else(no_address)?;
        let place = self.observed.take(first).ok_or_else(|| full("observations are open"))?;
        content.push_uint(option::OBSERVE, 0);
        content.remove(option::ETAG);
        let last = head.headers.get(events::LAST_EVENT_ID).and_then(|id| id.to_str().ok());
        if let Some(etag) = last.and_then(events::etag_of) {
            content.push(option::ETAG, &etag);
        }
        let answered = self.ask(&content, addresses, patience).await?;
        if !answered.content.code.is_success() {
            return self.respond(&head.method, answered.content);
        }
        let mut response = Response::new(Observed::begin(answered, place).boxed_unsync());
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(response)
    }

    /// Asks at each address until there is one where somebody is.
    async fn ask(
        &self,
        content: &Content,
        addresses: &[SocketAddr],
        patience: &Patience<'_>,
    ) -> Result<Answered, Cause> {
        let whole = None;
        self.try_all(content, whole, addresses, patience).await
    }

    /// The same with a body, and for an answer, that are never here as a whole.
    async fn send_to(
        &self,
        content: &Content,
        upload: &mut Upload,
        addresses: &[SocketAddr],
        patience: &Patience<'_>,
    ) -> Result<Answered, Cause> {
        self.try_all(content, Some(upload), addresses, patience).await
    }

    async fn try_all(
        &self,
        content: &Content,
        mut upload: Option<&mut Upload>,
        addresses: &[SocketAddr],
        patience: &Patience<'_>,
    ) -> Result<Answered, Cause> {
        let mut last = no_address();
        for address in addresses.iter().take(MAX_ADDRESSES) {
            if upload.as_ref().is_some_and(|upload| !upload.is_repeatable()) {
                break;
            }
            let caller = match self.servers.get(*address).await {
                Ok(caller) => caller,
                Err(cause) if cause.kind == CauseKind::OriginUnreachable => {
                    last = cause;
                    continue;
                }
                Err(cause) => return Err(cause),
            };
            let (peer, mut content) = (Peer::server(*address), content.clone());
            let mut call = match &upload {
                None => caller.ask(peer, content, true).await,
                Some(upload) => {
                    let (has_more, room_bytes) = (upload.has_more(), upload.answer_bytes);
                    if let Some(bytes) = upload.size_bytes() {
                        content.push_uint(option::SIZE1, bytes);
                    }
                    let is_confirmable = true;
                    let asked = caller::Asked { content, is_confirmable, has_more, room_bytes };
                    caller.open(peer, asked).await
                }
            };
            let event = converse(&mut call, upload.as_deref_mut(), &caller, patience).await?;
            match event {
                Some(Event::Response(content, is_last)) => {
                    return Ok(Answered { content, is_last, call, caller });
                }
                // Nobody is there who could have carried it out.
                Some(Event::Failed(Failure::Network(why))) => {
                    let reason = format!("cannot reach {address}: {why}");
                    last = failed(CauseKind::OriginUnreachable, reason);
                }
                Some(Event::Failed(failure)) => {
                    let is_uploading = upload.is_some_and(|upload| upload.has_more());
                    let content = too_long(&failure, is_uploading);
                    let content = content.ok_or_else(|| of_failure(&failure))?;
                    return Ok(Answered { content, is_last: true, call, caller });
                }
                Some(Event::Alive | Event::Part(..) | Event::Room(_)) | None => {
                    let reason = format!("cannot reach {address}: its socket is closed");
                    last = failed(CauseKind::OriginUnreachable, reason);
                }
            }
        }
        Err(last)
    }

    fn respond(&self, method: &Method, content: Content) -> Result<Response<AnyBody>, Cause> {
        let mut response = back::response(method, content);
        let (status, len) = (response.status(), response.body().len());
        let has_no_body = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        if !has_no_body && *method != Method::HEAD {
            response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(len));
        }
        let held = self.hold(len)?;
        Ok(response.map(|bytes| whole(bytes, Some(held))))
    }

    /// The beginning of a body, with the room that it has, and the rest; `None`: it is too large.
    async fn read(&self, mut body: AnyBody) -> Result<Option<Upload>, Cause> {
        if body.size_hint().lower() > MAX_SENT_BYTES {
            return Ok(None);
        }
        let (mut bytes, mut held) = (BytesMut::new(), self.hold(0)?);
        while bytes.len() <= MAX_FIRST_BYTES {
            let broken = |error: BoxError| {
                failed(CauseKind::ClientGone, format!("the request's body broke off: {error}"))
            };
            let Some(frame) = body.frame().await else {
                return Ok(Some(Upload::new(bytes.freeze(), None, held)));
            };
            let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
            held.merge(self.hold(data.len())?);
            bytes.put(data);
        }
        Ok(Some(Upload::new(bytes.freeze(), Some(body), held)))
    }

    fn hold(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Cause> {
        let count = u32::try_from(bytes).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.held).try_acquire_many_owned(count);
        permit.map_err(|_| full("bytes of bodies of CoAP are held"))
    }
}

/// An answer of which the first part is here, with how long its server may be silent.
fn begin(
    method: &Method,
    answered: Answered,
    gathering: Option<Gathering>,
    (patience, (place, held)): (Duration, (SharePlace, OwnedSemaphorePermit)),
) -> Response<AnyBody> {
    let Answered { content, call, caller, .. } = answered;
    let mut response = back::response(method, content);
    // How long it is nobody knows: what the server says of it is an estimate.
    response.headers_mut().remove(header::CONTENT_LENGTH);
    if *method == Method::HEAD {
        return response.map(|_| whole(Bytes::new(), None));
    }
    response.extensions_mut().insert(OwnClock);
    let source = Source::new(call, patience, (caller, place, held));
    response.map(|first| Download::begin(first, source, gathering).boxed_unsync())
}

/// What comes of a request first, beside room for its body, which goes on meanwhile.
async fn converse(
    call: &mut Call,
    mut upload: Option<&mut Upload>,
    caller: &Caller,
    patience: &Patience<'_>,
) -> Result<Option<Event>, Cause> {
    let mut telling = std::pin::pin!(tell_of_work(patience, caller));
    let mut room = 0;
    loop {
        let wanted = upload.as_mut().filter(|upload| room > 0 && !upload.has_ended());
        let is_reading = wanted.is_some();
        let most = room;
        let reading = async move {
            match wanted {
                Some(upload) => upload.next(most).await,
                None => std::future::pending().await,
            }
        };
        let read = tokio::select! {
            event = call.next() => match event {
                Some(Event::Room(bytes)) => {
                    room += bytes;
                    continue;
                }
                event => return Ok(event),
            },
            read = reading => read,
            never = &mut telling => match never {},
            // Over the client, others have a clock.
            () = silent(patience, caller), if !is_reading => {
                let waited = patience.most.as_secs_f64();
                let reason = format!("the origin did not answer within {waited} s");
                return Err(failed(CauseKind::OriginTimeout, reason));
            }
        };
        let broken = |error: BoxError| {
            failed(CauseKind::ClientGone, format!("the request's body broke off: {error}"))
        };
        let (bytes, is_last) = read.map_err(broken)?;
        room -= bytes.len();
        call.give(bytes, is_last).await;
    }
}

/// Resolves when neither the request has moved nor the server has said anything for so long.
/// Blocks of a large body are a sign of life, and so is what others get from the same server, for
/// a request waits until it is its turn.
async fn silent(patience: &Patience<'_>, caller: &Caller) {
    patience.progress.stalled(patience.most).await;
    caller.heard().stalled(patience.most).await;
}

/// Says now and then that the server is at work, while it is.
async fn tell_of_work(patience: &Patience<'_>, caller: &Caller) -> Infallible {
    let processing = ResponseHead {
        minor: 1,
        status: StatusCode::PROCESSING.as_u16(),
        reason: Bytes::from_static(b"Processing"),
        fields: Vec::new(),
        framing: Framing::None,
        close: false,
    };
    loop {
        // sleep: signs of life are due by time.
        tokio::time::sleep(SIGN_OF_WORK).await;
        if caller.heard().has_moved_within(SIGN_OF_WORK)
            && let Some(on_interim) = &patience.on_interim
        {
            on_interim(&processing);
        }
    }
}

fn failed(kind: CauseKind, reason: String) -> Cause {
    Cause { kind, reason }
}

fn no_address() -> Cause {
    failed(CauseKind::OriginUnreachable, "the origin's name has no address of one host".to_owned())
}

fn full(what: &str) -> Cause {
    failed(CauseKind::Limit, format!("too many {what} here: ask again later"))
}

/// What stands for the answer to a request whose body has more blocks than can be numbered.
fn too_long(failure: &Failure, is_uploading: bool) -> Option<Content> {
    let is_it = is_uploading && matches!(failure, Failure::Reason(Reason::TooLarge));
    let blocks = u64::from(MAX_NUM) + 1;
    let why = format!("the body has more than {blocks} blocks of the size that the server wants");
    is_it.then(|| Content::new(Code::REQUEST_ENTITY_TOO_LARGE).with_payload(why))
}

fn of_failure(failure: &Failure) -> Cause {
    let kind = match failure {
        Failure::Network(_) => CauseKind::OriginUnreachable,
        Failure::Reason(Reason::Full) => CauseKind::Limit,
        Failure::Reason(Reason::TimedOut | Reason::NoAnswer) => CauseKind::OriginTimeout,
        Failure::Reason(_) => CauseKind::OriginFailed,
    };
    failed(kind, failure.why())
}

/// What stands for the answer to a request that CoAP cannot say.
fn refused(unfit: Unfit) -> Response<AnyBody> {
    let text = Bytes::from(format!("longwire: {}\n", unfit.reason));
    let len = text.len();
    let mut response = Response::new(whole(text, None));
    *response.status_mut() = unfit.status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(len));
    response
}

fn whole(bytes: Bytes, held: Option<OwnedSemaphorePermit>) -> AnyBody {
    Whole { bytes: Some(bytes).filter(|bytes| !bytes.is_empty()), _held: held }.boxed_unsync()
}

/// A body that is here, with its room.
struct Whole {
    bytes: Option<Bytes>,
    _held: Option<OwnedSemaphorePermit>,
}

impl Body for Whole {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, Bytes::len) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_with_too_many_blocks_is_too_large() {
        let too_large = Failure::Reason(Reason::TooLarge);
        let content = too_long(&too_large, true).unwrap();
        let response = back::response(&Method::PUT, content);
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert!(response.body().starts_with(b"the body has more than 1048576 blocks"));
        // An answer that is too large is the server's failure, as any other.
        assert_eq!(too_long(&too_large, false), None);
        assert_eq!(of_failure(&too_large).kind, CauseKind::OriginFailed);
        assert_eq!(too_long(&Failure::Reason(Reason::TimedOut), true), None);
    }
}
