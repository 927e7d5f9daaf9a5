use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn scratch(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("longwire-keys-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    dir
}

#[test]
fn a_generated_pair_loads_and_names_itself() {
    let dir = scratch("pair");
    let made = generate(&dir, "edge-1", None).unwrap();
    assert_eq!(fs::metadata(&made.private).unwrap().permissions().mode() & 0o777, 0o600);
    let identity = Identity::load(&made.private, &made.public, Role::Edge).unwrap();
    assert_eq!(identity.key, made.key);
    assert_eq!(identity.admit(Some(made.key)), Ok("edge-1"));
    assert_eq!(PublicKey::from_spki(&made.key.to_spki()), Some(made.key));
    assert_eq!(made.key.fingerprint().len(), 39);

    let again = generate(&dir, "edge-1", None).unwrap_err().to_string();
    assert!(again.contains("not overwritten"), "{again}");
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_private_key_that_others_may_read_is_refused() {
    let dir = scratch("mode");
    let made = generate(&dir, "edge", None).unwrap();
    fs::set_permissions(&made.private, fs::Permissions::from_mode(0o644)).unwrap();
    let error = Identity::load(&made.private, &made.public, Role::Edge).unwrap_err().to_string();
    assert!(error.contains("mode 0644") && error.contains("chmod 600"), "{error}");
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_peer_file_lists_several_and_errors_name_the_line() {
    let key = |digit: char| format!("ed25519:{}", digit.to_string().repeat(64));
    let text = format!("# ours\n\neast {} gateway # the east\nwest\t{}\n", key('a'), key('b'));
    let peers = Peers::parse(&text).unwrap();
    let peer = |name: &str, digit, role| {
        let key = parse_key(&key(digit)).unwrap();
        Peer::new(name, key, role)
    };
    let expected = [peer("east", 'a', Some(Role::Gateway)), peer("west", 'b', None)];
    assert_eq!(peers.0, expected);
    assert_eq!(Peers::parse(&format!("{}\n{}", expected[0], expected[1])), Ok(peers));
    for (text, expected) in [
        (String::new(), "no key"),
        ("east\n".to_owned(), "line 1"),
        (format!("\neast {}0\n", key('a')), "line 2"),
        (format!("east {}\neast {}\n", key('a'), key('b')), "line 2: 'east' repeats"),
        (format!("east {}\nwest {}\n", key('a'), key('a')), "line 2: 'west' repeats"),
        ("east ed25519:é\n".to_owned(), "line 1"),
        (format!("east {} server\n", key('a')), "line 1: 'server' is no role: one of edge"),
        (format!("east {} edge gateway\n", key('a')), "line 1: a line is"),
    ] {
        let error = Peers::parse(&text).unwrap_err();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

#[test]
fn pem_is_read_back_by_another_implementation() {
    for len in 0..100_u8 {
        let der: Vec<u8> = (0..len).collect();
        let read = PrivatePkcs8KeyDer::from_pem_slice(pem(&der).as_bytes()).unwrap();
        assert_eq!(read.secret_pkcs8_der(), der);
    }
}

#[test]
fn a_swapped_pair_is_called_so() {
    let dir = scratch("swapped");
    let made = generate(&dir, "edge", None).unwrap();
    let load =
        |key: &Path, peer: &Path| Identity::load(key, peer, Role::Gateway).unwrap_err().to_string();
    let error = load(&made.public, &made.private);
    assert!(error.contains("is a public key: were key and peer swapped?"), "{error}");
    let error = load(&made.private, &made.private);
    assert!(error.contains("is a private key: were key and peer swapped?"), "{error}");
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_peer_file_has_keys_of_the_role_that_is_due() {
    let dir = scratch("due");
    let made = generate(&dir, "edge", Some(Role::Edge)).unwrap();
    assert!(Identity::load(&made.private, &made.public, Role::Edge).is_ok());
    let error = Identity::load(&made.private, &made.public, Role::Gateway).unwrap_err();
    assert!(error.to_string().contains("no key of gateway role"), "{error}");
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn keys_that_are_there_can_be_shown() {
    let dir = scratch("shown");
    let made = generate(&dir, "edge", Some(Role::Edge)).unwrap();
    let [private] = &show(&made.private).unwrap()[..] else { panic!("one key") };
    assert_eq!((private.key, private.name.as_deref(), private.role), (made.key, None, None));
    let [public] = &show(&made.public).unwrap()[..] else { panic!("one key") };
    let said = (public.key, public.name.as_deref(), public.role);
    assert_eq!(said, (made.key, Some("edge"), Some(Role::Edge)));
    fs::write(dir.join("else"), "neither\n").unwrap();
    let error = show(&dir.join("else")).unwrap_err().to_string();
    assert!(error.contains("line 1: a line is 'NAME ed25519:HEX"), "{error}");
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn key_and_peer_files_that_others_may_change_are_refused() {
    let dir = scratch("strict");
    let made = generate(&dir, "edge", None).unwrap();
    let load = || Identity::load(&made.private, &made.public, Role::Edge);
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    for (path, bad, good, named) in [
        (made.public.as_path(), 0o666, 0o644, "the peer file"),
        (&dir, 0o777, 0o755, "the directory"),
    ] {
        mode(path, bad).unwrap();
        let error = load().unwrap_err().to_string();
        assert!(error.contains(named) && error.contains("written by others"), "{error}");
        mode(path, good).unwrap();
        assert!(load().is_ok());
    }
    mode(&dir, 0o777).unwrap();
    fs::remove_file(&made.private).unwrap();
    fs::remove_file(&made.public).unwrap();
    let error = generate(&dir, "edge", None).unwrap_err().to_string();
    assert!(error.contains("the directory"), "{error}");
    let link = std::env::temp_dir().join(format!("longwire-keys-link-{}", std::process::id()));
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink(&made.private, &link).unwrap();
    let error = Identity::load(&link, &made.public, Role::Edge).unwrap_err().to_string();
    assert!(error.contains("is a symbolic link"), "{error}");
    fs::remove_file(link).unwrap();
    fs::remove_dir_all(dir).unwrap();
}
