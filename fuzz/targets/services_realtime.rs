//! Any bytes as a request to the consumer: head, chunks, envelope. What is taken as XML, the strict
//! reader takes too; what is refused, is refused in one line that makes a whole fault.

#![no_main]

use libfuzzer_sys::fuzz_target;
use services::realtime::answer::{self, Answer};
use services::realtime::entity::{MAX_ENTITIES, MAX_ID, Message};
use services::realtime::http::{Chunks, head_bytes, join_chunks, read_head};
use services::realtime::request::read;
use services::tracks::soap::Version;
use services::xml::Reader;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    match first % 4 {
        0 => {
            if let Some(length) = head_bytes(rest) {
                let _ = read_head(&rest[..length]);
            }
        }
        1 => {
            let mut content = rest.to_vec();
            match join_chunks(&mut content) {
                Ok((Chunks::Whole(taken), length)) => {
                    assert!(length <= taken && taken <= rest.len())
                }
                Ok((Chunks::Partial, _)) => assert_eq!(content, rest),
                Err(_) => {}
            }
        }
        kind => {
            let version = if kind == 2 { Version::Soap11 } else { Version::Soap12 };
            let mut message = Message::default();
            match read(rest, version, &mut message) {
                Ok(_) => {
                    assert!((1..=MAX_ENTITIES).contains(&message.entities().len()));
                    assert!(message.entities().iter().all(|entity| entity.id < MAX_ID));
                    let text = std::str::from_utf8(rest).unwrap();
                    Reader::new(text).check_rest().unwrap();
                }
                Err(refusal) => {
                    let mut answer = Answer::default();
                    answer::fault(&mut answer, version, false, &refusal);
                    let (_, content) = answer.as_str().split_once("\r\n\r\n").unwrap();
                    Reader::new(content).check_rest().unwrap();
                }
            }
        }
    }
});
