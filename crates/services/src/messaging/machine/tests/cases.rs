use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::super::*;
use super::{MS, S, draft, settings};
use crate::messaging::message::{Delivery, MAX_HOPS, Message, Precedence, Wanted};
use crate::messaging::receipt::{Outcome, Receipt};
use crate::messaging::{Draft, Keys, Reason, Returning, Transfer};

const START: Duration = Duration::from_secs(1_773_468_000);

/// A node whose disk writes at once.
struct Node {
    machine: Machine,
    now: Duration,
    answers: Vec<Result<Reply, Refusal>>,
    sent: Vec<(u64, String, Parcel)>,
    changes: Vec<Change>,
    events: Vec<Event>,
}

impl Node {
    fn new(settings: Settings) -> Self {
        let machine = Machine::new(settings);
        let (answers, sent, changes, events) = (vec![], vec![], vec![], vec![]);
        Self { machine, now: START, answers, sent, changes, events }
    }

    fn of(node: &str, routes: &[(&str, &str)]) -> Self {
        Self::new(with_routes(node, routes))
    }

    fn input(&mut self, input: Input) {
        self.machine.handle_input(self.now, input);
        while let Some(output) = self.machine.poll_output() {
            match output {
                Output::Answer { answer, .. } => self.answers.push(answer),
                Output::Send { attempt, peer, parcel, .. } => {
                    self.sent.push((attempt, peer.to_string(), parcel));
                }
                Output::Persist { ticket, changes } => {
                    self.changes.extend(changes);
                    self.machine.handle_input(self.now, Input::Persisted { ticket });
                }
                Output::Event(event) => self.events.push(event),
                Output::WakeAt(_) => {}
            }
        }
    }

    fn submit(&mut self, draft: Draft) -> Result<Reply, Refusal> {
        self.input(Input::Submit { token: 0, draft: draft.into() });
        self.answers.pop().unwrap()
    }

    fn accept(&mut self, draft: Draft) -> Arc<str> {
        match self.submit(draft) {
            Ok(Reply::Accepted { id, is_new: true }) => id,
            other => panic!("{other:?}"),
        }
    }

    fn receive(&mut self, transfer: Transfer) -> Result<Reply, Refusal> {
        self.input(Input::Transfer { token: 0, transfer });
        self.answers.pop().unwrap()
    }

    fn receipt(&mut self, returning: Returning) -> Result<Reply, Refusal> {
        self.input(Input::Receipt { token: 0, returning });
        self.answers.pop().unwrap()
    }

    fn end(&mut self, attempt: u64, outcome: Sent) {
        self.input(Input::Sent { attempt, outcome });
    }

    fn at(&mut self, now: Duration) {
        self.now = now;
        self.input(Input::Wake);
    }

    fn stage(&self, id: &str, node: &str) -> Stage {
        self.machine.find_outgoing(id).unwrap().recipients[node].stage
    }

    /// Texts of the messages that were sent since the last call, in order.
    fn texts(&mut self) -> Vec<String> {
        let sent = std::mem::take(&mut self.sent);
        let text = |parcel: Parcel| match parcel {
            Parcel::Message(transfer) => transfer.message.text.clone(),
            Parcel::Receipt(returning) => format!("receipt of {}", returning.receipt.message),
        };
        sent.into_iter().map(|(_, _, parcel)| text(parcel)).collect()
    }
}

fn with_routes(node: &str, routes: &[(&str, &str)]) -> Settings {
    let routes = routes.iter().map(|(to, next)| (Arc::from(*to), Arc::from(*next)));
    let groups = [("platoon".to_owned(), vec!["a".into(), "b".into(), "c".into()])];
    Settings { routes: routes.collect(), groups: groups.into(), ..settings(node) }
}

fn which(id: &str) -> Which {
    Which { id: id.into(), originator: None }
}

fn message(text: &str) -> Message {
    Message {
        id: "a-1".into(),
        precedence: Precedence::Routine,
        originator: "a".into(),
        addressees: vec!["b".to_owned()],
        time: START,
        validity: 600 * S,
        references: vec![],
        kind: "free-text".to_owned(),
        delivery: Delivery::Reliable,
        receipt: Wanted::Delivered,
        text: text.to_owned(),
        extensions: vec![],
        code: None,
    }
}

fn transfer(message: Message, hops: &[&str], recipients: &[&str]) -> Transfer {
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Transfer { message: Arc::new(message), hops: list(hops), recipients: list(recipients) }
}

fn receipt(id: &str, addressee: &str, outcome: Outcome) -> Receipt {
    Receipt {
        message: id.into(),
        originator: "a".into(),
        addressee: addressee.into(),
        outcome,
        time: START,
        reporter: addressee.into(),
        reason: None,
        precedence: Precedence::Routine,
        code: None,
    }
}

fn returning(receipt: Receipt) -> Returning {
    Returning { receipt: Arc::new(receipt), hops: vec![] }
}

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
    // What comes late takes nothing back.
    a.receipt(returning(receipt("a-1", "b", Outcome::Delivered))).unwrap();
    assert_eq!(a.stage("a-1", "b"), Stage::Read);
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

fn keyed(node: &str, routes: &[(&str, &str)], keys: &[&str]) -> Settings {
    let keys = keys.iter().map(|name| ((*name).to_owned(), format!("key of {name} 0123456789")));
    let keys = Keys::new(keys.map(|(name, key)| (name, key.into_bytes()))).unwrap();
    Settings { keys, ..with_routes(node, routes) }
}

#[test]
fn forged_originators_are_refused() {
    let mut a = Node::new(keyed("a", &[("b", "b")], &["a", "b"]));
    let refusal = a.submit(Draft { originator: Some("b".into()), ..draft(&["b"]) }).unwrap_err();
    assert_eq!((refusal.reason, refusal.status()), (Reason::Forged, 403));
    a.accept(draft(&["b"]));
    let (_, _, Parcel::Message(good)) = a.sent.pop().unwrap() else { panic!() };
    let mut b = Node::new(keyed("b", &[("a", "a")], &["a", "b"]));
    let changed = |change: fn(&mut Message)| {
        let mut message = (*good.message).clone();
        change(&mut message);
        Transfer { message: Arc::new(message), ..good.clone() }
    };
    let changes: [fn(&mut Message); 7] = [
        |message| message.text.push('!'),
        |message| message.addressees.push("c".into()),
        |message| message.precedence = Precedence::Flash,
        |message| message.validity = S,
        |message| message.code = None,
        |message| message.code = Some(vec![0; 16]),
        |message| message.originator = "c".into(),
    ];
    for change in changes {
        let refusal = b.receive(changed(change)).unwrap_err();
        assert_eq!(refusal.reason, Reason::Forged, "{refusal}");
    }
    b.receive(good).unwrap();
}

#[test]
fn forged_receipts_are_refused() {
    let mut a = Node::new(keyed("a", &[("b", "b"), ("c", "b")], &["a", "b", "c"]));
    let id = a.accept(draft(&["b"]));
    let bare = receipt(&id, "b", Outcome::Delivered);
    assert_eq!(a.receipt(returning(bare.clone())).unwrap_err().reason, Reason::Forged);
    let keys = keyed("c", &[], &["c"]).keys;
    let by_other = Receipt {
        code: keys.sign_receipt(&Receipt { reporter: "c".into(), ..bare.clone() }),
        ..bare.clone()
    };
    assert_eq!(a.receipt(returning(by_other)).unwrap_err().reason, Reason::Forged);
    let keys = keyed("b", &[], &["b"]).keys;
    let good = Receipt { code: keys.sign_receipt(&bare), ..bare };
    a.receipt(returning(good)).unwrap();
    assert_eq!(a.stage(&id, "b"), Stage::Delivered);
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

fn failed_by(id: &str, addressee: &str, reporter: &str) -> Returning {
    let failed = receipt(id, addressee, Outcome::Failed);
    let bare = Receipt { reporter: reporter.into(), reason: Some("no way".into()), ..failed };
    let keys = keyed(reporter, &[], &[reporter]).keys;
    returning(Receipt { code: keys.sign_receipt(&bare), ..bare })
}

/// b has a key and is not on the way from a to c.
#[test]
fn a_failure_that_a_node_off_the_way_reports_stops_nothing() {
    let mut a = Node::new(keyed("a", &[("b", "b"), ("c", "c")], &["a", "b", "c"]));
    let id = a.accept(draft(&["c"]));
    let (attempt, ..) = a.sent.pop().unwrap();
    a.end(attempt, Sent::Failed("no answer".into()));
    let refusal = a.receipt(failed_by(&id, "c", "b")).unwrap_err();
    assert_eq!((refusal.reason, refusal.status()), (Reason::Forged, 403));
    assert_eq!(a.stage(&id, "c"), Stage::Waiting);
    a.at(START + S);
    let (attempt, peer, _) = a.sent.pop().unwrap();
    assert_eq!(peer, "c");
    a.end(attempt, Sent::Taken);
    assert_eq!(a.stage(&id, "c"), Stage::Delivered);
}

#[test]
fn a_failure_on_the_way_ends_a_round_and_not_the_message() {
    let mut a = Node::new(keyed("a", &[("b", "b"), ("c", "b")], &["a", "b", "c"]));
    let id = a.accept(draft(&["c"]));
    // Nobody has it yet: nobody can have failed.
    a.receipt(failed_by(&id, "c", "b")).unwrap();
    assert_eq!(a.stage(&id, "c"), Stage::Waiting);
    let (attempt, ..) = a.sent.pop().unwrap();
    a.end(attempt, Sent::Taken);
    a.receipt(failed_by(&id, "c", "b")).unwrap();
    assert_eq!(a.stage(&id, "c"), Stage::Failed);
    a.at(START + 61 * S);
    assert_eq!(a.stage(&id, "c"), Stage::Waiting);
    // What the next node says is no last word either: it is not the addressee's.
    let (attempt, ..) = a.sent.pop().unwrap();
    a.end(attempt, Sent::Refused("unknown".into()));
    assert_eq!(a.stage(&id, "c"), Stage::Failed);
    a.at(START + 61 * S + 121 * S);
    let (attempt, ..) = a.sent.pop().unwrap();
    a.end(attempt, Sent::Taken);
    a.receipt(failed_by(&id, "c", "c")).unwrap();
    assert_eq!(a.stage(&id, "c"), Stage::Failed, "the addressee's node may say so");
    a.at(START + 3600 * S);
    assert!(a.stage(&id, "c") != Stage::Waiting && a.stage(&id, "c") != Stage::Forwarded);
}

/// Somebody overhears a signed message and gives it to b with a way that it never went.
#[test]
fn with_keys_nobody_is_told_of_a_loop_that_a_stranger_invents() {
    let mut a = Node::new(keyed("a", &[("b", "b"), ("c", "b")], &["a", "b", "c"]));
    a.accept(draft(&["b", "c"]));
    let (_, _, Parcel::Message(overheard)) = a.sent.pop().unwrap() else { panic!() };
    let routes = [("a", "a"), ("c", "c"), ("d", "d")];
    let mut b = Node::new(keyed("b", &routes, &["a", "b", "c"]));
    let invented = Transfer { hops: vec!["c".to_owned()], ..overheard.clone() };
    b.receive(invented).unwrap();
    let failed = |(_, _, parcel): &(u64, String, Parcel)| match parcel {
        Parcel::Receipt(returning) => returning.receipt.outcome == Outcome::Failed,
        Parcel::Message(_) => false,
    };
    assert!(!b.sent.iter().any(failed), "{:?}", b.sent);
    // As little where the next node finds it.
    b.sent.clear();
    b.receive(overheard).unwrap();
    let attempt = b.sent.iter().find(|(_, peer, _)| peer == "c").unwrap().0;
    b.end(attempt, Sent::Loop("was at 'c' before".into()));
    assert!(!b.sent.iter().any(failed), "{:?}", b.sent);
    assert_eq!(b.machine.sizes().outbox, 0);
}

/// Whom a message is given on for is signed by nobody.
#[test]
fn with_keys_a_node_takes_only_what_is_addressed_to_it() {
    let keys = ["a", "b", "c", "z"];
    let mut a = Node::new(keyed("a", &[("b", "b"), ("c", "b"), ("z", "b")], &keys));
    let mut given = |addressees: &[&str]| {
        a.accept(draft(addressees));
        let (attempt, _, Parcel::Message(transfer)) = a.sent.pop().unwrap() else { panic!() };
        a.end(attempt, Sent::Taken);
        transfer
    };
    let mut b = Node::new(keyed("b", &[("a", "a"), ("c", "c"), ("z", "z")], &keys));
    let for_c = given(&["c"]);
    for recipients in [&[][..], &["b"], &["b", "z"]] {
        let recipients = recipients.iter().map(|name| (*name).to_owned()).collect();
        let stolen = Transfer { recipients, ..for_c.clone() };
        let refusal = b.receive(stolen).unwrap_err();
        assert_eq!((refusal.reason, refusal.status()), (Reason::Forged, 403));
    }
    assert_eq!((b.machine.inbox(0).count(), b.machine.sizes().outbox), (0, 0));
    // Who is addressed gets it all the same; of the others nobody takes it.
    let recipients = ["b", "c", "z"].map(str::to_owned).to_vec();
    b.receive(Transfer { recipients, ..for_c }).unwrap();
    let onward: Vec<String> = b.sent.iter().map(|(_, peer, _)| peer.clone()).collect();
    assert_eq!(onward, ["a", "a", "c"], "two reports that b and z do not have it");
    assert_eq!(b.machine.inbox(0).count(), 0);
    b.receive(given(&["b"])).unwrap();
    b.receive(given(&["platoon"])).unwrap();
    assert_eq!(b.machine.inbox(0).count(), 2);
    // A group that this node does not know may have others in it.
    let mut settings = keyed("b", &[("a", "a"), ("c", "c")], &keys);
    settings.groups.clear();
    let mut b = Node::new(settings);
    let to_group = given(&["platoon"]);
    assert_eq!(b.receive(to_group.clone()).unwrap_err().reason, Reason::Forged);
    b.receive(Transfer { recipients: vec!["c".to_owned()], ..to_group }).unwrap();
    assert_eq!(b.sent.len(), 1);
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
    let count = |machine: &Machine| machine.inbox(0).count();
    let transfer = transfer(message("x"), &[], &[]);
    b.handle_input(START, Input::Transfer { token: 1, transfer });
    assert_eq!(
        (count(&b), b.find_arrived(&which("a-1")).is_ok(), b.last_announced()),
        (0, false, 0)
    );
    b.handle_input(START, Input::Persisted { ticket: 1 });
    assert_eq!(
        (count(&b), b.find_arrived(&which("a-1")).is_ok(), b.last_announced()),
        (1, true, 1)
    );
}
