//! Anything fails: members hold the same in the end, and nothing that is to arrive once arrives
//! twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::net::Net;
use crate::publication::Grade;

/// Seeds without a word from `LONGWIRE_MESH_SEEDS`, so that the test takes seconds.
const SEEDS: u64 = 300;
const MAX_MEMBERS: usize = 16;
/// Events of a run.
const MAX_EVENTS: usize = 60;
/// From the end of all failures until everybody holds the same.
const HEAL: Duration = Duration::from_secs(75);

/// One thing happens.
fn happen(net: &mut Net, number: &mut usize) {
    let count = net.nodes.len();
    let (at, other) = (net.chance.below(count), net.chance.below(count));
    match net.chance.below(20) {
        0..=7 => {
            *number += 1;
            let (topic, payload) = (net.chance.below(4), format!("{at} {number}"));
            let grade = u8::try_from(net.chance.below(3)).unwrap();
            net.publish(at, &format!("e/{topic}"), &payload, (grade, false));
        }
        8..=12 => {
            *number += 1;
            let topic = net.chance.below(6);
            let is_end = net.chance.is(4);
            let payload = if is_end { String::new() } else { format!("{at} {number}") };
            let grade = u8::try_from(net.chance.below(3)).unwrap();
            net.publish(at, &format!("s/{topic}"), &payload, (grade, true));
        }
        13 | 14 if at != other => {
            let is_cut = !net.cut.contains(&(at.min(other), at.max(other)));
            net.set_cut(at, other, is_cut);
        }
        15 => {
            // All members fall into two parts, or all find each other again.
            let is_cut = net.chance.is(2);
            let border = net.chance.below(count);
            for one in 0..border {
                for other in border..count {
                    net.set_cut(one, other, is_cut);
                }
            }
        }
        16 | 17 if net.nodes[at].mesh.is_some() => {
            let lose = net.chance.is(4);
            net.stop(at, lose);
        }
        18 if net.nodes[at].mesh.is_none() => {
            // Its clock may have jumped by hours meanwhile.
            let ahead_ms = i64::try_from(net.chance.below(20_000_000)).unwrap() - 10_000_000;
            net.nodes[at].ahead_ms = ahead_ms;
            net.start(at);
        }
        19 if at != other => {
            // A key changes at one side, which the other learns of later.
            net.nodes[at].keys[other] = net.chance.next();
            net.stop(at, false);
            net.start(at);
        }
        _ => {}
    }
}

/// Everything works again.
fn heal(net: &mut Net) {
    let count = net.nodes.len();
    net.cut.clear();
    for at in 0..count {
        let keys: Vec<u64> = (0..count).map(|other| (at * other) as u64).collect();
        let has_changed = net.nodes[at].keys != keys;
        net.nodes[at].keys = keys;
        if has_changed && net.nodes[at].mesh.is_some() {
            net.stop(at, false);
        }
        if net.nodes[at].mesh.is_none() {
            net.start(at);
        }
    }
    net.run(HEAL);
}

fn subscribe(net: &mut Net) {
    for at in 0..net.nodes.len() {
        for filter in ["e/0", "e/1", "e/+", "s/#", "s/1"] {
            if net.chance.is(2) {
                net.want(at, filter);
            }
        }
    }
    net.run(Duration::from_secs(5));
}

fn run(seed: u64) -> Net {
    let count = 2 + usize::try_from(seed % (MAX_MEMBERS as u64 - 1)).unwrap();
    let mut net = Net::new(count, seed);
    subscribe(&mut net);
    let mut number = 0;
    for _ in 0..MAX_EVENTS {
        happen(&mut net, &mut number);
        let pause = net.chance.below(12) as u64 * 100;
        net.run(Duration::from_millis(pause));
    }
    heal(&mut net);
    net
}

fn wants(filters: &BTreeSet<Arc<str>>, topic: &str) -> bool {
    filters.iter().any(|filter| crate::filter::matches(filter, topic))
}

/// All hold the same states: the machines, and the brokers behind them.
fn check_states(net: &Net, seed: u64) {
    let first = net.states(0);
    for at in 0..net.nodes.len() {
        let own = net.states(at);
        assert_eq!(own, first, "seed {seed}: {at} and 0: {:?}", net.nodes[at].refused);
        let retained: BTreeMap<_, _> = net.nodes[at]
            .retained
            .iter()
            .map(|(topic, held)| (topic.clone(), held.payload.clone()))
            .collect();
        assert_eq!(retained, first, "seed {seed}: the broker of {at}");
    }
}

/// Nothing twice, in its publisher's order, and all of it where nobody has lost a disk.
fn check_events(net: &Net, seed: u64) {
    for (at, node) in net.nodes.iter().enumerate() {
        let mut last: BTreeMap<(String, Arc<str>), u64> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for got in &node.got {
            let text = String::from_utf8(got.payload.to_vec()).unwrap();
            let Some((publisher, number)) = text.split_once(' ') else { continue };
            let is_new = seen.insert(text.clone());
            // Who has lost its disk learns the states anew.
            let may_repeat = got.grade == Grade::AtLeastOnce || node.has_lost && got.retain;
            assert!(is_new || may_repeat, "seed {seed}: {at} twice: {got:?}");
            let number: u64 = number.parse().unwrap();
            let before = last.insert((publisher.to_owned(), got.topic.clone()), number);
            let is_behind = before.is_none_or(|before| before < number);
            assert!(is_behind || node.has_lost, "seed {seed}: {at}: {got:?} behind {before:?}");
        }
        for (from, publisher) in net.nodes.iter().enumerate() {
            if from == at || node.has_lost || publisher.has_lost {
                continue;
            }
            for one in &publisher.accepted {
                let is_due = one.grade > Grade::AtMostOnce && !one.retain;
                if !is_due || !wants(&node.wants, &one.topic) {
                    continue;
                }
                let text = String::from_utf8(one.payload.to_vec()).unwrap();
                assert!(seen.contains(&text), "seed {seed}: {at} misses {text} of {}", one.topic);
            }
        }
    }
}

#[test]
fn whatever_fails_all_hold_the_same_and_nothing_comes_twice() {
    let said = std::env::var("LONGWIRE_MESH_SEEDS").ok().and_then(|text| text.parse().ok());
    let (mut states, mut got) = (0, 0);
    for seed in 1..=said.unwrap_or(SEEDS) {
        let net = run(seed);
        check_states(&net, seed);
        check_events(&net, seed);
        states += net.states(0).len();
        got += net.nodes.iter().map(|node| node.got.len()).sum::<usize>();
    }
    assert!(states > 0 && got > 0, "nothing has happened");
}
