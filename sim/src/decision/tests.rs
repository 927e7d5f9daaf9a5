use decide::arm::{Prior, Speed};
use decide::prior;
use link::LinkConfig;

use super::*;

const EXTENT: Extent = Extent { seeds: 12, messages: 35, warm_up: 20 };

/// Encodings as real ones are: the share that they leave, and megabytes a second.
const ARMS: [(&str, f64, f64, f64); 5] = [
    ("identity", 1.0, f64::INFINITY, f64::INFINITY),
    ("deflate:6", 0.17, 200.0, 1000.0),
    ("zstd:1", 0.19, 900.0, 1500.0),
    ("zstd:19", 0.14, 4.0, 900.0),
    ("xmill:1", 0.09, 100.0, 400.0),
];

fn class(bytes: f64) -> Workload {
    let message = |scale: f64| {
        let bytes = bytes * scale;
        let coded = |&(_, share, encode, decode): &(&str, f64, f64, f64)| {
            let fixed = if share < 1.0 { 2e-5 } else { 0.0 };
            Coded {
                bytes: (bytes * share).ceil(),
                encode_s: fixed + bytes * 1e-6 / encode,
                decode_s: fixed + bytes * 1e-6 / decode,
            }
        };
        Message {
            name: format!("class.{scale}"),
            bytes,
            head_share: 0.25,
            coded: ARMS.iter().map(coded).collect(),
        }
    };
    Workload {
        arms: ARMS.map(|arm| arm.0.to_owned()).to_vec(),
        messages: [1.0, 0.8, 0.6].map(message).to_vec(),
    }
}

/// As at a start: sizes from the table of priors, speeds within a factor.
fn priors() -> Vec<Prior> {
    let speed = |megabytes_per_s: f64| match megabytes_per_s.is_finite() {
        true => Speed { fixed_s: 2e-5, per_byte_s: 0.8e-6 / megabytes_per_s },
        false => Speed::NONE,
    };
    let of = |&(name, _, encode, decode): &(&str, f64, f64, f64)| Prior {
        encode: speed(encode),
        decode: speed(decode),
        ..prior::of(name).unwrap()
    };
    ARMS.iter().map(of).collect()
}

fn regret(class: &Workload, network: &str, slower: f64, chooser: Chooser) -> Regret {
    let priors: Vec<Prior> = priors()
        .into_iter()
        .map(|prior| {
            let times = |speed: Speed| Speed {
                fixed_s: speed.fixed_s * slower,
                per_byte_s: speed.per_byte_s * slower,
            };
            Prior { encode: times(prior.encode), decode: times(prior.decode), ..prior }
        })
        .collect();
    let setting = Setting { slower, class, profile: class, nam_arms: &[0, 1, 4], priors: &priors };
    let link = LinkConfig::preset(network).unwrap();
    let fixed = FixedRuns::new(setting, &link, EXTENT, &[slower]);
    judge(&setting, &link, &fixed, chooser)
}

#[test]
fn ours_is_near_the_oracle_wherever_it_is_put() {
    let mut all = Vec::new();
    for bytes in [800.0, 20e3, 500e3] {
        for network in ["nam-lan", "nam-us", "satcom", "wifi1", "cnr"] {
            for slower in [1.0, 30.0] {
                let found = regret(&class(bytes), network, slower, Chooser::Ours);
                let cell = format!("{bytes} {network} {slower}: {found:?}");
                assert!(found.relative < 0.1 && found.fixed_low < 0.05, "{cell}");
                all.push(found.relative);
            }
        }
    }
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    assert!(mean < 0.03, "{mean}");
}

#[test]
fn what_is_judged_differs_where_it_must() {
    let large = class(500e3);
    let plain = regret(&large, "satcom", 1.0, Chooser::Fixed(0));
    assert!(plain.relative > 2.0, "{plain:?}");
    assert_eq!(ARMS[plain.best_arm].0, "xmill:1");
    let fast = regret(&large, "nam-lan", 64.0, Chooser::Fixed(4));
    assert!(fast.relative > 2.0 && fast.best_arm == 0, "{fast:?}");
}

#[test]
fn huge_answers_on_a_fast_link_are_no_slower_than_as_they_are() {
    let found = regret(&class(20e6), "nam-lan", 64.0, Chooser::Ours);
    assert!(found.identity < 0.02, "{found:?}");
}

/// From what small messages showed, far too much is hoped of the link; what the first large one
/// takes shows what it can, and is no news of that.
#[test]
fn a_time_met_while_the_link_turned_out_to_be_another_is_not_held_against_it() {
    let mut class = class(2.9e6);
    class.messages.iter_mut().for_each(|message| message.coded[2].bytes *= 0.3);
    let found = regret(&class, "nam-sc", 64.0, Chooser::Ours);
    assert!(ARMS[found.best_arm].0 == "identity" && found.relative < 0.05, "{found:?}");
}

#[test]
fn a_link_that_changes_is_followed() {
    let (class, priors) = (class(30e3), priors());
    let setting =
        Setting { slower: 1.0, class: &class, profile: &class, nam_arms: &[0], priors: &priors };
    let links = ["nam-lan", "satcom", "los"].map(|name| LinkConfig::preset(name).unwrap());
    let links: Vec<&LinkConfig> = links.iter().collect();
    let found = drift(&setting, &links, (20, 10), 5, Chooser::Ours);
    for part in found.relative.chunks(20) {
        let after = part[10..].iter().sum::<f64>() / 10.0;
        assert!(after < 0.1, "{found:?}");
    }
}

#[test]
fn a_table_is_read_as_it_was_written() {
    let workload = class(5e3);
    let read = Workload::read(&workload.write()).unwrap();
    assert_eq!((read.arms.len(), read.messages.len()), (ARMS.len(), 3));
    assert_eq!(read.messages[1].coded[2].bytes, workload.messages[1].coded[2].bytes);
    assert_eq!(read.classes().len(), 1);
    let table = workload.write();
    for wrong in
        [table.replacen("zstd:1\t", "zstd:2\t", 1), table.replace('\t', " "), table + "x\t1"]
    {
        assert!(Workload::read(&wrong).is_err(), "{wrong}");
    }
}
