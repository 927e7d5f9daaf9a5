//! Blocks that are not confirmed one by one (RFC 9177): its examples, and two ends over a link that
//! loses.

use std::fmt::Write as _;

use super::*;
use crate::coap::transfer::q_block::{MAX_PAYLOADS, NON_RECEIVE_TIMEOUT, NON_TIMEOUT, missing};
use crate::coap::{Kind, Token};

mod limits;

const S: Duration = Duration::from_secs(1);

fn pair(seed: u64, loss: u64, answer: fn(u64, &Content) -> Option<Content>) -> Pair {
    let mut pair = Pair::new(seed, loss, answer);
    pair.ends = [
        Transfers::new(&settings(seed, 1)).offering_q_block([seed, 1]),
        Transfers::new(&settings(seed, 2)).answering_q_block([seed, 2]),
    ];
    pair
}

/// Links, and else as much as Size2 asks for.
fn as_asked(_: u64, request: &Content) -> Option<Content> {
    if request.first(option::URI_PATH) == Some(b".well-known") {
        return Some(Content::new(Code::CONTENT).with_payload("</large>;rt=large;sz=70000"));
    }
    let code = if request.code.is_safe() { Code::CONTENT } else { Code::CHANGED };
    let bytes = request.uint(option::SIZE2).unwrap_or(0);
    Some(Content::new(code).with_payload(body(bytes as usize, 7)))
}

fn sized(content: Content, down: u32) -> Content {
    content.with_uint(option::SIZE2, down)
}

/// Requests but those of links.
fn asked_for(pair: &Pair) -> Vec<&Content> {
    let is_link = |it: &&Content| it.first(option::URI_PATH) != Some(b".well-known");
    pair.requests.iter().map(|(_, content)| content).filter(is_link).collect()
}

#[test]
fn bodies_go_and_come_in_sets() {
    for seed in [0, 1] {
        for (up, down) in [(0, 1025), (1025, 0), (5000, 70_000), (200_000, 1), (0, 1 << 20)] {
            let mut pair = pair(seed, 0, as_asked);
            let request = if up == 0 { get() } else { post(up) };
            pair.request(5, sized(request.with(option::IF_MATCH, b"e"), down));
            pair.run(LONG);
            let code = if up == 0 { Code::CONTENT } else { Code::CHANGED };
            assert_eq!(pair.responses(), [(5, code, body(down as usize, 7))], "{seed} {up} {down}");
            let asked = asked_for(&pair);
            assert_eq!((asked.len(), &asked[0].payload), (1, &body(up, 0)));
            assert_eq!(asked[0].first(option::IF_MATCH), Some(&b"e"[..]));
            for number in [option::Q_BLOCK1, option::Q_BLOCK2, option::SIZE1] {
                assert_eq!(asked[0].first(number), None);
            }
            // A round trip a set, no pause, and few messages beside the blocks.
            let sets = (up as u64).div_ceil(10_240) + u64::from(down).div_ceil(10_240);
            let longest = Duration::from_millis(160) * u32::try_from(sets + 4).unwrap();
            assert!(pair.ended_at <= longest, "{:?} for {sets} sets", pair.ended_at);
            let blocks = (up as u64).div_ceil(1024) + u64::from(down).div_ceil(1024);
            assert!(pair.count <= blocks + sets + 8, "{} for {blocks} blocks", pair.count);
            assert!(pair.on_the_way.is_empty());
        }
    }
}

#[test]
fn who_does_not_know_them_is_asked_by_blocks() {
    let mut pair = pair(0, 0, as_asked);
    pair.ends[1] = Transfers::new(&settings(0, 2));
    pair.request(5, sized(get(), 3000));
    pair.run(S * 100);
    // The question and its answer, and three blocks.
    assert_eq!(pair.count, 2 + 6);
    pair.request(6, post(3000));
    pair.run(S * 100);
    assert_eq!(pair.count, 2 + 6 + 6, "it is not asked again");
    let expected = [(5, Code::CONTENT, body(3000, 7)), (6, Code::CHANGED, Bytes::new())];
    assert_eq!(pair.responses(), expected);
    // And who may not use them is not asked at all.
    pair.ends[1] = Transfers::new(&settings(0, 2));
    pair.request(7, get().with_uint(option::OBSERVE, 0));
    pair.run(S);
    assert_eq!(pair.count, 2 + 6 + 6 + 2);
}

#[test]
fn bodies_pass_a_link_that_loses_without_being_confirmed() {
    let (mut answered, seeds) = (0, 1000);
    for seed in 0..seeds {
        let mut pair = pair(seed, seed % 5, as_asked);
        pair.request(1, sized(post(40_000), 9000));
        pair.request(2, sized(get(), 60_000));
        pair.request(3, sized(post(3000), 0));
        pair.run(LONG);
        for (request, _, payload) in pair.responses() {
            let bytes = [0, 9000, 60_000, 0][usize::try_from(request).unwrap()];
            assert_eq!(payload, body(bytes, 7), "seed {seed}, request {request}");
            answered += 1;
        }
        let ended: BTreeSet<u64> = pair
            .others
            .iter()
            .map(|output| match output {
                Output::Response { request, .. } | Output::Failed { request, .. } => *request,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!((ended.len(), pair.others.len()), (3, 3), "seed {seed}: {:?}", pair.others);
        // Whatever is repeated, a body is there once.
        let posts = asked_for(&pair).iter().filter(|it| it.code == Code::POST).count();
        assert!(posts <= 2, "seed {seed}");
        assert!(pair.on_the_way.is_empty());
    }
    assert!(answered > 3 * seeds * 19 / 20, "{answered} of {}", 3 * seeds);
}

/// One end, and the other by hand.
struct One {
    end: Transfers<u8>,
    /// Who the other is.
    peer: u8,
    now: Duration,
    wake_at: Option<Duration>,
    /// What was sent, in the notation of RFC 9177.
    sent: Vec<String>,
    /// The tokens and ids of these.
    heads: Vec<(u16, Token)>,
    others: Vec<Output<u8>>,
    mid: u16,
}

impl One {
    fn server() -> Self {
        let end = Transfers::new(&settings(0, 2)).answering_q_block([0, 2]);
        Self::of(end, CLIENT)
    }

    /// A client that knows that its server knows the options.
    fn client() -> Self {
        let end = Transfers::new(&settings(0, 1)).offering_q_block([0, 1]);
        let mut one = Self::of(end, SERVER);
        one.ask(sized(get(), 0));
        assert_eq!(one.take(), ["CON 0.01 QB2:0/0/16"]);
        let (mid, token) = one.heads[0];
        let links = q2(Content::new(Code::CONTENT), 0, true, 0).with_payload(vec![b' '; 16]);
        one.hear(Kind::Acknowledgement, mid, token, &links);
        assert_eq!(one.take(), ["CON 0.01 QB2:0/1/1024"]);
        one.answer(1, &Content::new(Code::CONTENT).with_payload("short"));
        assert!(matches!(one.others.pop(), Some(Output::Response { is_last: true, .. })));
        one
    }

    fn of(end: Transfers<u8>, peer: u8) -> Self {
        let (sent, heads, others) = (Vec::new(), Vec::new(), Vec::new());
        Self { end, peer, now: Duration::ZERO, wake_at: None, sent, heads, others, mid: 1 }
    }

    fn input(&mut self, input: Input<u8>) {
        self.end.handle_input(self.now, input);
        while let Some(output) = self.end.poll_output() {
            match output {
                Output::Datagram { bytes, .. } => {
                    let datagram = Datagram::decode(&bytes).unwrap();
                    self.sent.push(said(&datagram));
                    self.heads.push((datagram.mid, datagram.message.token));
                }
                Output::WakeAt(at) => self.wake_at = Some(at),
                other => self.others.push(other),
            }
        }
    }

    fn ask(&mut self, content: Content) {
        self.input(Input::Request { request: 1, peer: SERVER, content, is_confirmable: true });
    }

    fn hear(&mut self, kind: Kind, mid: u16, token: Token, content: &Content) {
        let bytes = content.encode(kind, mid, token).unwrap();
        self.input(Input::Datagram { peer: self.peer, bytes, is_group: false });
    }

    /// A message that is not confirmable, with this token.
    fn hear_non(&mut self, token: u8, content: &Content) {
        self.mid += 1;
        self.hear(Kind::NonConfirmable, self.mid, Token::new(&[token]).unwrap(), content);
    }

    /// The same as an answer to the message that was sent as the `which`th of all.
    fn answer(&mut self, which: usize, content: &Content) {
        self.mid += 1;
        self.hear(Kind::NonConfirmable, self.mid, self.heads[which].1, content);
    }

    /// The application's answer to the newest request.
    fn respond(&mut self, content: Content) {
        let Some(Output::Request { exchange, .. }) = self.others.pop() else {
            panic!("a request: {:?}", self.others)
        };
        self.input(Input::Respond { exchange, content });
    }

    /// Time passes.
    fn pass(&mut self, long: Duration) {
        let until = self.now + long;
        while let Some(at) = self.wake_at.take_if(|at| *at <= until) {
            self.now = self.now.max(at);
            self.input(Input::Wake);
        }
        self.now = until;
    }

    fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.sent)
    }
}

fn q(mut content: Content, number: option::Number, num: u32, more: bool, szx: u8) -> Content {
    content.push(number, Block { num, more, szx }.encode().unwrap().as_slice());
    content
}

fn q2(content: Content, num: u32, more: bool, szx: u8) -> Content {
    let content = q(content, option::Q_BLOCK2, num, more, szx);
    if content.code.is_request() { content } else { content.with_uint(option::SIZE2, 100) }
}

/// A message in the notation of RFC 9177.
fn said(datagram: &Datagram<'_>) -> String {
    let kind = match datagram.kind {
        Kind::Confirmable => "CON",
        Kind::NonConfirmable => "NON",
        Kind::Acknowledgement => "ACK",
        Kind::Reset => "RST",
    };
    let content = Content::try_from(datagram).unwrap();
    let mut text = format!("{kind} {}", content.code);
    for (number, name) in [(option::Q_BLOCK1, "QB1"), (option::Q_BLOCK2, "QB2")] {
        for value in content.all(number) {
            let block = Block::decode(value, false).unwrap();
            let (more, size) = (u8::from(block.more), block.size_bytes());
            write!(text, " {name}:{}/{more}/{size}", block.num).unwrap();
        }
    }
    if let Some(numbers) = missing::decode(&content.payload)
        && content.code == Code::REQUEST_ENTITY_INCOMPLETE
    {
        assert_eq!(content.uint(option::CONTENT_FORMAT), Some(272));
        write!(text, " {numbers:?}").unwrap();
    }
    text
}

/// A block of a body of `total` blocks, the last of which has 100 bytes.
fn put(num: u32, total: u32) -> Content {
    let size = (total - 1) * 1024 + 100;
    let len = if num + 1 < total { 1024 } else { 100 };
    let put = Content::new(Code::PUT).with(option::URI_PATH, b"path");
    let put = put.with(option::REQUEST_TAG, &[9]).with_uint(option::SIZE1, size);
    let byte = u8::try_from(num).unwrap();
    q(put, option::Q_BLOCK1, num, num + 1 < total, 6).with_payload(vec![byte; len])
}

/// Figures 3 and 4: without loss.
#[test]
fn a_server_confirms_sets_and_the_whole() {
    let mut server = One::server();
    (0..4).for_each(|num| server.hear_non(0xc0 + u8::try_from(num).unwrap(), &put(num, 4)));
    assert_eq!(server.take(), [""; 0]);
    server.respond(Content::new(Code::CHANGED));
    assert_eq!(server.take(), ["NON 2.04"]);
    assert_eq!(server.heads.last().unwrap().1, Token::new(&[0xc3]).unwrap());

    let mut server = One::server();
    (0..10).for_each(|num| server.hear_non(0xf1 + u8::try_from(num).unwrap(), &put(num, 11)));
    assert_eq!(server.take(), ["NON 2.31 QB1:9/1/1024"]);
    assert_eq!(server.heads.last().unwrap().1, Token::new(&[0xfa]).unwrap());
    server.hear_non(0xfb, &put(10, 11));
    let Some(Output::Request { content, .. }) = server.others.last() else { panic!() };
    assert_eq!(content.payload.len(), 10 * 1024 + 100);
    server.respond(Content::new(Code::CHANGED));
    assert_eq!(server.take(), ["NON 2.04"]);
    // What comes late begins nothing anew; the last block asks for what was said.
    server.hear_non(0xfc, &put(3, 11));
    assert_eq!((server.take(), server.others.len()), (vec![], 0));
    server.hear_non(0xfd, &put(10, 11));
    assert_eq!((server.take(), server.others.len()), (vec!["NON 2.04".to_owned()], 0));
}

/// Figures 5 and 6.
#[test]
fn a_server_asks_for_what_is_missing() {
    let mut server = One::server();
    [0, 2, 3, 4, 5, 6, 7, 8].into_iter().for_each(|num| server.hear_non(num, &put(num.into(), 13)));
    server.pass(S * 3);
    assert_eq!(server.take(), [""; 0]);
    server.hear_non(0xec, &put(11, 13));
    assert_eq!(server.take(), ["NON 4.08 [1, 9]"]);
    assert_eq!(server.heads.last().unwrap().1, Token::new(&[0xec]).unwrap());
    [1, 9, 12].into_iter().for_each(|num| server.hear_non(0xe0 + num, &put(num.into(), 13)));
    server.take();
    server.pass(NON_RECEIVE_TIMEOUT);
    assert_eq!(server.take(), ["NON 4.08 [10]"]);
    server.hear_non(0xf0, &put(10, 13));
    server.respond(Content::new(Code::CHANGED));
    assert_eq!(server.take(), ["NON 2.04"]);
}

/// Figure 7: who says nothing more is asked four times, and its body is forgotten.
#[test]
fn a_server_gives_up_in_the_end() {
    let mut server = One::server();
    [0, 2].into_iter().for_each(|num| server.hear_non(0xd0 + num, &put(num.into(), 3)));
    let mut asked_at = Vec::new();
    for _ in 0..300 {
        server.pass(S);
        asked_at.extend(server.take().iter().map(|text| {
            assert_eq!(text, "NON 4.08 [1]");
            server.now.as_secs()
        }));
    }
    assert_eq!(asked_at, [4, 12, 28, 60]);
    server.hear_non(0xd3, &put(1, 3));
    assert!(server.others.is_empty(), "the others are not there any more");
}

#[test]
fn a_server_refuses_blocks_that_lie() {
    let mut server = One::server();
    let refused = |server: &mut One, content: &Content, text: &str| {
        server.hear_non(1, content);
        assert_eq!(server.take(), [text], "{content:?}");
    };
    let without = |number| {
        let mut content = put(0, 3);
        content.remove(number);
        content
    };
    refused(&mut server, &without(option::REQUEST_TAG), "NON 4.00");
    refused(&mut server, &without(option::SIZE1), "NON 4.00");
    refused(&mut server, &without(option::SIZE1).with_uint(option::SIZE1, 2 << 20), "NON 4.13");
    refused(&mut server, &put(0, 3).with_payload("short"), "NON 4.00");
    refused(&mut server, &put(0, 3).with(option::BLOCK2, &[6]), "NON 4.02");
    let reserved = without(option::Q_BLOCK1).with(option::Q_BLOCK1, &[7]);
    refused(&mut server, &reserved, "NON 4.00");
    server.hear_non(1, &put(0, 3));
    assert_eq!(server.take(), [""; 0]);
    refused(&mut server, &put(1, 4), "NON 4.00");
    for blocks in [&[(2, false), (1, false)][..], &[(1, false), (1, false)]] {
        let content = blocks.iter().fold(get(), |it, (num, more)| q2(it, *num, *more, 6));
        refused(&mut server, &content, "NON 4.00");
    }
    refused(&mut server, &q2(q2(get(), 1, false, 6), 2, false, 5), "NON 4.00");
    // RFC 9177 §4.8.
    let bytes = q2(get(), 0, true, 6).encode(Kind::NonConfirmable, 99, Token::EMPTY).unwrap();
    server.input(Input::Datagram { peer: CLIENT, bytes, is_group: true });
    assert_eq!((server.take(), server.others.len()), (vec![], 0));
    // What changes something and is gone is not done again.
    let gone = q2(Content::new(Code::POST).with(option::URI_PATH, b"gone"), 3, false, 6);
    refused(&mut server, &gone, "NON 4.08");
}

/// Many bodies at once: a few are kept, of each peer and of all.
#[test]
fn a_storm_of_bodies_takes_bounded_memory() {
    let mut server = One::server();
    for tag in 0..200_u32 {
        let mut block = put(0, 1000);
        block.set(option::REQUEST_TAG, &tag.to_be_bytes());
        server.hear_non(u8::try_from(tag % 250).unwrap(), &block);
    }
    server.take();
    // Those that are left are asked about, and no others.
    server.pass(NON_RECEIVE_TIMEOUT);
    assert_eq!(server.take().len(), 4);
    assert_eq!(server.end.counts().refused, 196);
}

fn numbers(range: std::ops::Range<u32>, total: u32) -> Vec<String> {
    let more = |num| u8::from(num + 1 < total);
    range.map(|num| format!("NON 2.05 QB2:{num}/{}/1024", more(num))).collect()
}

fn large(blocks: usize) -> Content {
    Content::new(Code::CONTENT).with_payload(body((blocks - 1) * 1024 + 10, 3))
}

/// Figures 8 to 11, without Observe.
#[test]
fn a_server_sends_sets_and_repeats_what_is_missing() {
    let mut server = One::server();
    server.hear_non(0xc0, &q2(get(), 0, true, 6));
    server.respond(large(4));
    assert_eq!(server.take(), numbers(0..4, 4));

    let mut server = One::server();
    server.hear_non(0xf0, &q2(get(), 0, true, 6));
    server.respond(large(21));
    assert_eq!(server.take(), numbers(0..10, 21));
    server.hear_non(0xf1, &q2(get(), 10, true, 6));
    assert_eq!(server.take(), numbers(10..20, 21));
    let all_of_first = |token: &(u16, Token)| token.1 == Token::new(&[0xf0]).unwrap();
    assert!(server.heads.iter().all(all_of_first), "it goes on with the same token");
    server.hear_non(0xf2, &q2(get(), 10, true, 6));
    assert_eq!(server.take(), [""; 0], "what was said before says nothing new");
    server.pass(NON_TIMEOUT - Duration::from_millis(1));
    assert_eq!(server.take(), [""; 0]);
    server.pass(S + Duration::from_millis(1));
    assert_eq!(server.take(), numbers(20..21, 21));
    server.hear_non(0xf3, &q2(q2(get(), 1, false, 6), 9, false, 6));
    assert_eq!(server.take(), ["NON 2.05 QB2:1/1/1024", "NON 2.05 QB2:9/1/1024"]);
    assert_eq!(server.heads.last().unwrap().1, Token::new(&[0xf3]).unwrap());
    server.hear_non(0xf5, &q2(get(), 2, true, 6));
    assert_eq!(server.take(), numbers(2..10, 21));
    assert!(server.others.is_empty(), "the application was asked once");
    // Each block at most five times: then there is silence.
    let mut blocks = 0;
    for token in 0..200 {
        server.hear_non(token, &q2(get(), 2, true, 6));
        blocks += server.take().len();
    }
    assert!((21 * 5 - 30..21 * 5).contains(&blocks), "{blocks}");
}

/// A request for all that comes again and again gets no more than a set a pause.
#[test]
fn a_storm_of_requests_gets_a_set_a_pause() {
    let mut server = One::server();
    for token in 0..100 {
        server.hear_non(token, &q2(get(), 0, true, 6));
        server.respond(large(40));
    }
    assert!(server.take().len() <= 10, "{:?}", server.sent);
    server.pass(S * 60);
    assert_eq!(server.take().len(), 40);
}

/// Appendix A.1 and A.2: confirmable blocks are acknowledged and get no other answer; a response to
/// a confirmable request is not confirmed here (RFC 7252 §5.2.3).
#[test]
fn confirmable_blocks_are_acknowledged() {
    let mut server = One::server();
    for (num, mid) in [(0, 1), (1, 2), (2, 3), (2, 3)] {
        let token = Token::new(&[0xf0 + u8::try_from(num).unwrap()]).unwrap();
        server.hear(Kind::Confirmable, mid, token, &put(num, 4));
        assert_eq!(server.take(), ["ACK 0.00"]);
    }
    server.hear(Kind::Confirmable, 4, Token::new(&[0xf3]).unwrap(), &put(3, 4));
    server.respond(Content::new(Code::CHANGED));
    assert_eq!(server.take(), ["ACK 2.04"]);
    server.hear(Kind::Confirmable, 5, Token::new(&[0xf5]).unwrap(), &q2(get(), 0, true, 6));
    server.respond(large(2));
    let expected = ["ACK 0.00", "NON 2.05 QB2:0/1/1024", "NON 2.05 QB2:1/0/1024"];
    assert_eq!(server.take(), expected);
    server.hear(Kind::Confirmable, 6, Token::new(&[0xf6]).unwrap(), &q2(get(), 1, false, 6));
    assert_eq!(server.take(), ["ACK 2.05 QB2:1/0/1024"]);
}

/// Who has not shown that it has its address gets an Echo, and nothing of many datagrams.
#[test]
fn an_address_is_shown_first() {
    let settings = Settings { seed: [1, 2], is_challenging: true, rate_bps: None };
    let mut server = One::of(Transfers::new(&settings).answering_q_block([0, 2]), CLIENT);
    for content in [q2(get(), 0, true, 6), q2(get(), 1, false, 6), put(0, 3)] {
        server.hear_non(1, &content);
        assert_eq!(server.take(), ["NON 4.01"]);
    }
    assert!(server.others.is_empty());
}

fn blocks(numbers: &[u32], total: u32) -> Vec<String> {
    let more = |num: &u32| u8::from(num + 1 < total);
    numbers.iter().map(|num| format!("NON 0.03 QB1:{num}/{}/1024", more(num))).collect()
}

/// Figures 5 and 6 from the other side.
#[test]
fn a_client_sends_what_is_missing_before_what_is_new() {
    let mut client = One::client();
    let content = Content::new(Code::PUT).with(option::URI_PATH, b"path");
    client.ask(content.with_payload(body(12 * 1024 + 5, 0)));
    assert_eq!(client.take(), blocks(&(0..10).collect::<Vec<_>>(), 13));
    client.pass(NON_TIMEOUT - Duration::from_millis(1));
    assert_eq!(client.take(), [""; 0]);
    client.pass(S + Duration::from_millis(1));
    assert_eq!(client.take(), blocks(&[10, 11, 12], 13));
    let newest = client.heads.len() - 1;
    let lost = Content::new(Code::REQUEST_ENTITY_INCOMPLETE).with_uint(option::CONTENT_FORMAT, 272);
    client.answer(newest, &lost.clone().with_payload(missing::encode(&[1, 9])));
    assert_eq!(client.take(), blocks(&[1, 9], 13));
    // In the wrong order, or of what does not exist: as if it had not come.
    client.answer(newest, &lost.clone().with_payload(vec![9, 1]));
    client.answer(newest, &lost.clone().with_payload(missing::encode(&[13, 4000])));
    assert_eq!(client.take(), [""; 0]);
    client.answer(newest, &Content::new(Code::CHANGED));
    let [.., Output::Response { request: 1, content, is_last: true }] = &client.others[..] else {
        panic!("{:?}", client.others)
    };
    assert_eq!(content.code, Code::CHANGED);
    // RFC 9177 §4.3: who still asks learns that nobody sends any more.
    client.answer(newest, &lost.with_payload(missing::encode(&[1])));
    assert_eq!(client.take(), ["RST 0.00"]);
}

#[test]
fn a_client_stops_when_the_server_has_had_all_many_times() {
    let mut client = One::client();
    client.ask(post(11 * 1024));
    let mut sent = 0;
    let lost = Content::new(Code::REQUEST_ENTITY_INCOMPLETE).with_uint(option::CONTENT_FORMAT, 272);
    let lost = lost.with_payload(missing::encode(&(0..11).collect::<Vec<_>>()));
    for _ in 0..400 {
        client.pass(Duration::from_millis(500));
        client.answer(client.heads.len() - 1, &lost);
        sent += client.take().iter().filter(|text| text.starts_with("NON")).count();
    }
    assert!(sent <= 11 + 11 * 4 + 11, "{sent}");
    assert_eq!(client.others.last(), Some(&failed(Reason::NoAnswer)));
}

fn failed(reason: Reason) -> Output<u8> {
    Output::Failed { request: 1, reason }
}

/// A server that takes all and says nothing: its last block is sent again a few times.
#[test]
fn a_client_gives_up_in_the_end() {
    let mut client = One::client();
    client.ask(post(3 * 1024));
    assert_eq!(client.take().len(), 3);
    client.pass(S * 400);
    assert_eq!(client.take(), ["NON 0.02 QB1:2/0/1024"; 4]);
    assert_eq!(client.others, [failed(Reason::NoAnswer)]);
}

fn part(num: u32, total: u32, tag: &[u8]) -> Content {
    let len = if num + 1 < total { 1024 } else { 7 };
    let content = Content::new(Code::CONTENT).with(option::ETAG, tag);
    let content = q(content, option::Q_BLOCK2, num, num + 1 < total, 6);
    content.with_uint(option::SIZE2, (total - 1) * 1024 + 7).with_payload(vec![1; len])
}

/// Figures 9 to 11 from the other side.
#[test]
fn a_client_asks_for_what_is_missing() {
    let mut client = One::client();
    client.ask(get().with(option::ETAG, b"old"));
    assert_eq!(client.take(), ["CON 0.01 QB2:0/1/1024"]);
    let main = client.heads.len() - 1;
    (0..10).for_each(|num| client.answer(main, &part(num, 22, b"e")));
    assert_eq!(client.take(), ["NON 0.01 QB2:10/1/1024"]);
    [10, 12, 13].into_iter().for_each(|num| client.answer(main, &part(num, 22, b"e")));
    client.answer(main, &part(21, 22, b"e"));
    // A block of another set shows that the rest of this one is lost.
    let text = client.take();
    let numbers = [11, 14, 15, 16, 17, 18, 19].map(|num| format!(" QB2:{num}/0/1024")).concat();
    assert_eq!(text, [format!("NON 0.01{numbers}")]);
    let missing = client.heads.len() - 1;
    [14, 15, 16, 17, 18, 19]
        .into_iter()
        .for_each(|num| client.answer(missing, &part(num, 22, b"e")));
    assert_eq!(client.take(), [""; 0]);
    client.pass(NON_RECEIVE_TIMEOUT - Duration::from_millis(1));
    assert_eq!(client.take(), [""; 0]);
    client.pass(Duration::from_millis(1));
    assert_eq!(client.take(), ["NON 0.01 QB2:11/0/1024 QB2:20/0/1024"]);
    client.pass(NON_RECEIVE_TIMEOUT * 2);
    assert_eq!(client.take(), ["NON 0.01 QB2:11/0/1024 QB2:20/0/1024"]);
    let missing = client.heads.len() - 1;
    [11, 20].into_iter().for_each(|num| client.answer(missing, &part(num, 22, b"e")));
    let [Output::Response { content, is_last: true, .. }] = &client.others[..] else {
        panic!("{:?}", client.others)
    };
    assert_eq!(content.payload.len(), 21 * 1024 + 7);
    assert_eq!(content.first(option::Q_BLOCK2), None);
}

#[test]
fn a_client_is_not_led_on() {
    let outcome = |contents: &[Content]| {
        let mut client = One::client();
        client.ask(get());
        let main = client.heads.len() - 1;
        contents.iter().for_each(|content| client.answer(main, content));
        client.others.pop()
    };
    let mut no_size = part(0, 3, b"e");
    no_size.remove(option::SIZE2);
    assert_eq!(outcome(&[no_size]), Some(failed(Reason::BadAnswer)));
    let short = part(0, 3, b"e").with_payload("short");
    assert_eq!(outcome(&[short]), Some(failed(Reason::BadAnswer)));
    let large = part(0, 2000, b"e");
    assert_eq!(outcome(&[large]), Some(failed(Reason::TooLarge)));
    let tags: Vec<_> = (0..9).map(|tag| part(0, 3, &[tag])).collect();
    assert_eq!(outcome(&tags), Some(failed(Reason::Changed)));
    // A body that becomes another one is taken as that.
    let changed: Vec<_> =
        [(0, b"a"), (1, b"b"), (0, b"b"), (2, b"b")].map(|(num, tag)| part(num, 3, tag)).into();
    assert!(matches!(outcome(&changed), Some(Output::Response { is_last: true, .. })));
    // Who says nothing more ends it.
    let mut client = One::client();
    client.ask(get());
    let main = client.heads.len() - 1;
    client.answer(main, &part(0, 3, b"e"));
    client.take();
    client.pass(S * 130);
    assert_eq!(client.take(), ["NON 0.01 QB2:1/0/1024 QB2:2/0/1024"; 4]);
    assert_eq!(client.others, [failed(Reason::NoAnswer)]);
    assert_eq!(MAX_PAYLOADS, 10, "what the figures count by");
}
