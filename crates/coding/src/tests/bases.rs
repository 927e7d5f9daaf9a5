//! Messages as bases of deltas: what happens where one is gone, or finds no room.

use super::*;
use crate::kept::bases::{By, Context, Received, Sent};

#[test]
fn what_is_sent_again_on_the_same_path_counts_once() {
    let context = Context { principal: 1, service: "s".to_owned() };
    let kept = Arc::new(Kept::new(vec![7; 1000]));
    let mut sent = Sent::default();
    for _ in 0..100 {
        let slot = sent.give(5, context.clone(), 1).unwrap();
        sent.left(slot);
        sent.kept(5, Some(Arc::clone(&kept))).unwrap();
        assert_eq!((sent.bytes(), sent.all().count()), (1000, 1));
    }
    sent.confirmed(5, kept.id().short()).unwrap();
    let base = sent.base(&context, 1).unwrap();
    for _ in 0..100 {
        assert!(sent.may_send(100 << 10));
        sent.delta(ms(1), 6, By::Slot(base.slot), vec![0; 100 << 10].into());
    }
    sent.arrived(6);
    // Nothing binds the base any more.
    for exchange in 10..100 {
        sent.give(exchange, context.clone(), 1);
    }
    assert!(sent.base(&context, 1).is_none());
}

#[test]
fn where_there_was_no_room_once_the_next_is_kept() {
    let mut pair = Pair::new();
    pair.full = true;
    pair.asks("a", &track(0, ""), &track(1, ""));
    pair.full = false;
    pair.ends.iter_mut().for_each(|end| end.path().kept = Received::default());
    pair.warms_up();
    assert_eq!(pair.last(), ["delta"; 2]);
}

#[test]
fn a_message_whose_base_is_gone_gets_through_as_it_is() {
    for receiver in [GATEWAY, EDGE] {
        let mut pair = Pair::new();
        pair.warms_up();
        pair.ends[receiver].path().kept = Received::default();
        let before = pair.ends[receiver].ignored.len();
        pair.asks("a", &track(70, ""), &track(71, ""));
        let ignored = &pair.ends[receiver].ignored[before..];
        assert!(matches!(ignored, [(what, _)] if what == "delta"), "{ignored:?}");
        // The sender has learned of it: others of that time are not used any more, new ones are.
        pair.warms_up();
        assert_eq!(pair.last()[1 - receiver], "delta");
    }
}

#[test]
fn both_ends_hold_the_same_bases_and_say_so() {
    let mut pair = Pair::new();
    for seed in 0..6 {
        pair.asks("a", &track(seed, ""), &track(seed + 100, ""));
    }
    let held = |at: usize| {
        let all = pair.ends[at].coding.bases(PATH).map(Kept::id);
        all.collect::<std::collections::BTreeSet<_>>()
    };
    assert!(held(EDGE).len() >= 2);
    assert_eq!(held(EDGE), held(GATEWAY));
    assert_eq!(pair.ends[EDGE].coding.bases(PathId(8)).count(), 0, "of another path");
}
