//! Two relays in virtual time, thousands of seeds: every accepted request is answered once, in
//! full, or reported; none is forwarded twice.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Tests.

use longwire_sim::{Moods, Report, World};

/// Seeds per mood in `make test`; `LONGWIRE_SEEDS` asks for more.
const SEEDS: u64 = 10_000;

const CALM: Moods = Moods {
    breaks: false,
    restarts: false,
    swaps: false,
    shutdowns: false,
    aborts: false,
    slow: false,
    datagrams: false,
    outages: false,
    blocked: false,
};

fn seeds() -> u64 {
    std::env::var("LONGWIRE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS)
}

fn live(seeds: std::ops::Range<u64>, moods: Moods) -> Report {
    let threads = std::thread::available_parallelism().map_or(2, usize::from) as u64;
    let mut total = Report::default();
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|part| {
                let seeds = seeds.clone();
                scope.spawn(move || {
                    let mut sum = Report::default();
                    for seed in seeds.filter(|seed| seed % threads == part) {
                        let world = std::panic::catch_unwind(|| World::new(seed, moods).live());
                        let report = world.unwrap_or_else(|_| panic!("seed {seed}, {moods:?}"));
                        add(&mut sum, &report);
                    }
                    sum
                })
            })
            .collect();
        for part in parts {
            add(&mut total, &part.join().unwrap());
        }
    });
    println!("{moods:?}: {total:?}");
    total
}

fn add(sum: &mut Report, report: &Report) {
    sum.requests += report.requests;
    sum.answered += report.answered;
    sum.left += report.left;
    sum.early += report.early;
    sum.tunnels += report.tunnels;
    sum.ahead += report.ahead;
    sum.datagrams += report.datagrams;
    for (kind, count) in &report.routed {
        *sum.routed.entry(kind.clone()).or_default() += count;
    }
    sum.took = sum.took.max(report.took);
    for (cause, count) in &report.failed {
        *sum.failed.entry(cause).or_default() += count;
    }
}

#[test]
fn where_nothing_goes_wrong_everything_is_answered() {
    let report = live(0..seeds() / 4, Moods { slow: true, ..CALM });
    let refused = report.failed.get("limit").copied().unwrap_or(0);
    assert_eq!(report.answered + refused, report.requests, "{report:?}");
    assert!(report.early > 0 && report.tunnels > 0, "{report:?}");
}

#[test]
fn a_gateway_that_shuts_down_in_good_order_loses_nothing() {
    let report = live(0..seeds() / 4, Moods { shutdowns: true, slow: true, ..CALM });
    let failed = |cause| report.failed.get(cause).copied().unwrap_or(0);
    let refused = failed("limit") + failed("not_forwarded") + failed("gateway_unreachable");
    assert_eq!(report.answered + refused, report.requests, "{report:?}");
    assert!((refused - failed("limit")) * 20 < report.requests, "{report:?}");
}

#[test]
fn clients_that_leave_and_origins_that_break_harm_nobody_else() {
    let report = live(0..seeds() / 4, Moods { aborts: true, slow: true, ..CALM });
    assert!(report.left > 0 && report.failed.contains_key("origin_failed"), "{report:?}");
}

#[test]
fn broken_carriers_lose_nothing_silently() {
    let report = live(0..seeds() / 4, Moods { breaks: true, ..CALM });
    assert!(report.answered * 10 > report.requests * 5, "{report:?}");
    assert!(report.ahead > 0, "{report:?}");
}

/// What goes ahead of a gateway's HELLO may reach one that is not the one before, or none.
#[test]
fn gateways_that_change_between_carriers_get_nothing_twice_that_changes_anything() {
    let moods = Moods { breaks: true, restarts: true, swaps: true, aborts: true, ..CALM };
    let report = live(0..seeds() / 2, moods);
    assert!(report.ahead * 20 > report.requests, "{report:?}");
    assert!(report.answered * 10 > report.requests * 5, "{report:?}");
}

#[test]
fn outages_shorter_than_anybodys_patience_cost_nothing_but_time() {
    let report = live(0..seeds() / 4, Moods { outages: true, slow: true, ..CALM });
    let failed = |cause| report.failed.get(cause).copied().unwrap_or(0);
    // Where a request was repeated and there was no room for it then, the outcome is not known.
    let refused = failed("limit") + failed("outcome_unknown");
    assert_eq!(report.answered + refused, report.requests, "{report:?}");
    assert!(failed("outcome_unknown") * 1000 < report.requests, "{report:?}");
}

/// The carriers over datagrams, alone and beside the stream: burst, QUIC, and one that no file of
/// the relay knows of. CoAP, over datagrams and bytes, is beside a stream in some worlds too.
#[test]
fn carriers_over_datagrams_take_their_share_and_lose_nothing() {
    let report = live(0..seeds() / 4, Moods { datagrams: true, ..CALM });
    let failed = |cause| report.failed.get(cause).copied().unwrap_or(0);
    let refused = failed("limit") + failed("outcome_unknown");
    assert_eq!(report.answered + refused, report.requests, "{report:?}");
    assert!(failed("outcome_unknown") * 1000 < report.requests, "{report:?}");
    let routed = |kind| report.routed.get(kind).copied().unwrap_or(0);
    let kinds = ["datagram", "burst", "quic", "stream"].map(routed);
    assert!(kinds.iter().all(|count| count * 40 > kinds.iter().sum()), "{report:?}");
}

#[test]
fn carriers_of_two_kinds_lose_nothing_silently_whatever_goes_wrong() {
    let moods = Moods {
        breaks: true,
        restarts: true,
        swaps: false,
        shutdowns: true,
        aborts: true,
        slow: true,
        datagrams: true,
        outages: true,
        blocked: false,
    };
    let report = live(0..seeds() / 2, moods);
    assert!(report.datagrams > report.requests, "{report:?}");
    for cause in ["outcome_unknown", "carrier_lost", "not_forwarded"] {
        assert!(report.failed.contains_key(cause), "no seed led to {cause}: {report:?}");
    }
}

/// Where datagrams stop to pass, a stream takes what was under way, and what comes.
#[test]
fn where_datagrams_are_blocked_a_stream_takes_their_place() {
    let report = live(0..seeds() / 4, Moods { datagrams: true, blocked: true, ..CALM });
    assert!(report.answered * 100 > report.requests * 90, "{report:?}");
}

#[test]
fn everything_at_once() {
    let moods = Moods {
        breaks: true,
        restarts: true,
        swaps: false,
        shutdowns: true,
        aborts: true,
        slow: true,
        datagrams: false,
        outages: true,
        blocked: false,
    };
    let report = live(0..seeds(), moods);
    for cause in ["outcome_unknown", "carrier_lost", "not_forwarded"] {
        assert!(report.failed.contains_key(cause), "no seed led to {cause}: {report:?}");
    }
}
