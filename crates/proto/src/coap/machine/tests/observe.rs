use super::*;

/// RFC 7641 §3.4.
#[test]
fn the_newer_of_two_notifications_is_known() {
    let at = s(10);
    assert!(is_newer((1, at), (2, at)) && !is_newer((2, at), (1, at)));
    assert!(!is_newer((5, at), (5, at)));
    assert!(is_newer((0xff_ffff, at), (0, at)) && !is_newer((0, at), (0xff_ffff, at)));
    assert!(is_newer((9, at), (1, s(139))) && !is_newer((9, at), (1, s(138))));
}

struct Pair {
    client: Endpoint<u8>,
    server: Endpoint<u8>,
    number: u64,
}

/// A client that observes.
fn observing() -> Pair {
    let (mut client, mut server) = (endpoint(), Endpoint::new(&settings(2)));
    let observe = get().with(option::OBSERVE, b"");
    let first = sent(&run(&mut client, s(0), request(5, observe)))[0].clone();
    let number = exchange(&run(&mut server, s(0), datagram(CLIENT, &first)));
    let agreed = content("0").with(option::OBSERVE, b"");
    let respond = Input::Respond { exchange: number, content: agreed };
    let answer = sent(&run(&mut server, s(0), respond))[0].clone();
    let outputs = run(&mut client, s(0), datagram(SERVER, &answer));
    assert!(matches!(outputs[..], [Output::Response { request: 5, is_last: false, .. }]));
    Pair { client, server, number }
}

impl Pair {
    fn notify(&mut self, now: Duration, text: &'static str) -> Vec<Bytes> {
        let input = Input::Notify { exchange: self.number, content: content(text) };
        sent(&run(&mut self.server, now, input))
    }

    fn take(&mut self, now: Duration, bytes: &Bytes) -> Vec<Output<u8>> {
        run(&mut self.client, now, datagram(SERVER, bytes))
    }
}

/// What notifications among outputs say.
fn texts(outputs: &[Output<u8>]) -> Vec<String> {
    let text = |output: &Output<u8>| match output {
        Output::Response { content, .. } => {
            Some(String::from_utf8_lossy(&content.payload).into_owned())
        }
        _ => None,
    };
    outputs.iter().filter_map(text).collect()
}

#[test]
fn notifications_come_and_every_eighth_is_acknowledged() {
    let mut pair = observing();
    let mut confirmable = Vec::new();
    for count in 0..20_u64 {
        let now = s(5 + 5 * count);
        let sent_now = pair.notify(now, "x");
        assert_eq!(sent_now.len(), 1);
        let outputs = pair.take(now, &sent_now[0]);
        assert_eq!(texts(&outputs), ["x"]);
        for ack in sent(&outputs) {
            confirmable.push(count);
            run(&mut pair.server, now, datagram(CLIENT, &ack));
        }
    }
    assert_eq!(confirmable, [0, 8, 16]);
}

#[test]
fn an_older_notification_does_not_count() {
    let mut pair = observing();
    let first = pair.notify(s(5), "first")[0].clone();
    let ack = sent(&pair.take(s(5), &first))[0].clone();
    run(&mut pair.server, s(5), datagram(CLIENT, &ack));
    let second = pair.notify(s(10), "second")[0].clone();
    let third = pair.notify(s(15), "third")[0].clone();
    assert_eq!(texts(&pair.take(s(16), &third)), ["third"]);
    assert!(pair.take(s(17), &second).is_empty());
    assert_eq!(pair.client.counts().stale, 1);
}

/// RFC 7641 §4.5.2.
#[test]
fn only_the_newest_state_is_sent_again() {
    let mut pair = observing();
    let first = pair.notify(s(5), "first")[0].clone();
    assert!(pair.notify(s(5), "second").is_empty());
    assert!(pair.notify(s(6), "third").is_empty());
    let again = sent(&run(&mut pair.server, s(9), Input::Wake));
    assert_ne!(again[0][2..4], first[2..4]);
    assert_eq!(texts(&pair.take(s(9), &again[0])), ["third"]);
}

/// RFC 7641 §3.6, §4.5.
#[test]
fn who_observes_no_more_is_forgotten() {
    let ended = |pair: &Pair| Output::Ended { exchange: pair.number };
    let mut pair = observing();
    let cancel = || Input::Cancel { request: 5 };
    let asked = sent(&run(&mut pair.client, s(1), cancel()))[0].clone();
    assert!(pair.client.is_leaving());
    // What left before is nothing to anybody.
    let first = pair.notify(s(1), "first")[0].clone();
    let outputs = pair.take(s(1), &first);
    assert!(texts(&outputs).is_empty());
    run(&mut pair.server, s(1), datagram(CLIENT, &sent(&outputs)[0]));
    let outputs = run(&mut pair.server, s(1), datagram(CLIENT, &asked));
    assert!(outputs.contains(&ended(&pair)), "{outputs:?}");
    let respond = Input::Respond { exchange: exchange(&outputs), content: content("now") };
    let answer = sent(&run(&mut pair.server, s(1), respond))[0].clone();
    assert!(pair.take(s(1), &answer).is_empty());
    assert!(!pair.client.is_leaving());
    assert!(pair.notify(s(6), "second").is_empty());
    // Who hears nothing of it gives up, and resets what still comes.
    let mut pair = observing();
    run(&mut pair.client, s(1), cancel());
    let mut outputs = (1..400).flat_map(|at| run(&mut pair.client, s(at), Input::Wake));
    assert!(outputs.all(|output| matches!(output, Output::Datagram { .. })));
    assert!(!pair.client.is_leaving());
    let first = pair.notify(s(400), "first")[0].clone();
    let reset = sent(&pair.take(s(400), &first))[0].clone();
    let outputs = run(&mut pair.server, s(400), datagram(CLIENT, &reset));
    assert_eq!(outputs, [ended(&pair)]);
    // Without acknowledgement it ends by itself.
    let mut pair = observing();
    assert_eq!(pair.notify(s(5), "first").len(), 1);
    let outputs: Vec<_> =
        (5..200).flat_map(|at| run(&mut pair.server, s(at), Input::Wake)).collect();
    assert_eq!(outputs.last(), Some(&ended(&pair)));
    // And so it does with what is no success.
    let mut pair = observing();
    let content = Content::new(Code::NOT_FOUND);
    let input = Input::Notify { exchange: pair.number, content };
    let last = sent(&run(&mut pair.server, s(5), input))[0].clone();
    let outputs = pair.take(s(5), &last);
    assert!(matches!(outputs[1], Output::Response { is_last: true, .. }));
    let outputs = run(&mut pair.server, s(5), datagram(CLIENT, &sent(&outputs)[0]));
    assert_eq!(outputs, [ended(&pair)]);
}

/// RFC 7641 §3.3.1, and §4.1 at the server.
#[test]
fn an_observation_is_renewed_after_its_age() {
    let mut pair = observing();
    assert!(run(&mut pair.client, s(64), Input::Wake).is_empty());
    let again = sent(&run(&mut pair.client, s(76), Input::Wake))[0].clone();
    let outputs = run(&mut pair.server, s(76), datagram(CLIENT, &again));
    let number = exchange(&outputs);
    let agreed = content("1").with(option::OBSERVE, b"");
    let outputs =
        run(&mut pair.server, s(76), Input::Respond { exchange: number, content: agreed });
    assert!(outputs.contains(&Output::Ended { exchange: pair.number }));
    assert_eq!(texts(&pair.take(s(76), &sent(&outputs)[0])), ["1"]);
    pair.number = number;
    let next = pair.notify(s(80), "2")[0].clone();
    assert_eq!(texts(&pair.take(s(80), &next)), ["2"]);
}

#[test]
fn a_peer_has_its_share_of_observations() {
    let mut server = endpoint();
    let mut agreed = 0;
    for mid in 0..u16::try_from(MAX_OBSERVATIONS_PER_PEER).unwrap() + 5 {
        let options = [(option::OBSERVE, &b""[..])];
        let bytes = message(Kind::Confirmable, Code::GET, mid, &mid.to_be_bytes(), &options);
        let number = exchange(&run(&mut server, s(0), datagram(CLIENT, &bytes)));
        let content = content("x").with(option::OBSERVE, b"");
        let outputs = run(&mut server, s(0), Input::Respond { exchange: number, content });
        let bytes = sent(&outputs)[0].clone();
        let answer = Datagram::decode(&bytes).unwrap();
        agreed += usize::from(answer.message.options.first(option::OBSERVE).is_some());
    }
    assert_eq!(agreed, MAX_OBSERVATIONS_PER_PEER);
}
