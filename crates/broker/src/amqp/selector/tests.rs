use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

impl Fields for BTreeMap<&str, Operand> {
    fn field(&self, name: &str) -> Operand {
        self.get(name).cloned().unwrap_or(Operand::Null)
    }
}

fn fields() -> BTreeMap<&'static str, Operand> {
    BTreeMap::from([
        ("n", Operand::Integer(5)),
        ("x", Operand::Real(1.5)),
        ("kind", Operand::Text("track".into())),
        ("phone", Operand::Text("12993".into())),
        ("quote", Operand::Text("it's 100%".into())),
        ("yes", Operand::Bool(true)),
    ])
}

#[test]
fn conditions_are_true_false_or_unknown() {
    for (selector, fits) in [
        ("n = 5", true),
        ("n <> 5", false),
        ("n > 4 AND n < 6", true),
        ("n BETWEEN 5 AND 6", true),
        ("n NOT BETWEEN 1 AND 4", true),
        ("2 * n + 1 = 11 or false", true),
        ("-n = 0 - 5", true),
        ("n / 0 = 1", false),
        ("x * 2 = 3", true),
        ("x >= 1.5e0 and x < 0x10", true),
        ("kind IN ('a', 'track')", true),
        ("kind NOT IN ('a')", true),
        ("kind like 'tr%'", true),
        ("kind not like '_r%k'", false),
        ("phone LIKE '12%3'", true),
        ("quote = 'it''s 100%'", true),
        ("quote LIKE '%100!%' ESCAPE '!'", true),
        ("kind LIKE '%!%' ESCAPE '!'", false),
        ("gone IS NULL", true),
        ("kind IS NOT NULL", true),
        ("gone = 1", false),
        ("NOT gone = 1", false),
        ("gone = 1 OR n = 5", true),
        ("gone = 1 AND n = 5", false),
        ("NOT (gone = 1 AND n = 4)", true),
        ("yes", true),
        ("yes = TRUE AND NOT (n = 6)", true),
        ("kind = 5", false),
        ("kind <> 5", false),
        ("n = 5.0", true),
        ("9223372036854775807 + n > 0", false),
    ] {
        let parsed = parse(selector).unwrap_or_else(|error| panic!("{selector}: {error}"));
        assert_eq!(parsed.fits(&fields()), fits, "{selector}");
    }
}

#[test]
fn what_is_no_selector_is_refused() {
    for selector in [
        "",
        "n =",
        "n = = 5",
        "(n = 5",
        "n = 5)",
        "'open",
        "n IN ()",
        "n IN (5)",
        "n BETWEEN 1",
        "n LIKE 5",
        "a LIKE 'x' ESCAPE 'yy'",
        "a LIKE 'x!' ESCAPE '!'",
        "n NOT = 5",
        "AND",
        "n ; 5",
        "n IS 5",
        "5 5",
        "1.2.3",
        "99999999999999999999",
        "n !",
    ] {
        assert!(parse(selector).is_err(), "{selector}");
    }
    assert!(parse(&format!("{}1{}", "(".repeat(65), ")".repeat(65))).is_err());
    assert!(parse(&format!("{} yes", "NOT ".repeat(65))).is_err());
    assert!(parse(&"x".repeat(MAX_SELECTOR_BYTES + 1)).is_err());
    // A chain of the longest kind needs no more stack than there is.
    let chain = format!("{}1 = 1", "1+".repeat(1000));
    assert!(!parse(&chain).unwrap().fits(&fields()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_text_is_read_or_refused(text in "[nx'()=<>+*/%_.,0-9a-zA-Z \u{e9}-]{0,60}") {
        if let Ok(selector) = parse(&text) {
            selector.fits(&fields());
        }
    }

    #[test]
    fn words_in_any_order_are_read_or_refused(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "n", "5", "'a'", "AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "IS", "NULL", "(",
                ")", "=", "<", "+", "-", ",", "ESCAPE", "x",
            ]),
            0..20,
        ),
    ) {
        if let Ok(selector) = parse(&words.join(" ")) {
            selector.fits(&fields());
        }
    }
}
