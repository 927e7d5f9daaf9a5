//! The crates in numbers: what `cargo xtask house` prints.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::cycle::cycles;
use crate::house::House;
use crate::member::Crate;
use crate::unit::{Kind, Unit};

/// One crate, or all of them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Measure {
    pub(crate) name: String,
    pub(crate) product_lines: usize,
    pub(crate) test_lines: usize,
    /// Files and folders in `src/`, the root left out.
    pub(crate) modules: usize,
    /// The modules of the longest import cycle.
    pub(crate) cycle: BTreeSet<String>,
    /// The types with most methods and with most fields.
    pub(crate) by_methods: Largest,
    pub(crate) by_fields: Largest,
}

/// How many, and the type.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Largest {
    pub(crate) count: usize,
    pub(crate) name: String,
}

/// Every crate in the order of its folder, then the total.
pub(crate) fn measure(house: &House) -> Vec<Measure> {
    let mut measures: Vec<Measure> = house.crates.iter().map(|c| of_crate(house, c)).collect();
    measures.push(total(&measures));
    measures
}

fn of_crate(house: &House, member: &Crate) -> Measure {
    let mut measure = Measure { name: member.name.clone(), ..Measure::default() };
    let own = |path: &str| house.crate_of(path).is_some_and(|owner| owner.name == member.name);
    for source in house.sources.iter().filter(|source| own(&source.path)) {
        let (all, test) = (source.text.lines().count(), source.test_lines());
        measure.product_lines += all - test;
        measure.test_lines += test;
    }
    let units: Vec<&Unit> = house.units.iter().filter(|unit| unit.owner == member.name).collect();
    measure.modules = units.iter().map(|unit| unit.modules().len()).sum();
    let all = units.iter().flat_map(|unit| cycles(unit)).map(|cycle| cycle.modules);
    measure.cycle = all.max_by_key(BTreeSet::len).unwrap_or_default();
    let kinds: Vec<Kind> = units.iter().flat_map(|unit| unit.kinds()).collect();
    measure.by_methods = largest(&kinds, |kind| kind.methods);
    measure.by_fields = largest(&kinds, |kind| kind.fields);
    measure
}

fn largest(kinds: &[Kind], count: impl Fn(&Kind) -> usize) -> Largest {
    let all = kinds.iter().map(|kind| Largest { count: count(kind), name: kind.name.clone() });
    all.filter(|largest| largest.count > 0).max().unwrap_or_default()
}

fn total(measures: &[Measure]) -> Measure {
    let sum = |of: fn(&Measure) -> usize| measures.iter().map(of).sum();
    let most = |of: fn(&Measure) -> &Largest| {
        let named = |m: &Measure| Largest {
            count: of(m).count,
            name: format!("{}::{}", m.name, of(m).name),
        };
        measures.iter().map(named).max().unwrap_or_default()
    };
    let longest = measures.iter().max_by_key(|measure| measure.cycle.len());
    Measure {
        name: "total".to_owned(),
        product_lines: sum(|measure| measure.product_lines),
        test_lines: sum(|measure| measure.test_lines),
        modules: sum(|measure| measure.modules),
        cycle: longest.map(|measure| measure.cycle.clone()).unwrap_or_default(),
        by_methods: most(|measure| &measure.by_methods),
        by_fields: most(|measure| &measure.by_fields),
    }
}

/// A table, and the modules of each crate's longest cycle below it.
pub(crate) fn table(measures: &[Measure]) -> String {
    let mut out = format!(
        "{:<10}{:>9}{:>8}{:>9}{:>7}  {:<36}{}\n",
        "crate", "product", "test", "modules", "cycle", "most methods", "most fields"
    );
    for measure in measures {
        let largest = |of: &Largest| match of.count {
            0 => "-".to_owned(),
            count => format!("{count} {}", of.name),
        };
        let _ = writeln!(
            out,
            "{:<10}{:>9}{:>8}{:>9}{:>7}  {:<36}{}",
            measure.name,
            measure.product_lines,
            measure.test_lines,
            measure.modules,
            measure.cycle.len(),
            largest(&measure.by_methods),
            largest(&measure.by_fields)
        );
    }
    let crates = measures.split_last().map_or(&[][..], |(_, crates)| crates);
    for measure in crates.iter().filter(|measure| !measure.cycle.is_empty()) {
        let modules: Vec<&str> = measure.cycle.iter().map(String::as_str).collect();
        let _ = writeln!(out, "cycle of {}: {}", measure.name, modules.join(" "));
    }
    out
}

/// An array with one object a line. The names are those of Rust and of folders: nothing to escape.
pub(crate) fn json(measures: &[Measure]) -> String {
    let object = |measure: &Measure| {
        let modules: Vec<String> = measure.cycle.iter().map(|name| format!("\"{name}\"")).collect();
        let largest = |of: &Largest| format!("{{\"count\":{},\"type\":\"{}\"}}", of.count, of.name);
        format!(
            "{{\"crate\":\"{}\",\"product_lines\":{},\"test_lines\":{},\"modules\":{},\
             \"longest_cycle\":[{}],\"most_methods\":{},\"most_fields\":{}}}",
            measure.name,
            measure.product_lines,
            measure.test_lines,
            measure.modules,
            modules.join(","),
            largest(&measure.by_methods),
            largest(&measure.by_fields)
        )
    };
    let objects: Vec<String> = measures.iter().map(object).collect();
    format!("[\n{}\n]\n", objects.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::house::house;

    const FILES: &[(&str, &str)] = &[
        ("crates/x/Cargo.toml", ""),
        ("crates/x/src/lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod tests;\n"),
        ("crates/x/src/a.rs", "use crate::b::Two;\npub struct One { a: u8 }\n"),
        ("crates/x/src/b.rs", "use crate::a::One;\npub struct Two;\nimpl Two { fn f() {} }\n"),
        ("crates/x/src/tests.rs", "\n\n\n"),
        ("crates/x/tests/whole.rs", "\n"),
        ("crates/y/Cargo.toml", ""),
        ("crates/y/src/main.rs", "fn f() {}\n#[cfg(test)]\nmod tests {\n}\n"),
    ];

    #[test]
    fn crates_are_measured_and_summed() {
        let measures = measure(&house(FILES));
        let x = Measure {
            name: "x".to_owned(),
            product_lines: 7,
            test_lines: 6,
            modules: 2,
            cycle: ["a", "b"].map(str::to_owned).into(),
            by_methods: Largest { count: 1, name: "b::Two".to_owned() },
            by_fields: Largest { count: 1, name: "a::One".to_owned() },
        };
        assert_eq!(measures[0], x);
        let y = &measures[1];
        assert_eq!((y.product_lines, y.test_lines, y.modules, y.cycle.len()), (1, 3, 0, 0));
        let total = &measures[2];
        assert_eq!((total.product_lines, total.test_lines, total.modules), (8, 9, 2));
        assert_eq!(total.by_fields.name, "x::a::One");
    }

    #[test]
    fn the_table_and_the_objects_hold_the_same() {
        let measures = measure(&house(FILES));
        let table = table(&measures);
        let lines: Vec<Vec<&str>> =
            table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["x", "7", "6", "2", "2", "1", "b::Two", "1", "a::One"]);
        assert_eq!(lines[2], ["y", "1", "3", "0", "0", "-", "-"]);
        assert_eq!(lines[4], ["cycle", "of", "x:", "a", "b"]);
        let json = json(&measures);
        let second = json.lines().nth(1).expect("one object a line");
        assert_eq!(
            second,
            "{\"crate\":\"x\",\"product_lines\":7,\"test_lines\":6,\"modules\":2,\
             \"longest_cycle\":[\"a\",\"b\"],\"most_methods\":{\"count\":1,\"type\":\"b::Two\"},\
             \"most_fields\":{\"count\":1,\"type\":\"a::One\"}},"
        );
    }
}
