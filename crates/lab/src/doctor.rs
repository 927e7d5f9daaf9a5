//! What this machine offers for the laboratory, and what would mend what it lacks.

mod realtime;

use std::fs;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork, geteuid};
use serde_json::{Value, json};

use crate::error::Result;
use crate::ferry::{Port, lock_memory, raise_this_thread};
use crate::namespace::{CONGESTION_CONTROL, Namespace, acquire, on_fresh_thread, try_netem};
use crate::processor::ProcessorTime;

/// Timers that are measured, and how far apart: a third of a second in all.
const ALARMS: u32 = 300;
const ALARM_INTERVAL: Duration = Duration::from_millis(1);
/// Lateness of timers up to which emulated delays are true: half of the half millisecond that the
/// project promises for a packet.
const MAX_TIMER_P99_US: u64 = 250;
/// Share of processor time taken by other guests up to which figures are trusted, in per cent.
const MAX_STEAL_PER_CENT: f64 = 1.0;

/// How well the machine does at one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be.
    Good,
    /// The laboratory works, with less than it could have.
    Weak,
    /// Something does not work without it.
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What, in a few words.
    pub name: &'static str,
    /// How well.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What would mend it; empty when nothing need be done.
    pub remedy: &'static str,
}

impl Verdict {
    /// The word in listings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Weak => "weak",
            Self::Missing => "missing",
        }
    }
}

impl Finding {
    /// For `--json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "verdict": self.verdict.name(),
            "found": self.found,
            "remedy": (!self.remedy.is_empty()).then_some(self.remedy),
        })
    }

    fn new(
        name: &'static str,
        found: impl Into<String>,
        bad: Option<(Verdict, &'static str)>,
    ) -> Self {
        let (verdict, remedy) = bad.unwrap_or((Verdict::Good, ""));
        Self { name, verdict, found: found.into(), remedy }
    }
}

/// Looks at everything; takes about a second and a half.
#[must_use]
pub fn examine() -> Vec<Finding> {
    let before = ProcessorTime::now();
    let timers = on_fresh_thread(timers);
    let spent = before.zip(ProcessorTime::now());
    let steal = steal(spent.and_then(|(before, after)| after.stolen_since(&before)));
    let (root, namespaces) = (root(), user_namespaces());
    let mut all = vec![
        root,
        namespaces,
        tap(),
        congestion_control(),
        netem(),
        memory(),
        timers,
        clock(),
        cores(),
        steal,
    ];
    all.extend(realtime::findings());
    all
}

/// Whether links can be emulated at all: by root's right or by a user namespace's.
#[must_use]
pub fn can_emulate(findings: &[Finding]) -> bool {
    let works = |finding: &&Finding| finding.verdict != Verdict::Missing;
    let ways = [ROOT, USER_NAMESPACES];
    findings.iter().filter(|finding| ways.contains(&finding.name)).any(|finding| works(&finding))
}

const ROOT: &str = "root";
const USER_NAMESPACES: &str = "user namespaces";

/// Tries what a lab does first, on a thread that is thrown away.
fn root() -> Finding {
    let attempt = on_fresh_thread(|| -> Result<()> {
        Namespace::enter_new()?;
        Ok(())
    });
    match attempt {
        Ok(()) => Finding::new(ROOT, "may make network namespaces", None),
        Err(error) => {
            let found = format!("user {}: {error}", geteuid());
            let remedy = "for TAP and real-time priority run as root; \
                          without, labs live in a user namespace";
            Finding::new(ROOT, found, Some((Verdict::Missing, remedy)))
        }
    }
}

/// Tries in a child: what it does to itself cannot be undone.
fn user_namespaces() -> Finding {
    const SUCCESS: i32 = 0;
    // SAFETY: the child takes no lock that another thread of ours could hold but the allocator's,
    // which the C library keeps usable across fork; it ends without returning to the runtime.
    let code = match unsafe { fork() } {
        Ok(ForkResult::Child) => {
            let works = acquire(true).is_ok()
                && unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).is_ok();
            // SAFETY: ends the child at once, without running what the parent registered.
            unsafe { libc::_exit(if works { SUCCESS } else { 1 }) }
        }
        Ok(ForkResult::Parent { child }) => waitpid(child, None),
        Err(error) => Err(error),
    };
    match code {
        Ok(WaitStatus::Exited(_, SUCCESS)) => {
            Finding::new(USER_NAMESPACES, "permitted: labs work without root", None)
        }
        _ => {
            let remedy = "allow them for labs without root: sysctl user.max_user_namespaces, \
                          kernel.apparmor_restrict_unprivileged_userns=0";
            Finding::new(USER_NAMESPACES, "not permitted", Some((Verdict::Missing, remedy)))
        }
    }
}

fn tap() -> Finding {
    if Port::tap_permitted() {
        return Finding::new("TAP", "/dev/net/tun can be opened", None);
    }
    let remedy = "modprobe tun, and let your user open /dev/net/tun; until then veth pairs are \
                  used, which deliver less exactly";
    Finding::new("TAP", "/dev/net/tun cannot be opened", Some((Verdict::Weak, remedy)))
}

fn congestion_control() -> Finding {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let available = fs::read_to_string(path).unwrap_or_default();
    let has = available.split_whitespace().any(|name| name == CONGESTION_CONTROL);
    let remedy = "labs need cubic: modprobe tcp_cubic";
    let found = format!("available: {}", available.trim());
    Finding::new("congestion control", found, (!has).then_some((Verdict::Missing, remedy)))
}

/// Not needed; useful to compare the emulator with.
fn netem() -> Finding {
    let found = match try_netem() {
        Ok(Ok(())) => "the kernel has it, for lab up --emulator netem".to_string(),
        Ok(Err(error)) => format!("the kernel has none ({error}); the ferry does not need it"),
        Err(error) => format!("cannot tell: {error}"),
    };
    Finding::new("netem", found, None)
}

fn memory() -> Finding {
    if lock_memory() {
        return Finding::new("memory", "can be locked", None);
    }
    let limit = match getrlimit(Resource::RLIMIT_MEMLOCK) {
        Ok((RLIM_INFINITY, _)) | Err(_) => "locking fails".to_string(),
        Ok((soft, _)) => format!("at most {soft} B can be locked"),
    };
    let remedy = "a page fault may delay a packet when memory is short: run as root or raise \
                  ulimit -l to unlimited";
    Finding::new("memory", limit, Some((Verdict::Weak, remedy)))
}

/// Measures how late timers are for a thread that runs as the ferry does.
fn timers() -> Finding {
    let priority = raise_this_thread();
    let Ok(mut late_us) = lateness_of_alarms() else {
        let remedy = "links need timerfd: use Linux 2.6.25 or later";
        return Finding::new("timers", "do not work", Some((Verdict::Missing, remedy)));
    };
    late_us.sort_unstable();
    let at = |per_cent: usize| late_us[(late_us.len() * per_cent / 100).min(late_us.len() - 1)];
    let (median, p99) = (at(50), at(99));
    let figures = format!("late by {median} µs in the median, {p99} µs at p99");
    match priority {
        Err(error) => {
            let remedy = "delays are true only while the machine is idle: run as root, or grant \
                          real-time priority (rtprio in /etc/security/limits.conf)";
            let found = format!("no real-time priority ({error}), {figures}");
            Finding::new("timers", found, Some((Verdict::Weak, remedy)))
        }
        Ok(()) if p99 > MAX_TIMER_P99_US => {
            let remedy = "other guests or devices disturb this machine: measure on a quieter one";
            let found = format!("real-time priority, yet {figures}");
            Finding::new("timers", found, Some((Verdict::Weak, remedy)))
        }
        Ok(()) => Finding::new("timers", format!("real-time priority, {figures}"), None),
    }
}

fn lateness_of_alarms() -> nix::Result<Vec<u64>> {
    let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC)?;
    let now = || nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map(Duration::from);
    let start = now()?;
    (1..=ALARMS)
        .map(|number| {
            let due = start + number * ALARM_INTERVAL;
            let at = Expiration::OneShot(TimeSpec::from_duration(due));
            timer.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
            timer.wait()?;
            let late = now()?.saturating_sub(due).as_micros();
            Ok(u64::try_from(late).unwrap_or(u64::MAX))
        })
        .collect()
}

fn clock() -> Finding {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = fs::read_to_string(path).unwrap_or_default();
    let source = source.trim();
    let slow = ["hpet", "acpi_pm", "jiffies"].contains(&source);
    let remedy = "reading this clock takes a microsecond or more: boot with clocksource=tsc if \
                  the processor's is stable";
    let found = if source.is_empty() { "source unknown" } else { source };
    Finding::new("clock", found, slow.then_some((Verdict::Weak, remedy)))
}

fn cores() -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let remedy = "the ferry and what it serves share one core: use a machine with two or more";
    let found = cores.to_string();
    Finding::new("cores", found, (cores < 2).then_some((Verdict::Weak, remedy)))
}

fn steal(share: Option<f64>) -> Finding {
    match share.map(|share| 100.0 * share) {
        None => Finding::new("steal", "unknown", None),
        Some(per_cent) => {
            let remedy = "other guests take processor time: repeat measurements when they rest";
            let bad = per_cent > MAX_STEAL_PER_CENT;
            let found = format!("{per_cent:.1} % of processor time while looking");
            Finding::new("steal", found, bad.then_some((Verdict::Weak, remedy)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_comes_with_a_remedy_in_one_line() {
        let findings = examine();
        assert!(findings.len() >= 10);
        for finding in findings {
            let is_good = finding.verdict == Verdict::Good;
            assert_eq!(is_good, finding.remedy.is_empty(), "{finding:?}");
            assert!(!finding.found.is_empty() && !finding.found.contains('\n'), "{finding:?}");
        }
    }

    #[test]
    fn one_of_two_ways_is_enough() {
        let finding = |name, verdict| Finding { verdict, ..Finding::new(name, "x", None) };
        let root = |verdict| finding(ROOT, verdict);
        let user = |verdict| finding(USER_NAMESPACES, verdict);
        assert!(can_emulate(&[root(Verdict::Missing), user(Verdict::Good)]));
        assert!(can_emulate(&[root(Verdict::Good), user(Verdict::Missing)]));
        assert!(!can_emulate(&[root(Verdict::Missing), user(Verdict::Missing)]));
    }

    #[test]
    fn over_one_per_cent_of_stolen_time_is_too_much() {
        let finding = steal(Some(0.0101));
        assert_eq!(finding.verdict, Verdict::Weak);
        assert!(finding.found.starts_with("1.0 %"), "{}", finding.found);
        assert_eq!(steal(Some(0.01)).verdict, Verdict::Good);
        assert_eq!(steal(None).verdict, Verdict::Good);
    }
}
