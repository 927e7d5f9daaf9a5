//! Nodes with keys, and strangers.

use std::sync::Arc;

use super::super::*;
use super::node::{Node, START, receipt, returning, with_routes};
use super::{S, draft};
use crate::messaging::message::{Message, Precedence};
use crate::messaging::receipt::{Outcome, Receipt};
use crate::messaging::{Draft, Keys, Reason, Returning, Transfer};

fn keyed(node: &str, routes: &[(&str, &str)], keys: &[&str]) -> Settings {
    let keys = keys.iter().map(|name| ((*name).to_owned(), format!("key of {name} 0123456789")));
    let keys = Keys::new(keys.map(|(name, key)| (name, key.into_bytes()))).unwrap();
    Settings { keys, ..with_routes(node, routes) }
}

fn failed_by(id: &str, addressee: &str, reporter: &str) -> Returning {
    let failed = receipt(id, addressee, Outcome::Failed);
    let bare = Receipt { reporter: reporter.into(), reason: Some("no way".into()), ..failed };
    let keys = keyed(reporter, &[], &[reporter]).keys;
    returning(Receipt { code: keys.sign_receipt(&bare), ..bare })
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
fn with_keys_nobody_hears_of_a_loop_that_a_stranger_invents() {
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
    let for_self = Transfer { recipients: vec![], ..to_group.clone() };
    assert_eq!(b.receive(for_self).unwrap_err().reason, Reason::Forged);
    b.receive(Transfer { recipients: vec!["c".to_owned()], ..to_group }).unwrap();
    assert_eq!(b.sent.len(), 1);
}
