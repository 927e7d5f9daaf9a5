//! Our grammars beside those of EXIficient, rule by rule: names, productions in the order of their
//! codes, datatypes, what follows, and where `xsi:type` and `xsi:nil` may stand.
//!
//! `interop/exificient/check` runs this with `$LONGWIRE_EXIFICIENT_GRAMMARS`, the program that says
//! what EXIficient makes of a schema. `$LONGWIRE_SCHEMAS` may name a folder of further schemas,
//! such as the W3C's suite: differences there are printed, as in the suite are models that XML
//! Schema forbids.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use longwire_codec::Limits;
use longwire_codec::exi::grammar::{Branch, Coding, DateTime, Event, QName, Rule};
use longwire_codec::exi::{Grammars, Options};

/// A grammar of the peer.
struct Theirs {
    kind: String,
    typable: bool,
    nillable: bool,
    empty: i64,
    content: i64,
    /// Event, what follows, grammar of the element.
    productions: Vec<(String, i64, i64)>,
}

/// What the peer makes of a schema.
#[derive(Default)]
struct Answer {
    uris: Vec<(String, Vec<String>)>,
    types: BTreeMap<String, i64>,
    elements: BTreeMap<String, i64>,
    attributes: BTreeMap<String, String>,
    document: i64,
    fragment: i64,
    grammars: BTreeMap<i64, Theirs>,
    refused: Option<String>,
}

impl Answer {
    fn read(lines: impl Iterator<Item = String>) -> Option<Self> {
        let mut answer = Self::default();
        for line in lines {
            let fields: Vec<&str> = line.split('\t').collect();
            let text = |at: usize| fields.get(at).copied().unwrap_or_default().to_owned();
            let number = |at: usize| text(at).parse::<i64>().expect("a number");
            match fields[0] {
                "Z" => return Some(answer),
                "X" => answer.refused = Some(text(2)),
                "U" => {
                    let locals = text(2).split_whitespace().map(str::to_owned).collect();
                    answer.uris.push((text(1), locals));
                }
                "T" => drop(answer.types.insert(text(1), number(2))),
                "E" => drop(answer.elements.insert(text(1), number(2))),
                "A" => drop(answer.attributes.insert(text(1), comparable(&text(2)))),
                "D" => answer.document = number(1),
                "F" => answer.fragment = number(1),
                "G" => drop(answer.grammars.insert(number(1), Theirs::read(&fields))),
                _ => {}
            }
        }
        None
    }
}

impl Theirs {
    fn read(fields: &[&str]) -> Self {
        let number = |text: &str| text.parse::<i64>().expect("a number");
        let production = |text: &&str| {
            let mut parts = text.rsplitn(3, '|');
            let (child, next) = (parts.next().map(number), parts.next().map(number));
            let event = comparable(parts.next().unwrap_or_default());
            (event, next.unwrap_or(-1), child.unwrap_or(-1))
        };
        Self {
            kind: fields[2].to_owned(),
            typable: fields[3] == "true",
            nillable: fields[4] == "true",
            empty: number(fields[5]),
            content: number(fields[6]),
            productions: fields[7..].iter().map(production).collect(),
        }
    }
}

/// Of values that are not strings the peer says a form of its own: then their number counts.
fn comparable(shown: &str) -> String {
    let parts = shown
        .split_once("ENUMERATION(")
        .and_then(|(head, rest)| rest.rsplit_once(';').map(|(values, item)| (head, values, item)));
    match parts {
        Some((head, values, item))
            if !item.starts_with("STRING") && !item.starts_with("RESTRICTED") =>
        {
            format!("{head}ENUMERATION({};{item}", values.matches(',').count())
        }
        _ => shown.to_owned(),
    }
}

fn escape(text: &str) -> String {
    let one = |c: char| match c {
        c if c.is_ascii_alphanumeric() => c.to_string(),
        c => format!("%{:x}.", u32::from(c)),
    };
    text.chars().map(one).collect()
}

/// Two sets of grammars side by side.
struct Pair<'a> {
    ours: &'a Grammars,
    strict: &'a Grammars,
    theirs: &'a Answer,
    seen: BTreeSet<(u32, i64)>,
    open: Vec<(u32, i64, String)>,
    differences: Vec<String>,
}

impl Pair<'_> {
    fn name(&self, name: QName) -> String {
        let uri = &self.ours.uris[name.uri as usize];
        format!("{{{}}}{}", uri.uri, uri.locals[name.local as usize])
    }

    fn datatype(&self, id: u32) -> String {
        match &self.ours.datatypes[id as usize].coding {
            Coding::Base64 => "BINARY_BASE64".to_owned(),
            Coding::Hex => "BINARY_HEX".to_owned(),
            Coding::BooleanPattern => "BOOLEAN_FACET".to_owned(),
            Coding::Unsigned => "UNSIGNED_INTEGER".to_owned(),
            Coding::Bounded { lower, bits } => format!("BOUNDED({lower},{bits})"),
            Coding::DateTime(parts) => format!("DATE({})", date(*parts)),
            Coding::Restricted(set) => {
                format!("RESTRICTED({})", escape(&String::from_iter(&**set)))
            }
            Coding::Enumeration { values, item } => {
                let values: String = values.iter().map(|value| escape(value) + ",").collect();
                format!("ENUMERATION({values};{})", self.datatype(*item))
            }
            Coding::List(item) => format!("LIST({})", self.datatype(*item)),
            plain => format!("{plain:?}").to_uppercase(),
        }
    }

    fn event(&self, event: Event) -> String {
        let uri = |uri: u32| &self.ours.uris[uri as usize].uri;
        let shown = match event {
            Event::StartElement(id) => {
                format!("SE{}", self.name(self.ours.elements[id as usize].name))
            }
            Event::StartElementIn(id) => format!("SE{{{}}}*", uri(id)),
            Event::StartElementAny => "SE*".to_owned(),
            Event::EndElement => "EE".to_owned(),
            Event::EndDocument => "ED".to_owned(),
            Event::Attribute(name, id) => format!("AT{}={}", self.name(name), self.datatype(id)),
            Event::AttributeIn(id) => format!("AT{{{}}}*", uri(id)),
            Event::AttributeAny => "AT*".to_owned(),
            Event::Characters(id) => format!("CH={}", self.datatype(id)),
            Event::CharactersUntyped => "CH*".to_owned(),
            other => format!("{other:?}"),
        };
        comparable(&shown)
    }

    fn push(&mut self, ours: u32, theirs: i64, path: String) {
        if theirs >= 0 && self.seen.insert((ours, theirs)) {
            self.open.push((ours, theirs, path));
        }
    }

    fn tables(&mut self) {
        let ours = self.ours.uris.iter();
        let ours: Vec<_> = ours.map(|uri| (uri.uri.clone(), uri.locals.clone())).collect();
        if ours != self.theirs.uris {
            self.differences.push(format!("names {ours:?}, theirs {:?}", self.theirs.uris));
        }
        let attributes = self.ours.global_attributes.iter();
        let attributes: BTreeMap<String, String> = attributes
            .map(|(&name, &id)| (self.name(name), comparable(&self.datatype(id))))
            .collect();
        if attributes != self.theirs.attributes {
            let theirs = &self.theirs.attributes;
            self.differences.push(format!("attributes {attributes:?}, theirs {theirs:?}"));
        }
        if self.ours.global_elements.len() != self.theirs.elements.len() {
            self.differences.push("other global elements".to_owned());
        }
        let types = self.ours.named_types.iter();
        let types: BTreeMap<String, u32> =
            types.map(|(&name, &id)| (self.name(name), id)).collect();
        if !types.keys().eq(self.theirs.types.keys()) {
            self.differences.push("other types".to_owned());
        }
        for (name, &theirs) in &self.theirs.types {
            let Some(&id) = types.get(name) else { continue };
            let ours = &self.ours.types[id as usize];
            self.push(ours.first, theirs, name.clone());
            let empty = self.theirs.grammars[&theirs].empty;
            self.push(ours.empty, empty, format!("{name} empty"));
        }
    }

    fn rules(&mut self) {
        while let Some((rule, theirs, path)) = self.open.pop() {
            let (ours, other) = (&self.ours.rules[rule as usize], &self.theirs.grammars[&theirs]);
            let events: Vec<_> = ours.first.iter().map(|found| self.event(found.event)).collect();
            let differs = |at: &usize| {
                events.get(*at) != other.productions.get(*at).map(|(event, _, _)| event)
            };
            if let Some(at) = (0..events.len().max(other.productions.len())).find(differs) {
                let theirs = other.productions.get(at);
                let what = format!("{path}: code {at} is {:?}, theirs {theirs:?}", events.get(at));
                self.differences.push(what);
                continue;
            }
            if other.kind != "D" && kind(ours) != other.kind {
                self.differences.push(format!("{path}: {}, theirs {}", kind(ours), other.kind));
            }
            if let Some(content) = leaf(ours, |event| event == Event::StartElementAny) {
                self.push(content, other.content, format!("{path} content"));
            }
            for (found, (event, next, child)) in ours.first.iter().zip(&other.productions) {
                let path = format!("{path} {event}");
                if let Event::StartElement(id) = found.event {
                    self.element(id, *child, &path);
                }
                if *next >= 0 {
                    self.push(found.next, *next, path);
                }
            }
        }
    }

    fn element(&mut self, id: u32, theirs: i64, path: &str) {
        let other = &self.theirs.grammars[&theirs];
        let first = self.strict.elements[id as usize].first;
        let strict = &self.strict.rules[first as usize];
        let has = |wanted| leaf(strict, |event| event == wanted).is_some();
        let found = (has(Event::AttributeType), has(Event::AttributeNil));
        if found != (other.typable, other.nillable) {
            self.differences.push(format!("{path}: xsi:type and xsi:nil {found:?} where strict"));
        }
        let element = &self.ours.elements[id as usize];
        let empty = self.ours.types[element.type_id as usize].empty;
        self.push(element.first, theirs, path.to_owned());
        self.push(empty, other.empty, format!("{path} empty"));
    }
}

fn date(parts: DateTime) -> &'static str {
    match parts {
        DateTime::Year => "gYear",
        DateTime::YearMonth => "gYearMonth",
        DateTime::Date => "date",
        DateTime::DateTime => "dateTime",
        DateTime::Month => "gMonth",
        DateTime::MonthDay => "gMonthDay",
        DateTime::Day => "gDay",
        DateTime::Time => "time",
    }
}

/// What follows an undeclared production.
fn leaf(rule: &Rule, wanted: impl Fn(Event) -> bool) -> Option<u32> {
    rule.second.iter().find_map(|branch| match branch {
        Branch::Leaf(leaf) if wanted(leaf.event) => Some(leaf.next),
        _ => None,
    })
}

fn kind(rule: &Rule) -> &'static str {
    if leaf(rule, |event| event == Event::AttributeType).is_some() {
        "F"
    } else if leaf(rule, |event| event == Event::AttributeAny).is_some() {
        "S"
    } else {
        "C"
    }
}

/// What differs, and how many pairs of rules were looked at; `None` if we refuse the schema.
fn compare(path: &Path, theirs: &Answer) -> Result<(Vec<String>, usize), longwire_codec::Error> {
    let (schema, limits) = (super::parse(path)?, Limits::default());
    let make = |strict, fragment| {
        let options = Options { strict, fragment, ..Options::default() };
        schema.grammars(&options, &limits)
    };
    let strict = make(true, true)?;
    let (mut differences, mut pairs) = (Vec::new(), 0);
    for (fragment, start) in [(true, theirs.fragment), (false, theirs.document)] {
        let ours = make(false, fragment)?;
        let (seen, open) = (BTreeSet::new(), Vec::new());
        let mut pair =
            Pair { ours: &ours, strict: &strict, theirs, seen, open, differences: Vec::new() };
        pair.tables();
        let content = ours.rules[ours.start as usize].first[0].next;
        pair.push(content, start, "start".to_owned());
        pair.rules();
        pairs += pair.seen.len();
        differences.append(&mut pair.differences);
    }
    Ok((differences, pairs))
}

/// Figures of some schemas.
#[derive(Default)]
struct Sum {
    schemas: usize,
    refused_by_peer: usize,
    refused_by_us: usize,
    equal: usize,
    different: usize,
    pairs: usize,
}

impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} schemas: {} the same ({} pairs of rules), {} different, {} refused by us, {} by it",
            self.schemas,
            self.equal,
            self.pairs,
            self.different,
            self.refused_by_us,
            self.refused_by_peer
        )
    }
}

fn ask(program: &str, schemas: &[PathBuf]) -> Sum {
    let command = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut peer = command.expect("the peer starts");
    let mut questions = peer.stdin.take().expect("its input");
    let mut answers = BufReader::new(peer.stdout.take().expect("its output")).lines();
    let mut sum = Sum { schemas: schemas.len(), ..Sum::default() };
    for schema in schemas {
        writeln!(questions, "{}", schema.display()).expect("a question");
        questions.flush().expect("a question");
        let lines = answers.by_ref().map(|line| line.expect("a line"));
        let answer = Answer::read(lines).expect("an answer");
        if answer.refused.is_some() {
            sum.refused_by_peer += 1;
            continue;
        }
        match compare(schema, &answer) {
            Err(error) => {
                sum.refused_by_us += 1;
                println!("{}: {error}", schema.display());
            }
            Ok((differences, pairs)) => {
                sum.pairs += pairs;
                let different = usize::from(!differences.is_empty());
                sum.different += different;
                sum.equal += 1 - different;
                if let Some(first) = differences.first() {
                    let first: String = first.chars().take(400).collect();
                    println!("{}: {} differences: {first}", schema.display(), differences.len());
                }
            }
        }
    }
    drop(questions);
    peer.wait().expect("the peer ends");
    sum
}

#[test]
fn the_peer_makes_the_same_grammars() {
    let Ok(program) = std::env::var("LONGWIRE_EXIFICIENT_GRAMMARS") else {
        println!("no EXIficient: no grammars compared");
        return;
    };
    let mut found = Vec::new();
    if let Some(data) = super::data() {
        super::schemas(&data, &mut found);
    }
    let sum = ask(&program, &found);
    println!("data: {sum}");
    if let Some(folder) = std::env::var_os("LONGWIRE_SCHEMAS") {
        let mut others = Vec::new();
        super::schemas(Path::new(&folder), &mut others);
        println!("others: {}", ask(&program, &others));
    }
    assert_eq!((sum.different, sum.refused_by_us), (0, 0));
}
