//! What nodes keep, and for how long.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::*;
use super::node::{Node, START, message, receipt, returning, transfer, which, with_routes};
use super::{S, draft};
use crate::messaging::message::{Delivery, Message, Precedence, Wanted};
use crate::messaging::receipt::{Outcome, Receipt};
use crate::messaging::{Draft, Reason};

#[test]
fn one_id_is_of_one_message() {
    let mut a = Node::of("a", &[("b", "b")]);
    let named = Draft { id: Some("a-1".into()), ..draft(&["b"]) };
    a.accept(named.clone());
    let again = a.submit(named.clone());
    assert_eq!(again, Ok(Reply::Accepted { id: "a-1".into(), is_new: false }));
    let changes: [fn(&mut Draft); 7] = [
        |draft| draft.text = "another".into(),
        |draft| draft.kind = Some("contact-report".into()),
        |draft| draft.validity = Some(S),
        |draft| draft.delivery = Delivery::BestEffort,
        |draft| draft.receipt = Some(Wanted::Nothing),
        |draft| draft.time = Some(START - S),
        |draft| draft.precedence = Precedence::Flash,
    ];
    for change in changes {
        let mut other = named.clone();
        change(&mut other);
        assert_eq!(a.submit(other.clone()).unwrap_err().status(), 409, "{other:?}");
    }
    let said = Draft { kind: Some("free-text".into()), receipt: Some(Wanted::Delivered), ..named };
    let again = a.submit(said);
    assert_eq!(again, Ok(Reply::Accepted { id: "a-1".into(), is_new: false }));
    let mut b = Node::of("b", &[("a", "a")]);
    b.receive(transfer(message("x"), &[], &[])).unwrap();
    let refusal = b.receive(transfer(message("y"), &[], &[])).unwrap_err();
    assert_eq!(refusal.reason, Reason::Conflict);
    // Ids that the node makes differ, also within a millisecond.
    let ids: std::collections::BTreeSet<_> = (0..100).map(|_| a.accept(draft(&["b"]))).collect();
    assert_eq!(ids.len(), 100);
}

#[test]
fn what_no_receipt_comes_of_is_over_when_the_next_node_has_it() {
    let routes = [("b", "b"), ("c", "b")];
    let mut a = Node::new(Settings { max_messages: 3, ..with_routes("a", &routes) });
    let bare = Draft { receipt: Some(Wanted::Nothing), ..draft(&["c"]) };
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(a.accept(bare.clone()));
        let (attempt, ..) = a.sent.pop().unwrap();
        a.end(attempt, Sent::Taken);
    }
    a.accept(bare.clone());
    assert!(a.machine.find_outgoing(&ids[0]).is_none(), "the oldest makes room");
    // It was given on in time, and what became of it nobody says.
    a.at(START + 3601 * S);
    assert_eq!(a.stage(&ids[1], "c"), Stage::Forwarded);
    let mut a = Node::of("a", &routes);
    let once = Draft { delivery: Delivery::BestEffort, ..draft(&["c"]) };
    let id = a.accept(once);
    let (attempt, ..) = a.sent.pop().unwrap();
    a.end(attempt, Sent::Taken);
    a.at(START + 3601 * S);
    assert_eq!(a.stage(&id, "c"), Stage::Forwarded);
    a.at(START + 7300 * S);
    assert_eq!(a.machine.sizes().outbox, 0, "it is forgotten in the end");
}

#[test]
fn full_boxes_refuse_and_what_is_done_makes_room() {
    let mut a = Node::new(Settings { max_messages: 3, ..with_routes("a", &[("b", "b")]) });
    for _ in 0..3 {
        a.accept(draft(&["b"]));
    }
    let refusal = a.submit(draft(&["b"])).unwrap_err();
    assert_eq!((refusal.reason, refusal.status()), (Reason::Full, 503));
    assert!(refusal.line.contains("the outbox of node 'a' has all 3 messages"), "{refusal}");
    let (attempt, ..) = a.sent[0];
    a.end(attempt, Sent::Taken);
    a.accept(draft(&["b"]));
    let mut b = Node::new(Settings { max_messages: 2, ..with_routes("b", &[("a", "a")]) });
    let named = |id: &str| transfer(Message { id: id.into(), ..message("x") }, &[], &[]);
    b.receive(named("1")).unwrap();
    b.receive(named("2")).unwrap();
    assert_eq!(b.receive(named("3")).unwrap_err().reason, Reason::Full);
    b.input(Input::MarkRead { token: 0, which: which("1") });
    b.receive(named("3")).unwrap();
    assert!(b.machine.find_arrived(&which("1")).is_err());
    // What made room is known all the same.
    b.receive(named("1")).unwrap();
    assert_eq!(b.machine.inbox(0).count(), 2);
    b.at(START + 700 * S);
    assert_eq!(b.receive(named("1")).unwrap_err().reason, Reason::Expired);
}

#[test]
fn no_message_is_forgotten_that_may_come_again() {
    // Eleven are known, five of one originator.
    let mut b = Node::new(Settings { max_messages: 1, ..with_routes("b", &[("a", "a")]) });
    let of = |originator: &str, id: &str| {
        let message = Message { originator: originator.into(), id: id.into(), ..message("x") };
        transfer(message, &[], &[])
    };
    for id in ["1", "2", "3", "4", "5"] {
        b.receive(of("a", id)).unwrap();
        b.input(Input::Remove { token: 0, which: which(id) });
        assert_eq!(b.answers.pop(), Some(Ok(Reply::Done)));
    }
    let refusal = b.receive(of("a", "6")).unwrap_err();
    assert_eq!((refusal.reason, refusal.status()), (Reason::Full, 503));
    assert!(refusal.line.contains("5 of 'a'"), "{refusal}");
    for id in ["1", "2", "3", "4", "5"] {
        b.receive(of("a", id)).unwrap();
    }
    assert_eq!(b.machine.inbox(0).count(), 0, "none of them comes twice");
    b.receive(of("c", "1")).unwrap();
    // What is over cannot come again: there is room.
    b.at(START + 600 * S);
    let later = Message { id: "6".into(), time: b.now, ..message("x") };
    b.receive(transfer(later, &[], &[])).unwrap();
    assert_eq!(b.machine.inbox(0).count(), 1, "the one that is over has made room");
}

#[test]
fn a_node_that_is_restored_is_the_one_that_was_killed() {
    let mut a = Node::of("a", &[("b", "b"), ("c", "b")]);
    a.accept(draft(&["b", "a"]));
    a.accept(draft(&["c"]));
    let (attempt, ..) = a.sent[1];
    a.end(attempt, Sent::Taken);
    let other = Message { originator: "c".into(), id: "c-1".into(), ..message("x") };
    a.receive(transfer(other, &["b"], &[])).unwrap();
    let mut again = Node::of("a", &[("b", "b"), ("c", "b")]);
    again.machine.restore(START + S, a.changes.clone());
    again.at(START + S);
    let stages = |node: &Node| -> Vec<(String, BTreeMap<Arc<str>, Progress>)> {
        let entries = node.machine.outbox(0);
        entries.map(|entry| (entry.message.id.to_string(), entry.recipients.clone())).collect()
    };
    assert_eq!(stages(&a), stages(&again));
    let inbox = |node: &Node| node.machine.inbox(0).cloned().collect::<Vec<_>>();
    assert_eq!(inbox(&a), inbox(&again));
    assert_eq!(a.machine.sizes().receipts, again.machine.sizes().receipts);
    assert_eq!(again.sent.len(), 2, "the message to b and the receipt to c are sent again");
    let ids = |node: &mut Node| node.accept(draft(&["b"]));
    let old: Vec<String> = stages(&a).into_iter().map(|(id, _)| id).collect();
    assert!(!old.contains(&ids(&mut again).to_string()));
}

/// Before the restart the clock was a thousand seconds ahead.
#[test]
fn a_clock_that_was_ahead_keeps_nothing_from_being_sent_again() {
    let mut a = Node::of("a", &[("c", "b"), ("b", "b")]);
    a.accept(draft(&["c"]));
    let (attempt, ..) = a.sent.pop().unwrap();
    a.end(attempt, Sent::Taken);
    let mut again = Node::of("a", &[("c", "b"), ("b", "b")]);
    again.now = START - 1000 * S;
    again.machine.restore(again.now, a.changes.clone());
    again.at(START - 1000 * S + 61 * S);
    assert_eq!(again.texts(), ["Contact"]);
}

#[test]
fn a_message_taken_out_of_the_inbox_does_not_come_again() {
    let mut b = Node::of("b", &[("a", "a")]);
    b.receive(transfer(message("x"), &[], &[])).unwrap();
    b.input(Input::Remove { token: 0, which: which("a-1") });
    assert_eq!(b.answers.pop(), Some(Ok(Reply::Done)));
    b.receive(transfer(message("x"), &[], &[])).unwrap();
    assert_eq!((b.machine.inbox(0).count(), b.events.len()), (0, 1));
    b.input(Input::Remove { token: 0, which: which("a-1") });
    assert_eq!(b.answers.pop().unwrap().unwrap_err().reason, Reason::Unknown);
}

#[test]
fn an_id_is_of_its_originator_and_of_one_message_also_when_that_is_gone() {
    let mut b = Node::of("b", &[("a", "a"), ("c", "c")]);
    b.receive(transfer(message("x"), &[], &[])).unwrap();
    let of_c = Message { originator: "c".into(), ..message("of c") };
    b.receive(transfer(of_c, &[], &[])).unwrap();
    let texts = |node: &Node| -> Vec<String> {
        node.machine.inbox(0).map(|entry| entry.message.text.clone()).collect()
    };
    assert_eq!(texts(&b), ["x", "of c"], "another's id keeps nobody from delivering");
    // A client says which it means, and takes out no other than the one that it has read.
    let of = |name: &str| Which { originator: Some(name.into()), ..which("a-1") };
    for input in [
        Input::MarkRead { token: 0, which: which("a-1") },
        Input::Remove { token: 0, which: which("a-1") },
        Input::Remove { token: 0, which: of("z") },
    ] {
        b.input(input);
    }
    let refusals: Vec<Refusal> = b.answers.drain(..).map(Result::unwrap_err).collect();
    let statuses: Vec<u16> = refusals.iter().map(Refusal::status).collect();
    assert_eq!(statuses, [409, 409, 404]);
    assert_eq!(refusals[0].line, "'a-1' is an id of a, c; name one as originator");
    b.input(Input::MarkRead { token: 0, which: of("c") });
    let is_read = |node: &Node, name| node.machine.find_arrived(&of(name)).unwrap().read.is_some();
    assert!(is_read(&b, "c") && !is_read(&b, "a"));
    b.input(Input::Remove { token: 0, which: of("c") });
    assert_eq!(texts(&b), ["x"]);
    b.input(Input::Remove { token: 0, which: which("a-1") });
    assert_eq!(texts(&b), [""; 0]);
    b.receive(transfer(message("x"), &[], &[])).unwrap();
    let refusal = b.receive(transfer(message("another"), &[], &[])).unwrap_err();
    assert_eq!((refusal.reason, refusal.status()), (Reason::Conflict, 409));
    assert_eq!(texts(&b), [""; 0]);
}

#[test]
fn numbers_and_ids_are_not_given_again_after_a_restart() {
    let mut b = Node::of("b", &[("a", "a")]);
    b.receive(transfer(message("x"), &[], &[])).unwrap();
    let id = b.accept(draft(&["a"]));
    let last = b.machine.find_outgoing(&id).unwrap().number;
    // The disk has what was given away, and none of the messages any more.
    let given = |change: &&Change| matches!(change, Change::Given { .. });
    let kept: Vec<Change> = b.changes.iter().filter(given).cloned().collect();
    let mut again = Node::of("b", &[("a", "a")]);
    again.machine.restore(START, kept);
    again.receive(transfer(message("x"), &[], &[])).unwrap();
    let number = again.machine.find_arrived(&which("a-1")).unwrap().number;
    assert!(number > last, "{number} after {last}");
    assert_ne!(again.accept(draft(&["a"])), id);
}

#[test]
fn receipts_beyond_what_there_is_room_for_are_refused_and_not_dropped() {
    let mut t = Node::of("t", &[("a", "a"), ("c", "c")]);
    let mut count = 0;
    let refusal = loop {
        let one = receipt(&format!("a-{count}"), "b", Outcome::Delivered);
        match t.receipt(returning(one)) {
            Ok(_) => count += 1,
            Err(refusal) => break refusal,
        }
        assert!(count < 100_000);
    };
    assert_eq!((refusal.reason, refusal.status()), (Reason::Full, 503));
    assert_eq!(t.machine.sizes().receipts, count);
    // Others have room all the same.
    let of_c = Receipt { originator: "c".into(), ..receipt("c-1", "b", Outcome::Delivered) };
    t.receipt(returning(of_c)).unwrap();
    let (attempt, ..) = t.sent[0];
    t.end(attempt, Sent::Taken);
    t.receipt(returning(receipt("a-x", "b", Outcome::Delivered))).unwrap();
}

#[test]
fn a_message_is_not_read_before_there_is_room_to_say_so() {
    let mut b = Node::of("b", &[("a", "a")]);
    let wanted = Message { receipt: Wanted::Read, ..message("x") };
    b.receive(transfer(wanted, &[], &[])).unwrap();
    let mut count = 0;
    while b.receipt(returning(receipt(&format!("a-x{count}"), "c", Outcome::Delivered))).is_ok() {
        count += 1;
    }
    b.input(Input::MarkRead { token: 0, which: which("a-1") });
    let refusal = b.answers.pop().unwrap().unwrap_err();
    assert_eq!((refusal.reason, refusal.status()), (Reason::Full, 503));
    assert_eq!(b.machine.find_arrived(&which("a-1")).unwrap().read, None);
    // Once one of the others has gone it is.
    let (attempt, ..) = b.sent[0];
    b.end(attempt, Sent::Taken);
    b.input(Input::MarkRead { token: 0, which: which("a-1") });
    assert_eq!(b.answers.pop(), Some(Ok(Reply::Done)));
    assert!(b.machine.find_arrived(&which("a-1")).unwrap().read.is_some());
}

/// The originator asks for no such receipt again.
#[test]
fn that_a_message_was_read_is_said_while_it_is_valid_and_a_day_at_least() {
    for (validity_s, ends_s) in [(600, 86_400), (5 * 86_400, 5 * 86_400)] {
        let mut b = Node::of("b", &[("a", "t"), ("t", "t")]);
        let validity = S * validity_s;
        let wanted = Message { receipt: Wanted::Read, validity, ..message("x") };
        b.receive(transfer(wanted, &["t"], &[])).unwrap();
        let (attempt, ..) = b.sent.pop().unwrap();
        b.end(attempt, Sent::Taken);
        b.input(Input::MarkRead { token: 0, which: which("a-1") });
        let (attempt, _, Parcel::Receipt(read)) = b.sent.pop().unwrap() else { panic!() };
        b.end(attempt, Sent::Failed("no answer".into()));
        let mut again = Node::of("b", &[("a", "t"), ("t", "t")]);
        again.machine.restore(START, b.changes.clone());
        for node in [&mut b, &mut again] {
            node.at(START + (ends_s - 1) * S);
            assert_eq!(node.machine.sizes().receipts, 1);
            node.at(START + ends_s * S);
            assert_eq!(node.machine.sizes().receipts, 0);
        }
        // A node on the way knows no validity, and keeps it longer.
        let mut t = Node::of("t", &[("a", "a"), ("b", "b")]);
        t.at(START + (ends_s - 1) * S);
        t.receipt(read).unwrap();
        assert_eq!(t.machine.sizes().receipts, 1);
    }
}

#[test]
fn a_message_for_many_who_are_unknown_makes_few_receipts() {
    let mut t = Node::of("t", &[("a", "a")]);
    let names: Vec<String> = (0..500).map(|at| format!("z{at}")).collect();
    let mut recipients: Vec<&str> = names.iter().map(String::as_str).collect();
    recipients.push("t");
    for _ in 0..2 {
        t.receive(transfer(message("x"), &[], &recipients)).unwrap();
        assert_eq!(t.machine.sizes().receipts, 16);
    }
}

#[test]
fn clients_see_nothing_that_the_disk_does_not_have() {
    let mut b = Machine::new(with_routes("b", &[("a", "a")]));
    let count = |machine: &Machine| {
        assert_eq!(machine.unread(0).count(), machine.inbox_extent().unread);
        machine.inbox(0).count()
    };
    let transfer = transfer(message("x"), &[], &[]);
    b.handle_input(START, Input::Transfer { token: 1, transfer });
    assert_eq!(
        (count(&b), b.find_arrived(&which("a-1")).is_ok(), b.inbox_extent().last),
        (0, false, 0)
    );
    b.handle_input(START, Input::Persisted { ticket: 1 });
    assert_eq!(
        (count(&b), b.find_arrived(&which("a-1")).is_ok(), b.inbox_extent().last),
        (1, true, 1)
    );
}
