//! Admission by share of a core: real-time threads that fill one are stopped by the kernel for 50
//! ms of each second (sched(7), `sched_rt_runtime_us`), all of them, the most urgent too.
//!
//! A bucket holds the processor time that was spent or promised and not yet passed: it fills by
//! what messages cost and drains by a share of the time that passes. What would make it flow over
//! is refused, the least urgent first. Reading has half of it, so that who makes the engine read
//! does not make it refuse what is urgent.

use std::time::Duration;

/// Largest share of a core that may be promised, in thousandths.
pub const MAX_SHARE_PERMILLE: u64 = 950;
/// The share that is promised where nothing else is said.
pub const USUAL_SHARE_PERMILLE: u64 = 900;
/// Over which time bursts are evened out.
const WINDOW_NS: u64 = 100_000_000;

/// The bucket; see the module. Times are of any one clock.
#[derive(Clone, Debug)]
pub struct Admission {
    /// `None`: everything is admitted.
    share_permille: Option<u64>,
    classes: u64,
    level_ns: u64,
    /// The part of it that reading spent.
    reading_ns: u64,
    at_ns: u64,
}

impl Admission {
    /// An empty bucket for so many classes. `None` admits everything.
    #[must_use]
    pub fn new(share_permille: Option<u64>, classes: usize) -> Self {
        let classes = u64::try_from(classes.max(1)).unwrap_or(1);
        let share_permille = share_permille.map(|share| share.min(MAX_SHARE_PERMILLE));
        Self { share_permille, classes, level_ns: 0, reading_ns: 0, at_ns: 0 }
    }

    /// What the bucket holds for a class: all of it for class 0, less for each that is less urgent,
    /// so that the last has half.
    fn room_ns(&self, share: u64, class: usize) -> u64 {
        let class = u64::try_from(class).unwrap_or(u64::MAX).min(self.classes - 1);
        let all = WINDOW_NS / 1000 * share;
        all - all * class / (2 * (self.classes - 1).max(1))
    }

    fn drain(&mut self, share: u64, now_ns: u64) {
        let passed = now_ns.saturating_sub(self.at_ns).min(100 * WINDOW_NS);
        let drained_ns = passed * share / 1000;
        self.level_ns = self.level_ns.saturating_sub(drained_ns);
        self.reading_ns = self.reading_ns.saturating_sub(drained_ns);
        self.at_ns = self.at_ns.max(now_ns);
    }

    /// Admits a message of `class` that will cost `cost_ns` of processor; false where there is no
    /// room, and it must be refused. What costs more than all the room is admitted when nothing
    /// else is there, and pays for it: else one slow message would shut a class for ever.
    pub fn offer(&mut self, now_ns: u64, class: usize, cost_ns: u64) -> bool {
        let Some(share) = self.share_permille else { return true };
        self.drain(share, now_ns);
        let room_ns = self.room_ns(share, class);
        if self.level_ns.saturating_add(cost_ns.min(room_ns)) > room_ns {
            return false;
        }
        self.level_ns = self.level_ns.saturating_add(cost_ns);
        true
    }

    /// Takes back what [`Self::offer`] has counted for a message that found no place.
    pub fn give_back(&mut self, cost_ns: u64) {
        if self.share_permille.is_some() {
            self.level_ns = self.level_ns.saturating_sub(cost_ns);
        }
    }

    /// Counts processor time that was spent without being asked for, as by reading.
    pub fn spend(&mut self, now_ns: u64, spent_ns: u64) {
        if let Some(share) = self.share_permille {
            self.drain(share, now_ns);
            self.level_ns = self.level_ns.saturating_add(spent_ns);
            self.reading_ns = self.reading_ns.saturating_add(spent_ns);
        }
    }

    /// How long nothing more may be read: until what reading spent beyond half the room has passed.
    #[must_use]
    pub fn pause(&mut self, now_ns: u64) -> Duration {
        let Some(share) = self.share_permille else { return Duration::ZERO };
        self.drain(share, now_ns);
        let beyond_ns = self.reading_ns.saturating_sub(self.room_ns(share, 0) / 2);
        Duration::from_nanos(beyond_ns.saturating_mul(1000) / share.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Offers `rate_per_s` messages of 1 ms of each class for ten seconds; admitted of each.
    fn load(share: Option<u64>, rates_per_s: [u64; 3]) -> [u64; 3] {
        let mut admission = Admission::new(share, 3);
        let mut admitted = [0; 3];
        for now_us in 0..10_000_000_u64 {
            for class in 0..3 {
                let is_due =
                    rates_per_s[class] > 0 && now_us % (1_000_000 / rates_per_s[class]) == 0;
                if is_due && admission.offer(now_us * 1000, class, MS) {
                    admitted[class] += 1;
                }
            }
        }
        admitted
    }

    #[test]
    fn no_more_than_the_share_is_admitted_and_the_urgent_first() {
        // 140 % of a core: 20, 400 and 1,000 ms a second.
        let admitted = load(Some(900), [20, 400, 1000]);
        let all: u64 = admitted.iter().sum();
        assert!((8900..=9100).contains(&all), "{admitted:?}: 900 ms a second, and one bucket");
        assert_eq!(admitted[0], 200, "the most urgent is never refused");
        assert_eq!(admitted[1], 4000, "nor is the next, whose room is larger than the last's");
        assert!(admitted[2] > 4500, "{admitted:?}: the last gets what is left");
    }

    #[test]
    fn without_a_share_everything_is() {
        assert_eq!(load(None, [0, 400, 1000]), [0, 4000, 10_000]);
    }

    #[test]
    fn reading_pauses_at_half_of_the_room_and_leaves_the_rest_to_messages() {
        let mut admission = Admission::new(Some(500), 1);
        admission.spend(0, 25 * MS);
        assert_eq!(admission.pause(0), Duration::ZERO, "half of the room of half a window");
        admission.spend(0, 10 * MS);
        assert_eq!(admission.pause(0), Duration::from_millis(20), "10 ms at half a core");
        assert!(admission.offer(0, 0, 10 * MS), "the other half is for messages");
        assert!(!admission.offer(0, 0, 10 * MS), "45 ms of 50 are spent or promised");
        assert_eq!(admission.pause(20 * MS), Duration::ZERO);
        assert!(admission.offer(20 * MS, 0, 10 * MS));
        assert_eq!(admission.pause(20 * MS), Duration::ZERO, "what is promised stops no reading");
    }

    #[test]
    fn a_class_that_costs_more_than_its_room_is_served_when_nothing_else_is_there() {
        let mut admission = Admission::new(Some(900), 2);
        assert!(admission.offer(0, 1, 50 * MS), "the room is 45 ms");
        assert!(!admission.offer(0, 1, 50 * MS));
        assert!(!admission.offer(50 * MS, 1, 50 * MS), "5 ms of it have not passed");
        assert!(admission.offer(60 * MS, 1, 50 * MS));
    }

    #[test]
    fn what_found_no_place_costs_nothing() {
        let mut admission = Admission::new(Some(500), 1);
        for _ in 0..100 {
            assert!(admission.offer(0, 0, 40 * MS));
            admission.give_back(40 * MS);
        }
    }

    #[test]
    fn a_clock_that_stands_or_jumps_does_no_harm() {
        let mut admission = Admission::new(Some(900), 2);
        assert!(admission.offer(u64::MAX, 0, MS));
        assert!(admission.offer(0, 0, MS), "what is earlier drains nothing");
        assert!(!admission.offer(0, 1, u64::MAX));
    }
}
