//! What peers tell each other of their processors.

use codec::dictionary::Id;
use decide::arm::Speed;
use proto::control::Processor;
use proto::profile::{Decoding, Model, Packet, Profile};
use record::event::Fact;

use super::*;

/// How fast every encoding is, so many times the slower.
fn speeds(slower: f64) -> Vec<Speeds> {
    let speed = Speed { fixed_s: 1e-5, per_byte_s: 1e-8 }.times(slower);
    let arms = Encoding::auto();
    let all = arms.arms().iter();
    all.map(|options| Speeds { options: *options, encode: speed, decode: speed }).collect()
}

fn model(per_byte_s: f32) -> Model {
    Model { encodings: vec![Decoding { codec: 1, fixed_s: 0.0, per_byte_s }] }
}

fn profile(model: Model) -> Profile {
    let mut bytes = Vec::new();
    model.encode(&mut bytes);
    Profile { hash: Id::of(&bytes).short(), model: Some(model), link: None }
}

fn of_processor(frames: &[Part]) -> Vec<Processor> {
    let content = |frame: &Part| match frame {
        Part::Control(Processor::KIND, content) => Some(Processor::decode(content).unwrap()),
        _ => None,
    };
    frames.iter().filter_map(content).collect()
}

#[test]
fn a_peer_that_asks_is_answered_once_it_is_known() {
    let (mut relay, mut peer) = edge();
    let outputs = peer.sends(&mut relay, ms(1), CARRIER, &[Processor::wanted()]);
    assert_eq!(of_processor(&peer.takes(&outputs)), []);
    relay.handle_input(ms(2), Input::Speeds(speeds(1.0)));
    let reported = of_processor(&peer.takes(&drain(&mut relay)));
    let [Processor::Reported(Packet::Profile(found)), Processor::Wanted] = &reported[..] else {
        panic!("{reported:?}")
    };
    let model = found.model.clone().unwrap();
    assert_eq!((found, found.link), (&profile(model.clone()), None));
    assert!(model.encodings.len() > 3);
    assert!(model.encodings.iter().all(|one| one.codec != 0 && one.per_byte_s > 0.9e-8));
    // And each time that it asks again.
    let outputs = peer.sends(&mut relay, ms(3), CARRIER, &[Processor::wanted()]);
    assert_eq!(of_processor(&peer.takes(&outputs)), reported[..1]);
}

#[test]
fn a_peer_is_asked_once_and_its_word_counts_until_then() {
    let (mut relay, mut peer) = edge();
    relay.handle_input(ms(1), Input::Speeds(speeds(1.0)));
    assert_eq!(of_processor(&peer.takes(&drain(&mut relay))), [Processor::Wanted]);
    let fresh = relay.learned();
    let slow = Processor::reported(&profile(model(1e-6)));
    peer.sends(&mut relay, ms(2), CARRIER, &[slow]);
    let taught = relay.learned();
    assert_ne!(taught, fresh);
    // It is known, and another word of its changes nothing.
    let fast = Processor::reported(&profile(model(1e-9)));
    peer.sends(&mut relay, ms(3), CARRIER, &[fast]);
    assert_eq!(relay.learned(), taught);
    relay.handle_input(ms(4), Input::CarrierDown { carrier: CARRIER, reason: "cut".into() });
    drain(&mut relay);
    let next = CarrierId(1);
    let (mut peer, outputs) = connect_to(&mut relay, ms(5), next, Peer::new(Role::Gateway, 9));
    assert_eq!(of_processor(&peer.takes(&outputs)), []);
}

#[test]
fn what_is_said_before_this_side_knows_itself_has_nothing_to_be_compared_with() {
    let (mut relay, mut peer) = edge();
    let fresh = relay.learned();
    let slow = Processor::reported(&profile(model(1e-6)));
    peer.sends(&mut relay, ms(1), CARRIER, &[slow]);
    assert_eq!(relay.learned(), fresh);
}

#[test]
fn a_forged_or_absurd_profile_is_ignored_with_an_event() {
    let forged = Profile { hash: [7; 8], ..profile(model(1e-6)) };
    let without = Profile { model: None, ..profile(model(1e-6)) };
    let mut absurd = Vec::new();
    profile(model(1e9)).encode(&mut absurd);
    let mut later = Vec::new();
    profile(model(1e-6)).encode(&mut later);
    later[0] = 2;
    let of = |bytes: Vec<u8>| Part::Control(Processor::KIND, bytes.into());
    for (frame, why) in [
        (Processor::reported(&forged), "its hash is another model's"),
        (Processor::reported(&without), "it has no model"),
        (of(absurd), "a time to decode"),
        (of(later), "version 2 is not known"),
        (of(vec![1]), "flags"),
        (of(vec![1; 300]), "the size of a profile"),
    ] {
        let (mut relay, mut peer) = edge();
        relay.handle_input(ms(1), Input::Speeds(speeds(1.0)));
        drain(&mut relay);
        let fresh = relay.learned();
        peer.0.handle_input(ms(2), carrier::Input::Send(frame, Urgency::DEFAULT));
        while let Some(carrier::Output::Bytes(bytes)) = peer.0.poll_output() {
            relay.handle_input(ms(2), Input::Received { carrier: CARRIER, bytes });
        }
        let reported: Vec<_> = std::iter::from_fn(|| relay.poll_output()).collect();
        let reported = reported.iter().any(|output| match output {
            Output::Event(Event { fact: Fact::Ignored { what, reason }, .. }) => {
                what == "profile" && reason.contains(why)
            }
            _ => false,
        });
        assert!(reported, "{why}");
        assert_eq!(relay.learned(), fresh, "{why}");
    }
}
