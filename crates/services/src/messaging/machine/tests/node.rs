//! A node whose disk writes at once, and what it is given.

use std::sync::Arc;
use std::time::Duration;

use super::super::*;
use super::{S, settings};
use crate::messaging::message::{Delivery, Message, Precedence, Wanted};
use crate::messaging::receipt::{Outcome, Receipt};
use crate::messaging::{Draft, Returning, Transfer};

pub(super) const START: Duration = Duration::from_secs(1_773_468_000);

/// A node whose disk writes at once.
pub(super) struct Node {
    pub(super) machine: Machine,
    pub(super) now: Duration,
    pub(super) answers: Vec<Result<Reply, Refusal>>,
    pub(super) sent: Vec<(u64, String, Parcel)>,
    pub(super) changes: Vec<Change>,
    pub(super) events: Vec<Event>,
}

impl Node {
    pub(super) fn new(settings: Settings) -> Self {
        let machine = Machine::new(settings);
        let (answers, sent, changes, events) = (vec![], vec![], vec![], vec![]);
        Self { machine, now: START, answers, sent, changes, events }
    }

    pub(super) fn of(node: &str, routes: &[(&str, &str)]) -> Self {
        Self::new(with_routes(node, routes))
    }

    pub(super) fn input(&mut self, input: Input) {
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

    pub(super) fn submit(&mut self, draft: Draft) -> Result<Reply, Refusal> {
        self.input(Input::Submit { token: 0, draft: draft.into() });
        self.answers.pop().unwrap()
    }

    pub(super) fn accept(&mut self, draft: Draft) -> Arc<str> {
        match self.submit(draft) {
            Ok(Reply::Accepted { id, is_new: true }) => id,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn receive(&mut self, transfer: Transfer) -> Result<Reply, Refusal> {
        self.input(Input::Transfer { token: 0, transfer });
        self.answers.pop().unwrap()
    }

    pub(super) fn receipt(&mut self, returning: Returning) -> Result<Reply, Refusal> {
        self.input(Input::Receipt { token: 0, returning });
        self.answers.pop().unwrap()
    }

    pub(super) fn end(&mut self, attempt: u64, outcome: Sent) {
        self.input(Input::Sent { attempt, outcome });
    }

    pub(super) fn at(&mut self, now: Duration) {
        self.now = now;
        self.input(Input::Wake);
    }

    pub(super) fn stage(&self, id: &str, node: &str) -> Stage {
        self.machine.find_outgoing(id).unwrap().recipients[node].stage
    }

    /// Texts of the messages that were sent since the last call, in order.
    pub(super) fn texts(&mut self) -> Vec<String> {
        let sent = std::mem::take(&mut self.sent);
        let text = |parcel: Parcel| match parcel {
            Parcel::Message(transfer) => transfer.message.text.clone(),
            Parcel::Receipt(returning) => format!("receipt of {}", returning.receipt.message),
        };
        sent.into_iter().map(|(_, _, parcel)| text(parcel)).collect()
    }
}

pub(super) fn with_routes(node: &str, routes: &[(&str, &str)]) -> Settings {
    let routes = routes.iter().map(|(to, next)| (Arc::from(*to), Arc::from(*next)));
    let groups = [("platoon".to_owned(), vec!["a".into(), "b".into(), "c".into()])];
    Settings { routes: routes.collect(), groups: groups.into(), ..settings(node) }
}

pub(super) fn which(id: &str) -> Which {
    Which { id: id.into(), originator: None }
}

pub(super) fn message(text: &str) -> Message {
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

pub(super) fn transfer(message: Message, hops: &[&str], recipients: &[&str]) -> Transfer {
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Transfer { message: Arc::new(message), hops: list(hops), recipients: list(recipients) }
}

pub(super) fn receipt(id: &str, addressee: &str, outcome: Outcome) -> Receipt {
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

pub(super) fn returning(receipt: Receipt) -> Returning {
    Returning { receipt: Arc::new(receipt), hops: vec![] }
}
