//! A token table for one service, from its description.

use std::fmt::Write as _;

use super::table::{SOAP, fingerprint};
use crate::xml::{Event, Reader, is_nc_name};
use crate::{Error, Limits};

/// Namespaces of descriptions and of schemas in them.
const WSDL: &str = "http://schemas.xmlsoap.org/wsdl/";
const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";
const SOAP_BINDING: &str = "http://schemas.xmlsoap.org/wsdl/soap/";
const SOAP_1_2_BINDING: &str = "http://schemas.xmlsoap.org/wsdl/soap12/";
/// The first page for a service's names; SOAP's are before.
const FIRST_PAGE: usize = 16;
const MAX_PAGES: usize = 256;
/// Codes of names on a page, and of values.
const TAG_CODES: std::ops::Range<u8> = 5..64;
const MAX_VALUES: usize = 59;
/// Public identifiers of derived tables: no registered one is so great (WAP-192 §7.2), and three
/// bytes say them.
const FIRST_NUMBER: u32 = 0x10_0000;
const NUMBERS: u32 = 0x10_0000;

/// A schema that is open: its target namespace, and whether local elements are in it.
struct Schema {
    target: String,
    is_qualified: bool,
    depth: usize,
}

/// Names in the order in which they come, each once.
#[derive(Default)]
struct Names {
    /// By namespace.
    spaces: Vec<(String, Vec<String>)>,
}

impl Names {
    /// Takes a name; none is one that a description leaves out.
    ///
    /// The table is a text of lines, in which no name and no namespace may be more than that.
    fn add(&mut self, space: &str, name: &str) -> Result<(), Error> {
        if name.is_empty() {
            return Ok(());
        }
        if !is_nc_name(name) {
            return Err(refused(&format!("'{}' is no name of XML", name.escape_debug())));
        }
        // That one means none in a table.
        if space == "-" || space.contains(char::is_control) {
            return Err(refused(&format!("'{}' is no namespace", space.escape_debug())));
        }
        let known = self.spaces.iter().position(|(known, _)| known == space);
        let at = known.unwrap_or_else(|| {
            self.spaces.push((space.to_owned(), Vec::new()));
            self.spaces.len() - 1
        });
        if let Some((_, names)) = self.spaces.get_mut(at)
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_owned());
        }
        Ok(())
    }
}

fn refused(what: &str) -> Error {
    Error::Option { what: format!("no table of tokens: {what}") }
}

/// The table for a service whose WSDL 1.1 document this is: SOAP's names, those of the elements
/// that its schemas declare, and those of RPC calls, in pages by namespace. The same document gives
/// the same table, whose number is one of a million by what it holds.
///
/// Schemas that are only imported are not seen.
///
/// # Errors
/// What is not well-formed XML, no description, or one without a name; names over what 240 pages
/// hold; what is no name of XML, and a namespace with control characters.
pub fn derive(wsdl: &[u8], limits: &Limits) -> Result<String, Error> {
    let names = names_of(wsdl, limits)?.ok_or_else(|| {
        refused("the document is no WSDL 1.1; give one with a root 'definitions' in its namespace")
    })?;
    if names.spaces.is_empty() {
        return Err(refused("the description declares no element"));
    }
    let mut pages = String::new();
    let mut page = FIRST_PAGE;
    for (space, names) in &names.spaces {
        for chunk in names.chunks(TAG_CODES.len()) {
            if page >= MAX_PAGES {
                return Err(refused("more names than pages have room for"));
            }
            let space = if space.is_empty() { "-" } else { space };
            let _ = writeln!(pages, "tags {page} {space}");
            for (code, name) in TAG_CODES.zip(chunk) {
                let _ = writeln!(pages, "{code:02x} {name}");
            }
            page += 1;
        }
    }
    let spaces = names.spaces.iter().map(|(space, _)| space).filter(|space| !space.is_empty());
    pages.push_str("values 1\n");
    let codes = (0x85..0xc0_u8).chain(0xc5..=0xff);
    for (code, space) in codes.zip(spaces).take(MAX_VALUES) {
        let _ = writeln!(pages, "{code:02x} {space}");
    }
    Ok(whole(SOAP, &pages).0)
}

/// SOAP's table and the pages of a service as one table, and its number: that of all that stands in
/// it, as another table for SOAP gives other tokens too.
fn whole(soap: &str, pages: &str) -> (String, u32) {
    let is_kept = |line: &&str| {
        let word = line.split(' ').next().unwrap_or_default();
        !line.starts_with('#') && !matches!(word, "name" | "number" | "root")
    };
    let soap: Vec<&str> = soap.lines().filter(is_kept).collect();
    let lines = soap.join("\n") + "\n" + pages;
    let number = FIRST_NUMBER + fingerprint(lines.as_bytes()) % NUMBERS;
    (format!("name SOAP and a service\nnumber {number:#x}\nroot Envelope\n{lines}"), number)
}

/// The names of a description; `None` where the document is none.
fn names_of(wsdl: &[u8], limits: &Limits) -> Result<Option<Names>, Error> {
    let mut reader = Reader::new(wsdl, limits)?;
    let mut names = Names::default();
    let (mut depth, mut is_description, mut schemas) = (0_usize, false, Vec::<Schema>::new());
    let mut operation = String::new();
    loop {
        let start = match reader.next()? {
            Event::Start(start) => start,
            Event::End { .. } => {
                depth = depth.saturating_sub(1);
                if schemas.last().is_some_and(|schema| schema.depth > depth) {
                    schemas.pop();
                }
                continue;
            }
            Event::Eof => return Ok(is_description.then_some(names)),
            _ => continue,
        };
        depth += 1;
        let found = reader.names().name(start.name);
        let (space, local) = (found.uri.to_owned(), found.local.to_owned());
        let attribute = |name: &str| {
            let is_it = |one: &&crate::xml::Attribute| {
                one.prefix(&start).is_empty() && reader.names().name(one.name).local == name
            };
            let found = reader.attributes().iter().find(is_it);
            found.map(|one| one.value(&start).into_owned()).unwrap_or_default()
        };
        match (&*space, &*local) {
            (WSDL, "definitions") if depth == 1 => is_description = true,
            _ if depth == 1 => return Ok(None),
            (WSDL, "operation") => operation = attribute("name"),
            // Of an RPC call the elements in the body are named by the operation.
            (SOAP_BINDING | SOAP_1_2_BINDING, "body") if !attribute("namespace").is_empty() => {
                let space = attribute("namespace");
                names.add(&space, &operation)?;
                names.add(&space, &format!("{operation}Response"))?;
            }
            // A part of an RPC call, which has a type and is in no namespace.
            (WSDL, "part") if !attribute("type").is_empty() => names.add("", &attribute("name"))?,
            (SCHEMA, "schema") => schemas.push(Schema {
                target: attribute("targetNamespace"),
                is_qualified: attribute("elementFormDefault") == "qualified",
                depth,
            }),
            (SCHEMA, "element") => {
                let Some(schema) = schemas.last() else { continue };
                let is_global = depth == schema.depth + 1;
                let is_qualified = match &*attribute("form") {
                    "" => schema.is_qualified,
                    form => form == "qualified",
                };
                let space = if is_global || is_qualified { &*schema.target } else { "" };
                names.add(space, &attribute("name"))?;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wbxml::{Settings, TokenTable, decode, encode, number_of};

    const DESCRIPTION: &str = "<w:definitions xmlns:w='http://schemas.xmlsoap.org/wsdl/' \
        xmlns:x='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:s'><w:types><x:schema \
        targetNamespace='urn:s' elementFormDefault='qualified'><x:element name='Get'>\
        <x:complexType><x:sequence><x:element name='number' type='x:int'/>\
        <x:element name='bare' form='unqualified'/></x:sequence>\
        </x:complexType></x:element></x:schema></w:types><w:message name='m'>\
        <w:part name='word' type='x:string'/><w:part name='p' element='Get'/></w:message>\
        <w:portType name='P'><w:operation name='find'/></w:portType><w:binding name='B'>\
        <w:operation name='find'><w:input><b:body namespace='urn:r' \
        xmlns:b='http://schemas.xmlsoap.org/wsdl/soap/'/></w:input></w:operation></w:binding>\
        </w:definitions>";

    /// A call of the study's kind: 508 bytes there.
    const CALL: &[u8] = b"<?xml version='1.0' encoding='UTF-8'?><SOAP-ENV:Envelope \
        xmlns:SOAP-ENV=\"http://schemas.xmlsoap.org/soap/envelope/\" \
        xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
        xmlns:xsd=\"http://www.w3.org/2001/XMLSchema\" \
        SOAP-ENV:encodingStyle=\"http://schemas.xmlsoap.org/soap/encoding/\"><SOAP-ENV:Body>\
        <ns1:find xmlns:ns1=\"urn:r\"><word xsi:type=\"xsd:string\">Where is the \
        nearest station, and when does the next train to the north leave?</word></ns1:find>\
        </SOAP-ENV:Body></SOAP-ENV:Envelope>";

    #[test]
    fn names_of_a_service_become_tokens() {
        let limits = Limits::default();
        let text = derive(DESCRIPTION.as_bytes(), &limits).unwrap();
        assert_eq!(derive(DESCRIPTION.as_bytes(), &limits).unwrap(), text);
        let table = TokenTable::parse(&text).unwrap();
        assert!((FIRST_NUMBER..FIRST_NUMBER + NUMBERS).contains(&table.number));
        for (space, name) in [
            ("urn:s", "Get"),
            ("urn:s", "number"),
            ("", "bare"),
            ("", "word"),
            ("urn:r", "find"),
            ("urn:r", "findResponse"),
            ("http://schemas.xmlsoap.org/soap/envelope/", "Body"),
        ] {
            assert!(table.tag_code(space, name).is_some(), "{space} {name}");
        }
        assert!(table.tag_code("", "p").is_none() && table.packed().is_ok());
        let document =
            b"<e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\"><e:Body>\
            <Get xmlns=\"urn:s\"><number>7</number></Get></e:Body></e:Envelope>";
        let settings = Settings { table: Some(&table), ..Settings::default() };
        let with = encode(document, &settings, &limits).unwrap();
        let without = encode(document, &Settings::default(), &limits).unwrap();
        assert!(with.len() < without.len());
        assert_eq!(number_of(&with), Some(table.number));
        assert!(decode(&with, &settings, &limits).unwrap().ends_with(document));
        assert!(decode(&with, &Settings::default(), &limits).is_err());
    }

    #[test]
    fn a_call_of_500_bytes_saves_more_than_a_third_where_both_sides_have_a_table() {
        let limits = Limits::default();
        let derived = derive(DESCRIPTION.as_bytes(), &limits).unwrap();
        let derived = TokenTable::parse(&derived).unwrap();
        let literals = TokenTable::literals();
        let lens = [Some(&literals), None, Some(&derived)].map(|table| {
            let settings = Settings { table, ..Settings::default() };
            let tokens = encode(CALL, &settings, &limits).unwrap();
            let again = decode(&tokens, &settings, &limits).unwrap();
            assert!(
                again.ends_with(b"leave?</word></ns1:find></SOAP-ENV:Body></SOAP-ENV:Envelope>")
            );
            tokens.len()
        });
        assert!((480..540).contains(&CALL.len()), "{}", CALL.len());
        assert!(lens[1] * 100 <= CALL.len() * 65, "{lens:?} of {}", CALL.len());
        assert!(lens[0] > lens[1] && lens[1] > lens[2], "{lens:?} of {}", CALL.len());
    }

    #[test]
    fn what_would_be_another_line_or_no_name_is_refused() {
        let limits = Limits::default();
        let with = |old: &str, new: &str| {
            let text = DESCRIPTION.replacen(old, new, 1);
            assert_ne!(text, DESCRIPTION);
            derive(text.as_bytes(), &limits).map_err(|error| error.to_string())
        };
        for name in ["x&#10;number 0xfd3", "a b=&quot;c&quot;", "a:b", "a&gt;", "1a", "a/", "-"] {
            let wrong = with("name='number'", &format!("name='{name}'")).unwrap_err();
            assert!(wrong.contains("no name of XML"), "{name}: {wrong}");
        }
        let wrong = with("operation name='find'><w:input", "operation name='a b'><w:input");
        assert!(wrong.unwrap_err().contains("'a b'"));
        assert!(with("part name='word'", "part name='a b'").is_err());
        for space in ["urn:s&#10;number 0xfd3", "urn:s&#13;", "urn:&#9;s", "urn:\u{85}s", "-"] {
            let wrong = with("targetNamespace='urn:s' e", &format!("targetNamespace='{space}' e"));
            assert!(wrong.unwrap_err().contains("no namespace"), "{space}");
        }
        assert!(with("namespace='urn:r'", "namespace='a&#10;b'").is_err());
        // Names of other scripts are names.
        let good = with("name='number'", "name='nombre-d\u{e9}.1'").unwrap();
        assert!(TokenTable::parse(&good).unwrap().tag_code("urn:s", "nombre-d\u{e9}.1").is_some());
    }

    #[test]
    fn a_number_is_of_the_whole_table() {
        let pages = "tags 16 urn:s\n05 a\n";
        let soap = "tags 0 urn:soap\n05 Envelope\n";
        assert_ne!(whole(soap, pages).1, whole("tags 0 urn:soap\n06 Envelope\n", pages).1);
        assert_ne!(whole(soap, pages).1, whole(soap, "tags 16 urn:s\n05 b\n").1);
        // What is said for people is no part of it.
        let named = format!("# SOAP\nname SOAP\nnumber 0x4c57\n{soap}");
        assert_eq!(whole(soap, pages), whole(&named, pages));
    }

    #[test]
    fn what_is_no_description_is_refused() {
        let limits = Limits::default();
        let wrong = |text: &str| derive(text.as_bytes(), &limits).unwrap_err().to_string();
        assert!(wrong("<a/>").contains("no WSDL 1.1"));
        let empty = "<definitions xmlns='http://schemas.xmlsoap.org/wsdl/'/>";
        assert!(wrong(empty).contains("declares no element"));
        assert!(wrong("<a").contains("xml"));
    }
}
