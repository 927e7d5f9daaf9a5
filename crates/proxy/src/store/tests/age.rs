//! What is made of messages is kept for a while only.

use super::*;

#[test]
fn what_is_made_of_messages_goes_when_it_is_too_old() {
    let scratch = Scratch::new("age");
    let day = Duration::from_secs(24 * 60 * 60);
    let place = StoreSettings { age: 90 * day, ..scratch.place() };
    let mut store = open(&place);
    (0..6).for_each(|number| store.observe(chosen(number)));
    (0..4).for_each(|number| store.keep_dictionary(name(number), b"of messages".to_vec().into()));
    store.save_learned(b"numbers".to_vec());
    drop(store);
    // An age of its own for each; the clock of the rows is all that tells it.
    let connection = Connection::open(scratch.file()).unwrap();
    let today = unix_s();
    let ago = |days: u32| today - (day * days).as_secs_f64();
    let make = |sql: &str| connection.execute(sql, [ago(91), ago(89)]).unwrap();
    make("UPDATE history SET unix_s = iif(id <= 4, ?1, ?2)");
    make("UPDATE dictionary SET made_unix_s = iif(rowid <= 2, ?1, ?2)");
    // Of a version before: only its last use is known. And one that is still used is old too.
    connection
        .execute(
            "UPDATE dictionary SET made_unix_s = NULL, used_unix_s = ? WHERE rowid = 3",
            [ago(91)],
        )
        .unwrap();
    drop(connection);
    let aside = scratch.0.join("longwire.sqlite.aside-1");
    fs::write(&aside, "of messages").unwrap();
    let old = fs::File::options().write(true).open(&aside).unwrap();
    old.set_modified(SystemTime::now() - 91 * day).unwrap();
    fs::write(scratch.0.join("longwire.sqlite.aside-2"), "of messages").unwrap();

    let mut store = open(&place);
    let learned = store.take_learned();
    assert_eq!(learned.state.as_deref(), Some(&b"numbers"[..]), "it is of no message");
    assert_eq!(learned.dictionaries.len(), 1);
    assert_eq!(scratch.aside(), 1);
    drop(store);
    let connection = Connection::open(scratch.file()).unwrap();
    let count = |table: &str| -> i64 {
        let select = format!("SELECT count(*) FROM {table}");
        connection.query_row(&select, [], |row| row.get(0)).unwrap()
    };
    assert_eq!((count("history"), count("dictionary")), (2, 1));
}

#[test]
fn a_process_that_runs_on_drops_what_has_become_too_old() {
    let scratch = Scratch::new("age-daily");
    let place = StoreSettings { age: Duration::from_secs(1000), ..scratch.place() };
    let mut store = open(&place);
    store.observe(chosen(1));
    store.keep_dictionary(name(1), b"of messages".to_vec().into());
    drop(store);
    let mut writer = Writer::new(File::open(&place).unwrap().unwrap());
    writer.drop_old(unix_s() + 900.0);
    assert_eq!(writer.file().dictionaries().0.len(), 1);
    writer.drop_old(unix_s() + 1100.0);
    assert_eq!(writer.file().dictionaries().0.len(), 0);
    let bytes = fs::read(scratch.file()).unwrap();
    let text = b"of messages";
    assert!(!bytes.windows(text.len()).any(|part| part == text), "it is overwritten");
}

#[test]
fn what_is_put_again_is_as_old_as_ever_and_a_table_of_before_goes_on() {
    let connection = Connection::open_in_memory().unwrap();
    let before = dictionaries::SCHEMA.replace("aside TEXT,", "aside TEXT --");
    let before = before.replace("made_unix_s REAL", "");
    connection.execute_batch(&before).unwrap();
    dictionaries::begin(&connection).unwrap();
    dictionaries::begin(&connection).unwrap();
    dictionaries::put(&connection, 100.0, &name(1), b"x").unwrap();
    dictionaries::put(&connection, 200.0, &name(1), b"y").unwrap();
    dictionaries::touch(&connection, 300.0, &name(1)).unwrap();
    assert_eq!(dictionaries::drop_older(&connection, 100.0).unwrap(), 0);
    assert_eq!(dictionaries::drop_older(&connection, 101.0).unwrap(), 1);
}
