//! Schemas of chance, each with documents that are valid by it.

use std::fmt::Write;
use std::sync::Arc;

use longwire_codec::Limits;
use longwire_codec::exi::schema::{Document, Schema};

use crate::data;
use crate::infoset::difference;
use crate::options::{kept, options};

/// Schemas, and documents of each.
const SCHEMAS: u64 = 150;
const DOCUMENTS: usize = 3;

/// A generator (xorshift) whose seed names the case.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    fn of<'a, T: ?Sized>(&mut self, among: &[&'a T]) -> &'a T {
        among[usize::try_from(self.below(among.len() as u64)).unwrap()]
    }
}

/// A simple type: how the schema says it, and how a value comes about.
#[derive(Clone, Copy)]
struct Simple {
    /// A built-in type, or what a restriction, list or union holds.
    declared: &'static str,
    value: fn(&mut Random) -> String,
}

/// Simple types of each coding of EXI (§7.1).
const SIMPLE: &[Simple] = &[
    Simple { declared: "xs:string", value: words },
    Simple { declared: "xs:token", value: |r| format!("t{}", r.below(5)) },
    Simple { declared: "xs:boolean", value: |r| r.of(&["true", "false", "1", "0"]).to_string() },
    Simple { declared: "xs:int", value: |r| (r.below(1 << 32) as i64 - (1 << 31)).to_string() },
    Simple { declared: "xs:integer", value: |r| format!("-{}{:020}", 1 + r.below(9), r.below(99)) },
    Simple { declared: "xs:unsignedLong", value: |r| r.below(u64::MAX).to_string() },
    Simple { declared: "xs:byte", value: |r| (r.below(256) as i64 - 128).to_string() },
    Simple { declared: "xs:decimal", value: decimal },
    Simple { declared: "xs:double", value: double },
    Simple { declared: "xs:float", value: |r| r.of(&["INF", "-INF", "NaN", "1.5E3"]).to_string() },
    Simple { declared: "xs:dateTime", value: |r| format!("{}T{}{}", date(r), time(r), zone(r)) },
    Simple { declared: "xs:date", value: |r| date(r) + zone(r) },
    Simple { declared: "xs:time", value: |r| time(r) + zone(r) },
    Simple { declared: "xs:gYear", value: |r| (1 + r.below(3000)).to_string().pad() },
    Simple { declared: "xs:gYearMonth", value: |r| date(r)[..7].to_string() },
    Simple { declared: "xs:gMonthDay", value: |r| format!("--{}", &date(r)[5..10]) },
    Simple { declared: "xs:hexBinary", value: |r| format!("{:016X}", r.below(u64::MAX)) },
    Simple { declared: "xs:base64Binary", value: |r| r.of(&["", "QUJD", "QQ=="]).to_string() },
    Simple { declared: "xs:NMTOKENS", value: |r| list(r, |r| format!("n{}", r.below(4))) },
    Simple { declared: "xs:anyURI", value: |r| format!("urn:x:{}", r.below(9)) },
    Simple {
        declared: r#"<xs:restriction base="xs:int"><xs:minInclusive value="-5"/>
            <xs:maxExclusive value="4000"/></xs:restriction>"#,
        value: |r| (r.below(4005) as i64 - 5).to_string(),
    },
    Simple {
        declared: r#"<xs:restriction base="xs:integer"><xs:minInclusive value="3"/>
            <xs:maxInclusive value="90000"/></xs:restriction>"#,
        value: |r| (3 + r.below(89_998)).to_string(),
    },
    Simple {
        declared: r#"<xs:restriction base="xs:string"><xs:enumeration value="red"/>
            <xs:enumeration value="green"/><xs:enumeration value="light blue"/></xs:restriction>"#,
        value: |r| r.of(&["red", "green", "light blue"]).to_string(),
    },
    Simple {
        declared: r#"<xs:restriction base="xs:decimal"><xs:enumeration value="1.0"/>
            <xs:enumeration value="-2.50"/></xs:restriction>"#,
        value: |r| r.of(&["1.0", "-2.50"]).to_string(),
    },
    Simple {
        declared: r#"<xs:restriction base="xs:string"><xs:pattern value="[a-d]{2}-[0-9]+"/>
            </xs:restriction>"#,
        value: |r| format!("{}{}-{}", r.of(&["a", "b"]), r.of(&["c", "d"]), r.below(1000)),
    },
    Simple {
        declared: r#"<xs:restriction base="xs:boolean"><xs:pattern value="true|false|0|1"/>
            </xs:restriction>"#,
        value: |r| r.of(&["true", "false", "1", "0"]).to_string(),
    },
    Simple {
        declared: r#"<xs:list itemType="xs:int"/>"#,
        value: |r| list(r, |r| r.below(100).to_string()),
    },
    Simple {
        declared: r#"<xs:list><xs:simpleType><xs:restriction base="xs:string">
            <xs:enumeration value="on"/><xs:enumeration value="off"/></xs:restriction>
            </xs:simpleType></xs:list>"#,
        value: |r| list(r, |r| r.of(&["on", "off"]).to_string()),
    },
    Simple {
        declared: r#"<xs:union memberTypes="xs:int xs:boolean"/>"#,
        value: |r| r.of(&["17", "true", "0"]).to_string(),
    },
];

/// Years of four digits at least.
trait Pad {
    fn pad(self) -> String;
}

impl Pad for String {
    fn pad(self) -> String {
        format!("{self:0>4}")
    }
}

fn words(r: &mut Random) -> String {
    match r.below(4) {
        0 => String::new(),
        1 => "the same".to_string(),
        2 => format!("Grün {} €", r.below(10)),
        _ => format!(" a  b\u{1f600}{} ", r.below(1000)),
    }
}

fn decimal(r: &mut Random) -> String {
    let sign = r.of(&["", "-"]);
    format!("{sign}{}.{:03}", r.below(100_000), r.below(1000))
}

fn double(r: &mut Random) -> String {
    let sign = r.of(&["", "-"]);
    format!("{sign}{}E{}", 1 + r.below(1 << 40), r.below(600) as i64 - 300)
}

fn date(r: &mut Random) -> String {
    format!("{:04}-{:02}-{:02}", 1900 + r.below(200), 1 + r.below(12), 1 + r.below(28))
}

fn time(r: &mut Random) -> String {
    let fraction = r.of(&["", ".5", ".125", ".007"]);
    format!("{:02}:{:02}:{:02}{fraction}", r.below(24), r.below(60), r.below(60))
}

fn zone(r: &mut Random) -> &'static str {
    r.of(&["", "Z", "+02:00", "-11:30", "+14:00"])
}

fn list(r: &mut Random, item: fn(&mut Random) -> String) -> String {
    let items: Vec<String> = (0..r.below(4)).map(|_| item(r)).collect();
    items.join(" ")
}

/// A type of elements.
enum Type {
    Simple(Simple),
    Complex { attributes: Vec<(String, Simple, bool)>, content: Content },
}

enum Content {
    Empty,
    Value(Simple),
    /// `sequence`, `choice` or `all`; whether text may stand between; how often the group.
    Group {
        kind: &'static str,
        mixed: bool,
        times: u64,
        particles: Vec<Particle>,
    },
}

struct Particle {
    name: String,
    of: Type,
    nillable: bool,
    min: u64,
    max: u64,
}

fn simple(r: &mut Random) -> Simple {
    SIMPLE[usize::try_from(r.below(SIMPLE.len() as u64)).unwrap()]
}

fn any_type(r: &mut Random, depth: u64) -> Type {
    if depth == 0 || r.one_in(3) {
        return Type::Simple(simple(r));
    }
    let attributes =
        (0..r.below(4)).map(|n| (format!("at{}", 9 - n), simple(r), r.one_in(2))).collect();
    let content = match r.below(6) {
        0 => Content::Empty,
        1 => Content::Value(simple(r)),
        _ => {
            let kind: &str = r.of(&["sequence", "sequence", "choice", "all"]);
            let is_all = kind == "all";
            let particle = |n: u64, r: &mut Random| Particle {
                name: format!("{}{n}", r.of(&["e", "b", "row"])),
                of: any_type(r, depth - 1),
                nillable: r.one_in(5),
                min: r.below(2),
                max: if is_all { 1 } else { 1 + r.below(3) * r.below(3) },
            };
            let particles: Vec<_> = (0..1 + r.below(4)).map(|n| particle(n, r)).collect();
            // A repeated group of what may be absent could be read in two ways (XML Schema Part 1
            // §3.8.6).
            let once = |particle: &Particle| particle.min == 1 && particle.max == 1;
            let repeats = !is_all && particles.iter().all(once);
            let times = if repeats { 1 + r.below(3) } else { 1 };
            Content::Group { kind, mixed: r.one_in(4), times, particles }
        }
    };
    Type::Complex { attributes, content }
}

/// What a declaration says of a simple type: an attribute, or a child.
fn declare(simple: &Simple, xsd: &mut String, head: &str, tag: &str) {
    // Writing to a string cannot fail.
    let _ = match simple.declared.starts_with('<') {
        true => write!(
            xsd,
            "<xs:{tag} {head}><xs:simpleType>{}</xs:simpleType></xs:{tag}>",
            simple.declared
        ),
        false => write!(xsd, "<xs:{tag} {head} type=\"{}\"/>", simple.declared),
    };
}

impl Particle {
    fn declare(&self, xsd: &mut String, is_global: bool) {
        let mut head = format!("name=\"{}\"", self.name);
        if !is_global {
            let _ = write!(head, " minOccurs=\"{}\"", self.min);
            let _ = match self.max {
                5.. => write!(head, " maxOccurs=\"unbounded\""),
                max => write!(head, " maxOccurs=\"{max}\""),
            };
        }
        if self.nillable {
            head += " nillable=\"true\"";
        }
        match &self.of {
            Type::Simple(simple) => declare(simple, xsd, &head, "element"),
            Type::Complex { attributes, content } => {
                let mixed = matches!(content, Content::Group { mixed: true, .. });
                let _ = write!(xsd, "<xs:element {head}><xs:complexType mixed=\"{mixed}\">");
                declare_content(attributes, content, xsd);
                xsd.push_str("</xs:complexType></xs:element>");
            }
        }
    }

    fn write(&self, r: &mut Random, xml: &mut String, is_root: bool) {
        let _ = write!(xml, "<{}", self.name);
        if is_root {
            xml.push_str(" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"");
        }
        let nil = self.nillable && r.one_in(2);
        if nil {
            xml.push_str(" xsi:nil=\"true\"");
        }
        if let Type::Complex { attributes, .. } = &self.of {
            for (name, simple, required) in attributes {
                if *required || r.one_in(2) {
                    let _ = write!(xml, " {name}=\"{}\"", (simple.value)(r));
                }
            }
        }
        xml.push('>');
        match &self.of {
            _ if nil => {}
            Type::Simple(simple) => xml.push_str(&(simple.value)(r)),
            Type::Complex { content, .. } => write_content(content, r, xml),
        }
        let _ = write!(xml, "</{}>", self.name);
    }
}

fn declare_content(attributes: &[(String, Simple, bool)], content: &Content, xsd: &mut String) {
    match content {
        Content::Empty => declare_attributes(attributes, xsd),
        Content::Value(simple) => {
            // An extension wants a base with a name.
            let base = if simple.declared.starts_with('<') { "xs:string" } else { simple.declared };
            let _ = write!(xsd, "<xs:simpleContent><xs:extension base=\"{base}\">");
            declare_attributes(attributes, xsd);
            xsd.push_str("</xs:extension></xs:simpleContent>");
        }
        Content::Group { kind, times, particles, .. } => {
            let _ = write!(xsd, "<xs:{kind} maxOccurs=\"{times}\">");
            for particle in particles {
                particle.declare(xsd, false);
            }
            let _ = write!(xsd, "</xs:{kind}>");
            declare_attributes(attributes, xsd);
        }
    }
}

fn declare_attributes(attributes: &[(String, Simple, bool)], xsd: &mut String) {
    for (name, simple, required) in attributes {
        let usage = if *required { "required" } else { "optional" };
        declare(simple, xsd, &format!("name=\"{name}\" use=\"{usage}\""), "attribute");
    }
}

fn write_content(content: &Content, r: &mut Random, xml: &mut String) {
    match content {
        Content::Empty => {}
        Content::Value(simple) => xml.push_str(&(simple.value)(r)),
        Content::Group { kind, mixed, times, particles } => {
            let text = |r: &mut Random, xml: &mut String| {
                if *mixed && r.one_in(2) {
                    let _ = write!(xml, "text {} ", r.below(3));
                }
            };
            for _ in 0..1 + r.below(*times) {
                let chosen = r.below(particles.len() as u64);
                // Members of `all` stand in any order.
                let turn = if *kind == "all" { particles.len().saturating_sub(1) } else { 0 };
                for (n, particle) in particles.iter().cycle().skip(turn).enumerate() {
                    if n == particles.len() {
                        break;
                    }
                    if *kind == "choice" && n as u64 != chosen {
                        continue;
                    }
                    for _ in 0..particle.min + r.below(particle.max - particle.min + 1) {
                        text(r, xml);
                        particle.write(r, xml, false);
                    }
                }
            }
            text(r, xml);
        }
    }
}

/// Valid documents survive every mode, strictly too.
#[test]
fn valid_documents_survive_with_their_schemas() {
    let (mut streams, mut bytes, mut xml_bytes) = (0, 0, 0);
    for seed in 0..SCHEMAS {
        let mut r = Random::new(seed);
        let content = any_type(&mut r, 3);
        let root =
            Particle { name: "root".to_string(), of: content, nillable: false, min: 1, max: 1 };
        let mut xsd = String::from(
            "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" \
             elementFormDefault=\"unqualified\">",
        );
        root.declare(&mut xsd, true);
        xsd.push_str("</xs:schema>");
        let documents: Vec<String> = (0..DOCUMENTS)
            .map(|_| {
                let mut xml = String::new();
                root.write(&mut r, &mut xml, true);
                xml
            })
            .collect();
        let main = Document { location: "made.xsd", bytes: xsd.as_bytes() };
        let schema = Schema::parse(&[main], &mut |_, _| None, &Limits::default())
            .unwrap_or_else(|e| panic!("seed {seed}: {e}: {xsd}"));
        for alignment in ["bit-packed", "byte-packed", "pre-compression", "compression"] {
            for more in ["strict", "", "lexical", "strict,lexical", "comments,pis,prefixes"] {
                let options = options(&format!("{alignment},{more}"));
                let grammars = Arc::new(schema.grammars(&options, &Limits::default()).unwrap());
                let rules = kept(&options, true);
                for xml in &documents {
                    let case = || format!("seed {seed}, {alignment},{more}: {xml} by {xsd}");
                    let stream = data::encode(xml.as_bytes(), &options, Some(&grammars))
                        .unwrap_or_else(|e| panic!("{e}: {}", case()));
                    let read = data::decode(&stream, &options, Some(&grammars))
                        .unwrap_or_else(|e| panic!("{e}: {}", case()));
                    let wrong = difference(xml, &read, &rules);
                    assert!(wrong.is_none(), "{wrong:?}: {}", case());
                    streams += 1;
                    bytes += stream.len();
                    xml_bytes += xml.len();
                }
            }
        }
    }
    println!("{streams} streams, {xml_bytes} B of XML in {bytes} B");
}
