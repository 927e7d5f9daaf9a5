//! The instrument sees what it is there to see. Needs root; without it, says so and passes.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests may fail them")]

use std::time::Duration;

use lab::{Device, Lab, LinkSpec, Options, Privilege, Side};
use link::LinkConfig;
use longwire_bench::probe::{Flow, Plan, Stamps, Trace, is_intact, run};

const PACKETS: u32 = 100;
const COUNT: usize = PACKETS as usize;

/// One trace for each link; none where the machine does not permit labs.
fn probe(device: Device, links: &[&[&str]]) -> Option<Vec<Trace>> {
    if lab::acquire(false).ok() != Some(Privilege::Root) {
        println!("skipped: needs root");
        return None;
    }
    let spec = |(index, settings): (usize, &&[&str])| {
        let mut config = LinkConfig::default();
        config.apply(settings, |_| Err("no files".to_string())).unwrap();
        LinkSpec::new(format!("l{index}"), config, 1)
    };
    let specs: Vec<LinkSpec> = links.iter().enumerate().map(spec).collect();
    let lab = match Lab::build_with(&specs, &Options { device, ..Options::default() }) {
        Err(error @ lab::Error::Machine { .. }) => {
            println!("skipped: {error}");
            return None;
        }
        other => other.unwrap(),
    };
    assert_ne!(lab.host(0, Side::A).address(), lab.host(0, Side::B).address());
    let flow =
        |link| Flow { link, packet_bytes: 100, stamped: true, captured: true, expected: None };
    let flows = (0..links.len()).map(flow).collect();
    let schedule = (0..PACKETS)
        .flat_map(|number| {
            (0..links.len()).map(move |flow| (Duration::from_millis(2) * number, flow))
        })
        .collect();
    Some(run(&lab, &Plan { flows, schedule, quiet: Duration::from_millis(500) }).unwrap())
}

#[test]
fn every_fault_of_a_link_shows_in_its_own_trace() {
    for device in [Device::Tap, Device::Veth] {
        let links: [&[&str]; 5] =
            [&[], &["loss=100 %"], &["duplicate=100 %"], &["corrupt=100 %"], &["delay=40 ms"]];
        let Some(traces) = probe(device, &links) else { return };
        let [plain, lost, doubled, corrupt, delayed] = &traces[..] else { panic!("five traces") };
        for trace in &traces {
            assert_eq!(trace.stamps(), Stamps::Kernel);
            assert!(trace.left_ns.iter().all(Option::is_some), "a packet without a stamp");
            assert!(trace.left_ns.iter().zip(&trace.handed_ns).all(|(l, h)| l.unwrap() >= *h));
        }
        assert_eq!(plain.copies(), [1; COUNT]);
        assert_eq!(plain.travel_times_ns().len(), COUNT);
        assert!(plain.travel_times_ns().iter().all(|travel| *travel > 0));
        assert!(plain.captured.len() == COUNT && plain.captured.iter().all(|p| is_intact(p)));
        assert_eq!(lost.copies(), [0; COUNT]);
        assert_eq!(doubled.copies(), [2; COUNT]);
        assert_eq!(corrupt.captured.len(), COUNT);
        assert!(!corrupt.captured.iter().any(|packet| is_intact(packet)));
        assert!(corrupt.arrivals.is_empty(), "the kernel let a corrupt packet through");
        assert!(delayed.travel_times_ns().iter().all(|travel| *travel >= 40_000_000));
    }
}
