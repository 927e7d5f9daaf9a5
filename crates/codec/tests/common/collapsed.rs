//! Documents whose white space means nothing.

use longwire_codec::xml::{Event, Reader, Writer};
use longwire_codec::{Error, Limits};

/// The document with words a space apart and none beside tags, without prolog and comments:
/// programs that make binary XML take white space away, each in its own way.
pub(crate) fn collapsed(document: &str) -> Result<String, Error> {
    let mut reader = Reader::of(document, &Limits::default());
    let mut writer = Writer::new();
    loop {
        match reader.next()? {
            Event::Start(start) => {
                writer.start(reader.scanner().written());
                for declared in reader.declarations() {
                    writer.namespace(declared.prefix(&start), reader.names().uri(declared.uri));
                }
                for attribute in reader.attributes() {
                    let local = reader.names().name(attribute.name).local;
                    let value = attribute.value(&start);
                    writer.attribute_prefixed(attribute.prefix(&start), local, &value);
                }
            }
            Event::End { .. } => writer.end(reader.scanner().written()),
            Event::Text(text) => {
                let words: Vec<_> = text.split_ascii_whitespace().collect();
                writer.text(&words.join(" "));
            }
            Event::Pi { target, data } => writer.pi(target, &data),
            Event::Eof => return Ok(String::from_utf8_lossy(&writer.finish()).into_owned()),
            _ => {}
        }
    }
}
