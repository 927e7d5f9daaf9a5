use std::sync::Arc;

use super::super::core::{Core, Lease, Limits, Publication};
use super::super::model::{Kind, Service, Text};
use super::*;

/// A folder that goes with the test.
pub(crate) struct Folder(pub(crate) std::path::PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("longwire-registry-{name}-{}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const NOW: Duration = Duration::from_secs(1000);

#[tokio::test]
async fn what_was_answered_is_there_after_the_process() {
    let folder = Folder::new("store");
    let (mut store, entities) = Store::open(&folder.0).unwrap();
    assert_eq!(entities, []);
    let mut core = Core::new(Limits::default(), entities);
    let mut last = 0;
    let mut chance = || {
        last += 1;
        [last; 16]
    };
    let owner: Arc<str> = "alice".into();
    let mut publication = Publication::new(&mut core, NOW, &owner, &mut chance);
    let business = publication.home().unwrap();
    let service = Service { business, names: vec![Text::plain("s")], ..Service::default() };
    let lease = Lease::For(Duration::from_secs(60));
    let keys = [(); 2].map(|()| publication.save_service(None, service.clone(), lease).unwrap());
    let changes = publication.finish();
    assert_eq!(changes.len(), 3);
    store.write(changes).await.unwrap();
    let mut publication = Publication::new(&mut core, NOW, &owner, &mut chance);
    publication.delete(Kind::Service, &keys[0]).unwrap();
    store.write(publication.finish()).await.unwrap();
    store.finish();
    drop(store);
    let (_store, entities) = Store::open(&folder.0).unwrap();
    let again = Core::new(Limits::default(), entities);
    for key in &keys {
        assert_eq!(again.get(NOW, key), core.get(NOW, key));
    }
    assert_eq!((again.count(Kind::Service), again.count(Kind::Business)), (1, 1));
    assert_eq!(again.next_end(), Some(Duration::from_secs(1060)));
}

#[test]
fn what_is_no_store_of_ours_is_refused() {
    let folder = Folder::new("bad");
    fs::create_dir_all(&folder.0).unwrap();
    fs::write(folder.0.join(FILE), b"this is no database, though it is long enough for one......")
        .unwrap();
    let Err(Error::Caller(line)) = Store::open(&folder.0) else { panic!("it was opened") };
    assert!(line.contains("cannot open the store"), "{line}");
    fs::remove_file(folder.0.join(FILE)).unwrap();
    let connection = Connection::open(folder.0.join(FILE)).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let Err(Error::Caller(line)) = Store::open(&folder.0) else { panic!("it was opened") };
    assert!(line.contains("version 99"), "{line}");
}

#[test]
fn a_damaged_entity_is_named() {
    let folder = Folder::new("damaged");
    drop(Store::open(&folder.0).unwrap());
    let connection = Connection::open(folder.0.join(FILE)).unwrap();
    let sql =
        "INSERT INTO entity VALUES ('uddi:x', 2, 'a', 0, 0, 0, NULL, NULL, CAST('no xml' AS BLOB))";
    connection.execute(sql, []).unwrap();
    drop(connection);
    let Err(Error::Caller(line)) = Store::open(&folder.0) else { panic!("it was opened") };
    assert!(line.contains("entity uddi:x"), "{line}");
}
