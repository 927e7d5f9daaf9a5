//! Messages and streams that are made to hurt: each is a function of its length in bytes, so that
//! time and memory can be held against it. The tests and the bench program `codec_hostile` read it.

#![allow(dead_code)] // Each who reads it uses its share.

/// A kind of bad input.
#[derive(Clone, Copy)]
pub(crate) struct Trap {
    /// What is bad about it.
    pub(crate) name: &'static str,
    /// About so many bytes of it.
    pub(crate) make: fn(usize) -> Vec<u8>,
}

const fn trap(name: &'static str, make: fn(usize) -> Vec<u8>) -> Trap {
    Trap { name, make }
}

/// `open`, the unit as often as it fits, `close`.
fn around(open: &str, unit: &str, close: &str, len: usize) -> Vec<u8> {
    [open, &unit.repeat(len / unit.len()), close].concat().into_bytes()
}

/// `open`, ever other units, `close`.
fn numbered(open: &str, unit: impl Fn(usize) -> String, close: &str, len: usize) -> Vec<u8> {
    let mut text = open.to_owned();
    let mut at = 0;
    while text.len() < len {
        text += &unit(at);
        at += 1;
    }
    (text + close).into_bytes()
}

/// Elements in one another, closed again.
fn nested(len: usize) -> Vec<u8> {
    let depth = len / 7;
    ["<a>".repeat(depth), "</a>".repeat(depth)].concat().into_bytes()
}

/// Elements in one another, each with a namespace of its own and a name from the outermost.
fn nested_namespaces(len: usize) -> Vec<u8> {
    let depth = len / 40;
    let mut text: String =
        (0..depth).map(|at| format!("<p0:a xmlns:p{at}=\"urn:{at}\">")).collect();
    text += &"</p0:a>".repeat(depth);
    text.into_bytes()
}

/// Each entity ten of the one before: what it becomes must never be made.
fn laughs(len: usize) -> Vec<u8> {
    let mut text = "<!DOCTYPE r [<!ENTITY e0 \"ha\">".to_owned();
    for at in 1..20 {
        text += &format!("<!ENTITY e{at} \"{}\">", format!("&e{};", at - 1).repeat(10));
    }
    around(&(text + "]><r>"), "&e19;", "</r>", len)
}

/// Half the bytes declare default attributes, half are elements that would get all of them.
fn default_attributes(len: usize) -> Vec<u8> {
    let open = String::from_utf8(numbered(
        "<!DOCTYPE r [<!ATTLIST e",
        |at| format!(" a{at} CDATA \"v\""),
        ">]><r>",
        len / 2,
    ));
    around(&open.unwrap_or_default(), "<e/>", "</r>", len / 2)
}

/// Names that only their ends tell apart.
fn long_names(len: usize) -> Vec<u8> {
    let stem = "n".repeat(len.isqrt() / 2);
    numbered("<r>", |at| format!("<{stem}{at}/>"), "</r>", len)
}

/// As many elements with attributes as attributes in an element.
fn square_of_attributes(len: usize) -> Vec<u8> {
    let side = (len / 6).isqrt();
    let attributes: String = (0..side).map(|at| format!(" a{at}=\"\"")).collect();
    let element = format!("<e{attributes}/>");
    around("<r>", &element, "</r>", len.max(element.len()))
}

/// UTF-16 with a surrogate that stands alone at the end.
fn lone_surrogate(len: usize) -> Vec<u8> {
    let text = "<a>".encode_utf16().chain(std::iter::repeat_n(0x78, len / 2)).chain([0xd800]);
    [0xfeff].into_iter().chain(text).flat_map(u16::to_be_bytes).collect()
}

/// A message of many kinds of things as they are usual, for what damages its stream.
pub(crate) fn usual_xml(len: usize) -> Vec<u8> {
    numbered(
        "<?xml version=\"1.0\"?>\n<t:tracks xmlns:t=\"urn:example:tracks\">\n",
        |at| {
            let mixed = at.wrapping_mul(0x9e37_79b9) >> 7 & 0xffff;
            format!(
                "  <t:track id=\"{at}\"><lat>{}.{mixed}</lat><note>a &amp; b</note></t:track>\n",
                at % 90
            )
        },
        "</t:tracks>",
        len,
    )
}

/// The same of JSON.
pub(crate) fn usual_json(len: usize) -> Vec<u8> {
    numbered(
        "[0",
        |at| format!(",{{\"id\":{at},\"lat\":{}.25,\"name\":\"a \\\"{at}\\\"\"}}", at % 90),
        "]",
        len,
    )
}

/// Text of XML in which nothing is typed.
pub(crate) static XML: &[Trap] = &[
    trap("deep nesting", nested),
    trap("deep namespaces", nested_namespaces),
    trap("many attributes", |n| numbered("<r", |at| format!(" a{at}=\"\""), "/>", n)),
    trap("one attribute twice", |n| numbered("<r", |at| format!(" a{at}=\"\""), " a0=\"\"/>", n)),
    trap("attributes by attributes", square_of_attributes),
    trap("many prefixes", |n| numbered("<r", |at| format!(" xmlns:p{at}=\"u{at}\""), "/>", n)),
    trap("prefixes of one namespace", |n| {
        numbered("<r", |at| format!(" xmlns:p{at}=\"u\" p{at}:a{at}=\"\""), "/>", n)
    }),
    trap("many namespaces", |n| {
        numbered("<r>", |at| format!("<p:a xmlns:p=\"u{at}\"/>"), "</r>", n)
    }),
    trap("many names", |n| numbered("<r>", |at| format!("<e{at}/>"), "</r>", n)),
    trap("long names", long_names),
    trap("many values", |n| numbered("<r>", |at| format!("<v>{at}</v>"), "</r>", n)),
    trap("one name, one value", |n| around("<r>", "<v>1</v>", "</r>", n)),
    trap("mixed content", |n| around("<r>", "x<a/>", "</r>", n)),
    trap("other children each time", |n| {
        numbered("<r>", |at| format!("<a><b{}/>x<c{}/></a>", at % 97, at % 89), "</r>", n)
    }),
    trap("one text", |n| around("<r>", "x", "</r>", n)),
    trap("one text of other words", |n| numbered("<r>", |at| format!("{at} "), "</r>", n)),
    trap("one attribute's value", |n| around("<r a=\"", "x", "\"/>", n)),
    trap("a name of all", |n| around("<", "x", "/>", n)),
    trap("white space alone", |n| around("", " \n", "", n)),
    trap("white space in a tag", |n| around("<r", " ", "/>", n)),
    trap("white space in text", |n| around("<r>", " \r\n", "</r>", n)),
    trap("'<' again and again", |n| around("", "<", "", n)),
    trap("'<a' again and again", |n| around("", "<a", "", n)),
    trap("'</' again and again", |n| around("<r>", "</", "", n)),
    trap("'<a ' again and again", |n| around("", "<a b='", "", n)),
    trap("'&amp;' again and again", |n| around("<r>", "&amp;", "</r>", n)),
    trap("'&' again and again", |n| around("<r>", "&", "</r>", n)),
    trap("'&#65;' in an attribute", |n| around("<r a='", "&#65;", "'/>", n)),
    trap("one long reference", |n| around("<r>&#x", "0", "41;</r>", n)),
    trap("']]>' again and again", |n| around("<r>", "]]>", "</r>", n)),
    trap("']' again and again", |n| around("<r>", "]", "</r>", n)),
    trap("']]' in CDATA", |n| around("<r><![CDATA[", "]]", "]]></r>", n)),
    trap("empty CDATA", |n| around("<r>", "<![CDATA[]]>", "</r>", n)),
    trap("CDATA never closed", |n| around("<r>", "<![CDATA[", "", n)),
    trap("comments", |n| around("<r>", "<!---->", "</r>", n)),
    trap("a comment never closed", |n| around("<r/><!--", "- ", "", n)),
    trap("comments never closed", |n| around("<r/>", "<!-- ", "", n)),
    trap("instructions", |n| numbered("<r>", |at| format!("<?p{at} q?>"), "</r>", n)),
    trap("an instruction never closed", |n| around("<r/>", "<?p ", "", n)),
    trap("entities of entities", laughs),
    trap("many entities", |n| {
        numbered("<!DOCTYPE r [", |at| format!("<!ENTITY e{at} \"&e{at};\">"), "]><r>&e0;</r>", n)
    }),
    trap("default attributes", default_attributes),
    trap("a DTD never closed", |n| around("<!DOCTYPE r [", "<!ELEMENT a (", "", n)),
    trap("deep content model", |n| around("<!DOCTYPE r [<!ELEMENT a ", "(", "", n)),
    trap("an external entity", |n| {
        around("<!DOCTYPE r [<!ENTITY e SYSTEM \"file:///etc/hostname\">]><r>&e;", "x", "</r>", n)
    }),
    trap("invalid UTF-8", |n| [around("<r>", "x", "", n), b"\xff</r>".to_vec()].concat()),
    trap("UTF-8 cut short", |n| [around("<r>", "\u{e9}", "", n), b"\xc3".to_vec()].concat()),
    trap("a lone surrogate", lone_surrogate),
    trap("control characters", |n| around("<r>", "\u{1}", "</r>", n)),
    trap("an unknown encoding", |n| {
        around("<?xml version='1.0' encoding='EBCDIC-", "x", "'?><r/>", n)
    }),
    trap("roots", |n| around("", "<r/>", "", n)),
    trap("cut short", |n| {
        let mut text = usual_xml(n);
        text.truncate(n / 16 * 13);
        text
    }),
    trap("a usual message", usual_xml),
];

/// Text of XML whose values a schema types: by `xsi:type` or by [`SCHEMA`].
pub(crate) static TYPED: &[Trap] = &[
    trap("integer of many digits", |n| typed("integer", "9", n)),
    trap("decimal of many digits", |n| typed("decimal", "3", n)),
    trap("decimal of zeros", |n| around("<r><decimal>0.", "0", "1</decimal></r>", n)),
    trap("double of many digits", |n| typed("double", "7", n)),
    trap("year of many digits", |n| {
        around("<r><dateTime>", "9", "-01-01T00:00:00Z</dateTime></r>", n)
    }),
    trap("fraction of many digits", |n| {
        around("<r><dateTime>2026-01-01T00:00:00.", "9", "Z</dateTime></r>", n)
    }),
    trap("hexBinary", |n| typed("hexBinary", "aF", n)),
    trap("base64Binary", |n| typed("base64Binary", "QUJD", n)),
    trap("base64Binary with spaces", |n| typed("base64Binary", "Q U J D ", n)),
    trap("one long list", |n| typed("list", "12 ", n)),
    trap("a union's last member", |n| typed("union", "x", n)),
    trap("characters of a pattern", |n| typed("restricted", "abc", n)),
    trap("characters outside of a pattern", |n| typed("restricted", "xyz", n)),
    trap("an enumeration's neighbour", |n| typed("enumerated", "on", n)),
    trap("white space around a value", |n| typed("boolean", " ", n)),
    trap("many children", |n| around("<r>", "<integer>7</integer>", "</r>", n)),
    trap("many that the schema lacks", |n| {
        numbered("<r>", |at| format!("<x{at} y=\"{at}\"/>"), "</r>", n)
    }),
    trap("many unknown types", |n| {
        numbered(
            "<r xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">",
            |at| format!("<integer xsi:type=\"t{at}\">1</integer>"),
            "</r>",
            n,
        )
    }),
];

fn typed(name: &str, unit: &str, len: usize) -> Vec<u8> {
    around(&format!("<r><{name}>"), unit, &format!("</{name}></r>"), len)
}

/// What [`TYPED`] is typed by.
pub(crate) const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
<xs:element name="r"><xs:complexType><xs:choice minOccurs="0" maxOccurs="unbounded">
<xs:element name="integer" type="xs:integer"/><xs:element name="decimal" type="xs:decimal"/>
<xs:element name="double" type="xs:double"/><xs:element name="dateTime" type="xs:dateTime"/>
<xs:element name="hexBinary" type="xs:hexBinary"/><xs:element name="boolean" type="xs:boolean"/>
<xs:element name="base64Binary" type="xs:base64Binary"/>
<xs:element name="list"><xs:simpleType><xs:list itemType="xs:int"/></xs:simpleType></xs:element>
<xs:element name="union"><xs:simpleType>
<xs:union memberTypes="xs:int xs:date xs:string"/></xs:simpleType></xs:element>
<xs:element name="restricted"><xs:simpleType><xs:restriction base="xs:string">
<xs:pattern value="[a-c]*"/></xs:restriction></xs:simpleType></xs:element>
<xs:element name="enumerated"><xs:simpleType><xs:restriction base="xs:string">
<xs:enumeration value="on"/><xs:enumeration value="off"/></xs:restriction></xs:simpleType>
</xs:element><xs:any processContents="lax"/>
</xs:choice></xs:complexType></xs:element></xs:schema>"#;

/// Another schema, which [`SCHEMA`] is exchanged for.
pub(crate) const OTHER_SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
<xs:element name="q"><xs:complexType><xs:sequence>
<xs:element name="at" type="xs:dateTime" maxOccurs="unbounded"/>
</xs:sequence></xs:complexType></xs:element></xs:schema>"#;

/// Schemas themselves.
pub(crate) static SCHEMAS: &[Trap] = &[
    trap("many elements", |n| {
        schema(n, |at| format!("<xs:element name=\"e{at}\" type=\"xs:int\"/>"))
    }),
    trap("types of one another", |n| {
        schema(n, |at| {
            format!(
                "<xs:complexType name=\"t{at}\"><xs:sequence><xs:element name=\"e\" \
                 type=\"t{}\"/></xs:sequence></xs:complexType>",
                at.saturating_sub(1)
            )
        })
    }),
    trap("extension of extension", |n| {
        schema(n, |at| match at {
            0 => "<xs:complexType name=\"t0\"/>".to_owned(),
            _ => format!(
                "<xs:complexType name=\"t{at}\"><xs:complexContent><xs:extension base=\"t{}\"/>\
                 </xs:complexContent></xs:complexType>",
                at - 1
            ),
        })
    }),
    trap("extensions that add", |n| {
        schema(n, |at| match at {
            0 => "<xs:complexType name=\"t0\"/>".to_owned(),
            _ => format!(
                "<xs:complexType name=\"t{at}\"><xs:complexContent><xs:extension base=\"t{}\">\
                 <xs:attribute name=\"a{at}\"/></xs:extension></xs:complexContent>\
                 </xs:complexType>",
                at - 1
            ),
        })
    }),
    trap("substitutions", |n| {
        schema(n, |at| match at {
            0 => "<xs:element name=\"e0\" type=\"xs:int\"/>".to_owned(),
            _ => format!("<xs:element name=\"e{at}\" substitutionGroup=\"e{}\"/>", at - 1),
        })
    }),
    trap("groups twice of groups", |n| {
        schema(n, |at| match at {
            0 => "<xs:group name=\"g0\"><xs:sequence><xs:element name=\"e\"/></xs:sequence>\
                  </xs:group><xs:element name=\"r\"><xs:complexType><xs:group ref=\"g40\"/>\
                  </xs:complexType></xs:element>"
                .to_owned(),
            _ => format!(
                "<xs:group name=\"g{at}\"><xs:sequence><xs:group ref=\"g{0}\"/>\
                 <xs:group ref=\"g{0}\"/></xs:sequence></xs:group>",
                at - 1
            ),
        })
    }),
    trap("a group of itself", |n| {
        schema(n, |at| {
            format!(
                "<xs:group name=\"g{at}\"><xs:sequence><xs:group ref=\"g{at}\"/></xs:sequence>\
                 </xs:group>"
            )
        })
    }),
    trap("maxOccurs of maxOccurs", |n| {
        let open = "<xs:sequence minOccurs=\"999999\" maxOccurs=\"999999\">";
        let depth = (n / (open.len() + 14)).min(100);
        let element = "<xs:element name=\"e\" minOccurs=\"9\" maxOccurs=\"999999\"/>";
        let inner = [&open.repeat(depth), element, &"</xs:sequence>".repeat(depth)].concat();
        schema(n, |at| format!("<xs:complexType name=\"t{at}\">{inner}</xs:complexType>"))
    }),
    trap("a choice of many", |n| {
        let open = "<xs:element name=\"r\"><xs:complexType><xs:choice maxOccurs=\"unbounded\">";
        let close = "</xs:choice></xs:complexType></xs:element></xs:schema>";
        let open = format!("{SCHEMA_OPEN}{open}");
        numbered(&open, |at| format!("<xs:element name=\"e{at}\" type=\"xs:int\"/>"), close, n)
    }),
    trap("a sequence of optional ones", |n| {
        let open = "<xs:element name=\"r\"><xs:complexType><xs:sequence>";
        let close = "</xs:sequence></xs:complexType></xs:element></xs:schema>";
        let open = format!("{SCHEMA_OPEN}{open}");
        numbered(&open, |at| format!("<xs:element name=\"e{at}\" minOccurs=\"0\"/>"), close, n)
    }),
    trap("many attributes", |n| {
        let open = format!("{SCHEMA_OPEN}<xs:element name=\"r\"><xs:complexType>");
        let close = "</xs:complexType></xs:element></xs:schema>";
        numbered(&open, |at| format!("<xs:attribute name=\"a{at}\"/>"), close, n)
    }),
    trap("many enumerated values", |n| {
        let open = "<xs:element name=\"r\"><xs:simpleType><xs:restriction base=\"xs:string\">";
        let close = "</xs:restriction></xs:simpleType></xs:element></xs:schema>";
        let open = format!("{SCHEMA_OPEN}{open}");
        numbered(&open, |at| format!("<xs:enumeration value=\"v{at}\"/>"), close, n)
    }),
    trap("a deep pattern", |n| pattern("(", n)),
    trap("a long pattern", |n| pattern("[a-z]{0,999999}", n)),
    trap("deep schema", |n| around(SCHEMA_OPEN, "<xs:element><xs:complexType><xs:all>", "", n)),
    trap("imports", |n| schema(n, |at| format!("<xs:import namespace=\"u{at}\"/>"))),
];

const SCHEMA_OPEN: &str = "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\">";

fn schema(len: usize, unit: impl Fn(usize) -> String) -> Vec<u8> {
    numbered(SCHEMA_OPEN, unit, "</xs:schema>", len)
}

fn pattern(unit: &str, len: usize) -> Vec<u8> {
    let open = "<xs:element name=\"r\"><xs:simpleType><xs:restriction base=\"xs:string\">\
                <xs:pattern value=\"";
    let close = "\"/></xs:restriction></xs:simpleType></xs:element></xs:schema>";
    around(&format!("{SCHEMA_OPEN}{open}"), unit, close, len)
}

/// Text of JSON.
pub(crate) static JSON: &[Trap] = &[
    trap("deep arrays", |n| ["[".repeat(n / 2), "]".repeat(n / 2)].concat().into_bytes()),
    trap("deep objects", |n| {
        ["{\"a\":".repeat(n / 6), "0".to_owned(), "}".repeat(n / 6)].concat().into_bytes()
    }),
    trap("arrays never closed", |n| around("", "[", "", n)),
    trap("many empty ones", |n| around("[0", ",[]", "]", n)),
    trap("many keys", |n| numbered("{\"\":0", |at| format!(",\"k{at}\":0"), "}", n)),
    trap("one key", |n| around("{\"\":0", ",\"k\":0", "}", n)),
    trap("an integer of many digits", |n| around("", "9", "", n)),
    trap("a fraction of many digits", |n| around("0.", "9", "", n)),
    trap("an exponent of many digits", |n| around("1e", "9", "", n)),
    trap("many numbers", |n| numbered("[0", |at| format!(",{at}.50e{}", at % 300), "]", n)),
    trap("'-' again and again", |n| around("", "-", "", n)),
    trap("one string", |n| around("\"", "x", "\"", n)),
    trap("a string never closed", |n| around("\"", "x", "", n)),
    trap("'\\u0041' again and again", |n| around("\"", "\\u0041", "\"", n)),
    trap("'\\\\' again and again", |n| around("\"", "\\\\", "\"", n)),
    trap("pairs of surrogates", |n| around("\"", "\\ud83d\\ude00", "\"", n)),
    trap("lone surrogates", |n| around("\"", "\\ud83d", "\"", n)),
    trap("white space alone", |n| around("", " \n", "", n)),
    trap("white space", |n| around("[", " \n", "]", n)),
    trap("commas", |n| around("[", ",", "]", n)),
    trap("invalid UTF-8", |n| [around("\"", "x", "", n), b"\xff\"".to_vec()].concat()),
    trap("a control character", |n| around("\"", "x", "\u{1}\"", n)),
    trap("values behind the end", |n| around("", "0 ", "", n)),
    trap("cut short", |n| {
        let mut text = usual_json(n);
        text.truncate(n / 16 * 13);
        text
    }),
    trap("a usual message", usual_json),
];

/// Bytes of any kind.
pub(crate) static BYTES: &[Trap] = &[
    trap("zeros", |n| vec![0; n]),
    trap("noise", noise),
    trap("two bytes in turns", |n| around("", "ab", "", n)),
    trap("ever longer runs", |n| numbered("", |at| "a".repeat(at % 999) + "b", "", n)),
    trap("many short repetitions", |n| {
        let noise = noise(n);
        noise.iter().flat_map(|byte| [b'a' + byte % 3, b'a']).take(n).collect()
    }),
    trap("repetitions far apart", |n| {
        let noise = noise(n.min(1 << 15));
        noise.iter().copied().cycle().take(n).collect()
    }),
    trap("almost repetitions", |n| {
        let mut bytes: Vec<u8> = noise(999).into_iter().cycle().take(n).collect();
        bytes.iter_mut().step_by(61).enumerate().for_each(|(at, byte)| *byte ^= low_byte(at));
        bytes
    }),
    trap("numbers counted up", |n| numbered("", |at| format!("{at}\n"), "", n)),
    trap("XML", usual_xml),
    trap("'<a' again and again", |n| around("", "<a", "", n)),
];

fn low_byte(number: usize) -> u8 {
    number.to_le_bytes()[0]
}

/// Bytes with nothing to find in them.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..len).map(|_| next()).collect()
}

/// Streams of a codec by its name that its own encoder does not make.
pub(crate) fn streams(codec: &str) -> &'static [Trap] {
    match codec {
        "cbor" | "cbor-xml" => CBOR,
        "wbxml" => WBXML,
        "deflate" => DEFLATE,
        "zstd" => ZSTD,
        _ => &[],
    }
}

fn filled(open: &[u8], unit: &[u8], close: &[u8], len: usize) -> Vec<u8> {
    [open, &unit.repeat(len / unit.len()), close].concat()
}

/// RFC 8949 §3.
static CBOR: &[Trap] = &[
    trap("deep arrays", |n| filled(b"", b"\x81", b"\0", n)),
    trap("deep open arrays", |n| filled(b"", b"\x9f", b"", n)),
    trap("deep maps", |n| filled(b"", b"\xa1\x60", b"\0", n)),
    trap("deep tags", |n| filled(b"", b"\xc6", b"\0", n)),
    trap("an array of 2^64 - 1", |n| {
        filled(b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff", b"\0", b"", n)
    }),
    trap("a map of 2^32", |n| filled(b"\xbb\0\0\0\x01\0\0\0\0", b"\x60\0", b"", n)),
    trap("a text of 2^63", |n| filled(b"\x7b\x80\0\0\0\0\0\0\0", b"x", b"", n)),
    trap("bytes of 2^40", |n| filled(b"\x5b\0\0\x01\0\0\0\0\0", b"x", b"", n)),
    trap("a text of empty pieces", |n| filled(b"\x7f", b"\x60", b"\xff", n)),
    trap("a text of short pieces", |n| filled(b"\x7f", b"\x61x", b"\xff", n)),
    trap("a text never closed", |n| filled(b"\x7f", b"\x61x", b"", n)),
    trap("a big number", |n| {
        let len = u32::try_from(n).unwrap_or(u32::MAX).to_be_bytes();
        filled(&[&b"\xc2\x5a"[..], &len].concat(), b"\xff", b"", n)
    }),
    trap("a big exponent", |n| {
        filled(b"\x9f", b"\xc4\x82\x1b\x7f\xff\xff\xff\xff\xff\xff\xff\x01", b"\xff", n)
    }),
    trap("invalid UTF-8", |n| filled(b"\x9f", b"\x62\xc3\x28", b"\xff", n)),
    trap("breaks", |n| filled(b"", b"\xff", b"", n)),
];

/// WAP-192 §5.
static WBXML: &[Trap] = &[
    trap("deep elements", |n| filled(b"\x03\x01\x6a\0", b"\x45", b"", n)),
    trap("deep literals", |n| filled(b"\x03\x01\x6a\x02a\0", b"\x44\0", b"", n)),
    trap("a string table of 2^32 - 1", |n| {
        filled(b"\x03\x01\x6a\x8f\xff\xff\xff\x7f", b"x", b"", n)
    }),
    trap("one long string, many uses", |n| {
        let len = (n / 2) & !0x7f;
        let head = [3, 1, 0x6a, low_byte(len >> 14) | 0x80, low_byte(len >> 7) | 0x80, 0];
        let table = [&vec![b'x'; len - 1][..], &[0]].concat();
        filled(&[&head[..], &table, &[0x45]].concat(), b"\x83\0", b"\x01", n / 2)
    }),
    trap("one long name, many uses", |n| {
        let len = (n / 2) & !0x7f;
        let head = [3, 1, 0x6a, low_byte(len >> 14) | 0x80, low_byte(len >> 7) | 0x80, 0];
        let table = [&vec![b'x'; len - 1][..], &[0]].concat();
        filled(&[&head[..], &table, &[0x45]].concat(), b"\x04\0", b"\x01", n / 2)
    }),
    trap("opaque data of 2^32 - 1", |n| {
        filled(b"\x03\x01\x6a\0\x45\xc3\x8f\xff\xff\xff\x7f", b"x", b"", n)
    }),
    trap("a number of many bytes", |n| filled(b"\x03", b"\x80", b"", n)),
    trap("an entity of many bytes", |n| filled(b"\x03\x01\x6a\0\x45\x02", b"\x80", b"", n)),
    trap("entities", |n| filled(b"\x03\x01\x6a\0\x45", b"\x02\x81\x20", b"\x01", n)),
    trap("switches of pages", |n| filled(b"\x03\x01\x6a\0", b"\0\x01", b"", n)),
    trap("empty strings", |n| filled(b"\x03\x01\x6a\0\x45", b"\x03\0", b"\x01", n)),
    trap("a string never closed", |n| filled(b"\x03\x01\x6a\0\x45\x03", b"x", b"", n)),
    trap("an unknown charset", |n| filled(b"\x03\x01\x8f\x7f\0\x45\x03", b"x", b"", n)),
    trap("invalid UTF-8", |n| filled(b"\x03\x01\x6a\0\x45\x03", b"\xff", b"\0\x01", n)),
    trap("empty elements", |n| filled(b"\x03\x01\x6a\0\x45", b"\x05", b"\x01", n)),
    trap("ends", |n| filled(b"\x03\x01\x6a\0", b"\x01", b"", n)),
];

/// RFC 1951 and 1952.
static DEFLATE: &[Trap] = &[
    trap("empty members", |n| {
        let member = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x03\0\0\0\0\0\0\0\0\0";
        filled(b"", member, b"", n)
    }),
    trap("empty blocks", |n| filled(b"\x1f\x8b\x08\0\0\0\0\0\0\xff", b"\0\0\0\xff\xff", b"", n)),
    trap("a name never closed", |n| filled(b"\x1f\x8b\x08\x08\0\0\0\0\0\xff", b"x", b"", n)),
];

/// RFC 8878 §3.
static ZSTD: &[Trap] = &[
    trap("empty frames", |n| filled(b"", b"\x28\xb5\x2f\xfd\x20\0\x01\0\0", b"", n)),
    trap("empty skippable frames", |n| filled(b"", b"\x50\x2a\x4d\x18\0\0\0\0", b"", n)),
    trap("a skippable frame of 2^32 - 1", |n| {
        filled(b"\x50\x2a\x4d\x18\xff\xff\xff\xff", b"x", b"", n)
    }),
    trap("empty blocks", |n| filled(b"\x28\xb5\x2f\xfd\0\x50", b"\0\0\0", b"", n)),
    trap("blocks of one repeated byte", |n| {
        filled(b"\x28\xb5\x2f\xfd\0\x50", b"\x02\0\x10x", b"", n)
    }),
    trap("a window of 2^41", |n| filled(b"\x28\xb5\x2f\xfd\0\xf8", b"\0\0\0", b"", n)),
    trap("a content of 2^64 - 1", |n| {
        filled(b"\x28\xb5\x2f\xfd\xe0\xff\xff\xff\xff\xff\xff\xff\xff", b"\0\0\0", b"", n)
    }),
];
