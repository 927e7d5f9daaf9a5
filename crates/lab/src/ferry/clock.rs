//! The ferry's time and its alarm.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// The machine's monotonic time, as every program on it reads it, and one alarm at a moment of it.
pub(super) struct Clock {
    timer: TimerFd,
    set_to: Option<Duration>,
}

impl Clock {
    /// Without an alarm.
    pub(super) fn start() -> nix::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        monotonic()?;
        Ok(Self { timer, set_to: None })
    }

    /// The time.
    pub(super) fn now(&self) -> Duration {
        // The monotonic clock exists on every Linux; were it to fail, time would stand still.
        monotonic().unwrap_or_default()
    }

    /// Sets the alarm: the descriptor becomes readable at `moment`, or never.
    pub(super) fn set_alarm(&mut self, moment: Option<Duration>) -> nix::Result<()> {
        if self.set_to == moment {
            return Ok(());
        }
        match moment {
            Some(moment) => {
                let at = TimeSpec::from_duration(moment);
                self.timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
            }
            None => self.timer.unset()?,
        }
        self.set_to = moment;
        Ok(())
    }
}

impl AsFd for Clock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

fn monotonic() -> nix::Result<Duration> {
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map(Duration::from)
}
