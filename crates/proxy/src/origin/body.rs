//! The body of an origin's answer, which gives its connection back when it has ended.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;

use super::pool::{Key, Pool};
use crate::flow::AnyBody;

/// A connection on loan.
pub(crate) struct Lease {
    pub(crate) pool: Pool,
    pub(crate) key: Key,
    pub(crate) sender: SendRequest<AnyBody>,
}

/// See the module. Dropped before its end, it closes the connection.
pub(crate) struct OriginBody {
    incoming: Incoming,
    lease: Option<Lease>,
}

impl OriginBody {
    pub(crate) fn new(incoming: Incoming, lease: Lease) -> Self {
        let mut body = Self { incoming, lease: Some(lease) };
        body.give_back_at_end();
        body
    }

    fn give_back_at_end(&mut self) {
        if self.incoming.is_end_stream()
            && let Some(Lease { pool, key, sender }) = self.lease.take()
        {
            pool.give_back(key, sender);
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
            None => {
                if let Some(Lease { pool, key, sender }) = self.lease.take() {
                    pool.give_back(key, sender);
                }
            }
            Some(Ok(_)) => self.give_back_at_end(),
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
