//! Any content of a control part: no panic, and what is read comes back as it was when it is sent.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use proto::control::{Allowed, ClientEnded, Drained, Hints, Keeping, Processor, Receipt};
use proto::exchange::Part;

fuzz_target!(|data: &[u8]| {
    let content = Bytes::copy_from_slice(data);
    let again = |part: Part| match part {
        Part::Control(_, content) => content,
        other => panic!("{other:?} is no control part"),
    };
    if let Ok(allowed) = Allowed::decode(&content) {
        assert_eq!(Allowed::of(allowed.patterns.clone()), allowed);
        assert_eq!(Allowed::decode(&again(allowed.part())), Ok(allowed));
    }
    if let Ok(ended) = ClientEnded::decode(&content) {
        assert_eq!(ClientEnded::decode(&again(ended.part())), Ok(ended));
    }
    if let Ok(hints) = Hints::decode(&content)
        && let Some(part) = hints.part()
    {
        assert_eq!(Hints::decode(&again(part)), Ok(hints));
    }
    if let Ok(keeping) = Keeping::decode(&content) {
        assert_eq!(Keeping::decode(&again(keeping.part())), Ok(keeping));
    }
    if let Ok(drained) = Drained::decode(&content) {
        assert_eq!(Drained::decode(&again(drained.part())), Ok(drained));
    }
    if let Ok(receipt) = Receipt::decode(&content) {
        assert_eq!(Receipt::decode(&again(receipt.part())), Ok(receipt));
    }
    let _ = Processor::decode(&content);
});
