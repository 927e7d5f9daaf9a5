//! What goes to a node when.

use std::sync::Arc;
use std::time::Duration;

use super::super::*;
use super::node::{Node, START, message, transfer, with_routes};
use super::{MS, S, draft};
use crate::messaging::message::{Delivery, Message, Precedence};
use crate::messaging::{Draft, Reason};

#[test]
fn more_urgent_messages_go_first() {
    let mut a = Node::of("a", &[("b", "b")]);
    let text =
        |text: &str, precedence| Draft { text: text.to_owned(), precedence, ..draft(&["b"]) };
    a.accept(text("probe", Precedence::Routine));
    let (attempt, ..) = a.sent[0];
    a.end(attempt, Sent::Failed("no answer".into()));
    a.sent.clear();
    for (name, precedence) in [
        ("r1", Precedence::Routine),
        ("p", Precedence::Priority),
        ("f", Precedence::Flash),
        ("r2", Precedence::Routine),
        ("i", Precedence::Immediate),
    ] {
        a.accept(text(name, precedence));
    }
    assert_eq!(a.texts(), [""; 0], "the node does not answer");
    a.at(START + S);
    // One request finds out whether the node answers again; then as many as the window has.
    let (attempt, ..) = a.sent[0];
    assert_eq!(a.texts(), ["f"]);
    a.end(attempt, Sent::Taken);
    assert_eq!(a.texts(), ["i", "p", "probe", "r1"]);
}

#[test]
fn what_is_more_urgent_than_all_under_way_waits_for_none_of_it() {
    let text =
        |text: &str, precedence| Draft { text: text.to_owned(), precedence, ..draft(&["b"]) };
    let mut a = Node::of("a", &[("b", "b")]);
    for name in ["r1", "r2", "r3", "r4", "r5"] {
        a.accept(text(name, Precedence::Routine));
    }
    assert_eq!(a.texts(), ["r1", "r2", "r3", "r4"]);
    a.accept(text("f1", Precedence::Flash));
    assert_eq!(a.texts(), ["f1"]);
    // It is no more urgent than the first, and waits as any other.
    a.accept(text("f2", Precedence::Flash));
    a.accept(text("i", Precedence::Immediate));
    assert_eq!(a.texts(), [""; 0]);
    for attempt in [1, 2] {
        a.end(attempt, Sent::Taken);
    }
    assert_eq!(a.texts(), ["f2"], "the window has room again");
    // The same where a node takes one request at a time.
    let mut a = Node::of("a", &[("b", "b")]);
    a.accept(text("r1", Precedence::Routine));
    let (attempt, ..) = a.sent.pop().unwrap();
    a.end(attempt, Sent::Failed("no answer".into()));
    a.accept(text("f1", Precedence::Flash));
    assert_eq!(a.texts(), [""; 0], "it is left alone");
    a.at(START + S);
    assert_eq!(a.texts(), ["f1"]);
    let mut a = Node::of("a", &[("b", "b")]);
    a.accept(text("r1", Precedence::Routine));
    let (attempt, ..) = a.sent.pop().unwrap();
    a.end(attempt, Sent::Failed("no answer".into()));
    a.at(START + S);
    assert_eq!(a.texts(), ["r1"]);
    a.accept(text("f1", Precedence::Flash));
    assert_eq!(a.texts(), ["f1"]);
}

#[test]
fn pauses_between_attempts_double_up_to_a_bound() {
    let mut a = Node::of("a", &[("b", "b")]);
    a.accept(draft(&["b"]));
    let mut pauses = Vec::new();
    for _ in 0..7 {
        let (attempt, ..) = a.sent.pop().unwrap();
        let failed = a.now;
        a.end(attempt, Sent::Failed("no answer".into()));
        while a.sent.is_empty() {
            a.at(a.now + 10 * MS);
        }
        pauses.push((a.now - failed).as_secs_f64());
    }
    for (pause, longest) in pauses.iter().zip([1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0]) {
        assert!((longest * 0.49..=longest + 0.02).contains(pause), "{pauses:?}");
    }
}

#[test]
fn best_effort_is_tried_once() {
    let mut a = Node::of("a", &[("b", "b")]);
    let id = a.accept(Draft { delivery: Delivery::BestEffort, ..draft(&["b"]) });
    let (attempt, ..) = a.sent.pop().unwrap();
    a.end(attempt, Sent::Failed("no answer".into()));
    assert_eq!(a.stage(&id, "b"), Stage::Failed);
    a.at(START + 100 * S);
    assert!(a.sent.is_empty());
}

#[test]
fn best_effort_that_is_not_answered_holds_up_nothing_that_is_tried_again() {
    let mut a = Node::of("a", &[("b", "b")]);
    let once = Draft { delivery: Delivery::BestEffort, text: "once".into(), ..draft(&["b"]) };
    let lost: Vec<Arc<str>> = (0..6).map(|_| a.accept(once.clone())).collect();
    let attempts: Vec<u64> = a.sent.iter().map(|(attempt, ..)| *attempt).collect();
    assert_eq!(a.texts(), ["once"; 4], "no more at once than the window has");
    for _ in 0..4 {
        a.accept(draft(&["b"]));
    }
    assert_eq!(a.texts(), ["Contact"; 4]);
    for attempt in attempts {
        a.end(attempt, Sent::NotNow("no answer in time".into()));
    }
    assert_eq!(a.texts(), ["once"; 2]);
    assert_eq!(a.stage(&lost[0], "b"), Stage::Failed);
    // It says nothing of the node, which still gets as many at once.
    a.accept(draft(&["b"]));
    a.end(5, Sent::Taken);
    assert_eq!(a.texts(), ["Contact"]);
}

#[test]
fn what_a_node_does_not_take_holds_up_nothing_else() {
    let mut a = Node::of("a", &[("b", "b")]);
    let named =
        |text: &str, precedence| Draft { text: text.to_owned(), precedence, ..draft(&["b"]) };
    a.accept(named("first", Precedence::Flash));
    let mut times = Vec::new();
    for _ in 0..4 {
        let (attempt, ..) = a.sent[0];
        times.push((a.now - START).as_secs_f64());
        a.end(attempt, Sent::NotNow("no room".into()));
        a.sent.clear();
        // It waits, however urgent; another goes at once, though the window is one now.
        let other = a.accept(named("other", Precedence::Routine));
        let (attempt, ..) = a.sent[0];
        assert_eq!(a.texts(), ["other"]);
        a.end(attempt, Sent::Taken);
        assert_eq!(a.stage(&other, "b"), Stage::Delivered);
        while a.sent.is_empty() {
            a.at(a.now + 10 * MS);
        }
        assert_eq!(a.sent.len(), 1);
    }
    let pauses = times.windows(2).map(|two| two[1] - two[0]);
    for (pause, longest) in pauses.zip([1.0, 2.0, 4.0]) {
        assert!((longest * 0.49..=longest + 0.02).contains(&pause), "{times:?}");
    }
}

#[test]
fn a_node_that_takes_nothing_at_all_is_left_alone() {
    let mut a = Node::of("a", &[("b", "b")]);
    for _ in 0..100 {
        a.accept(draft(&["b"]));
    }
    let mut count = 0;
    while let Some((attempt, ..)) = a.sent.pop() {
        count += 1;
        a.end(attempt, Sent::NotNow("no room".into()));
    }
    assert!((32..40).contains(&count), "{count} requests to a node without room");
    assert_eq!(a.machine.sizes().waiting, 100);
    a.at(START + S);
    let (attempt, ..) = a.sent[0];
    assert_eq!(a.sent.len(), 1);
    a.sent.clear();
    a.end(attempt, Sent::Taken);
    assert_eq!(a.sent.len(), 4, "the window is open again");
}

#[test]
fn nothing_is_remembered_of_what_fails_when_it_is_over() {
    let mut t = Node::of("t", &[("a", "a"), ("b", "b")]);
    for at in 0..4 {
        let short = Message { id: format!("a-{at}").into(), validity: S, ..message("x") };
        t.receive(transfer(short, &[], &["b"])).unwrap();
    }
    t.at(START + 2 * S);
    assert_eq!(t.machine.sizes().outbox, 0);
    for (attempt, ..) in std::mem::take(&mut t.sent) {
        t.end(attempt, Sent::NotNow("no answer in time".into()));
    }
    assert_eq!(t.machine.peers.remembered(), 0);
}

#[test]
fn a_relay_without_room_refuses_only_itself() {
    let routes = [("a", "a"), ("b2", "b2")];
    let mut b = Node::new(Settings { max_messages: 1, ..with_routes("b", &routes) });
    let other = Message { id: "a-0".into(), ..message("y") };
    b.receive(transfer(other, &[], &[])).unwrap();
    let mut a = Node::of("a", &[("b", "b"), ("b2", "b")]);
    let id = a.accept(draft(&["b", "b2"]));
    let (attempt, _, Parcel::Message(both)) = a.sent.pop().unwrap() else { panic!() };
    let refusal = b.receive(both).unwrap_err();
    assert_eq!(refusal.reason, Reason::Full);
    let (_, peer, Parcel::Message(onward)) = b.sent.pop().unwrap() else { panic!() };
    assert_eq!((peer.as_str(), &*onward.message.id), ("b2", &*id));
    // The node before tries the parts in turn.
    a.end(attempt, Sent::NotNow(refusal.line));
    let mut parts = Vec::new();
    for outcome in [Sent::NotNow("no room".into()), Sent::NotNow("no room".into()), Sent::Taken] {
        while a.sent.is_empty() {
            a.at(a.now + 10 * MS);
        }
        let (attempt, _, Parcel::Message(part)) = a.sent.pop().unwrap() else { panic!() };
        parts.push(part.recipients.join(" "));
        a.end(attempt, outcome);
    }
    assert_eq!(parts, ["b2", "", "b2"], "nobody named is the node alone");
    assert_eq!((a.stage(&id, "b2"), a.stage(&id, "b")), (Stage::Forwarded, Stage::Waiting));
}

#[test]
fn a_long_message_has_the_time_that_it_needs() {
    let mut a = Machine::new(with_routes("a", &[("b", "b")]));
    let text = "x".repeat(32 * 1024);
    let draft = Box::new(Draft { text, validity: Some(1000 * S), ..draft(&["b"]) });
    a.handle_input(START, Input::Submit { token: 1, draft });
    a.handle_input(START, Input::Persisted { ticket: 1 });
    let outputs = std::iter::from_fn(|| a.poll_output());
    let times: Vec<Duration> = outputs
        .filter_map(|output| match output {
            Output::Send { within, .. } => Some(within),
            _ => None,
        })
        .collect();
    // At 4.8 kbit/s its bytes alone take 55 s.
    assert_eq!(times, [(3 + 256) * S]);
}
