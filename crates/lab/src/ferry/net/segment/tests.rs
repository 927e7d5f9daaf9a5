use super::*;
use crate::ferry::frame::Pool;
use crate::ferry::net::meta::mac;
use link::medium::{Access, Csma};
use link::units::parse_rate;

/// A frame of UDP from 10.64.0.1.
fn frame(to: [u8; 6]) -> (Frame, PacketMeta) {
    let mut packet = vec![0; 128];
    packet[0] = 0x45;
    packet[9] = 17;
    packet[12..16].copy_from_slice(&[10, 64, 0, 1]);
    let bytes = [&to, &[0; 6][..], &[8, 0], &packet].concat();
    let frame = Pool::default().admit(&bytes).ok().unwrap();
    let meta = PacketMeta::of(&frame, 7).unwrap();
    (frame, meta)
}

fn medium() -> Segment {
    let config = MediumConfig::wideband(Access::Csma(Csma::bianchi()));
    let config = Box::new(config);
    let plan = SegmentPlan::Medium { config, sockets: vec![10, 11, 12], charge: None };
    Segment::new(&plan, 7, 1).unwrap()
}

/// Wakes a segment until nothing is left; what it said.
fn drain(segment: &mut Segment, mut wake: Option<Duration>, mut events: Vec<Event>) -> Vec<Event> {
    while let Some(at) = wake {
        wake = segment.wake(at, &mut events);
    }
    events
}

fn sockets(events: &[Event]) -> Vec<usize> {
    let socket = |event: &Event| match event {
        Event::Deliver { socket, .. } => Some(*socket),
        _ => None,
    };
    let mut sockets: Vec<usize> = events.iter().filter_map(socket).collect();
    sockets.sort_unstable();
    sockets
}

#[test]
fn a_group_is_sent_to_once_and_each_that_hears_it_gets_it() {
    let mut segment = medium();
    let mut events = Vec::new();
    for to in [1, 2] {
        segment.lose(Duration::ZERO, (0, to, Some(90.0)), &mut events);
    }
    let group = [1, 0, 0x5e, 1, 2, 3];
    let wake = segment.offer(Duration::ZERO, 0, frame(group), &mut events);
    let events = drain(&mut segment, wake, events);
    assert_eq!(sockets(&events), [11, 12]);
    let air: Vec<&AirEntry> = events
        .iter()
        .filter_map(|event| if let Event::Air(entry) = event { Some(entry) } else { None })
        .collect();
    assert_eq!(air.len(), 1);
    assert_eq!(air[0].received, [1, 2]);
    assert_eq!(air[0].meta.unwrap().cast, Cast::Group);
}

#[test]
fn what_is_for_nobody_here_is_counted_and_takes_no_air() {
    let mut segment = medium();
    for to in [mac(7, 3), mac(7, 0), mac(6, 1), [2, 0, 0, 0, 0, 1]] {
        let mut events = Vec::new();
        let wake = segment.offer(Duration::ZERO, 0, frame(to), &mut events);
        assert_eq!(wake, None);
        assert!(matches!(events.as_slice(), [Event::Dropped(UNKNOWN)]));
    }
}

#[test]
fn each_packet_is_known_again_when_it_has_been_sent() {
    let mut sent = Sent::default();
    let (_, meta) = frame(mac(7, 1));
    let other = PacketMeta { protocol: 6, ..meta };
    (0..5).for_each(|number| sent.push(number, meta, 3));
    sent.push(5, other, 3);
    assert_eq!(sent.meta(5), Some(other));
    assert_eq!(sent.meta(3), Some(meta));
    assert_eq!((sent.meta(2), sent.meta(6)), (None, None));
}

/// What a full queue refuses makes nothing unknown that is in it.
#[test]
fn packets_of_a_full_queue_are_known() {
    let mut config = MediumConfig::wideband(Access::Csma(Csma::bianchi()));
    config.queue_packets = 2;
    let plan =
        SegmentPlan::Medium { config: Box::new(config), sockets: vec![10, 11], charge: None };
    let mut segment = Segment::new(&plan, 7, 1).unwrap();
    let mut events = Vec::new();
    segment.lose(Duration::ZERO, (0, 1, Some(90.0)), &mut events);
    segment.lose(Duration::ZERO, (1, 0, Some(90.0)), &mut events);
    let mut wake = None;
    for _ in 0..200 {
        wake = segment.offer(Duration::ZERO, 0, frame(mac(7, 1)), &mut events);
    }
    let events = drain(&mut segment, wake, events);
    let sent = events.iter().filter_map(|event| match event {
        Event::Air(entry) if entry.from == 0 => Some(entry.meta.is_some()),
        _ => None,
    });
    let sent: Vec<bool> = sent.collect();
    assert!(sent.len() >= 2 && sent.iter().all(|is_known| *is_known), "{sent:?}");
    assert!(sockets(&events).len() < 10);
}

#[test]
fn a_plain_link_takes_what_its_rate_takes() {
    let mut config = LinkConfig::default();
    config.ab.rate_bps = Some(parse_rate("8 kbit/s").unwrap());
    let plan = SegmentPlan::Link { config: Box::new(config), sockets: [3, 4] };
    let mut segment = Segment::new(&plan, 7, 1).unwrap();
    let mut events = Vec::new();
    let wake = segment.offer(Duration::ZERO, 0, frame(mac(7, 1)), &mut events);
    let events = drain(&mut segment, wake, events);
    assert_eq!(sockets(&events), [4]);
    let Some(Event::Air(entry)) = events.first() else { panic!("nothing in the air") };
    assert_eq!((entry.airtime, entry.received.as_slice()), (Duration::from_millis(128), &[1][..]));
}
