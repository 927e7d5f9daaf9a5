use crate::coap::format::{media_type, of};

#[test]
fn formats_and_media_types_are_found_both_ways() {
    for format in 0..=u16::MAX {
        if let Some((name, coding)) = media_type(format) {
            assert_eq!(of(name, coding), Some(format), "{name}");
        }
    }
    assert_eq!(media_type(41), Some(("application/xml", None)));
    assert_eq!(media_type(11060), Some(("application/cbor", Some("deflate"))));
    assert_eq!(media_type(1), None);
}

#[test]
fn other_ways_to_write_a_media_type_are_known() {
    assert_eq!(of("text/xml", None), Some(41));
    assert_eq!(of("Text/XML;charset=UTF-8", None), Some(41));
    assert_eq!(of("text/xml;charset=latin1", None), None);
    assert_eq!(of("text/plain;charset=utf-8", None), Some(0));
    assert_eq!(of("application/cose;cose-type=cose-sign1", None), Some(18));
    assert_eq!(of("application/json", Some("deflate")), Some(11050));
    assert_eq!(of("application/json", Some("br")), None);
    assert_eq!(of("application/cose", None), None);
    assert_eq!(of("", None), None);
}
