use crate::triage::{Message, Triage, triage};

fn soap(head: &[u8]) -> Message<'_> {
    let content_type = Some("text/xml; charset=utf-8");
    Message { content_type, head, body_bytes: Some(head.len() as u64), ..Message::default() }
}

fn alone(message: &Message<'_>) -> Option<&'static str> {
    match triage(message) {
        Triage::Alone(reason) => Some(reason),
        Triage::Open { .. } => None,
    }
}

#[test]
fn what_is_compressed_already_is_left_alone() {
    let text = b"<track><id>1</id><id>2</id></track>".repeat(90);
    for content_type in ["image/jpeg", "Video/MP4", "application/zip; x=y", "font/woff2"] {
        let message = Message { content_type: Some(content_type), ..soap(&text) };
        assert_eq!(alone(&message), Some("a compressed media type"), "{content_type}");
    }
    for content_type in ["image/svg+xml", "application/json", "nonsense", ""] {
        let message = Message { content_type: Some(content_type), ..soap(&text) };
        assert_eq!(alone(&message), None, "{content_type}");
    }
    assert_eq!(alone(&Message { coded: true, ..soap(&text) }), Some("coded by its sender"));
    assert_eq!(alone(&Message { tunnel: true, ..soap(&text) }), Some("a tunnel"));
    let mut state = 1_u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
    .take(4096)
    .collect();
    assert_eq!(alone(&soap(&noise)), Some("its head does not compress"));
}

#[test]
fn what_is_too_short_to_gain_is_left_alone() {
    assert_eq!(alone(&soap(b"")), Some("no body"));
    assert_eq!(alone(&soap(&b"<a/>".repeat(15))), Some("a few bytes"));
    assert_eq!(alone(&soap(&b"<a/>".repeat(16))), None, "on a slow link some bytes are time");
    let unknown = Message { body_bytes: None, ..soap(b"<a/>") };
    assert_eq!(alone(&unknown), None, "more may follow");
    assert_eq!(triage(&Message { head: b"", ..unknown }), Triage::Open { head_share: 1.0 });
}
