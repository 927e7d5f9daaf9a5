//! What is coded comes out as it was, with its principals apart.

use proptest::prelude::*;

use super::*;

fn decode(
    uncoder: &mut Uncoder,
    principals: &mut Principals,
    pieces: &[&[u8]],
) -> Result<Vec<(Principal, Vec<u8>)>, Refused> {
    let mut runs = Vec::new();
    for piece in pieces {
        uncoder.feed(piece);
        let mut out = BytesMut::new();
        while uncoder.next(principals, &mut out)? {
            runs.push((uncoder.principal(), out.split().to_vec()));
        }
    }
    Ok(runs)
}

fn principal(number: u8) -> Principal {
    let mut principals = Principals::default();
    (0..=number).map(|_| principals.add()).last().unwrap()
}

fn update(track: usize, step: usize) -> Vec<u8> {
    let (lat, lon) = (59_913_000 + track * 371 + step * 13, 10_752_000 + track * 211 + step * 7);
    format!("{{\"track\":\"{track:03}\",\"lat\":{lat},\"lon\":{lon},\"speed\":{}}}", step % 17)
        .into_bytes()
}

#[test]
fn what_differs_little_from_before_takes_little() {
    let (mut coder, mut plain, mut coded) = (Coder::default(), 0, 0);
    let mut uncoder = Uncoder::new(BytesMut::new());
    let mut principals = Principals::default();
    for batch in 0..100 {
        let bytes: Vec<u8> = (0..5).flat_map(|one| update(batch % 20 * 5 + one, batch)).collect();
        coder.mark(0, principal(0));
        let run = coder.code(&bytes);
        if batch >= 20 {
            (plain, coded) = (plain + bytes.len(), coded + run.len());
        }
        let back = decode(&mut uncoder, &mut principals, &[&run]).unwrap();
        assert_eq!(back.len(), 1);
        assert_eq!(back[0].1, bytes);
    }
    assert!(coded * 3 < plain, "{coded} of {plain}");
}

#[test]
fn a_length_tells_nothing_of_what_another_has_said() {
    let secret = b"the patrol leaves at 0430 by the northern road".repeat(3);
    let length = |earlier: Principal| {
        let mut coder = Coder::default();
        coder.mark(0, earlier);
        coder.code(&secret);
        coder.mark(0, principal(1));
        coder.code(&secret).len()
    };
    let of_others = length(principal(0));
    assert_eq!(of_others, length(Principal::UNKNOWN));
    assert!(length(principal(1)) + 20 < of_others, "its own words shorten what follows");
}

#[test]
fn of_more_principals_than_contexts_those_that_go_on_are_coded() {
    let (mut coder, mut principals) = (Coder::default(), Principals::default());
    let mut uncoder = Uncoder::new(BytesMut::new());
    let (mut coded, mut seen) = ([0; 13], std::collections::BTreeSet::new());
    let mut send = |turn: usize, who: usize| {
        let bytes = update(who, turn);
        coder.mark(0, principal(u8::try_from(who).unwrap()));
        let runs = decode(&mut uncoder, &mut principals, &[&coder.code(&bytes)]).unwrap();
        assert_eq!(runs.len(), 1);
        assert_eq!(runs[0].1, bytes);
        coded[who] += usize::from(runs[0].0.is_known());
        seen.insert(runs[0].0);
    };
    for turn in 0..130 {
        send(turn, turn % 13);
    }
    // The first eight are gone, and the last five have their places.
    for turn in 130..230 {
        send(turn, 8 + turn % 5);
    }
    assert_eq!(coded[..8], [10; 8], "none lost its context to another");
    assert!(coded[8..].iter().all(|times| (5..=19).contains(times)), "{coded:?}");
    assert_eq!(seen.len(), 1 + 13);
    assert_eq!((coder.contexts.len(), uncoder.contexts.len()), (MAX_CONTEXTS, MAX_CONTEXTS));
}

#[test]
fn a_few_bytes_are_not_the_work_of_many() {
    let mut coder = Coder::default();
    coder.mark(0, principal(0));
    let run = coder.code(&[7; MAX_RUN_BYTES]);
    assert!((MAX_RUN_BYTES / MAX_RATIO - 8..4096).contains(&run.len()), "{}", run.len());
    let mut uncoder = Uncoder::new(BytesMut::new());
    let mut principals = Principals::default();
    let runs = decode(&mut uncoder, &mut principals, &[&run]).unwrap();
    assert_eq!(runs[0].1, [7; MAX_RUN_BYTES]);
    // What is more than can be coded in one go is as it was.
    coder.mark(0, principal(0));
    let long = vec![7; 2 * MAX_CODED_BYTES];
    let runs = decode(&mut uncoder, &mut principals, &[&coder.code(&long)]).unwrap();
    let known = runs.iter().filter(|(principal, _)| principal.is_known()).count();
    assert_eq!((known * MAX_RUN_BYTES, runs.len()), (MAX_CODED_BYTES, 8));
    assert_eq!(runs.into_iter().flat_map(|(_, bytes)| bytes).collect::<Vec<_>>(), long);
    coder.mark(0, principal(0));
    let next = decode(&mut uncoder, &mut principals, &[&coder.code(b"and on")]).unwrap();
    assert_eq!(next[0].1, b"and on");
}

#[test]
fn what_breaks_the_rules_is_refused() {
    let refused = |bytes: &[u8]| {
        let mut uncoder = Uncoder::new(BytesMut::new());
        decode(&mut uncoder, &mut Principals::default(), &[bytes]).is_err()
    };
    assert!(refused(&[0, 0]), "an empty run");
    assert!(refused(&[0, 0x80, 1, 0, 1]), "over 64 KiB");
    assert!(refused(&[2, 1, 1, 0]), "a context that has not begun");
    assert!(refused(&[5, 1, 1, 0]), "the second before the first");
    assert!(refused(&[19, 1, 1, 0]), "the ninth");
    assert!(refused(&[3, 5, 3, 0xff, 0xff, 0xff]), "no deflate");
    let mut coder = Coder::default();
    coder.mark(0, principal(0));
    let mut run = coder.code(b"twelve bytes");
    run[1] = 11;
    assert!(refused(&run), "longer than it says");
    let mut bomb = Vec::new();
    Options::of(CODING)
        .unwrap()
        .encoder()
        .unwrap()
        .encode(&[0; 1 << 20], false, &mut bomb)
        .unwrap();
    let mut run = vec![3, 0x80, 0, 0x40, 0];
    varint::encode((bomb.len() - 4) as u64, &mut run);
    run.extend_from_slice(&bomb[..bomb.len() - 4]);
    assert!(refused(&run), "1 MiB in a run");
}

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..300)
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_come_out_as_they_were(
        parts in prop::collection::vec((0_u8..11, any_bytes()), 1..30),
        cuts in prop::collection::vec(1_usize..40, 1..20),
        large in 0_usize..200_000,
    ) {
        let (mut coder, mut coded, mut wanted) = (Coder::default(), Vec::new(), Vec::new());
        let parts = parts.into_iter().chain([(3, vec![7; large])]);
        for batch in parts.collect::<Vec<_>>().chunks(3) {
            let mut bytes = Vec::new();
            for (who, part) in batch {
                let whose = if *who == 0 { Principal::UNKNOWN } else { principal(*who) };
                coder.mark(bytes.len(), whose);
                bytes.extend_from_slice(part);
            }
            coded.extend(coder.code(&bytes));
            wanted.extend(bytes);
        }
        let (mut pieces, mut rest) = (Vec::new(), &*coded);
        for cut in cuts.iter().cycle() {
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        let mut uncoder = Uncoder::new(BytesMut::new());
        let runs = decode(&mut uncoder, &mut Principals::default(), &pieces).unwrap();
        let back: Vec<u8> = runs.into_iter().flat_map(|(_, bytes)| bytes).collect();
        prop_assert_eq!(back, wanted);
        prop_assert!(uncoder.input.is_empty());
    }
}
