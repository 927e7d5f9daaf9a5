use super::*;

const ROUND_TRIP: Duration = Duration::from_millis(200);

fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

/// A segment offered at `at_ms` that takes 100 ms.
fn segment(toward: Toward, at_ms: u64, sequence: u32, payload: u16) -> PacketEvent {
    let (source_port, destination_port) = match toward {
        Toward::Service => (40_000, 80),
        Toward::Client => (80, 40_000),
    };
    let header = TcpHeader {
        source_port,
        destination_port,
        sequence,
        acknowledgement: 0,
        payload,
        flags: 16,
        window: 500,
    };
    PacketEvent {
        toward,
        offered: ms(at_ms),
        delivered: Some(ms(at_ms + 100)),
        due: Some(ms(at_ms + 100)),
        dropped: None,
        duplicate: false,
        bytes: 40 + u32::from(payload),
        tcp: Some(header),
    }
}

fn ask(at_ms: u64) -> PacketEvent {
    segment(Toward::Service, at_ms, 1, 50)
}

fn data(at_ms: u64, sequence: u32) -> PacketEvent {
    segment(Toward::Client, at_ms, sequence, 1000)
}

fn record(packets: Vec<PacketEvent>) -> PacketRecord {
    PacketRecord { packets, unrecorded: 0 }
}

fn flights(packets: Vec<PacketEvent>) -> u32 {
    Window::of(&record(packets), ms(0)..Duration::MAX).flights(ROUND_TRIP)
}

fn again(packets: Vec<PacketEvent>, from_ms: u64, to_ms: u64) -> u64 {
    Window::of(&record(packets), ms(from_ms)..ms(to_ms)).sum(Toward::Client).retransmitted
}

#[test]
fn a_window_has_what_was_offered_in_it() {
    let record = record(vec![ask(10), data(20, 1), data(30, 1001), ask(40)]);
    let window = Window::of(&record, ms(20)..ms(40));
    assert_eq!(window.packets().count(), 2);
    let down = Sum { packets: 2, bytes: 2 * 1040, retransmitted: 0, content_bytes: 2000 };
    assert_eq!(window.sum(Toward::Client), down);
    assert_eq!(window.sum(Toward::Service), Sum::default());
}

#[test]
fn content_sent_again_is_counted_in_the_window_where_that_is() {
    let packets = || vec![data(10, 1), data(11, 1001), data(12, 2001), data(300, 1001)];
    assert_eq!(again(packets(), 0, 1000), 1);
    assert_eq!(again(packets(), 200, 1000), 1, "first sent before the window");
    assert_eq!(again(packets(), 0, 200), 0);
    // In part: larger than what was lost.
    assert_eq!(again(vec![data(10, 1), data(11, 501)], 0, 100), 1);
    // A gap in the record is not a repetition.
    assert_eq!(again(vec![data(10, 1), data(11, 9001)], 0, 100), 0);
}

#[test]
fn content_counts_once_however_often_it_is_sent() {
    let content = |packets: Vec<PacketEvent>| {
        Window::of(&record(packets), ms(0)..ms(1000)).sum(Toward::Client).content_bytes
    };
    assert_eq!(content(vec![data(10, 1), data(11, 1001), data(12, 1), data(13, 1001)]), 2000);
    assert_eq!(content(vec![data(10, 1), data(11, 501)]), 1500, "half of it again");
    // Numbers go round.
    assert_eq!(content(vec![data(10, u32::MAX - 499), data(11, 500), data(12, 500)]), 2000);
}

#[test]
fn other_connections_and_directions_have_numbers_of_their_own() {
    let mut other = data(11, 1);
    other.tcp.as_mut().unwrap().destination_port = 40_001;
    let to_service = segment(Toward::Service, 12, 1, 10);
    assert_eq!(again(vec![data(10, 1), other, to_service], 0, 100), 0);
    // The same ports again, with a lower number to begin with.
    let mut begin = segment(Toward::Client, 50, 500, 0);
    begin.tcp.as_mut().unwrap().flags = SYN;
    assert_eq!(again(vec![data(10, 9001), begin.clone(), data(60, 501)], 0, 100), 0);
    assert_eq!(again(vec![begin.clone(), data(60, 501), data(70, 501)], 0, 100), 1);
    // What opens or acknowledges is no content, however often it is sent.
    assert_eq!(again(vec![begin.clone(), begin, data(60, 501)], 0, 100), 0);
    let empty = || segment(Toward::Client, 70, 1001, 0);
    assert_eq!(again(vec![data(60, 1), empty(), empty()], 0, 100), 0);
}

#[test]
fn numbers_go_round() {
    let first = u32::MAX - 499;
    let packets = || vec![data(10, first), data(11, 500), data(12, 1500)];
    assert_eq!(again(packets(), 0, 100), 0);
    let repeated = [packets(), vec![data(13, first), data(14, 500)]].concat();
    assert_eq!(again(repeated, 0, 100), 2);
}

#[test]
fn copies_made_by_the_link_are_not_the_senders() {
    let copy = PacketEvent { duplicate: true, ..data(10, 1) };
    let record = record(vec![data(10, 1), data(11, 1001), copy]);
    let sum = Window::of(&record, ms(0)..ms(100)).sum(Toward::Client);
    assert_eq!((sum.packets, sum.retransmitted), (2, 0));
}

#[test]
fn an_answer_in_one_burst_is_one_flight() {
    assert_eq!(flights(vec![]), 0);
    assert_eq!(flights(vec![ask(0)]), 0);
    assert_eq!(flights(vec![ask(0), data(100, 1), data(101, 1001), data(102, 2001)]), 1);
    // Steadily, for longer than a round trip: the link is what is slow.
    let steady = (0..100).map(|at| data(100 + 20 * at, 1));
    assert_eq!(flights([ask(0)].into_iter().chain(steady).collect()), 1);
}

#[test]
fn waiting_for_acknowledgements_begins_a_flight() {
    let slow_start = vec![data(100, 1), data(101, 1001), data(300, 2001), data(301, 3001)];
    assert_eq!(flights(slow_start.clone()), 2);
    // Half the round trip is the limit.
    assert_eq!(flights(vec![data(100, 1), data(199, 1001)]), 1);
    assert_eq!(flights(vec![data(100, 1), data(200, 1001)]), 2);
    // Without a round trip every packet would be a flight.
    let record = record(slow_start);
    assert_eq!(Window::of(&record, ms(0)..Duration::MAX).flights(Duration::ZERO), 1);
}

#[test]
fn asking_again_begins_a_flight_and_giving_credit_does_not() {
    // A long round trip, so that only the turn can tell: the answer comes 90 ms after.
    let quick = |mut event: PacketEvent, took_ms: u64| {
        event.delivered = Some(event.offered + ms(took_ms));
        event
    };
    let asked = vec![quick(data(100, 1), 40), quick(ask(140), 30), data(170, 1001)];
    assert_eq!(flights(asked), 2);
    // Offered before what was under way had arrived.
    let credit = vec![quick(data(100, 1), 40), quick(ask(139), 10), data(170, 1001)];
    assert_eq!(flights(credit), 1);
    // Asked, but what follows left before that arrived.
    let late = vec![quick(data(100, 1), 40), quick(ask(140), 31), data(170, 1001)];
    assert_eq!(flights(late), 1);
    // Asked, and the question was lost.
    let mut lost = quick(ask(140), 30);
    lost.delivered = None;
    assert_eq!(flights(vec![quick(data(100, 1), 40), lost, data(170, 1001)]), 1);
}
