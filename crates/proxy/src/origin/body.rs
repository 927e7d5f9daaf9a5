//! The body of an origin's answer, which gives its connection back when it has ended.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::client::Held;
use super::pool::{Key, Pool};
use crate::flow::{AnyBody, BoxError, Progress};
use crate::http1::{Shared, Talk};

/// A connection on loan.
pub(crate) struct Lease {
    pub(crate) pool: Pool,
    pub(crate) key: Key,
    pub(crate) held: Held,
    /// When the request last moved, and how long it may stand still behind its answer.
    pub(crate) progress: Progress,
    pub(crate) patience: Duration,
}

impl Lease {
    /// The answer is whole: the connection serves the next request once this one is with the
    /// origin too, unless something speaks against it.
    fn give_back(self) {
        let Self { pool, key, mut held, progress, patience } = self;
        tokio::spawn(async move {
            tokio::select! {
                ready = held.sender.ready() => {
                    if ready.is_ok() && !held.talk.is_tainted() {
                        pool.put(key, held);
                    }
                }
                // Dropping it closes the connection.
                () = progress.stalled(patience) => {}
            }
        });
    }
}

/// See the module. Dropped before its end, it closes the connection.
pub(crate) struct OriginBody(Inner);

enum Inner {
    Incoming(Leased),
    /// It comes by another protocol.
    Other(AnyBody),
}

/// A body that comes over a connection on loan.
struct Leased {
    incoming: Incoming,
    talk: Arc<Talk>,
    lease: Option<Lease>,
}

impl Leased {
    fn give_back(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.give_back();
        }
    }
}

impl OriginBody {
    /// One that comes by another protocol.
    pub(super) fn of_other(body: AnyBody) -> Self {
        Self(Inner::Other(body))
    }

    /// `switches`: what follows is another protocol, for which the connection stays on loan.
    pub(crate) fn new(incoming: Incoming, lease: Lease, switches: bool) -> Self {
        let talk = Arc::clone(&lease.held.talk);
        let mut leased = Leased { incoming, talk, lease: Some(lease) };
        if leased.incoming.is_end_stream() && !switches {
            leased.give_back();
        }
        Self(Inner::Incoming(leased))
    }

    /// The socket of an answer that changes protocols, with what follows it.
    pub(crate) fn into_socket(self) -> Option<Shared> {
        let Inner::Incoming(leased) = self.0 else { return None };
        leased.lease?.held.into_socket()
    }

    /// Whether the origin took only a part of the request.
    pub(crate) fn is_deaf(&self) -> bool {
        matches!(&self.0, Inner::Incoming(leased) if leased.talk.is_deaf())
    }
}

impl Body for OriginBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let leased = match &mut self.0 {
            Inner::Incoming(leased) => leased,
            Inner::Other(body) => return Pin::new(body).poll_frame(cx),
        };
        let frame = ready!(Pin::new(&mut leased.incoming).poll_frame(cx));
        match &frame {
            None => leased.give_back(),
            Some(Ok(_)) if leased.incoming.is_end_stream() => leased.give_back(),
            Some(Ok(_)) => {}
            Some(Err(_)) => drop(leased.lease.take()),
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Incoming(leased) => leased.incoming.is_end_stream(),
            Inner::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Incoming(leased) => leased.incoming.size_hint(),
            Inner::Other(body) => body.size_hint(),
        }
    }
}
