//! Messages and receipts on their way.

use std::sync::Arc;

use super::super::*;
use super::node::{Node, START, message, receipt, returning, transfer, which, with_routes};
use super::{S, draft};
use crate::messaging::message::{Delivery, MAX_HOPS, Message, Wanted};
use crate::messaging::receipt::{Outcome, Receipt};
use crate::messaging::{Draft, Reason, Transfer};

#[test]
fn nothing_is_answered_sent_or_announced_before_the_disk_has_it() {
    let mut machine = Machine::new(with_routes("a", &[("b", "b")]));
    let draft = Box::new(draft(&["a", "b"]));
    machine.handle_input(START, Input::Submit { token: 5, draft });
    let mut outputs: Vec<Output> = std::iter::from_fn(|| machine.poll_output()).collect();
    assert!(matches!(outputs.pop(), Some(Output::WakeAt(Some(_)))));
    let Some(Output::Persist { ticket, changes }) = outputs.pop() else { panic!() };
    assert!(outputs.is_empty() && changes.len() == 5, "{outputs:?} {changes:?}");
    // Another that comes meanwhile waits for its own batch.
    let transfer = transfer(message("x"), &[], &[]);
    let other = Message { originator: "b".into(), ..(*transfer.message).clone() };
    let transfer = Transfer { message: Arc::new(other), ..transfer };
    machine.handle_input(START, Input::Transfer { token: 6, transfer });
    assert!(machine.poll_output().is_none());
    machine.handle_input(START, Input::Persisted { ticket });
    let outputs: Vec<Output> = std::iter::from_fn(|| machine.poll_output()).collect();
    let is_answer = |output: &Output| matches!(output, Output::Answer { token: 5, answer: Ok(_) });
    assert!(outputs.iter().any(is_answer), "{outputs:?}");
    assert!(outputs.iter().any(|output| matches!(output, Output::Send { .. })));
    assert!(outputs.iter().any(|output| matches!(output, Output::Persist { ticket: 2, .. })));
    assert!(!outputs.iter().any(|output| matches!(output, Output::Answer { token: 6, .. })));
}

#[test]
fn a_message_goes_to_its_recipient_and_the_answer_is_the_receipt() {
    let mut a = Node::of("a", &[("b", "b")]);
    let id = a.accept(draft(&["b"]));
    let (attempt, peer, parcel) = a.sent.pop().unwrap();
    assert_eq!(peer, "b");
    let mut b = Node::of("b", &[("a", "a")]);
    let Parcel::Message(transfer) = parcel else { panic!() };
    assert_eq!((&transfer.hops[..], &transfer.recipients[..]), (&[][..], &[][..]));
    assert_eq!(b.receive(transfer.clone()), Ok(Reply::Taken));
    assert_eq!(b.events.len(), 1);
    // Once more: known, and told of no more.
    assert_eq!(b.receive(transfer), Ok(Reply::Taken));
    assert_eq!((b.events.len(), b.machine.inbox(0).count()), (1, 1));
    assert!(b.sent.is_empty(), "no receipt beside the answer");
    assert_eq!(a.stage(&id, "b"), Stage::Waiting);
    a.end(attempt, Sent::Taken);
    assert_eq!(a.stage(&id, "b"), Stage::Delivered);
}

#[test]
fn a_message_is_expired_when_its_validity_ends_and_not_sent_again() {
    let mut a = Node::of("a", &[("b", "b")]);
    let id = a.accept(Draft { validity: Some(10 * S), ..draft(&["b"]) });
    let (attempt, ..) = a.sent.pop().unwrap();
    a.end(attempt, Sent::Failed("no answer".into()));
    a.at(START + 10 * S);
    assert_eq!(a.stage(&id, "b"), Stage::Expired);
    a.sent.clear();
    a.at(START + 100 * S);
    assert!(a.sent.is_empty());
    assert_eq!(a.machine.sizes().waiting, 0);
    // A day later it is forgotten.
    a.at(START + 3610 * S);
    assert_eq!(a.machine.outbox(0).count(), 0);
}

#[test]
fn expired_and_future_messages_are_refused() {
    let mut b = Node::of("b", &[("a", "a")]);
    b.now = START + 600 * S;
    let refusal = b.receive(transfer(message("x"), &[], &[])).unwrap_err();
    assert_eq!((refusal.reason, refusal.status()), (Reason::Expired, 422));
    assert!(refusal.line.contains("ended at 2026-03-14T06:10:00Z"), "{refusal}");
    let time = START + 4300 * S;
    let refusal = b.receive(transfer(Message { time, ..message("x") }, &[], &[])).unwrap_err();
    assert!(refusal.line.contains("over an hour ahead"), "{refusal}");
    // By then it is good, or a clock is right again: the node before keeps it.
    assert_eq!((refusal.reason, refusal.status()), (Reason::Early, 503));
    let past = Draft { time: Some(START), validity: Some(S), ..draft(&["a"]) };
    assert_eq!(b.submit(past).unwrap_err().reason, Reason::Expired);
}

#[test]
fn unknown_addressees_are_refused_with_those_that_there_are() {
    let mut a = Node::of("a", &[("b", "b"), ("c", "b")]);
    let refusal = a.submit(draft(&["b", "nobody"])).unwrap_err();
    assert_eq!((refusal.reason, refusal.status()), (Reason::Unknown, 404));
    let words = "addressee 'nobody' does not exist at node 'a'; it knows b, c, platoon";
    assert_eq!(refusal.line, words);
    assert!(a.changes.is_empty() && a.sent.is_empty());
}

#[test]
fn a_group_is_its_nodes_without_the_sender_and_crosses_a_hop_once() {
    let mut a = Node::of("a", &[("b", "b"), ("c", "b")]);
    let id = a.accept(draft(&["platoon"]));
    assert_eq!(a.sent.len(), 1, "one request for both nodes");
    let (attempt, peer, parcel) = a.sent.pop().unwrap();
    let Parcel::Message(transfer) = parcel else { panic!() };
    assert_eq!((peer.as_str(), &transfer.recipients[..]), ("b", &["b".into(), "c".into()][..]));
    a.end(attempt, Sent::Taken);
    assert_eq!(a.stage(&id, "b"), Stage::Delivered);
    assert_eq!(a.stage(&id, "c"), Stage::Forwarded);
    // The node between passes it on, and says no receipt of its own.
    let mut b = Node::of("b", &[("a", "a"), ("c", "c")]);
    b.receive(transfer).unwrap();
    let (_, peer, parcel) = b.sent.pop().unwrap();
    let Parcel::Message(onward) = parcel else { panic!() };
    assert_eq!(
        (peer.as_str(), &onward.hops[..], onward.recipients.len()),
        ("c", &["b".into()][..], 0)
    );
    assert!(b.sent.is_empty());
    // The last one sends a receipt back by the same way.
    let mut c = Node::of("c", &[("a", "b"), ("b", "b")]);
    c.receive(onward).unwrap();
    let (_, peer, parcel) = c.sent.pop().unwrap();
    let Parcel::Receipt(receipt) = parcel else { panic!() };
    assert_eq!(peer, "b");
    b.receipt(receipt).unwrap();
    let (_, peer, parcel) = b.sent.pop().unwrap();
    let Parcel::Receipt(receipt) = parcel else { panic!() };
    assert_eq!((peer.as_str(), &receipt.hops[..]), ("a", &["b".into()][..]));
    a.receipt(receipt).unwrap();
    assert_eq!(a.stage(&id, "c"), Stage::Delivered);
}

#[test]
fn a_message_whose_receipt_does_not_come_is_sent_again_and_reported_once_more() {
    let mut a = Node::of("a", &[("b", "b"), ("c", "b")]);
    let id = a.accept(draft(&["c"]));
    let (attempt, ..) = a.sent.pop().unwrap();
    a.end(attempt, Sent::Taken);
    // The node between lost its disk: nothing comes.
    a.at(START + 61 * S);
    let (attempt, _, parcel) = a.sent.pop().unwrap();
    a.end(attempt, Sent::Taken);
    assert_eq!(a.stage(&id, "c"), Stage::Forwarded);
    let Parcel::Message(again) = parcel else { panic!() };
    let mut b = Node::of("b", &[("a", "a"), ("c", "c")]);
    b.receive(again).unwrap();
    let (_, _, Parcel::Message(onward)) = b.sent.pop().unwrap() else { panic!() };
    // The recipient had it before; its receipt was lost.
    let mut c = Node::of("c", &[("a", "b"), ("b", "b")]);
    for expected in [1, 1] {
        c.receive(onward.clone()).unwrap();
        let (attempt, _, Parcel::Receipt(_)) = c.sent.pop().unwrap() else { panic!() };
        c.end(attempt, Sent::Taken);
        assert_eq!(c.machine.inbox(0).count(), expected);
    }
}

#[test]
fn loops_are_cut() {
    let mut b = Node::of("b", &[("a", "a"), ("c", "c")]);
    let refusal = b.receive(transfer(message("x"), &["c", "b"], &[])).unwrap_err();
    assert_eq!((refusal.reason, refusal.status()), (Reason::Loop, 508));
    assert!(refusal.line.contains("was at 'b' before: a > c > b"), "{refusal}");
    let own = Message { originator: "b".into(), ..message("x") };
    assert_eq!(b.receive(transfer(own, &[], &[])).unwrap_err().reason, Reason::Loop);
    let hops: Vec<String> = (0..MAX_HOPS).map(|at| format!("n{at}")).collect();
    let hops: Vec<&str> = hops.iter().map(String::as_str).collect();
    let refusal = b.receive(transfer(message("x"), &hops, &[])).unwrap_err();
    assert!(refusal.line.contains("has passed the limit of 16 nodes"), "{refusal}");
    // b reaches c by c, from which the message comes.
    let refusal = b.receive(transfer(message("x"), &["c"], &["c"])).unwrap_err();
    assert_eq!(refusal.reason, Reason::Loop);
    // For another recipient it is good all the same; the originator learns of the one that is lost.
    b.receive(transfer(message("x"), &["c"], &["b", "c"])).unwrap();
    let receipts: Vec<Outcome> = b
        .sent
        .drain(..)
        .map(|(_, _, parcel)| match parcel {
            Parcel::Receipt(returning) => returning.receipt.outcome,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(receipts, [Outcome::Delivered, Outcome::Failed]);
}

#[test]
fn refusals_on_the_way_reach_the_originator_as_failures() {
    let mut b = Node::of("b", &[("a", "a"), ("c", "c")]);
    b.receive(transfer(message("x"), &[], &["c"])).unwrap();
    let (attempt, ..) = b.sent.pop().unwrap();
    b.end(attempt, Sent::Refused("addressee 'c' is elsewhere".into()));
    let (_, peer, Parcel::Receipt(returning)) = b.sent.pop().unwrap() else { panic!() };
    assert_eq!((peer.as_str(), returning.receipt.outcome), ("a", Outcome::Failed));
    assert_eq!(b.machine.sizes().outbox, 0, "nothing is kept of what is over");
    let mut a = Node::of("a", &[("b", "b"), ("c", "b")]);
    let id = a.accept(Draft { id: Some("a-1".into()), ..draft(&["c"]) });
    let (attempt, ..) = a.sent.pop().unwrap();
    a.end(attempt, Sent::Taken);
    a.receipt(returning).unwrap();
    assert_eq!(a.stage(&id, "c"), Stage::Failed);
    let reason = a.machine.find_outgoing(&id).unwrap().recipients["c"].reason.clone();
    assert_eq!(reason.as_deref(), Some("addressee 'c' is elsewhere"));
}

#[test]
fn receipts_of_unknown_messages_are_refused() {
    let mut a = Node::of("a", &[("b", "b"), ("c", "b")]);
    let unknown = a.receipt(returning(receipt("a-7", "b", Outcome::Delivered))).unwrap_err();
    assert_eq!((unknown.reason, unknown.status()), (Reason::Unknown, 404));
    assert_eq!(unknown.line, "no message 'a-7' of node 'a' is known");
    let id = a.accept(draft(&["b"]));
    let other = a.receipt(returning(receipt(&id, "c", Outcome::Delivered))).unwrap_err();
    assert!(other.line.ends_with("was not for 'c'"), "{other}");
    let elsewhere = Receipt { originator: "z".into(), ..receipt("z-1", "b", Outcome::Read) };
    assert_eq!(a.receipt(returning(elsewhere)).unwrap_err().reason, Reason::Unknown);
    let old = Receipt { time: START - 90_000 * S, ..receipt(&id, "b", Outcome::Read) };
    // Of what was read it is said for longer.
    a.receipt(returning(old.clone())).unwrap();
    assert_eq!(a.stage(&id, "b"), Stage::Read);
    let id = a.accept(draft(&["b"]));
    let old = Receipt { message: id.clone(), outcome: Outcome::Delivered, ..old };
    assert_eq!(a.receipt(returning(old)).unwrap_err().reason, Reason::Expired);
    assert_eq!(a.stage(&id, "b"), Stage::Waiting);
    // A clock that is behind is set some time.
    let time = START + 3601 * S;
    let early = Receipt { time, ..receipt(&id, "b", Outcome::Delivered) };
    let refusal = a.receipt(returning(early.clone())).unwrap_err();
    assert_eq!((refusal.reason, refusal.status()), (Reason::Early, 503));
    a.at(START + S);
    a.receipt(returning(early)).unwrap();
    assert_eq!(a.stage(&id, "b"), Stage::Delivered);
}

#[test]
fn a_message_that_is_read_is_reported_as_read_once() {
    let mut b = Node::of("b", &[("a", "a")]);
    let wanted = Message { receipt: Wanted::Read, ..message("x") };
    b.receive(transfer(wanted, &[], &[])).unwrap();
    for _ in 0..2 {
        b.input(Input::MarkRead { token: 0, which: which("a-1") });
        assert_eq!(b.answers.pop(), Some(Ok(Reply::Done)));
    }
    let (_, _, Parcel::Receipt(read)) = b.sent.pop().unwrap() else { panic!() };
    assert!(b.sent.is_empty() && read.receipt.outcome == Outcome::Read);
    b.input(Input::MarkRead { token: 0, which: which("a-2") });
    assert_eq!(b.answers.pop().unwrap().unwrap_err().line, "no message 'a-2' in the inbox of 'b'");
    let mut a = Node::of("a", &[("b", "b")]);
    a.accept(Draft { id: Some("a-1".into()), receipt: Some(Wanted::Read), ..draft(&["b"]) });
    a.receipt(read).unwrap();
    assert_eq!(a.stage("a-1", "b"), Stage::Read);
    // That of another with the same id says nothing of a message of this node's.
    let own = Draft { id: Some("a-1".into()), ..draft(&["a"]) };
    b.accept(own);
    let wanted = Message { receipt: Wanted::Read, originator: "c".into(), ..message("x") };
    b.receive(transfer(wanted, &[], &[])).unwrap();
    let which = Which { originator: Some("c".into()), ..which("a-1") };
    b.input(Input::MarkRead { token: 0, which });
    assert_eq!(b.answers.pop(), Some(Ok(Reply::Done)));
    assert_eq!(b.machine.find_outgoing("a-1").unwrap().recipients.len(), 1);
    // What comes late takes nothing back.
    a.receipt(returning(receipt("a-1", "b", Outcome::Delivered))).unwrap();
    assert_eq!(a.stage("a-1", "b"), Stage::Read);
}

#[test]
fn recipients_that_come_meanwhile_are_sent_to_after_a_refusal() {
    for outcome in [Sent::Refused("unknown".into()), Sent::Failed("no answer".into())] {
        let mut t = Node::of("t", &[("a", "a"), ("b2", "u"), ("b3", "u")]);
        let best_effort = Message { delivery: Delivery::BestEffort, ..message("x") };
        t.receive(transfer(best_effort.clone(), &[], &["b2"])).unwrap();
        let (attempt, ..) = t.sent.pop().unwrap();
        t.receive(transfer(best_effort, &[], &["b3"])).unwrap();
        assert!(t.sent.is_empty());
        t.end(attempt, outcome);
        t.at(START + S);
        let onward = t.sent.iter().find_map(|(_, peer, parcel)| match parcel {
            Parcel::Message(transfer) if peer == "u" => Some(transfer.recipients.join(" ")),
            _ => None,
        });
        assert_eq!(onward.as_deref(), Some("b3"));
    }
}
