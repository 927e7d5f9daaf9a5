//! The project's own scenarios are what they say they are.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests may fail them")]

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use link::eel::Eel;
use link::net::{HopCounts, Resolved};
use longwire_services::scenario::parse;

fn project() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios"))
}

fn data() -> PathBuf {
    let root = std::env::var_os("LONGWIRE_DATA").map(PathBuf::from);
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    root.unwrap_or_else(default)
}

fn resolved(name: &str) -> Resolved {
    let path = project().join(format!("{name}.toml"));
    let text = fs::read_to_string(&path).unwrap();
    let read = |name: &str, _: usize| {
        fs::read(data().join(name)).map_err(|error| format!("{name}: {error}"))
    };
    let scenario = parse(&path.to_string_lossy(), &text, &read);
    scenario.map_err(|problems| problems.to_string()).unwrap().resolve().unwrap()
}

/// IST-150's: two platoons of five, 97 messages of which 17 go from one to the other, and these
/// over the narrowband net, which fades now and then.
#[test]
fn the_platoons_send_97_messages_of_which_17_cross_the_narrowband_net() {
    let resolved = resolved("ist150-platoons");
    let scenario = &resolved.scenario;
    let sizes: Vec<usize> = scenario.groups.iter().map(|group| group.nodes.len()).collect();
    assert_eq!((sizes.as_slice(), scenario.messages.len()), (&[5, 5][..], 97));
    let group = |node| scenario.group_of(node).unwrap().name.as_str();
    let narrow = scenario.media.iter().position(|net| net.name == "narrow").unwrap();
    assert_eq!(scenario.members(narrow).count(), 2);
    let (mut crossing, mut unreachable) = (0, 0);
    for message in &scenario.messages {
        let receivers = scenario.receivers(message);
        assert_eq!(receivers.len(), 1, "{message:?}");
        let is_crossing = group(message.from) != group(receivers[0]);
        crossing += i32::from(is_crossing);
        match resolved.routes(message.at).path(message.from, receivers[0]) {
            Some(path) => {
                let is_narrow = path.iter().any(|hop| hop.medium == narrow);
                assert_eq!(is_narrow, is_crossing, "{message:?}: {path:?}");
            }
            None => {
                assert!(is_crossing, "{message:?}");
                unreachable += 1;
            }
        }
    }
    let steps: Vec<Duration> = resolved.steps().collect();
    let is_up = |at: &Duration| resolved.links(*at).iter().any(|link| link.medium == narrow);
    let up: Vec<bool> = steps.iter().map(is_up).collect();
    let outages: Vec<usize> =
        up.split(|is_up| *is_up).map(<[bool]>::len).filter(|seconds| *seconds > 0).collect();
    let share = up.iter().filter(|is_up| **is_up).count() as f64 / up.len() as f64;
    println!(
        "{crossing} cross, {unreachable} of them in an outage; the narrowband net is up {:.0} % of \
         the time, outages of {outages:?} s",
        100.0 * share
    );
    assert_eq!(crossing, 17);
    assert!((0.5..0.95).contains(&share), "{share}");
    assert!(outages.len() >= 2 && outages.iter().all(|seconds| *seconds <= 40), "{outages:?}");
}

/// The adapted Anglova scenario of IST-150 has 2.5 hops on average and 7 at the most.
#[test]
fn six_companies_are_about_two_and_a_half_hops_apart_and_seven_at_most() {
    let resolved = resolved("six-companies");
    assert!(resolved.scenario.nodes.len() >= 80 && resolved.scenario.groups.len() >= 6);
    let mut sum = HopCounts::default();
    for (at, counts) in resolved.hops() {
        let share = counts.connected() as f64 / counts.pairs as f64;
        assert!(share > 0.8, "{at:?}: {share}");
        sum.add(&counts);
    }
    let share = sum.connected() as f64 / sum.pairs as f64;
    println!("{:.3} hops on average, {} at most, {share:.3} connected", sum.mean(), sum.max());
    println!("{:?}", sum.by_hops);
    assert!((2.25..=2.75).contains(&sum.mean()), "{}", sum.mean());
    assert_eq!(sum.max(), 7);
    assert!(share > 0.95, "{share}");
}

/// EMANE's tutorial resolves to its own path losses, each of them.
#[test]
fn emane_s_tutorial_is_a_scenario_with_its_own_path_losses() {
    let file = data().join("radio_traces/emane_tutorial/scenario/scenario.eel");
    let Ok(text) = fs::read_to_string(&file) else {
        println!("skipped 1 case: no {}", file.display());
        return;
    };
    let eel = Eel::parse("tutorial", &text).unwrap();
    let resolved = resolved("emane-tutorial");
    assert_eq!(resolved.losses[0], eel.losses);
    assert_eq!(resolved.losses[0].changes().len(), 162_000);
    for (nem, track) in &eel.tracks {
        assert_eq!(resolved.scenario.node(*nem).unwrap().track.as_ref(), Some(track));
    }
    let mut sum = HopCounts::default();
    resolved.hops().step_by(30).for_each(|(_, counts)| sum.add(&counts));
    let fingerprint = resolved.fingerprint();
    println!("{fingerprint:016x}: {:.2} hops on average, {} at most", sum.mean(), sum.max());
    assert!(sum.connected() > 0);
}

#[test]
fn a_fingerprint_is_the_same_each_time() {
    let [a, b] = [(), ()].map(|()| resolved("ist150-platoons").fingerprint());
    assert_eq!(a, b);
}
