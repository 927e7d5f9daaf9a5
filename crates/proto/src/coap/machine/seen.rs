//! Message ids: those of a peer's messages with what was answered, and those of our own.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::settings::MIN_MID_PAUSE;

/// Messages of a peer that are remembered, of those that are confirmable and of the others each.
/// Who sends more within their lifetime may see the oldest again as new ones; of confirmable ones,
/// one at a time as NSTART asks, it takes half a second for each to get there. The blocks of RFC
/// 9177, which no such bound holds back, do not make a request of another kind forgotten.
pub const MAX_SEEN: usize = 512;
/// Bytes of answers that are kept for a peer's duplicates. Of more the oldest go, and duplicates of
/// those get no answer.
pub const MAX_SEEN_BYTES: usize = 32 << 10;

#[derive(Debug)]
struct Entry {
    until: Duration,
    reply: Option<Bytes>,
}

/// What a peer has sent.
#[derive(Debug, Default)]
pub(super) struct Seen {
    entries: BTreeMap<u16, Entry>,
    /// By when they came, with the end of their lifetimes: those that are confirmable, the others.
    confirmable: VecDeque<(Duration, u16)>,
    others: VecDeque<(Duration, u16)>,
    /// Those that have a reply, oldest first.
    replies: VecDeque<u16>,
    reply_bytes: usize,
}

impl Seen {
    /// The reply to a message that came before; `None` for one that is new, which then is noted.
    pub(super) fn find(
        &mut self,
        now: Duration,
        mid: u16,
        (is_confirmable, lifetime): (bool, Duration),
    ) -> Option<Option<Bytes>> {
        if let Some(entry) = self.entries.get(&mid).filter(|entry| entry.until > now) {
            return Some(entry.reply.clone());
        }
        self.forget(mid);
        self.make_room(now, is_confirmable);
        self.entries.insert(mid, Entry { until: now + lifetime, reply: None });
        self.order(is_confirmable).push_back((now + lifetime, mid));
        None
    }

    fn order(&mut self, is_confirmable: bool) -> &mut VecDeque<(Duration, u16)> {
        if is_confirmable { &mut self.confirmable } else { &mut self.others }
    }

    /// Forgets what is over, and the oldest of a kind of which one more is to be noted.
    fn make_room(&mut self, now: Duration, is_confirmable: bool) {
        for of_confirmable in [true, false] {
            let most = if of_confirmable == is_confirmable { MAX_SEEN - 1 } else { MAX_SEEN };
            loop {
                let order = self.order(of_confirmable);
                let is_full = order.len() > most;
                let Some((until, mid)) = order.pop_front_if(|(at, _)| is_full || *at <= now) else {
                    break;
                };
                if self.entries.get(&mid).is_some_and(|entry| entry.until == until) {
                    self.forget(mid);
                }
            }
        }
    }

    /// Whether a message with this id came within its lifetime.
    pub(super) fn holds(&self, now: Duration, mid: u16) -> bool {
        self.entries.get(&mid).is_some_and(|entry| entry.until > now)
    }

    fn forget(&mut self, mid: u16) {
        if let Some(reply) = self.entries.remove(&mid).and_then(|entry| entry.reply) {
            self.reply_bytes -= reply.len();
            self.replies.retain(|other| *other != mid);
        }
    }

    /// Keeps what a duplicate of this message is answered with.
    pub(super) fn keep(&mut self, mid: u16, reply: Bytes) {
        let Some(entry) = self.entries.get_mut(&mid) else { return };
        let before = entry.reply.replace(reply.clone());
        match before {
            Some(before) => self.reply_bytes -= before.len(),
            None => self.replies.push_back(mid),
        }
        self.reply_bytes += reply.len();
        while self.reply_bytes > MAX_SEEN_BYTES {
            let Some(oldest) = self.replies.pop_front() else { break };
            let reply = self.entries.get_mut(&oldest).and_then(|entry| entry.reply.take());
            self.reply_bytes -= reply.map_or(0, |reply| reply.len());
        }
    }
}

/// Runs of message ids whose last use is remembered.
const RUNS: usize = 16;
/// Ids of a run.
const RUN_IDS: u32 = 1 << 12;
/// So many runs ahead are looked at: with half of all ids who sends much has a burst, and then goes
/// on slowly, rather than to stand still for minutes until ids are free.
const RUNS_AHEAD: usize = RUNS / 2;

/// Our message ids to one peer: none again before its time (RFC 7252 §4.4).
#[derive(Debug)]
pub(super) struct Mids {
    next: u16,
    /// When the last of each sixteenth of all ids was used.
    used_at: [Option<Duration>; RUNS],
    last_at: Duration,
}

impl Mids {
    pub(super) fn new(first: u16) -> Self {
        Self { next: first, used_at: [None; RUNS], last_at: Duration::ZERO }
    }

    fn run(&self) -> usize {
        usize::from(self.next >> 12)
    }

    /// The next id; the error says when there is one again.
    pub(super) fn next(&mut self, now: Duration) -> Result<u16, Duration> {
        let run = self.run();
        let mid = self.next;
        // A run is begun only once all of it is free.
        let free_at = self.used_at[run].map_or(Duration::ZERO, |at| at + MIN_MID_PAUSE);
        if mid & 0xfff == 0 && free_at > now {
            return Err(free_at);
        }
        self.used_at[run] = Some(now);
        self.last_at = now;
        self.next = mid.wrapping_add(1);
        Ok(mid)
    }

    /// The same, for messages that can wait a little: they are spread over the time until ids that
    /// they will need are free.
    pub(super) fn next_in_turn(&mut self, now: Duration) -> Result<u16, Duration> {
        let due = self.last_at + self.pause(now);
        if due > now { Err(due) } else { self.next(now) }
    }

    /// Between two messages, so that none of the runs ahead is reached before it is free.
    fn pause(&self, now: Duration) -> Duration {
        let left = RUN_IDS - u32::from(self.next & 0xfff);
        let pauses = (left..).step_by(RUN_IDS as usize).zip(1..=RUNS_AHEAD).map(|(ids, ahead)| {
            let used_at = self.used_at[(self.run() + ahead) % RUNS];
            let free_at = used_at.map_or(Duration::ZERO, |at| at + MIN_MID_PAUSE);
            free_at.saturating_sub(now) / ids
        });
        pauses.max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    #[test]
    fn a_message_is_new_once_in_its_lifetime() {
        let mut seen = Seen::default();
        let ten = (true, s(10));
        assert_eq!(seen.find(s(0), 7, ten), None);
        assert_eq!(seen.find(s(1), 7, ten), Some(None));
        seen.keep(7, Bytes::from_static(b"reply"));
        assert_eq!(seen.find(s(9), 7, ten), Some(Some(Bytes::from_static(b"reply"))));
        assert_eq!(seen.find(s(10), 7, ten), None);
        assert_eq!(seen.find(s(11), 7, ten), Some(None));
    }

    #[test]
    fn memory_is_bounded() {
        let mut seen = Seen::default();
        for mid in 0..2000 {
            assert_eq!(seen.find(s(0), mid, (true, s(10))), None);
            seen.keep(mid, Bytes::from(vec![0; 1000]));
        }
        assert!(seen.entries.len() <= MAX_SEEN && seen.confirmable.len() <= MAX_SEEN);
        assert!(seen.reply_bytes <= MAX_SEEN_BYTES && seen.reply_bytes > MAX_SEEN_BYTES - 1000);
        assert_eq!(seen.find(s(1), 1500, (true, s(10))), Some(None));
        assert!(matches!(seen.find(s(1), 1999, (true, s(10))), Some(Some(_))));
        assert_eq!(seen.find(s(30), 1, (false, s(10))), None);
        assert_eq!((seen.entries.len(), seen.confirmable.len(), seen.reply_bytes), (1, 0, 0));
    }

    #[test]
    fn messages_that_are_not_confirmable_make_no_other_forgotten() {
        let mut seen = Seen::default();
        assert_eq!(seen.find(s(0), 1, (true, s(247))), None);
        seen.keep(1, Bytes::from_static(b"reply"));
        for mid in 2..3000 {
            assert_eq!(seen.find(s(1), mid, (false, s(145))), None);
        }
        assert!(seen.entries.len() <= MAX_SEEN + 1 && seen.others.len() <= MAX_SEEN);
        assert!(matches!(seen.find(s(2), 1, (true, s(247))), Some(Some(_))));
    }

    /// Who sends as fast as a path of 1 ms lets him is slowed down, and never stands still.
    #[test]
    fn who_needs_all_ids_goes_on_slowly() {
        let mut mids = Mids::new(60_000);
        let (mut now, mut used) = (Duration::ZERO, vec![None; 0x1_0000]);
        let mut longest = Duration::ZERO;
        for count in 0..200_000_u32 {
            let before = now;
            now += Duration::from_millis(1);
            let mid = loop {
                match mids.next_in_turn(now) {
                    Ok(mid) => break mid,
                    Err(at) => now = at,
                }
            };
            longest = longest.max(now - before);
            if count < 30_000 {
                assert_eq!(now - before, Duration::from_millis(1), "{count}");
            }
            let last = used[usize::from(mid)].replace(now);
            assert!(last.is_none_or(|at| now >= at + MIN_MID_PAUSE));
        }
        assert!(longest < Duration::from_millis(20), "{longest:?}");
        // Three times all ids take no longer than they have to.
        assert!(now < MIN_MID_PAUSE * 4, "{now:?}");
    }

    #[test]
    fn an_id_comes_again_no_sooner_than_it_may() {
        let mut mids = Mids::new(60_000);
        let all: Vec<_> = (0..0x1_0000).map_while(|_| mids.next(s(5)).ok()).collect();
        let unique: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(unique.len(), all.len());
        assert!(all.len() > 0xf000 - 0x1000);
        assert_eq!(mids.next(s(100)), Err(s(5) + MIN_MID_PAUSE));
        assert!(mids.next(s(5) + MIN_MID_PAUSE).is_ok());
    }
}
