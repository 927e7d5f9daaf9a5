//! What members of a mesh do for their clients.

use std::time::Duration;

use super::net::Net;
use crate::ids::Protocol;
use crate::publication::{Grade, Publication};

const SOON: Duration = Duration::from_secs(5);

fn net(count: usize) -> Net {
    let mut net = Net::new(count, 7);
    net.run(SOON);
    net
}

#[test]
fn what_nobody_wants_goes_nowhere_and_what_somebody_wants_only_there() {
    let mut net = net(3);
    net.want(1, "a/+");
    net.run(SOON);
    net.bytes.clear();
    net.publish(0, "a/b", &"x".repeat(1000), (2, false));
    net.publish(0, "c", &"y".repeat(1000), (2, false));
    net.run(SOON);
    assert_eq!(net.payloads(1, "a/b").len(), 1);
    assert!(net.nodes[2].got.is_empty());
    let sent = net.bytes[&(0, 1)];
    assert!((1000..1900).contains(&sent), "{sent} bytes for one publication");
    assert!(net.bytes.get(&(0, 2)).is_none_or(|bytes| *bytes < 800), "{:?}", net.bytes);
    net.unwant(1, "a/+");
    net.run(SOON);
    net.publish(0, "a/b", "z", (2, false));
    net.run(SOON);
    assert_eq!(net.payloads(1, "a/b").len(), 1, "it is not wanted any more");
}

#[test]
fn what_waits_for_a_member_arrives_once_and_in_order() {
    let mut net = net(2);
    net.want(1, "#");
    net.run(SOON);
    net.set_cut(0, 1, true);
    for number in 0..50 {
        net.publish(0, "a", &number.to_string(), (2, false));
        net.publish(0, "lost", "x", (0, false));
    }
    net.run(SOON);
    net.stop(0, false);
    net.start(0);
    net.set_cut(0, 1, false);
    net.run(Duration::from_secs(60));
    let expected: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    assert_eq!(net.payloads(1, "a"), expected);
    assert!(net.payloads(1, "lost").is_empty(), "grade 0 does not wait");
    let waiting = net.nodes[0].mesh.as_ref().unwrap().members()[0].waiting;
    assert_eq!(waiting, 0, "all is acknowledged");
}

#[test]
fn at_the_bound_the_oldest_goes_and_newest_states_stay() {
    let mut net = Net::new(2, 7);
    net.max_queued = 5;
    net.stop(0, false);
    net.start(0);
    net.want(1, "#");
    net.run(Duration::from_secs(40));
    net.set_cut(0, 1, true);
    for number in 0..20 {
        net.publish(0, "a", &number.to_string(), (1, false));
        net.publish(0, "s", &number.to_string(), (0, true));
    }
    net.run(SOON);
    assert_eq!(net.nodes[0].dropped, 15);
    net.set_cut(0, 1, false);
    net.run(Duration::from_secs(60));
    assert_eq!(net.payloads(1, "a"), ["15", "16", "17", "18", "19"]);
    assert_eq!(net.payloads(1, "s"), ["19"], "the newest state");
}

#[test]
fn states_come_by_any_member_and_only_once() {
    let mut net = net(3);
    net.want(2, "#");
    net.run(SOON);
    net.set_cut(0, 2, true);
    net.publish(0, "s", "new", (0, true));
    net.run(SOON);
    assert_eq!(net.payloads(2, "s"), ["new"], "by the third member");
    net.set_cut(0, 2, false);
    net.bytes.clear();
    net.run(Duration::from_secs(60));
    assert_eq!(net.payloads(2, "s"), ["new"]);
    // Nor does anybody send it again: there is talk of what is held, and that is all.
    assert!(net.states(2).len() == 1 && net.bytes[&(0, 2)] < 6000, "{:?}", net.bytes);
}

#[test]
fn a_partition_costs_what_differs() {
    let mut net = net(2);
    for topic in 0..200 {
        net.publish(0, &format!("s/{topic}"), &"x".repeat(500), (0, true));
    }
    net.run(SOON);
    net.set_cut(0, 1, true);
    for topic in 0..10 {
        net.publish(0, &format!("s/{topic}"), &"y".repeat(500), (0, true));
    }
    net.run(SOON);
    net.bytes.clear();
    net.set_cut(0, 1, false);
    net.run(Duration::from_secs(60));
    assert_eq!(net.states(0), net.states(1));
    let differs = 10 * 540;
    let sent = net.bytes[&(0, 1)];
    assert!(sent < 2 * differs, "{sent} bytes for {differs} that differ");
}

#[test]
fn a_state_that_was_ended_does_not_come_back_and_is_forgotten() {
    let mut net = net(3);
    net.publish(0, "s", "old", (1, true));
    net.run(SOON);
    net.set_cut(2, 0, true);
    net.set_cut(2, 1, true);
    net.publish(0, "s", "", (1, true));
    net.run(SOON);
    assert_eq!(net.states(1).len(), 0);
    let remembered = |net: &Net, at: usize| net.nodes[at].mesh.as_ref().unwrap().states().1;
    net.run(Duration::from_secs(120));
    assert_eq!(remembered(&net, 1), 1, "one member does not know of it");
    net.set_cut(2, 0, false);
    net.set_cut(2, 1, false);
    net.run(Duration::from_secs(150));
    for at in 0..3 {
        assert_eq!((net.states(at).len(), remembered(&net, at)), (0, 0), "{at}");
    }
}

#[test]
fn the_end_of_what_was_never_there_is_not_remembered() {
    let mut net = net(2);
    net.want(1, "never/#");
    net.run(SOON);
    net.publish(0, "never/there", "", (1, true));
    net.run(SOON);
    assert_eq!(net.payloads(1, "never/there"), [""], "it is a publication all the same");
    for at in 0..2 {
        assert_eq!(net.nodes[at].mesh.as_ref().unwrap().states(), (0, 0), "{at}");
    }
}

#[test]
fn ended_topics_take_no_more_than_their_bytes() {
    let mut net = net(1);
    for number in 0..300 {
        let topic = format!("{number}/{}", "x".repeat(65_000));
        net.publish(0, &topic, "x", (0, true));
        net.publish(0, &topic, "", (0, true));
    }
    let ended = net.nodes[0].mesh.as_ref().unwrap().states().1;
    assert!((250..260).contains(&ended), "{ended}");
    net.commit(0);
    net.stop(0, false);
    net.start(0);
    assert_eq!(net.nodes[0].mesh.as_ref().unwrap().states(), (0, ended), "as on the disk");
}

#[test]
fn what_has_expired_ends_everywhere() {
    let mut net = net(2);
    let mut publication = Publication::new(Protocol::Mqtt, "s", "x");
    publication.retain = true;
    publication.deadline = Some(net.now + Duration::from_secs(20));
    net.offer(0, publication.clone());
    publication.topic = "a".into();
    publication.retain = false;
    publication.grade = Grade::AtLeastOnce;
    net.want(1, "a");
    net.run(SOON);
    assert_eq!(net.states(1).len(), 1);
    net.set_cut(0, 1, true);
    net.offer(0, publication);
    net.run(Duration::from_secs(40));
    net.set_cut(0, 1, false);
    net.run(Duration::from_secs(60));
    assert!(net.payloads(1, "a").is_empty());
    assert_eq!((net.states(0).len(), net.states(1).len()), (0, 0));
}

#[test]
fn what_was_retained_before_there_was_a_mesh_is_a_state() {
    let mut net = Net::new(2, 7);
    net.stop(0, true);
    let mut publication = Publication::new(Protocol::Mqtt, "s", "x");
    publication.retain = true;
    net.nodes[0].retained.insert("s".into(), publication.into());
    net.retain_on_disk(0);
    net.start(0);
    net.run(Duration::from_secs(40));
    assert_eq!(net.states(1).len(), 1);
}

#[test]
fn what_was_retained_before_does_not_replace_what_the_mesh_has() {
    let mut net = net(2);
    net.publish(1, "s", "new", (1, true));
    net.run(SOON);
    net.stop(0, true);
    let mut publication = Publication::new(Protocol::Mqtt, "s", "months old");
    publication.retain = true;
    net.nodes[0].retained.insert("s".into(), publication.into());
    net.retain_on_disk(0);
    net.start(0);
    net.run(Duration::from_secs(40));
    for at in 0..2 {
        assert_eq!(net.states(at)["s"], "new", "{at}");
    }
}

#[test]
fn a_value_that_is_lost_ends_nowhere_and_comes_back() {
    let mut net = net(3);
    net.set_cut(2, 0, true);
    net.set_cut(2, 1, true);
    net.publish(0, "s", "x", (1, true));
    net.publish(0, "t", "x", (1, true));
    net.run(SOON);
    // Number 1 has had no room to retain any.
    net.nodes[1].retained.clear();
    net.retain_on_disk(1);
    net.stop(1, false);
    net.start(1);
    net.set_cut(2, 1, false);
    net.run(Duration::from_secs(200));
    net.set_cut(2, 0, false);
    net.run(Duration::from_secs(100));
    for at in 0..3 {
        assert_eq!(net.states(at).len(), 2, "{at}");
    }
    let repairs = net.nodes[0].mesh.as_ref().unwrap().members()[0].repairs;
    assert!((1..3).contains(&repairs), "{repairs}");
}

#[test]
fn more_filters_than_are_said_mean_everything() {
    let mut net = net(2);
    for number in 0..10_001 {
        net.want(1, &format!("a/{number}"));
    }
    net.run(SOON);
    let filters = |net: &Net| net.nodes[0].mesh.as_ref().unwrap().members()[0].filters;
    assert_eq!(filters(&net), 1);
    net.publish(0, "b", "x", (1, false));
    net.run(SOON);
    assert_eq!(net.payloads(1, "b").len(), 1);
    net.unwant(1, "a/0");
    net.run(SOON);
    assert_eq!(filters(&net), 1, "one that comes and goes does not change all");
    for number in 1..=1001 {
        net.unwant(1, &format!("a/{number}"));
    }
    net.run(SOON);
    assert_eq!(filters(&net), 8999);
    net.stop(1, false);
    net.start(1);
    net.run(Duration::from_secs(40));
    assert_eq!(filters(&net), 8999, "in pieces");
}

#[test]
fn a_filter_that_comes_and_goes_costs_little_and_ends_as_it_is() {
    let mut net = net(2);
    net.bytes.clear();
    for _ in 0..1000 {
        net.want(1, "a/1");
        net.unwant(1, "a/1");
    }
    net.want(1, "a/2");
    let sent = net.bytes[&(1, 0)];
    assert!(sent < 1000, "{sent} bytes for what comes and goes");
    net.run(SOON);
    let mesh = net.nodes[0].mesh.as_ref().unwrap();
    assert_eq!(mesh.peers[0].filters.iter().map(|filter| &**filter).collect::<Vec<_>>(), ["a/2"]);
}

#[test]
fn long_filters_do_not_part_members() {
    let mut net = net(2);
    for number in 0..400 {
        net.want(1, &format!("{number}/{}", "x".repeat(4000)));
    }
    net.run(SOON);
    let filters = |net: &Net| net.nodes[0].mesh.as_ref().unwrap().members()[0].filters;
    assert_eq!(filters(&net), 1, "over 1 MiB");
    for number in 200..400 {
        net.unwant(1, &format!("{number}/{}", "x".repeat(4000)));
    }
    net.run(SOON);
    assert_eq!(filters(&net), 200, "in pieces of 64 KiB");
    net.want(1, &"y".repeat(5000));
    net.run(SOON);
    assert_eq!(filters(&net), 1, "one that is too long");
    let refused = &net.nodes[0].refused;
    assert!(refused.iter().all(|why| why.contains("no way")), "{refused:?}");
}
