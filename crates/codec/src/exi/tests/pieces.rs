//! Events of typed streams are those that were encoded, however a stream is laid out and cut.

use super::super::schema::Document;
use super::*;

const SEEDS: u64 = 6;

/// Cheap numbers that are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        noise(&mut self.0) % bound
    }

    fn of<'a>(&mut self, among: &[&'a str]) -> &'a str {
        among[self.below(among.len())]
    }
}

/// A built-in type or what a simple type holds, and values as EXI has them come back.
type Simple = (&'static str, fn(&mut Random) -> String);

const SIMPLE: [Simple; 16] = [
    ("s:string", words),
    ("s:boolean", |r| r.of(&["true", "false"]).to_owned()),
    ("s:int", |r| format!("-{}", 1 + r.below(1 << 30))),
    ("s:unsignedLong", |r| (r.below(1 << 31) * r.below(1 << 31)).to_string()),
    ("s:integer", |r| format!("-{}{:030}", 1 + r.below(9), r.below(99))),
    ("s:decimal", |r| format!("{}.{}", r.below(100_000), 1 + r.below(9))),
    ("s:double", |r| format!("{}7E-{}", 1 + r.below(1000), 1 + r.below(200))),
    ("s:dateTime", |r| format!("2020-02-{}T10:{}:07Z", 10 + r.below(19), 10 + r.below(50))),
    ("s:date", |r| format!("20{}-12-24", 10 + r.below(90))),
    ("s:hexBinary", |r| "AB5".chars().cycle().take(r.below(9) * 2).collect()),
    ("s:base64Binary", |r| "QUJD".repeat(r.below(4) * r.below(4) * r.below(300))),
    (
        "<s:restriction base='s:int'><s:minInclusive value='-5'/><s:maxExclusive value='4000'/>\
         </s:restriction>",
        |r| r.below(4000).to_string(),
    ),
    (
        "<s:restriction base='s:string'><s:enumeration value='red'/>\
         <s:enumeration value='a &lt; b'/><s:enumeration value='gr\u{fc}n'/></s:restriction>",
        |r| r.of(&["red", "a < b", "grün"]).into(),
    ),
    ("<s:restriction base='s:string'><s:pattern value='[a-d]{2}-[0-9]+'/></s:restriction>", |r| {
        format!("{}-{}", r.of(&["ab", "cd"]), r.below(30))
    }),
    ("<s:list itemType='s:token'/>", |r| {
        (0..1 + r.below(4)).map(|_| r.of(&["one", "zwölf", "3"])).collect::<Vec<_>>().join(" ")
    }),
    ("<s:union memberTypes='s:int s:boolean'/>", |r| r.of(&["17", "true", "-4"]).into()),
];

fn words(r: &mut Random) -> String {
    match r.below(5) {
        0 => String::new(),
        1 => "the same".to_owned(),
        2 => format!("<Grün & {} €>", r.below(10)),
        3 => "\u{1f600}ab".repeat(r.below(100)),
        _ => format!("text {}", r.below(1000)),
    }
}

fn schema_of_all() -> String {
    let mut xsd = String::from(
        "<s:schema xmlns:s='http://www.w3.org/2001/XMLSchema' xmlns='urn:s' \
         targetNamespace='urn:s'>",
    );
    let (mut elements, mut attributes) = (String::new(), String::new());
    for (n, (declared, _)) in SIMPLE.iter().enumerate() {
        let base = format!("<s:restriction base='{declared}'/>");
        let held = if declared.starts_with('<') { declared } else { base.as_str() };
        xsd += &format!("<s:simpleType name='t{n:02}'>{held}</s:simpleType>");
        xsd += &format!("<s:element name='e{n:02}' type='t{n:02}'/>");
        elements += &format!("<s:element ref='e{n:02}'/>");
        attributes += &format!("<s:attribute name='a{n:02}' type='t{n:02}'/>");
    }
    xsd + &format!(
        "<s:element name='x'/><s:element name='nil' type='s:int' nillable='true'/>\
         <s:element name='row' type='row'/><s:complexType name='row' mixed='true'>\
         <s:choice minOccurs='0' maxOccurs='unbounded'>{elements}<s:element ref='x'/>\
         <s:element ref='nil'/><s:element ref='row'/><s:any namespace='##other' \
         processContents='lax'/></s:choice>{attributes}</s:complexType></s:schema>"
    )
}

const BOUND: &str = " xmlns:s=\"urn:s\" xmlns:o=\"urn:o\" \
                     xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"";

/// A document, and its events as [`said`] has them.
struct Made {
    r: Random,
    entities: bool,
    xml: String,
    said: Vec<String>,
}

impl Made {
    fn escaped(&mut self, text: &str) {
        let mut out = Vec::new();
        crate::xml::escape(text, true, &mut out);
        self.xml += std::str::from_utf8(&out).unwrap();
    }

    fn start(&mut self, name: &str, bound: &str) {
        self.xml += &format!("<{name}{bound}");
        let (prefix, local) = name.split_once(':').unwrap();
        self.said.push(format!("<urn:{prefix} {local}"));
    }

    fn attribute(&mut self, name: &str, value: &str) {
        self.xml += &format!(" {name}=\"");
        self.escaped(value);
        self.xml.push('"');
        let local = name.rsplit(':').next().unwrap();
        let value = if local == "type" { &value[2..] } else { value };
        self.said.push(format!("@{local}={value}"));
    }

    fn text(&mut self, text: &str) {
        self.escaped(text);
        self.said.push(format!("={text}"));
    }

    fn end(&mut self, name: &str) {
        self.xml += &format!("</{name}>");
        self.said.push(">".to_owned());
    }

    fn row(&mut self, name: &str, depth: usize, bound: &str) {
        self.start(name, bound);
        for (n, (_, value)) in SIMPLE.iter().enumerate() {
            if self.r.below(8) == 0 {
                let value = value(&mut self.r);
                self.attribute(&format!("a{n:02}"), &value);
            }
        }
        self.xml.push('>');
        for _ in 0..self.r.below([2, 9, 16, 30][depth]) {
            self.item(depth);
        }
        self.end(name);
    }

    fn item(&mut self, depth: usize) {
        let n = self.r.below(SIMPLE.len());
        let value = SIMPLE[n].1(&mut self.r);
        match self.r.below(16) {
            0..5 => self.leaf(&format!("s:e{n:02}"), None, &value),
            5..8 if depth > 0 => self.row("s:row", depth - 1, ""),
            8 | 9 => {
                let text = words(&mut self.r);
                self.text(&text);
            }
            10 => {
                let text = format!("Grüße {}", "c".repeat(self.r.below(9) * self.r.below(300)));
                self.xml += &format!("<!--{text}-->");
                self.said.push(format!("!{text}"));
            }
            11 => {
                self.xml += "<?do it now?>";
                self.said.push("?do|it now".to_owned());
            }
            12 => self.leaf("s:x", Some(("xsi:type", &format!("s:t{n:02}"))), &value),
            13 => self.leaf("s:nil", Some(("xsi:nil", "true")), ""),
            14 if self.entities => {
                self.xml += "&e;";
                self.said.push("&e".to_owned());
            }
            _ => self.leaf(&format!("o:u{}", n % 5), Some(("k", &value)), &value),
        }
    }

    fn leaf(&mut self, name: &str, attribute: Option<(&str, &str)>, value: &str) {
        self.start(name, "");
        if let Some((name, value)) = attribute {
            self.attribute(name, value);
        }
        self.xml.push('>');
        self.text(value);
        self.end(name);
    }

    /// What of it a stream with these options says.
    fn kept(&self, options: &Options) -> Vec<String> {
        let kept = options.preserve;
        let filtered = self.said.iter().filter(|one| match one.as_bytes()[0] {
            b'!' => kept.comments && !options.strict,
            b'?' => kept.pis && !options.strict,
            _ => true,
        });
        joined(filtered.cloned())
    }
}

/// Texts that stand beside each other are one, and none if that is empty.
fn joined(events: impl Iterator<Item = String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for event in events {
        match (event.strip_prefix('='), out.last_mut().filter(|last| last.starts_with('='))) {
            (Some(more), Some(last)) => last.push_str(more),
            (Some(""), None) => {}
            _ => out.push(event),
        }
    }
    out
}

fn make(seed: u64, fragment: bool, dtd: bool) -> Made {
    let mut made = Made { r: Random(seed), entities: dtd, xml: String::new(), said: Vec::new() };
    if dtd {
        made.xml += "<!DOCTYPE s:row SYSTEM \"a.dtd\" [<!ENTITY e \"x\">]>";
        made.said.push("D s:row||a.dtd|<!ENTITY e \"x\">".to_owned());
    }
    for _ in 0..if fragment { 3 } else { 1 } {
        made.row("s:row", 3, BOUND);
    }
    made
}

/// An event but for prefixes and layout.
fn said(event: &Event<'_>) -> Option<String> {
    Some(match *event {
        Event::StartElement { uri, local, .. } => format!("<{uri} {local}"),
        Event::EndElement => ">".to_owned(),
        Event::Attribute { uri, local: "type", value, .. } if !uri.is_empty() => {
            format!("@type={}", value.rsplit(':').next().unwrap())
        }
        Event::Attribute { local, value, .. } => format!("@{local}={value}"),
        Event::Type { local, .. } => format!("@type={local}"),
        Event::Characters(text) => format!("={text}"),
        Event::Comment(text) => format!("!{text}"),
        Event::ProcessingInstruction { target, data } => format!("?{target}|{data}"),
        Event::Doctype { name, public, system, text } => {
            format!("D {name}|{public}|{system}|{text}")
        }
        Event::EntityReference(name) => format!("&{name}"),
        _ => return None,
    })
}

/// How a stream comes.
#[derive(Clone, Copy, Debug)]
enum Cut {
    Whole,
    /// So many bytes at a time.
    Every(usize),
    /// Any number of bytes at a time, by a seed.
    Random(u64),
    /// Pieces of three, and the rest from there at once.
    ThenWhole(usize),
    /// All, and then that this was all.
    ThenNothing,
}

fn cuts(stream: &[u8], cut: Cut) -> Vec<&[u8]> {
    let mut pieces: Vec<&[u8]> = Vec::new();
    match cut {
        Cut::Whole => pieces.push(stream),
        Cut::Every(size) => pieces.extend(stream.chunks(size)),
        Cut::Random(seed) => {
            let (mut r, mut rest) = (Random(seed), stream);
            while !rest.is_empty() {
                let most = [2, 9, 300][r.below(3)];
                let (piece, more) = rest.split_at(r.below(most).min(rest.len()));
                pieces.push(piece);
                rest = more;
            }
        }
        Cut::ThenWhole(at) => {
            let (first, rest) = stream.split_at(at);
            pieces.extend(first.chunks(3));
            pieces.push(rest);
        }
        Cut::ThenNothing => pieces.extend([stream, &[]]),
    }
    pieces
}

/// All events as they are and as [`said`] has them, and what ended them.
type Read = (Vec<String>, Vec<String>, Option<Error>);

fn events(decoder: &mut Decoder<'_>, stream: &[u8], cut: Cut) -> Read {
    decoder.reset();
    let (mut all, mut short) = (Vec::new(), Vec::new());
    let pieces = cuts(stream, cut);
    for (at, piece) in pieces.iter().enumerate() {
        if let Err(error) = decoder.push(piece, at + 1 == pieces.len()) {
            return (all, short, Some(error));
        }
        loop {
            match decoder.next() {
                Ok(Some(event)) => {
                    all.push(format!("{event:?}"));
                    short.extend(said(&event));
                }
                Ok(None) => break,
                Err(error) => return (all, short, Some(error)),
            }
        }
    }
    (all, joined(short.into_iter()), None)
}

/// The text, also where it ends in an error.
fn text(decoder: &mut Decoder<'_>, stream: &[u8], cut: Cut) -> (Vec<u8>, Option<Error>) {
    decoder.reset();
    let mut out = Vec::new();
    let pieces = cuts(stream, cut);
    for (at, piece) in pieces.iter().enumerate() {
        let pushed = decoder.push(piece, at + 1 == pieces.len());
        if let Err(error) = pushed.and_then(|()| decoder.text(&mut out)) {
            return (out, Some(error));
        }
    }
    (out, None)
}

/// Options of all kinds; not all go with each alignment.
fn choices(alignment: Alignment) -> Vec<Options> {
    let name = |uri: &str, local: &str| [uri.to_owned(), local.to_owned()];
    let all = Preserve { comments: true, pis: true, dtd: true, prefixes: true, lexical: false };
    let notes = Preserve { comments: true, pis: true, ..Preserve::default() };
    let base = options(alignment);
    let mapped = |local: &str, to: &str| {
        (name("http://www.w3.org/2001/XMLSchema", local), name("http://www.w3.org/2009/exi", to))
    };
    let mut choices = vec![
        base.clone(),
        Options { strict: true, ..base.clone() },
        Options { preserve: all, ..base.clone() },
        Options { preserve: Preserve { lexical: true, ..notes }, ..base.clone() },
        Options { preserve: Preserve { lexical: true, ..all }, ..base.clone() },
        Options { preserve: notes, value_partition_capacity: Some(3), ..base.clone() },
        Options { value_partition_capacity: Some(0), ..base.clone() },
        Options { value_max_length: Some(8), preserve: notes, ..base.clone() },
        Options {
            datatype_map: vec![mapped("decimal", "string"), mapped("int", "integer")],
            ..base.clone()
        },
        Options { fragment: true, preserve: notes, ..base.clone() },
    ];
    if matches!(alignment, Alignment::BitPacked | Alignment::BytePacked) {
        for preserve in [all, notes, Preserve::default()] {
            choices.push(Options {
                self_contained: true,
                self_contained_elements: ["row", "e02", "x", "nil"]
                    .map(|one| name("urn:s", one))
                    .into(),
                value_partition_capacity: (!preserve.dtd).then_some(2),
                preserve,
                ..base.clone()
            });
        }
    }
    choices
}

fn schema() -> Schema {
    let xsd = schema_of_all();
    let document = Document { location: "", bytes: xsd.as_bytes() };
    Schema::parse(&[document], &mut |_, _| None, &Limits::default()).unwrap()
}

fn decoder(options: &Options, grammars: &Arc<Grammars>, limits: &Limits) -> Decoder<'static> {
    let grammars = grammars.clone();
    Decoder::new(options, Box::new(move |_| Ok(Some(grammars.clone()))), limits)
}

#[test]
fn events_are_those_that_were_encoded_however_a_stream_is_cut() {
    let (schema, limits) = (schema(), Limits::default());
    let mut r = Random(5);
    for mut options in ALIGNMENTS.into_iter().flat_map(choices) {
        for seed in 0..SEEDS {
            options.block_size = [1, 2, 3, 7, 60, 1_000_000][r.below(6)];
            let grammars = Arc::new(schema.grammars(&options, &limits).unwrap());
            let mut decoder = decoder(&options, &grammars, &limits);
            let made = make(seed, options.fragment, options.preserve.dtd && !options.fragment);
            let stream = encode(made.xml.as_bytes(), &options, Some(&grammars), &limits).unwrap();
            let whole = events(&mut decoder, &stream, Cut::Whole);
            assert_eq!(whole.2, None, "{options:?}");
            let expected = made.kept(&options);
            let at = whole.1.iter().zip(&expected).position(|(a, b)| a != b);
            assert!(
                whole.1 == expected,
                "{:?} is not {:?}, {options:?}: {}",
                at.map(|at| &whole.1[at]),
                at.map(|at| &expected[at]),
                made.xml
            );
            let (first, _) = text(&mut decoder, &stream, Cut::Whole);
            for cut in [
                Cut::Every(1),
                Cut::Every(7),
                Cut::Random(seed),
                Cut::Random(seed + 99),
                Cut::ThenWhole(r.below(stream.len())),
                Cut::ThenNothing,
                Cut::Whole,
            ] {
                let pieces = events(&mut decoder, &stream, cut);
                assert!(pieces == whole, "{cut:?}, {options:?}: {}", made.xml);
                let (pieces, error) = text(&mut decoder, &stream, cut);
                assert!(pieces == first && error.is_none(), "{cut:?}, {options:?}: {}", made.xml);
            }
        }
    }
}

#[test]
fn damaged_streams_say_the_same_however_they_are_cut() {
    let schema = schema();
    let limits = Limits {
        output_bytes: 1 << 20,
        table_bytes: 1 << 20,
        message_bytes: 1 << 20,
        ..Limits::default()
    };
    let mut r = Random(11);
    for mut options in ALIGNMENTS.into_iter().flat_map(choices) {
        options.block_size = [1, 7, 60][r.below(3)];
        let grammars = Arc::new(schema.grammars(&options, &limits).unwrap());
        let made = make(3, options.fragment, options.preserve.dtd && !options.fragment);
        let stream = encode(made.xml.as_bytes(), &options, Some(&grammars), &limits).unwrap();
        let mut decoder = decoder(&options, &grammars, &limits);
        let packed = matches!(options.alignment, Alignment::BitPacked | Alignment::BytePacked);
        for case in 0..60 {
            let mut changed = stream.clone();
            let at = r.below(changed.len());
            if case % 3 == 0 {
                changed.truncate(at.max(1));
            } else {
                changed[at] ^= 1 << r.below(8);
            }
            let whole = events(&mut decoder, &changed, Cut::Whole);
            let whole_text = text(&mut decoder, &changed, Cut::Whole);
            for cut in [Cut::Every(1), Cut::Every(7), Cut::Random(case)] {
                let pieces = events(&mut decoder, &changed, cut);
                same(&whole.0, &whole.2, &pieces.0, &pieces.2, packed);
                let pieces = text(&mut decoder, &changed, cut);
                same(&whole_text.0, &whole_text.1, &pieces.0, &pieces.1, packed);
            }
        }
    }
}

/// `b`, in pieces, says what `a` does. Limits are looked at now and then only, and the end may have
/// been said before what is behind it comes.
fn same<T: PartialEq + std::fmt::Debug>(
    a: &[T],
    a_error: &Option<Error>,
    b: &[T],
    b_error: &Option<Error>,
    exact: bool,
) {
    let limit = |error: &Option<Error>| matches!(error, Some(Error::Limit { .. }));
    if limit(a_error) || limit(b_error) {
        return;
    }
    if b_error.as_ref().is_some_and(|error| error.to_string().contains("behind the end")) {
        assert!(a_error.is_some() && b.starts_with(a));
        return;
    }
    assert_eq!(a_error.is_some(), b_error.is_some(), "{a_error:?}, {b_error:?}");
    if exact {
        assert_eq!(a_error, b_error);
    }
    assert!(a == b, "{a_error:?}");
}

#[test]
fn an_error_in_a_text_says_where_it_is() {
    let preserve = Preserve { comments: true, ..Preserve::default() };
    let options = Options { preserve, ..options(Alignment::BytePacked) };
    let limits = Limits::default();
    let xml = format!("<a><!--one=-two-->{}</a>", "<b>text</b>".repeat(40));
    let mut stream = encode(xml.as_bytes(), &options, None, &limits).unwrap();
    let at = stream.windows(2).position(|two| two == b"=-").unwrap();
    stream[at] = b'-';
    let mut decoder = Decoder::new(&options, Box::new(|_| Ok(None)), &limits);
    let whole = text(&mut decoder, &stream, Cut::Whole);
    assert_eq!(whole, text(&mut decoder, &stream, Cut::Every(1)));
    assert!(matches!(whole.1, Some(Error::Malformed { offset, .. }) if offset == at as u64 + 5));
}
