//! One vocabulary: the words that the glossary refuses stand in no name and no doc comment.
//!
//! The words are those of the table in `docs/glossary.md`. A name is read as the words that it is
//! made of (`Half`, `half_sent` and `HALF_BYTES` all have the word `half`), a comment likewise, so
//! that one table serves both.

use std::ops::Range;

use super::Rule;
use crate::finding::Report;
use crate::house::House;
use crate::source::{Source, is_word};

pub(super) const RULE: Rule = Rule {
    name: "words",
    demand: "names and doc comments have the glossary's terms, none of the words that its last \
        table refuses; no type is called State or Place, its name says of what",
    check,
};

const GLOSSARY: &str = "docs/glossary.md";
/// The table's first line.
const HEADING: &str = "| in names | in doc comments | say | in | but not in |";
/// What stands in the table's column of crates for all of them.
const ALL: &str = "all";
/// Names of types that do not say of what.
const BARE_TYPES: [&str; 2] = ["State", "Place"];

/// Words one behind the other, in small letters.
type Phrase = Vec<String>;

/// A row of the table.
struct Refused {
    in_names: Vec<Phrase>,
    in_comments: Vec<Phrase>,
    say: String,
    /// Crates where it holds; none means all.
    crates: Vec<String>,
    /// Phrases in which they have another meaning.
    but: Vec<Phrase>,
}

impl Refused {
    /// The first phrase of `refused` that is among `words`, unless there it is part of one that may
    /// stand.
    fn find<'a>(&self, refused: &'a [Phrase], words: &[String]) -> Option<&'a Phrase> {
        let begins = |phrase: &Phrase, at: usize| words[at..].starts_with(phrase);
        let stands = |mut at: Range<usize>| at.any(|at| self.but.iter().any(|but| begins(but, at)));
        let is_there = |phrase: &Phrase| {
            (0..words.len()).any(|at| begins(phrase, at) && !stands(at..at + phrase.len()))
        };
        refused.iter().find(|phrase| is_there(phrase))
    }
}

fn check(house: &House, report: &mut Report) {
    let Some(glossary) = house.file(GLOSSARY) else {
        return report.add(GLOSSARY, 1, "is missing; it holds the table of words that are refused");
    };
    let table = parse(&glossary.text, house, report);
    for source in &house.sources {
        let owner = house.crate_of(&source.path).map_or("", |owner| owner.name.as_str());
        let holds =
            |row: &&Refused| row.crates.is_empty() || row.crates.iter().any(|one| one == owner);
        let rows: Vec<&Refused> = table.iter().filter(holds).collect();
        check_names(source, &rows, report);
        check_comments(source, &rows, report);
        check_types(source, report);
    }
}

/// The rows of the glossary's last table.
fn parse(text: &str, house: &House, report: &mut Report) -> Vec<Refused> {
    let lines = || text.lines().enumerate().skip_while(|(_, line)| *line != HEADING);
    let rows = lines().skip(2).take_while(|(_, line)| line.starts_with('|'));
    let mut table = Vec::new();
    for (at, line) in rows {
        let inner = line.strip_prefix('|').and_then(|line| line.strip_suffix('|'));
        let cells: Vec<&str> = inner.unwrap_or_default().split('|').map(str::trim).collect();
        let [names, comments, say, crates, but] = cells[..] else {
            report.add(GLOSSARY, at + 1, "a row of other cells than the table's; give all five");
            continue;
        };
        let crates: Vec<String> =
            list(crates).filter(|one| *one != ALL).map(str::to_owned).collect();
        for name in &crates {
            if !house.crates.iter().any(|member| member.name == *name) {
                report.add(
                    GLOSSARY,
                    at + 1,
                    format!("no crate is called `{name}`; correct the row"),
                );
            }
        }
        let phrases = |cell| list(cell).map(words_of).collect();
        let (in_names, in_comments, but) = (phrases(names), phrases(comments), phrases(but));
        table.push(Refused { in_names, in_comments, say: say.to_owned(), crates, but });
    }
    if table.is_empty() {
        report.add(GLOSSARY, 1, format!("has no table `{HEADING}`; the rule reads it"));
    }
    table
}

fn list(cell: &str) -> impl Iterator<Item = &str> {
    cell.split(',').map(|one| one.trim().trim_matches('`')).filter(|one| !one.is_empty())
}

fn check_names(source: &Source, rows: &[&Refused], report: &mut Report) {
    let file = source.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
    let names = names(&source.code).map(|(offset, name)| (source.line(offset), name));
    for (line, name) in std::iter::once((1, file)).chain(names) {
        let words = words_of(name);
        for row in rows {
            if let Some(refused) = row.find(&row.in_names, &words) {
                let what = format!("`{name}` has `{}`; say {}", refused.join(" "), row.say);
                report.add(&source.path, line, what);
            }
        }
    }
}

/// Every name in masked code, with its offset.
fn names(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let pieces = code.split_inclusive(|c| !is_word(c)).scan(0, |end, piece| {
        let offset = *end;
        *end += piece.len();
        Some((offset, piece.trim_end_matches(|c| !is_word(c))))
    });
    pieces.filter(|(_, name)| !name.is_empty())
}

/// Phrases may go on from one line to the next.
fn check_comments(source: &Source, rows: &[&Refused], report: &mut Report) {
    let is_doc = |text: &str| text.starts_with("///") || text.starts_with("//!");
    let docs: Vec<_> = source.comments.iter().filter(|one| is_doc(&one.text)).collect();
    for (at, comment) in docs.iter().enumerate() {
        let next = docs.get(at + 1).filter(|next| next.line == comment.line + 1);
        let own = words_of(&comment.text);
        let mut words = own.clone();
        words.extend(next.into_iter().flat_map(|next| words_of(&next.text)));
        for row in rows {
            let longest = row.in_comments.iter().chain(&row.but).map(Vec::len).max().unwrap_or(0);
            let words = &words[..words.len().min(own.len() + longest.saturating_sub(1))];
            if let Some(refused) = row.find(&row.in_comments, words) {
                let what = format!("a doc comment has `{}`; say {}", refused.join(" "), row.say);
                report.add(&source.path, comment.line, what);
            }
        }
    }
}

fn check_types(source: &Source, report: &mut Report) {
    for keyword in ["struct", "enum", "union", "type", "trait"] {
        for offset in source.words(keyword) {
            let rest = source.code[offset + keyword.len()..].trim_start();
            let name = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
            if BARE_TYPES.contains(&name) {
                let what = format!("a type called `{name}`; say of what, as in `Body{name}`");
                report.add(&source.path, source.line(offset), what);
            }
        }
    }
}

/// The words of a name, snake_case or CamelCase, or of a text, in small letters.
fn words_of(text: &str) -> Phrase {
    let mut words = Phrase::new();
    for piece in text.split(|c: char| !c.is_alphanumeric()).filter(|piece| !piece.is_empty()) {
        let letters: Vec<char> = piece.chars().collect();
        let mut word = String::new();
        for (at, letter) in letters.iter().enumerate() {
            let behind_small = at > 0 && !letters[at - 1].is_uppercase();
            let before_small = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
            if letter.is_uppercase() && (behind_small || before_small) && !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            word.extend(letter.to_lowercase());
        }
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::{MAP_TEXT, found, places};
    use super::*;

    const TABLE: &str = "\
# Glossary

| in names | in doc comments | say | in | but not in |
| --- | --- | --- | --- | --- |
| farewell, farewells | farewell | drain | all | |
| moiety | the moiety, of a moiety | message | `proto` | moiety of, `moiety_life` |
";

    fn places_of(path: &str, text: &str) -> Vec<String> {
        places(&RULE, &house(TABLE, path, text))
    }

    fn house<'a>(table: &'a str, path: &'a str, text: &'a str) -> [(&'a str, &'a str); 5] {
        [
            ("ARCHITECTURE.md", MAP_TEXT),
            ("crates/proto/Cargo.toml", ""),
            ("crates/proxy/Cargo.toml", ""),
            (GLOSSARY, table),
            (path, text),
        ]
    }

    #[test]
    fn a_name_is_made_of_words() {
        for (name, words) in [
            ("LastHTTPHead", "last http head"),
            ("MAX_BYTES_2", "max bytes 2"),
            ("r#half_sent", "r half sent"),
            ("x", "x"),
            ("A", "a"),
        ] {
            assert_eq!(words_of(name).join(" "), words);
        }
    }

    #[test]
    fn a_refused_word_in_a_name_is_found() {
        for text in [
            "struct FarewellPart;",
            "fn say_farewell() {}",
            "const FAREWELL_GRACE: u8 = 1;",
            "fn f(farewells: u8) {}",
            "#[test] fn a_farewell_is_said() {}",
        ] {
            assert_eq!(places_of("crates/proxy/src/a.rs", text), ["crates/proxy/src/a.rs:1"]);
        }
        let path = "crates/proxy/src/farewell.rs";
        assert_eq!(places_of(path, "fn f() {}"), [format!("{path}:1")]);
    }

    #[test]
    fn what_is_written_in_comments_and_texts_is_no_name() {
        let text = "// farewell\nconst A: &str = \"farewell\"; fn fare_well() {}";
        assert_eq!(places_of("crates/proxy/src/a.rs", text), [""; 0]);
    }

    #[test]
    fn a_refused_phrase_in_a_doc_comment_is_found_at_its_line() {
        let path = "crates/proto/src/a.rs";
        assert_eq!(places_of(path, "//! A.\n//! Says farewell."), [format!("{path}:2")]);
        assert_eq!(
            places_of(path, "/// The end of a\n/// moiety.\nfn f() {}"),
            [format!("{path}:1")]
        );
        assert_eq!(places_of(path, "/// One\n/// moiety.\nfn f() {}"), [""; 0]);
    }

    #[test]
    fn a_word_is_refused_where_the_table_says() {
        let text = "struct Moiety;";
        assert_eq!(places_of("crates/proto/src/a.rs", text), ["crates/proto/src/a.rs:1"]);
        assert_eq!(places_of("crates/proxy/src/a.rs", text), [""; 0]);
        for text in ["const MOIETY_LIFE: u8 = 1;", "/// The moiety of it.\nfn moiety_of_it() {}"] {
            assert_eq!(places_of("crates/proto/src/a.rs", text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_type_says_of_what_it_is_the_state() {
        for text in ["enum State {}", "type Place<'a> = &'a str;", "trait State {}"] {
            assert_eq!(places_of("crates/proxy/src/a.rs", text), ["crates/proxy/src/a.rs:1"]);
        }
        let text = "struct BodyState;\nfn f(place: u8) -> State {}";
        assert_eq!(places_of("crates/proxy/src/a.rs", text), [""; 0]);
    }

    #[test]
    fn a_table_that_is_missing_or_wrong_is_found() {
        let of = |table| found(&RULE, &house(table, "crates/proxy/src/a.rs", ""));
        assert_eq!(of("# Glossary\n")[0].0, "docs/glossary.md:1");
        let row = format!("{HEADING}\n| --- |\n| a | b |\n| c | | d | `lost` | |\n");
        let lines: Vec<String> = of(&row).into_iter().map(|(place, _)| place).collect();
        assert_eq!(lines, ["docs/glossary.md:3", "docs/glossary.md:4"]);
        assert_eq!(places(&RULE, &[("ARCHITECTURE.md", MAP_TEXT)]), ["docs/glossary.md:1"]);
    }
}
