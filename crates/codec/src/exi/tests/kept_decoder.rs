//! One decoder for many documents: what was read before has no influence.

use super::super::schema::Document;
use super::*;

/// What a decoder says to a stream: its text, and its events to the end or the error.
type Said = (Result<Vec<u8>, Error>, Vec<String>, Option<Error>);

fn ask(decoder: &mut Decoder<'_>, stream: &[u8], piece: usize) -> Said {
    let mut text = Vec::new();
    let whole = decoder.decode(stream, &mut text).map(|()| text);
    decoder.reset();
    let (mut events, mut fault) = (Vec::new(), None);
    let count = stream.len().div_ceil(piece);
    'stream: for (at, block) in stream.chunks(piece).enumerate() {
        if let Err(error) = decoder.push(block, at + 1 == count) {
            fault = Some(error);
            break;
        }
        loop {
            match decoder.next() {
                Ok(Some(event)) => events.push(format!("{event:?}")),
                Ok(None) => break,
                Err(error) => {
                    fault = Some(error);
                    break 'stream;
                }
            }
        }
    }
    (whole, events, fault)
}

const SCHEMA: &[u8] = b"<s:schema xmlns:s='http://www.w3.org/2001/XMLSchema' \
    targetNamespace='urn:s'><s:element name='r'><s:complexType><s:sequence>\
    <s:element name='a' type='s:int' maxOccurs='9'/><s:element name='b' type='s:string'/>\
    <s:any minOccurs='0' maxOccurs='9' processContents='lax'/></s:sequence>\
    <s:attribute name='c' type='s:decimal'/></s:complexType></s:element></s:schema>";

fn documents() -> Vec<String> {
    let names = |from: u32| (from..from + 60).map(|n| format!("<n{n} y='{n}'>v{n}</n{n}>"));
    let mut all = vec![
        "<r/>".to_owned(),
        "<a x='1'><b>v1</b><b>v1</b><c>v2</c><a>v1</a></a>".to_owned(),
        "<b xmlns='urn:x'><a y='v1'>v1</a><r xmlns='urn:s'>q</r></b>".to_owned(),
        "<p:a xmlns:p='urn:p' xmlns='urn:d'><b p:x='1' xmlns:q='urn:p'><q:c/></b></p:a>".to_owned(),
        "<s:r xmlns:s='urn:s' c='1.5'><a>1</a><a>2</a><b>v1</b></s:r>".to_owned(),
        "<s:r xmlns:s='urn:s'><a>7</a><b>text</b><a>8</a><x y='z'/><s:r>w</s:r></s:r>".to_owned(),
    ];
    for from in [0, 40] {
        all.push(format!("<m>{}{}</m>", names(from).collect::<String>(), "<k>é</k>".repeat(80)));
    }
    all
}

fn choices() -> Vec<Options> {
    let preserve = Preserve { prefixes: true, ..Preserve::default() };
    let mut all: Vec<Options> = ALIGNMENTS.map(options).into();
    all.push(Options { preserve, ..Options::default() });
    all.push(Options { value_partition_capacity: Some(3), ..Options::default() });
    all.push(Options { block_size: 5, ..options(Alignment::Compression) });
    all
}

#[test]
fn what_was_read_before_has_no_influence() {
    let limits = Limits::default();
    let document = Document { location: "x", bytes: SCHEMA };
    let schema = Schema::parse(&[document], &mut |_, _| None, &limits).unwrap();
    let resolve =
        |options: &Options| schema.grammars(options, &limits).map(|of| Some(Arc::new(of)));
    let mut streams = Vec::new();
    for choice in choices() {
        let choice = Options { options_in_header: true, ..choice };
        let grammars = resolve(&choice).unwrap();
        for xml in documents() {
            let stream = encode(xml.as_bytes(), &choice, grammars.as_ref(), &limits).unwrap();
            streams.push(stream);
        }
    }
    let mut seed = 7_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(seed >> 33).unwrap() % below
    };
    // Tables that some of the documents are too large for.
    for table_bytes in [limits.table_bytes, 6000] {
        let limits = Limits { table_bytes, ..limits };
        let mut kept = Decoder::new(&Options::default(), Box::new(resolve), &limits);
        for _ in 0..600 {
            let mut stream = streams[random(streams.len())].clone();
            match random(4) {
                0 => stream.truncate(random(stream.len())),
                1 => {
                    let at = random(stream.len());
                    stream[at] ^= 1 << random(8);
                }
                _ => {}
            }
            let piece = [1, 7, 1 << 20][random(3)];
            let mut new = Decoder::new(&Options::default(), Box::new(resolve), &limits);
            assert_eq!(ask(&mut kept, &stream, piece), ask(&mut new, &stream, piece));
        }
    }
}

#[test]
fn elements_that_can_be_read_alone_leave_nothing() {
    let limits = Limits::default();
    let options = Options { self_contained: true, ..Options::default() };
    let alone =
        Options { self_contained_elements: vec![["", "b"].map(str::to_owned)], ..options.clone() };
    let xml = b"<a><b><c>x</c><b><c>x</c></b></b><c>x</c></a>";
    let stream = encode(xml, &alone, None, &limits).unwrap();
    let mut kept = Decoder::new(&options, Box::new(|_| Ok(None)), &limits);
    for cut in (0..=stream.len()).rev() {
        let mut new = Decoder::new(&options, Box::new(|_| Ok(None)), &limits);
        assert_eq!(ask(&mut kept, &stream[..cut], 3), ask(&mut new, &stream[..cut], 3));
        assert!(ask(&mut kept, &stream, 1 << 20).0.is_ok());
    }
}

#[test]
fn events_before_an_error_are_handed_out_and_the_error_stays() {
    let xml = documents().pop().unwrap();
    let stream = encode(xml.as_bytes(), &Options::default(), None, &Limits::default()).unwrap();
    let new = || Decoder::new(&Options::default(), Box::new(|_| Ok(None)), &Limits::default());
    for cut in 1..stream.len() {
        let mut decoder = new();
        let (_, whole, fault) = ask(&mut decoder, &stream[..cut], cut);
        let (_, pieces, _) = ask(&mut new(), &stream[..cut], 1);
        assert_eq!(whole, pieces, "{cut}");
        assert!(fault.is_some(), "{cut}");
        assert_eq!(decoder.next().err(), fault, "{cut}");
    }
}

#[test]
fn typed_values_are_the_same_in_pieces() {
    let limits = Limits::default();
    let document = Document { location: "", bytes: SCHEMA };
    let schema = Schema::parse(&[document], &mut |_, _| None, &limits).unwrap();
    let xml = "<s:r xmlns:s='urn:s' c='1.5'><a>1</a><a>2</a><a>34</a><b>v1</b></s:r>";
    for alignment in ALIGNMENTS {
        let choice = Options { block_size: 2, ..options(alignment) };
        let grammars = Arc::new(schema.grammars(&choice, &limits).unwrap());
        let stream = encode(xml.as_bytes(), &choice, Some(&grammars), &limits).unwrap();
        let again = grammars.clone();
        let resolve = Box::new(move |_: &Options| Ok(Some(again.clone())));
        let mut decoder = Decoder::new(&choice, resolve, &limits);
        for piece in [1, stream.len()] {
            let (_, events, fault) = ask(&mut decoder, &stream, piece);
            assert_eq!(fault, None);
            let said = events.concat();
            for text in ["\"1.5\"", "(\"1\")", "(\"2\")", "(\"34\")"] {
                assert!(said.contains(text), "{alignment:?}, {piece}: {said}");
            }
        }
    }
}
