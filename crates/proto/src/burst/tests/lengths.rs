//! Paths that swallow datagrams for their length, and say nothing.

use super::*;

/// Without loss, at a rate that leaves the time to the round trips.
const QUICK: Link = Link { bits_per_s: 10e6, loss: 0.0, ..WIFI2 };

/// Exchanges of both directions in turn, each of so many bytes; how long each took.
fn exchanges(world: &mut World, from: u64, count: u64, bytes: usize) -> Vec<Duration> {
    let mut took = Vec::new();
    for exchange in (from..).take(count as usize) {
        for end in 0..2 {
            let began = world.now;
            let expected = message(exchange, bytes);
            let before = world.got[1 - end].len();
            world.send(end, expected.clone());
            world.until(1 - end, before + expected.len());
            assert_eq!(&world.got[1 - end][before..], expected);
            took.push(world.now - began);
        }
    }
    took
}

/// Nothing is sent for a while.
fn idle(world: &mut World, lasts: Duration) {
    let until = world.now + lasts;
    let next = |world: &World| {
        let coming = world.coming.keys().next().map(|(at, _)| *at);
        world.wakes.into_iter().chain([coming]).flatten().min()
    };
    while next(world).is_some_and(|at| at < until) {
        assert!(world.step());
    }
    world.now = until;
}

#[test]
fn a_path_that_swallows_long_datagrams_is_found_out() {
    for (bytes, loss, passes) in
        [(600, 0.0, 600), (20_000, 0.0, 600), (200_000, 0.0, 1100), (20_000, 0.2, 900)]
    {
        for seed in 1..40 {
            let mut world = World::new(Link { loss, ..QUICK }, seed);
            world.passes = passes;
            world.greet();
            let took = exchanges(&mut world, 1, 10, bytes);
            let longest = took.iter().max().unwrap();
            assert!(*longest < Duration::from_secs(20), "{bytes} {loss} {seed}: {took:?}");
            // From the second on the path is known.
            let mut later: Vec<&Duration> = took[2..].iter().collect();
            later.sort();
            let median = *later[later.len() / 2];
            assert!(median < Duration::from_secs(2), "{bytes} {loss} {seed}: {took:?}");
        }
    }
}

#[test]
fn what_is_under_way_survives_a_path_that_shrinks_and_widens() {
    for seed in 1..40 {
        let mut world = World::greeted(Link { loss: 0.05, ..QUICK }, seed);
        let expected = message(1, 2_000_000);
        world.send(0, expected.clone());
        world.until(1, 10);
        world.passes = 560;
        world.until(1, 60);
        world.passes = MAX_DATAGRAM_BYTES;
        world.until(1, expected.len());
        assert_eq!(world.got[1], expected, "{seed}");
    }
}

#[test]
fn long_datagrams_are_tried_again_where_they_were_swallowed() {
    let mut world = World::greeted(QUICK, 1);
    world.passes = 600;
    exchanges(&mut world, 1, 3, 20_000);
    // Still so: each time it is tried the path is found out sooner than at first.
    for exchange in 0..10 {
        idle(&mut world, Duration::from_secs(45));
        let took = exchanges(&mut world, 100 + exchange, 1, 20_000);
        assert!(took.iter().all(|took| *took < Duration::from_secs(3)), "{took:?}");
    }
    world.passes = MAX_DATAGRAM_BYTES;
    idle(&mut world, Duration::from_secs(700));
    world.longest_bytes = [0; 2];
    exchanges(&mut world, 1_000, 2, 20_000);
    let longest = world.longest_bytes;
    assert!(longest.iter().all(|longest| *longest > 600), "{longest:?}");
}

#[test]
fn an_outage_or_chance_is_not_taken_for_a_path_that_swallows_long_datagrams() {
    let mut short = 0;
    for seed in 1..60 {
        let mut world = World::greeted(Link { loss: 0.2, ..QUICK }, seed);
        exchanges(&mut world, 1, 10, 20_000);
        let expected = message(500, 100_000);
        let before = world.got[1].len();
        world.send(0, expected.clone());
        world.until(1, before + 2);
        // Nothing passes for three seconds.
        world.passes = 0;
        idle(&mut world, Duration::from_secs(3));
        world.passes = MAX_DATAGRAM_BYTES;
        world.until(1, before + expected.len());
        world.longest_bytes = [0; 2];
        exchanges(&mut world, 600, 3, 20_000);
        short += world.longest_bytes.iter().filter(|longest| **longest < 600).count();
    }
    assert!(short <= 1, "{short} of 118 ends");
}
