//! Which numbers a sender has used, so that copies and what is older end here.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::time::Duration;

use proto::mqttudp::is_newer;

/// Senders that are remembered; of more the one that was not heard for longest is forgotten.
const MAX_SENDERS: usize = 4096;
/// Numbers of one that are remembered; what is further behind is old.
const MAX_NUMBERS: usize = 64;
/// One whose number is further behind than this has begun anew, where nobody has to show who he is.
const MIN_RESTART: u32 = 1024;

/// What is known of one.
#[derive(Debug)]
struct Sender {
    last: u32,
    heard: Duration,
    /// Numbers, with what each was about.
    seen: VecDeque<(u32, u64)>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Senders {
    known: BTreeMap<(u16, SocketAddr), Sender>,
}

/// How senders are judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judgement {
    pub(super) now: Duration,
    /// A sender that was not heard for so long may begin anew.
    pub(super) forget_after: Duration,
    /// Only such one may.
    pub(super) is_strict: bool,
}

impl Senders {
    /// Whether a datagram with this number is neither a copy, nor older than another one about the
    /// same; and it is remembered.
    pub(super) fn take(
        &mut self,
        judgement: Judgement,
        from: (u16, SocketAddr),
        number: u32,
        about: &str,
    ) -> bool {
        let Judgement { now, forget_after, is_strict } = judgement;
        let about = digest(about);
        let Some(sender) = self.known.get_mut(&from) else {
            self.make_room();
            let seen = VecDeque::from([(number, about)]);
            self.known.insert(from, Sender { last: number, heard: now, seen });
            return true;
        };
        let behind = sender.last.wrapping_sub(number);
        let was_quiet = now >= sender.heard.saturating_add(forget_after);
        let is_anew = was_quiet || (!is_strict && behind >= MIN_RESTART);
        if is_newer(sender.last, number) {
            sender.last = number;
        } else if is_anew {
            sender.last = number;
            sender.seen.clear();
        } else if (behind as usize) < MAX_NUMBERS {
            let is_known = |seen: &(u32, u64)| {
                seen.0 == number || (seen.1 == about && is_newer(number, seen.0))
            };
            if sender.seen.iter().any(is_known) {
                return false;
            }
        } else {
            return false;
        }
        sender.heard = now;
        if sender.seen.len() >= MAX_NUMBERS {
            sender.seen.pop_front();
        }
        sender.seen.push_back((number, about));
        true
    }

    fn make_room(&mut self) {
        if self.known.len() < MAX_SENDERS {
            return;
        }
        let oldest = self.known.iter().min_by_key(|(_, sender)| sender.heard);
        if let Some(oldest) = oldest.map(|(from, _)| *from) {
            self.known.remove(&oldest);
        }
    }
}

/// The same for the same topic in each run. Whoever finds two with one harms only what he sends.
fn digest(topic: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    topic.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World {
        senders: Senders,
        judgement: Judgement,
    }

    impl World {
        fn new(is_strict: bool) -> Self {
            let (now, forget_after) = (Duration::ZERO, Duration::from_secs(60));
            Self {
                senders: Senders::default(),
                judgement: Judgement { now, forget_after, is_strict },
            }
        }

        fn takes(&mut self, at_s: u64, port: u16, number: u32, about: &str) -> bool {
            self.judgement.now = Duration::from_secs(at_s);
            let from = (1, SocketAddr::from(([10, 0, 0, 1], port)));
            self.senders.take(self.judgement, from, number, about)
        }
    }

    #[test]
    fn copies_and_what_is_older_end_here() {
        let mut world = World::new(false);
        assert!(world.takes(0, 1, 10, "a") && !world.takes(0, 1, 10, "a"));
        assert!(world.takes(0, 1, 12, "b"));
        assert!(world.takes(0, 1, 11, "a"), "another topic's is no newer one");
        assert!(!world.takes(0, 1, 9, "a"), "there is a newer one of it");
        assert!(!world.takes(0, 1, 11, "c"), "the number was used");
        assert!(world.takes(0, 2, 10, "a"), "another sender");
        assert!(world.takes(0, 1, 0x7000_0000, "a"));
        assert!(!world.takes(0, 1, 0x7000_0000 - 64, "z"), "too far behind");
    }

    #[test]
    fn a_sender_may_begin_anew_where_that_cannot_be_a_copy() {
        for is_strict in [false, true] {
            let mut world = World::new(is_strict);
            assert!(world.takes(0, 1, 5000, "a"));
            assert_eq!(world.takes(1, 1, 1, "a"), !is_strict);
            assert_eq!(world.takes(2, 1, 2, "a"), !is_strict);
            assert!(world.takes(2, 1, 6000, "a"));
            assert_eq!(world.takes(61, 1, 1, "a"), !is_strict);
            assert!(world.takes(62, 1, 2, "a"), "it was quiet for long enough");
        }
    }

    #[test]
    fn senders_are_bounded() {
        let mut world = World::new(false);
        for port in 0..u16::try_from(MAX_SENDERS).unwrap() + 10 {
            assert!(world.takes(port.into(), port, 1, "a"));
        }
        assert_eq!(world.senders.known.len(), MAX_SENDERS);
        assert!(world.takes(9999, 0, 1, "a"), "the oldest was forgotten");
    }
}
