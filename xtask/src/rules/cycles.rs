//! Between the modules of a crate the arrows go one way.

use super::Rule;
use crate::cycle::{Cycle, cycles};
use crate::exceptions::{CYCLES, LIST};
use crate::finding::Report;
use crate::house::House;
use crate::unit::Unit;

pub(super) const RULE: Rule = Rule {
    name: "cycles",
    demand: "no import cycle of a crate's modules, tests left out; the root's own items are a \
        module too, its `mod` and `pub use` are not",
    check,
};

fn check(house: &House, report: &mut Report) {
    let found: Vec<(&Unit, Cycle)> = house
        .units
        .iter()
        .flat_map(|unit| cycles(unit).into_iter().map(move |c| (unit, c)))
        .collect();
    let listed = || house.exceptions.iter().filter(|exception| exception.kind == CYCLES);
    for (unit, cycle) in &found {
        let is_listed = |list: &&crate::exceptions::Exception| {
            list.owner == unit.owner && cycle.modules.is_subset(&list.modules)
        };
        if let (None, Some((_, place))) = (listed().find(is_listed), cycle.way.first()) {
            report.add(&place.path, place.line, describe(unit, cycle));
        }
    }
    for list in listed() {
        let of = |module: &String| {
            found.iter().any(|(unit, c)| unit.owner == list.owner && c.modules.contains(module))
        };
        for module in list.modules.iter().filter(|module| !of(module)) {
            let what = format!(
                "`{module}` of {} is in no cycle any more; take it out of the list",
                list.owner
            );
            report.add(LIST, list.line, what);
        }
    }
}

fn describe(unit: &Unit, cycle: &Cycle) -> String {
    let all: Vec<&str> = cycle.modules.iter().map(String::as_str).collect();
    let steps = cycle.way.iter().map(|(module, place)| {
        let file = place.path.rsplit("src/").next().unwrap_or_default();
        format!("{module} ({file}:{}) → ", place.line)
    });
    let steps: String = steps.collect();
    let start = cycle.way.first().map_or("", |(module, _)| module);
    format!(
        "{} modules of {} import each other ({}), as {steps}{start}; move what both need below \
         them, or hand it in",
        all.len(),
        unit.owner,
        all.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::super::{found, places};
    use super::*;

    const LIB: &str = "mod a;\nmod b;\npub use a::One;\npub struct Whole;\n";

    fn of(lib: &str, a: &str, b: &str) -> Vec<String> {
        places(&RULE, &files(lib, a, b))
    }

    fn files<'a>(lib: &'a str, a: &'a str, b: &'a str) -> [(&'static str, &'a str); 4] {
        [
            ("crates/x/Cargo.toml", ""),
            ("crates/x/src/lib.rs", lib),
            ("crates/x/src/a.rs", a),
            ("crates/x/src/b/mod.rs", b),
        ]
    }

    #[test]
    fn two_modules_that_name_each_other_are_found() {
        for (a, b) in [
            ("\nuse crate::b::Two;", "use crate::a::One;"),
            ("\nuse super::b::{self, Two};", "use super::{a::One};"),
            ("\nfn f() { crate::b::g(); }", "fn g(one: &super::a::One) {}"),
            ("\nfn f() { assert!(x.y, crate::b::G); }", "use crate::a::*;"),
            // Through a re-export of the root, to where the type is.
            ("\nuse crate::b::Two;", "use crate::One;"),
            ("\nuse crate::b::Two;", "use super::*;\nfn f(_: One) {}"),
        ] {
            let a = format!("{a}\npub struct One;");
            assert_eq!(of(LIB, &a, b), ["crates/x/src/a.rs:2"], "{a} {b}");
        }
    }

    #[test]
    fn the_root_is_a_module_where_it_does_something_itself() {
        let names_the_root = "use crate::Whole;\npub struct One;";
        assert_eq!(of(LIB, names_the_root, ""), [""; 0]);
        let uses = format!("{LIB}use a::Other;");
        assert_eq!(of(&uses, names_the_root, ""), ["crates/x/src/a.rs:1"]);
        let names = format!("{LIB}impl Whole {{ fn f(one: One) {{}} }}");
        assert_eq!(of(&names, names_the_root, ""), ["crates/x/src/a.rs:1"]);
        assert_eq!(of(&names, "use crate::One as Same;\npub struct One;", ""), [""; 0]);
    }

    #[test]
    fn what_is_no_arrow_passes() {
        for (a, b) in [
            ("use crate::b::Two;", "use std::fmt;\npub struct Two;"),
            ("use crate::b::Two;", "#[cfg(test)]\nmod tests { use crate::a::One; }"),
            ("use crate::b::Two;", "#[cfg(all(test, unix))]\nuse crate::a::One;"),
            ("use crate::b::Two;", "impl X { #[cfg(test)] fn f() { crate::a::g(); } }"),
            ("use crate::b::Two;", "pub(in crate::a) struct Two;"),
            ("use crate::b::Two;", "use a::One; // a crate"),
            (
                "use crate::b::Two;",
                "mod a { pub struct One; }\nuse a::One;\nuse self::a::One as T;",
            ),
            ("use crate::b::Two;", "// crate::a\nconst X: &str = \"crate::a::One\";"),
        ] {
            assert_eq!(of("mod a;\nmod b;", a, b), [""; 0], "{b}");
        }
    }

    #[test]
    fn longer_cycles_are_one_finding_with_a_way_round() {
        let files = [
            ("crates/x/Cargo.toml", ""),
            ("crates/x/src/a.rs", "use crate::b::B;\nuse crate::d::D;"),
            ("crates/x/src/b/deep.rs", "use super::super::c::C;"),
            ("crates/x/src/b.rs", "mod deep;"),
            ("crates/x/src/c.rs", "use crate::a::A;"),
            ("crates/x/src/d.rs", ""),
        ];
        let found = found(&RULE, &files);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].1.contains("(a, b, c), as a (a.rs:1) → b (b/deep.rs:1) → c (c.rs:1) → a;")
        );
    }

    #[test]
    fn each_program_is_a_crate_of_its_own() {
        let files = [
            ("bench/Cargo.toml", ""),
            ("bench/src/lib.rs", ""),
            ("bench/src/bin/one/main.rs", "mod a;\nfn f() { a::g(); }"),
            ("bench/src/bin/one/a.rs", "use crate::f;"),
            ("bench/src/bin/two.rs", "fn f() { bench::g(); }"),
        ];
        assert_eq!(places(&RULE, &files), ["bench/src/bin/one/a.rs:1"]);
    }

    #[test]
    fn an_exception_covers_its_modules_and_no_others() {
        let (a, b) = ("use crate::b::Two;", "use crate::a::One;");
        let of = |list: &str, b: &str| {
            let [manifest, lib, a, b] = files(LIB, a, b);
            places(&RULE, &[manifest, lib, a, b, (LIST, list)])
        };
        let entry = |of: &str, modules: &str| {
            format!("\n[[cycles]]\ncrate = \"{of}\"\nmodules = {modules}\n")
        };
        assert_eq!(of(&entry("x", r#"["a", "b"]"#), b), [""; 0]);
        let stale = format!("{LIST}:2");
        assert_eq!(of(&entry("x", r#"["a"]"#), b), ["crates/x/src/a.rs:1"]);
        assert_eq!(of(&entry("x", r#"["a", "b", "c"]"#), b), [stale.as_str()]);
        assert_eq!(of(&entry("x", r#"["a", "b"]"#), ""), [stale.as_str(), &stale]);
        assert_eq!(of(&entry("y", r#"["a", "b"]"#), b).len(), 3);
    }
}
