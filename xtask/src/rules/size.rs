//! Lines, functions and files that fit a head.

use super::Rule;
use crate::finding::Report;
use crate::house::House;
use crate::source::Source;

pub(super) const RULE: Rule = Rule {
    name: "size",
    demand: "lines <= 100 columns, functions about 70 lines (80 at most), files <= 800 lines",
    check,
};

const MAX_COLUMNS: usize = 100;
const MAX_FUNCTION_LINES: usize = 80;
const MAX_FILE_LINES: usize = 800;
/// A file of rows may be longer when one of its first lines says that it is one.
const TABLE_MARK: &str = "// flat table:";
const MARK_WITHIN_LINES: usize = 5;

fn check(house: &House, report: &mut Report) {
    for source in &house.sources {
        for (at, line) in source.text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > MAX_COLUMNS {
                let what = format!("{columns} columns of at most {MAX_COLUMNS}; break the line");
                report.add(&source.path, at + 1, what);
            }
        }
        let lines = source.text.lines().count();
        if lines > MAX_FILE_LINES && !is_table(source) {
            let what = format!(
                "{lines} lines of at most {MAX_FILE_LINES}; cut it where the meaning changes"
            );
            report.add(&source.path, 1, what);
        }
        check_functions(source, report);
    }
}

fn is_table(source: &Source) -> bool {
    source.text.lines().take(MARK_WITHIN_LINES).any(|line| line.starts_with(TABLE_MARK))
}

fn check_functions(source: &Source, report: &mut Report) {
    for function in source.functions() {
        let (first, last) = function.lines;
        let lines = last - first + 1;
        if lines > MAX_FUNCTION_LINES {
            let what = format!(
                "`{}` has {lines} lines; about 70 are enough, give its parts names",
                function.name
            );
            report.add(&source.path, first, what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    fn places_of(text: &str) -> Vec<String> {
        places(&RULE, &[("a.rs", text)])
    }

    #[test]
    fn a_long_line_counts_characters() {
        assert_eq!(places_of(&format!("\n// {}", "é".repeat(97))), [""; 0]);
        assert_eq!(places_of(&format!("\n// {}", "é".repeat(98))), ["a.rs:2"]);
    }

    #[test]
    fn a_long_function_is_found() {
        let of = |lines: usize| format!("\nfn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2));
        assert_eq!(places_of(&of(80)), [""; 0]);
        assert_eq!(places_of(&of(81)), ["a.rs:2"]);
    }

    #[test]
    fn a_long_file_is_found_but_for_tables() {
        assert_eq!(places_of(&"//\n".repeat(800)), [""; 0]);
        assert_eq!(places_of(&"//\n".repeat(801)), ["a.rs:1"]);
        let table = format!("//! Rows.\n// flat table: one row a token\n{}", "//\n".repeat(900));
        assert_eq!(places_of(&table), [""; 0]);
    }
}
