//! What real time is worth on this machine (RT-SOA): how soon the kernel lets go of a core, whether
//! threads may have priorities, and what else takes the core.

use std::fs;
use std::time::Duration;

use services::realtime::clock::monotonic_ns;
use services::realtime::rights::{self, Budget, pin_this_thread, raise_this_thread};

use super::{Finding, Verdict};
use crate::namespace::on_fresh_thread;

/// Above what a consumer uses, below the kernel's own.
const PRIORITY: i32 = 80;
/// How long gaps are looked for: below what throttling leaves of a second.
const LOOKED: Duration = Duration::from_millis(900);
/// Reading the clock takes far less: a longer step is a gap.
const GAP_NS: u64 = 5_000;
/// A gap that a message would notice.
const LONG_GAP_NS: u64 = 50_000;
/// Longest gap with which the latencies that RT-SOA is about can be held.
const MAX_GAP_NS: u64 = 300_000;
/// Share of a core that `longwire serve consumer` admits, in microseconds of a second.
const ADMITTED_US: i64 = 900_000;

/// All findings; takes a second.
pub(super) fn findings() -> Vec<Finding> {
    let cmdline = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let limits = ["runtime", "period"].map(|name| {
        let path = format!("/proc/sys/kernel/sched_rt_{name}_us");
        fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok())
    });
    vec![
        preemption(model(&cmdline)),
        permission(),
        groups(rights::budget()),
        throttling(limits),
        on_fresh_thread(holes),
    ]
}

/// When a task of the kernel leaves a core to one that is more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Preemption {
    /// Nearly everywhere (PREEMPT_RT).
    RealTime,
    /// But for sections that hold a spin lock.
    Full,
    /// As full for real-time threads, later for others.
    Lazy,
    /// Where the kernel says so.
    Voluntary,
    /// At the end of what it does.
    None,
    Unknown,
}

impl Preemption {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "full" => Some(Self::Full),
            "lazy" => Some(Self::Lazy),
            "voluntary" => Some(Self::Voluntary),
            "none" => Some(Self::None),
            _ => None,
        }
    }
}

/// What the kernel says, in the order in which it counts.
fn model(cmdline: &str) -> Preemption {
    let is_real_time = fs::read_to_string("/sys/kernel/realtime").is_ok_and(|is| is.trim() == "1");
    if is_real_time {
        return Preemption::RealTime;
    }
    let set = fs::read_to_string("/sys/kernel/debug/sched/preempt").ok();
    let set = set.as_deref().and_then(chosen);
    let asked = cmdline.split_whitespace().filter_map(|word| word.strip_prefix("preempt="));
    set.or_else(|| asked.filter_map(Preemption::parse).next_back())
        .or_else(|| reported(&kernel_log()))
        .or_else(|| built(&fs::read_to_string("/proc/version").unwrap_or_default()))
        .unwrap_or(Preemption::Unknown)
}

/// The one in parentheses: `none (voluntary) full`.
fn chosen(list: &str) -> Option<Preemption> {
    let words = list.split_whitespace();
    let mut chosen = words.filter_map(|word| word.strip_prefix('(')?.strip_suffix(')'));
    chosen.next().and_then(Preemption::parse)
}

/// What a kernel that can have any said when it started.
fn reported(log: &str) -> Option<Preemption> {
    let (_, behind) = log.split_once("Dynamic Preempt: ")?;
    Preemption::parse(behind.split_whitespace().next()?)
}

/// What the kernel was made for: of `PREEMPT_DYNAMIC` it does not follow.
fn built(version: &str) -> Option<Preemption> {
    let has = |name: &str| version.split_whitespace().any(|word| word == name);
    match () {
        () if has("PREEMPT_RT") => Some(Preemption::RealTime),
        () if has("PREEMPT_DYNAMIC") => None,
        () if has("PREEMPT") => Some(Preemption::Full),
        () => None,
    }
}

/// The kernel's messages, where they may be read (syslog(2)).
fn kernel_log() -> String {
    /// `SYSLOG_ACTION_READ_ALL`.
    const READ_ALL: libc::c_int = 3;
    const MAX_LOG_BYTES: usize = 1 << 20;
    let mut log = vec![0_u8; MAX_LOG_BYTES];
    let room = libc::c_int::try_from(log.len()).unwrap_or(libc::c_int::MAX);
    // SAFETY: the kernel writes at most `room` bytes into `log`, which has as many.
    let count = unsafe { libc::klogctl(READ_ALL, log.as_mut_ptr().cast(), room) };
    log.truncate(usize::try_from(count).unwrap_or(0));
    String::from_utf8_lossy(&log).into_owned()
}

fn preemption(model: Preemption) -> Finding {
    let (found, is_good) = match model {
        Preemption::RealTime => {
            ("PREEMPT_RT: the kernel lets go of a core nearly everywhere", true)
        }
        Preemption::Full => ("full: the kernel lets go of a core unless it holds a lock", true),
        Preemption::Lazy => ("lazy: as full for real-time threads", true),
        Preemption::Voluntary => ("voluntary: the kernel lets go of a core at some places", false),
        Preemption::None => {
            ("none: what the kernel does for others runs on while an urgent thread waits", false)
        }
        Preemption::Unknown => ("unknown: the kernel does not say", false),
    };
    let remedy = "packets and timers wake threads late: boot with preempt=full, or a kernel with \
                  PREEMPT_RT";
    Finding::new("preemption", found, (!is_good).then_some((Verdict::Weak, remedy)))
}

fn permission() -> Finding {
    let raised = on_fresh_thread(|| raise_this_thread(PRIORITY).map(|()| rights::scheduling()));
    match raised {
        Ok(found) => Finding::new("real-time rights", format!("{found} is permitted"), None),
        Err(error) => {
            let remedy = "services run as ordinary: run as root, or grant rtprio \
                          (/etc/security/limits.conf, LimitRTPRIO= of systemd)";
            Finding::new("real-time rights", error.to_string(), Some((Verdict::Weak, remedy)))
        }
    }
}

/// With `CONFIG_RT_GROUP_SCHED` a new control group refuses real-time priority even to root.
fn groups(budget: Option<Budget>) -> Finding {
    let name = "real-time groups";
    let remedy = "containers and services in groups of their own get none: write their \
                  cpu.rt_runtime_us, or boot with rt_group_sched=0";
    match budget {
        None => Finding::new(name, "control groups have no budgets of their own", None),
        Some(Budget { group, runtime_us }) => {
            let found = format!("each control group has a budget: {group} has {runtime_us} us");
            Finding::new(name, found, Some((Verdict::Weak, remedy)))
        }
    }
}

fn throttling([runtime_us, period_us]: [Option<i64>; 2]) -> Finding {
    let name = "rt throttling";
    let (Some(runtime_us), Some(period_us)) = (runtime_us, period_us.filter(|us| *us > 0)) else {
        return Finding::new(name, "the kernel says nothing of it", None);
    };
    if runtime_us < 0 {
        let found = "off: a real-time thread that runs away keeps its core";
        return Finding::new(name, found, None);
    }
    let share_us = i128::from(runtime_us) * 1_000_000 / i128::from(period_us);
    let lost_ms = (1_000_000 - share_us).max(0) / 1000;
    let found = format!(
        "{runtime_us} of {period_us} us: real-time threads that fill a core may lose {lost_ms} ms \
         of a second"
    );
    let remedy = "less than the 90 % that a consumer admits: raise kernel.sched_rt_runtime_us, or \
                  lower --share";
    let is_low = share_us < i128::from(ADMITTED_US);
    Finding::new(name, found, is_low.then_some((Verdict::Weak, remedy)))
}

/// Gaps in the time of a thread that does nothing but read the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Gaps {
    count: u64,
    long: u64,
    longest_ns: u64,
}

impl Gaps {
    /// Of a step between two readings.
    fn step(&mut self, step_ns: u64) {
        self.count += u64::from(step_ns > GAP_NS);
        self.long += u64::from(step_ns > LONG_GAP_NS);
        self.longest_ns = self.longest_ns.max(step_ns);
    }
}

/// Looks for gaps on the core with the highest number, where most machines have least interrupts.
fn holes() -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    // Where it may not be chosen, any will do.
    let _ = pin_this_thread(cores - 1);
    let raised = raise_this_thread(PRIORITY);
    let begin_ns = monotonic_ns();
    let end_ns = begin_ns + u64::try_from(LOOKED.as_nanos()).unwrap_or(0);
    let (mut gaps, mut last_ns) = (Gaps::default(), begin_ns);
    while last_ns < end_ns {
        let now_ns = monotonic_ns();
        gaps.step(now_ns.saturating_sub(last_ns));
        last_ns = now_ns;
    }
    found_holes(gaps, raised.is_ok())
}

fn found_holes(gaps: Gaps, is_real_time: bool) -> Finding {
    let Gaps { count, long, longest_ns } = gaps;
    let who = if is_real_time { "a real-time thread" } else { "an ordinary thread" };
    let found = format!(
        "{who} lost its core {count} times in 0.9 s for over 5 us, {long} times for over 50 us, at \
         most {:.0} us",
        longest_ns as f64 / 1000.0
    );
    let remedy = match is_real_time {
        true => {
            "interrupts or other guests take the core: measure on a host of its own, keep \
             interrupts off the core of a service (irqaffinity=, isolcpus=)"
        }
        false => "other programs take the core too: give it real-time rights, and look again",
    };
    let is_bad = longest_ns > MAX_GAP_NS;
    Finding::new("holes", found, is_bad.then_some((Verdict::Weak, remedy)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_of_preemption_is_read_from_what_the_kernel_says() {
        assert_eq!(chosen("none voluntary (full) lazy\n"), Some(Preemption::Full));
        assert_eq!(chosen("none voluntary full"), None);
        let log = "<6>[    0.1] Dynamic Preempt: none\n<6>[    0.2] rcu: x\n";
        assert_eq!(reported(log), Some(Preemption::None));
        assert_eq!(reported("<6>[    0.2] rcu: x\n"), None);
        assert_eq!(built("Linux version 6 (x) #1 SMP PREEMPT_RT Mon"), Some(Preemption::RealTime));
        assert_eq!(built("Linux version 6 (x) #1 SMP PREEMPT_DYNAMIC Mon"), None);
        assert_eq!(preemption(Preemption::None).verdict, Verdict::Weak);
        assert_eq!(preemption(Preemption::RealTime).verdict, Verdict::Good);
    }

    #[test]
    fn what_throttling_takes_is_said() {
        let usual = throttling([Some(950_000), Some(1_000_000)]);
        assert!(usual.found.contains("50 ms") && usual.verdict == Verdict::Good, "{usual:?}");
        let short = throttling([Some(400_000), Some(500_000)]);
        assert!(short.found.contains("200 ms") && short.verdict == Verdict::Weak, "{short:?}");
        assert!(throttling([Some(-1), Some(1_000_000)]).found.contains("off"));
        assert_eq!(throttling([None, None]).verdict, Verdict::Good);
    }

    #[test]
    fn gaps_are_counted_by_their_length() {
        let mut gaps = Gaps::default();
        [100, 5_001, 50_001, 300_001].into_iter().for_each(|step_ns| gaps.step(step_ns));
        assert_eq!(gaps, Gaps { count: 3, long: 2, longest_ns: 300_001 });
        assert_eq!(found_holes(gaps, true).verdict, Verdict::Weak);
        let short = Gaps { longest_ns: MAX_GAP_NS, ..gaps };
        assert_eq!(found_holes(short, false).verdict, Verdict::Good);
    }
}
