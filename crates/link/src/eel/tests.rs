use super::*;
use proptest::prelude::*;

const GOOD: &str = "# a scenario\n\
    0.0  nem:1 pathloss nem:2,90 nem:3,0.0,80.5 \n\
    0.0\tnem:1 location gps 40.03,-74.52,3.000000\n\
    \n\
    0.0 nem:4 velocity 180.0,0.0,10.0 # north\n\
    1.5 nem:2 pathloss \"nem:3,75\"\n\
    1.5 nem:1 commeffect nem:2,0.5,0.1,25,1,64000,0\n\
    2 nem:1 location gps 40.04,-74.52,3\n\
    2 nem:1 location gps 40.05,-74.52,3\n";

fn s(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

#[test]
fn events_are_read() {
    let eel = Eel::parse("good.eel", GOOD).unwrap();
    let loss_db = |at: f64, from, to| eel.losses.loss_db(s(at), from, to);
    assert_eq!((loss_db(0.0, 1, 2), loss_db(9.0, 2, 1)), (Some(90.0), Some(90.0)));
    assert_eq!((loss_db(0.0, 1, 3), loss_db(0.0, 3, 1)), (Some(0.0), Some(80.5)));
    assert_eq!((loss_db(1.4, 2, 3), loss_db(1.5, 2, 3)), (None, Some(75.0)));
    let track = &eel.tracks[&1];
    assert_eq!((track.at(s(1.9)).lat_deg, track.at(s(2.0)).lat_deg), (40.03, 40.05));
    assert_eq!(eel.others.into_iter().collect::<Vec<_>>(), [("velocity", 1)]);
    let effect = CommEffect {
        at: s(1.5),
        from: 1,
        to: 2,
        latency: s(0.5),
        jitter: s(0.1),
        loss: 0.25,
        duplicate: 0.01,
        unicast_bps: Some(64_000),
        broadcast_bps: None,
    };
    assert_eq!(eel.effects, [effect]);
}

#[test]
fn losses_read_back_from_their_own_text() {
    let losses = Eel::parse("good.eel", GOOD).unwrap().losses;
    let again = Eel::parse("again.eel", &losses.to_eel()).unwrap().losses;
    for at in [0.0, 1.0, 1.5, 9.0] {
        for (from, to) in [(1, 2), (2, 1), (1, 3), (3, 1), (2, 3), (3, 2)] {
            assert_eq!(again.loss_db(s(at), from, to), losses.loss_db(s(at), from, to));
        }
    }
}

#[test]
fn bad_lines_are_refused_by_line_and_field() {
    for (line, expected) in [
        ("0.0", "field 'module': is missing"),
        ("0.0 nem:1", "field 'event': is missing"),
        ("x nem:1 pathloss nem:2,1", "field 'time': 'x' is no time"),
        ("-1 nem:1 pathloss nem:2,1", "field 'time': '-1' is no time"),
        ("0.0 nem:0 pathloss nem:2,1", "field 'module': 'nem:0' is no node"),
        ("0.0 node1 pathloss nem:2,1", "field 'module': 'node1' is no node"),
        ("0.0 nem:1 pathlos nem:2,1", "field 'event': did you mean 'pathloss'?"),
        ("0.0 nem:1 pathloss", "field 'pathloss': has no entry"),
        ("0.0 nem:1 pathloss nem:2", "field 'pathloss nem:2': has 0 values"),
        ("0.0 nem:1 pathloss nem:2,", "field 'pathloss nem:2,': has a gap"),
        ("0.0 nem:1 pathloss nem:2,,80", "field 'pathloss nem:2,,80': has a gap"),
        ("0.0 nem:1 pathloss nem:2,a", "'a' is no number"),
        ("0.0 nem:1 pathloss nem:2,-3", "a path loss of -3 dB"),
        ("0.0 nem:1 pathloss nem:1,3", "is about the node itself"),
        ("0.0 nem:1 pathloss nem:2,1,2,3", "has 3 values after the node: give 1 to 2"),
        ("0.0 nem:1 location 1,2,3", "field 'location': give 'gps"),
        ("0.0 nem:1 location gps 1,2", "field 'location gps': has 2 values"),
        ("0.0 nem:1 location gps 1,,3", "field 'location gps': has a gap"),
        ("0.0 nem:1 location gps 91,2,3", "field 'location gps': latitude 91"),
        ("0.0 nem:1 commeffect nem:2,1,1,101,0,0,0", "loss 101 is out of range"),
        ("0.0 nem:1 commeffect nem:2,1,1", "has 2 values after the node: give 6"),
        ("0.0 nem:1 pathloss \"nem:2,1", "has a quote without its second one"),
    ] {
        let text = format!("0.0 nem:1 pathloss nem:2,1\n{line}\n");
        let error = Eel::parse("bad.eel", &text).unwrap_err().to_string();
        assert!(error.contains("eel bad.eel line 2") && error.contains(expected), "{error}");
    }
    let error = Eel::parse("bad.eel", &format!("{GOOD}1 nem:1 pathloss nem:2,1\n")).unwrap_err();
    assert!(error.to_string().contains("line 10 field 'time': 1 s comes after 2 s"), "{error}");
}

#[test]
fn gaps_and_nodes_on_no_radio_are_found() {
    let eel = Eel::parse("good.eel", GOOD).unwrap();
    assert_eq!(eel.check_steps(s(1.5)), Ok(()));
    let error = eel.check_steps(s(1.0)).unwrap_err().to_string();
    assert!(error.contains("line 6 field 'time': nothing happens from 0 s to 1.5 s"), "{error}");
    assert_eq!(eel.check_nodes([1, 2, 3]), Ok(()));
    let error = eel.check_nodes([1, 2, 7]).unwrap_err().to_string();
    assert!(error.contains("eel good.eel field 'nem:7': is on no radio"), "{error}");
}

proptest! {
    /// Any line after good ones is read or refused in one line of text.
    #[test]
    fn hostile_lines_do_no_harm(line in ".{0,100}", at in 0..200_usize) {
        let start = at.min(GOOD.len());
        let edited = format!("{}{line}{}", &GOOD[..start], &GOOD[start..]);
        for text in [format!("{GOOD}{line}"), edited] {
            if let Err(error) = Eel::parse("x", &text) {
                prop_assert_eq!(error.to_string().lines().count(), 1);
            }
        }
    }
}
