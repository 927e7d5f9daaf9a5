//! Packed heads: a head that came is read or refused; what an edge packs a gateway reads, and back.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use proto::bhttp::{MAX_HEAD_BYTES, Request, Response};
use proto::heads::{Edge, Gateway, Sharing};

fuzz_target!(|data: &[u8]| {
    let (mut edge, mut gateway) = (Edge::default(), Gateway::default());
    let is_secret = |name: &[u8]| name == b"cookie";
    let mut hostile = (Edge::<u8>::default(), Gateway::default());
    // Heads with their length before them; bits of it say whose they are and what becomes of them.
    let (mut rest, mut number) = (data, 0);
    while let [length, flags, behind @ ..] = rest {
        let (head, behind) = behind.split_at(behind.len().min(usize::from(*length)));
        rest = behind;
        number += 1;
        let head = Bytes::copy_from_slice(head);
        let owner = (flags & 1 != 0).then_some(flags >> 6);
        let (whole, fleeting) = (flags & 2 != 0, flags & 4 != 0);
        let sharing = Sharing { owner, whole, fleeting, is_secret };
        if Request::decode(&head).is_ok() || !proto::heads::is_packed(&head) {
            let packed = edge.pack(number, &head, &sharing);
            if flags & 8 == 0 {
                assert_eq!(gateway.unpack(number, &packed), Ok(head.clone()));
            }
        }
        if Response::decode(&head).is_ok() {
            let packed = gateway.pack(number, &head, &sharing);
            if flags & 16 == 0 {
                assert_eq!(edge.unpack(number, &packed), Ok(head.clone()));
            } else {
                edge.forget(number);
            }
        }
        hostile.0.pack(number, &head, &sharing);
        for read in [hostile.0.unpack(number, &head), hostile.1.unpack(number, &head)] {
            assert!(read.is_err() || read.is_ok_and(|read| read.len() <= 2 * MAX_HEAD_BYTES));
        }
    }
});
