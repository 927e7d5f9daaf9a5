use super::*;
use std::fs;

const TWO: &str = "title = 'two'\nduration = '2 s'\n\
                   [[medium]]\nname = 'wide'\nfrequency = '300 MHz'\n\
                   [[node]]\nname = 'a'\nradios = ['wide']\nat = [50, 7]\n\
                   [[node]]\nname = 'b'\nradios = ['wide']\ntrack = 'tracks/b.geojson'\n";

/// A directory of a test's own, removed when it is over.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("longwire-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("tracks")).unwrap();
        fs::write(path.join("two.toml"), TWO).unwrap();
        let point = r#"{"type": "Feature", "properties": {},
            "geometry": {"type": "Point", "coordinates": [7.01, 50]}}"#;
        fs::write(path.join("tracks/b.geojson"), point).unwrap();
        Self(path)
    }

    fn store(&self) -> Store {
        Store::at(self.0.join("kept"))
    }

    fn file(&self) -> PathBuf {
        self.0.join("two.toml")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_scenario_is_kept_with_its_files_and_forgotten() {
    let scratch = Scratch::new("kept");
    let store = scratch.store();
    assert!(list_in(&store).unwrap().is_empty());
    let kept = copy_to(&store, &scratch.file(), "mine", false).unwrap();
    assert_eq!(find_in(Some(&store), "mine").unwrap(), kept);
    // It does not need what it was copied from.
    fs::remove_file(scratch.0.join("tracks/b.geojson")).unwrap();
    assert!(check_file(&scratch.file()).unwrap().is_err());
    let scenario = check_file(&kept).unwrap().unwrap();
    assert_eq!((scenario.title.as_str(), scenario.nodes.len()), ("two", 2));
    let again = copy_to(&store, &kept, "other", false).unwrap();
    let fingerprint =
        |path: &Path| check_file(path).unwrap().unwrap().resolve().unwrap().fingerprint();
    assert_eq!(fingerprint(&kept), fingerprint(&again));
    let names: Vec<String> = list_in(&store).unwrap().into_iter().map(|kept| kept.name).collect();
    assert_eq!(names, ["mine", "other"]);
    store.remove("mine").unwrap();
    assert_eq!(store.names().unwrap(), ["other"]);
    let error = find_in(Some(&store), "mine").unwrap_err().to_string();
    assert!(
        error.contains("unknown scenario 'mine'") && error.contains("kept are other"),
        "{error}"
    );
}

#[test]
fn what_is_kept_is_replaced_on_request_only() {
    let scratch = Scratch::new("replaced");
    let store = scratch.store();
    copy_to(&store, &scratch.file(), "mine", false).unwrap();
    fs::write(scratch.file(), TWO.replace("'two'", "'new'")).unwrap();
    let error = copy_to(&store, &scratch.file(), "mine", false).unwrap_err().to_string();
    assert!(error.contains("give --replace"), "{error}");
    let path = copy_to(&store, &scratch.file(), "mine", true).unwrap();
    assert_eq!(check_file(&path).unwrap().unwrap().title, "new");
    let left: Vec<_> = fs::read_dir(scratch.0.join("kept")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let scratch = Scratch::new("refused");
    let store = scratch.store();
    let keep = |name: &str, text: &str| {
        fs::write(scratch.file(), text).unwrap();
        copy_to(&store, &scratch.file(), name, false).unwrap_err().to_string()
    };
    assert!(keep("a/b", TWO).contains("a/b"));
    let error = keep("mine", &TWO.replace("'2 s'", "'2'"));
    assert!(
        error.contains("without problems") && error.contains("two.toml:2: duration"),
        "{error}"
    );
    let absolute = scratch.0.join("tracks/b.geojson");
    let error = keep("mine", &TWO.replace("tracks/b.geojson", &absolute.to_string_lossy()));
    assert!(error.contains("not below its own directory"), "{error}");
    assert!(store.names().unwrap().is_empty());
}

#[test]
fn the_place_is_the_environment_s() {
    let with = |pairs: &[(&str, &str)]| {
        store::place(|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())
        })
    };
    let path = |text: &str| Some(PathBuf::from(text));
    assert_eq!(with(&[("LONGWIRE_HOME", "/l"), ("HOME", "/h")]), path("/l/scenarios"));
    assert_eq!(with(&[("XDG_CONFIG_HOME", "/x")]), path("/x/longwire/scenarios"));
    assert_eq!(
        with(&[("LONGWIRE_HOME", "l"), ("HOME", "/h")]),
        path("/h/.config/longwire/scenarios")
    );
    assert_eq!(with(&[]), None);
}
