//! Any bytes as heads and bodies of HTTP/1: what is taken is taken alike by the next parser.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use proto::http1::{Body, Framing, RequestHead, ResponseHead, Style, end_of_head};

fuzz_target!(|data: &[u8]| {
    let mut out = Vec::new();
    if let Ok(head) = RequestHead::parse(data) {
        head.write_strict(&mut out);
        let again = RequestHead::parse(&out).expect("a normal head is taken");
        assert_eq!(again.framing, head.framing);
        assert_eq!(end_of_head(&out, 0), Some(out.len()));
    }
    out.clear();
    if let Ok(head) = ResponseHead::parse(data, b"GET") {
        head.write_strict(&mut out);
        let again = ResponseHead::parse(&out, b"GET").expect("a normal head is taken");
        assert_eq!((again.framing, again.close), (head.framing, head.close));
    }
    let mut whole = Body::new(Framing::Chunked);
    let at_once = whole.scan(data);
    let mut pieces = Body::new(Framing::Chunked);
    let mut used = 0;
    let in_pieces =
        data.chunks(3).try_for_each(|piece| pieces.scan(piece).map(|scan| used += scan.used));
    if let (Ok(scan), Ok(())) = (at_once, in_pieces) {
        assert_eq!((scan.used, whole.has_ended()), (used, pieces.has_ended()));
    }
    let style = Style::decode(&Bytes::copy_from_slice(data), [&b"a-b"[..], b"c"].into_iter());
    let _ = style.apply(data, None);
});
