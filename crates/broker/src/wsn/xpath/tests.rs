use proptest::prelude::*;

use super::*;

const TRACK: &str = r#"<t:track xmlns:t="urn:t" xmlns="urn:d" id="7" t:kind="friend">
<speed unit="m/s">12.5</speed><!-- a comment --><?note here?>
<t:name>Alpha <b>One</b></t:name><n>1</n><n>2</n><n>3</n><empty/></t:track>"#;

fn resolve(prefix: &str) -> Option<String> {
    match prefix {
        "t" | "d" => Some(format!("urn:{prefix}")),
        _ => None,
    }
}

fn of(text: &str) -> Result<bool, Error> {
    let tree = Tree::parse(TRACK).unwrap();
    Filter::compile(text, &resolve)?.is_match(&tree)
}

#[test]
fn expressions_that_are_true() {
    for text in [
        "/t:track",
        "d:speed > 12",
        "d:speed = 12.5 and @id = 7",
        "@id = '7' or false()",
        "/t:track[@t:kind = 'friend']/d:speed[@unit='m/s'] >= 12.5",
        "//d:b = 'One'",
        "//*[local-name() = 'speed']",
        "//*[local-name()='name' and namespace-uri()='urn:t']",
        "contains(t:name, 'pha O')",
        "starts-with(normalize-space(t:name), 'Alpha One')",
        "count(d:n) = 3 and sum(d:n) = 6",
        "d:n[2] = 2 and d:n[last()] = 3 and d:n[position() < 3][2] = 2",
        "d:n = 2 and d:n != 2 and not(d:n > 3)",
        "d:n[. = 2]/preceding-sibling::d:n[1] = 1",
        "d:n[3]/preceding-sibling::*[1] = 2",
        "d:n[1]/following-sibling::d:n[2] = 3",
        "d:n[1]/.. = /t:track",
        "(//d:n)[3] = 3",
        "count(//d:n | //d:speed | //d:n) = 4",
        "ancestor-or-self::t:track and self::node() and self::t:*",
        "//d:b/ancestor::*[last()]/@id = 7",
        "count(//@*) = 3 and count(@*) = 2",
        "name(@t:kind) = 't:kind' and name(d:speed) = 'speed'",
        "//comment() = ' a comment ' and //processing-instruction('note') = 'here'",
        "not(//processing-instruction('other')) and boolean(//text())",
        "string(d:empty) = '' and not(string(d:empty)) and d:empty",
        "2 + 3 * 4 - 6 div 3 = 12 and 7 mod 3 = 1 and -7 mod 3 = -1 and - -1 = 1",
        "1 div 0 = 2 div 0 and number('x') != number('x')",
        "string(1 div 0) = 'Infinity' and string(0 div 0) = 'NaN' and string(-0) = '0'",
        "string(1.50) = '1.5' and string(1000000) = '1000000' and string(true()) = 'true'",
        "floor(1.5) = 1 and ceiling(1.5) = 2 and round(2.5) = 3 and round(-2.5) = -2",
        "substring('12345', 2, 3) = '234' and substring('12345', 2) = '2345'",
        "substring('12345', 1.5, 2.6) = '234' and substring('12345', 0, 3) = '12'",
        "substring-before('1999/04/01', '/') = '1999' and substring-after('a=b', '=') = 'b'",
        "translate('bar', 'abc', 'AB') = 'BAr' and translate('-a-', 'a-', 'A') = 'A'",
        "string-length('é') = 1 and concat('a', 'b', 1) = 'ab1'",
        "following::node() or true()",
        "d:n[1]/following::d:n[2] = 3 and d:n[3]/preceding::d:n[1] = 2",
        "descendant-or-self::node()/d:b and descendant::d:b and child::d:n",
        "div or mod or true()",
        "* and @* and * * 0 = 0 or true()",
        "boolean(1) and not(0) and not('')",
        "number(d:n) = 1 and number() != 1",
        ".//d:b",
        "text()",
        "'a' < 2 or 1 < '2'",
        "(d:speed > 5) and (t:name)",
        "d:n[@x or . = 1]",
        "/",
        "/*/d:n",
        "d:n[1]/@x or not(d:n[1]/@x)",
        "@id/.. = .",
        "/t:track/attribute::id[. = 7]",
    ] {
        assert_eq!(of(text), Ok(true), "{text}");
    }
}

#[test]
fn expressions_that_are_false() {
    for text in [
        "speed",
        "/d:track",
        "d:speed < 12",
        "@kind",
        "0",
        "''",
        "d:n[4]",
        "d:n[0]",
        "../t:track/t:track",
        "d:empty/node()",
        "0 div 0",
        "d:n > 3",
        "d:nothing = d:nothing",
        "d:nothing != 1",
        "//@*/*",
        "@id/following-sibling::*",
        "parent::t:track",
    ] {
        assert_eq!(of(text), Ok(false), "{text}");
    }
}

#[test]
fn what_is_none_of_the_language_is_refused_with_its_offset() {
    for text in [
        "",
        " ",
        "a b",
        "a and",
        "(a",
        "a)",
        "a[",
        "a[1",
        "a]",
        "'a",
        "$x",
        "x:a",
        "1a",
        "a::b",
        "namespace::a",
        "id('x')",
        "lang('en')",
        "unknown()",
        "count()",
        "count(1)",
        "count('a')",
        "not()",
        "1[1]",
        "'a'/b",
        "a/",
        "//",
        "a//",
        "/..a",
        "@",
        "a/1",
        "concat('a')",
        "a | 1",
        "1 | a",
        "()",
        "a,b",
        "t:",
        "t:contains(a)",
        "a[b](c)",
        "!a",
        "a ! b",
        "a = = b",
        "#",
        "..a",
        "true() false()",
        "position(1)",
        "@@a",
        "a:::b",
        "text(1)",
        "comment('a')",
        "::a",
    ] {
        let found = of(text);
        assert!(matches!(found, Err(Error::Syntax { .. })), "{text}: {found:?}");
    }
    let deep = |open: &str, inner: &str, close: &str, count: usize| {
        of(&[open.repeat(count), inner.to_owned(), close.repeat(count)].concat())
    };
    assert!(deep("(", "1", ")", MAX_DEPTH - 1).is_ok());
    assert!(deep("(", "1", ")", MAX_DEPTH).is_err());
    assert!(deep("*[", "1", "]", 1000).is_err());
    assert!(deep("not(", "1", ")", 500).is_err());
    assert!(deep("-", "1", "", MAX_OPERATORS).is_ok());
    assert!(deep("-", "1", "", MAX_OPERATORS + 1).is_err());
    assert!(deep("1+", "1", "", MAX_OPERATORS + 1).is_err());
    assert!(deep("a|", "a", "", MAX_OPERATORS + 1).is_err());
    assert!(of(&"a".repeat(MAX_EXPRESSION_BYTES + 1)).is_err());
}

#[test]
fn a_filter_ends() {
    let text = format!("<a>{}</a>", "<b><c>x</c></b>".repeat(2000));
    let tree = Tree::parse(&text).unwrap();
    for filter in [
        "//*[count(//*[count(//*) > 1]) > 1]",
        "//*[string(/) = 'y']",
        "//b[preceding-sibling::b[preceding-sibling::b[preceding-sibling::b]]][. = 'y']",
        "//* = //*[. = 'y'] or //*[. = //*[. = 'z']]",
        "count(//node()/ancestor::*/descendant::node()/following::node()) = 0",
        "//*[contains(translate(string(/), string(/), string(/)), 'y')]",
        "//*[concat(string(/), string(/), string(/), string(/)) = 'y']",
    ] {
        let filter = Filter::compile(filter, &resolve).unwrap();
        assert_eq!(filter.is_match(&tree), Err(Error::Budget));
    }
    let filter = Filter::compile("//c = 'y' or count(//*) = 4001", &resolve).unwrap();
    assert_eq!(filter.is_match(&tree), Ok(true));
}

proptest! {
    #[test]
    fn any_text_is_an_expression_or_refused(text in "[a-c*/@.:()\\[\\]'= |<>1-3,-]{0,40}") {
        let _ = of(&text);
    }

    #[test]
    fn any_text_at_all_is_refused_or_evaluated(text: String) {
        let _ = of(&text);
    }

    #[test]
    fn parts_of_expressions_in_any_order(parts in prop::collection::vec(prop::sample::select(vec![
        "d:n", "@id", "//", "/", "[", "]", "(", ")", "count(", "string(", "last()", "1", "'x'",
        " and ", " or ", "=", "<", "-", "*", " div ", "..", ".", "ancestor::", "text()", "|", ",",
    ]), 0..14)) {
        let _ = of(&parts.concat());
    }
}
