//! Whole bodies under OSCORE (RFC 8613), over a link that loses, delays and repeats.

use super::*;
use crate::coap::guard::Guard;
use crate::oscore::{Algorithm, Context, Endpoint, Parameters, Replay, SenderSequence};

const STEP: u64 = 64;

/// What is done to a message on the way.
type Change = fn(Content) -> Content;

fn end(names: [&[u8]; 2], secret: &[u8], replay: Replay) -> Endpoint {
    let context = Context::derive(&Parameters {
        algorithm: Algorithm::default(),
        master_secret: secret,
        master_salt: b"",
        sender_id: names[0],
        recipient_id: names[1],
        id_context: None,
    });
    Endpoint::new(context.unwrap(), SenderSequence::fresh(STEP).unwrap(), replay)
}

fn guarded(end: Transfers<u8>, guard: Guard<u8>) -> Transfers<u8> {
    let mut end = end.with_guard(guard);
    store(&mut end);
    end
}

/// What a shell does.
fn store(end: &mut Transfers<u8>) {
    while let Some((index, watermark)) = end.guard_mut().to_store() {
        end.guard_mut().note_stored(index, watermark);
    }
}

/// A server that has just started, with a context for another client, too.
fn server(seed: u64) -> Guard<u8> {
    let lost = || Replay::lost(32, [0; 8]).unwrap();
    let contexts = vec![end([b"s", b"d"], b"other", lost()), end([b"s", b"c"], b"key", lost())];
    Guard::server(contexts, true, [seed, 9]).unwrap()
}

fn pair(seed: u64, loss: u64, answer: fn(u64, &Content) -> Option<Content>) -> Pair {
    let mut pair = Pair::new(seed, loss, answer);
    let [client, other] = pair.ends;
    let guard = Guard::client(end([b"c", b"s"], b"key", Replay::fresh(32).unwrap()));
    pair.ends = [guarded(client, guard), guarded(other, server(seed))];
    pair
}

fn answer(_: u64, request: &Content) -> Option<Content> {
    let code = if request.code == Code::GET { Code::CONTENT } else { Code::CHANGED };
    assert_eq!(request.first(option::ECHO), None);
    assert_eq!(request.first(option::OSCORE), None);
    Some(Content::new(code).with_payload(body(9000, request.code.0)))
}

fn short(_: u64, _: &Content) -> Option<Content> {
    Some(Content::new(Code::CHANGED))
}

#[test]
fn bodies_go_in_inner_blocks_over_a_link_that_loses() {
    let (seeds, mut answered) = (60, 0);
    for seed in 0..seeds {
        let mut pair = pair(seed, seed % 5, answer);
        for (request, content) in [(1, post(7000)), (2, get()), (3, post(10))] {
            pair.request(request, content);
            for _ in 0..200 {
                pair.run(Duration::from_secs(5));
                pair.ends.iter_mut().for_each(store);
            }
        }
        for (request, _, payload) in pair.responses() {
            let method = if request == 2 { Code::GET } else { Code::POST };
            assert_eq!(payload, body(9000, method.0), "seed {seed}, request {request}");
            answered += 1;
        }
        assert_eq!(pair.others.len(), 3, "seed {seed}: {:?}", pair.others);
        let posts = pair.requests.iter().filter(|(_, content)| content.code == Code::POST);
        assert!(posts.count() <= 2, "seed {seed}: what changes something is done once");
    }
    assert!(answered > 3 * seeds * 9 / 10, "{answered}");
}

/// RFC 8613 §4.1: nothing of a request or its answer is in the open.
#[test]
fn proxies_see_no_path_and_no_payload() {
    let mut client = pair(0, 0, answer).ends.into_iter().next().unwrap();
    let content = post(40).with(option::IF_MATCH, b"e");
    let input = Input::Request { request: 5, peer: SERVER, content, is_confirmable: true };
    client.handle_input(Duration::ZERO, input);
    let Some(Output::Datagram { bytes, .. }) = client.poll_output() else { panic!() };
    let datagram = Datagram::decode(&bytes).unwrap();
    assert_eq!(datagram.message.code, Code::POST);
    let numbers: Vec<_> = datagram.message.options.into_iter().map(|(n, _)| n).collect();
    assert_eq!(numbers, [option::OSCORE]);
}

/// What client and server send, by hand: nothing is lost and nothing waits.
fn pump(pair: &mut Pair) -> Vec<Bytes> {
    let mut sent = Vec::new();
    while let Some((_, (end, bytes))) = pair.on_the_way.pop_first() {
        if end == 1 {
            sent.push(bytes.clone());
        }
        let peer = if end == 0 { SERVER } else { CLIENT };
        pair.input(end, Input::Datagram { peer, bytes, is_group: false });
    }
    sent
}

/// RFC 8613 appendix B.1.2: a server that has started anew asks for an Echo, once; what was
/// recorded before does nothing and does not spoil it.
#[test]
fn after_a_restart_an_old_request_is_not_done_again() {
    for seed in [0, 1] {
        let mut pair = pair(seed, 0, short);
        pair.request(1, post(10));
        let sent = pump(&mut pair);
        // The request, and again with the Echo.
        assert_eq!((sent.len(), pair.requests.len()), (2, 1), "{seed}");
        pair.request(2, post(10));
        let second = pump(&mut pair);
        assert_eq!((second.len(), pair.requests.len()), (1, 2));
        let fresh = Transfers::new(&settings(seed, 7));
        pair.ends[1] = guarded(fresh, server(seed + 100));
        for old in sent.iter().chain(&second).cloned() {
            pair.input(1, Input::Datagram { peer: 7, bytes: old, is_group: false });
        }
        pair.on_the_way.clear();
        assert_eq!(pair.requests.len(), 2, "an old request is challenged and not done");
        pair.request(3, post(10));
        assert_eq!(pump(&mut pair).len(), 2);
        assert_eq!((pair.requests.len(), pair.responses().len()), (3, 3));
        assert_eq!(pair.ends[1].counts().challenged, 4);
    }
}

/// The answer to what is not sent by the client: code and diagnostic payload.
fn refusal(pair: &mut Pair, peer: u8, bytes: Bytes) -> (Code, String) {
    let before = pair.on_the_way.len();
    pair.input(1, Input::Datagram { peer, bytes, is_group: false });
    assert_eq!(pair.on_the_way.len(), before + 1);
    let newest = pair.on_the_way.keys().max_by_key(|(_, count)| *count).copied().unwrap();
    let (_, bytes) = pair.on_the_way.remove(&newest).unwrap();
    let datagram = Datagram::decode(&bytes).unwrap();
    let payload = String::from_utf8_lossy(datagram.message.payload).into_owned();
    assert_eq!(datagram.message.options.first(option::OSCORE), None);
    (datagram.message.code, payload)
}

/// RFC 8613 §8.2.
#[test]
fn what_does_not_verify_is_refused_in_the_open() {
    let mut pair = pair(0, 0, short);
    pair.request(1, post(10));
    let sent = pump(&mut pair);
    let replayed = Datagram::decode(&sent[1]).unwrap();
    let again = |mid, change: Change| {
        let content = change(Content::try_from(&replayed).unwrap());
        content.encode(crate::coap::Kind::Confirmable, mid, replayed.message.token).unwrap()
    };
    let same = |content| content;
    let unknown = |content: Content| {
        let mut content = content;
        content.set(option::OSCORE, &[9, 1, b'x']);
        content
    };
    let broken = |content: Content| {
        let mut content = content;
        content.set(option::OSCORE, &[7, 1]);
        content
    };
    let changed = |content: Content| {
        let mut content = content;
        content.set(option::OSCORE, &[9, 99, b'c']);
        content
    };
    let bare = |mut content: Content| {
        content.remove(option::OSCORE);
        content
    };
    let cases: [(Change, Code, &str); 5] = [
        (same, Code::UNAUTHORIZED, "Replay detected"),
        (unknown, Code::UNAUTHORIZED, "Security context not found"),
        (broken, Code::BAD_OPTION, "Failed to decode COSE"),
        (changed, Code::BAD_REQUEST, "Decryption failed"),
        (bare, Code::UNAUTHORIZED, "OSCORE is required here"),
    ];
    for (at, (change, code, why)) in cases.into_iter().enumerate() {
        let bytes = again(60_000 + u16::try_from(at).unwrap(), change);
        assert_eq!(refusal(&mut pair, CLIENT, bytes), (code, why.to_owned()));
    }
    assert_eq!((pair.requests.len(), pair.ends[1].counts().refused), (1, 5));
}

/// A recorded request that never arrived is authentic and new, and yet may come from anywhere.
#[test]
fn who_sends_a_recorded_request_shows_that_he_has_the_address() {
    let mut pair = pair(1, 0, answer);
    pair.request(1, get());
    pump(&mut pair);
    pair.request(2, get());
    let (_, (_, stolen)) = pair.on_the_way.pop_first().unwrap();
    pair.input(1, Input::Datagram { peer: 99, bytes: stolen.clone(), is_group: false });
    let newest = pair.on_the_way.keys().max_by_key(|(_, count)| *count).copied().unwrap();
    let (_, answer) = pair.on_the_way.remove(&newest).unwrap();
    assert!(answer.len() <= 3 * stolen.len(), "{} to {}", answer.len(), stolen.len());
    assert_eq!(pair.requests.len(), 1);
    assert!(!pair.ends[1].is_trusted(99) && pair.ends[1].is_trusted(CLIENT));
}

/// An unprotected request for the next block of a protected answer gets none.
#[test]
fn blocks_of_protected_bodies_are_for_their_context_alone() {
    let mut pair = pair(0, 0, answer);
    let [client, server] = pair.ends;
    let contexts = vec![end([b"s", b"c"], b"key", Replay::fresh(32).unwrap())];
    let open = Guard::server(contexts, false, [3, 4]).unwrap();
    pair.ends = [client, guarded(server.with_guard(Guard::none()), open)];
    pair.request(1, get());
    for _ in 0..2 {
        let (_, (end, bytes)) = pair.on_the_way.pop_first().unwrap();
        let peer = if end == 0 { SERVER } else { CLIENT };
        pair.input(end, Input::Datagram { peer, bytes, is_group: false });
    }
    pair.answer = |_, _| Some(Content::new(Code::NOT_FOUND));
    let value = Block { num: 1, more: false, szx: 6 }.encode().unwrap();
    let spy = get().with(option::BLOCK2, value.as_slice());
    let token = crate::coap::Token::EMPTY;
    let bytes = spy.encode(crate::coap::Kind::Confirmable, 60_000, token).unwrap();
    // Behind the end of what the application says to it.
    assert_eq!(refusal(&mut pair, CLIENT, bytes), (Code::BAD_REQUEST, String::new()));
    assert_eq!(pair.requests.len(), 2, "the application was asked");
}

#[test]
fn a_client_takes_no_answer_that_does_not_verify() {
    let answers: [fn(&mut Content); 2] = [
        |_| {},
        |content| {
            content.push(option::OSCORE, b"");
            content.payload = vec![1; 20].into();
        },
    ];
    let reasons = [Reason::Unprotected(Code::CONTENT), Reason::Unverified];
    for (change, reason) in answers.into_iter().zip(reasons) {
        let mut pair = pair(0, 0, answer);
        pair.request(5, get());
        let (_, (_, bytes)) = pair.on_the_way.pop_first().unwrap();
        let request = Datagram::decode(&bytes).unwrap();
        let mut forged = Content::new(Code::CONTENT).with_payload("forged");
        change(&mut forged);
        let kind = crate::coap::Kind::Acknowledgement;
        let bytes = forged.encode(kind, request.mid, request.message.token).unwrap();
        pair.input(0, Input::Datagram { peer: SERVER, bytes, is_group: false });
        assert_eq!(pair.others, [Output::Failed { request: 5, reason }]);
    }
}

/// RFC 7641 and RFC 8613 §4.1.3.5: notifications come in order, are renewed with a number of their
/// own after their age, and end.
#[test]
fn what_is_observed_is_renewed_with_a_number_of_its_own() {
    for seed in 0..20 {
        let mut pair = pair(seed, seed % 4, |_, _| {
            let first = Content::new(Code::CONTENT).with_uint(option::OBSERVE, 0);
            Some(first.with_uint(option::MAX_AGE, 20).with_payload("0"))
        });
        pair.request(5, get().with_uint(option::OBSERVE, 0));
        pair.run(Duration::from_secs(10));
        for number in 1..6 {
            let Some((exchange, _)) = pair.requests.last() else { break };
            let exchange = *exchange;
            let content = Content::new(Code::CONTENT).with_payload(number.to_string());
            pair.input(1, Input::Notify { exchange, content });
            pair.run(Duration::from_secs(4));
            pair.ends.iter_mut().for_each(store);
        }
        pair.run(Duration::from_secs(300));
        let bodies: Vec<_> = pair.responses().into_iter().map(|(_, _, body)| body).collect();
        assert!(bodies.len() >= 4, "seed {seed}: {bodies:?} {:?}", pair.others);
        assert!(pair.requests.len() > 1, "seed {seed}: renewed");
        assert!(pair.others.iter().all(|it| !matches!(it, Output::Failed { .. })));
        if seed % 4 == 0 {
            assert_eq!(&bodies[..6], ["0", "1", "2", "3", "4", "5"]);
        }
    }
}

/// RFC 8613 §7.2.1, appendix B.1.1: no number is used that the store does not know.
#[test]
fn without_a_store_nothing_is_sent() {
    let mut pair = Pair::new(0, 0, answer);
    let [client, server] = pair.ends;
    let guard = Guard::client(end([b"c", b"s"], b"key", Replay::fresh(32).unwrap()));
    pair.ends = [client.with_guard(guard), server];
    pair.request(5, get());
    assert_eq!(pair.others, [Output::Failed { request: 5, reason: Reason::Misuse }]);
    assert_eq!(pair.ends[0].guard_mut().to_store(), Some((0, STEP)));
    store(&mut pair.ends[0]);
    assert_eq!(pair.ends[0].guard_mut().to_store(), None);
    pair.request(6, get());
    assert_eq!(pair.on_the_way.len(), 1);
}
