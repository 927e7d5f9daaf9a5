//! Names and values as they are looked for: exactly, or with the wildcards of SQL
//! (UDDI v3.0.2 §5.1.6).

/// A text to compare with.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pieces: Vec<Piece>,
    is_approximate: bool,
    exact: String,
    ignores_case: bool,
    ignores_marks: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    One(char),
    /// `_`: any character.
    AnyOne,
    /// `%`: any characters, or none.
    Any,
}

impl Pattern {
    /// A text; approximate ones have wildcards, which `\` takes their meaning.
    pub(super) fn new(
        text: &str,
        is_approximate: bool,
        ignores_case: bool,
        ignores_marks: bool,
    ) -> Self {
        let exact = folded(text, ignores_case, ignores_marks);
        let mut pieces = Vec::new();
        let mut characters = exact.chars();
        while let Some(character) = characters.next() {
            pieces.push(match character {
                '\\' => Piece::One(characters.next().unwrap_or('\\')),
                '%' if pieces.last() == Some(&Piece::Any) => continue,
                '%' => Piece::Any,
                '_' => Piece::AnyOne,
                other => Piece::One(other),
            });
        }
        Self { pieces, is_approximate, exact, ignores_case, ignores_marks }
    }

    /// Whether a text fits.
    pub(super) fn fits(&self, text: &str) -> bool {
        let folds = self.ignores_case || self.ignores_marks;
        match (self.is_approximate, folds) {
            (false, false) => self.exact == text,
            (false, true) => self.exact == folded(text, self.ignores_case, self.ignores_marks),
            (true, _) => {
                let text = folded(text, self.ignores_case, self.ignores_marks);
                self.matches(&text.chars().collect::<Vec<_>>())
            }
        }
    }

    /// Goes back to the last `%` only, so that no pattern takes more than length times length.
    fn matches(&self, text: &[char]) -> bool {
        let (mut at, mut piece) = (0, 0);
        let mut retry: Option<(usize, usize)> = None;
        while at < text.len() {
            match (self.pieces.get(piece), text.get(at)) {
                (Some(Piece::Any), _) => {
                    retry = Some((piece, at));
                    piece += 1;
                }
                (Some(Piece::AnyOne), _) => (at, piece) = (at + 1, piece + 1),
                (Some(Piece::One(wanted)), Some(found)) if wanted == found => {
                    (at, piece) = (at + 1, piece + 1);
                }
                _ => {
                    let Some((any, from)) = retry else { return false };
                    retry = Some((any, from + 1));
                    (at, piece) = (from + 1, any + 1);
                }
            }
        }
        let rest = self.pieces.get(piece..).unwrap_or_default();
        rest.iter().all(|piece| *piece == Piece::Any)
    }
}

/// Without what does not count.
fn folded(text: &str, ignores_case: bool, ignores_marks: bool) -> String {
    let text = if ignores_case { text.to_lowercase() } else { text.to_owned() };
    if ignores_marks { text.chars().filter_map(bare).collect() } else { text }
}

/// A letter without its diacritic: those of Latin-1 and Latin Extended-A; combining marks go.
fn bare(character: char) -> Option<char> {
    const BARE: [(&str, char); 28] = [
        ("ÀÁÂÃÄÅĀĂĄ", 'A'),
        ("àáâãäåāăą", 'a'),
        ("ÇĆĈĊČ", 'C'),
        ("çćĉċč", 'c'),
        ("ĎĐ", 'D'),
        ("ďđ", 'd'),
        ("ÈÉÊËĒĔĖĘĚ", 'E'),
        ("èéêëēĕėęě", 'e'),
        ("ĜĞĠĢ", 'G'),
        ("ĝğġģ", 'g'),
        ("ÌÍÎÏĨĪĬĮİ", 'I'),
        ("ìíîïĩīĭį", 'i'),
        ("ĹĻĽŁ", 'L'),
        ("ĺļľł", 'l'),
        ("ÑŃŅŇ", 'N'),
        ("ñńņň", 'n'),
        ("ÒÓÔÕÖØŌŎŐ", 'O'),
        ("òóôõöøōŏő", 'o'),
        ("ŔŖŘ", 'R'),
        ("ŕŗř", 'r'),
        ("ŚŜŞŠ", 'S'),
        ("śŝşš", 's'),
        ("ÙÚÛÜŨŪŬŮŰŲ", 'U'),
        ("ùúûüũūŭůűų", 'u'),
        ("ÝŶŸ", 'Y'),
        ("ýŷÿ", 'y'),
        ("ŹŻŽ", 'Z'),
        ("źżž", 'z'),
    ];
    if ('\u{300}'..='\u{36f}').contains(&character) {
        return None;
    }
    let found = BARE.iter().find(|(all, _)| !character.is_ascii() && all.contains(character));
    Some(found.map_or(character, |(_, bare)| *bare))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_are_those_of_sql() {
        let fits = |pattern: &str, text: &str| Pattern::new(pattern, true, false, false).fits(text);
        for (pattern, text, expected) in [
            ("a%", "abc", true),
            ("a%", "ba", false),
            ("%c", "abc", true),
            ("%b%", "abc", true),
            ("a_c", "abc", true),
            ("a_c", "ac", false),
            ("%", "", true),
            ("", "", true),
            ("", "a", false),
            ("a\\%", "a%", true),
            ("a\\%", "ab", false),
            ("a\\_", "ab", false),
            ("%a%b%c%", "xxaxxbxxcxx", true),
            ("%a%b%c%", "xxaxxcxxbxx", false),
            ("abc", "abc", true),
            ("abc", "ABC", false),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_pattern_that_goes_back_a_lot_takes_little_time() {
        let pattern = Pattern::new(&"%a".repeat(127), true, false, false);
        assert!(!pattern.fits(&"a".repeat(126)));
        assert!(pattern.fits(&"a".repeat(4000)));
    }

    #[test]
    fn case_and_marks_may_not_count() {
        assert!(Pattern::new("STRASSE", false, true, false).fits("strasse"));
        assert!(Pattern::new("Zurich", false, false, true).fits("Zürich"));
        assert!(Pattern::new("e\u{301}", false, false, true).fits("é"));
        assert!(!Pattern::new("Zurich", false, false, false).fits("Zürich"));
    }
}
