//! What is logged of handshakes that were refused: whoever can connect can have a line written, so
//! there is at most one a second of each source, and few in all.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::seats::Source;

/// A source is told of once in so long.
const PAUSE: Duration = Duration::from_secs(1);
/// Lines in one such pause, of all sources.
const MAX_LINES: u32 = 8;
/// Sources whose refusals are counted apart; beyond it all others are one.
const MAX_SOURCES: usize = 256;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<Log>);

#[derive(Debug, Default)]
struct Log {
    sources: BTreeMap<Option<Source>, Last>,
    /// When the present pause began, and its lines so far.
    since: Option<Instant>,
    lines: u32,
}

#[derive(Debug)]
struct Last {
    reported: Instant,
    suppressed: u64,
}

impl Refusals {
    /// Whether to log a refusal, and how many of the same source were left out since the last.
    pub(crate) fn tell(&self, address: IpAddr, now: Instant) -> Option<u64> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let over = |since: Instant| now.duration_since(since) >= PAUSE;
        if log.since.is_none_or(over) {
            (log.since, log.lines) = (Some(now), 0);
        }
        if log.sources.len() >= MAX_SOURCES {
            log.sources.retain(|_, last| !over(last.reported) || last.suppressed > 0);
        }
        if log.sources.len() >= MAX_SOURCES {
            log.sources.retain(|_, last| !over(last.reported));
        }
        let key = Some(Source::of(address));
        let fits = log.sources.contains_key(&key) || log.sources.len() < MAX_SOURCES;
        let key = key.filter(|_| fits);
        let full = log.lines >= MAX_LINES;
        let suppressed = match log.sources.get_mut(&key) {
            Some(last) if full || !over(last.reported) => {
                last.suppressed += 1;
                return None;
            }
            Some(last) => {
                last.reported = now;
                std::mem::take(&mut last.suppressed)
            }
            None => {
                let suppressed = u64::from(full);
                log.sources.insert(key, Last { reported: now, suppressed });
                if full {
                    return None;
                }
                0
            }
        };
        log.lines += 1;
        Some(suppressed)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    fn v4(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(number).into()
    }

    #[test]
    fn a_source_is_reported_once_a_second_with_what_was_left_out() {
        let (refusals, start) = (Refusals::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(refusals.tell(v4(1), at(0)), Some(0));
        for ms in 1..500 {
            assert_eq!(refusals.tell(v4(1), at(ms)), None);
        }
        assert_eq!(refusals.tell(v4(2), at(600)), Some(0));
        assert_eq!(refusals.tell(v4(1), at(1000)), Some(499));
        assert_eq!(refusals.tell(v4(1), at(2000)), Some(0));
        // The same, by another spelling of its address.
        let mapped = Ipv4Addr::from_bits(1).to_ipv6_mapped();
        assert_eq!(refusals.tell(mapped.into(), at(2001)), None);
    }

    #[test]
    fn many_sources_are_bounded_in_lines_and_memory() {
        let (refusals, start) = (Refusals::default(), Instant::now());
        let lines = |range: std::ops::Range<u32>, now| {
            range.filter(|number| refusals.tell(v4(*number), now).is_some()).count()
        };
        assert_eq!(lines(0..5000, start), MAX_LINES as usize);
        assert_eq!(lines(5000..9000, start + PAUSE), MAX_LINES as usize);
        assert!(refusals.0.lock().unwrap().sources.len() <= MAX_SOURCES + 1);
        // One customer's addresses of IPv6 are one source.
        let later = start + 3 * PAUSE;
        let address = |low: u128| Ipv6Addr::from_bits(0x2001_0db8 << 96 | low).into();
        let log = (0..100).filter(|low| refusals.tell(address(*low), later).is_some());
        assert_eq!(log.count(), 1);
    }
}
