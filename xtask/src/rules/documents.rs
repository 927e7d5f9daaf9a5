//! Documents whose lines can be read, compared and merged one by one.

use super::Rule;
use crate::exceptions::{DOCUMENTS, LIST};
use crate::finding::Report;
use crate::house::House;
use crate::tree::File;

pub(super) const RULE: Rule = Rule {
    name: "documents",
    demand: "lines of documents <= 120 columns, but for tables, code and single words",
    check,
};

const MAX_COLUMNS: usize = 120;

fn check(house: &House, report: &mut Report) {
    let listed = || house.exceptions.iter().filter(|exception| exception.kind == DOCUMENTS);
    for file in house.files.iter().filter(|file| file.path.ends_with(".md")) {
        if listed().any(|list| list.name == file.path) {
            continue;
        }
        for (line, columns) in long_lines(file) {
            let what = format!("{columns} columns of at most {MAX_COLUMNS}; break the line");
            report.add(&file.path, line, what);
        }
    }
    for list in listed() {
        if house.file(&list.name).is_none_or(|file| long_lines(file).is_empty()) {
            let what = format!("`{}` has no line too long; take it out of the list", list.name);
            report.add(LIST, list.line, what);
        }
    }
}

/// Lines that could be broken and are too long, with their columns. A row of a table is one line.
fn long_lines(file: &File) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (at, line) in file.text.lines().enumerate() {
        let text = line.trim();
        if text.starts_with("```") {
            fenced = !fenced;
        }
        let columns = line.chars().count();
        let may_be_long = fenced || text.starts_with('|') || !text.contains(' ');
        if columns > MAX_COLUMNS && !may_be_long {
            found.push((at + 1, columns));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    fn of(text: &str) -> Vec<String> {
        places(&RULE, &[("docs/a.md", text)])
    }

    #[test]
    fn a_long_line_counts_characters() {
        assert_eq!(of(&format!("\né {}\n", "é".repeat(118))), [""; 0]);
        assert_eq!(of(&format!("\né {}\n", "é".repeat(119))), ["docs/a.md:2"]);
    }

    #[test]
    fn tables_code_single_words_and_other_files_may_have_long_lines() {
        let long = "a ".repeat(100);
        for text in [format!("| {long}|\n"), format!("```\n{long}.\n```\n"), "a".repeat(200)] {
            assert_eq!(of(&text), [""; 0], "{text}");
        }
        assert_eq!(of(&format!("```\nx\n```\n{long}.\n")), ["docs/a.md:4"]);
        assert_eq!(places(&RULE, &[("a.txt", long.as_str())]), [""; 0]);
    }

    #[test]
    fn a_document_stays_on_the_list_as_long_as_it_has_long_lines() {
        let list = "\n[[documents]]\nfile = \"docs/a.md\"\n";
        let with = |text: &str| places(&RULE, &[("docs/a.md", text), (LIST, list)]);
        assert_eq!(with(&"a ".repeat(100)), [""; 0]);
        assert_eq!(with("a\n"), [format!("{LIST}:2")]);
        assert_eq!(places(&RULE, &[(LIST, list)]), [format!("{LIST}:2")]);
    }
}
