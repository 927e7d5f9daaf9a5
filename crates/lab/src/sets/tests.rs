use super::store::{decode, place};
use super::*;
use std::ffi::OsString;
use std::fs;

/// A directory of its own, removed in the end.
struct Scratch {
    store: Store,
    path: PathBuf,
}

impl Scratch {
    fn new(test: &str) -> Self {
        let name = format!("longwire-test-{}-sets-{test}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // From an earlier run with the same process id.
        let _ = fs::remove_dir_all(&path);
        Self { store: Store::at(path.join("links")), path }
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path.join("links")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn link(settings: &[&str]) -> LinkConfig {
    let mut config = LinkConfig::preset("wifi1").unwrap();
    config.apply(settings, |_| Err(String::new())).unwrap();
    config
}

fn refusal<T>(result: Result<T>) -> String {
    let error = result.err().unwrap();
    assert!(matches!(error, Error::Caller(_)), "{error:?}");
    let message = error.to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

#[test]
fn what_is_saved_is_listed_loaded_and_forgotten() {
    let scratch = Scratch::new("whole");
    let store = &scratch.store;
    assert!(list_in(store).unwrap().is_empty(), "no directory is no fault");
    let field = link(&["ba.loss=5 %", "outages=1 s..2 s", "ab.burst_loss=p=1 %, r=30 %"]);
    let path = save_to(store, "field-1", &field, false).unwrap();
    assert_eq!(path, store.file("field-1"));
    assert_eq!(scratch.files(), ["field-1.toml"], "nothing is left aside");
    assert_eq!(load_from(Some(store), "field-1").unwrap(), field);
    let listed = list_in(store).unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].name.as_str(), listed[0].config.as_ref().unwrap()), ("field-1", &field));
    forget_in(store, "field-1").unwrap();
    assert!(scratch.files().is_empty());
    assert!(refusal(load_from(Some(store), "field-1")).contains("unknown link 'field-1'"));
}

#[test]
fn nothing_saved_is_replaced_unless_asked_for() {
    let scratch = Scratch::new("replace");
    let store = &scratch.store;
    let (first, second) = (link(&["loss=2 %"]), link(&["loss=3 %"]));
    save_to(store, "x", &first, false).unwrap();
    assert!(refusal(save_to(store, "x", &second, false)).contains("--replace"));
    assert_eq!(load_from(Some(store), "x").unwrap(), first);
    save_to(store, "x", &second, true).unwrap();
    assert_eq!(load_from(Some(store), "x").unwrap(), second);
    assert_eq!(scratch.files(), ["x.toml"]);
}

#[test]
fn names_that_are_taken_reserved_or_paths_are_refused() {
    let scratch = Scratch::new("names");
    let store = &scratch.store;
    for (name, expected) in [
        ("satcom", "is a preset"),
        ("SatCom", "is a preset"),
        ("index", "reserved"),
        ("Index", "reserved"),
        ("../x", "1 to 32"),
        ("a/b", "1 to 32"),
        (".x", "1 to 32"),
        ("", "1 to 32"),
        ("x\0y", "1 to 32"),
    ] {
        let message = refusal(save_to(store, name, &link(&[]), true));
        assert!(message.contains(expected), "{name}: {message}");
    }
    assert!(!scratch.path.exists(), "a refusal writes nothing");
    assert!(refusal(load_from(Some(store), "../../etc/passwd")).contains("unknown link"));
    assert!(refusal(forget_in(store, "../x")).contains("1 to 32"));
    assert!(refusal(forget_in(store, "satcom")).contains("preset"));
}

#[test]
fn the_nearest_of_presets_and_saved_links_is_named() {
    let scratch = Scratch::new("nearest");
    let store = &scratch.store;
    save_to(store, "ridge", &link(&[]), false).unwrap();
    let message = refusal(load_from(Some(store), "rigde"));
    assert!(message.contains("did you mean 'ridge'?"), "{message}");
    assert!(message.contains("presets satcom, los") && message.contains("saved links ridge"));
    assert!(refusal(load_from(None, "stacom")).contains("did you mean 'satcom'?"));
    assert!(refusal(forget_in(store, "rigde")).contains("did you mean 'ridge'?"));
    assert!(load("satcom").is_ok(), "presets need no directory");
}

#[test]
fn contradicting_settings_are_not_saved() {
    let scratch = Scratch::new("conflict");
    let mut config = link(&[]);
    config.ab.jitter = 2 * config.ab.delay;
    let message = refusal(save_to(&scratch.store, "x", &config, false));
    assert!(message.contains("exceeds delay"), "{message}");
}

#[test]
fn broken_files_are_set_aside_in_listings_and_refused_when_loaded() {
    let scratch = Scratch::new("broken");
    let store = &scratch.store;
    save_to(store, "good", &link(&[]), false).unwrap();
    let put = |name: &str, content: &[u8]| fs::write(store.file(name), content).unwrap();
    put("cut", b"version = 1\n[settings]\nloss = \"5");
    put("wifi1", b"version = 1\n[settings]\n");
    put("-odd", b"x");
    fs::write(scratch.path.join("links/notes.txt"), "x").unwrap();
    let listed = list_in(store).unwrap();
    let broken: Vec<&str> =
        listed.iter().filter(|one| one.config.is_err()).map(|one| one.name.as_str()).collect();
    assert_eq!((listed.len(), broken), (3, vec!["cut", "wifi1"]));
    let message = refusal(load_from(Some(store), "cut"));
    assert!(message.contains("cannot be used") && message.contains("lab forget cut"), "{message}");
    forget_in(store, "cut").unwrap();
    forget_in(store, "wifi1").unwrap();
    assert_eq!(list_in(store).unwrap().len(), 1);
}

#[test]
fn only_so_many_are_saved() {
    let scratch = Scratch::new("many");
    let store = &scratch.store;
    save_to(store, "x0", &link(&[]), false).unwrap();
    for number in 1..MAX_SETS {
        fs::write(store.file(&format!("x{number}")), "").unwrap();
    }
    let message = refusal(save_to(store, "more", &link(&[]), false));
    assert!(message.contains("the most: forget one"), "{message}");
    save_to(store, "x0", &link(&[]), true).unwrap();
}

#[test]
fn what_is_wrong_in_a_file_is_said() {
    let long = vec![b'#'; usize::try_from(MAX_SET_BYTES).unwrap() + 1];
    for (content, expected) in [
        (b"".as_slice(), "lacks 'version = 1'"),
        (b"version = 2\n", "version 2, known is 1"),
        (b"version = 1\n", "lacks the table"),
        (b"version = 1\nx = 1\n[settings]\n", "the key 'x'"),
        (b"version = 1\n[settings]\nloss = 5\n", "'loss' is no text"),
        (b"version = 1\n[settings]\nloss = \"105 %\"\n", "0 % to 100 %"),
        (b"version = 1\n[settings]\nlos = \"5 %\"\n", "did you mean 'loss'"),
        (b"version = 1\n[settings]\njitter = \"5 s\"\n", "exceeds delay"),
        (b"version = 1\n[settings]\ntrace = \"/no/such\"\n", "No such file"),
        (b"version = 1\n[settings]\nloss = \"1 %\"\nloss = \"2 %\"\n", "no TOML"),
        (b"\xff\xfe", "no UTF-8"),
        (long.as_slice(), "longer than"),
    ] {
        let why = decode(content).unwrap_err();
        assert!(why.contains(expected) && !why.contains('\n'), "{why}");
    }
}

#[test]
fn the_environment_names_the_place() {
    let place = |variables: &[(&str, &str)]| {
        let owned: Vec<(String, OsString)> =
            variables.iter().map(|(name, value)| ((*name).to_string(), value.into())).collect();
        let find = |name: &str| {
            owned.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        place(find).map(|path| path.to_string_lossy().into_owned())
    };
    let all = [("LONGWIRE_HOME", "/lw"), ("XDG_CONFIG_HOME", "/xdg"), ("HOME", "/user")];
    assert_eq!(place(&all).as_deref(), Some("/lw/links"));
    assert_eq!(place(&all[1..]).as_deref(), Some("/xdg/longwire/links"));
    assert_eq!(place(&all[2..]).as_deref(), Some("/user/.config/longwire/links"));
    assert_eq!(place(&[("XDG_CONFIG_HOME", "relative")]), None);
}

proptest::proptest! {
    #[test]
    fn no_file_stops_the_reader(bytes in proptest::collection::vec(0_u8.., 0..200)) {
        let _ = decode(&bytes);
    }

    #[test]
    fn no_settings_stop_the_reader(key in "[a-z_.]{0,14}", value in "\\PC{0,30}") {
        let _ = decode(format!("version = 1\n[settings]\n\"{key}\" = '{value}'\n").as_bytes());
    }
}
