//! What the gateway lets edges reach, told ahead.

use proto::control::Allowed;

use super::*;

fn list(patterns: &[&str]) -> Allowed {
    Allowed::of(patterns.iter().map(|pattern| (*pattern).to_owned()).collect())
}

/// What the shell hears: each list in turn, none where it is to know of none.
fn heard(outputs: &[Output]) -> Vec<Vec<String>> {
    let reported = outputs.iter().filter_map(|output| match output {
        Output::Allowed(reported) => {
            Some(reported.as_ref().map_or(Vec::new(), |one| one.patterns.clone()))
        }
        _ => None,
    });
    reported.collect()
}

#[test]
fn a_gateway_tells_its_list_first_and_again_when_it_changes() {
    let mut config = Config::new(Role::Gateway, 9);
    config.allowed = list(&["http://a"]);
    let mut relay = Relay::new(config);
    let peer = Peer::new(Role::Edge, 1);
    let (mut peer, outputs) = connect_to(&mut relay, ms(0), CARRIER, peer);
    assert_eq!(peer.takes(&outputs).first(), Some(&list(&["http://a"]).part()));
    let mut now_allows = |allowed: Allowed| {
        relay.handle_input(ms(1), Input::Allowed(allowed));
        peer.takes(&drain(&mut relay))
    };
    assert!(now_allows(list(&["http://a"])).is_empty(), "it is the same");
    assert_eq!(now_allows(list(&["http://b"])), [list(&["http://b"]).part()]);
    // One that cannot be told takes back what was.
    assert_eq!(now_allows(Allowed::default()), [Allowed::default().part()]);
}

#[test]
fn a_gateway_without_a_list_that_can_be_reported_tells_none() {
    let mut relay = Relay::new(Config::new(Role::Gateway, 9));
    let (mut peer, outputs) = connect_to(&mut relay, ms(0), CARRIER, Peer::new(Role::Edge, 1));
    let reported = |frame: &Part| matches!(frame, Part::Control(Allowed::KIND, _));
    assert!(!peer.takes(&outputs).iter().any(reported));
    // An edge has no business to tell of one.
    let outputs = peer.sends(&mut relay, ms(1), CARRIER, &[list(&["http://a"]).part()]);
    assert!(heard(&outputs).is_empty());
}

#[test]
fn an_edge_knows_the_list_as_long_as_it_can_use_the_carrier_that_it_came_on() {
    let (mut relay, mut peer) = edge();
    let list = list(&["http://a", "https://*.b"]);
    let outputs = peer.sends(&mut relay, ms(1), CARRIER, &[list.part()]);
    assert_eq!(heard(&outputs), std::slice::from_ref(&list.patterns));
    let outputs = peer.sends(&mut relay, ms(2), CARRIER, &[Allowed::default().part()]);
    assert_eq!(heard(&outputs), [Vec::<String>::new()]);
    let outputs = peer.sends(&mut relay, ms(3), CARRIER, &[list.part()]);
    assert_eq!(heard(&outputs), std::slice::from_ref(&list.patterns));
    // The next gateway may allow something else.
    let reason = "broke".to_owned();
    relay.handle_input(ms(4), Input::CarrierDown { carrier: CARRIER, reason });
    assert_eq!(heard(&drain(&mut relay)), [Vec::<String>::new()]);
    relay.handle_input(ms(2000), Input::Wake);
    let dialled = relay.dialer.next_dialled();
    drain(&mut relay);
    let (mut peer, outputs) =
        connect_to(&mut relay, ms(2001), dialled, Peer::new(Role::Gateway, 10));
    assert!(heard(&outputs).is_empty(), "it has not said yet");
    let outputs = peer.sends(&mut relay, ms(2002), dialled, &[list.part()]);
    assert_eq!(heard(&outputs), std::slice::from_ref(&list.patterns));
    // One that takes nothing new is asked nothing.
    let outputs = peer.sends(&mut relay, ms(2003), dialled, &[Part::GoAway]);
    assert_eq!(heard(&outputs), [Vec::<String>::new()]);
}

#[test]
fn a_list_that_cannot_be_read_takes_back_what_was_reported() {
    let (mut relay, mut peer) = edge();
    let good = list(&["http://a"]).part();
    for wrong in [&[9][..], &[0], &[1, 0xff], &[1; 1025]] {
        let bad = Part::Control(Allowed::KIND, Bytes::copy_from_slice(wrong));
        let outputs = peer.sends(&mut relay, ms(1), CARRIER, &[good.clone(), bad]);
        let last = heard(&outputs).pop();
        assert!(last.is_none_or(|list| list.is_empty()), "{wrong:?}");
        assert!(relay.published.is_none(), "{wrong:?}");
    }
}
