//! A request's body that comes as it is sent, and may not go beyond what its service takes.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::flow::{AnyBody, BoxError};

/// See the module.
pub(super) struct Capped {
    body: AnyBody,
    left: u64,
    /// Whether it has gone beyond it.
    passed: Arc<AtomicBool>,
}

impl Capped {
    /// Of at most so many bytes; `passed` is set where there are more.
    pub(super) fn new(body: AnyBody, most: u64, passed: &Arc<AtomicBool>) -> Self {
        Self { body, left: most, passed: Arc::clone(passed) }
    }
}

impl Body for Capped {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
            let Some(left) = self.left.checked_sub(bytes) else {
                self.passed.store(true, Ordering::Relaxed);
                let why = "the body is over the limit of its service (max_body)";
                return Poll::Ready(Some(Err(why.into())));
            };
            self.left = left;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    #[tokio::test]
    async fn a_body_ends_where_its_service_takes_no_more() {
        for (most, is_passed) in [(u64::MAX, false), (10, false), (9, true)] {
            let passed = Arc::default();
            let body = Full::new(Bytes::from_static(&[7; 10])).map_err(|never| match never {});
            let capped = Capped::new(body.boxed_unsync(), most, &passed);
            assert_eq!(capped.collect().await.is_err(), is_passed);
            assert_eq!(passed.load(Ordering::Relaxed), is_passed);
        }
    }
}
