use std::task::{Context, Poll, Waker};

use proto::bhttp;
use relay::Role;

use super::*;

const ID: ExchangeId = ExchangeId { instance: 1, number: 1 };

fn request() -> Head {
    Head::Request(bhttp::Request { method: Bytes::from_static(b"GET"), ..Default::default() })
}

fn response() -> Head {
    Head::Response(bhttp::Response { status: 200, fields: Vec::new() })
}

/// A mailbox at the edge whose head the actor has seen.
fn at_edge(end: bool) -> (Arc<Mailbox>, Port, mpsc::UnboundedReceiver<ExchangeId>) {
    let (bell, bells) = mpsc::unbounded_channel();
    let requester = Requester { client: "client".into(), other_way: false };
    let mailbox = Mailbox::opening(request(), end, None, requester, bell, None);
    let port = mailbox.port(Role::Edge);
    mailbox.name(ID);
    collect(&mailbox);
    (mailbox, port, bells)
}

fn collect(mailbox: &Mailbox) -> Vec<Input> {
    let mut inputs = Vec::new();
    mailbox.collect(ID, &mut inputs);
    inputs
}

fn piece(port: &mut Port) -> Poll<Result<Piece, Ended>> {
    port.receiver.poll_piece(&mut Context::from_waker(Waker::noop()))
}

fn credit(port: &mut Port) -> Poll<Result<u64, Ended>> {
    port.sender.poll_credit(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn the_bell_rings_once_until_the_actor_looks() {
    let (mailbox, mut port, mut bells) = at_edge(false);
    mailbox.deliver(Output::Credit { exchange: ID, bytes: 100 });
    for _ in 0..5 {
        port.sender.data(Bytes::from_static(b"x"));
    }
    assert_eq!(bells.try_recv(), Ok(ID));
    assert!(bells.try_recv().is_err());
    assert_eq!(collect(&mailbox).len(), 5);
    port.sender.data(Bytes::from_static(b"x"));
    assert_eq!(bells.try_recv(), Ok(ID));
}

#[test]
fn what_the_local_side_takes_becomes_credit() {
    let (mailbox, mut port, _bells) = at_edge(true);
    mailbox.deliver(Output::Head { exchange: ID, head: response(), end: false });
    mailbox.deliver(Output::Data { exchange: ID, bytes: Bytes::from_static(b"hello") });
    assert!(collect(&mailbox).is_empty(), "credit for what was not taken");
    assert!(matches!(piece(&mut port), Poll::Ready(Ok(Piece::Data(bytes))) if bytes == "hello"));
    assert!(matches!(collect(&mailbox)[..], [Input::Credit { bytes: 5, .. }]));
    assert!(piece(&mut port).is_pending());
}

#[test]
fn the_relays_credit_shrinks_with_what_is_sent() {
    let (mailbox, mut port, _bells) = at_edge(false);
    assert!(credit(&mut port).is_pending());
    mailbox.deliver(Output::Credit { exchange: ID, bytes: 7 });
    port.sender.data(Bytes::from_static(b"hello"));
    assert!(matches!(credit(&mut port), Poll::Ready(Ok(2))));
    port.sender.data(Bytes::from_static(b"it"));
    assert!(credit(&mut port).is_pending());
}

#[test]
fn a_client_that_leaves_aborts_once() {
    let (mailbox, port, _bells) = at_edge(false);
    drop(port);
    let inputs = collect(&mailbox);
    let [Input::Abort { cause, .. }] = &inputs[..] else { panic!("{inputs:?}") };
    assert_eq!(cause.kind, CauseKind::ClientGone);
    assert!(mailbox.is_over());
}

#[test]
fn a_client_that_has_everything_aborts_nothing() {
    let (mailbox, mut port, _bells) = at_edge(true);
    mailbox.deliver(Output::Head { exchange: ID, head: response(), end: false });
    mailbox.deliver(Output::Data { exchange: ID, bytes: Bytes::from_static(b"all") });
    assert!(matches!(piece(&mut port), Poll::Ready(Ok(Piece::Data(_)))));
    collect(&mailbox);
    // It knows the length, so it does not wait for the end.
    port.receiver.finish();
    drop(port);
    mailbox.deliver(Output::End { exchange: ID, trailers: Vec::new() });
    assert!(collect(&mailbox).is_empty() && mailbox.is_over());
}

#[test]
fn an_early_answer_stops_the_request_without_an_abort() {
    let (mailbox, mut port, _bells) = at_edge(false);
    mailbox.deliver(Output::Credit { exchange: ID, bytes: 9 });
    port.receiver.finish();
    assert!(matches!(credit(&mut port), Poll::Ready(Err(ended))
        if ended.cause.kind == CauseKind::AnsweredEarly));
    drop(port);
    assert!(collect(&mailbox).is_empty());
}

#[test]
fn an_origin_that_wants_no_more_of_a_request_leaves_it_flowing() {
    let (bell, _bells) = mpsc::unbounded_channel();
    let mailbox = Mailbox::opened(ID, false, bell, None);
    let Port { receiver, mut sender } = mailbox.port(Role::Gateway);
    assert!(matches!(collect(&mailbox)[..], [Input::Credit { bytes: WINDOW_BYTES, .. }]));
    drop(receiver);
    mailbox.deliver(Output::Data { exchange: ID, bytes: Bytes::from_static(b"late") });
    assert!(matches!(collect(&mailbox)[..], [Input::Credit { bytes: 4, .. }]));
    sender.head(Head::Response(bhttp::Response { status: 413, fields: Vec::new() }), true);
    drop(sender);
    assert!(matches!(collect(&mailbox)[..], [Input::Response { end: true, .. }]));
}

/// A success may not stand for a request that the origin did not get.
#[test]
fn a_success_for_half_a_request_is_given_up() {
    for (whole, end, left_first) in [
        (false, true, true),
        (false, false, true),
        (false, false, false),
        (true, true, true),
        (true, false, false),
    ] {
        let (bell, _bells) = mpsc::unbounded_channel();
        let mailbox = Mailbox::opened(ID, false, bell, None);
        let Port { mut receiver, mut sender } = mailbox.port(Role::Gateway);
        if whole {
            receiver.has_all();
        }
        let mut receiver = Some(receiver);
        let _left = receiver.take_if(|_| left_first);
        drop(_left);
        sender.head(response(), end);
        sender.end(Vec::new());
        drop(receiver);
        let gave_up = collect(&mailbox).iter().any(|one| matches!(one, Input::Abort { .. }));
        assert_eq!(gave_up, !whole, "{whole} {end} {left_first}");
    }
}

#[test]
fn an_abort_reaches_both_directions() {
    let (mailbox, mut port, _bells) = at_edge(false);
    let reason = "gone".to_owned();
    let cause = Cause { kind: CauseKind::CarrierLost, reason };
    mailbox.deliver(Output::Abort { exchange: ID, cause, untouched: true });
    assert!(matches!(credit(&mut port), Poll::Ready(Err(ended)) if ended.untouched));
    assert!(matches!(piece(&mut port), Poll::Ready(Err(_))));
    drop(port);
    assert!(collect(&mailbox).is_empty() && mailbox.is_over());
}
