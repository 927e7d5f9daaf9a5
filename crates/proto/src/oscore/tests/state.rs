//! Numbers: none is used twice, none is accepted twice.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::{MAX_PARTIAL_IV, MAX_WINDOW, OscoreOption, ReplayWindow, SenderSequence};

proptest! {
    #[test]
    fn an_option_is_read_as_it_was_written(
        partial_iv in prop::option::of(0..=MAX_PARTIAL_IV),
        kid_context in prop::option::of(prop::collection::vec(any::<u8>(), 0..260)),
        kid in prop::option::of(prop::collection::vec(any::<u8>(), 0..8)),
    ) {
        let (kid_context, kid) = (kid_context.as_deref(), kid.as_deref());
        let option = OscoreOption { partial_iv, kid_context, kid };
        if let Ok(bytes) = option.encode() {
            prop_assert!(bytes.len() <= 255);
            prop_assert_eq!(OscoreOption::decode(&bytes), Ok(option));
        } else {
            prop_assert!(kid_context.unwrap().len() > 240);
        }
    }

    #[test]
    fn any_option_is_refused_or_means_one_thing(
        bytes in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        if let Ok(option) = OscoreOption::decode(&bytes) {
            prop_assert_eq!(option.encode(), Ok(bytes));
        }
    }

    /// Beside a set of all numbers.
    #[test]
    fn no_number_is_accepted_twice(
        width in 1..=MAX_WINDOW,
        numbers in prop::collection::vec(0..300_u64, 1..300),
        far in any::<bool>(),
    ) {
        let mut window = ReplayWindow::new(width).unwrap();
        let (mut read, mut greatest) = (BTreeSet::new(), None);
        for number in numbers {
            let number = if far { number + MAX_PARTIAL_IV - 299 } else { number };
            let old = greatest.is_some_and(|greatest| number + u64::from(width) <= greatest);
            let expected = !old && !read.contains(&number);
            prop_assert_eq!(window.is_new(number), expected);
            prop_assert_eq!(window.note(number), expected);
            read.insert(number);
            greatest = greatest.max(Some(number));
        }
        prop_assert!(!window.is_new(MAX_PARTIAL_IV + 1));
    }

    /// Writings end or are lost, and the process restarts with what the store has.
    #[test]
    fn no_number_is_used_twice_over_restarts(
        step in 1..20_u64,
        events in prop::collection::vec(0..10_u8, 1..400),
    ) {
        let mut used = BTreeSet::new();
        let mut sequence = SenderSequence::fresh(step).unwrap();
        let (mut store, mut writing) = (0, None);
        for event in events {
            match event {
                0 => {
                    // A writing may have been done before anybody was told.
                    store = writing.take().unwrap_or(store);
                    sequence = SenderSequence::restored(store, step).unwrap();
                }
                1 => {
                    writing = None;
                    sequence = SenderSequence::restored(store, step).unwrap();
                }
                2 | 3 => writing = sequence.to_store().or(writing),
                4 | 5 => if let Some(watermark) = writing.take() {
                    store = watermark;
                    sequence.note_stored(watermark);
                }
                _ => if let Ok(number) = sequence.take() {
                    prop_assert!(used.insert(number) && number < store);
                }
            }
        }
    }
}

#[test]
fn numbers_end_before_they_repeat() {
    let mut sequence = SenderSequence::restored(MAX_PARTIAL_IV, 10).unwrap();
    assert_eq!(sequence.to_store(), Some(MAX_PARTIAL_IV + 1));
    assert!(sequence.take().is_err());
    sequence.note_stored(MAX_PARTIAL_IV + 1);
    assert_eq!(sequence.take(), Ok(MAX_PARTIAL_IV));
    assert!(sequence.take().is_err() && sequence.to_store().is_none());
    assert!(SenderSequence::restored(MAX_PARTIAL_IV + 2, 1).is_err());
    assert!(SenderSequence::fresh(0).is_err());
    let mut sequence = SenderSequence::unstored();
    assert_eq!((sequence.take(), sequence.to_store()), (Ok(0), None));
}

#[test]
fn odd_options_are_refused() {
    // Nothing but zero flags, reserved bits and lengths, too short, too long, zeros in front.
    for bytes in [
        &[0][..],
        &[0x20],
        &[0x40],
        &[0x80],
        &[6, 1, 1, 1, 1, 1, 1],
        &[7, 1, 1, 1, 1, 1, 1, 1],
        &[2, 1],
        &[0x10],
        &[0x10, 2, 1],
        &[1, 1, 1],
        &[2, 0, 1],
        &[9; 256],
    ] {
        assert!(OscoreOption::decode(bytes).is_err(), "{bytes:?}");
    }
}
