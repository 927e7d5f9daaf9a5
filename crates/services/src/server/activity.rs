//! What a connection is doing and since when. Its socket and its service tell, its watch looks.
//!
//! All three are parts of one task, so that the lock is never waited for.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::time::Instant;

use super::Timeouts;

/// What one connection is doing.
#[derive(Debug)]
pub(crate) struct Activity(Mutex<ActivityState>);

/// A limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    KeepAlive,
    Idle,
    Read,
    Write,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Between requests, since.
    Waiting(Instant),
    /// A request's head has begun.
    Head,
    /// A request's content is awaited.
    Content,
    /// As it was for too long; the service is to say so.
    Late,
    /// The request is whole or given up.
    Answering,
}

#[derive(Debug)]
struct ActivityState {
    phase: Phase,
    /// When bytes came last.
    read: Instant,
    /// When bytes came or went last.
    moved: Instant,
    /// Since when the kernel takes no bytes, if it does not.
    blocked: Option<Instant>,
    /// The answer's last piece is on its way to the kernel.
    ended: bool,
    /// All pieces so far have reached the kernel.
    sent: bool,
    /// Who awaits that.
    sender: Option<Waker>,
}

impl Activity {
    /// Of a connection that begins now.
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self(Mutex::new(ActivityState {
            phase: Phase::Waiting(now),
            read: now,
            moved: now,
            blocked: None,
            ended: false,
            sent: true,
            sender: None,
        }))
    }

    /// Bytes came.
    pub(super) fn came(&self) {
        let mut state = self.state();
        let now = Instant::now();
        (state.read, state.moved) = (now, now);
        if matches!(state.phase, Phase::Waiting(_)) {
            state.phase = Phase::Head;
        }
    }

    /// The kernel took bytes.
    pub(super) fn went(&self) {
        let mut state = self.state();
        (state.moved, state.blocked) = (Instant::now(), None);
    }

    /// The kernel takes no bytes for now.
    pub(super) fn blocked(&self) {
        self.state().blocked.get_or_insert_with(Instant::now);
    }

    /// All bytes so far have reached the kernel.
    pub(super) fn flushed(&self) {
        let mut state = self.state();
        state.sent = true;
        if std::mem::take(&mut state.ended) {
            state.phase = Phase::Waiting(Instant::now());
        }
        if let Some(sender) = state.sender.take() {
            sender.wake();
        }
    }

    /// The head is whole and the service awaits the content.
    pub(crate) fn awaits_content(&self) {
        self.state().phase = Phase::Content;
    }

    /// Whether the content was awaited for too long.
    pub(crate) fn is_late(&self) -> bool {
        self.state().phase == Phase::Late
    }

    /// The service answers.
    pub(crate) fn answers(&self) {
        self.state().phase = Phase::Answering;
    }

    /// Whether an answer may be under way.
    pub(crate) fn is_answering(&self) -> bool {
        self.state().phase == Phase::Answering
    }

    /// Ready when the piece before has reached the kernel.
    pub(super) fn poll_sent(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.sent {
            return Poll::Ready(());
        }
        state.sender = Some(cx.waker().clone());
        Poll::Pending
    }

    /// A piece of the answer is on its way to the kernel.
    pub(super) fn sends(&self, last: bool) {
        let mut state = self.state();
        (state.sent, state.ended) = (false, last);
    }

    /// What has expired at `now`. Content that is late is for the service to answer, once.
    pub(super) fn expired(&self, now: Instant, timeouts: &Timeouts) -> Option<Expiry> {
        let mut state = self.state();
        match state.phase {
            Phase::Waiting(since) if now >= since + timeouts.keep_alive => {
                return Some(Expiry::KeepAlive);
            }
            Phase::Head if now >= state.read + timeouts.read => return Some(Expiry::Read),
            Phase::Content if now >= state.read + timeouts.read => {
                state.phase = Phase::Late;
                return Some(Expiry::Read);
            }
            _ => {}
        }
        if state.blocked.is_some_and(|since| now >= since + timeouts.write) {
            return Some(Expiry::Write);
        }
        (now >= state.moved + timeouts.idle).then_some(Expiry::Idle)
    }

    /// When to look next if nothing happens. The timer of keep-alive is one of HTTP and has its own
    /// alarm; those of TCP are looked at when the selector's patience ends.
    pub(super) fn look_again(&self, now: Instant, timeouts: &Timeouts) -> Instant {
        let poll = now + timeouts.poll;
        match self.state().phase {
            Phase::Waiting(since) => poll.min(since + timeouts.keep_alive),
            _ => poll,
        }
    }

    fn state(&self) -> MutexGuard<'_, ActivityState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
