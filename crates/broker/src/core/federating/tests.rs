use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use proto::urgency::Urgency;

use crate::access::Access;
use crate::broker::{Broker, Input};
use crate::core::{Core, Next, Opening};
use crate::event::Event;
use crate::federation::{BreachKind, Federation, Flow, Terms};
use crate::http::Asked;
use crate::ids::{ClientKey, ConnectionId, Protocol, SessionId};
use crate::outputs::Output;
use crate::publication::{Grade, Publication};
use crate::refusal::Refusal;
use crate::rules::{Rule, Rules};
use crate::session::{Subscription, Will};
use crate::settings::Settings;
use crate::{explain, mqtt};

use std::time::Duration;

const NOW: Duration = Duration::from_secs(1000);

fn names(all: &[&str]) -> BTreeSet<Arc<str>> {
    all.iter().map(|name| Arc::from(*name)).collect()
}

fn settings() -> Settings {
    let terms = Terms {
        urgency: Urgency::FIRST,
        max_grade: Grade::AtLeastOnce,
        retain: Some(true),
        expiry: Some(Duration::from_secs(60)),
        media_type: None,
        max_bytes: 100,
        messages_per_1000_s: 1000,
        burst: 2,
        bytes_per_s: None,
        conflate: false,
    };
    let flow = Flow {
        name: "positions".into(),
        topic: "nato/%p/position".to_owned(),
        from: names(&["DEU", "NOR"]),
        to: names(&["DEU", "NOR"]),
        via: None,
        terms,
    };
    let federation = Federation::new(
        ("winter".into(), 1),
        "NOR".into(),
        names(&["DEU", "NOR", "PRT"]),
        (Duration::ZERO, Duration::from_secs(10_000)),
        vec![flow],
    );
    Settings {
        federation: Some(Arc::new(federation)),
        sys_interval: Duration::ZERO,
        explain: explain::Settings::default(),
        ..Settings::default()
    }
}

fn opening(protocol: Protocol, name: &str, user: Option<&str>) -> Opening {
    Opening {
        client: ClientKey { protocol, name: name.into() },
        connection: ConnectionId(name.bytes().map(u64::from).sum()),
        user: user.map(Arc::from),
        clean: true,
        expiry: Duration::from_secs(600),
        window: 100,
        will: None,
    }
}

fn open(core: &mut Core, protocol: Protocol, name: &str, user: Option<&str>) -> SessionId {
    core.open(NOW, opening(protocol, name, user)).unwrap().session
}

fn publish(core: &mut Core, from: SessionId, topic: &str, text: &str) -> Result<usize, Refusal> {
    let mut publication = Publication::new(Protocol::Mqtt, topic, text.as_bytes().to_vec());
    publication.publisher = Some(from);
    core.publish(NOW, publication).map(|accepted| accepted.receivers)
}

fn subscribe(core: &mut Core, id: SessionId, filter: &str) -> Result<Grade, Refusal> {
    core.subscribe(NOW, id, Subscription::new(filter, Grade::AtLeastOnce))
}

fn taken(core: &mut Core, id: SessionId) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(Next::Publish(delivery)) = core.take(NOW, id) {
        all.push(delivery.publication.topic.to_string());
    }
    all
}

#[test]
fn publications_go_as_the_profile_has_it() {
    let mut core = Core::new(settings());
    let own = open(&mut core, Protocol::Mqtt, "own", Some("ops"));
    let deu = open(&mut core, Protocol::Mqtt, "deu", Some("DEU"));
    // This side's bridge to PRT.
    let prt = open(&mut core, Protocol::Bridge, "PRT", None);
    for id in [own, deu] {
        subscribe(&mut core, id, "#").unwrap();
    }
    core.subscribe_unchecked(prt, Subscription::new("#", Grade::AtLeastOnce)).unwrap();
    // What is retained is looked for once, and not found again behind what comes now.
    assert!([own, deu, prt].into_iter().all(|id| taken(&mut core, id).is_empty()));
    assert_eq!(publish(&mut core, deu, "nato/DEU/position", "x"), Ok(1));
    assert_eq!(publish(&mut core, own, "nato/NOR/position", "x"), Ok(2));
    assert_eq!(publish(&mut core, own, "national", "x"), Ok(1));
    assert_eq!(taken(&mut core, own).len(), 3);
    assert_eq!(taken(&mut core, deu), ["nato/NOR/position"]);
    assert_eq!(taken(&mut core, prt), [""; 0]);
    for (from, topic) in [
        (deu, "national"),
        (deu, "nato/NOR/position"),
        (prt, "nato/PRT/position"),
        (own, "nato/DEU/position"),
    ] {
        let refused = publish(&mut core, from, topic, "x").unwrap_err();
        let Refusal::Federation(breach) = refused else { panic!("{refused}") };
        assert_eq!(breach.kind, BreachKind::Direction);
    }
    assert!(matches!(subscribe(&mut core, deu, "national/#"), Err(Refusal::Federation(_))));
    // What is retained comes to nobody whom the profile does not have.
    let late = open(&mut core, Protocol::Bridge, "DEU", None);
    core.subscribe_unchecked(late, Subscription::new("#", Grade::AtLeastOnce)).unwrap();
    assert_eq!(taken(&mut core, late), ["nato/NOR/position"]);
    let refused = super::federation_refused(&core);
    let of = |partner: &str| -> u64 {
        refused.iter().filter(|it| &*it.partner == partner).map(|it| it.count).sum()
    };
    assert_eq!((of("DEU"), of("PRT"), of("NOR")), (3, 1, 1));
}

#[test]
fn the_rate_is_of_each_partner_and_the_first_refusal_is_said() {
    let mut core = Core::new(settings());
    let own = open(&mut core, Protocol::Mqtt, "own", None);
    let deu = open(&mut core, Protocol::Mqtt, "deu", Some("DEU"));
    let passed = (0..100).filter(|_| publish(&mut core, deu, "nato/DEU/position", "x").is_ok());
    assert_eq!(passed.count(), 2);
    assert!(publish(&mut core, own, "nato/NOR/position", "x").is_ok());
    let mut said = Vec::new();
    while let Some(event) = core.next_event() {
        if let Event::Refused { why, .. } = event {
            said.push(why);
        }
    }
    let words = "profile winter version 1, flow positions: DEU sends more than 1 messages a second";
    assert_eq!(said, [words]);
    assert_eq!(core.counts().refused, 98);
}

#[test]
fn wills_and_renamed_topics_are_looked_at_too() {
    let mut settings = settings();
    settings.rules = Rules {
        rules: vec![Rule {
            filter: "unit/position".to_owned(),
            rename: Some(("unit/".to_owned(), "nato/NOR/".to_owned())),
            ..Rule::default()
        }],
    };
    settings.access = Access::default();
    let mut core = Core::new(settings);
    let own = open(&mut core, Protocol::Mqtt, "own", None);
    let deu = open(&mut core, Protocol::Mqtt, "deu", Some("DEU"));
    subscribe(&mut core, deu, "#").unwrap();
    assert!(taken(&mut core, deu).is_empty());
    assert_eq!(publish(&mut core, own, "unit/position", "x"), Ok(1));
    assert_eq!(taken(&mut core, deu), ["nato/NOR/position"]);
    let will = Will {
        publication: Publication::new(Protocol::Mqtt, "national", "x"),
        expiry: None,
        delay: Duration::ZERO,
    };
    let mut opening = opening(Protocol::Mqtt, "deu2", Some("DEU"));
    opening.will = Some(will);
    let connection = opening.connection;
    let with_will = core.open(NOW, opening).unwrap().session;
    subscribe(&mut core, own, "national").unwrap();
    core.close(NOW, with_will, connection, false, None);
    assert_eq!(taken(&mut core, own), [""; 0]);
}

/// A partner in a group does not swallow what the profile has not for it.
#[test]
fn a_group_loses_nothing_by_a_partner_in_it() {
    let mut core = Core::new(settings());
    let own = open(&mut core, Protocol::Mqtt, "own", None);
    let deu = open(&mut core, Protocol::Mqtt, "deu", Some("DEU"));
    for id in [own, deu] {
        subscribe(&mut core, id, "$share/workers/#").unwrap();
    }
    for _ in 0..4 {
        assert_eq!(publish(&mut core, own, "national", "x"), Ok(1));
    }
    assert_eq!(taken(&mut core, own).len(), 4);
    // What it had not acknowledged is handed over to nobody who may not have it.
    assert_eq!(publish(&mut core, own, "national", "x"), Ok(1));
    core.end(NOW, own);
    assert_eq!(taken(&mut core, deu), [""; 0]);
}

/// What waits for a partner, is retained or under way stays here once the profile has ended.
#[test]
fn nothing_leaves_after_the_profile() {
    let mut core = Core::new(settings());
    let own = open(&mut core, Protocol::Mqtt, "own", None);
    let deu = open(&mut core, Protocol::Bridge, "DEU", None);
    core.subscribe_unchecked(deu, Subscription::new("#", Grade::AtLeastOnce)).unwrap();
    assert_eq!(taken(&mut core, deu), [""; 0]);
    assert_eq!(publish(&mut core, own, "nato/NOR/position", "x"), Ok(1));
    assert_eq!(taken(&mut core, deu), ["nato/NOR/position"]);
    assert_eq!(publish(&mut core, own, "nato/NOR/position", "y"), Ok(1));
    let mut settings = settings();
    let mut federation = Federation::clone(settings.federation.as_deref().unwrap());
    federation.valid_until = NOW;
    settings.federation = Some(Arc::new(federation));
    core.set_settings(settings);
    assert_eq!(taken(&mut core, deu), [""; 0]);
    let mut again = opening(Protocol::Bridge, "DEU", None);
    again.clean = false;
    assert!(core.open(NOW, again).unwrap().present);
    core.subscribe_unchecked(deu, Subscription::new("nato/#", Grade::AtLeastOnce)).unwrap();
    assert_eq!(taken(&mut core, deu), [""; 0]);
    assert_eq!(core.waiting(deu), (0, 0));
}

/// Nobody gets the session of another nation's client by saying its name.
#[test]
fn a_session_is_of_one_nation() {
    let mut core = Core::new(settings());
    let unit = open(&mut core, Protocol::Mqtt, "unit", Some("ops"));
    for clean in [false, true] {
        let mut theirs = opening(Protocol::Mqtt, "unit", Some("DEU"));
        theirs.clean = clean;
        assert_eq!(core.open(NOW, theirs), Err(Refusal::NotAuthorized));
    }
    let mut own = opening(Protocol::Mqtt, "unit", Some("staff"));
    own.clean = false;
    let opened = core.open(NOW, own).unwrap();
    assert_eq!((opened.session, opened.present), (unit, true));
}

/// A partner's broker comes by MQTT alone.
#[test]
fn other_protocols_let_no_partner_in() {
    let mut broker = Broker::new(settings(), mqtt::Settings::default());
    let connection = ConnectionId(1);
    let certified = Some("DEU".into());
    let protocol = Protocol::Amqp;
    broker.handle_input(NOW, Input::Connected { connection, protocol, certified });
    let mut outputs: Vec<Output> = std::iter::from_fn(|| broker.poll_output()).collect();
    let asked = Asked {
        id: 7,
        is_get: false,
        is_secure: false,
        target: "/".to_owned(),
        content_type: None,
        body: Bytes::new(),
        user: Some("DEU".into()),
    };
    broker.handle_input(NOW, Input::Asked(asked));
    outputs.extend(std::iter::from_fn(|| broker.poll_output()));
    let is_closed =
        |output: &Output| matches!(output, Output::Close { connection: ConnectionId(1) });
    assert!(outputs.iter().any(is_closed), "{outputs:?}");
    let is_answered =
        |output: &Output| matches!(output, Output::Answer(answer) if answer.status == 403);
    assert!(outputs.iter().any(is_answered), "{outputs:?}");
}
