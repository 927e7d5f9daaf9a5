//! Bodies that are too long to be here as a whole. A task for each answer gives its client's
//! endpoint as much as the client asks for, and one for each request has the next blocks asked for
//! as its origin takes what came (RFC 7959).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use proto::coap::machine::{Flow, Input, Of};
use proto::coap::transfer::MAX_FLOWING;
use proto::coap::{Content, stream};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::coap::endpoint::Command;
use crate::coap::link;
use crate::coap::shares::{SharePlace, Shares};
use crate::flow::{AnyBody, BoxError};

/// Bytes of a request's body that are here and that its origin has not taken, beside the first.
const ROOM_BYTES: usize = 64 << 10;

/// An answer, with the beginning of its body.
pub(super) struct Begun {
    pub(super) content: Content,
    pub(super) rest: AnyBody,
    /// The room that its beginning has, and what is on its way.
    pub(super) held: OwnedSemaphorePermit,
}

/// The way to an endpoint, over datagrams or over a connection.
#[derive(Clone)]
pub(super) enum Way {
    Datagrams(mpsc::Sender<Command>),
    Stream(mpsc::Sender<link::Command>),
}

impl Way {
    /// Whether it was taken.
    async fn begin(&self, exchange: u64, content: Content) -> bool {
        match self {
            Self::Datagrams(commands) => {
                commands.send(Command::Input(Input::Begin { exchange, content })).await.is_ok()
            }
            Self::Stream(commands) => {
                let input = stream::Input::Begin { exchange, content };
                commands.send(link::Command::Input(input)).await.is_ok()
            }
        }
    }

    async fn flow(&self, flow: Flow) -> bool {
        match self {
            Self::Datagrams(commands) => {
                commands.send(Command::Input(Input::Flow(flow))).await.is_ok()
            }
            Self::Stream(commands) => {
                let input = stream::Input::Flow(flow);
                commands.send(link::Command::Input(input)).await.is_ok()
            }
        }
    }
}

/// What there is room for of answers, and what comes of requests, by the number of the request. Of
/// an answer that is gone nobody wants more, and of a request that is gone nothing more comes.
#[derive(Debug, Default)]
struct Open {
    answers: BTreeMap<u64, mpsc::UnboundedSender<usize>>,
    requests: BTreeMap<u64, mpsc::UnboundedSender<(Bytes, bool)>>,
}

/// Those of one endpoint.
#[derive(Clone)]
pub(super) struct Flows {
    places: Arc<Shares>,
    /// As many as have a place.
    open: Arc<Mutex<Open>>,
}

impl Flows {
    /// With places that all endpoints share.
    pub(super) fn new(places: Arc<Shares>) -> Self {
        Self { places, open: Arc::default() }
    }

    /// Places for the answers of all clients.
    pub(super) fn places() -> Arc<Shares> {
        Shares::new(MAX_FLOWING)
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more, for who is at this address.
    pub(super) fn place(&self, from: IpAddr) -> Option<SharePlace> {
        self.places.take(from)
    }

    /// What the endpoint says of a body.
    pub(super) fn take(&self, flow: Flow) {
        match flow {
            Flow::Room { of: Of::Exchange(exchange), bytes } => {
                if let Some(room) = self.open().answers.get(&exchange) {
                    // Its task has ended where it is taken no more.
                    let _ = room.send(bytes);
                }
            }
            Flow::Part { of: Of::Exchange(exchange), bytes, is_last } => {
                if let Some(parts) = self.open().requests.get(&exchange) {
                    // The same.
                    let _ = parts.send((bytes, is_last));
                }
            }
            Flow::Broken { of: Of::Exchange(exchange) } => {
                let mut open = self.open();
                open.answers.remove(&exchange);
                open.requests.remove(&exchange);
            }
            // Nothing is asked here.
            Flow::Room { .. } | Flow::Broken { .. } | Flow::Part { .. } => {}
        }
    }

    /// Nobody wants more of any, and nothing more comes.
    pub(super) fn end(&self) {
        *self.open() = Open::default();
    }

    /// The body of a request that begins with `first`.
    pub(super) fn body(&self, exchange: u64, way: Way, first: Bytes) -> AnyBody {
        // bound: as many bytes come as there was room for.
        let (sender, parts) = mpsc::unbounded_channel();
        self.open().requests.insert(exchange, sender);
        let (pieces, receiver) = mpsc::channel(1);
        let flows = self.clone();
        tokio::spawn(async move {
            take(exchange, &way, (first, parts), &pieces).await;
            flows.open().requests.remove(&exchange);
        });
        Came { pieces: receiver, has_ended: false }.boxed_unsync()
    }

    /// Answers a request, and goes on to the end of its body, or until nobody asks for more of it.
    pub(super) async fn follow(&self, exchange: u64, way: Way, begun: Begun) {
        let Begun { content, rest, held: _held } = begun;
        // bound: who is told of room is told of more only once half of it is used.
        let (sender, mut room) = mpsc::unbounded_channel();
        self.open().answers.insert(exchange, sender);
        if way.begin(exchange, content).await {
            give(exchange, &way, rest, &mut room).await;
        }
        self.open().answers.remove(&exchange);
    }
}

/// Hands the parts of a request's body on, and says for how much there is room again.
async fn take(
    exchange: u64,
    way: &Way,
    (first, mut parts): (Bytes, mpsc::UnboundedReceiver<(Bytes, bool)>),
    pieces: &mpsc::Sender<Piece>,
) {
    let of = Of::Exchange(exchange);
    let (mut piece, mut is_last, mut room) = (first, false, ROOM_BYTES);
    loop {
        // Who takes no more has an answer, or gives the request up.
        if pieces.send(Piece::Data(piece)).await.is_err() {
            return;
        }
        if is_last {
            let _ = pieces.send(Piece::End).await;
            return;
        }
        way.flow(Flow::Room { of, bytes: room }).await;
        let next = tokio::select! {
            next = parts.recv() => next,
            () = pieces.closed() => return,
        };
        let Some((bytes, is_end)) = next else { return };
        room = bytes.len();
        (piece, is_last) = (bytes, is_end);
    }
}

/// A step of a request's body.
enum Piece {
    Data(Bytes),
    End,
}

/// A request's body, as it comes. One that ends without a word is not whole.
struct Came {
    pieces: mpsc::Receiver<Piece>,
    has_ended: bool,
}

impl Body for Came {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        match ready!(self.pieces.poll_recv(cx)) {
            Some(Piece::Data(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
            Some(Piece::End) => {}
            None => return Poll::Ready(Some(Err("the client sends no more of its body".into()))),
        }
        self.has_ended = true;
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.has_ended
    }
}

/// Gives a body as there is room for it.
async fn give(
    exchange: u64,
    way: &Way,
    mut body: AnyBody,
    grown: &mut mpsc::UnboundedReceiver<usize>,
) {
    let of = Of::Exchange(exchange);
    let (mut room, mut left) = (0, Bytes::new());
    loop {
        let frame = tokio::select! {
            more = grown.recv() => match more {
                Some(bytes) => {
                    room += bytes;
                    continue;
                }
                None => return,
            },
            frame = body.frame(), if room > 0 && left.is_empty() => frame,
            () = std::future::ready(()), if room > 0 && !left.is_empty() => {
                let bytes = left.split_to(room.min(left.len()));
                room -= bytes.len();
                if !way.flow(Flow::Part { of, bytes, is_last: false }).await {
                    return;
                }
                continue;
            }
        };
        let last = match frame {
            Some(Ok(frame)) => {
                left = frame.into_data().unwrap_or_default();
                continue;
            }
            None => Flow::Part { of, bytes: Bytes::new(), is_last: true },
            // What broke off is no whole answer.
            Some(Err(_)) => Flow::Broken { of },
        };
        way.flow(last).await;
        return;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;

    use http_body_util::Full;
    use proto::coap::Code;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::coap::socket::Peer;
    use crate::flow::BoxError;

    const FROM: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn begun(rest: AnyBody) -> Begun {
        let held = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        Begun { content: Content::new(Code::CONTENT), rest, held }
    }

    async fn next(commands: &mut mpsc::Receiver<Command>) -> Option<Input<Peer>> {
        let next = tokio::time::timeout(Duration::from_secs(30), commands.recv());
        match next.await.expect("nothing came") {
            Some(Command::Input(input)) => Some(input),
            _ => None,
        }
    }

    /// No byte of an origin is taken that its client has no room for.
    #[tokio::test]
    async fn a_body_is_given_as_there_is_room_for_it() {
        let flows = Flows::new(Flows::places());
        let (sender, mut commands) = mpsc::channel(1);
        let rest = Full::new(Bytes::from(vec![7; 1000])).map_err(|never| match never {});
        let begun = begun(rest.boxed_unsync());
        let task = {
            let (flows, way) = (flows.clone(), Way::Datagrams(sender));
            tokio::spawn(async move { flows.follow(3, way, begun).await })
        };
        assert!(matches!(next(&mut commands).await, Some(Input::Begin { exchange: 3, .. })));
        let of = Of::Exchange(3);
        for bytes in [1, 400, 10_000] {
            flows.take(Flow::Room { of, bytes });
            let expected = bytes.min(599);
            match next(&mut commands).await {
                Some(Input::Flow(Flow::Part { bytes, is_last: false, .. })) => {
                    assert_eq!(bytes.len(), expected);
                }
                other => panic!("{other:?}"),
            }
        }
        let last = next(&mut commands).await;
        let is_end = matches!(&last, Some(Input::Flow(Flow::Part { is_last: true, .. })));
        assert!(is_end, "{last:?}");
        task.await.unwrap();
        assert_eq!(flows.open().answers.len(), 0);
    }

    /// Nothing more is asked for before its origin has taken what came, and what is cut off is so.
    #[tokio::test]
    async fn a_request_is_asked_for_as_it_is_taken() {
        let flows = Flows::new(Flows::places());
        let (sender, mut commands) = mpsc::channel(16);
        let way = Way::Datagrams(sender);
        let mut body = flows.body(3, way.clone(), Bytes::from_static(b"first"));
        let room = |input: Option<Input<Peer>>| match input {
            Some(Input::Flow(Flow::Room { of: Of::Exchange(3), bytes })) => bytes,
            other => panic!("{other:?}"),
        };
        assert_eq!(room(next(&mut commands).await), ROOM_BYTES);
        let data =
            async |body: &mut AnyBody| body.frame().await.unwrap().unwrap().into_data().unwrap();
        for (bytes, is_last) in [(&b"second"[..], false), (b"third", false), (b"", true)] {
            let bytes = Bytes::copy_from_slice(bytes);
            flows.take(Flow::Part { of: Of::Exchange(3), bytes, is_last });
        }
        // The second waits until the first is taken, and so on.
        assert!(commands.try_recv().is_err());
        assert_eq!(data(&mut body).await, b"first"[..]);
        assert_eq!(room(next(&mut commands).await), 6);
        assert_eq!(data(&mut body).await, b"second"[..]);
        assert_eq!(room(next(&mut commands).await), 5);
        assert_eq!(data(&mut body).await, b"third"[..]);
        assert_eq!(data(&mut body).await, b""[..]);
        assert!(body.frame().await.is_none());
        let mut cut = flows.body(4, way, Bytes::from_static(b"first"));
        assert_eq!(data(&mut cut).await, b"first"[..]);
        flows.take(Flow::Broken { of: Of::Exchange(4) });
        assert!(cut.frame().await.unwrap().is_err());
    }

    /// What breaks off is said so; what nobody wants ends its task.
    #[tokio::test]
    async fn a_body_that_breaks_off_has_no_clean_end() {
        let flows = Flows::new(Flows::places());
        let _place = flows.place(FROM).unwrap();
        let (sender, mut commands) = mpsc::channel(1);
        let broken = once(Err("gone".into()));
        let way = Way::Datagrams(sender);
        let task = {
            let (flows, way) = (flows.clone(), way.clone());
            tokio::spawn(async move { flows.follow(3, way, begun(broken)).await })
        };
        assert!(matches!(next(&mut commands).await, Some(Input::Begin { .. })));
        flows.take(Flow::Room { of: Of::Exchange(3), bytes: 10 });
        let end = next(&mut commands).await;
        assert!(matches!(end, Some(Input::Flow(Flow::Broken { .. }))), "{end:?}");
        task.await.unwrap();
        let endless = once(Ok(Bytes::from_static(b"x")));
        let task = {
            let flows = flows.clone();
            tokio::spawn(async move { flows.follow(4, way, begun(endless)).await })
        };
        assert!(matches!(next(&mut commands).await, Some(Input::Begin { .. })));
        flows.take(Flow::Broken { of: Of::Exchange(4) });
        task.await.unwrap();
    }

    /// A body of this frame alone.
    fn once(frame: Result<Bytes, BoxError>) -> AnyBody {
        Once(Some(frame)).boxed_unsync()
    }

    struct Once(Option<Result<Bytes, BoxError>>);

    impl Body for Once {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
            Poll::Ready(self.0.take().map(|frame| frame.map(Frame::data)))
        }
    }
}
