use proptest::prelude::*;

use super::*;

fn round_trip(primed: &mut Primed, message: &[u8]) -> usize {
    let mut coded = Vec::new();
    primed.encode(message, &mut coded).unwrap();
    let mut back = Vec::new();
    primed.decode(&coded, message.len(), &mut back).unwrap();
    assert_eq!(back, message);
    coded.len()
}

#[test]
fn what_the_dictionary_says_costs_next_to_nothing() {
    let text: String =
        (0..40).map(|i| format!("<unit id='{i}'><lat>{}</lat></unit>\n", i * 7919)).collect();
    let mut primed = Primed::new(text.as_bytes()).unwrap();
    let known = round_trip(&mut primed, &text.as_bytes()[100..600]);
    assert!(known < 40, "{known}");
    let new = round_trip(&mut primed, b"<unit id='77'><lat>12345</lat></unit>\n");
    assert!(new < 14, "{new}");
    assert_eq!(round_trip(&mut primed, b""), 0);
}

#[test]
fn messages_do_not_depend_on_those_before() {
    let mut primed = Primed::new(b"the quick brown fox jumps over the lazy dog").unwrap();
    let code = |primed: &mut Primed, message: &[u8]| {
        let mut coded = Vec::new();
        primed.encode(message, &mut coded).unwrap();
        coded
    };
    let first = code(&mut primed, b"the lazy fox");
    code(&mut primed, &vec![7; 30_000]);
    assert!(primed.decode(&[1, 2, 3], 500, &mut Vec::new()).is_err());
    assert_eq!(code(&mut primed, b"the lazy fox"), first);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn anything_round_trips(
        dictionary in proptest::collection::vec(any::<u8>(), 0..300), message: Vec<u8>,
        text in "[<>/a-c =\"':{}\n]{0,120}",
    ) {
        let mut primed = Primed::new(&dictionary).unwrap();
        round_trip(&mut primed, &message);
        round_trip(&mut primed, text.as_bytes());
    }

    #[test]
    fn other_codes_are_refused_or_decode_to_the_length(
        coded in proptest::collection::vec(any::<u8>(), 0..60), len in 0..2000_usize,
    ) {
        let mut primed = Primed::new(b"<a><b c='d'/></a>").unwrap();
        let mut out = Vec::new();
        if primed.decode(&coded, len, &mut out).is_ok() {
            prop_assert_eq!(out.len(), len);
        }
    }
}
