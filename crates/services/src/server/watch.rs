//! The timers of a connection, as a server with a selector has them: they are looked at whenever
//! something happens, and when nothing happened for the poll timeout.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep, sleep_until};

use super::Timeouts;
use super::activity::{Activity, Expiry};

/// The timers of one connection. To be polled in the connection's own task and after it, so that
/// whatever wakes the connection has them looked at.
pub(crate) struct Watch {
    activity: Arc<Activity>,
    timeouts: Timeouts,
    alarm: Pin<Box<Sleep>>,
}

impl Watch {
    pub(crate) fn new(activity: Arc<Activity>, timeouts: Timeouts) -> Self {
        let alarm = Box::pin(sleep_until(activity.look_again(Instant::now(), &timeouts)));
        Self { activity, timeouts, alarm }
    }

    /// Waits until a limit is reached that ends the connection.
    pub(crate) async fn expiry(&mut self) -> Expiry {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Expiry> {
        loop {
            let now = Instant::now();
            match self.activity.expired(now, &self.timeouts) {
                // The service, in the same task, answers that.
                Some(Expiry::Read) if self.activity.is_late() => cx.waker().wake_by_ref(),
                Some(expiry) => return Poll::Ready(expiry),
                None => {}
            }
            let next = self.activity.look_again(now, &self.timeouts);
            self.alarm.as_mut().reset(next);
            if self.alarm.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}
