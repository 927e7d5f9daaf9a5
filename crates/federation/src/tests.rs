use broker::FederationFlow;
use proptest::prelude::*;
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;

use super::*;

const EXAMPLE: &str = include_str!("../../../docs/examples/federation.toml");
const FILE: &str = "f.toml";

/// The example with keys that this test has.
fn signers() -> (String, Vec<Signer>) {
    let mut text = EXAMPLE.to_owned();
    let mut signers = Vec::new();
    let random = SystemRandom::new();
    for partner in &parse(FILE, EXAMPLE).unwrap().partners {
        let der = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let signer = Signer::of_pkcs8(der.as_ref()).unwrap();
        text = text.replace(&partner.key.to_string(), &signer.key().to_string());
        signers.push(signer);
    }
    (text, signers)
}

fn signed() -> (String, Vec<Signer>) {
    let (mut text, signers) = signers();
    for signer in &signers {
        text = sign(&parse(FILE, &text).unwrap(), &text, signer).unwrap().0;
    }
    (text, signers)
}

fn flow<'p>(profile: &'p Profile, name: &str) -> &'p FederationFlow {
    profile.flows.iter().find(|flow| &*flow.name == name).unwrap()
}

/// The faults of the example with one text in place of another.
fn faults(from: &str, to: &str) -> Vec<String> {
    assert!(EXAMPLE.contains(from), "{from}");
    let faults = parse(FILE, &EXAMPLE.replacen(from, to, 1)).unwrap_err();
    faults.lines().collect()
}

#[test]
fn the_example_is_sound() {
    let profile = parse(FILE, EXAMPLE).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!((profile.partners.len(), profile.flows.len()), (4, 5));
    assert_eq!((profile.topic_ids.len(), profile.revoked.len()), (32, 1));
    let positions = flow(&profile, "positions");
    assert_eq!(positions.terms.messages_per_1000_s, 4000);
    assert_eq!(flow(&profile, "logistics").terms.burst, 2, "ten seconds of the rate");
    assert_eq!(flow(&profile, "sensors").via.as_deref(), Some("NOR"));
    assert_eq!(calendar::text(profile.valid_from_s), "2026-01-01T00:00:00Z");
    assert_eq!(profile.valid_from_s, 1_767_225_600);
}

#[test]
fn what_is_wrong_is_one_line() {
    let again = "name = \"NOR\"\nabout = \"Norway\"";
    for (from, to, said) in [
        ("format = 1", "format = 2", "profile.format: 2 is out of bounds: 1 to 1: only this"),
        ("format = 1\n", "", "'format' is missing"),
        (again, "name = \"DEU\"", "a second partner is named DEU: the first is in line 13"),
        (again, "name = \"deu\"", "a second partner is named deu"),
        ("messages_per_s = 4\n", "messages_per_s = 0\n", "0 is no rate: 0.001 to 1000000"),
        ("messages_per_s = 4\n", "messages_per_s = nan\n", "nan is no rate"),
        ("messages_per_s = 4\n", "messages_per_s = inf\n", "inf is no rate"),
        ("messages_per_s = 4\n", "messages_per_s = -1\n", "-1 is no rate"),
        ("messages_per_s = 4\n", "messages_per_s = 0.0001\n", "steps of 0.001"),
        ("bytes_per_s = 1200", "bytes_per_s = 0", "0 is out of bounds: 1 to 10000000000 bytes"),
        ("conflate = true", "conflated = true", "the key 'conflated' is unknown: known are name"),
        ("via = \"NOR\"", "via = \"PRT\"", "goes in a circle, from PRT via itself"),
        ("to = [\"USA\"]", "to = [\"PRT\"]", "goes in a circle, from PRT to itself"),
        ("to = [\"USA\"]", "to = []", "flow sensors names no partner"),
        ("to = [\"USA\"]", "to = [\"FRA\"]", "\"FRA\" is no partner: known are DEU, NOR, PRT, USA"),
        ("nato/%p/chat", "nato/%p/+/position", "chat contradicts flow positions of line 38"),
        ("nato/%p/chat", "#", "'#' of flow chat has no beginning"),
        ("nato/%p/chat", "nato/a%p/chat", "has another %"),
        ("nato/%p/chat", "nato/chat", "nobody can tell whose a publication of flow chat is"),
        ("nato/%p/chat", "nato/#/chat", "# is the last level"),
        ("id = 101\n", "id = 102\n", "id 102 stands for two topics: the first is in line"),
        ("id = 101\n", "id = 65535\n", "65535 is out of bounds: 1 to 65534"),
        ("nato/DEU/1/position", "nato/DEU/1/pos", "'nato/DEU/1/pos' is in no flow"),
        ("nato/DEU/1/position", "nato/DEU/2/position", "has two ids"),
        ("valid_until = 2031", "valid_until = 2021", "after valid_from"),
        ("valid_until = 2031-01-01T00:00:00Z", "valid_until = 2031-01-01", "names no moment"),
        ("\nbroker = \"mqtt://deu.example:1883\"", "", "from DEU to USA, neither with a broker"),
        ("mqtt://deu.example", "http://deu.example", "is no address of a broker"),
        ("[[flow]]", "[[flow]", "TOML"),
        ("urgency = \"flash\"", "urgency = \"now\"", "is no urgency: flash, immediate"),
        ("media_type = \"text/plain\"", "media_type = \"text\"", "is no media type"),
        ("retain = \"never\"", "retain = false", "false is not a text"),
        ("key = \"ed25519:", "key = \"rsa:", "is no key: ed25519: and 64"),
    ] {
        let lines = faults(from, to);
        let is_said = lines.iter().any(|line| line.contains(said));
        assert!(is_said, "{to}: wanted {said}, got {lines:#?}");
        for line in &lines {
            let rest = line.strip_prefix("f.toml:").unwrap();
            assert!(rest.split(':').next().unwrap().parse::<usize>().unwrap() > 0, "{line}");
            assert!(!line.contains('\n'));
        }
    }
}

#[test]
fn a_fault_names_its_line() {
    let line = 1 + EXAMPLE.lines().position(|line| line == "messages_per_s = 4").unwrap();
    let lines = faults("messages_per_s = 4\n", "messages_per_s = 0\n");
    assert!(lines[0].starts_with(&format!("f.toml:{line}: flow[1].messages_per_s: ")), "{lines:?}");
}

#[test]
fn the_key_of_a_partner_may_not_be_revoked_or_anothers() {
    let profile = parse(FILE, EXAMPLE).unwrap();
    let (deu, nor) = (profile.partners[0].key.to_string(), profile.partners[1].key.to_string());
    let revoked = profile.revoked[0].key.to_string();
    assert!(faults(&deu, &revoked)[0].contains("the key of DEU is revoked in line"));
    assert!(faults(&deu, &nor)[0].contains("NOR has the key of another partner"));
}

#[test]
fn ten_thousand_flows_are_one_fault() {
    let mut text = EXAMPLE.to_owned();
    for number in 0..10_000 {
        text.push_str(&format!(
            "[[flow]]\nname='f{number}'\ntopic='t/{number}'\nfrom=['DEU']\nto=['NOR']\n\
             max_bytes=9\nmessages_per_s=1\n"
        ));
    }
    let faults = parse(FILE, &text).unwrap_err();
    let lines: Vec<String> = faults.lines().collect();
    assert!(lines[0].contains("10005 of [[flow]]: at most 500"), "{lines:#?}");
    let text = EXAMPLE.to_owned() + &" ".repeat(MAX_PROFILE_BYTES);
    assert!(parse(FILE, &text).unwrap_err().to_string().contains("at most 1048576"));
}

#[test]
fn no_more_than_fifty_faults_are_listed() {
    let text = "[profile]\nformat = 1\n".to_owned() + &"[[partner]]\n".repeat(60);
    let faults = parse(FILE, &text).unwrap_err();
    assert_eq!(faults.faults.len(), 50);
    assert!(faults.lines().last().unwrap().ends_with("more faults"));
}

#[test]
fn all_have_to_sign() {
    let (text, signers) = signers();
    let mut text = text;
    for (at, signer) in signers.iter().enumerate() {
        let profile = parse(FILE, &text).unwrap();
        let said = profile.is_signed_by_all(&[]);
        assert!(said.unwrap_err().contains("not signed by"), "{at} have signed");
        let (next, name) = sign(&profile, &text, signer).unwrap();
        assert_eq!(*name, *profile.partners[at].name);
        text = next;
    }
    let profile = parse(FILE, &text).unwrap();
    assert_eq!(profile.is_signed_by_all(&[]), Ok(()));
    // To sign again is the same.
    let again = sign(&profile, &text, &signers[1]).unwrap().0;
    assert_eq!(parse(FILE, &again).unwrap().is_signed_by_all(&[]), Ok(()));
    assert_eq!(again.matches("[[signature]]").count(), 4);
    // A key that is revoked afterwards counts no more.
    let said = profile.is_signed_by_all(&[signers[2].key()]).unwrap_err();
    assert!(said.ends_with("is not signed by PRT (key revoked)"), "{said}");
    let der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let stranger = Signer::of_pkcs8(der.as_ref()).unwrap();
    assert!(sign(&profile, &text, &stranger).unwrap_err().contains("the key of no partner"));
}

#[test]
fn what_was_signed_is_what_holds() {
    let (text, signers) = signed();
    for (from, to) in [
        ("messages_per_s = 4\n", "messages_per_s = 5\n"),
        ("version = 1", "version = 2"),
        ("to = [\"USA\"]", "to = [\"USA\", \"DEU\"]"),
        ("Where units are", "Where units were"),
        ("nato/USA/8/position", "nato/USA/9/position"),
    ] {
        assert!(text.contains(from), "{from}");
        let profile = parse(FILE, &text.replacen(from, to, 1)).unwrap();
        let wrong = profile.standing(&[]);
        assert!(wrong.iter().all(|(_, standing)| *standing == Standing::Wrong), "{to}");
    }
    // Somebody else's key in place of a partner's own.
    let (_, others) = signers_of(&text);
    let theirs = signers[0].key().to_string();
    let profile = parse(FILE, &text.replacen(&theirs, &others, 1)).unwrap();
    assert_eq!(profile.standing(&[])[0].1, Standing::OtherKey);
}

/// A text, and a key that is in none.
fn signers_of(text: &str) -> (&str, String) {
    let der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    (text, Signer::of_pkcs8(der.as_ref()).unwrap().key().to_string())
}

/// The canonical form as docs/federation.md has it, byte by byte.
#[test]
fn the_canonical_form_is_the_documented_one() {
    let document = include_str!("../../../docs/federation.md");
    let block = |after: &str, kind: &str| {
        let (_, rest) = document.split_once(after).unwrap();
        let (_, rest) = rest.split_once(&format!("```{kind}\n")).unwrap();
        rest.split_once("```").unwrap().0.to_owned()
    };
    let small = block("<!-- small -->", "toml");
    let profile = parse(FILE, &small).unwrap_or_else(|faults| panic!("{faults}"));
    let lines = block("<!-- canonical -->", "text");
    assert_eq!(profile.canonical(), lines.replace('\n', ""));
    assert!(document.contains(&profile.digest()), "{}", profile.digest());
}

#[test]
fn who_gains_and_loses() {
    let old = parse(FILE, EXAMPLE).unwrap();
    assert!(differences(&old, &old).is_empty());
    let text = EXAMPLE
        .replacen("to = [\"USA\"]", "to = [\"DEU\"]", 1)
        .replacen("version = 1", "version = 2", 1)
        .replacen("messages_per_s = 0.2", "messages_per_s = 0.1", 1);
    let new = parse(FILE, &text).unwrap();
    let lines: Vec<String> = differences(&old, &new).iter().map(Difference::line).collect();
    assert_eq!(
        lines,
        [
            "DEU gains: sees sensors/PRT/+ of PRT (flow sensors)",
            "USA loses: sees sensors/PRT/+ of PRT (flow sensors)",
            "flow logistics changes: messages_per_s 0.200 becomes 0.100",
            "flow logistics changes: burst 2 becomes 1",
            "profile changes: version 1 becomes 2",
        ]
    );
    let text = EXAMPLE.replacen("about = \"Norway\"", "about = \"Noreg\"", 1);
    let new = parse(FILE, &text).unwrap();
    let lines: Vec<String> = differences(&old, &new).iter().map(Difference::line).collect();
    assert_eq!(lines, ["profile changes: a text for people is another"]);
}

#[test]
fn brokers_connect_once() {
    let profile = parse(FILE, EXAMPLE).unwrap();
    let names = |all: Vec<&Partner>| -> Vec<String> {
        all.into_iter().map(|partner| partner.name.to_string()).collect()
    };
    assert_eq!(names(dials(&profile, "DEU")), ["NOR", "PRT"]);
    assert_eq!(names(dials(&profile, "NOR")), ["PRT"]);
    assert_eq!(names(dials(&profile, "USA")), ["DEU", "NOR", "PRT"]);
    assert_eq!(names(dialled_by(&profile, "PRT")), ["DEU", "NOR", "USA"]);
    for one in &profile.partners {
        for other in &profile.partners {
            let connects = names(dials(&profile, &one.name)).contains(&other.name.to_string());
            let is_met = names(dialled_by(&profile, &other.name)).contains(&one.name.to_string());
            assert_eq!(connects, is_met);
        }
    }
}

#[test]
fn a_configuration_has_the_routes_of_the_flows() {
    let profile = parse(FILE, EXAMPLE).unwrap();
    let options = Options { file: "f.toml".to_owned(), ..Options::default() };
    let usa = configuration(&profile, "USA", &options).unwrap();
    assert_eq!(usa, configuration(&profile, "USA", &options).unwrap());
    let document = usa.parse::<toml::Table>().unwrap();
    let bridges = document["bridge"].as_array().unwrap();
    assert_eq!(bridges.len(), 3);
    let nor = bridges[1].as_table().unwrap();
    assert_eq!(nor["name"].as_str(), Some("NOR"));
    let sensors = nor["route"].as_array().unwrap().iter();
    let mut sensors = sensors.filter(|route| route["filter"].as_str() == Some("sensors/PRT/+"));
    let sensors = sensors.next().unwrap();
    assert_eq!((sensors["comes"].as_bool(), sensors["goes"].as_bool()), (Some(true), Some(false)));
    let prt = configuration(&profile, "PRT", &options).unwrap();
    assert!(!prt.contains("[[bridge]]"), "the others connect to it");
    assert!(!usa.contains("logistics"), "it is none of its business");
    assert_eq!(configuration(&profile, "FRA", &options), None);
}

#[test]
fn times_come_back() {
    for day in 0..80_000_u64 {
        let at = 946_684_800 + day * 86_400 + day % 86_400;
        if at >= 7_258_118_400 {
            break;
        }
        let text = calendar::text(at);
        let parsed: toml::value::Datetime = text.parse().unwrap();
        assert_eq!(calendar::seconds(&parsed), Some(at), "{text}");
    }
    let early: toml::value::Datetime = "2026-01-01T01:30:00+01:30".parse().unwrap();
    assert_eq!(calendar::seconds(&early), Some(1_767_225_600));
}

#[test]
fn lists_of_keys_are_read() {
    let key = parse(FILE, EXAMPLE).unwrap().partners[0].key;
    let text = format!("# lost\nDEU {key} edge\n\n{key}\n");
    assert_eq!(keys_of(&text), Ok(vec![key, key]));
    assert!(keys_of("DEU ed25519:12").unwrap_err().starts_with("line 1: 'ed25519:12' is no key"));
    assert!(keys_of("DEU").unwrap_err().contains("names no key"));
}

/// The example, signed: once for all cases.
fn signed_once() -> (String, usize) {
    static SIGNED: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let text = SIGNED.get_or_init(|| signed().0).clone();
    let len = text.len();
    (text, len)
}

/// The tables of a text, with the first lines apart.
fn blocks(text: &str) -> Vec<String> {
    text.split("\n\n").map(str::to_owned).filter(|block| block.contains('[')).collect()
}

proptest! {
    /// Order, white space and comments are not signed.
    #[test]
    fn the_canonical_form_is_of_what_is_said(
        order in Just((0..44_usize).collect::<Vec<_>>()).prop_shuffle(),
        spaces in 0..3_usize,
    ) {
        let before = parse(FILE, EXAMPLE).unwrap();
        let all = blocks(EXAMPLE);
        prop_assert_eq!(all.len(), 43);
        let mut text = String::new();
        for at in order.into_iter().filter(|at| *at < all.len()) {
            let mut lines: Vec<&str> = all[at].lines().collect();
            let head = lines.iter().position(|line| line.starts_with('[')).unwrap();
            lines[head + 1..].reverse();
            for line in lines {
                let around = [" = ", "=", "\t=  "][spaces];
                text.push_str(&line.replacen(" = ", around, 1));
                text.push_str(if spaces == 0 { "\n" } else { " # a comment\n\n" });
            }
        }
        let after = parse(FILE, &text).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
        prop_assert_eq!(after.canonical(), before.canonical());
    }

    /// A profile in which any byte is another is no profile, the same one, or not signed.
    #[test]
    fn a_changed_byte_breaks_all_signatures(at in 0..1_000_000_usize, to in 32..127_u8) {
        let (text, len) = signed_once();
        let mut bytes = text.clone().into_bytes();
        bytes[at % len] = to;
        let changed = String::from_utf8(bytes).unwrap();
        if let Ok(profile) = parse(FILE, &changed) {
            let before = parse(FILE, &text).unwrap();
            let is_same = profile.canonical() == before.canonical()
                && profile.signatures == before.signatures;
            prop_assert_eq!(profile.is_signed_by_all(&[]).is_ok(), is_same);
        }
    }

    #[test]
    fn any_text_is_read_without_a_panic(text in "\\PC{0,300}") {
        let _ = parse(FILE, &text);
    }

    #[test]
    fn any_edit_of_the_example_is_read_without_a_panic(
        at in 0..4000_usize,
        cut in 0..40_usize,
        put in "[\\[\\]=\"a-z0-9#%+/.\\n -]{0,20}",
    ) {
        let (head, rest) = EXAMPLE.split_at(EXAMPLE.floor_char_boundary(at));
        let rest = &rest[rest.floor_char_boundary(cut)..];
        if let Err(faults) = parse(FILE, &format!("{head}{put}{rest}")) {
            prop_assert!(!faults.faults.is_empty());
        }
    }
}
