use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use record::decision::{Candidate, Decision, Direction, Link, Outcome, Parts, Split};
use rusqlite::Connection;

use super::file::FILE_NAME;
use super::*;

mod age;

mod requests;

/// A directory of its own for each test, gone at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("longwire-store-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn place(&self) -> StoreSettings {
        StoreSettings {
            directory: self.0.clone(),
            history_rows: 1000,
            history_bytes: 1 << 20,
            age: StoreSettings::AGE,
        }
    }

    fn file(&self) -> PathBuf {
        self.0.join(FILE_NAME)
    }

    /// Files set aside.
    fn aside(&self) -> usize {
        let files = fs::read_dir(&self.0).unwrap().flatten();
        let name = |file: fs::DirEntry| file.file_name().to_string_lossy().into_owned();
        files.map(name).filter(|name| name.starts_with("longwire.sqlite.aside-")).count()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn open(place: &StoreSettings) -> Store {
    Store::open(place, "learned").unwrap()
}

fn parts(bytes: u64) -> Parts {
    Parts { bytes, encode_s: 0.01, network_s: 0.5, decode_s: 0.002, wait_s: 0.0 }
}

fn id(number: u64) -> String {
    format!("{:016x}{number:016x}", 7)
}

fn chosen(number: u64) -> Fact {
    let candidate =
        |encoding: &str, bytes| Candidate { encoding: encoding.to_owned(), expected: parts(bytes) };
    let decision = Decision {
        service: format!(
            "http://{}.example",
            if number.is_multiple_of(2) { "even" } else { "odd" }
        ),
        peer: Some("ship".to_owned()),
        class: "00000000000000ff".to_owned(),
        content_type: Some("text/xml".to_owned()),
        body_bytes: 10_000,
        head_share: 0.25,
        objective: "time".to_owned(),
        expected: parts(2000),
        candidates: vec![candidate("identity", 10_000), candidate("zstd:3", 2000)],
        forbidden: Vec::new(),
        link: Link::default(),
        probe: None,
        base: None,
        edgeless: false,
        route: None,
    };
    Fact::Chosen {
        exchange: id(number),
        direction: Direction::Response,
        encoding: "zstd:3".to_owned(),
        reason: "expected to arrive soonest".to_owned(),
        decision: Some(Box::new(decision)),
    }
}

fn outcome(number: u64) -> Fact {
    let outcome = Outcome {
        encoding: "zstd:3".to_owned(),
        body_bytes: 10_000,
        expected: parts(2000),
        actual: parts(2500),
        split: Split::default(),
        revisions: Vec::new(),
    };
    Fact::Outcome { exchange: id(number), direction: Direction::Response, outcome }
}

#[test]
fn what_was_handed_in_is_there_again() {
    let scratch = Scratch::new("again");
    let mut store = open(&scratch.place());
    assert_eq!(store.take_learned(), Learned::default());
    (0..10).for_each(|number| store.observe(chosen(number)));
    store.observe(outcome(3));
    store.save_learned(b"first".to_vec());
    store.save_learned(b"second".to_vec());
    assert!(store.flush());

    // Beside the writer.
    let history = History::open(&scratch.0).unwrap();
    let entries = history.last("", 100).unwrap().entries;
    let ids: Vec<String> = entries.iter().map(|entry| entry.exchange.clone()).collect();
    assert_eq!(ids, (0..10).map(id).collect::<Vec<_>>());
    let Fact::Chosen { decision, .. } = chosen(3) else { unreachable!() };
    assert_eq!(entries[3].decision, decision.map(|decision| *decision));
    assert_eq!(entries[3].outcome.as_ref().map(|outcome| outcome.actual.bytes), Some(2500));
    assert_eq!(entries[4].outcome, None);
    assert_eq!(history.last("odd", 2).unwrap().entries.len(), 2);
    assert!(history.last("odd", 99).unwrap().entries.iter().all(|entry| entry.exchange != id(4)));
    assert_eq!(history.of_exchange(&id(4), 9).unwrap().entries.len(), 1);
    assert_eq!(history.of_exchange(&id(4)[..20], 99).unwrap().entries.len(), 10);
    // A name is no pattern.
    assert!(history.last("%", 9).unwrap().entries.is_empty());
    assert!(history.of_exchange("_", 9).unwrap().entries.is_empty());

    let refused = Store::open(&scratch.place(), "learned").unwrap_err().to_string();
    assert!(refused.contains("a --store of its own"), "{refused}");
    drop(store);
    let mut store = open(&scratch.place());
    let learned = store.take_learned();
    assert_eq!((learned.state.as_deref(), learned.since.len()), (Some(&b"second"[..]), 0));
    // What came after it was saved is there to be learned from, until it is saved again.
    [5, 4].into_iter().for_each(|number| store.observe(outcome(number)));
    drop(store);
    let mut store = open(&scratch.place());
    let learned = store.take_learned();
    let since: Vec<String> = learned.since.into_iter().map(|entry| entry.exchange).collect();
    assert_eq!((learned.state.as_deref(), since), (Some(&b"second"[..]), vec![id(4), id(5)]));
    store.save_learned(b"third".to_vec());
    drop(store);
    assert!(open(&scratch.place()).take_learned().since.is_empty());
    // Another policy has learned nothing.
    let mut other = Store::open(&scratch.place(), "nam").unwrap();
    assert_eq!(other.take_learned(), Learned::default());
    assert_eq!(scratch.aside(), 0);
}

#[test]
fn the_oldest_go_when_a_bound_is_reached() {
    for (rows, bytes) in [(100, 1 << 30), (1 << 30, 100_000)] {
        let scratch = Scratch::new(&format!("bound-{rows}"));
        let place = StoreSettings { history_rows: rows, history_bytes: bytes, ..scratch.place() };
        let mut store = open(&place);
        let mut most = 0;
        for number in 0..1000 {
            store.observe(chosen(number));
            if number % 50 == 0 {
                assert!(store.flush());
                let entries = History::open(&scratch.0).unwrap().last("", 2000).unwrap().entries;
                most = most.max(entries.len());
                assert_eq!(entries.last().unwrap().exchange, id(number));
            }
        }
        assert!(store.flush());
        let entries = History::open(&scratch.0).unwrap().last("", 2000).unwrap().entries;
        assert!(entries.len() as u64 <= rows && entries.len() > 80, "{}", entries.len());
        assert!(most < 250, "{most}");
        let size = fs::metadata(scratch.file()).unwrap().len();
        assert!(size < 500_000, "{size}");
        // Those that are left are the last.
        let first = 1000 - entries.len() as u64;
        assert!(entries.iter().map(|entry| entry.exchange.clone()).eq((first..1000).map(id)));
    }
}

#[test]
fn a_bad_file_is_set_aside() {
    type Spoil = fn(&Path);
    let ways: [(&str, Spoil); 5] = [
        ("text", |path| fs::write(path, "hello ".repeat(2000)).unwrap()),
        ("cut", |path| {
            let bytes = fs::read(path).unwrap();
            fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("damaged", |path| {
            let mut bytes = fs::read(path).unwrap();
            bytes[4096..12_288].fill(0x5a);
            fs::write(path, bytes).unwrap();
        }),
        ("future", |path| {
            let connection = Connection::open(path).unwrap();
            connection.pragma_update(None, "user_version", 99).unwrap();
        }),
        ("foreign", |path| {
            fs::remove_file(path).unwrap();
            Connection::open(path).unwrap().execute_batch("CREATE TABLE x (y)").unwrap();
        }),
    ];
    for (name, spoil) in ways {
        let scratch = Scratch::new(&format!("bad-{name}"));
        let mut store = open(&scratch.place());
        (0..100).for_each(|number| store.observe(chosen(number)));
        store.save_learned(vec![1; 10_000]);
        drop(store);
        spoil(&scratch.file());
        let spoiled = fs::read(scratch.file()).unwrap();
        for turn in 0..2 {
            let mut store = open(&scratch.place());
            let expected = (turn == 1).then(|| b"new".to_vec());
            assert_eq!((store.take_learned().state, scratch.aside()), (expected, 1), "{name}");
            store.save_learned(b"new".to_vec());
        }
        let aside = scratch.0.join(format!("{FILE_NAME}.aside-1"));
        assert!(fs::read(aside).unwrap() == spoiled, "{name}: kept as it was");
    }
}

/// SQLite takes such a file for one that is just begun.
#[test]
fn a_file_that_was_emptied_is_set_aside() {
    for (beside, left, aside) in [
        // As a process leaves it that is killed before anything was in it.
        ("", 0, 0),
        ("", 1, 1),
        ("", 2, 1),
        ("", 90, 1),
        (secret::FILE_NAME, 0, 1),
        (secret::FILE_NAME, 1, 1),
        ("longwire.sqlite-wal", 0, 1),
    ] {
        let scratch = Scratch::new(&format!("emptied-{beside}-{left}"));
        let mut store = open(&scratch.place());
        store.save_learned(vec![1; 100]);
        drop(store);
        if !beside.is_empty() {
            fs::write(scratch.0.join(beside), [1; 32]).unwrap();
        }
        let bytes = fs::read(scratch.file()).unwrap();
        fs::write(scratch.file(), &bytes[..left]).unwrap();
        for turn in 0..2 {
            let mut store = open(&scratch.place());
            let expected = (turn == 1).then(|| b"new".to_vec());
            let found = (store.take_learned().state, scratch.aside());
            assert_eq!(found, (expected, aside), "{left} beside '{beside}'");
            store.save_learned(b"new".to_vec());
        }
    }
}

/// Puts other bytes, as many, where these are last in the file, as a disk may.
fn spoil(scratch: &Scratch, from: &[u8], to: &[u8]) {
    let mut bytes = fs::read(scratch.file()).unwrap();
    let at = bytes.windows(from.len()).rposition(|window| window == from).unwrap();
    bytes[at..at + to.len()].copy_from_slice(to);
    fs::write(scratch.file(), bytes).unwrap();
}

#[test]
fn a_row_that_is_damaged_costs_itself_alone() {
    // In JSON: no UTF-8, no JSON, no decision; and in a column of its own.
    let ways = [
        (&b"\"class\""[..], &b"\"\xfflass\""[..]),
        (b"\"class\":", b"\"class\"?"),
        (b"\"class\"", b"\"clasp\""),
        (b"\"split\"", b"\"s\xfelit\""),
        (b"responsehttp", b"resp\xffnsehttp"),
    ];
    for (way, (from, to)) in ways.into_iter().enumerate() {
        let shown = String::from_utf8_lossy(to);
        let scratch = Scratch::new(&format!("row-{way}"));
        let mut store = open(&scratch.place());
        for number in 0..20 {
            store.observe(chosen(number));
            store.observe(outcome(number));
        }
        drop(store);
        spoil(&scratch, from, to);
        let read = || {
            let history = History::open(&scratch.0).unwrap();
            let Found { entries, unreadable } = history.last("", 1000).unwrap();
            let all = (entries.len(), unreadable);
            // So many are found as are asked for.
            let last = history.last("", 5).unwrap().entries;
            let end = last.iter().eq(&entries[entries.len().saturating_sub(5)..]);
            (all, end)
        };
        assert_eq!(read(), ((19, 1), true), "{shown}");
        let mut store = open(&scratch.place());
        assert_eq!(store.take_learned().since.len(), 19, "{shown}");
        store.observe(chosen(99));
        store.save_learned(b"learned".to_vec());
        drop(store);
        assert_eq!((read(), scratch.aside()), (((20, 1), true), 0), "{shown}");
        assert!(open(&scratch.place()).take_learned().since.is_empty());
    }
}

#[test]
fn a_schema_that_is_damaged_is_one_line_and_set_aside() {
    for (from, to) in [
        (&b"TEXT NOT NULL,\n    class"[..], &b"TEXT NOT NULL\"\n    class"[..]),
        (b"made_unix_s REAL\n) STRICT", b"made_unix_s REAL\n\" STRICT"),
        // Sound SQL all the same.
        (b"unix_s REAL NOT NULL,\n    exchange", b"uniy_s REAL NOT NULL,\n    exchange"),
    ] {
        let shown = String::from_utf8_lossy(to);
        let scratch = Scratch::new(&format!("schema-{}", to.len()));
        let mut store = open(&scratch.place());
        store.observe(chosen(1));
        drop(store);
        spoil(&scratch, from, to);
        let error = History::open(&scratch.0).unwrap().last("", 9).unwrap_err().to_string();
        let path = scratch.file().display().to_string();
        assert!(error.contains(&path) && error.contains("sets it aside"), "{shown}: {error}");
        assert!(error.lines().count() == 1 && !error.contains("SELECT"), "{shown}: {error}");
        drop(open(&scratch.place()));
        assert_eq!(scratch.aside(), 1, "{shown}");
    }
}

#[test]
fn files_set_aside_are_few() {
    let scratch = Scratch::new("few");
    for _ in 0..10 {
        drop(open(&scratch.place()));
        fs::write(scratch.file(), "no database, but long enough to be looked at").unwrap();
    }
    assert_eq!(scratch.aside(), 3);
}

#[test]
fn a_bit_that_the_disk_lost_is_noticed() {
    let scratch = Scratch::new("bit");
    let mut store = open(&scratch.place());
    store.save_learned(vec![7; 1000]);
    drop(store);
    let mut bytes = fs::read(scratch.file()).unwrap();
    let at = bytes.windows(100).position(|window| window == [7; 100]).unwrap();
    bytes[at + 500] ^= 1;
    fs::write(scratch.file(), bytes).unwrap();
    let mut store = open(&scratch.place());
    assert_eq!((store.take_learned().state, scratch.aside()), (None, 0));
}

#[test]
fn a_file_that_is_damaged_at_work_is_replaced() {
    let scratch = Scratch::new("work");
    let mut store = open(&scratch.place());
    (0..200).for_each(|number| store.observe(chosen(number)));
    assert!(store.flush());
    // Another one shrinks the log into the file, then the file is overwritten.
    let other = Connection::open(scratch.file()).unwrap();
    let _ = other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    drop(other);
    let length = fs::metadata(scratch.file()).unwrap().len();
    fs::write(scratch.file(), vec![0x5a; usize::try_from(length).unwrap()]).unwrap();
    for number in 200..1000 {
        store.observe(chosen(number));
        assert!(store.flush());
    }
    let entries = History::open(&scratch.0).unwrap().last("", 2000).unwrap().entries;
    assert!(entries.last().is_some_and(|entry| entry.exchange == id(999)));
    assert_eq!(scratch.aside(), 1);
}

#[test]
fn what_is_no_store_is_not_read() {
    let scratch = Scratch::new("none");
    let refused = |expected: &str| {
        let error = History::open(&scratch.0).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Caller(_)) && text.contains(expected), "{text}");
        assert!(!text.contains('\n'), "{text}");
    };
    refused("there is no");
    fs::write(&scratch.0, "a file where a directory is wanted").unwrap();
    refused("run as the user of the edge or gateway");
    let error = Store::open(&scratch.place(), "learned").unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Caller(_)) && text.contains("give --store"), "{text}");
    fs::remove_file(&scratch.0).unwrap();
    fs::create_dir_all(&scratch.0).unwrap();
    fs::write(scratch.file(), "hello ".repeat(2000)).unwrap();
    refused("is no store of longwire");
    fs::remove_file(scratch.file()).unwrap();
    drop(open(&scratch.place()));
    let connection = Connection::open(scratch.file()).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    refused("has schema 99");
}

fn name(number: u64) -> [u8; 32] {
    let mut name = [0x17; 32];
    name[..8].copy_from_slice(&number.to_le_bytes());
    name
}

/// Names of the dictionaries that a store takes up, and how many it sets aside.
fn dictionaries(scratch: &Scratch) -> (Vec<[u8; 32]>, usize) {
    let found = open(&scratch.place()).take_learned();
    (found.dictionaries.into_iter().map(|one| one.name).collect(), found.damaged)
}

#[test]
fn dictionaries_are_there_again_and_of_too_many_the_longest_unused_go() {
    let scratch = Scratch::new("dictionaries");
    let most = u64::try_from(dictionaries::MAX_DICTIONARIES).unwrap();
    let mut store = open(&scratch.place());
    for number in 0..most {
        store.keep_dictionary(name(number), vec![7; 100].into());
        assert!(store.flush());
    }
    store.keep_dictionary(name(3), b"another version".to_vec().into());
    assert!(store.flush());
    store.touch_dictionary(name(0));
    store.touch_dictionary(name(most + 9));
    assert!(store.flush());
    store.keep_dictionary(name(most), vec![8; 100].into());
    store.keep_dictionary(name(most + 1), vec![8; 1 << 20].into());
    drop(store);
    let found = open(&scratch.place()).take_learned().dictionaries;
    let names: Vec<_> = found.iter().map(|one| one.name).collect();
    let expected = [2].into_iter().chain(4..most).chain([3, 0, most]);
    assert_eq!(names, expected.map(name).collect::<Vec<_>>());
    assert_eq!(found[found.len() - 3].bytes, b"another version");
    let mut store = open(&scratch.place());
    store.forget_dictionary(name(most));
    store.forget_dictionary(name(77_777));
    drop(store);
    let (names, _) = dictionaries(&scratch);
    assert_eq!((names.len(), names.last()), (found.len() - 1, Some(&name(0))));
}

/// What is used while the clock is behind is no older for that.
#[test]
fn a_clock_that_is_set_back_drops_nothing_fresh() {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(dictionaries::SCHEMA).unwrap();
    let most = u64::try_from(dictionaries::MAX_DICTIONARIES).unwrap();
    for number in 0..most {
        dictionaries::put(&connection, 2e9, &name(number), b"before").unwrap();
    }
    dictionaries::touch(&connection, 1e9, &name(0)).unwrap();
    dictionaries::put(&connection, 1e9, &name(most), b"fresh").unwrap();
    dictionaries::put(&connection, 1e9 + 1.0, &name(most + 1), b"fresh").unwrap();
    let (found, _) = dictionaries::load(&connection).unwrap();
    let names: Vec<_> = found.iter().map(|one| one.name).collect();
    let expected = (3..most).chain([0, most, most + 1]);
    assert_eq!(names, expected.map(name).collect::<Vec<_>>());
}

#[test]
fn of_too_many_states_the_last_saved_stay_whatever_the_clock_says() {
    let scratch = Scratch::new("states-clock");
    let file = File::open(&scratch.place()).unwrap().unwrap();
    for number in 0..100 {
        file.put_state(&number.to_string(), 2e9 - f64::from(number), b"state").unwrap();
    }
    let connection = Connection::open(scratch.file()).unwrap();
    let last = "SELECT count(*) FROM state WHERE name = '99'";
    assert_eq!(connection.query_row(last, [], |row| row.get::<_, i64>(0)), Ok(1));
}

#[test]
fn a_damaged_or_unknown_dictionary_is_set_aside_alone() {
    let scratch = Scratch::new("damaged-dictionary");
    let mut store = open(&scratch.place());
    for number in 0..3_u8 {
        store.keep_dictionary(name(number.into()), vec![0xa0 + number; 1000].into());
        assert!(store.flush());
    }
    drop(store);
    let mut bytes = fs::read(scratch.file()).unwrap();
    let at = bytes.windows(100).position(|window| window == [0xa1; 100]).unwrap();
    bytes[at + 500] ^= 1;
    fs::write(scratch.file(), bytes).unwrap();
    assert_eq!(dictionaries(&scratch), (vec![name(0), name(2)], 1));
    assert_eq!(dictionaries(&scratch), (vec![name(0), name(2)], 0), "it is told once");
    let mut store = open(&scratch.place());
    store.set_dictionary_aside(name(0), "it is of another version");
    drop(store);
    assert_eq!(dictionaries(&scratch), (vec![name(2)], 0));
    let connection = Connection::open(scratch.file()).unwrap();
    let aside = "SELECT count(*) FROM dictionary WHERE aside IS NOT NULL";
    assert_eq!(connection.query_row(aside, [], |row| row.get::<_, i64>(0)), Ok(2));
    drop(connection);
    // A new one takes its place.
    let mut store = open(&scratch.place());
    store.keep_dictionary(name(0), vec![1; 10].into());
    drop(store);
    assert_eq!(dictionaries(&scratch), (vec![name(2), name(0)], 0));
    assert_eq!(scratch.aside(), 0);
}

#[test]
fn a_store_of_before_dictionaries_goes_on() {
    let scratch = Scratch::new("before");
    let mut store = open(&scratch.place());
    store.save_learned(b"learned".to_vec());
    drop(store);
    let connection = Connection::open(scratch.file()).unwrap();
    connection.execute_batch("DROP TABLE dictionary").unwrap();
    drop(connection);
    let mut store = open(&scratch.place());
    assert_eq!(store.take_learned().state.as_deref(), Some(&b"learned"[..]));
    store.keep_dictionary(name(1), vec![1; 10].into());
    drop(store);
    assert_eq!(dictionaries(&scratch), (vec![name(1)], 0));
    assert_eq!(scratch.aside(), 0);
}

#[test]
fn only_its_owner_can_read_what_is_kept() {
    use std::os::unix::fs::PermissionsExt as _;
    let scratch = Scratch::new("private");
    // A directory that somebody made beforehand, and a file as longwire made it once.
    fs::create_dir_all(&scratch.0).unwrap();
    let everybody = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    everybody(&scratch.0, 0o755).unwrap();
    for turn in 0..2 {
        let store = open(&scratch.place());
        store.secret().unwrap();
        assert!(store.flush());
        let mut names = Vec::new();
        for file in fs::read_dir(&scratch.0).unwrap().flatten() {
            let mode = file.metadata().unwrap().permissions().mode() & 0o777;
            names.push(file.file_name().into_string().unwrap());
            assert_eq!(mode, 0o600, "{names:?}, turn {turn}");
        }
        names.sort();
        let ends = ["longwire.secret", FILE_NAME, "longwire.sqlite-shm", "longwire.sqlite-wal"];
        assert_eq!(names, ends);
        drop(store);
        everybody(&scratch.file(), 0o644).unwrap();
        everybody(&scratch.0.join(secret::FILE_NAME), 0o644).unwrap();
    }
}

/// Nothing that another user may have laid there is followed, read or changed.
#[test]
fn a_store_that_others_may_change_is_refused() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let refused = |scratch: &Scratch| {
        let opened = Store::open(&scratch.place(), "learned").and_then(|store| store.secret());
        let error = opened.map(drop).unwrap_err();
        assert!(matches!(error, Error::Caller(_)), "{error}");
        error.to_string()
    };
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    let scratch = Scratch::new("strict");
    for directory in [0o777, 0o1777] {
        fs::create_dir_all(&scratch.0).unwrap();
        mode(&scratch.0, directory).unwrap();
        assert!(refused(&scratch).contains("may be written by others"), "{directory:o}");
        assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 0);
    }
    mode(&scratch.0, 0o700).unwrap();
    let victim = Scratch::new("strict-victim");
    fs::create_dir_all(&victim.0).unwrap();
    let (there, nowhere) = (victim.0.join("there"), victim.0.join("nowhere"));
    fs::write(&there, [b'x'; 32]).unwrap();
    mode(&there, 0o644).unwrap();
    for name in [FILE_NAME, "longwire.sqlite-wal", "longwire.sqlite-shm", "longwire.secret"] {
        for target in [&there, &nowhere] {
            fs::create_dir_all(&scratch.0).unwrap();
            // What was laid there before SQLite's own file is, and what comes to it later.
            if name != FILE_NAME {
                drop(open(&scratch.place()));
                let _ = fs::remove_file(scratch.0.join(name));
            }
            symlink(target, scratch.0.join(name)).unwrap();
            assert!(refused(&scratch).contains("symbolic link"), "{name}");
            fs::remove_dir_all(&scratch.0).unwrap();
        }
    }
    assert_eq!(fs::read(&there).unwrap(), [b'x'; 32]);
    assert_eq!(there.metadata().unwrap().permissions().mode() & 0o777, 0o644);
    assert!(!nowhere.exists());
    // The operator's own link to the directory is no matter.
    fs::create_dir_all(&scratch.0).unwrap();
    let link = Scratch::new("strict-link");
    symlink(&scratch.0, &link.0).unwrap();
    open(&link.place()).secret().unwrap();
    assert!(History::open(&link.0).is_ok());
    fs::remove_file(&link.0).unwrap();
    // Who may write the secret knows it.
    mode(&scratch.0.join(secret::FILE_NAME), 0o666).unwrap();
    assert!(refused(&scratch).contains("may be written by others"));
}

#[test]
fn a_secret_stays_the_same_until_it_is_damaged() {
    let scratch = Scratch::new("secret");
    let path = scratch.0.join(secret::FILE_NAME);
    let mut seen = Vec::new();
    for _ in 0..2 {
        open(&scratch.place()).secret().unwrap();
        seen.push(fs::read(&path).unwrap());
    }
    assert!(seen[0] == seen[1] && seen[0].len() == 32);
    fs::write(&path, &seen[0][..7]).unwrap();
    open(&scratch.place()).secret().unwrap();
    let after = fs::read(&path).unwrap();
    assert!(after != seen[0] && after.len() == 32);
    let aside = scratch.0.join(format!("{}.aside-1", secret::FILE_NAME));
    assert_eq!(fs::read(aside).unwrap(), &seen[0][..7]);
    // Another directory's is another.
    let other = Scratch::new("secret-other");
    open(&other.place()).secret().unwrap();
    assert_ne!(fs::read(other.0.join(secret::FILE_NAME)).unwrap(), after);
}

/// Tells the process that [`killed_at_any_moment_it_loses_nothing`] starts where to write.
const CHILD: &str = "LONGWIRE_STORE_CHILD";
/// Kills: those of `make test`, or as many as this says.
const KILLS: &str = "LONGWIRE_STORE_KILLS";

/// Dictionaries of the child's.
const CONTEXTS: u64 = 5;

/// No test of its own: writes without end, and tells on stdout what is committed.
#[test]
fn child_that_writes() {
    let Some(directory) = std::env::var_os(CHILD) else { return };
    let place = StoreSettings {
        directory: directory.into(),
        history_rows: 500,
        history_bytes: 1 << 20,
        age: StoreSettings::AGE,
    };
    let mut store = open(&place);
    let first = learned(&store.take_learned());
    for number in first + 1.. {
        // A dictionary is as long as one can be, and takes the place of one before.
        store.keep_dictionary(name(number % CONTEXTS), number.to_le_bytes().repeat(4500).into());
        store.observe(chosen(number));
        store.observe(outcome(number));
        if number.is_multiple_of(7) {
            store.save_learned(number.to_le_bytes().repeat(2000));
        }
        if number.is_multiple_of(3) && store.flush() {
            println!("\nacknowledged {number}");
            std::io::stdout().flush().unwrap();
        }
    }
}

/// How far a store's learned state reaches with the outcomes since; the child's state is a number
/// that says so.
fn learned(found: &Learned) -> u64 {
    let state = found.state.as_deref().unwrap_or_default();
    let saved = state.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    assert_eq!(state, saved.to_le_bytes().repeat(if saved > 0 { 2000 } else { 0 }));
    let since: Vec<&str> = found.since.iter().map(|entry| entry.exchange.as_str()).collect();
    let reaches = saved + since.len() as u64;
    assert!(since.iter().eq(&(saved + 1..=reaches).map(id).collect::<Vec<_>>()), "{saved}");
    reaches
}

/// The number that the child's last dictionary was made with: of the others none is missing.
fn newest_dictionary(found: &Learned) -> u64 {
    assert_eq!(found.damaged, 0);
    let made = found.dictionaries.iter().map(|one| {
        let number = u64::from_le_bytes(*one.bytes.first_chunk().unwrap());
        assert!(one.bytes == number.to_le_bytes().repeat(4500), "{number}");
        assert_eq!(one.name, name(number % CONTEXTS));
        number
    });
    let mut made: Vec<u64> = made.collect();
    made.sort_unstable();
    let newest = made.last().copied().unwrap_or(0);
    let first = newest.saturating_sub(CONTEXTS) + 1;
    assert!(made.iter().copied().eq(first..=newest) || newest == 0, "{made:?}");
    newest
}

#[test]
fn killed_at_any_moment_it_loses_nothing() {
    let kills = std::env::var(KILLS).map_or(20, |kills| kills.parse::<u32>().unwrap());
    let scratch = Scratch::new("kill");
    let mut chance = 0x9e37_79b9_7f4a_7c15_u64;
    let mut acknowledged = 0;
    for kill in 0..kills {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::tests::child_that_writes", "--nocapture"])
            .env(CHILD, &scratch.0)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // The moment is counted from a random acknowledgement; a few come before any.
        let (await_lines, pause) = (chance >> 60, Duration::from_micros((chance >> 40) % 20_000));
        let number = |line: std::io::Result<String>| {
            line.ok()?.strip_prefix("acknowledged ")?.parse::<u64>().ok()
        };
        let mut lines = lines.filter_map(number);
        let reported = lines.by_ref().take(usize::try_from(await_lines).unwrap()).last();
        // sleep: the moment of the kill is what is tested.
        std::thread::sleep(pause);
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged = lines.last().or(reported).unwrap_or(acknowledged).max(acknowledged);

        let found = open(&scratch.place()).take_learned();
        let number = learned(&found);
        assert!(number >= acknowledged, "kill {kill}: {number} of {acknowledged}");
        let newest = newest_dictionary(&found);
        assert!(newest >= acknowledged, "kill {kill}: dictionary {newest} of {acknowledged}");
        let entries = History::open(&scratch.0).unwrap().last("", 2000).unwrap().entries;
        let ids: Vec<&str> = entries.iter().map(|entry| entry.exchange.as_str()).collect();
        let newest = ids.last().map_or(0, |id| u64::from_str_radix(&id[16..], 16).unwrap());
        assert!(newest >= acknowledged, "kill {kill}: {newest} of {acknowledged}");
        let expected: Vec<String> = (newest + 1 - ids.len() as u64..=newest).map(id).collect();
        assert!(ids.iter().eq(&expected), "kill {kill}: the history has gaps");
        let reported = entries.iter().filter(|entry| entry.exchange <= id(acknowledged));
        assert!(reported.clone().all(|entry| entry.outcome.is_some()), "kill {kill}");
        assert_eq!(scratch.aside(), 0, "kill {kill}");
    }
    println!("{kills} kills, {acknowledged} decisions and dictionaries acknowledged, none lost");
}

/// Whoever takes over from a process waits until that one has written what it learned.
#[tokio::test]
async fn a_side_waits_for_the_store_of_one_that_ends_and_not_for_ever() {
    let scratch = Scratch::new("handed-over");
    let place = scratch.place();
    let mut before = open(&place);
    let next = {
        let place = place.clone();
        tokio::spawn(async move { Store::of_side(Some(&place), "learned").await })
    };
    // The next one looks, and finds it taken.
    tokio::task::yield_now().await;
    assert!(!next.is_finished());
    before.save_learned(b"learned".to_vec());
    tokio::task::spawn_blocking(move || drop(before)).await.unwrap();
    let mut next = next.await.unwrap().unwrap().unwrap();
    assert_eq!(next.take_learned().state.as_deref(), Some(&b"learned"[..]));
    let began = Instant::now();
    let refused = Store::of_side(Some(&place), "learned").await.unwrap_err();
    assert!(refused.to_string().contains("a --store of its own"), "{refused}");
    assert!((HOLDER_PATIENCE..2 * HOLDER_PATIENCE).contains(&began.elapsed()));
}
