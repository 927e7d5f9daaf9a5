use super::*;

fn scratch(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("longwire-keys-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    dir
}

#[test]
fn a_generated_pair_loads_and_names_itself() {
    let dir = scratch("pair");
    let made = generate(&dir, "edge-1").unwrap();
    assert_eq!(fs::metadata(&made.private).unwrap().permissions().mode() & 0o777, 0o600);
    let identity = Identity::load(&made.private, &made.public).unwrap();
    assert_eq!(identity.key, made.key);
    assert_eq!(identity.peers.name_of(made.key), Some("edge-1"));
    assert_eq!(PublicKey::from_spki(&made.key.to_spki()), Some(made.key));
    assert_eq!(made.key.fingerprint().len(), 39);

    let again = generate(&dir, "edge-1").unwrap_err().to_string();
    assert!(again.contains("not overwritten"), "{again}");
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_private_key_that_others_may_read_is_refused() {
    let dir = scratch("mode");
    let made = generate(&dir, "edge").unwrap();
    fs::set_permissions(&made.private, fs::Permissions::from_mode(0o644)).unwrap();
    let error = Identity::load(&made.private, &made.public).unwrap_err().to_string();
    assert!(error.contains("mode 0644") && error.contains("chmod 600"), "{error}");
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_peer_file_lists_several_and_errors_name_the_line() {
    let key = |digit: char| format!("ed25519:{}", digit.to_string().repeat(64));
    let text = format!("# ours\n\neast {} # the east\nwest\t{}\n", key('a'), key('b'));
    let peers = Peers::parse(&text).unwrap();
    assert_eq!(peers.name_of(parse_key(&key('b')).unwrap()), Some("west"));
    for (text, expected) in [
        (String::new(), "no key"),
        ("east\n".to_owned(), "line 1"),
        (format!("\neast {}0\n", key('a')), "line 2"),
        (format!("east {}\neast {}\n", key('a'), key('b')), "line 2: 'east' repeats"),
        (format!("east {}\nwest {}\n", key('a'), key('a')), "line 2: 'west' repeats"),
        ("east ed25519:é\n".to_owned(), "line 1"),
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
