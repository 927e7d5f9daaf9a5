//! What others need is given out in shares.

use super::*;

/// Connects `peer`, an edge of this instance; what the relay wants then.
fn edge_connects(
    relay: &mut Relay,
    carrier: u64,
    peer: &str,
    instance: u64,
) -> (Peer, Vec<Output>) {
    let carrier = CarrierId(carrier);
    relay.handle_input(ms(0), Input::CarrierUp { carrier, peer: peer.into() });
    let mut edge = Peer::new(Role::Edge, instance);
    let Some(stream::Output::Transmit(bytes)) = edge.0.poll_output() else { panic!("no HELLO") };
    edge.takes(&drain(relay));
    relay.handle_input(ms(0), Input::Received { carrier, bytes });
    (edge, drain(relay))
}

fn closed(outputs: &[Output]) -> Vec<u64> {
    let carrier = |output: &Output| match output {
        Output::Close { carrier, .. } => Some(carrier.0),
        _ => None,
    };
    outputs.iter().filter_map(carrier).collect()
}

#[test]
fn a_peer_with_many_carriers_gives_one_up_for_another_peer() {
    let config = Config { max_carriers: 4, ..Config::new(Role::Gateway, 9) };
    let mut relay = Relay::new(config);
    let mut greedy = Vec::new();
    for at in 0..4 {
        let (edge, outputs) = edge_connects(&mut relay, at, "greedy", 100 + at);
        assert_eq!(closed(&outputs), []);
        greedy.push(edge);
    }
    // The oldest carries something: the next is idle.
    greedy[0].sends(&mut relay, ms(1), CarrierId(0), &[request_frame(1)]);
    let (_, outputs) = edge_connects(&mut relay, 4, "modest", 1);
    assert_eq!(closed(&outputs), [1]);
    // It does not come back by that.
    greedy[2].sends(&mut relay, ms(1), CarrierId(2), &[request_frame(1)]);
    greedy[3].sends(&mut relay, ms(1), CarrierId(3), &[request_frame(1)]);
    let (_, outputs) = edge_connects(&mut relay, 5, "greedy", 105);
    assert_eq!(closed(&outputs), [5], "nothing that carries goes for one of the same peer");
    let (_, outputs) = edge_connects(&mut relay, 6, "third", 2);
    assert_eq!(closed(&outputs), [3]);
    let left: Vec<u64> = relay.carriers.keys().map(|id| id.0).collect();
    assert_eq!(left, [0, 2, 4, 6]);
}

#[test]
fn of_peers_with_one_carrier_each_none_is_closed_for_another() {
    let config = Config { max_carriers: 3, ..Config::new(Role::Gateway, 9) };
    let mut relay = Relay::new(config);
    for at in 0..3 {
        edge_connects(&mut relay, at, &format!("edge {at}"), at);
    }
    let (_, outputs) = edge_connects(&mut relay, 3, "edge 3", 3);
    assert_eq!(closed(&outputs), [3]);
    // One that comes back before its old carrier is known to be dead has its place.
    let (_, outputs) = edge_connects(&mut relay, 4, "edge 1", 1);
    assert_eq!(closed(&outputs), [1]);
}
