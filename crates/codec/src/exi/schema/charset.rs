//! From a regular expression to the set of its characters (EXI Appendix E, XML Schema Part 2
//! Appendix F).

/// Characters of XML (XML 1.0 §2.2), as what a negated class is taken from.
const ALL: [(u32, u32); 5] =
    [(0x9, 0xA), (0xD, 0xD), (0x20, 0xD7FF), (0xE000, 0xFFFD), (0x1_0000, 0x10_FFFF)];

/// EXI §7.1.10.1: fewer than 256 characters.
const MAX_CHARACTERS: u32 = 255;

/// Classes within classes. A pattern is short; one that nests deeper is not looked into.
const MAX_DEPTH: usize = 64;

/// Sorted ranges of code points that do not touch.
type Set = Vec<(u32, u32)>;

/// The restricted character set of some pattern facets, sorted; `None` if there is none, also if
/// one of them is not a regular expression.
pub(super) fn restricted<'a>(patterns: impl Iterator<Item = &'a str>) -> Option<Box<[char]>> {
    let mut set = Set::new();
    for pattern in patterns {
        set.extend(characters(pattern)?);
    }
    let set = merged(set);
    let count = set.iter().try_fold(0_u32, |sum, (from, to)| sum.checked_add(to - from + 1))?;
    let plane = set.last().is_none_or(|&(_, to)| to <= 0xFFFF);
    if count > MAX_CHARACTERS || !plane {
        return None;
    }
    set.into_iter().flat_map(|(from, to)| from..=to).map(char::from_u32).collect()
}

/// The set of one expression; `None` if an escape in it has a set that depends on the version of
/// Unicode.
fn characters(pattern: &str) -> Option<Set> {
    let mut rest = pattern.chars().peekable();
    let mut set = Set::new();
    let mut open = 0_usize;
    while let Some(next) = rest.next() {
        match next {
            '\\' => set.extend(escape(rest.next()?)?),
            '[' => set.extend(class(&mut rest, MAX_DEPTH)?),
            '.' => return None,
            '(' => open += 1,
            ')' => open = open.checked_sub(1)?,
            '|' | '?' | '*' | '+' => {}
            '{' => while rest.next()? != '}' {},
            ']' | '}' => return None,
            other => set.push((other.into(), other.into())),
        }
    }
    (open == 0).then_some(set)
}

/// XML Schema Part 2 §F.1.1
fn escape(escaped: char) -> Option<Set> {
    let single = match escaped {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        's' => return Some(vec![(0x9, 0xA), (0xD, 0xD), (0x20, 0x20)]),
        '\\' | '|' | '.' | '-' | '^' | '?' | '*' | '+' | '{' | '}' | '(' | ')' | '[' | ']' => {
            escaped
        }
        _ => return None,
    };
    Some(vec![(single.into(), single.into())])
}

/// A class expression behind its `[` (XML Schema Part 2 §F.1): group, negated or not, less another.
fn class(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, depth: usize) -> Option<Set> {
    let depth = depth.checked_sub(1)?;
    let negated = rest.next_if_eq(&'^').is_some();
    let mut set = Set::new();
    let mut less = None;
    loop {
        let next = rest.next()?;
        let from = match next {
            ']' if !set.is_empty() => break,
            '[' => return None,
            '-' if rest.peek() == Some(&'[') => {
                rest.next();
                less = Some(class(rest, depth)?);
                if rest.next()? != ']' {
                    return None;
                }
                break;
            }
            '\\' => escape(rest.next()?)?,
            other => vec![(other.into(), other.into())],
        };
        let &[(from, single)] = from.as_slice() else {
            set.extend(from);
            continue;
        };
        let mut ahead = rest.clone();
        let dash = from == single && ahead.next() == Some('-');
        let to = match ahead.next() {
            Some('[' | ']') | None => None,
            Some('\\') if dash => match escape(ahead.next()?)?.as_slice() {
                &[(to, end)] if to == end => Some(to),
                _ => return None,
            },
            Some(other) => Some(other.into()),
        };
        match to {
            Some(to) if dash => {
                if to < from {
                    return None;
                }
                *rest = ahead;
                set.push((from, to));
            }
            _ => set.push((from, from)),
        }
    }
    let mut set = merged(set);
    if negated {
        set = difference(&ALL, &set);
    }
    if let Some(less) = less {
        set = difference(&set, &less);
    }
    Some(set)
}

fn merged(mut set: Set) -> Set {
    set.sort_unstable();
    let mut made: Set = Vec::with_capacity(set.len());
    for (from, to) in set {
        match made.last_mut() {
            Some((_, end)) if from <= end.saturating_add(1) => *end = to.max(*end),
            _ => made.push((from, to)),
        }
    }
    made
}

/// Both sorted; what is in the first alone.
fn difference(set: &[(u32, u32)], less: &[(u32, u32)]) -> Set {
    let mut made = Set::new();
    let mut rest = less;
    for &(mut from, to) in set {
        // What ends before this one begins is before all that follow.
        rest = &rest[rest.partition_point(|&(_, high)| high < from)..];
        for &(low, high) in rest.iter().take_while(|&&(low, _)| low <= to) {
            if low > from {
                made.push((from, low - 1));
            }
            from = high.saturating_add(1);
        }
        if from <= to {
            made.push((from, to));
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pattern: &str) -> Option<String> {
        restricted([pattern].into_iter()).map(|set| set.iter().collect())
    }

    #[test]
    fn sets_of_expressions() {
        assert_eq!(of("[A-C]{2}x?").as_deref(), Some("ABCx"));
        assert_eq!(of("a|(b|c)*").as_deref(), Some("abc"));
        assert_eq!(of(r"\[\-\s").as_deref(), Some("\t\n\r -["));
        assert_eq!(of("[+-]").as_deref(), Some("+-"));
        assert_eq!(of("[-a]").as_deref(), Some("-a"));
        assert_eq!(of("[a-e-[bd]]").as_deref(), Some("ace"));
        assert_eq!(of("[^a-z]-[b]").as_deref(), None);
        assert_eq!(of(r"\d+"), None);
        assert_eq!(of(r"[\w]"), None);
        assert_eq!(of(r"\p{Lu}"), None);
        assert_eq!(of("."), None);
        assert_eq!(of("").as_deref(), Some(""));
        assert_eq!(of("[z-a]"), None);
        assert_eq!(of("["), None);
        assert_eq!(of("(a"), None);
        assert_eq!(of("\u{1F600}"), None);
        assert_eq!(of("[\u{100}-\u{1FE}]").map(|set| set.chars().count()), Some(255));
        assert_eq!(of("[\u{100}-\u{1FF}]"), None);
    }

    #[test]
    fn patterns_of_one_type_are_one_set() {
        let set = restricted(["a", "b-c"].into_iter()).map(|set| set.iter().collect::<String>());
        assert_eq!(set.as_deref(), Some("-abc"));
    }
}
