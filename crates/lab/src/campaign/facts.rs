//! From what client and ferry saw to the facts of a run.

use std::process::ExitStatus;
use std::time::Duration;

use record::campaign::{Flight, Measured, Run, Share};
use record::packets::{PacketRecord, Sum, Toward, Window};
use record::result::{Exchange, Fetch};

/// Packets kept of one exchange.
const MAX_FLIGHT_PACKETS: usize = 400;

/// How a client's exchanges are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// Of the link.
    pub(super) round_trip: Duration,
    /// Whether the packets of an exchange are kept.
    pub(super) keep_flight: bool,
    /// How long an answer is, the client does not say: what TCP brought it, heads included.
    pub(super) content_of_link: bool,
}

/// Fills a run with its exchanges, each with the packets from its start to the next one's.
pub(super) fn fill(run: &mut Run, fetch: Fetch, record: &PacketRecord, reading: Reading) {
    let epoch_s = fetch.started_monotonic_s;
    let warm_up = fetch.warm_up.len();
    let exchanges: Vec<Exchange> = fetch.warm_up.into_iter().chain(fetch.measured).collect();
    let starts: Vec<Duration> = exchanges.iter().map(|exchange| at(epoch_s, exchange)).collect();
    let window = |number: usize| {
        let end = starts.get(number + 1).copied().unwrap_or(Duration::MAX);
        Window::of(record, starts[number]..end)
    };
    if reading.keep_flight
        && let Some(number) = median(&exchanges[warm_up..]).map(|at| at + warm_up)
    {
        run.flight = Some(flight(&exchanges[number], starts[number], &window(number)));
    }
    let mut all: Vec<Measured> = exchanges
        .into_iter()
        .enumerate()
        .map(|(number, exchange)| measured(exchange, &window(number), reading))
        .collect();
    run.measured = all.split_off(warm_up);
    run.warm_up = all;
}

fn measured(mut exchange: Exchange, window: &Window<'_>, reading: Reading) -> Measured {
    let share = |sum: Sum| Share {
        packets: sum.packets,
        bytes: sum.bytes,
        retransmitted: sum.retransmitted,
    };
    // One that never began has no packets of its own.
    if exchange.censored && exchange.elapsed_s == 0.0 {
        return Measured { exchange, up: Share::default(), down: Share::default(), flights: 0 };
    }
    let [up, down] = [Toward::Service, Toward::Client].map(|toward| window.sum(toward));
    if reading.content_of_link {
        exchange.body_bytes = down.content_bytes;
    }
    let flights = window.flights(reading.round_trip);
    Measured { exchange, up: share(up), down: share(down), flights }
}

/// The exchange whose time is in the middle; the lower one of two.
fn median(exchanges: &[Exchange]) -> Option<usize> {
    let mut order: Vec<usize> =
        (0..exchanges.len()).filter(|&number| exchanges[number].succeeded()).collect();
    order.sort_by(|&a, &b| exchanges[a].elapsed_s.total_cmp(&exchanges[b].elapsed_s));
    order.get(order.len().checked_sub(1)? / 2).copied()
}

fn flight(exchange: &Exchange, start: Duration, window: &Window<'_>) -> Flight {
    Flight {
        exchange: exchange.name.clone(),
        start_s: start.as_secs_f64(),
        elapsed_s: exchange.elapsed_s,
        packets: window.packets().take(MAX_FLIGHT_PACKETS).cloned().collect(),
    }
}

/// When an exchange began, on the clock of the packets.
fn at(epoch_s: f64, exchange: &Exchange) -> Duration {
    Duration::try_from_secs_f64(epoch_s + exchange.start_s).unwrap_or_default()
}

/// A client that only ends: one exchange, which failed unless the status is 0.
pub(super) fn of_command(
    name: &str,
    started_s: f64,
    elapsed_s: f64,
    status: Option<ExitStatus>,
) -> Fetch {
    let error = match status {
        Some(status) if status.success() => None,
        Some(status) => Some(format!("the client ended with {status}")),
        None => Some("the client outstayed its budget".to_string()),
    };
    let exchange = Exchange {
        name: name.to_string(),
        start_s: 0.0,
        elapsed_s,
        body_bytes: 0,
        status: None,
        error,
        censored: false,
        connections: 0,
    };
    Fetch {
        api: name.to_string(),
        started_monotonic_s: started_s,
        errors: usize::from(exchange.error.is_some()),
        measured: vec![exchange],
        ..Fetch::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::packets::{PacketEvent, TcpHeader};

    fn packet(toward: Toward, offered_ms: u64) -> PacketEvent {
        PacketEvent {
            toward,
            offered: Duration::from_millis(offered_ms),
            delivered: Some(Duration::from_millis(offered_ms + 5)),
            due: None,
            dropped: None,
            duplicate: false,
            bytes: 100,
            tcp: None,
        }
    }

    fn exchange(name: &str, start_s: f64, elapsed_s: f64, censored: bool) -> Exchange {
        Exchange {
            name: name.to_string(),
            start_s,
            elapsed_s,
            body_bytes: 0,
            status: None,
            error: None,
            censored,
            connections: 0,
        }
    }

    #[test]
    fn packets_belong_to_the_exchange_that_was_under_way() {
        let toward = [Toward::Service, Toward::Client, Toward::Client, Toward::Service];
        let at = [1_000, 1_010, 1_500, 2_100];
        let packets = toward.into_iter().zip(at).map(|(toward, at)| packet(toward, at)).collect();
        let record = PacketRecord { packets, unrecorded: 0 };
        let fetch = Fetch {
            started_monotonic_s: 1.0,
            warm_up: vec![exchange("w", 0.0, 0.4, false)],
            measured: vec![
                exchange("one", 0.45, 0.3, false),
                exchange("two", 1.05, 0.2, false),
                exchange("never", 1.3, 0.0, true),
            ],
            ..Fetch::default()
        };
        let mut run = Run::default();
        let reading = Reading {
            round_trip: Duration::from_millis(10),
            keep_flight: true,
            content_of_link: false,
        };
        fill(&mut run, fetch, &record, reading);
        let sums = |of: &Measured| (of.up.packets, of.down.packets);
        assert_eq!(run.warm_up.iter().map(sums).collect::<Vec<_>>(), [(1, 1)]);
        assert_eq!(run.measured.iter().map(sums).collect::<Vec<_>>(), [(0, 1), (1, 0), (0, 0)]);
        // The lower of the two that succeeded.
        let flight = run.flight.unwrap();
        assert_eq!((flight.exchange.as_str(), flight.packets.len()), ("two", 1));
        assert_eq!(flight.start_s, 2.05);
    }

    #[test]
    fn what_came_to_a_client_that_says_nothing_is_counted_on_the_link() {
        let data = |at: u64, sequence| {
            let mut packet = packet(Toward::Client, at);
            packet.tcp = Some(TcpHeader {
                source_port: 8080,
                destination_port: 40_000,
                sequence,
                acknowledgement: 0,
                payload: 1000,
                flags: 16,
                window: 500,
            });
            packet
        };
        let packets = vec![data(5_010, 1), data(5_020, 1001), data(5_030, 1)];
        let record = PacketRecord { packets, unrecorded: 0 };
        let fetch = || of_command("curl", 5.0, 1.5, None);
        for (content_of_link, expected) in [(true, 2000), (false, 0)] {
            let reading = Reading {
                round_trip: Duration::from_millis(10),
                keep_flight: false,
                content_of_link,
            };
            let mut run = Run::default();
            fill(&mut run, fetch(), &record, reading);
            assert_eq!(run.measured[0].exchange.body_bytes, expected);
        }
    }

    #[test]
    fn a_client_that_only_ends_is_one_exchange() {
        use std::os::unix::process::ExitStatusExt;
        let of = |status: Option<i32>| {
            let status = status.map(ExitStatus::from_raw);
            of_command("curl", 5.0, 1.5, status).measured[0].clone()
        };
        assert!(of(Some(0)).succeeded());
        assert!(of(Some(0x100)).error.is_some_and(|why| why.contains("exit status: 1")));
        assert!(of(None).error.is_some_and(|why| why.contains("budget")));
    }
}
