//! A type's `impl`s stand where the type does, so that its file or folder shows all it can do.

use super::Rule;
use crate::exceptions::{Exception, IMPLS, LIST};
use crate::finding::Report;
use crate::house::House;
use crate::unit::{Stray, Unit};

pub(super) const RULE: Rule = Rule {
    name: "impls",
    demand: "`impl`s of a type only in the top module that defines it, or its trait; those of the \
        root's types in the root",
    check,
};

fn check(house: &House, report: &mut Report) {
    let found: Vec<(&Unit, Stray)> = house
        .units
        .iter()
        .flat_map(|unit| unit.strays().into_iter().map(move |s| (unit, s)))
        .collect();
    let listed = || house.exceptions.iter().filter(|exception| exception.kind == IMPLS);
    let is_of = |list: &Exception, unit: &Unit, stray: &Stray| {
        list.owner == unit.owner && list.name == stray.name && list.modules.contains(&stray.module)
    };
    for (unit, stray) in &found {
        if !listed().any(|list| is_of(list, unit, stray)) {
            let Stray { name, home, module, place, count } = stray;
            let what = format!(
                "{count} `impl` of `{name}` in `{module}`, which is of `{home}`; move it there, or \
                 give this part of it a type of its own here"
            );
            report.add(&place.path, place.line, what);
        }
    }
    for list in listed() {
        let is_needed = |module: &String| {
            found.iter().any(|(unit, stray)| stray.module == *module && is_of(list, unit, stray))
        };
        for module in list.modules.iter().filter(|module| !is_needed(module)) {
            let what = format!(
                "`{module}` of {} has no `impl` of `{}` any more; take it out of the list",
                list.owner, list.name
            );
            report.add(LIST, list.line, what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    fn of(lib: &str, a: &str, deep: &str) -> Vec<String> {
        of_list(lib, a, deep, "")
    }

    fn of_list(lib: &str, a: &str, deep: &str, list: &str) -> Vec<String> {
        let files = [
            ("crates/x/Cargo.toml", ""),
            ("crates/x/src/lib.rs", lib),
            ("crates/x/src/a.rs", a),
            ("crates/x/src/b/mod.rs", "mod deep;\npub struct Own;\npub trait Does {}"),
            ("crates/x/src/b/deep.rs", deep),
            (LIST, list),
        ];
        places(&RULE, &files)
    }

    #[test]
    fn an_impl_beside_its_type_passes() {
        for (lib, a, deep) in [
            ("mod a;\npub struct Whole;\nimpl Whole {}", "", ""),
            ("", "pub struct One<'a>(&'a u8);\nimpl Clone for One<'_> {}\nimpl One<'_> {}", ""),
            ("", "pub enum One {}", "use super::Own;\nimpl Own {}\nimpl super::Own {}"),
            // The trait is of here, or the type is not of this crate.
            ("", "pub struct One;", "use super::Does;\nuse crate::a::One;\nimpl Does for One {}"),
            ("", "use crate::b::Does;\nuse std::rc::Rc;\nimpl Does for Rc<u8> {}", ""),
            ("", "use crate::b::Does;\nimpl<Own> Does for Own {}", ""),
            ("pub struct Whole;", "#[cfg(test)]\nmod tests { impl crate::Whole {} }", ""),
        ] {
            assert_eq!(of(lib, a, deep), [""; 0], "{lib} {a} {deep}");
        }
    }

    #[test]
    fn an_impl_in_a_sibling_is_found_once_a_module() {
        let whole = "mod a;\nmod b;\npub use b::Own;\npub struct Whole;\n";
        for a in [
            "use crate::Whole;\nimpl Whole {}\nimpl Whole {}",
            "use super::*;\nimpl Whole {}",
            "use crate::Own;\nimpl Own {}",
            "use crate::b;\nimpl b::Own {}",
            "use crate::b::Own as Other;\nimpl Clone for Other {}",
            "use crate::b::{Does, Own};\nimpl Does for Own {}",
            "\nimpl From<u8> for &crate::b::Own {}",
        ] {
            assert_eq!(of(whole, a, ""), ["crates/x/src/a.rs:2"], "{a}");
        }
        let lib = format!("{whole}impl Own {{}}");
        assert_eq!(of(&lib, "", ""), ["crates/x/src/lib.rs:5"]);
    }

    #[test]
    fn an_exception_covers_its_modules_and_no_others() {
        let entry = |name: &str, modules: &str| {
            format!("[[impls]]\ncrate = \"x\"\ntype = \"{name}\"\nmodules = {modules}\n")
        };
        let (lib, a) = ("pub struct Whole;", "impl crate::Whole {}");
        assert_eq!(of_list(lib, a, "", &entry("Whole", r#"["a"]"#)), [""; 0]);
        assert_eq!(of_list(lib, a, a, &entry("Whole", r#"["a"]"#)), ["crates/x/src/b/deep.rs:1"]);
        let stale = format!("{LIST}:1");
        assert_eq!(of_list(lib, a, "", &entry("Whole", r#"["a", "b"]"#)), [stale.as_str()]);
        assert_eq!(of_list(lib, "", "", &entry("Whole", r#"["a"]"#)), [stale.as_str()]);
        assert_eq!(of_list(lib, "", "", &entry("b::Own", r#"["a"]"#)), [stale.as_str()]);
    }
}
