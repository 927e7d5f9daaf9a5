//! Links that were dropped leave nothing in the process. Alone in its program, as descriptors are
//! counted.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use std::fs;
use std::io::ErrorKind;

use link::LinkConfig;
use longwire_lab::{Device, Error, Lab, LinkSpec, Options, Privilege, Side};

/// Threads that add and drop, and links that each has at a time.
const THREADS: usize = 4;
const LINKS: usize = 5;

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Adds and drops some links, each with a process on it.
fn come_and_go(lab: &Lab) {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let add = |number| {
                    let name = format!("t{thread}-{number}");
                    lab.add(&LinkSpec::new(name, LinkConfig::default(), 1)).unwrap()
                };
                let links: Vec<_> = (0..LINKS).map(add).collect();
                let start = |side: Side| {
                    let mut sleep = links[0].host(side).command("sleep").unwrap();
                    sleep.arg("1000").spawn().unwrap()
                };
                let sleepers = Side::BOTH.map(start);
                drop(links);
                for mut sleeper in sleepers {
                    assert!(!sleeper.wait().unwrap().success(), "ended with its host");
                }
            });
        }
    });
}

#[test]
fn nothing_is_left_of_links_that_were_dropped() {
    if longwire_lab::acquire(false).ok() != Some(Privilege::Root) {
        println!("skipped: needs root");
        return;
    }
    for device in [Device::Tap, Device::Veth] {
        let before_lab = descriptors();
        let options = Options { device, links_max: THREADS * LINKS, ..Options::default() };
        let lab = match Lab::build_with(&[], &options) {
            Ok(lab) => lab,
            Err(error @ Error::Machine { .. }) => {
                println!("skipped: {error}");
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let before = descriptors();
        match lab.add(&LinkSpec::default()) {
            Ok(link) => drop(link),
            Err(error @ Error::Machine { .. }) => {
                println!("skipped: {error}");
                continue;
            }
            Err(error) => panic!("{error}"),
        }
        for _ in 0..3 {
            come_and_go(&lab);
            assert_eq!(descriptors(), before, "{}", device.name());
        }
        // Paths of namespaces are those of descriptors: closed, they lead nowhere.
        let link = lab.add(&LinkSpec::default()).unwrap();
        let path = link.host(Side::A).namespace().path();
        drop(lab);
        assert!(fs::metadata(&path).is_ok(), "a link outlives its lab");
        drop(link);
        assert_eq!(fs::metadata(&path).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(descriptors(), before_lab, "{}", device.name());
    }
}
