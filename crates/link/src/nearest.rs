//! The known name that a mistyped one may have meant.

/// Longest name that is compared: the cost grows with its square.
const MAX_NAME_CHARS: usize = 64;

/// The known name that fewest edits away, if those are at most a third of its letters (and at
/// least one is always allowed).
#[must_use]
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    if name.chars().nth(MAX_NAME_CHARS).is_some() {
        return None;
    }
    let name = name.to_lowercase();
    known
        .iter()
        .map(|candidate| (edits(&name, candidate), *candidate))
        .filter(|(edits, candidate)| *edits <= (candidate.chars().count() / 3).max(1))
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Insertions, removals, replacements and swaps of neighbours that turn `a` into `b`, no letter
/// being edited twice (optimal string alignment).
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_slips_are_recognised() {
        let known = ["rate", "delay", "jitter", "queue_packets"];
        assert_eq!(nearest("dealy", &known), Some("delay"));
        assert_eq!(nearest("Rate", &known), Some("rate"));
        assert_eq!(nearest("queue-packet", &known), Some("queue_packets"));
        assert_eq!(nearest("bandwidth", &known), None);
        assert_eq!(nearest("", &known), None);
        assert_eq!(nearest(&"x".repeat(10_000), &known), None);
    }

    #[test]
    fn edits_are_counted() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "ab", 2),
            ("ab", "ba", 1),
            ("kitten", "sitting", 3),
            ("ca", "abc", 3),
        ] {
            assert_eq!(edits(a, b), expected, "{a} {b}");
        }
    }
}
