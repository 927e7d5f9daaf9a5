//! One call: copies of a request until its reply comes.

use core::time::Duration;

use crate::chance::Chance;
use crate::exchange::{Address, Arrived, Input, Machine, Output};
use crate::{Error, Request};

use super::Settings;
use super::packet::{Reply, encode};

/// The share of a timeout that chance may add, as one in so many.
const CHANCE_DIVISOR: u32 = 4;

/// A request and what became of it.
pub(super) struct Call<'a> {
    gateway: Address,
    tid: u8,
    round: u32,
    request: &'a Request<'a>,
    copies: u8,
    max_copies: u8,
    timeout: Duration,
    due_at: Duration,
    end_at: Duration,
    now: Duration,
    /// What is said where no reply comes.
    otherwise: Error,
    done: Option<Result<Arrived, Error>>,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        gateway: Address,
        (tid, round): (u8, u32),
        request: &'a Request<'a>,
        settings: &Settings,
        now: Duration,
        chance: &mut Chance,
    ) -> Self {
        let patience = settings.patience;
        let timeout = patience.spread(chance.next(), CHANCE_DIVISOR);
        let max_copies = if settings.repeats { patience.copies.max(1) } else { 1 };
        Self {
            gateway,
            tid,
            round,
            request,
            copies: 0,
            max_copies,
            timeout,
            due_at: now,
            end_at: now.saturating_add(patience.limit),
            now,
            otherwise: Error::Unanswered,
            done: None,
        }
    }

    /// What happened; a datagram that answers something else, or nothing, is left out.
    pub(super) fn handle_input(&mut self, now: Duration, input: Input<'_>) {
        self.now = now;
        let Input::Datagram { from, room, at, len } = input else { return };
        if from != self.gateway {
            self.otherwise = Error::OtherAddress;
            return;
        }
        let end = at.saturating_add(len);
        let Some(datagram) = room.get(at..end) else {
            // Only the answer itself may end the call, and by its id it is that.
            if room.get(at) == Some(&self.tid) {
                self.done = Some(Err(Error::NoRoom));
            }
            return;
        };
        if datagram.first() != Some(&self.tid) {
            self.otherwise = Error::OtherTransaction;
            return;
        }
        match Reply::decode(datagram) {
            Ok(Reply { status, content, body, .. }) => {
                let (at, len, sent) = (end - body.len(), body.len(), u16::from(self.copies));
                self.done = Some(Ok(Arrived { status, content, at, len, sent }));
            }
            Err(_) => self.otherwise = Error::BadAnswer,
        }
    }

    /// What is to be done next; what is sent is written into `room` each time.
    pub(super) fn poll_output(&mut self, room: &mut [u8]) -> Output {
        if let Some(done) = self.done {
            return Output::Done(done);
        }
        if self.now >= self.end_at {
            return Output::Done(Err(self.otherwise));
        }
        if self.now < self.due_at || self.copies >= self.max_copies {
            let is_last = self.copies >= self.max_copies;
            let until = if is_last { self.end_at } else { self.due_at.min(self.end_at) };
            return Output::WaitUntil(until, 0);
        }
        self.due_at = self.now.saturating_add(self.timeout);
        self.timeout = self.timeout.saturating_add(self.timeout);
        self.copies += 1;
        match encode((self.tid, self.round), self.request, room) {
            Ok(len) => Output::Transmit { at: 0, len },
            Err(error) => Output::Done(Err(error)),
        }
    }
}

impl Machine for Call<'_> {
    fn take(&mut self, now: Duration, input: Input<'_>) {
        self.handle_input(now, input);
    }

    fn give(&mut self, room: &mut [u8]) -> Output {
        self.poll_output(room)
    }
}
