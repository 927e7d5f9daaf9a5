use std::collections::BTreeMap;

use bytes::Bytes;
use coding::job::{Contexts, Decode, Encode, Setup};
use coding::recipient::Framing;

use super::*;
use crate::actor;

fn id(number: u64) -> ExchangeId {
    ExchangeId { instance: 1, number }
}

fn setup(name: &str) -> Setup {
    let (options, framing) = (codec::Options::of(name).unwrap(), Framing::Blocks);
    Setup { options, base: None, schema_context: None, framing }
}

fn encode(exchange: u64, block: u64, name: &str, bytes: &[u8], last: bool) -> Job {
    Job::Encode(Encode {
        exchange: id(exchange),
        block,
        setup: setup(name),
        bytes: Bytes::copy_from_slice(bytes),
        first: block == 0,
        last,
    })
}

/// What the pool tells the actor, for each exchange in order.
fn done(inbox: &mut actor::Inbox, count: usize) -> BTreeMap<u64, Vec<(u64, Bytes)>> {
    let mut results: BTreeMap<u64, Vec<(u64, Bytes)>> = BTreeMap::new();
    for _ in 0..count {
        let Some(Message::Input(Input::Done(Done::Encoded { exchange, block, result, .. }))) =
            inbox.messages.blocking_recv()
        else {
            panic!("no result");
        };
        results.entry(exchange.number).or_default().push((block, result.unwrap()));
    }
    results
}

#[test]
fn blocks_of_an_exchange_share_a_context_and_keep_their_order() {
    let (handle, mut inbox) = actor::channel();
    let workers = Workers::start(4, &handle);
    let (exchanges, blocks) = (8, 20);
    let text = |exchange: u64, block: u64| format!("{exchange} {block} text ").repeat(200);
    for block in 0..blocks {
        for exchange in 0..exchanges {
            let text = text(exchange, block);
            workers.push(encode(exchange, block, "zstd", text.as_bytes(), block + 1 == blocks));
        }
    }
    let results = done(&mut inbox, usize::try_from(exchanges * blocks).unwrap());
    for (exchange, results) in results {
        let mut decoder = codec::Options::of("zstd").unwrap().decoder().unwrap();
        for (number, (block, bytes)) in results.iter().enumerate() {
            assert_eq!(*block, number as u64);
            let (text, mut out) = (text(exchange, *block), Vec::new());
            decoder.decode(bytes, text.len(), block + 1 == blocks, &mut out).unwrap();
            assert_eq!(out, text.as_bytes());
        }
    }
}

#[test]
fn what_comes_behind_a_release_waits_for_what_is_under_way_and_begins_anew() {
    // No thread of the pool: the test is each in turn.
    let workers = Workers { shared: Arc::default() };
    workers.push(encode(1, 0, "deflate", b"tried in vain", false));
    let (first, none) = take(&workers.shared, Duty::Bodies).unwrap();
    assert!(none.is_none());
    workers.release(id(1));
    workers.push(encode(1, 0, "deflate", b"a turn later", false));
    assert!(workers.shared.lock().ready.is_empty());
    let mut context = None;
    assert!(run(&first, &mut context, &mut Vec::new()).is_ok() && context.is_some());
    put_back(&workers.shared, Key::of(&first), context, None);
    let (next, context) = take(&workers.shared, Duty::Bodies).unwrap();
    assert!(matches!(next, Job::Encode(next) if next.bytes == "a turn later"));
    assert!(context.is_none());
}

#[test]
fn exchanges_have_the_same_context_one_after_another_and_nothing_of_each_other() {
    let (handle, mut inbox) = actor::channel();
    let workers = Workers::start(1, &handle);
    for name in ["zstd", "deflate"] {
        let fresh = |bytes: &[u8]| {
            let mut out = Vec::new();
            codec::Options::of(name).unwrap().encoder().unwrap().encode(bytes, true, &mut out)?;
            Ok::<_, codec::Error>(out)
        };
        for exchange in 1..20 {
            let text = format!("message {exchange} of the same kind, and of much the same bytes");
            workers.push(encode(exchange, 0, name, text.as_bytes(), true));
            let results = done(&mut inbox, 1);
            assert_eq!(results[&exchange][0].1, fresh(text.as_bytes()).unwrap());
            workers.release(id(exchange));
        }
    }
}

#[test]
fn a_released_exchange_leaves_nothing_behind() {
    let (handle, mut inbox) = actor::channel();
    let workers = Workers::start(1, &handle);
    workers.push(encode(1, 0, "deflate", b"hello", false));
    done(&mut inbox, 1);
    workers.release(id(1));
    // The pool's one thread is free again once another exchange is through.
    workers.push(encode(2, 0, "identity", b"x", true));
    done(&mut inbox, 1);
    workers.release(id(2));
    drop(inbox);
    let shared = Arc::clone(&workers.shared);
    drop(workers);
    while Arc::strong_count(&shared) > 1 {
        std::thread::yield_now();
    }
    let state = shared.lock();
    assert!(state.lanes.is_empty() && state.ready.is_empty());
}

#[test]
fn a_long_exchange_does_not_hold_up_a_short_one() {
    let (handle, mut inbox) = actor::channel();
    let workers = Workers::start(1, &handle);
    let long = vec![b'x'; 60_000];
    for block in 0..50 {
        workers.push(encode(1, block, "deflate:9", &long, false));
    }
    workers.push(encode(2, 0, "deflate:9", b"short", true));
    let mut before = 0;
    loop {
        let Some(Message::Input(Input::Done(done))) = inbox.messages.blocking_recv() else {
            panic!("no result");
        };
        if done.exchange() == Some(id(2)) {
            break;
        }
        before += 1;
    }
    assert!(before < 50, "the short block waited for all of the long exchange");
}

#[test]
fn a_block_that_cannot_be_decoded_is_an_error_of_its_own() {
    let (handle, mut inbox) = actor::channel();
    let workers = Workers::start(1, &handle);
    workers.push(Job::Decode(Decode {
        exchange: id(1),
        block: 0,
        setup: setup("zstd"),
        bytes: Bytes::from_static(&[0xff; 50]),
        decoded_len: 50,
        first: true,
        last: true,
    }));
    let Some(Message::Input(Input::Done(Done::Decoded { result, .. }))) =
        inbox.messages.blocking_recv()
    else {
        panic!("no result");
    };
    assert!(matches!(result, Err(codec::Error::Corrupt { .. })), "{result:?}");
}

/// An encoder that can be renewed, and looks at its end whether anybody could go on meanwhile.
struct Witness(Arc<Shared>);

impl codec::Encoder for Witness {
    fn encode(&mut self, _: &[u8], _: bool, _: &mut Vec<u8>) -> Result<(), codec::Error> {
        Ok(())
    }

    fn renew(&mut self) -> bool {
        true
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        assert!(self.0.state.try_lock().is_ok(), "nobody waits for memory to be given back");
    }
}

#[test]
fn contexts_are_given_up_while_others_go_on() {
    let workers = Workers { shared: Arc::default() };
    let shared = &workers.shared;
    let context = || {
        let encoder: Box<dyn codec::Encoder> = Box::new(Witness(Arc::clone(shared)));
        let contexts = Contexts { encoder: Some(encoder), decoder: None };
        let (options, framing) = (codec::Options::of("zstd:1").unwrap(), Framing::Blocks);
        Some(Context { options, framing, contexts })
    };
    let key = Some(Key::Encode(id(1)));
    let under_way = |name: &str, first: bool| {
        let block = u64::from(!first);
        workers.push(encode(1, block, name, b"a block", false));
        let (_, before) = take(shared, Duty::Bodies).unwrap();
        before
    };
    // Of one that is released while a thread has it, and while none has.
    under_way("zstd:1", true);
    workers.release(id(1));
    put_back(shared, key, context(), None);
    under_way("zstd:1", true);
    put_back(shared, key, context(), None);
    workers.release(id(1));
    // Where another begins in its place.
    under_way("zstd:1", true);
    put_back(shared, key, context(), None);
    assert!(under_way("deflate", true).is_none());
    // Of more than are kept, and of a lane that is gone.
    for _ in 0..20 {
        put_back(shared, key, None, context());
    }
    put_back(shared, Some(Key::Encode(id(2))), context(), None);
    // What is left goes with the pool.
    let kept = std::mem::take(&mut shared.lock().spares);
    drop(kept);
}
