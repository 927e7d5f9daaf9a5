//! Columns come back in every form, and parts that lie are refused.

use proptest::prelude::*;

use super::*;

fn back(block: &[u8]) -> Vec<u8> {
    let (parts, cuts) = part(&mut Outline::new(16), block);
    assert_eq!(cuts.last(), Some(&parts.len()));
    let mut out = Vec::new();
    join_parts(&mut Outline::new(16), &parts, block.len(), &mut out).unwrap();
    out
}

/// A value of the kinds that columns have forms for.
fn value(kind: usize, n: u64) -> String {
    let words = ["alpha ", "beta, ", "gamma. ", "delta-", "x ", "unique"];
    match kind {
        0 => n.to_string(),
        1 => format!("{}.{:02}", n % 977, n % 100),
        2 => format!("Customer#{:09}", n % 7919),
        3 => format!("20{:02}-{:02}-{:02}", n % 100, 1 + n % 12, 1 + n % 28),
        4 => format!("1999-12-{:02}T{:02}:{:02}:59Z", 1 + n % 31, n % 24, n % 60),
        5 => format!("{:02}-{:03}-{:04}", n % 99, n % 999, n % 9999),
        6 => ["red", "green", "blue"][usize::try_from(n % 3).unwrap_or(0)].to_owned(),
        7 => format!("http://example.org/a/long/path/to/item/{:x}", n % 4096),
        8 => (0..40).map(|i| words[usize::try_from(n >> i & 7).unwrap_or(0) % 6]).collect(),
        9 => format!("-{}", n % 50),
        10 => format!("{n:x}\0{n:b}"),
        _ => String::new(),
    }
}

fn document(kinds: &[usize], rows: u64, seed: u64) -> String {
    let mut state = seed | 1;
    let mut row = |_| {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        let cells =
            kinds.iter().map(|&kind| format!("<c{kind}>{}</c{kind}>", value(kind, state >> 40)));
        format!("<row a='{}'>{}</row>\n", state >> 60, cells.collect::<String>())
    };
    (0..rows).map(&mut row).collect()
}

#[test]
fn every_kind_of_column_comes_back_small() {
    for kind in 0..11 {
        let document = document(&[kind], 700, 77);
        assert_eq!(back(document.as_bytes()), document.as_bytes(), "{kind}");
        let (parts, _) = part(&mut Outline::new(16), document.as_bytes());
        assert!(parts.len() * 10 < document.len() * 9, "{kind}: {}", parts.len());
    }
}

#[test]
fn the_same_numbers_are_reported_once() {
    let rows = |name| {
        let row = |i: u32| {
            let key = i.wrapping_mul(2_654_435_761) >> 8;
            format!("<r><k>{key}</k><{name}>Customer#{key:09}</{name}></r>")
        };
        (0..900).map(row).collect::<String>()
    };
    let (twice, _) = part(&mut Outline::new(16), rows("n").as_bytes());
    assert!(twice.len() < 900 * (7 + 3) + 1000, "{}", twice.len());
    assert_eq!(back(rows("n").as_bytes()), rows("n").as_bytes());
    // The last row is cut before its second number.
    let cut = rows("n").rfind("<n>").unwrap();
    assert_eq!(back(&rows("n").as_bytes()[..cut]), &rows("n").as_bytes()[..cut]);
}

proptest! {
    #[test]
    fn mixed_columns_come_back(
        kinds in prop::collection::vec(0_usize..12, 1..6), rows in 0_u64..120, seed: u64,
    ) {
        let document = document(&kinds, rows, seed);
        prop_assert_eq!(back(document.as_bytes()), document.as_bytes());
    }

    #[test]
    fn changed_parts_are_refused_or_other_bytes(
        kinds in prop::collection::vec(0_usize..12, 1..4),
        seed: u64,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let document = document(&kinds, 150, seed);
        let (mut parts, _) = part(&mut Outline::new(16), document.as_bytes());
        for (at, byte) in changes {
            let at = at.index(parts.len());
            parts[at] = byte;
        }
        let mut out = Vec::new();
        let went = join_parts(&mut Outline::new(16), &parts, document.len(), &mut out);
        prop_assert!(went.is_err() || out.len() == document.len());
    }

    #[test]
    fn any_parts_are_refused_or_make_the_length(
        parts in prop::collection::vec(0_u8..12, 0..300), len in 0_usize..2000,
    ) {
        let mut out = Vec::new();
        let went = join_parts(&mut Outline::new(10), &parts, len, &mut out);
        prop_assert!(went.is_err() || out.len() == len);
    }
}
