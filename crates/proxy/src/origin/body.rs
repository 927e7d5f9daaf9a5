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
use crate::flow::Progress;
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
pub(crate) struct OriginBody {
    incoming: Incoming,
    talk: Arc<Talk>,
    lease: Option<Lease>,
}

impl OriginBody {
    /// `switches`: what follows is another protocol, for which the connection stays on loan.
    pub(crate) fn new(incoming: Incoming, lease: Lease, switches: bool) -> Self {
        let talk = Arc::clone(&lease.held.talk);
        let mut body = Self { incoming, talk, lease: Some(lease) };
        if body.incoming.is_end_stream() && !switches {
            body.give_back();
        }
        body
    }

    /// The socket of an answer that changes protocols, with what follows it.
    pub(crate) fn into_socket(mut self) -> Option<Shared> {
        let lease = self.lease.take()?;
        lease.held.into_socket()
    }

    /// Whether the origin took only a part of the request.
    pub(crate) fn is_deaf(&self) -> bool {
        self.talk.is_deaf()
    }

    fn give_back(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.give_back();
        }
    }
}

impl Body for OriginBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.incoming).poll_frame(cx));
        match &frame {
            None => self.give_back(),
            Some(Ok(_)) if self.incoming.is_end_stream() => self.give_back(),
            Some(Ok(_)) => {}
            Some(Err(_)) => drop(self.lease.take()),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
