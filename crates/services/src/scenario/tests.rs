use super::*;
use link::medium::Access;
use link::net::{Format, PathLoss, Transport};
use link::propagation::Model;
use proptest::prelude::*;

/// A scenario with something of each kind; its lines are counted by the tests.
const WHOLE: &str = r#"title = "Two and a convoy"
duration = "60 s"
seed = 7

[ground]
made = "ridge"
corner = [50.1, 7.0]
rows = 100
columns = 100
step_deg = 0.001
seed = 3

[[medium]]
name = "wide"
kind = "wideband"
frequency = "300 MHz"
rates = [{ rate = "1 Mbit/s", from_db = 12 }, { rate = "380 kbit/s", from_db = 5.5 }]
jamming = [{ from = "10 s", until = "20 s", level_dbm = -90, nodes = ["a"] }]

[[medium]]
name = "narrow"
kind = "narrowband"
access = "tdma"
frequency = "60.5 MHz"
path_loss = "log-distance"
exponent = 3.5
owners = [["a"], ["c1"], ["a", "c1"]]

[[node]]
name = "a"
radios = ["wide", "narrow"]
at = [50.05, 7.02]
antenna_m = 4

[[node]]
name = "b"
radios = ["wide"]
power_dbm = 30.0
way = [[0, 50.05, 7.03], [30, 50.06, 7.04, 100]]

[[convoy]]
name = "c"
count = 3
radios = ["wide"]
leader_radios = ["narrow"]
way = [[50.02, 7.02], [50.08, 7.02]]
gap_m = 100
speed_mps = 10
start = "5 s"

[groups]
pair = ["b", "a"]

[[message]]
at = "1 s"
from = "a"
to = "c"
text = "Move."
precedence = "flash"

[[message]]
at = "2.5 s"
from = "b"
to = ["pair", "c2"]
text = "Report."
delivery = "best-effort"
validity = "30 s"
every = "10 s"
times = 3

[[case]]
name = "HTTP/JSON"
transport = "http"
format = "json"
"#;

fn no_file(name: &str, _: usize) -> Result<Vec<u8>, String> {
    Err(format!("there is no file {name}"))
}

fn read(text: &str) -> Result<Scenario, Vec<String>> {
    let parsed = parse("s.toml", text, &no_file);
    parsed.map_err(|problems| problems.list().iter().map(ToString::to_string).collect())
}

#[test]
fn all_of_a_scenario_is_read() {
    let scenario = read(WHOLE).unwrap();
    assert_eq!((scenario.title.as_str(), scenario.seed), ("Two and a convoy", 7));
    assert_eq!(scenario.duration, Duration::from_secs(60));
    let names: Vec<&str> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c1", "c2", "c3"]);
    assert_eq!(scenario.nodes.iter().map(|node| node.id).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    let radios = |node: usize| -> Vec<(usize, f64, f64)> {
        let radios = scenario.nodes[node].radios.iter();
        radios.map(|radio| (radio.medium, radio.antenna_m, radio.power_dbm)).collect()
    };
    assert_eq!(radios(0), [(0, 4.0, 37.0), (1, 4.0, 37.0)]);
    assert_eq!((radios(1), radios(2).len(), radios(3).len()), (vec![(0, 3.0, 30.0)], 2, 1));
    let wide = &scenario.media[0];
    let rates: Vec<_> =
        wide.config.radio.rates.iter().map(|one| (one.rate_bps, one.from_db)).collect();
    assert_eq!(rates, [(1_000_000, 12.0), (380_000, 5.5)]);
    assert_eq!(wide.config.jamming[0].ports, Some(vec![0]));
    assert!(matches!(wide.config.access, Access::Csma(_)));
    assert!(matches!(wide.path_loss, PathLoss::Predicted(Model::DeltaBullington(_))));
    let narrow = &scenario.media[1];
    let Access::Tdma(tdma) = &narrow.config.access else { panic!("{narrow:?}") };
    assert_eq!(tdma.owners, [vec![0], vec![1], vec![0, 1]]);
    assert!((narrow.frequency_hz - 60.5e6).abs() < 1e-3);
    let PathLoss::Predicted(Model::LogDistance(model)) = narrow.path_loss else {
        panic!("{narrow:?}");
    };
    assert_eq!(model.exponent, 3.5);
    let groups: Vec<_> =
        scenario.groups.iter().map(|one| (one.name.as_str(), &one.nodes[..])).collect();
    assert_eq!(groups, [("c", &[3, 4, 5][..]), ("pair", &[1, 2][..])]);
    let times: Vec<f64> = scenario.messages.iter().map(|one| one.at.as_secs_f64()).collect();
    assert_eq!(times, [1.0, 2.5, 12.5, 22.5]);
    assert_eq!(scenario.messages[0].receipt, "delivered");
    assert_eq!(scenario.messages[1].receipt, "none");
    assert_eq!(scenario.messages[1].validity, Some(Duration::from_secs(30)));
    assert_eq!(scenario.receivers(&scenario.messages[1]), [1, 4]);
    let case = &scenario.cases[0];
    assert_eq!((case.transport, case.format), (Transport::Http, Format::Json));
    let resolved = scenario.resolve().unwrap();
    assert_eq!(resolved.losses.len(), 2);
    assert!(!resolved.routes(Duration::ZERO).hop_counts().by_hops.is_empty());
}

/// What is changed of the whole scenario, to what, and what then is wrong.
const WRONG: [(&str, &str, &str); 42] = [
    ("title = ", "titel = ", "s.toml:1: unknown key 'titel'"),
    ("duration = \"60 s\"", "", "s.toml:1: 'duration' is missing"),
    ("\"60 s\"", "60", "s.toml:2: duration: 60 is not a text in quotes"),
    ("\"60 s\"", "\"60 m\"", "s.toml:2: duration: '60 m' is not a duration"),
    ("seed = 7", "seed = -1", "s.toml:3: seed: -1 is out of range; give 0 to"),
    ("made = \"ridge\"", "made = \"rigde\"", "did you mean 'ridge'?"),
    ("rows = 100", "rows = 1", "s.toml:8: ground.rows: 1 is out of range"),
    ("corner = [50.1, 7.0]", "corner = [50.1]", "s.toml:7: ground.corner: 1 numbers are no"),
    ("name = \"wide\"", "name = \"a b\"", "s.toml:14: medium[1].name: the channel's name is none"),
    ("name = \"narrow\"", "name = \"wide\"", "two channels are called wide"),
    ("\"300 MHz\"", "\"300\"", "s.toml:16: medium[1].frequency: \"300\" is no such frequency"),
    ("from_db = 12 ", "from = 12 ", "s.toml:17: medium[1].rates[1]: unknown key 'from'"),
    ("from_db = 5.5", "from_db = nan", "s.toml:17: medium[1].rates[2].from_db: NaN is out of"),
    ("\"1 Mbit/s\"", "\"1 kbit/s\"", "radio.rates: must sink"),
    ("nodes = [\"a\"]", "nodes = [\"x\"]", "there is no node on this channel 'x'"),
    ("access = \"tdma\"", "access = \"fdma\"", "s.toml:23: medium[2].access: \"fdma\" is unknown"),
    ("access = \"tdma\"", "access = \"csma\"", "s.toml:27: medium[2].owners: means nothing to"),
    ("[\"c1\"], [\"a\", \"c1\"]", "[\"a\"]", "port 1 owns no slot"),
    ("exponent = 3.5", "exponent = 35", "exponent: 35 is out of range; give 0 to 10"),
    ("name = \"b\"", "name = \"a\"", "s.toml:36: node[2].name: two nodes are called a; rename one"),
    ("radios = [\"wide\"]\npower", "power", "s.toml:35: node[2]: the node is on no radio"),
    ("radios = [\"wide\"]\npower", "radios = []\npower", "node[2].radios: the node is on no radio"),
    ("radios = [\"wide\"]\npower", "radios = [\"wied\"]\npower", "did you mean 'wide'?"),
    ("at = [50.05, 7.02]", "at = [51.05, 7.02]", "s.toml:32: node[1].at: 51.05000,7.02000 is off"),
    ("at = [50.05, 7.02]", "", "node[1]: node a has no place; give 'at', 'way' or 'track'"),
    ("[30, 50.06", "[0, 50.06", "s.toml:39: node[2].way[2]: 0 s comes after 0 s; times must"),
    ("[30, 50.06", "[30, 50.2", "node[2].way[2]: 50.20000,7.04000 is off the map"),
    ("count = 3", "count = 300", "convoy of 29900 m"),
    ("count = 3", "count = 3000", "s.toml:43: convoy[1].count: 3000 is out of range"),
    ("pair = [\"b\", ", "pair = [\"bb\", ", "s.toml:52: groups.pair[1]: there is no node 'bb'"),
    ("pair = ", "c = ", "s.toml:52: groups.c: a node or convoy has this name too"),
    ("from = \"b\"", "from = \"d\"", "s.toml:63: message[2].from: there is no node 'd'"),
    (
        "\"pair\", \"c2\"",
        "\"pai\", \"c2\"",
        "there is no node or group 'pai', did you mean 'pair'?",
    ),
    ("\"flash\"", "\"flush\"", "precedence: \"flush\" is unknown; give one of flash, immediate"),
    ("at = \"2.5 s\"", "at = \"0.5 s\"", "s.toml:62: message[2].at: 500 ms comes after 1 s; times"),
    ("at = \"2.5 s\"", "at = \"61 s\"", "message[2].at: 61 s is out of range; give 0 s to 60 s"),
    ("times = 3", "times = 30", "repetition 7 is after the scenario's end"),
    ("\"http\"", "\"htpp\"", "s.toml:73: case[1].transport: \"htpp\" is unknown"),
    ("name = \"b\"\nradios", "name = \"c\"\nradios", "convoy[1].name: a node or convoy has this"),
    (
        "seed = 7",
        "seed = 7\nservice = { retry_first = \"40 s\" }",
        "retry_longest, 30s, is shorter",
    ),
    ("access = \"tdma\"", "access = \"tdma\"\nmtu = \"60 B\"", "medium[2].mtu: is under 68 bytes"),
    ("access = \"tdma\"", "access = \"tdma\"\nqueue = \"10 GB\"", "medium[2].queue: is not from 1"),
];

#[test]
fn what_is_wrong_is_said_by_line_and_field() {
    for (from, to, expected) in WRONG {
        assert!(WHOLE.contains(from), "{from}");
        let Err(errors) = read(&WHOLE.replacen(from, to, 1)) else { panic!("{to} is taken") };
        assert!(errors.iter().any(|error| error.contains(expected)), "{expected}: {errors:#?}");
        assert!(errors.iter().all(|error| !error.contains('\n')), "{errors:#?}");
    }
}

#[test]
fn all_problems_of_a_file_are_said_at_once_by_line() {
    let text = WHOLE
        .replace("seed = 7", "seed = \"x\"")
        .replace("at = [50.05, 7.02]", "at = [95, 7.02]")
        .replace("precedence = \"flash\"", "precedence = \"urgent\"")
        .replace("from = \"b\"", "from = \"nobody\"");
    let errors = read(&text).unwrap_err();
    let lines: Vec<&str> = errors.iter().map(|error| &error[..9]).collect();
    assert_eq!(lines[0], "s.toml:3:");
    for line in ["s.toml:32", "s.toml:59", "s.toml:63"] {
        assert!(lines.contains(&line), "{errors:#?}");
    }
}

#[test]
fn text_that_the_service_does_not_take_is_refused() {
    let long = WHOLE.replace("Move.", &"x".repeat(40_000));
    let errors = read(&long).unwrap_err();
    assert!(
        errors[0].contains("message[1].text: 40000 bytes are over the limit of 32768"),
        "{errors:?}"
    );
    let errors = read(&WHOLE.replace("Move.", "\\u0007")).unwrap_err();
    assert!(errors[0].contains("U+0007 is none of XML's"), "{errors:?}");
    let errors = read(&WHOLE.replace("Move.", "")).unwrap_err();
    assert!(errors[0].contains("message[1].text"), "{errors:?}");
}

#[test]
fn what_is_no_toml_is_said_by_line() {
    let errors = read("title = \"x\"\nduration = \n\nseed = = 1\n").unwrap_err();
    assert!(errors.iter().any(|error| error.starts_with("s.toml:2")), "{errors:?}");
    let errors = read(&WHOLE.replace("seed = 7", "title = \"again\"")).unwrap_err();
    assert!(errors[0].starts_with("s.toml:3: duplicate key"), "{errors:?}");
    assert!(read(&"#".repeat(MAX_SCENARIO_BYTES + 1)).unwrap_err()[0].contains("at most 4194304"));
    assert!(!read(&format!("x = {}", "[".repeat(100_000))).unwrap_err().is_empty());
}

/// Two nodes over an eel file; a third of its own.
const OVER_EEL: &str = r#"title = "eel"
duration = "3 s"
[eel]
file = "two.eel"
step = "1 s"
[[medium]]
name = "wide"
frequency = "2.4 GHz"
path_loss = "eel"
[[node]]
name = "x"
nem = 5
radios = ["wide"]
[[node]]
name = "y"
nem = 2
radios = ["wide"]
"#;

const EEL: &str = "0.0 nem:2 pathloss nem:5,90.0 nem:7,80\n0.0 nem:2 location gps 50.0,7.0,100\n\
                   1.0 nem:2 pathloss nem:5,95.5\n2.0 nem:5 location gps 50.0,7.1,0\n";

#[test]
fn an_eel_file_is_replayed_by_the_scenario_s_numbers() {
    let with = |text: &str, eel: &'static str| {
        let read = move |name: &str, _: usize| -> Result<Vec<u8>, String> {
            if name == "two.eel" { Ok(eel.into()) } else { Err(format!("no {name}")) }
        };
        parse("s.toml", text, &read).map_err(|problems| problems.to_string())
    };
    let resolved = with(OVER_EEL, EEL).unwrap().resolve().unwrap();
    let loss_db =
        |second, from, to| resolved.losses[0].loss_db(Duration::from_secs(second), from, to);
    assert_eq!(
        (loss_db(0, 1, 2), loss_db(1, 1, 2), loss_db(2, 2, 1)),
        (Some(90.0), Some(95.5), Some(95.5))
    );
    assert_eq!(resolved.losses[0].nodes().len(), 2);
    assert!(resolved.scenario.nodes.iter().all(|node| node.track.is_some()));
    for (text, eel, expected) in [
        (OVER_EEL.replace("nem = 5", "nem = 9"), EEL, "s.toml:10: node[1]: nem 9 is on no radio"),
        (OVER_EEL.replace("nem = 5\n", ""), EEL, "node[1]: node x has no 'nem'"),
        (
            OVER_EEL.replace("nem = 2", "nem = 5"),
            EEL,
            "s.toml:14: node[2]: nem 5 is another node's",
        ),
        (OVER_EEL.replace("two.eel", "three.eel"), EEL, "s.toml:4: eel.file: no three.eel"),
        (
            OVER_EEL.to_owned(),
            "0.0 nem:2 pathloss nem:5,90.0\n2.5 nem:2 pathloss nem:5,1\n",
            "two.eel:2: time: nothing happens from 0 s to 2.5 s",
        ),
        (OVER_EEL.to_owned(), "0.0 nem:2 pathloss nem:5,,90.0\n", "two.eel:1: pathloss"),
        (
            OVER_EEL.to_owned(),
            "1.0 nem:2 pathloss nem:5,9\n0.5 nem:2 pathloss nem:5,9\n",
            "two.eel:2: time: 0.5 s comes",
        ),
        (
            OVER_EEL.replace("[eel]\nfile = \"two.eel\"\nstep = \"1 s\"\n", ""),
            EEL,
            "there is no eel file; give [eel]",
        ),
    ] {
        let error = with(&text, eel).unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn tracks_of_files_are_followed_by_name() {
    let gpx = "<gpx><trk><name>x</name><trkseg>\
               <trkpt lat='50' lon='7'><time>2026-03-14T06:00:00Z</time></trkpt>\
               <trkpt lat='50.1' lon='7'><time>2026-03-14T06:00:10Z</time></trkpt></trkseg></trk>\
               <trk><name>other</name><trkseg><trkpt lat='51' lon='7'/></trkseg></trk></gpx>";
    let text = OVER_EEL
        .replace("[eel]\nfile = \"two.eel\"\nstep = \"1 s\"\n", "")
        .replace("path_loss = \"eel\"\n", "")
        .replace("nem = 5", "track = \"two.gpx\"")
        .replace("nem = 2", "track = \"two.gpx\"\ntrack_name = \"other\"");
    let read = move |_: &str, _: usize| -> Result<Vec<u8>, String> { Ok(gpx.into()) };
    let scenario = parse("s.toml", &text, &read).unwrap();
    let at = |node: usize, second| {
        scenario.nodes[node].track.as_ref().unwrap().at(Duration::from_secs(second)).lat_deg
    };
    assert!((at(0, 5) - 50.05).abs() < 1e-9 && (at(1, 5) - 51.0).abs() < 1e-9);
    let unnamed = text.replace("track_name = \"other\"\n", "");
    let problems = parse("s.toml", &unnamed, &read).unwrap_err().to_string();
    assert!(
        problems.contains("there is no track 'y', did you mean 'x'?; say which by 'track_name'"),
        "{problems}"
    );
}

#[test]
fn a_grid_with_holes_is_read_and_refused_where_a_way_goes_past_one() {
    let header = b"rows 3\ncolumns 3\nxmin 7.0\nxmax 7.2\nymin 50.0\nymax 50.2\ndx 0.1\ndy 0.1\n";
    let text = WHOLE.replacen(
        "made = \"ridge\"\ncorner = [50.1, 7.0]\nrows = 100\ncolumns = 100\nstep_deg = 0.001\n\
         seed = 3\n",
        "file = \"g.txt\"\n",
        1,
    );
    let with = |hole: usize| {
        let mut heights: Vec<u8> =
            [100_i16; 9].iter().flat_map(|height| height.to_le_bytes()).collect();
        heights[hole * 2..hole * 2 + 2].copy_from_slice(&i16::MIN.to_le_bytes());
        let read = move |name: &str, _: usize| -> Result<Vec<u8>, String> {
            match name {
                "g.txt" => Ok(header.to_vec()),
                "g.i16le" => Ok(heights.clone()),
                _ => Err(format!("no {name}")),
            }
        };
        parse("s.toml", &text, &read).map_err(|problems| problems.to_string())
    };
    // Far from all nodes in the north-east, and beside all of them in the south-west.
    assert!(with(2).unwrap().resolve().is_ok());
    let error = with(6).unwrap_err();
    assert!(
        error.contains("node[1].at: height grid g.txt has a hole in row 3, column 1"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC*") {
        let _ = read(&text);
    }

    /// A piece of a true scenario left out, doubled or moved.
    #[test]
    fn no_change_makes_it_panic(from in 0..WHOLE.len(), len in 0_usize..200, to in 0..WHOLE.len()) {
        let at = |place: usize| {
            let mut places = (0..=place.min(WHOLE.len())).rev();
            places.find(|at| WHOLE.is_char_boundary(*at)).unwrap()
        };
        let (from, until, to) = (at(from), at(from + len), at(to));
        let piece = &WHOLE[from..until];
        let _ = read(&[&WHOLE[..from], &WHOLE[until..]].concat());
        if let Err(problems) = read(&[&WHOLE[..to], piece, &WHOLE[to..]].concat()) {
            prop_assert!(!problems.is_empty());
        }
    }
}
