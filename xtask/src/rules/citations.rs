//! Standards are cited in one form, and where we differ stands in one list with the reason.

use super::Rule;
use crate::finding::Report;
use crate::house::House;
use crate::source::Source;
use crate::table::quoted;

pub(super) const RULE: Rule = Rule {
    name: "citations",
    demand: "clauses are cited as `RFC 7252 §4.2`; docs/conformance.md rows are whole",
    check,
};

const EXCEPTIONS: &str = "docs/conformance.md";
/// Cells of a row: `RFC 9110 §8.4`, the file, what is done instead, why.
const HEADER: [&str; 4] = ["clause", "where", "instead", "reason"];

fn check(house: &House, report: &mut Report) {
    for source in &house.sources {
        check_comments(source, report);
    }
    if let Some(file) = house.file(EXCEPTIONS) {
        check_exceptions(house, &file.text, report);
    }
}

fn check_comments(source: &Source, report: &mut Report) {
    for comment in &source.comments {
        for (at, mark) in comment.text.match_indices("RFC") {
            let after = &comment.text[at + mark.len()..];
            let number = after.trim_start_matches(' ');
            let digits =
                number.len() - number.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            if digits == 0 {
                continue;
            }
            let tail = number[digits..].trim_start_matches([',', ' ']).to_ascii_lowercase();
            let glued = number.len() == after.len();
            if glued || ["section", "sect", "sec.", "chapter"].iter().any(|w| tail.starts_with(w)) {
                let number = &number[..digits];
                let what = format!("cite as `RFC {number} §4.2`, so that a search finds it");
                report.add(&source.path, comment.line, what);
            }
        }
    }
}

fn check_exceptions(house: &House, text: &str, report: &mut Report) {
    let (mut in_table, mut is_list, mut lists) = (false, false, 0);
    for (at, row) in text.lines().enumerate() {
        let begins = row.starts_with('|') && !in_table;
        in_table = row.starts_with('|');
        let cells: Vec<&str> = row.trim().trim_matches('|').split('|').map(str::trim).collect();
        if begins {
            is_list = cells == HEADER;
            lists += usize::from(is_list);
        }
        if begins || !in_table || !is_list || cells.iter().all(|cell| cell.starts_with("--")) {
            continue;
        }
        let wrong = match cells.as_slice() {
            [clause, place, instead, reason] => {
                let exists = |path: &String| house.has(path);
                (!clause.contains('§'))
                    .then_some("the first cell is a clause with `§`")
                    .or((!quoted(place).iter().any(exists)).then_some("the second names a file"))
                    .or((instead.is_empty() || reason.is_empty()).then_some("no cell is empty"))
            }
            _ => Some("a row has four cells: clause, where, instead, reason"),
        };
        if let Some(what) = wrong {
            report.add(EXCEPTIONS, at + 1, what);
        }
    }
    if lists == 0 {
        report.add(EXCEPTIONS, 1, "a table has the head: clause, where, instead, reason");
    }
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    #[test]
    fn a_citation_in_another_form_is_found() {
        for text in ["// RFC7252", "/// see RFC 7252, section 4.2", "// RFC 7252 Section 4"] {
            assert_eq!(places(&RULE, &[("a.rs", text)]), ["a.rs:1"], "{text}");
        }
        for text in ["// RFC 7252 §4.2", "// an RFC of 7252", "const A: &str = \"RFC7252\";"] {
            assert_eq!(places(&RULE, &[("a.rs", text)]), [""; 0], "{text}");
        }
    }

    #[test]
    fn an_exception_without_its_parts_is_found() {
        let table = "| clause | where | instead | reason |\n| --- | --- | --- | --- |\n";
        let good = "| RFC 9110 §8.4 | `a.rs` | passes it | the peers agree |\n";
        let files =
            |row: &str| places(&RULE, &[("a.rs", ""), (EXCEPTIONS, &(table.to_owned() + row))]);
        assert_eq!(files(good), [""; 0]);
        for (from, to) in
            [("§8.4", ""), ("a.rs", "b.rs"), ("the peers agree", ""), ("| passes", "")]
        {
            assert_eq!(files(&good.replace(from, to)), ["docs/conformance.md:3"], "{from}");
        }
    }

    #[test]
    fn other_tables_of_that_page_are_not_the_list() {
        let other = "| clause | level |\n| --- | --- |\n| RFC 9110 §8.4 | MUST |\n";
        assert_eq!(places(&RULE, &[(EXCEPTIONS, other)]), ["docs/conformance.md:1"]);
        let both =
            format!("| clause | where | instead | reason |\n| --- | --- | --- | --- |\n\n{other}");
        assert_eq!(places(&RULE, &[(EXCEPTIONS, &both)]), [""; 0]);
    }
}
