use super::*;
use crate::filter::matches;
use proptest::prelude::*;

const NOW: Duration = Duration::from_secs(1_000_000);

fn names(all: &[&str]) -> BTreeSet<Arc<str>> {
    all.iter().map(|name| Arc::from(*name)).collect()
}

fn terms() -> Terms {
    Terms {
        urgency: Urgency::DEFAULT,
        max_grade: Grade::AtLeastOnce,
        retain: None,
        expiry: Some(Duration::from_secs(30)),
        media_type: Some("application/json".to_owned()),
        max_bytes: 100,
        messages_per_1000_s: 2000,
        burst: 3,
        bytes_per_s: Some(1000),
        conflate: true,
    }
}

fn flow(name: &str, topic: &str, from: &[&str], to: &[&str], via: Option<&str>) -> Flow {
    Flow {
        name: name.into(),
        topic: topic.to_owned(),
        from: names(from),
        to: names(to),
        via: via.map(Arc::from),
        terms: terms(),
    }
}

fn federation(own: &str) -> Federation {
    Federation::new(
        ("winter".into(), 3),
        own.into(),
        names(&["DEU", "NOR", "PRT"]),
        (Duration::from_secs(10), Duration::from_secs(2_000_000)),
        vec![
            flow("positions", "nato/%p/+/position", &["DEU", "NOR"], &["DEU", "NOR"], None),
            flow("intel", "intel/%p/#", &["PRT"], &["DEU"], Some("NOR")),
            flow("secret", "secret/%p", &["DEU"], &["PRT"], None),
        ],
    )
}

fn partner(name: &str) -> Party {
    Party::Partner(name.into())
}

fn publication(topic: &str, bytes: usize) -> Publication {
    Publication::new(Protocol::Mqtt, topic, vec![b'x'; bytes])
}

fn admitted(own: &str, party: &Party, mut publication: Publication) -> Result<(), String> {
    let mut meters = Meters::default();
    let admitted = federation(own).admit(NOW, party, &mut meters, &mut publication);
    admitted.map(|_| ()).map_err(|breach| breach.to_string())
}

#[test]
fn who_publishes_what_where() {
    for (own, party, topic, goes) in [
        ("NOR", Party::Own, "nato/NOR/1/position", true),
        ("NOR", Party::Own, "national/anything", true),
        ("NOR", Party::Own, "nato/DEU/1/position", false),
        ("NOR", Party::Mesh, "nato/NOR/1/position", true),
        ("NOR", Party::Mesh, "nato/DEU/1/position", true),
        ("NOR", Party::Mesh, "intel/PRT/a/b", true),
        ("NOR", Party::Mesh, "national/anything", true),
        ("NOR", Party::Mesh, "secret/DEU", false),
        ("DEU", Party::Mesh, "intel/PRT/a/b", true),
        ("PRT", Party::Mesh, "nato/DEU/1/position", false),
        ("NOR", partner("DEU"), "nato/DEU/1/position", true),
        ("NOR", partner("DEU"), "nato/NOR/1/position", false),
        ("NOR", partner("DEU"), "national/anything", false),
        ("NOR", partner("DEU"), "secret/DEU", false),
        ("NOR", partner("DEU"), "$SYS/x", false),
        ("NOR", partner("PRT"), "intel/PRT/a/b", true),
        ("DEU", partner("NOR"), "intel/PRT/a/b", true),
        ("DEU", partner("PRT"), "intel/PRT/a/b", false),
        ("PRT", partner("DEU"), "secret/DEU", true),
    ] {
        let said = admitted(own, &party, publication(topic, 10));
        assert_eq!(said.is_ok(), goes, "{own} {party:?} {topic}: {said:?}");
    }
    let said = admitted("NOR", &partner("DEU"), publication("secret/DEU", 1)).unwrap_err();
    assert_eq!(
        said,
        "profile winter version 3, flow secret: DEU may not publish to 'secret/DEU' here: \
         it goes from DEU to PRT"
    );
}

#[test]
fn who_sees_what() {
    let nor = federation("NOR");
    for (party, topic, sees) in [
        (Party::Own, "nato/DEU/1/position", true),
        (Party::Own, "nato/NOR/1/position", true),
        (Party::Own, "national", true),
        (Party::Own, "secret/DEU", false),
        // It only passes.
        (Party::Own, "intel/PRT/x", false),
        (partner("DEU"), "nato/NOR/1/position", true),
        (partner("DEU"), "nato/DEU/1/position", false),
        (partner("DEU"), "intel/PRT/x", true),
        (partner("PRT"), "intel/PRT/x", false),
        (partner("PRT"), "nato/NOR/1/position", false),
        (partner("DEU"), "national", false),
        (partner("DEU"), "$SYS/broker/uptime", false),
    ] {
        assert_eq!(nor.may_receive(&party, topic), sees, "{party:?} {topic}");
    }
    for (party, filter, may) in [
        (Party::Own, "#", true),
        (Party::Own, "secret/DEU", false),
        (Party::Own, "intel/PRT/+", false),
        (Party::Own, "national/+", true),
        (partner("DEU"), "#", true),
        (partner("DEU"), "nato/+/1/position", true),
        (partner("DEU"), "national/+", false),
        (partner("PRT"), "#", false),
    ] {
        let said = nor.may_subscribe(&party, filter);
        assert_eq!(said.is_ok(), may, "{party:?} {filter}: {said:?}");
    }
}

/// Who is no partner any more has nothing of what the own nation has.
#[test]
fn a_former_partner_is_no_client_of_ones_own() {
    let nor = federation("NOR").with_former(["FRA".into(), "DEU".into()]);
    assert_eq!(nor.former, names(&["FRA"]), "DEU is a partner again");
    let party = nor.party_of_user(Some("FRA"));
    assert!(party == partner("FRA") && nor.is_partner("FRA"));
    assert!(!nor.may_receive(&party, "national"));
    assert!(!nor.may_receive(&party, "nato/NOR/1/position"));
    assert!(nor.may_subscribe(&party, "#").is_err());
    let mut one = publication("national", 1);
    assert!(nor.admit(NOW, &party, &mut Meters::default(), &mut one).is_err());
}

#[test]
fn a_flow_has_its_terms() {
    let json = |mut it: Publication, media_type: &str| {
        it.details_mut().content_type = Some(media_type.to_owned());
        it
    };
    let topic = "nato/NOR/1/position";
    let said = |publication| admitted("NOR", &Party::Own, publication);
    assert!(said(publication(topic, 101)).unwrap_err().contains("101 bytes"));
    let mut long = publication(topic, 50);
    long.details_mut().properties.push(("note".to_owned(), "x".repeat(47)));
    assert!(said(long).unwrap_err().contains("101 bytes"), "properties cross links too");
    let of_mesh = admitted("NOR", &Party::Mesh, publication("nato/DEU/1/position", 101));
    assert!(of_mesh.unwrap_err().contains("101 bytes"), "another member measures by its own");
    assert_eq!(said(publication(topic, 100)), Ok(()));
    assert_eq!(said(json(publication(topic, 1), "Application/JSON; charset=utf-8")), Ok(()));
    assert!(said(json(publication(topic, 1), "text/xml")).unwrap_err().contains("text/xml"));
    let mut one = publication(topic, 1);
    one.grade = Grade::ExactlyOnce;
    one.deadline = Some(NOW + Duration::from_secs(3600));
    let is_newest =
        federation("NOR").admit(NOW, &Party::Own, &mut Meters::default(), &mut one).unwrap();
    assert!(is_newest && one.grade == Grade::AtLeastOnce);
    assert_eq!(one.deadline, Some(NOW + Duration::from_secs(30)));
    assert_eq!(one.details.unwrap().content_type.as_deref(), Some("application/json"));
}

#[test]
fn a_profile_holds_for_its_time() {
    let nor = federation("NOR");
    for (at_s, holds) in [(9, false), (10, true), (1_999_999, true), (2_000_000, false)] {
        let mut one = publication("nato/NOR/1/position", 1);
        let mut meters = Meters::default();
        let at = Duration::from_secs(at_s);
        let said = nor.admit(at, &Party::Own, &mut meters, &mut one);
        assert_eq!(said.is_ok(), holds, "{at_s}: {said:?}");
        let mut own = publication("national", 1);
        assert!(nor.admit(at, &Party::Own, &mut meters, &mut own).is_ok(), "it is nobody's else");
    }
}

/// What passes of a flood, and that the other publisher of the flow has a rate of its own.
#[test]
fn a_flood_is_held_to_the_rate_and_harms_nobody() {
    let nor = federation("NOR");
    let mut meters = Meters::default();
    let mut pass = |at_ms: u64, party: &Party, topic: &str, bytes: usize| {
        let at = NOW + Duration::from_millis(at_ms);
        nor.admit(at, party, &mut meters, &mut publication(topic, bytes)).is_ok()
    };
    let flood =
        |ms: u64, pass: &mut dyn FnMut(u64) -> bool| (0..ms).filter(|at_ms| pass(*at_ms)).count();
    let deu = partner("DEU");
    let passed = flood(10_000, &mut |at| pass(at, &deu, "nato/DEU/1/position", 10));
    // Two a second for ten seconds, and a burst of three at the beginning.
    assert!((20..=23).contains(&passed), "{passed}");
    assert!(pass(10_000, &Party::Own, "nato/NOR/1/position", 10));
}

#[test]
fn bytes_have_a_rate_too() {
    let mut meters = Meters::default();
    let terms =
        Terms { messages_per_1000_s: 1_000_000, burst: 1000, bytes_per_s: Some(100), ..terms() };
    let mut passed = 0;
    for at_ms in 0..10_000_u64 {
        let at = NOW + Duration::from_millis(at_ms);
        passed += u64::from(meters.pass(at, 0, &terms, 50).is_ok()) * 50;
    }
    assert!((1000..=1100).contains(&passed), "{passed}");
    // One that is longer than a second's bytes passes when nothing was before.
    let later = NOW + Duration::from_secs(60);
    assert!(meters.pass(later, 0, &terms, 400).is_ok());
    assert!(meters.pass(later, 0, &terms, 1).is_err());
}

#[test]
fn a_log_hears_of_the_same_now_and_then() {
    let nor = federation("NOR");
    let mut meters = Meters::default();
    let mut reported = 0;
    for at_ms in 0..20_000_u64 {
        let at = NOW + Duration::from_millis(at_ms);
        let mut one = publication("nope", 1);
        let breach = nor.admit(at, &partner("DEU"), &mut meters, &mut one).unwrap_err();
        reported += u32::from(meters.refused(at, &breach).is_some());
    }
    assert_eq!(reported, 2);
    let refused = meters.all_refused();
    assert_eq!((refused.len(), refused[0].count), (1, 20_000));
    assert_eq!((&*refused[0].partner, refused[0].kind), ("DEU", BreachKind::Direction));
}

proptest! {
    /// The tree finds what filters fit one by one.
    #[test]
    fn the_tree_agrees_with_filters(
        filters in prop::collection::vec("(a|b|\\+|\\$s)(/(a|b|\\+)){0,3}(/#)?|#", 1..20),
        topic in "(a|b|\\$s)(/(a|b|c)){0,4}",
    ) {
        let mut tree = Tree::default();
        for (at, filter) in filters.iter().enumerate() {
            tree.insert(filter, at);
        }
        let one_by_one: Vec<usize> =
            (0..filters.len()).filter(|at| matches(&filters[*at], &topic)).collect();
        prop_assert_eq!(tree.find(&topic), one_by_one);
    }
}
