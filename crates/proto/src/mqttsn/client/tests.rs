//! A client against a gateway that is played.

use proptest::prelude::*;

use super::super::Topic;
use super::*;

const ACCEPTED: Code = Code::ACCEPTED;

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn bytes(packet: &Packet<'_>) -> Bytes {
    encode(packet).unwrap().into()
}

struct World {
    client: Client,
    now: Duration,
    wake_at: Option<Duration>,
}

impl World {
    fn new(settings: Settings) -> Self {
        Self { client: Client::new(settings), now: s(0), wake_at: None }
    }

    /// One that has connected.
    fn active() -> Self {
        let mut world = Self::new(Settings { keep_alive: s(0), ..Settings::new("id") });
        world.input(Input::Connect);
        world.hears(&Packet::ConnAck { code: ACCEPTED });
        assert!(world.client.is_active());
        world
    }

    fn input(&mut self, input: Input) -> Vec<Output> {
        self.client.handle_input(self.now, input);
        let outputs: Vec<Output> = std::iter::from_fn(|| self.client.poll_output()).collect();
        self.wake_at = self.client.wake_at();
        outputs.into_iter().filter(|output| !matches!(output, Output::WakeAt(_))).collect()
    }

    fn hears(&mut self, packet: &Packet<'_>) -> Vec<Output> {
        self.input(Input::Datagram(bytes(packet)))
    }

    fn wakes(&mut self) -> Vec<Output> {
        self.now = self.wake_at.expect("something waits");
        self.input(Input::Wake)
    }

    fn requests(&mut self, request: u64, action: Action) -> Vec<Output> {
        self.input(Input::Request { request, action })
    }
}

fn sent(packet: &Packet<'_>) -> Output {
    Output::Transmit(bytes(packet))
}

fn done(request: u64) -> Output {
    Output::Done { request, granted: None }
}

fn publish(topic: &str, qos: Qos) -> Action {
    Action::Publish { topic: topic.into(), data: Bytes::from_static(b"x"), qos, retain: false }
}

fn published(topic: Topic, msg_id: u16, qos: Qos, dup: bool) -> Packet<'static> {
    Packet::Publish(Publish { topic, msg_id, data: b"x", qos, retain: false, dup })
}

fn will(topic: &str) -> Will {
    let (topic, message) = (topic.to_owned(), Bytes::from_static(b"gone"));
    Will { topic, message, qos: Qos::One, retain: true }
}

/// MQTT-SN 1.2 §6.2, figure 3.
#[test]
fn a_client_is_asked_for_its_will() {
    let settings = Settings { will: Some(will("w/t")), ..Settings::new("id") };
    let mut world = World::new(settings.clone());
    let connect = Packet::Connect {
        will: true,
        clean_session: true,
        protocol_id: PROTOCOL_ID,
        duration_s: 60,
        client_id: "id",
    };
    assert_eq!(world.input(Input::Connect), [sent(&connect)]);
    assert_eq!(world.wakes(), [sent(&connect)]);
    let topic = Packet::WillTopic(settings.will.as_ref().map(will_topic));
    assert_eq!(world.hears(&Packet::WillTopicReq), [sent(&topic)]);
    let message = sent(&Packet::WillMsg { message: b"gone" });
    assert_eq!(world.hears(&Packet::WillMsgReq), [message]);
    assert_eq!(world.hears(&Packet::ConnAck { code: ACCEPTED }), [Output::Connected]);
    assert_eq!(world.hears(&Packet::ConnAck { code: ACCEPTED }), []);
    // It says that it is there before anybody misses it.
    assert_eq!(world.wakes(), [sent(&Packet::PingReq { client_id: "" })]);
    assert_eq!(world.now, s(50));
    assert_eq!(world.hears(&Packet::PingResp), []);
    assert_eq!(world.requests(1, Action::UpdateWill(None)), [sent(&Packet::WillTopicUpd(None))]);
    assert_eq!(world.hears(&Packet::WillTopicResp { code: ACCEPTED }), [done(1)]);
    let update = Action::UpdateWill(Some(will("w/u")));
    let topic = Packet::WillTopicUpd(Some(will_topic(&will("w/u")))).encoded_len();
    assert!(matches!(&world.requests(2, update)[..], [Output::Transmit(b)] if b.len() == topic));
    let message = sent(&Packet::WillMsgUpd { message: b"gone" });
    assert_eq!(world.hears(&Packet::WillTopicResp { code: ACCEPTED }), [message]);
    assert_eq!(world.hears(&Packet::WillMsgResp { code: ACCEPTED }), [done(2)]);
}

/// MQTT-SN 1.2 §6.5, §6.6.
#[test]
fn names_are_registered_before_they_are_published() {
    let mut world = World::active();
    let register = sent(&Packet::Register { topic_id: 0, msg_id: 1, name: "a/b" });
    assert_eq!(world.requests(1, publish("a/b", Qos::One)), [register]);
    // Another one waits for the first.
    assert_eq!(world.requests(2, publish("a/b", Qos::Two)), []);
    let regack = Packet::RegAck { topic_id: 7, msg_id: 1, code: ACCEPTED };
    let first = published(Topic::Id(7), 1, Qos::One, false);
    assert_eq!(world.hears(&regack), [sent(&first)]);
    assert_eq!(world.wakes(), [sent(&published(Topic::Id(7), 1, Qos::One, true))]);
    let puback = |msg_id, code| Packet::PubAck { topic_id: 7, msg_id, code };
    let second = sent(&published(Topic::Id(7), 2, Qos::Two, false));
    assert_eq!(world.hears(&puback(1, ACCEPTED)), [done(1), second]);
    assert_eq!(world.hears(&puback(2, ACCEPTED)), [], "level 2 has another answer");
    let pubrel = sent(&Packet::PubRel { msg_id: 2 });
    assert_eq!(world.hears(&Packet::PubRec { msg_id: 2 }), [pubrel]);
    assert_eq!(world.hears(&Packet::PubRec { msg_id: 2 }), []);
    assert_eq!(world.hears(&Packet::PubComp { msg_id: 2 }), [done(2)]);
    // A gateway that has forgotten the id is told the name again.
    world.requests(3, publish("a/b", Qos::One));
    let register = sent(&Packet::Register { topic_id: 0, msg_id: 3, name: "a/b" });
    assert_eq!(world.hears(&puback(3, Code::INVALID_TOPIC_ID)), [register]);
    let regack = Packet::RegAck { topic_id: 9, msg_id: 3, code: ACCEPTED };
    let third = sent(&published(Topic::Id(9), 3, Qos::One, true));
    assert_eq!(world.hears(&regack), [third]);
    let failed = |code| Output::Failed { request: 3, reason: Reason::Refused(code) };
    assert_eq!(world.hears(&puback(3, Code::NOT_SUPPORTED)), [failed(Code::NOT_SUPPORTED)]);
}

#[test]
fn congestion_is_waited_out() {
    let mut world = World::active();
    let subscribe = Action::Subscribe { filter: "a/#".into(), qos: Qos::Two };
    assert_eq!(world.requests(1, subscribe).len(), 1);
    let suback = |code| Packet::SubAck { qos: Qos::One, topic_id: 0, msg_id: 1, code };
    assert_eq!(world.hears(&suback(Code::CONGESTION)), []);
    assert_eq!(world.wakes().len(), 1);
    assert_eq!(world.now, s(300));
    let done = Output::Done { request: 1, granted: Some(Qos::One) };
    assert_eq!(world.hears(&suback(ACCEPTED)), [done]);
    let unsubscribe = Action::Unsubscribe { filter: "a/#".into() };
    assert_eq!(world.requests(2, unsubscribe).len(), 1);
    let done = Output::Done { request: 2, granted: None };
    assert_eq!(world.hears(&Packet::UnsubAck { msg_id: 2 }), [done]);
}

/// MQTT-SN 1.2 §6.10.
#[test]
fn publications_of_level_2_come_once() {
    let mut world = World::active();
    let publication = |dup| published(Topic::Id(3), 8, Qos::Two, dup);
    let invalid = Packet::PubAck { topic_id: 3, msg_id: 8, code: Code::INVALID_TOPIC_ID };
    assert_eq!(world.hears(&publication(false)), [sent(&invalid)]);
    let register = Packet::Register { topic_id: 3, msg_id: 7, name: "a/b" };
    let regack = Packet::RegAck { topic_id: 3, msg_id: 7, code: ACCEPTED };
    assert_eq!(world.hears(&register), [sent(&regack)]);
    let (data, qos) = (Bytes::from_static(b"x"), Qos::Two);
    let message = Output::Message { topic: "a/b".into(), data, qos, retain: false };
    let pubrec = sent(&Packet::PubRec { msg_id: 8 });
    assert_eq!(world.hears(&publication(false)), [message.clone(), pubrec.clone()]);
    assert_eq!(world.hears(&publication(true)), std::slice::from_ref(&pubrec));
    let pubcomp = sent(&Packet::PubComp { msg_id: 8 });
    for _ in 0..2 {
        let outputs = world.hears(&Packet::PubRel { msg_id: 8 });
        assert_eq!(outputs, std::slice::from_ref(&pubcomp));
    }
    // A copy that its PUBREL has overtaken.
    assert_eq!(world.hears(&publication(true)), std::slice::from_ref(&pubrec));
    assert_eq!(world.hears(&publication(false)), [message, pubrec], "another one");
    // What cannot be named is refused, and short names need no id.
    let odd = Packet::PubAck { topic_id: 0xffff, msg_id: 9, code: Code::NOT_SUPPORTED };
    assert_eq!(world.hears(&published(Topic::Short([255, 255]), 9, Qos::One, false)), [sent(&odd)]);
    assert_eq!(world.hears(&published(Topic::Short(*b"ab"), 9, Qos::One, false)).len(), 2);
}

/// MQTT-SN 1.2 §6.13.
#[test]
fn a_gateway_that_does_not_answer_is_lost_and_requests_wait_for_another() {
    let mut world = World::active();
    let publication = |dup| sent(&published(Topic::Short(*b"ab"), 1, Qos::One, dup));
    assert_eq!(world.requests(1, publish("ab", Qos::One)), [publication(false)]);
    for _ in 0..4 {
        assert_eq!(world.wakes(), [publication(true)]);
    }
    assert_eq!(world.wakes(), [Output::Lost]);
    assert_eq!((world.now, world.wake_at), (s(50), None));
    assert_eq!(world.requests(2, publish("ab", Qos::Zero)), []);
    world.input(Input::Connect);
    let refused = Packet::ConnAck { code: Code::CONGESTION };
    assert_eq!(world.hears(&refused), [Output::Refused(Code::CONGESTION)]);
    world.input(Input::Connect);
    let outputs = world.hears(&Packet::ConnAck { code: ACCEPTED });
    assert_eq!(outputs, [Output::Connected, publication(true)]);
    let puback = Packet::PubAck { topic_id: 0x6162, msg_id: 1, code: ACCEPTED };
    let second = sent(&published(Topic::Short(*b"ab"), 0, Qos::Zero, false));
    assert_eq!(world.hears(&puback), [done(1), second, done(2)]);
}

/// MQTT-SN 1.2 §6.14.
#[test]
fn a_client_sleeps_and_asks_for_what_was_kept() {
    let mut world = World::active();
    let sleep = sent(&Packet::Disconnect { duration_s: Some(600) });
    assert_eq!(world.input(Input::Sleep(s(600))), [sleep]);
    assert_eq!(world.requests(1, publish("ab", Qos::One)), []);
    let answer = Packet::Disconnect { duration_s: None };
    assert_eq!(world.hears(&answer), [Output::Asleep]);
    assert_eq!(world.hears(&answer), [], "a copy of the answer does not end the connection");
    let ping = sent(&Packet::PingReq { client_id: "id" });
    assert_eq!(world.input(Input::Fetch), [ping]);
    assert_eq!(world.hears(&published(Topic::Short(*b"ab"), 5, Qos::One, false)).len(), 2);
    assert_eq!(world.hears(&Packet::PingResp), [Output::Asleep]);
    assert_eq!(world.input(Input::Connect).len(), 1);
    assert_eq!(world.hears(&Packet::ConnAck { code: ACCEPTED }).len(), 2);
    assert_eq!(world.input(Input::Disconnect), [sent(&Packet::Disconnect { duration_s: None })]);
    assert_eq!(world.hears(&answer), [Output::Disconnected]);
}

/// MQTT-SN 1.2 §6.8.
#[test]
fn level_minus_one_needs_no_connection_and_no_name() {
    let mut world = World::new(Settings::new("id"));
    let publication = sent(&published(Topic::Short(*b"ab"), 0, Qos::MinusOne, false));
    assert_eq!(world.requests(1, publish("ab", Qos::MinusOne)), [publication, done(1)]);
    for action in [
        publish("a/b", Qos::MinusOne),
        publish("", Qos::Zero),
        publish("a/#", Qos::One),
        Action::Subscribe { filter: "a".into(), qos: Qos::MinusOne },
        Action::Unsubscribe { filter: "".into() },
        Action::UpdateWill(Some(will("+"))),
    ] {
        let invalid = Output::Failed { request: 2, reason: Reason::Invalid };
        assert_eq!(world.requests(2, action), [invalid]);
    }
    for request in 0..=MAX_REQUESTS as u64 {
        world.requests(request, publish("ab", Qos::Zero));
    }
    assert_eq!(world.client.open_requests(), MAX_REQUESTS);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever a gateway says, each request ends at most once and nothing grows.
    #[test]
    fn no_gateway_makes_it_panic(
        script in proptest::collection::vec((0..9_u8, any::<[u8; 6]>(), 0..12_u64), 0..80)
    ) {
        let mut world = World::new(Settings { will: Some(will("w")), ..Settings::new("id") });
        let mut open = std::collections::BTreeSet::new();
        for (at, (what, raw, wait_s)) in script.into_iter().enumerate() {
            world.now += s(wait_s);
            let (request, [kind, id, ..]) = (at as u64, raw);
            let qos = [Qos::Zero, Qos::One, Qos::Two][usize::from(kind % 3)];
            let input = match what {
                0 => Input::Connect,
                1 => Input::Sleep(s(id.into())),
                2 => Input::Fetch,
                3 => Input::Disconnect,
                4 => Input::Wake,
                5 | 6 => {
                    open.insert(request);
                    let action = match what {
                        5 => publish(["ab", "a/b", "c"][usize::from(id % 3)], qos),
                        _ => Action::Subscribe { filter: "a/b".into(), qos },
                    };
                    Input::Request { request, action }
                }
                _ => {
                    let body = &raw[..usize::from(kind % 6)];
                    let len = u8::try_from(body.len()).unwrap();
                    let mut datagram = vec![len + 2, id % 0x20];
                    datagram.extend(body.iter().map(|byte| byte % 4));
                    Input::Datagram(datagram.into())
                }
            };
            for output in world.input(input) {
                if let Output::Done { request, .. } | Output::Failed { request, .. } = output {
                    prop_assert!(open.remove(&request));
                }
            }
            prop_assert!(world.client.open_requests() <= open.len());
            prop_assert!(world.wake_at.is_none_or(|at| at > world.now));
        }
    }
}
