//! Where the seconds of one exchange went, from the packets that the link carried for it.

use std::collections::BTreeMap;

use record::campaign::{Flight, Network};
use record::packets::{PacketEvent, Toward};

/// Flags of a TCP header (RFC 9293 §3.1).
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;

/// What an interval may be longer than its packet's bits take without being called a gap: a ferry
/// that keeps to its limit is that late.
const MIN_GAP_S: f64 = 0.0005;

/// What a packet is for a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// SYN, FIN or RST: a connection begins or ends.
    Control,
    /// Content that was not offered before.
    Data,
    /// Content all of which was offered before.
    Again,
    /// Neither: an acknowledgement, or not TCP.
    Bare,
}

/// A stage of an exchange. They follow one another, and together they are its whole time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// From the start to the request's first byte on the link: connecting, where that is needed.
    SetUp,
    /// From there to the arrival of the last content towards the service that was offered before
    /// the answer's first.
    Request,
    /// From there to the arrival of the answer's first packet: the service works, and its way.
    FirstByte,
    /// Between arrivals of the answer's packets, as long as the later one's bits take on the link.
    Data,
    /// What such an interval is longer: nothing was under way, or it was sent again.
    Gap,
    /// From the last arrival to the end.
    End,
}

impl Stage {
    pub(super) const ALL: [Self; 6] =
        [Self::SetUp, Self::Request, Self::FirstByte, Self::Data, Self::Gap, Self::End];

    /// As the pictures call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SetUp => "set-up",
            Self::Request => "request on its way",
            Self::FirstByte => "wait for the first byte",
            Self::Data => "answer's bits",
            Self::Gap => "gaps",
            Self::End => "end",
        }
    }

    /// The class that gives it its colour.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::SetUp => "set-up",
            Self::Request => "request",
            Self::FirstByte => "first-byte",
            Self::Data => "bits",
            Self::Gap => "gap",
            Self::End => "end",
        }
    }
}

/// Where the seconds of an exchange went.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stages {
    /// Stage, beginning and end in seconds since the start of the exchange, in order of time.
    /// Neighbours differ; none is empty.
    pub(super) parts: Vec<(Stage, f64, f64)>,
    /// Round trips: times when the answer paused for at least one way's delay, and one more.
    pub(super) bursts: usize,
}

impl Stages {
    /// Seconds in a stage.
    pub(super) fn total_s(&self, stage: Stage) -> f64 {
        let own = self.parts.iter().filter(|(own, ..)| *own == stage);
        own.map(|(_, from_s, to_s)| to_s - from_s).sum()
    }

    fn push(&mut self, stage: Stage, from_s: f64, to_s: f64) {
        if to_s <= from_s {
            return;
        }
        match self.parts.last_mut() {
            Some((last, _, end_s)) if *last == stage => *end_s = to_s,
            _ => self.parts.push((stage, from_s, to_s)),
        }
    }
}

/// The stages of an exchange over a network; none when no content went both ways.
pub(super) fn stages(flight: &Flight, network: &Network) -> Option<Stages> {
    let since = |at: std::time::Duration| at.as_secs_f64() - flight.start_s;
    let content = |toward| {
        let own = move |packet: &&PacketEvent| packet.toward == toward && payload(packet) > 0;
        flight.packets.iter().filter(own)
    };
    let answer_s = content(Toward::Client).map(|packet| since(packet.offered)).reduce(f64::min)?;
    let asked_s = content(Toward::Service).map(|packet| since(packet.offered)).reduce(f64::min)?;
    let before_answer = content(Toward::Service).filter(|packet| since(packet.offered) <= answer_s);
    let there_s =
        before_answer.filter_map(|packet| packet.delivered).map(since).reduce(f64::max)?;

    let mut arrivals: Vec<(f64, u32)> = content(Toward::Client)
        .filter_map(|packet| Some((since(packet.delivered?), packet.bytes)))
        .filter(|(at_s, _)| *at_s <= flight.elapsed_s)
        .collect();
    arrivals.sort_by(|one, other| one.0.total_cmp(&other.0));
    let first_s = arrivals.first()?.0;

    let mut stages = Stages { parts: Vec::new(), bursts: 1 };
    let asked_s = asked_s.clamp(0.0, first_s.max(0.0));
    let there_s = there_s.clamp(asked_s, first_s.max(asked_s));
    stages.push(Stage::SetUp, 0.0, asked_s);
    stages.push(Stage::Request, asked_s, there_s);
    stages.push(Stage::FirstByte, there_s, first_s);
    let mut last_s = first_s.max(there_s);
    for (at_s, bytes) in arrivals.into_iter().skip(1) {
        let airtime_s = network.rate_bps.map_or(0.0, |bps| 8.0 * f64::from(bytes) / bps as f64);
        let free_s = (at_s - airtime_s).max(last_s);
        let begin_s = if free_s - last_s < MIN_GAP_S { last_s } else { free_s };
        if begin_s - last_s >= network.delay_s && network.delay_s > 0.0 {
            stages.bursts += 1;
        }
        stages.push(Stage::Gap, last_s, begin_s);
        stages.push(Stage::Data, begin_s, at_s);
        last_s = at_s.max(last_s);
    }
    stages.push(Stage::End, last_s, flight.elapsed_s);
    Some(stages)
}

/// What each packet is, in their order.
pub(super) fn kinds(packets: &[PacketEvent]) -> Vec<Kind> {
    let mut ends = BTreeMap::new();
    packets.iter().map(|packet| kind(packet, &mut ends)).collect()
}

/// Ends of what was offered so far, by direction and ports.
type Ends = BTreeMap<(bool, u16, u16), u32>;

fn kind(packet: &PacketEvent, ends: &mut Ends) -> Kind {
    let Some(tcp) = packet.tcp else { return Kind::Bare };
    if tcp.flags & (SYN | FIN | RST) != 0 && tcp.payload == 0 {
        return Kind::Control;
    }
    if tcp.payload == 0 {
        return Kind::Bare;
    }
    let end = tcp.sequence.wrapping_add(u32::from(tcp.payload));
    let flow = (packet.toward == Toward::Client, tcp.source_port, tcp.destination_port);
    let known = ends.entry(flow).or_insert(tcp.sequence);
    // Sequence numbers wrap: what is less than half the circle ahead is new (RFC 9293 §3.4).
    if end.wrapping_sub(*known).wrapping_sub(1) < u32::MAX / 2 {
        *known = end;
        return Kind::Data;
    }
    Kind::Again
}

fn payload(packet: &PacketEvent) -> u16 {
    packet.tcp.map_or(0, |tcp| tcp.payload)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use record::packets::TcpHeader;

    use super::*;

    const ACK: u8 = 16;

    fn packet(toward: Toward, at_ms: [u64; 2], sequence: u32, payload: u16) -> PacketEvent {
        PacketEvent {
            toward,
            offered: Duration::from_millis(5000 + at_ms[0]),
            delivered: (at_ms[1] > 0).then(|| Duration::from_millis(5000 + at_ms[1])),
            due: None,
            dropped: (at_ms[1] == 0).then(|| "loss".to_string()),
            duplicate: false,
            bytes: u32::from(payload) + 40,
            tcp: Some(TcpHeader {
                source_port: 1,
                destination_port: 2,
                sequence,
                acknowledgement: 0,
                payload,
                flags: ACK,
                window: 0,
            }),
        }
    }

    fn with_flags(flags: u8, mut packet: PacketEvent) -> PacketEvent {
        packet.tcp = packet.tcp.map(|tcp| TcpHeader { flags, ..tcp });
        packet
    }

    /// 8 kbit/s: one byte a millisecond; 100 ms each way.
    fn network() -> Network {
        Network {
            name: "made up".to_string(),
            source: String::new(),
            settings: Vec::new(),
            rate_bps: Some(8000),
            delay_s: 0.1,
            loss: 0.0,
            changes: Vec::new(),
        }
    }

    fn flight(packets: Vec<PacketEvent>) -> Flight {
        Flight { exchange: "track 1".to_string(), start_s: 5.0, elapsed_s: 1.2, packets }
    }

    #[test]
    fn every_second_has_a_stage() {
        use Toward::{Client, Service};
        let found = stages(
            &flight(vec![
                with_flags(SYN, packet(Service, [10, 110], 0, 0)),
                with_flags(SYN | ACK, packet(Client, [110, 210], 0, 0)),
                packet(Service, [210, 320], 1, 50),
                packet(Client, [340, 480], 1, 60),
                packet(Client, [340, 580], 61, 60),
                packet(Service, [580, 690], 51, 0),
                packet(Client, [690, 0], 121, 60),
                packet(Client, [800, 1000], 121, 60),
            ]),
            &network(),
        )
        .unwrap();
        let expected = [
            (Stage::SetUp, 0.0, 0.21),
            (Stage::Request, 0.21, 0.32),
            (Stage::FirstByte, 0.32, 0.48),
            (Stage::Data, 0.48, 0.58),
            (Stage::Gap, 0.58, 0.9),
            (Stage::Data, 0.9, 1.0),
            (Stage::End, 1.0, 1.2),
        ];
        assert_eq!(found.parts.len(), expected.len(), "{found:?}");
        for ((stage, from_s, to_s), expected) in found.parts.iter().zip(expected) {
            assert_eq!(*stage, expected.0);
            assert!((from_s - expected.1).abs() < 1e-9 && (to_s - expected.2).abs() < 1e-9);
        }
        let sum: f64 = Stage::ALL.into_iter().map(|stage| found.total_s(stage)).sum();
        assert!((sum - 1.2).abs() < 1e-9);
        assert_eq!(found.bursts, 2);
    }

    #[test]
    fn what_goes_again_is_distinguished_from_what_is_new_even_when_numbers_wrap() {
        let service = |sequence, payload| packet(Toward::Service, [1, 2], sequence, payload);
        let last = u32::MAX - 9;
        let found = kinds(&[
            with_flags(SYN, service(last - 1, 0)),
            service(last, 20),
            service(last, 20),
            service(10, 5),
            service(last, 10),
            service(15, 0),
        ]);
        use Kind::{Again, Bare, Control, Data};
        assert_eq!(found, [Control, Data, Again, Data, Again, Bare]);
    }

    #[test]
    fn without_content_both_ways_nothing_is_claimed() {
        assert_eq!(stages(&flight(Vec::new()), &network()), None);
        let only = packet(Toward::Service, [1, 2], 0, 9);
        assert_eq!(stages(&flight(vec![only.clone()]), &network()), None);
        let lost = packet(Toward::Client, [3, 0], 0, 9);
        assert_eq!(stages(&flight(vec![only, lost]), &network()), None);
    }
}
