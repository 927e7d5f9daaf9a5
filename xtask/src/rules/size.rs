//! Lines, functions, files and types that fit a head.

use super::Rule;
use crate::exceptions::{FIELDS, LIST, METHODS};
use crate::finding::Report;
use crate::house::House;
use crate::source::Source;
use crate::unit::Kind;

pub(super) const RULE: Rule = Rule {
    name: "size",
    demand: "lines <= 100 columns, functions about 70 lines (80 at most), files <= 800 lines, \
        types <= 50 methods and <= 20 fields (a table says so: `// table:`)",
    check,
};

const MAX_COLUMNS: usize = 100;
const MAX_FUNCTION_LINES: usize = 80;
const MAX_FILE_LINES: usize = 800;
const MAX_METHODS: usize = 50;
const MAX_FIELDS: usize = 20;
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
    check_types(house, METHODS, report);
    check_types(house, FIELDS, report);
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

/// Types with more than a head holds: of `kind`, but for those in the list of exceptions.
fn check_types(house: &House, kind: &str, report: &mut Report) {
    let too_many = |found: &Kind| match kind {
        METHODS => found.methods > MAX_METHODS,
        _ => found.fields > MAX_FIELDS && !found.is_table,
    };
    let types = house.units.iter().flat_map(|u| u.kinds().into_iter().map(|k| (&u.owner, k)));
    let found: Vec<(&String, Kind)> = types.filter(|(_, found)| too_many(found)).collect();
    let listed = || house.exceptions.iter().filter(|exception| exception.kind == kind);
    for (owner, Kind { name, place, fields, methods, .. }) in &found {
        if !listed().any(|list| list.owner == **owner && list.name == *name) {
            let what = match kind {
                METHODS => format!("`{name}` has {methods} methods of at most {MAX_METHODS}"),
                _ => format!("`{name}` has {fields} fields of at most {MAX_FIELDS}"),
            };
            let what = format!("{what}; make its parts types with methods of their own");
            report.add(&place.path, place.line, what);
        }
    }
    for list in listed() {
        if !found.iter().any(|(owner, kind)| **owner == list.owner && kind.name == list.name) {
            let what = format!(
                "`{}` of {} has no longer too many {kind}; take it out of the list",
                list.name, list.owner
            );
            report.add(LIST, list.line, what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{found, places};
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

    fn of_types(text: &str, list: &str) -> Vec<(String, String)> {
        let files = [("crates/x/Cargo.toml", ""), ("crates/x/src/a.rs", text), (LIST, list)];
        found(&RULE, &files)
    }

    fn methods(count: usize) -> String {
        (0..count).map(|at| format!("fn f{at}() {{}} ")).collect()
    }

    fn fields(count: usize) -> String {
        (0..count).map(|at| format!("f{at}: u8,\n")).collect()
    }

    #[test]
    fn methods_of_all_inherent_impls_count_together_and_tests_do_not() {
        let of = |first: usize, last: &str| {
            let first: Vec<String> =
                (0..first).map(|at| format!("impl A {{\nfn f{at}() {{}}\n}}\n")).collect();
            of_types(&format!("\nstruct A;\n{}{last}", first.concat()), "")
        };
        assert_eq!(of(25, "mod b { impl super::A { fn g() {} } }"), []);
        assert_eq!(of(50, ""), []);
        assert_eq!(of(50, "impl Clone for A { fn clone(&self) {} }"), []);
        assert_eq!(of(50, "impl A { #[cfg(test)] fn t() {} }"), []);
        let found = of(50, "mod b { impl super::A { fn g() {} } }");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "crates/x/src/a.rs:2");
        assert!(found[0].1.starts_with("`a::A` has 51 methods of at most 50;"), "{}", found[0].1);
    }

    #[test]
    fn fields_count_but_for_tables_that_say_so() {
        let of = |head: &str, count: usize| {
            of_types(&format!("{head} {{\n{}}}", fields(count)), "").len()
        };
        assert_eq!(of("struct A", 20), 0);
        assert_eq!(of("struct A", 21), 1);
        assert_eq!(of("/// An A.\n// table: one field a column\n#[derive(X)]\nstruct A", 21), 0);
        assert_eq!(of("// table: one field a column\n/// An A.\n#[derive(X)]\nstruct A", 21), 0);
        assert_eq!(of("// table:\nstruct A", 21), 1);
        let variant = of_types(&format!("enum A {{ C, B {{\n{}}} }}", fields(21)), "");
        assert_eq!(variant.len(), 1);
    }

    #[test]
    fn an_exception_covers_its_type_as_long_as_it_is_one() {
        let list = "[[methods]]\ncrate = \"x\"\ntype = \"a::A\"\n\
            \n[[fields]]\ncrate = \"x\"\ntype = \"a::B\"\n";
        let of = |count: usize, most: usize| {
            let methods: String = methods(count).replace("} ", "}\n");
            let text =
                format!("struct A;\nimpl A {{\n{methods}}}\nstruct B {{\n{}}}", fields(most));
            let found = of_types(&text, list);
            found.into_iter().map(|(place, _)| place).collect::<Vec<_>>()
        };
        assert_eq!(of(51, 21), [""; 0]);
        assert_eq!(of(50, 21), [format!("{LIST}:1")]);
        assert_eq!(of(51, 20), [format!("{LIST}:5")]);
    }
}
