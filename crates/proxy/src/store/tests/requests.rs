use record::decision::Asked;

use super::*;

fn asked(number: u64) -> Asked {
    Asked {
        method: "GET".to_owned(),
        target: format!("http://even.example/{number}"),
        status: Some(200),
        client: "192.0.2.7".to_owned(),
        trace: number.is_multiple_of(4).then(|| format!("{number:032x}")),
    }
}

#[test]
fn a_decision_has_the_request_that_it_was_for() {
    let scratch = Scratch::new("requests");
    let mut store = open(&scratch.place());
    let requests = store.requests();
    (0..4).for_each(|number| store.observe(chosen(number)));
    requests.note(&id(2), || asked(2));
    // Its decision comes behind it; of exchanges without one nothing is kept.
    requests.note(&id(5), || asked(5));
    (100..1000).for_each(|number| {
        requests.note(&id(number), || asked(number));
        assert!(store.flush());
    });
    requests.note(&id(6), || asked(6));
    (5..=6).for_each(|number| store.observe(chosen(number)));
    assert!(store.flush());
    let history = History::open(&scratch.0).unwrap();
    let entries = history.last("", 100).unwrap().entries;
    let found: Vec<Option<Asked>> = entries.iter().map(|entry| entry.request.clone()).collect();
    assert_eq!(found, [None, None, Some(asked(2)), None, None, Some(asked(6))]);
    let middle = (entries[1].unix_s + entries[4].unix_s) / 2.0;
    let later = history.since("", middle, 100).unwrap().entries;
    assert!(!later.is_empty() && later.iter().all(|entry| entry.unix_s >= middle));
    assert!(history.since("", entries[5].unix_s + 1.0, 100).unwrap().entries.is_empty());
    // Whoever outlives the store is not in its way.
    drop(store);
    requests.note(&id(3), || unreachable!());
}

/// Without the column that came later a store is read as it is, and written with it.
#[test]
fn a_store_of_before_is_gone_on_with() {
    let scratch = Scratch::new("before-requests");
    let mut store = open(&scratch.place());
    store.observe(chosen(1));
    store.save_learned(b"learned".to_vec());
    drop(store);
    let before = Connection::open(scratch.file()).unwrap();
    before.execute_batch("ALTER TABLE history DROP COLUMN request").unwrap();
    drop(before);
    let entries = History::open(&scratch.0).unwrap().last("", 9).unwrap().entries;
    assert_eq!((entries.len(), &entries[0].request), (1, &None));
    let mut store = open(&scratch.place());
    assert_eq!(store.take_learned().state.as_deref(), Some(&b"learned"[..]));
    store.requests().note(&id(1), || asked(1));
    assert!(store.flush());
    let entries = History::open(&scratch.0).unwrap().last("", 9).unwrap().entries;
    assert_eq!((entries.len(), &entries[0].request), (1, &Some(asked(1))));
    assert_eq!(scratch.aside(), 0);
}
