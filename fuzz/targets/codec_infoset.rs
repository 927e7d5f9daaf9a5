//! Messages of which the infoset is enough: any bytes as a coded one stay within the declared
//! length, and what is encoded comes back as the text that the sender had foreseen.
#![no_main]

use std::sync::{Arc, OnceLock};

use codec::infoset::{Marks, SchemaContext, made, schema_of};
use codec::{Limits, Options, exi};
use libfuzzer_sys::fuzz_target;

const XSD: &[u8] = br#"<x:schema xmlns:x="http://www.w3.org/2001/XMLSchema"><x:element name="a">
<x:complexType mixed="true"><x:sequence><x:element name="b" type="x:int" maxOccurs="9"/>
</x:sequence><x:anyAttribute processContents="lax"/></x:complexType></x:element></x:schema>"#;

/// Coders are kept from one input to the next, as the pair keeps them.
static KEPT: OnceLock<Arc<SchemaContext>> = OnceLock::new();

fn schema_context() -> Arc<SchemaContext> {
    let document = exi::schema::Document { location: "a.xsd", bytes: XSD };
    let schema_context =
        SchemaContext::of_schema(&[document], &mut |_, _| None, &Limits::default());
    Arc::new(schema_context.unwrap_or_else(|error| panic!("{error}")))
}

fuzz_target!(|data: &[u8]| {
    let [pick, size, data @ ..] = data else { return };
    let options = Options::INFOSET[usize::from(*pick) % 4];
    let schema_context = KEPT.get_or_init(schema_context);
    let _ = (Marks::of(data), made(data), schema_of(options, data));
    let _ = SchemaContext::of_parcel([0; 8], data.to_vec()).prepare();
    let mut out = Vec::new();
    if schema_context.decoder(options).decode(data, usize::from(*size), true, &mut out).is_ok() {
        assert_eq!(out.len(), usize::from(*size));
    }
    let mut out = Vec::new();
    if schema_context.encoder(options).encode(data, true, &mut out).is_err() {
        return;
    }
    let Some(made) = made(&out) else { panic!("it has another form") };
    let mut back = Vec::new();
    let result =
        schema_context.decoder(options).decode(made.coded, made.text.len(), true, &mut back);
    result.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(back, made.text);
});
