//! A process as a service: what a service manager hands over and is told, and the file that is read
//! where the command line says nothing.

use std::os::fd::{FromRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use proxy::{Error, Handed};
use sd_notify::NotifyState;

/// What a side reads that is started without any option.
const FILE: &str = "/etc/longwire/longwire.toml";
/// The variable that names another; empty: none.
const FILE_VARIABLE: &str = "LONGWIRE_CONFIG";
/// Shortest pause between two signs of life.
const MIN_PAUSE: Duration = Duration::from_millis(1);

/// The settings of a command without any option or argument behind its name.
pub(crate) fn default_file() -> Option<PathBuf> {
    let is_bare = std::env::args_os().nth(2).is_none();
    if !is_bare {
        return None;
    }
    if let Some(named) = std::env::var_os(FILE_VARIABLE) {
        return (!named.is_empty()).then(|| named.into());
    }
    // One that may not be looked at is there: reading it tells why it cannot be read.
    let is_there = !matches!(Path::new(FILE).try_exists(), Ok(false));
    is_there.then(|| FILE.into())
}

/// The sockets that were bound for this process (sd_listen_fds(3)). To be called once, and before
/// anything is opened.
pub(crate) fn handed() -> Result<Handed, Error> {
    let wrong = |error: std::io::Error| {
        Error::Caller(format!(
            "the sockets of the service manager cannot be taken (LISTEN_FDS, LISTEN_FDNAMES): \
             {error}"
        ))
    };
    // What a parent was handed is in the environment too, and is not this process's.
    if sd_notify::listen_fds().map_err(wrong)?.len() == 0 {
        return Ok(Handed::default());
    }
    let all = sd_notify::listen_fds_with_names().map_err(wrong)?;
    let owned = |(number, name)| {
        // SAFETY: LISTEN_PID says that these numbers were left open for this process, each of them
        // is open as was just seen, nothing was opened yet, and nobody else calls this.
        (name, unsafe { OwnedFd::from_raw_fd(number) })
    };
    Handed::new(all.map(owned).collect())
}

/// Tells the service manager, if there is one (sd_notify(3)).
fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager cannot be told (NOTIFY_SOCKET)");
    }
}

/// All is bound, or new settings were read; `status` says it to people.
pub(crate) fn ready(status: &str) {
    // A line feed would end it, and what follows would be another message.
    tell(&[NotifyState::Ready, NotifyState::Status(&status.replace('\n', ", "))]);
}

/// Settings are about to be read again; [`ready`] has to follow.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "the clock of the service manager cannot be read"),
    }
}

/// The process ends as soon as what is open has ended.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("finishing what is open")]);
}

/// Gives signs of life where the service manager wants them (WATCHDOG_USEC), twice as often as it
/// does, each after `beats` has said so: one that never answers is followed by none.
pub(crate) async fn watch<F: Future<Output = bool>>(beats: impl Fn() -> F) {
    if let Some(limit) = sd_notify::watchdog_enabled() {
        // A service manager that does not read must not hold up those who serve.
        let tell = || drop(tokio::task::spawn_blocking(|| tell(&[NotifyState::Watchdog])));
        every(limit / 2, beats, tell).await;
    }
}

async fn every<F: Future<Output = bool>>(
    pause: Duration,
    beats: impl Fn() -> F,
    mut tell: impl FnMut(),
) {
    let mut ticks = tokio::time::interval(pause.max(MIN_PAUSE));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if beats().await {
            tell();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn a_sign_of_life_follows_an_answer_only() {
        let (asked, sent) = (Cell::new(0), Cell::new(0));
        // It answers three times and says no at the second; the fourth hangs.
        let (hangs, hung) = tokio::sync::oneshot::channel::<()>();
        let hangs = Cell::new(Some(hangs));
        let beats = || {
            asked.set(asked.get() + 1);
            let number = asked.get();
            let hangs = if number == 4 { hangs.take() } else { None };
            async move {
                if number == 4 {
                    drop(hangs);
                    std::future::pending::<()>().await;
                }
                number != 2
            }
        };
        tokio::select! {
            () = every(MIN_PAUSE, beats, || sent.set(sent.get() + 1)) => unreachable!(),
            _ = hung => {}
        }
        assert_eq!((asked.get(), sent.get()), (4, 2));
    }
}
