use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::messaging::machine::{Arrived, Key, Progress, Stage};
use crate::messaging::message::{Delivery, Precedence};
use crate::messaging::{Message, Outcome, Receipt, Returning, Wanted};

/// A directory of its own that is removed in the end.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("longwire-messaging-{name}-{}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn message(id: &str) -> Arc<Message> {
    Arc::new(Message {
        id: id.into(),
        precedence: Precedence::Flash,
        originator: "a".into(),
        addressees: vec!["b".to_owned()],
        time: Duration::from_millis(1_773_468_000_123),
        validity: Duration::from_secs(60),
        references: vec!["a-0".to_owned()],
        kind: "contact-report".to_owned(),
        delivery: Delivery::BestEffort,
        receipt: Wanted::Read,
        text: "Contact\r\n\u{1f680}".to_owned(),
        extensions: vec![("grid".to_owned(), "32U".to_owned())],
        code: Some(vec![3; 16]),
    })
}

fn at(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

async fn written(directory: &Path, batches: Vec<Vec<Change>>) {
    let mut opened = Store::open(directory, "a").unwrap();
    for (ticket, changes) in (1..).zip(batches) {
        opened.store.write(ticket, changes);
        assert_eq!(opened.done.recv().await, Some(ticket));
    }
    opened.store.finish().await;
}

#[tokio::test]
async fn changes_come_back_and_those_that_are_over_do_not() {
    let scratch = Scratch::new("changes");
    let arrived = |number, read| Arrived { number, message: message("m"), at: at(7), read };
    let receipt = Receipt {
        message: "m".into(),
        originator: "a".into(),
        addressee: "b".into(),
        outcome: Outcome::Failed,
        time: at(9),
        reporter: "c".into(),
        reason: Some("no way".to_owned()),
        precedence: Precedence::Priority,
        code: None,
    };
    let returning = Returning { receipt: Arc::new(receipt), hops: vec!["d".to_owned()] };
    let outgoing = |number| Change::Outgoing {
        number,
        accepted: at(5),
        message: message("o"),
        hops: vec!["x".to_owned()],
    };
    let progress = |stage| Progress { stage, at: at(6), reason: Some("why".to_owned()) };
    let recipient =
        |number, stage| Change::Recipient { number, node: "b".into(), progress: progress(stage) };
    let key = |id: &str| Key { id: id.into(), originator: "c".into() };
    let seen = |id: &str| Change::Seen { key: key(id), digest: [7; 16], until: at(11) };
    let given = |number| Change::Given { number, name: 10 * number };
    let batches = vec![
        vec![Change::Inbox(arrived(1, None)), outgoing(2), recipient(2, Stage::Waiting)],
        vec![Change::Inbox(arrived(1, Some(at(8)))), recipient(2, Stage::Delivered)],
        vec![Change::Inbox(arrived(3, None)), outgoing(4), recipient(4, Stage::Waiting)],
        vec![Change::InboxRemoved { number: 3 }, Change::OutgoingRemoved { number: 4 }, given(4)],
        vec![Change::Receipt { number: 5, returning: returning.clone() }, seen("s"), seen("t")],
        vec![
            Change::Receipt { number: 6, returning: returning.clone() },
            Change::ReceiptRemoved { number: 6 },
            Change::SeenRemoved { key: key("t") },
            given(6),
        ],
    ];
    written(&scratch.0, batches).await;
    let opened = Store::open(&scratch.0, "a").unwrap();
    let expected = [
        given(6),
        Change::Inbox(arrived(1, Some(at(8)))),
        outgoing(2),
        recipient(2, Stage::Delivered),
        Change::Receipt { number: 5, returning },
        seen("s"),
    ];
    assert_eq!(opened.changes, expected);
    opened.store.finish().await;
}

#[tokio::test]
async fn a_store_of_another_node_version_or_process_is_refused() {
    let scratch = Scratch::new("refused");
    let refused = |node: &str| Store::open(&scratch.0, node).err().unwrap().to_string();
    let opened = Store::open(&scratch.0, "a").unwrap();
    assert!(refused("a").contains("locked"), "{}", refused("a"));
    opened.store.finish().await;
    assert!(refused("b").contains("is of node 'a', not 'b'"), "{}", refused("b"));
    let connection = Connection::open(scratch.0.join(FILE)).unwrap();
    connection.pragma_update(None, "user_version", 9).unwrap();
    drop(connection);
    assert!(refused("a").contains("it has version 9, and this longwire knows 2"));
    fs::write(scratch.0.join(FILE), b"no database at all, but some text of more bytes").unwrap();
    assert!(refused("a").contains("cannot open the store"), "{}", refused("a"));
}

#[tokio::test]
async fn a_disk_that_takes_nothing_does_not_keep_a_node_from_ending() {
    let scratch = Scratch::new("ending");
    let mut opened = Store::open(&scratch.0, "a").unwrap();
    // SQLite has no such number: this is never written.
    opened.store.write(1, vec![Change::Given { number: u64::MAX, name: 0 }]);
    let ended = tokio::time::timeout(Duration::from_secs(30), opened.store.finish()).await;
    assert!(ended.is_ok(), "it is tried for ever");
    assert_eq!(opened.done.recv().await, None, "nor is it said to be written");
}
