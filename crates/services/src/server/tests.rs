use std::time::Duration;

use tokio::time::Instant;

use super::activity::{Activity, Expiry};
use super::{Settings, Timeouts};

const TIMEOUTS: Timeouts = Timeouts {
    keep_alive: Duration::from_secs(1000),
    idle: Duration::from_secs(2000),
    read: Duration::from_secs(1500),
    write: Duration::from_secs(1800),
    poll: Duration::from_secs(3000),
};

/// What has expired this many seconds from now.
fn in_s(activity: &Activity, seconds: u64) -> Option<Expiry> {
    activity.expired(Instant::now() + Duration::from_secs(seconds), &TIMEOUTS)
}

#[test]
fn each_phase_has_its_timers() {
    let activity = Activity::new();
    assert_eq!((in_s(&activity, 990), in_s(&activity, 1010)), (None, Some(Expiry::KeepAlive)));
    activity.came();
    assert_eq!((in_s(&activity, 1490), in_s(&activity, 1510)), (None, Some(Expiry::Read)));
    activity.answers();
    assert_eq!((in_s(&activity, 1990), in_s(&activity, 2010)), (None, Some(Expiry::Idle)));
    activity.blocked();
    assert_eq!((in_s(&activity, 1790), in_s(&activity, 1810)), (None, Some(Expiry::Write)));
    activity.went();
    assert_eq!((in_s(&activity, 1810), in_s(&activity, 2010)), (None, Some(Expiry::Idle)));
}

#[test]
fn late_content_is_reported_once() {
    let activity = Activity::new();
    activity.came();
    activity.awaits_content();
    assert_eq!((in_s(&activity, 1510), activity.is_late()), (Some(Expiry::Read), true));
    assert_eq!(in_s(&activity, 1510), None, "the service has its time to answer");
    assert_eq!(in_s(&activity, 2010), Some(Expiry::Idle));
}

#[test]
fn keep_alive_starts_when_the_last_piece_has_reached_the_kernel() {
    let activity = Activity::new();
    activity.came();
    activity.answers();
    for last in [false, true] {
        activity.sends(last);
        assert!(activity.is_answering());
        activity.flushed();
    }
    assert!(!activity.is_answering());
    assert_eq!((in_s(&activity, 990), in_s(&activity, 1010)), (None, Some(Expiry::KeepAlive)));
}

#[test]
fn what_keep_alive_has_of_its_own_is_its_alarm() {
    let (activity, now) = (Activity::new(), Instant::now());
    let seconds = |activity: &Activity| (activity.look_again(now, &TIMEOUTS) - now).as_secs();
    assert!(seconds(&activity) <= 1000);
    activity.came();
    assert_eq!(seconds(&activity), 3000);
}

#[test]
fn the_defaults_are_those_of_the_paper_and_in_range() {
    let usual = Settings::default();
    assert_eq!(usual.check(), Ok(()));
    assert_eq!(usual.timeouts.keep_alive.as_secs(), 180);
    assert_eq!((usual.timeouts.poll.as_secs(), usual.send_buffer_bytes), (120, 32_768));
}
