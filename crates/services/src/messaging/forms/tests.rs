use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use proptest::prelude::*;

use super::Form;
use crate::messaging::fields::{Layout, Record};
use crate::messaging::message::{
    DEFAULT_VALIDITY, Delivery, Draft, FREE_TEXT, MESSAGE, Message, Precedence, Transfer, Wanted,
};
use crate::messaging::receipt::{Outcome, RECEIPT, Receipt, Returning};
use crate::messaging::refusal::Reason;

/// A short message with all fields that it must have and no other.
fn short() -> Message {
    Message {
        id: "a1-mqs8d2k4".into(),
        precedence: Precedence::Routine,
        originator: "a1".into(),
        addressees: vec!["b1".to_owned()],
        time: Duration::from_secs(1_773_468_000),
        validity: DEFAULT_VALIDITY,
        references: Vec::new(),
        kind: FREE_TEXT.to_owned(),
        delivery: Delivery::Reliable,
        receipt: Wanted::Delivered,
        text: "Contact".to_owned(),
        extensions: Vec::new(),
        code: None,
    }
}

fn full() -> Transfer {
    let message = Message {
        precedence: Precedence::Flash,
        addressees: vec!["b1".to_owned(), "platoon-a".to_owned()],
        time: Duration::from_millis(1_773_468_000_120),
        validity: Duration::from_secs(90),
        references: vec!["b1-1".to_owned(), "b1-2".to_owned()],
        kind: "contact-report".to_owned(),
        delivery: Delivery::BestEffort,
        receipt: Wanted::Read,
        text: "  <a> & \"b\"\r\n\tç €\u{1f680}]]> ".to_owned(),
        extensions: vec![("grid".to_owned(), "32U <x>".to_owned()), ("e".to_owned(), "".into())],
        code: Some((0..16).collect()),
        ..short()
    };
    let hops = vec!["a2".to_owned()];
    Transfer { message: Arc::new(message), hops, recipients: vec!["b1".into(), "a3".into()] }
}

fn same(form: Form, transfer: &Transfer) {
    let bytes = form.encode(&MESSAGE, &transfer.record()).unwrap();
    let record = form.decode(&MESSAGE, &bytes).unwrap_or_else(|refusal| {
        panic!("{}: {refusal}: {}", form.name(), String::from_utf8_lossy(&bytes))
    });
    assert_eq!(&Transfer::of(record).unwrap(), transfer, "{}", form.name());
}

#[test]
fn a_message_comes_back_in_each_form() {
    for form in Form::ALL {
        same(form, &full());
        same(form, &Transfer { message: Arc::new(short()), hops: vec![], recipients: vec![] });
    }
}

#[test]
fn a_receipt_comes_back_in_each_form() {
    let receipt = Receipt {
        message: "a1-7".into(),
        originator: "a1".into(),
        addressee: "b1".into(),
        outcome: Outcome::Failed,
        time: Duration::from_millis(1_773_468_000_001),
        reporter: "a2".into(),
        reason: Some("no way to b1".to_owned()),
        precedence: Precedence::Immediate,
        code: Some(vec![7; 16]),
    };
    let returning = Returning { receipt: Arc::new(receipt), hops: vec!["a3".to_owned()] };
    for form in Form::ALL {
        let bytes = form.encode(&RECEIPT, &returning.record()).unwrap();
        let record = form.decode(&RECEIPT, &bytes).unwrap();
        assert_eq!(Returning::of(record).unwrap(), returning, "{}", form.name());
    }
}

/// IST-150's Table I has 153 bytes of CoAP over UDP with JSON and 105 with CBOR, of which the head
/// of CoAP takes at least 19: 4, a token of 1, the path `transfers` 10, the format 2 and the mark
/// of the content 1, and 1 for a second byte of the token.
#[test]
fn a_short_message_is_no_longer_than_that_of_ist_150() {
    let record = short().record(&[], &[]);
    let bytes = |form: Form| form.encode(&MESSAGE, &record).unwrap().len();
    let json = Form::Json.encode(&MESSAGE, &record).unwrap();
    assert!(json.len() <= 153 - 19, "{} bytes: {}", json.len(), String::from_utf8_lossy(&json));
    assert!(bytes(Form::Cbor) <= 105 - 19, "{}", bytes(Form::Cbor));
    assert!(bytes(Form::Exi) <= 105 - 19, "{}", bytes(Form::Exi));
    assert!(bytes(Form::Exi) < bytes(Form::Cbor) + 10);
}

#[test]
fn a_client_may_leave_out_what_its_node_knows() {
    let cases: [(Form, &[u8]); 3] = [
        (Form::Json, br#"{"addressees":["b1"],"text":"Contact"}"#),
        (
            Form::Xml,
            b"<m:message xmlns:m='urn:longwire:messaging:1'> <m:addressee>b1</m:addressee>
              <m:text>Contact</m:text></m:message>",
        ),
        (Form::Cbor, b"\xa2\x04\x81\x62b1\x0b\x67Contact"),
    ];
    let wanted =
        Draft { addressees: vec!["b1".to_owned()], text: "Contact".to_owned(), ..Draft::default() };
    for (form, bytes) in cases {
        let draft = Draft::of(form.decode(&MESSAGE, bytes).unwrap()).unwrap();
        assert_eq!(draft, wanted, "{}", form.name());
    }
    for form in Form::ALL {
        let bytes = form.encode(&MESSAGE, &wanted.record()).unwrap();
        let draft = Draft::of(form.decode(&MESSAGE, &bytes).unwrap()).unwrap();
        assert_eq!(draft.text, "Contact", "{}", form.name());
    }
}

fn refused(form: Form, layout: &'static Layout, bytes: &[u8]) -> String {
    let read = form.decode(layout, bytes);
    read.and_then(|record| match layout.name {
        "message" => Draft::of(record).map(drop),
        _ => Returning::of(record).map(drop),
    })
    .expect_err(&String::from_utf8_lossy(bytes))
    .line
}

#[test]
fn bad_json_is_refused_with_field_and_value() {
    let long = format!(r#"{{"addressees":["b"],"text":"{}"}}"#, "x".repeat(32 * 1024 + 1));
    let many = format!(r#"{{"addressees":[{}"b"],"text":"x"}}"#, r#""b","#.repeat(64));
    for (document, words) in [
        (r#"{"addressees":["b1"],"text":"x","precedence":"urgent"}"#, "'urgent' is not one of fla"),
        (r#"{"addressees":["b1"],"text":"x","colour":1}"#, "field 'colour' is none of a message"),
        (r#"{"addressees":["b1"],"text":"x","validity_s":0}"#, "0 is not from 1 to 2592000"),
        (r#"{"addressees":["b1"],"text":"x","validity_s":-1}"#, "no whole number"),
        (r#"{"addressees":["b1"],"text":"x","validity_s":"1"}"#, "is not a number"),
        (r#"{"addressees":["b1"],"text":"x","time":"now"}"#, "'now' is no time"),
        (r#"{"addressees":["b 1"],"text":"x"}"#, "'b 1' is no name"),
        (r#"{"addressees":"b1","text":"x"}"#, "not a list of names"),
        (r#"{"addressees":["b1"],"text":7}"#, "7 is not a text"),
        (r#"{"addressees":["b1"],"text":"\u0007"}"#, "U+0007"),
        (r#"{"addressees":["b1"],"text":""}"#, "'text' is missing or empty"),
        (r#"{"text":"x"}"#, "'addressees' is missing"),
        (r#"{"addressees":["b1"],"text":"x","hops":["a"]}"#, "'hops' is for nodes"),
        (r#"{"addressees":["b1"],"text":"x","code":"0"}"#, "hexadecimal"),
        (r#"["b1"]"#, "is an object of JSON"),
        ("{", "no JSON: EOF"),
        (&long, "32769 bytes are over the limit of 32768"),
        (&many, "65 members are over the limit of 64"),
    ] {
        let line = refused(Form::Json, &MESSAGE, document.as_bytes());
        assert!(line.contains(words) && !line.contains('\n'), "{line}");
    }
    let line = refused(Form::Json, &RECEIPT, br#"{"message":"m","originator":"a"}"#);
    assert!(line.contains("'addressee' of a receipt is missing"), "{line}");
}

#[test]
fn bad_xml_is_refused_with_field_and_value() {
    let inside = |fields: &str| {
        format!("<message xmlns='urn:longwire:messaging:1'>{fields}</message>").into_bytes()
    };
    for (document, words) in [
        (b"<message/>".to_vec(), "the root is 'message', not 'message' of namespace"),
        (inside("<to>b</to>"), "field 'to' is none of a message"),
        (inside("<text>x</text><addressee>b</addressee>"), "'addressee' is out of its place"),
        (inside("<addressee>b</addressee><text>x</text><text>y</text>"), "'text': stands twice"),
        (inside("<addressee a='1'>b</addressee>"), "attribute 'a' is not known"),
        (inside("<addressee>b<c/></addressee>"), "has elements in it"),
        (inside("<addressee>b</addressee>stray"), "text 'stray' outside"),
        (inside("<addressee>b</addressee><extension>x</extension>"), "'name' is missing"),
        (inside("<precedence>FLASH</precedence>"), "'FLASH' is not one of"),
        (b"<!DOCTYPE a><message/>".to_vec(), "DOCTYPE"),
        (b"<a".to_vec(), "not well-formed"),
        (vec![0xff], "no XML in UTF-8"),
    ] {
        let line = refused(Form::Xml, &MESSAGE, &document);
        assert!(line.contains(words) && !line.contains('\n'), "{line}");
    }
}

#[test]
fn bad_cbor_is_refused_with_field_and_value() {
    for (document, words) in [
        (&b"\x80"[..], "is a map of CBOR"),
        (b"\xa1\x02\x04", "'precedence': number 4 of 4 words"),
        (b"\xa1\x18\x63\x00", "key 99 is none of a message"),
        (b"\xa1\x61a\x00", "a key of a message is a number"),
        (b"\xa2\x0b\x61x\x0b\x61y", "'text' stands twice"),
        (b"\xa1\x0b\x01", "an item of another type"),
        (b"\xa1\x0b\x61", "no CBOR at byte 2"),
        (b"\xa0\x00", "1 bytes behind the message"),
        (b"\xa1\x04\x9b\xff\xff\xff\xff\xff\xff\xff\xff\x61b", "ends"),
        (b"\xa1\x05\x1b\xff\xff\xff\xff\xff\xff\xff\xff", "beyond the year 9999"),
        (b"", "no CBOR"),
    ] {
        let line = refused(Form::Cbor, &MESSAGE, document);
        assert!(line.contains(words) || words == "ends", "{line}");
    }
    // Lengths that are not said are read as well.
    let open = b"\xbf\x04\x9f\x62b1\xff\x0b\x61x\xff";
    let draft = Draft::of(Form::Cbor.decode(&MESSAGE, open).unwrap()).unwrap();
    assert_eq!(draft.addressees, ["b1"]);
}

#[test]
fn content_is_negotiated_by_media_type() {
    let with = |name: http::HeaderName, value: &'static str| {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    };
    for (value, form) in [
        ("application/json; charset=utf-8", Form::Json),
        ("text/xml", Form::Xml),
        ("application/XML", Form::Xml),
        ("application/cbor", Form::Cbor),
        ("application/exi", Form::Exi),
    ] {
        assert_eq!(Form::of_content(&with(CONTENT_TYPE, value)), Ok(form));
    }
    let refusal = Form::of_content(&with(CONTENT_TYPE, "text/csv")).unwrap_err();
    assert_eq!((refusal.reason, refusal.status()), (Reason::Unsupported, 415));
    assert!(refusal.line.contains("'text/csv' is not known; send one of application/json"));
    assert_eq!(Form::of_content(&HeaderMap::new()).unwrap_err().status(), 415);
    assert_eq!(Form::acceptable(&HeaderMap::new()), Ok(Form::Json));
    assert_eq!(Form::acceptable(&with(ACCEPT, "application/cbor")), Ok(Form::Cbor));
    assert_eq!(Form::acceptable(&with(ACCEPT, "image/png")).unwrap_err().status(), 406);
}

#[test]
fn too_long_a_document_is_refused_before_it_is_read() {
    for form in Form::ALL {
        let refusal = form.decode(&MESSAGE, &vec![b' '; super::MAX_DOCUMENT_BYTES + 1]);
        assert_eq!(refusal.unwrap_err().reason, Reason::TooLarge);
    }
}

/// A document of the longest text fits in each form.
#[test]
fn the_longest_text_fits_in_each_form() {
    for text in ["<".repeat(32 * 1024), "\"".repeat(32 * 1024), "\u{1f680}".repeat(8 * 1024)] {
        let message = Message { text, ..short() };
        for form in Form::ALL {
            let transfer =
                Transfer { message: Arc::new(message.clone()), hops: vec![], recipients: vec![] };
            same(form, &transfer);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300), which in 0_usize..4,
    ) {
        let form = Form::ALL[which];
        if let Ok(record) = form.decode(&MESSAGE, &bytes) {
            let again = form.encode(&MESSAGE, &record).unwrap();
            prop_assert_eq!(form.decode(&MESSAGE, &again).unwrap(), record);
        }
        let _: Result<Record, _> = form.decode(&RECEIPT, &bytes);
    }

    #[test]
    fn any_text_comes_back(
        text in "[\\t\\n\\r -\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]{1,60}",
        value in "[\\t\\n\\r -\u{d7ff}]{0,20}", which in 0_usize..4,
    ) {
        let extensions = vec![("x".to_owned(), value)];
        let message = Message { text, extensions, ..short() };
        same(
            Form::ALL[which],
            &Transfer { message: Arc::new(message), hops: vec![], recipients: vec![] },
        );
    }
}
