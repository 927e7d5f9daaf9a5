//! Grammars against those that the recommendation prints, and rules that it states.

use proptest::prelude::*;

use super::{Document, Schema};
use crate::exi::grammar::{Branch, Coding, DateTime, Event, Grammars, Production, WhiteSpace};
use crate::exi::{Options, Preserve};
use crate::{Error, Limits};

/// The schema of EXI Appendix H.
const ORDER: &str = r#"
  <xs:element name="product"><xs:complexType>
    <xs:sequence maxOccurs="2">
      <xs:element name="description" type="xs:string" minOccurs="0"/>
      <xs:element name="quantity" type="xs:integer"/>
      <xs:element name="price" type="xs:float"/>
    </xs:sequence>
    <xs:attribute name="sku" type="xs:string" use="required"/>
    <xs:attribute name="color" type="xs:string" use="optional"/>
  </xs:complexType></xs:element>
  <xs:element name="order"><xs:complexType><xs:sequence>
    <xs:element ref="product" maxOccurs="unbounded"/>
  </xs:sequence></xs:complexType></xs:element>"#;

fn parse(head: &str, body: &str) -> Result<Schema, Error> {
    let xsd = wrapped(head, body);
    let document = Document { location: "main.xsd", bytes: xsd.as_bytes() };
    Schema::parse(&[document], &mut |_, _| None, &Limits::default())
}

fn wrapped(head: &str, body: &str) -> String {
    let xs = "http://www.w3.org/2001/XMLSchema";
    format!("<xs:schema xmlns:xs='{xs}' {head}>{body}</xs:schema>")
}

fn strict() -> Options {
    Options { strict: true, ..Options::default() }
}

fn grammars(body: &str, options: &Options) -> Grammars {
    let schema = parse("", body).expect("a schema");
    schema.grammars(options, &Limits::default()).expect("grammars")
}

fn refused(body: &str) -> String {
    match parse("", body) {
        Err(Error::Malformed { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

/// A rule as the recommendation writes it: terminal, event code, and what follows of it.
fn show(grammars: &Grammars, rule: u32) -> Vec<String> {
    let at = &grammars.rules[rule as usize];
    let mut lines = Vec::new();
    for (code, production) in at.first.iter().enumerate() {
        lines.push(format!("{} {code}", terminal(grammars, production)));
    }
    let n = at.first.len();
    for (code, branch) in at.second.iter().enumerate() {
        match branch {
            Branch::Leaf(leaf) => lines.push(format!("{} {n}.{code}", terminal(grammars, leaf))),
            Branch::Group(group) => lines.extend(
                group
                    .iter()
                    .enumerate()
                    .map(|(last, leaf)| format!("{} {n}.{code}.{last}", terminal(grammars, leaf))),
            ),
        }
    }
    lines
}

fn terminal(grammars: &Grammars, production: &Production) -> String {
    let local = |name: crate::exi::grammar::QName| {
        &grammars.uris[name.uri as usize].locals[name.local as usize]
    };
    let uri = |uri: u32| &grammars.uris[uri as usize].uri;
    match production.event {
        Event::StartDocument => "SD".into(),
        Event::EndDocument => "ED".into(),
        Event::StartElement(id) => format!("SE({})", local(grammars.elements[id as usize].name)),
        Event::StartElementIn(id) => format!("SE({}:*)", uri(id)),
        Event::StartElementAny => "SE(*)".into(),
        Event::EndElement => "EE".into(),
        Event::Attribute(name, _) => format!("AT({})", local(name)),
        Event::AttributeUntyped(name) => format!("AT({})-", local(name)),
        Event::AttributeIn(id) => format!("AT({}:*)", uri(id)),
        Event::AttributeAny => "AT(*)".into(),
        Event::AttributeAnyUntyped => "AT(*)-".into(),
        Event::AttributeType => "AT(xsi:type)".into(),
        Event::AttributeNil => "AT(xsi:nil)".into(),
        Event::Characters(_) => "CH".into(),
        Event::CharactersUntyped => "CH-".into(),
        Event::Namespace => "NS".into(),
        Event::Comment => "CM".into(),
        Event::ProcessingInstruction => "PI".into(),
        Event::Doctype => "DT".into(),
        Event::EntityReference => "ER".into(),
        Event::SelfContained => "SC".into(),
    }
}

/// The rule behind a terminal.
fn after(grammars: &Grammars, rule: u32, wanted: &str) -> u32 {
    let at = &grammars.rules[rule as usize];
    let second = at.second.iter().flat_map(|branch| match branch {
        Branch::Leaf(leaf) => std::slice::from_ref(leaf),
        Branch::Group(group) => group,
    });
    let mut all = at.first.iter().chain(second);
    let found = all.find(|production| terminal(grammars, production) == wanted);
    found.unwrap_or_else(|| panic!("no {wanted} in {:?}", show(grammars, rule))).next
}

/// The rule behind some terminals of an element.
fn walk(grammars: &Grammars, element: &str, path: &[&str]) -> Vec<String> {
    let first = grammars.elements.iter().find(|candidate| {
        grammars.uris[candidate.name.uri as usize].locals[candidate.name.local as usize] == element
    });
    let first = first.expect("the element").first;
    let rule = path.iter().fold(first, |rule, wanted| after(grammars, rule, wanted));
    show(grammars, rule)
}

fn datatype(grammars: &Grammars, element: &str) -> Coding {
    let found = grammars.elements.iter().find(|candidate| {
        grammars.uris[candidate.name.uri as usize].locals[candidate.name.local as usize] == element
    });
    let rule = &grammars.rules[found.expect("the element").first as usize];
    let typed = rule.first.iter().find_map(|production| match production.event {
        Event::Characters(id) => Some(grammars.datatypes[id as usize].coding.clone()),
        _ => None,
    });
    typed.expect("simple content")
}

#[test]
fn the_example_of_the_recommendation() {
    let made = grammars(ORDER, &Options::default());
    let product = |path: &[&str]| walk(&made, "product", path);
    // EXI §H.3
    let first = [
        "AT(color) 0",
        "AT(sku) 1",
        "EE 2.0",
        "AT(xsi:type) 2.1",
        "AT(xsi:nil) 2.2",
        "AT(*) 2.3",
        "AT(color)- 2.4.0",
        "AT(sku)- 2.4.1",
        "AT(*)- 2.4.2",
        "SE(*) 2.5",
        "CH- 2.6",
    ];
    assert_eq!(product(&[]), first);
    assert_eq!(product(&["AT(*)"]), first);
    let color = [
        "AT(sku) 0",
        "EE 1.0",
        "AT(*) 1.1",
        "AT(sku)- 1.2.0",
        "AT(*)- 1.2.1",
        "SE(*) 1.3",
        "CH- 1.4",
    ];
    assert_eq!(product(&["AT(color)"]), color);
    let sku = [
        "SE(description) 0",
        "SE(quantity) 1",
        "EE 2.0",
        "AT(*) 2.1",
        "AT(*)- 2.2.0",
        "SE(*) 2.3",
        "CH- 2.4",
    ];
    assert_eq!(product(&["AT(sku)"]), sku);
    let copied = ["SE(description) 0", "SE(quantity) 1", "EE 2.0", "SE(*) 2.1", "CH- 2.2"];
    assert_eq!(product(&["AT(sku)", "SE(*)"]), copied);
    assert_eq!(product(&["SE(*)", "CH-"]), copied);
    let twice = ["AT(sku)", "SE(quantity)", "SE(price)", "SE(description)"];
    assert_eq!(product(&twice[..2]), ["SE(price) 0", "EE 1.0", "SE(*) 1.1", "CH- 1.2"]);
    let again = ["SE(description) 0", "SE(quantity) 1", "EE 2", "SE(*) 3.0", "CH- 3.1"];
    assert_eq!(product(&twice[..3]), again);
    assert_eq!(product(&twice), ["SE(quantity) 0", "EE 1.0", "SE(*) 1.1", "CH- 1.2"]);
    let last = ["AT(sku)", "SE(quantity)", "SE(price)", "SE(quantity)", "SE(price)"];
    assert_eq!(product(&last), ["EE 0", "SE(*) 1.0", "CH- 1.1"]);
    let order = |path: &[&str]| walk(&made, "order", path);
    let first = [
        "SE(product) 0",
        "EE 1.0",
        "AT(xsi:type) 1.1",
        "AT(xsi:nil) 1.2",
        "AT(*) 1.3",
        "AT(*)- 1.4.0",
        "SE(*) 1.5",
        "CH- 1.6",
    ];
    assert_eq!(order(&[]), first);
    assert_eq!(order(&["SE(*)"]), ["SE(product) 0", "EE 1.0", "SE(*) 1.1", "CH- 1.2"]);
    let more = ["SE(product) 0", "EE 1", "SE(*) 2.0", "CH- 2.1"];
    assert_eq!(order(&["SE(product)"]), more);
    assert_eq!(order(&["SE(product)", "SE(product)"]), more);
}

#[test]
fn strict_grammars_have_what_the_schema_says_alone() {
    let made = grammars(ORDER, &strict());
    assert_eq!(walk(&made, "product", &[]), ["AT(color) 0", "AT(sku) 1"]);
    // EXI §8.5.4.4.2: xs:string has named sub-types, xs:float has none.
    assert_eq!(walk(&made, "description", &[]), ["CH 0", "AT(xsi:type) 1.0"]);
    assert_eq!(walk(&made, "price", &[]), ["CH 0"]);
    let body = r#"<xs:element name="a" nillable="true"><xs:complexType>
        <xs:attribute name="x"/></xs:complexType></xs:element>
        <xs:element name="b"/><xs:element name="c" type="t" nillable="true"/>
        <xs:simpleType name="t"><xs:union memberTypes="xs:int xs:date"/></xs:simpleType>"#;
    let made = grammars(body, &strict());
    assert_eq!(walk(&made, "a", &[]), ["AT(x) 0", "EE 1", "AT(xsi:nil) 2.0"]);
    let any = ["AT(*) 0", "SE(*) 1", "EE 2", "CH- 3", "AT(xsi:type) 4.0"];
    assert_eq!(walk(&made, "b", &[]), any);
    assert_eq!(walk(&made, "b", &["AT(*)"]), any);
    assert_eq!(walk(&made, "b", &["SE(*)"]), ["SE(*) 0", "EE 1", "CH- 2"]);
    assert_eq!(walk(&made, "c", &[]), ["CH 0", "AT(xsi:type) 1.0", "AT(xsi:nil) 1.1"]);
    let kept = Options { preserve: Preserve { comments: true, ..Preserve::default() }, ..strict() };
    assert_eq!(grammars(body, &kept), made, "strict leaves no place for comments");
}

#[test]
fn all_that_is_kept_has_a_code() {
    let preserve =
        Preserve { comments: true, pis: true, dtd: true, prefixes: true, lexical: false };
    let options = Options { preserve, self_contained: true, ..Options::default() };
    let made = grammars("<xs:element name='a' type='xs:int'/>", &options);
    let first = [
        "CH 0",
        "EE 1.0",
        "AT(xsi:type) 1.1",
        "AT(xsi:nil) 1.2",
        "AT(*) 1.3",
        "AT(*)- 1.4.0",
        "NS 1.5",
        "SC 1.6",
        "SE(*) 1.7",
        "CH- 1.8",
        "ER 1.9",
        "CM 1.10.0",
        "PI 1.10.1",
    ];
    assert_eq!(walk(&made, "a", &[]), first);
    let end = ["EE 0", "SE(*) 1.0", "CH- 1.1", "ER 1.2", "CM 1.3.0", "PI 1.3.1"];
    assert_eq!(walk(&made, "a", &["CH"]), end);
    // EXI §8.5.1
    let content = after(&made, made.start, "SD");
    let expected = ["SE(a) 0", "SE(*) 1", "DT 2.0", "CM 2.1.0", "PI 2.1.1"];
    assert_eq!(show(&made, content), expected);
    let end = after(&made, content, "SE(a)");
    assert_eq!(show(&made, end), ["ED 0", "CM 1.0", "PI 1.1"]);
    // EXI §8.5.2
    let first = made.elements[0].first;
    let fragment = after(&made, after(&made, first, "SC"), "SD");
    assert_eq!(show(&made, fragment), ["SE(a) 0", "SE(*) 1", "ED 2", "CM 3.0", "PI 3.1"]);
}

#[test]
fn fragments_relax_elements_that_are_declared_twice() {
    let body = r#"<xs:element name="root"><xs:complexType><xs:sequence>
          <xs:element name="same" type="xs:int"/>
          <xs:element name="other" type="xs:int"/>
        </xs:sequence><xs:attribute name="id" type="xs:int"/>
          <xs:attribute name="n" type="xs:int"/></xs:complexType></xs:element>
      <xs:element name="same" type="xs:int"/>
      <xs:element name="other" type="xs:int" nillable="true"/>
      <xs:attribute name="n" type="xs:date"/>"#;
    let made = grammars(body, &Options { fragment: true, ..strict() });
    let content = after(&made, made.start, "SD");
    let expected = ["SE(other) 0", "SE(root) 1", "SE(same) 2", "SE(*) 3", "ED 4"];
    assert_eq!(show(&made, content), expected);
    let other = made.rules[content as usize].first[0];
    let Event::StartElement(other) = other.event else { panic!("{other:?}") };
    let relaxed = made.elements[other as usize].first;
    // EXI §8.5.3
    let expected = [
        "AT(id) 0",
        "AT(n) 1",
        "AT(*) 2",
        "SE(other) 3",
        "SE(root) 4",
        "SE(same) 5",
        "SE(*) 6",
        "EE 7",
        "CH- 8",
        "AT(xsi:type) 9.0",
        "AT(xsi:nil) 9.1",
    ];
    assert_eq!(show(&made, relaxed), expected);
    assert_eq!(after(&made, relaxed, "AT(n)"), relaxed);
    let inner = after(&made, relaxed, "SE(same)");
    assert_eq!(show(&made, inner)[5], "CH- 5");
    assert_eq!(after(&made, inner, "SE(other)"), inner);
    let empty = made.types[made.elements[other as usize].type_id as usize].empty;
    assert_eq!(show(&made, empty), ["AT(id) 0", "AT(n) 1", "AT(*) 2", "EE 3"]);
    let datatypes: Vec<_> = made.rules[relaxed as usize].first[..2]
        .iter()
        .map(|production| match production.event {
            Event::Attribute(_, id) => made.datatypes[id as usize].coding.clone(),
            _ => panic!("{production:?}"),
        })
        .collect();
    assert_eq!(datatypes, [Coding::Integer, Coding::String]);
}

#[test]
fn occurrences_and_groups() {
    let content = |model: &str| {
        let body = format!(
            "<xs:group name='g'><xs:choice><xs:element name='c'/><xs:element name='b'/></xs:choice>\
             </xs:group><xs:element name='r'><xs:complexType>{model}</xs:complexType></xs:element>"
        );
        grammars(&body, &strict())
    };
    let made =
        content("<xs:sequence><xs:element name='a' minOccurs='2' maxOccurs='3'/></xs:sequence>");
    assert_eq!(walk(&made, "r", &["SE(a)"]), ["SE(a) 0"]);
    assert_eq!(walk(&made, "r", &["SE(a)", "SE(a)"]), ["SE(a) 0", "EE 1"]);
    assert_eq!(walk(&made, "r", &["SE(a)", "SE(a)", "SE(a)"]), ["EE 0"]);
    let made = content("<xs:group ref='g' minOccurs='0' maxOccurs='unbounded'/>");
    assert_eq!(walk(&made, "r", &[]), ["SE(c) 0", "SE(b) 1", "EE 2"]);
    assert_eq!(walk(&made, "r", &["SE(b)", "SE(c)"]), ["SE(c) 0", "SE(b) 1", "EE 2"]);
    let made =
        content("<xs:all><xs:element name='z'/><xs:element name='y' minOccurs='0'/></xs:all>");
    assert_eq!(walk(&made, "r", &[]), ["SE(z) 0", "SE(y) 1", "EE 2"]);
    assert_eq!(walk(&made, "r", &["SE(z)", "SE(y)"]), ["SE(z) 0", "SE(y) 1", "EE 2"]);
    // A repeated sequence: the order of codes is that of the schema, not of what comes next.
    let made = content(
        "<xs:sequence maxOccurs='unbounded'><xs:element name='a' minOccurs='0'/>\
         <xs:group ref='g'/><xs:any namespace='urn:x ##local' minOccurs='0'/></xs:sequence>",
    );
    let next = ["SE(a) 0", "SE(c) 1", "SE(b) 2", "SE(urn:x:*) 3", "SE(:*) 4", "EE 5"];
    assert_eq!(walk(&made, "r", &["SE(c)"]), next);
    let made = content("<xs:choice/>");
    assert_eq!(walk(&made, "r", &[]), ["EE 0"]);
    let made = content("<xs:sequence maxOccurs='0'><xs:element name='a'/></xs:sequence>");
    assert_eq!(walk(&made, "r", &[]), ["EE 0"]);
}

#[test]
fn content_that_is_not_unique_is_merged() {
    let body = "<xs:element name='r'><xs:complexType><xs:choice>\
        <xs:sequence><xs:element name='a'/><xs:element name='b'/></xs:sequence>\
        <xs:sequence><xs:element name='a'/><xs:element name='c'/></xs:sequence>\
        </xs:choice></xs:complexType></xs:element>";
    let made = grammars(body, &strict());
    assert_eq!(walk(&made, "r", &[]), ["SE(a) 0"]);
    assert_eq!(walk(&made, "r", &["SE(a)"]), ["SE(b) 0", "SE(c) 1"]);
}

#[test]
fn substitution_groups_are_sorted() {
    let body = "<xs:element name='m' abstract='true' type='xs:int'/>\
        <xs:element name='z' substitutionGroup='m'/><xs:element name='b' substitutionGroup='z'/>\
        <xs:element name='r'><xs:complexType><xs:sequence><xs:element ref='m'/>\
        <xs:element name='a'/></xs:sequence></xs:complexType></xs:element>";
    let made = grammars(body, &strict());
    assert_eq!(walk(&made, "r", &[]), ["SE(b) 0", "SE(m) 1", "SE(z) 2"]);
    assert_eq!(walk(&made, "r", &["SE(z)"]), ["SE(a) 0"]);
    assert_eq!(datatype(&made, "b"), Coding::Integer);
}

#[test]
fn attributes_of_derived_types() {
    let body = r#"<xs:attributeGroup name="g"><xs:attribute name="d"/>
          <xs:anyAttribute namespace="urn:b urn:a"/></xs:attributeGroup>
        <xs:complexType name="base"><xs:attribute name="c"/><xs:attribute name="b" use="required"/>
          </xs:complexType>
        <xs:complexType name="more"><xs:complexContent><xs:extension base="base">
          <xs:attributeGroup ref="g"/><xs:attribute name="a"/></xs:extension></xs:complexContent>
          </xs:complexType>
        <xs:complexType name="less"><xs:complexContent><xs:restriction base="base">
          <xs:attribute name="c" use="prohibited"/></xs:restriction></xs:complexContent>
          </xs:complexType>
        <xs:attributeGroup name="h"><xs:attribute name="c" use="prohibited"/></xs:attributeGroup>
        <xs:complexType name="same"><xs:complexContent><xs:restriction base="base">
          <xs:attributeGroup ref="h"/></xs:restriction></xs:complexContent></xs:complexType>
        <xs:element name="x" type="more"/><xs:element name="y" type="less"/>
        <xs:element name="z" type="same"/>"#;
    let made = grammars(body, &strict());
    assert_eq!(walk(&made, "x", &[]), ["AT(a) 0", "AT(b) 1", "AT(urn:a:*) 2", "AT(urn:b:*) 3"]);
    let after_b = ["AT(c) 0", "AT(d) 1", "AT(urn:a:*) 2", "AT(urn:b:*) 3", "EE 4"];
    assert_eq!(walk(&made, "x", &["AT(b)"]), after_b);
    assert_eq!(walk(&made, "x", &["AT(b)", "AT(urn:a:*)"]), after_b);
    assert_eq!(walk(&made, "x", &["AT(b)", "AT(d)"]).len(), 3);
    assert_eq!(walk(&made, "y", &[]), ["AT(b) 0"]);
    assert_eq!(walk(&made, "z", &["AT(b)"]), ["AT(c) 0", "EE 1"]);
    let uris: Vec<&str> = made.uris.iter().skip(4).map(|uri| uri.uri.as_str()).collect();
    assert_eq!(uris, ["urn:a", "urn:b"]);
}

#[test]
fn mixed_content_and_extension() {
    let body = r#"<xs:complexType name="base" mixed="true"><xs:sequence><xs:element name="a"/>
          </xs:sequence><xs:attribute name="k" use="required"/></xs:complexType>
        <xs:complexType name="more"><xs:complexContent mixed="true"><xs:extension base="base">
          <xs:sequence><xs:element name="b" minOccurs="0"/></xs:sequence></xs:extension>
          </xs:complexContent></xs:complexType>
        <xs:element name="x" type="more"/>"#;
    let made = grammars(body, &strict());
    assert_eq!(walk(&made, "x", &[]), ["AT(k) 0"]);
    assert_eq!(walk(&made, "x", &["AT(k)"]), ["SE(a) 0", "CH- 1"]);
    assert_eq!(walk(&made, "x", &["AT(k)", "CH-"]), ["SE(a) 0", "CH- 1"]);
    assert_eq!(walk(&made, "x", &["AT(k)", "SE(a)", "CH-"]), ["SE(b) 0", "EE 1", "CH- 2"]);
}

#[test]
fn datatypes() {
    let simple = |inner: &str| {
        let body = format!(
            "<xs:element name='e'><xs:simpleType>{inner}</xs:simpleType></xs:element>\
             <xs:simpleType name='flag'><xs:restriction base='xs:boolean'>\
             <xs:pattern value='0|1'/></xs:restriction></xs:simpleType>\
             <xs:simpleType name='code'><xs:restriction base='xs:token'>\
             <xs:pattern value='[a-c]'/><xs:pattern value='x'/></xs:restriction></xs:simpleType>"
        );
        datatype(&grammars(&body, &Options::default()), "e")
    };
    let restrict = |base: &str, facets: &str| {
        simple(&format!("<xs:restriction base='{base}'>{facets}</xs:restriction>"))
    };
    let bounded = |lower, bits| Coding::Bounded { lower, bits };
    assert_eq!(restrict("xs:byte", ""), bounded(-128, 8));
    assert_eq!(restrict("xs:short", ""), Coding::Integer);
    assert_eq!(restrict("xs:unsignedInt", ""), Coding::Unsigned);
    assert_eq!(restrict("xs:negativeInteger", ""), Coding::Integer);
    let facets = "<xs:minExclusive value='4'/><xs:maxInclusive value=' 12'/>";
    assert_eq!(restrict("xs:long", facets), bounded(5, 3));
    assert_eq!(restrict("xs:positiveInteger", "<xs:maxExclusive value='4097'/>"), bounded(1, 12));
    assert_eq!(restrict("xs:decimal", facets), Coding::Decimal);
    let far = format!("<xs:minInclusive value='1{}'/>", "0".repeat(60));
    assert_eq!(restrict("xs:integer", &far), Coding::Unsigned);
    assert_eq!(restrict("flag", ""), Coding::BooleanPattern);
    assert_eq!(
        restrict("code", "<xs:maxLength value='1'/>"),
        Coding::Restricted(['a', 'b', 'c', 'x'].into())
    );
    assert_eq!(restrict("xs:NMTOKEN", ""), Coding::String);
    assert_eq!(restrict("xs:anyURI", "<xs:pattern value='[a-z]'/>"), Coding::String);
    assert_eq!(restrict("xs:gMonthDay", ""), Coding::DateTime(DateTime::MonthDay));
    let values = "<xs:enumeration value=' 1'/><xs:enumeration value='+2'/>";
    let Coding::Enumeration { values: made, .. } = restrict("xs:int", values) else { panic!() };
    assert_eq!(&*made, ["1", "+2"]);
    assert_eq!(restrict("xs:QName", values), Coding::String);
    assert!(matches!(restrict("xs:NMTOKENS", values), Coding::List(_)));
    assert_eq!(simple("<xs:union memberTypes='xs:int xs:date'/>"), Coding::String);
    assert!(matches!(simple("<xs:list itemType='xs:int'/>"), Coding::List(_)));
}

#[test]
fn lineage_white_space_and_characters_of_datatypes() {
    let body = "<xs:simpleType name='a'><xs:restriction base='xs:int'/></xs:simpleType>\
        <xs:simpleType name='b'><xs:restriction base='a'><xs:enumeration value='1'/>\
        </xs:restriction></xs:simpleType>\
        <xs:element name='e'><xs:simpleType><xs:restriction base='b'/></xs:simpleType>\
        </xs:element>";
    let made = grammars(body, &Options::default());
    let first = made.elements.last().expect("an element").first;
    let Event::Characters(id) = made.rules[first as usize].first[0].event else { panic!() };
    let found = &made.datatypes[id as usize];
    let names: Vec<&str> = found
        .lineage
        .iter()
        .map(|name| made.uris[name.uri as usize].locals[name.local as usize].as_str())
        .collect();
    assert_eq!(names, ["b", "a", "int", "long", "integer", "decimal", "anySimpleType"]);
    assert_eq!(found.white_space, WhiteSpace::Collapse);
    let lexical: String = found.lexical.iter().flatten().collect();
    assert_eq!(lexical, "\t\n\r +-0123456789");
    let Coding::Enumeration { item, .. } = found.coding else { panic!() };
    assert_eq!(made.datatypes[item as usize].coding, Coding::Integer);
}

#[test]
fn documents_include_import_and_redefine_others() {
    let files = |location: &str| match location {
        "lib/part.xsd" => Some(wrapped(
            "",
            "<xs:include schemaLocation='../lib/more.xsd'/>\
            <xs:complexType name='t'><xs:sequence><xs:element name='a' type='u'/></xs:sequence>\
            </xs:complexType>",
        )),
        "lib/more.xsd" => Some(wrapped(
            "",
            "<xs:include schemaLocation='./part.xsd'/>\
            <xs:simpleType name='u'><xs:restriction base='xs:int'/></xs:simpleType>",
        )),
        "lib/other.xsd" => Some(wrapped(
            "targetNamespace='urn:o' elementFormDefault='qualified'",
            "<xs:element name='o' type='xs:date'/>",
        )),
        _ => None,
    };
    let main = wrapped(
        "targetNamespace='urn:m' xmlns:m='urn:m' xmlns:o='urn:o'",
        "<xs:redefine schemaLocation='lib/part.xsd'><xs:complexType name='t'><xs:complexContent>\
         <xs:extension base='m:t'><xs:sequence><xs:element name='z'/></xs:sequence></xs:extension>\
         </xs:complexContent></xs:complexType></xs:redefine>\
         <xs:import namespace='urn:o' schemaLocation='lib/other.xsd'/>\
         <xs:import namespace='http://www.w3.org/XML/1998/namespace'/>\
         <xs:element name='r'><xs:complexType><xs:sequence><xs:element name='x' type='m:t'/>\
         <xs:element ref='o:o'/></xs:sequence><xs:attribute ref='xml:lang'/></xs:complexType>\
         </xs:element>",
    );
    let document = Document { location: "main.xsd", bytes: main.as_bytes() };
    let mut resolve = |location: &str, _: Option<&str>| files(location).map(String::into_bytes);
    let limits = Limits::default();
    let schema = Schema::parse(&[document], &mut resolve, &limits).expect("a schema");
    let made = schema.grammars(&strict(), &limits).expect("grammars");
    assert_eq!(walk(&made, "r", &[]), ["AT(lang) 0", "SE(x) 1"]);
    assert_eq!(walk(&made, "r", &["SE(x)"]), ["SE(o) 0"]);
    assert_eq!(walk(&made, "x", &["SE(a)"]), ["SE(z) 0"]);
    assert_eq!(datatype(&made, "a"), Coding::Integer);
    let uris: Vec<_> =
        made.uris.iter().skip(4).map(|uri| (uri.uri.as_str(), uri.locals.len())).collect();
    assert_eq!(uris, [("urn:m", 3), ("urn:o", 1)]);
    assert_eq!(made.uris[0].locals, ["a", "x", "z"]);
    let content = after(&made, made.start, "SD");
    assert_eq!(show(&made, content), ["SE(o) 0", "SE(r) 1", "SE(*) 2"]);
}

/// Schemas name each other by addresses that nothing is read from; the caller gives them all.
#[test]
fn an_import_that_is_not_found_may_be_given_beside() {
    let main = wrapped(
        "xmlns:o='urn:o'",
        "<xs:import namespace='urn:o' schemaLocation='http://example.org/o.xsd'/>\
         <xs:element name='r' type='o:t'/>",
    );
    let other = wrapped(
        "targetNamespace='urn:o'",
        "<xs:simpleType name='t'><xs:restriction base='xs:integer'/></xs:simpleType>",
    );
    let given = |texts: &[&String]| {
        let documents: Vec<_> = texts
            .iter()
            .zip(["a.xsd", "b.xsd"])
            .map(|(text, location)| Document { location, bytes: text.as_bytes() })
            .collect();
        Schema::parse(&documents, &mut |_, _| None, &Limits::default())
    };
    assert!(given(&[&main]).is_err());
    for order in [[&main, &other], [&other, &main]] {
        let made = given(&order).unwrap().grammars(&strict(), &Limits::default()).unwrap();
        assert_eq!(datatype(&made, "r"), Coding::Integer);
    }
}

#[test]
fn what_is_not_there_is_named() {
    assert_eq!(refused("<xs:element name='a' type='t'/>"), "main.xsd: type t is not defined");
    assert_eq!(
        refused("<xs:element name='a' type='p:t'/>"),
        "main.xsd: the prefix of p:t is not declared"
    );
    assert!(refused("<xs:include schemaLocation='x/y.xsd'/>").ends_with("no document x/y.xsd"));
    let imported = "<xs:import namespace='urn:a' schemaLocation='../z.xsd'/>";
    assert!(refused(imported).ends_with("no document ../z.xsd"));
    assert!(parse("", "<xs:import namespace='urn:a'/>").is_ok());
    let body = "<xs:group name='g'><xs:sequence><xs:group ref='g'/></xs:sequence></xs:group>\
        <xs:complexType name='t'><xs:group ref='g'/></xs:complexType>";
    assert_eq!(refused(body), "main.xsd: the definition refers to itself");
    let body = "<xs:simpleType name='a'><xs:restriction base='b'/></xs:simpleType>\
        <xs:simpleType name='b'><xs:restriction base='a'/></xs:simpleType>";
    assert_eq!(refused(body), "main.xsd: the definition refers to itself");
    assert!(
        Schema::parse(
            &[Document { location: "x", bytes: b"<a/>" }],
            &mut |_, _| None,
            &Limits::default()
        )
        .is_err()
    );
}

#[test]
fn models_that_grow_without_end_are_refused() {
    let limits = Limits { table_bytes: 1 << 20, ..Limits::default() };
    let refuse = |body: &str| {
        let made = parse("", body).and_then(|schema| schema.grammars(&strict(), &limits));
        assert!(matches!(made, Err(Error::Limit { .. })), "{made:?}");
    };
    let many = "minOccurs='4000000000' maxOccurs='unbounded'";
    refuse(&format!(
        "<xs:complexType name='t'><xs:sequence><xs:element name='a' {many}/></xs:sequence>\
         </xs:complexType>"
    ));
    refuse(&format!(
        "<xs:complexType name='t'><xs:sequence><xs:sequence {many}/></xs:sequence></xs:complexType>"
    ));
    // Each group twice the one before.
    let mut body =
        "<xs:group name='g0'><xs:sequence><xs:element name='a'/></xs:sequence></xs:group>"
            .to_owned();
    for at in 1..60 {
        let before = format!("<xs:group ref='g{}'/>", at - 1);
        body += &format!(
            "<xs:group name='g{at}'><xs:sequence>{before}{before}</xs:sequence></xs:group>"
        );
    }
    refuse(&format!("{body}<xs:complexType name='t'><xs:group ref='g59'/></xs:complexType>"));
    // (a|b)*, a, (a|b){20}: 2^20 states.
    let both = "<xs:element name='a'/><xs:element name='b'/>";
    refuse(&format!(
        "<xs:complexType name='t'><xs:sequence>\
         <xs:choice minOccurs='0' maxOccurs='unbounded'>{both}</xs:choice>\
         <xs:element name='a'/><xs:choice minOccurs='20' maxOccurs='20'>{both}\
         </xs:choice></xs:sequence></xs:complexType>"
    ));
}

#[test]
fn deep_derivation_is_refused() {
    let mut body =
        "<xs:simpleType name='t0'><xs:restriction base='xs:int'/></xs:simpleType>".to_owned();
    for at in 1..2000 {
        let base = at - 1;
        body += &format!(
            "<xs:simpleType name='t{at}'><xs:restriction base='t{base}'/></xs:simpleType>"
        );
    }
    // Sorted by name, the first that is looked at may be far down.
    let made = parse("", &body);
    assert!(matches!(made, Err(Error::Limit { .. })), "{:?}", made.map(|_| ()));
}

#[test]
fn groups_in_groups_are_refused_before_the_stack_is() {
    let (open, close) = ("<xs:sequence>".repeat(100), "</xs:sequence>".repeat(100));
    let mut body = "<xs:complexType name='t'><xs:group ref='g0'/></xs:complexType>".to_owned();
    for at in 0..500 {
        let next = at + 1;
        body +=
            &format!("<xs:group name='g{at}'>{open}<xs:group ref='g{next}'/>{close}</xs:group>");
    }
    body += "<xs:group name='g500'><xs:sequence/></xs:group>";
    let made = parse("", &body);
    assert!(matches!(made, Err(Error::Limit { .. })), "{:?}", made.map(|_| ()));
    // As deep as the limit allows.
    let (open, close) = ("<xs:sequence>".repeat(240), "</xs:sequence>".repeat(240));
    let deep = format!("<xs:complexType name='t'>{open}<xs:any/>{close}</xs:complexType>");
    grammars(&deep, &strict());
}

#[test]
fn built_in_types_alone() {
    let made = Grammars::built_in(&strict(), &Limits::default()).expect("grammars");
    assert_eq!((made.uris.len(), made.named_types.len()), (4, 46));
    assert_eq!(made.uris[3].locals.len(), 46);
    assert!(made.uris[3].locals.is_sorted());
    let content = after(&made, made.start, "SD");
    assert_eq!(show(&made, content), ["SE(*) 0"]);
}

#[test]
fn the_hash_does_not_depend_on_the_order_of_documents() {
    let one = wrapped("targetNamespace='urn:a'", "<xs:element name='z' type='xs:int'/>");
    let two = wrapped("targetNamespace='urn:b'", "<xs:element name='b' type='xs:date'/>");
    let limits = Limits::default();
    let hash = |documents: [&str; 2]| {
        let documents = documents.map(|text| Document { location: text, bytes: text.as_bytes() });
        let schema = Schema::parse(&documents, &mut |_, _| None, &limits).expect("a schema");
        schema.grammars(&Options::default(), &limits).expect("grammars").hash
    };
    assert_eq!(hash([&one, &two]), hash([&two, &one]));
    let other = grammars("<xs:element name='z' type='xs:int'/>", &Options::default()).hash;
    assert_ne!(hash([&one, &two]), other);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any content model compiles or is refused, and survives the cache.
    #[test]
    fn models_of_any_shape(model in model(), fragment: bool, strict: bool) {
        let body = format!(
            "<xs:element name='r'><xs:complexType mixed='{strict}'>{model}\
             <xs:anyAttribute namespace='##other'/></xs:complexType></xs:element>"
        );
        let limits = Limits { table_bytes: 1 << 20, ..Limits::default() };
        let options = Options { fragment, strict, ..Options::default() };
        match parse("", &body).and_then(|schema| schema.grammars(&options, &limits)) {
            Ok(made) => {
                let bytes = made.to_bytes();
                let read = Grammars::from_bytes(&bytes, &Limits::default()).expect("the cache");
                prop_assert_eq!(read, made);
            }
            Err(Error::Limit { .. }) => {}
            Err(other) => return Err(TestCaseError::fail(format!("{other:?}"))),
        }
    }

    /// Damaged schemas and caches are refused without a panic.
    #[test]
    fn damage(at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
        let limits = Limits { table_bytes: 1 << 20, ..Limits::default() };
        let damaged = |mut bytes: Vec<u8>| {
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] ^= byte }
            bytes
        };
        let xsd = damaged(wrapped("", ORDER).into_bytes());
        let document = Document { location: "x", bytes: &xsd };
        if let Ok(schema) = Schema::parse(&[document], &mut |_, _| None, &limits) {
            let _ = schema.grammars(&Options::default(), &limits);
        }
        let whole = grammars(ORDER, &strict()).to_bytes();
        let cache = damaged(whole.clone());
        prop_assert!(cache == whole || Grammars::from_bytes(&cache, &limits).is_err());
    }
}

fn model() -> impl Strategy<Value = String> {
    let occurs = prop::sample::select(vec![
        "",
        "minOccurs='0'",
        "maxOccurs='3'",
        "maxOccurs='unbounded'",
        "minOccurs='0' maxOccurs='unbounded'",
        "minOccurs='2' maxOccurs='5'",
    ]);
    let name = prop::sample::select(vec!["a", "b", "c", "d"]);
    let leaf = (name, occurs.clone(), 0..8_u8).prop_map(|(name, occurs, kind)| match kind {
        0 => format!("<xs:any {occurs}/>"),
        1 => format!("<xs:any namespace='urn:y ##local urn:x' {occurs}/>"),
        _ => format!("<xs:element name='{name}' type='xs:int' {occurs}/>"),
    });
    let group = leaf.prop_recursive(4, 24, 5, move |inner| {
        let tag = prop::sample::select(vec!["sequence", "choice"]);
        (tag, occurs.clone(), prop::collection::vec(inner, 0..5)).prop_map(
            |(tag, occurs, inner)| format!("<xs:{tag} {occurs}>{}</xs:{tag}>", inner.concat()),
        )
    });
    group.prop_map(|inner| format!("<xs:sequence>{inner}</xs:sequence>"))
}
