//! The consumer's clock as the producer sees it.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use proto::http1::{ResponseHead, end_of_head};
use serde_json::Value;

use super::super::clock;
use crate::Error;

/// How often the clock is asked for; the quickest answer counts.
const ASKED: usize = 16;
/// Longest answer, in bytes.
const MAX_ANSWER_BYTES: usize = 4096;

/// What is known of the consumer's `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Relation {
    /// It is this host's.
    Same,
    /// Another host's, ahead of this one's by so much, give or take the error.
    Ahead {
        /// How much; negative where it is behind.
        offset_ns: i64,
        /// Half of the quickest round trip: more it cannot be wrong when it was asked.
        error_ns: u64,
    },
    /// Nothing: the consumer tells no clock, and messages carry no T0.
    #[default]
    Unknown,
}

impl Relation {
    /// A time of this host's clock on the consumer's.
    pub(super) fn of_consumer(self, own_ns: u64) -> Option<u64> {
        match self {
            Self::Same => Some(own_ns),
            Self::Ahead { offset_ns, .. } => own_ns.checked_add_signed(offset_ns),
            Self::Unknown => None,
        }
    }

    /// In words.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::Same => "one clock".to_owned(),
            Self::Ahead { offset_ns, error_ns } => {
                let (offset_us, error_us) = (offset_ns as f64 / 1e3, error_ns as f64 / 1e3);
                format!("the consumer's clock is {offset_us:.0} us ahead, ± {error_us:.0} us")
            }
            Self::Unknown => "the consumer tells no clock: messages carry no T0".to_owned(),
        }
    }
}

/// The first of a consumer's addresses that takes a connection.
pub(super) fn reachable(addresses: &[SocketAddr], timeout: Duration) -> Result<SocketAddr, Error> {
    connect(addresses, Instant::now() + timeout).map(|(address, _)| address)
}

/// Asks a consumer for its clock, at the first of its addresses that answers: that address, and
/// what is known of the clock. All of it takes `timeout` at most, and ends when `stop` is set.
pub(super) fn compare(
    addresses: &[SocketAddr],
    host: &str,
    timeout: Duration,
    stop: &AtomicBool,
) -> Result<(SocketAddr, Relation), Error> {
    let deadline = Instant::now() + timeout;
    let (address, stream) = connect(addresses, deadline)?;
    let mut best: Option<(u64, i64, bool)> = None;
    for _ in 0..ASKED {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let asked = ask(&stream, host, deadline);
        let Some((before_ns, their_ns, boot, after_ns)) = asked else { break };
        let trip_ns = after_ns.saturating_sub(before_ns);
        let middle_ns = before_ns + trip_ns / 2;
        let offset_ns = i64::try_from(i128::from(their_ns) - i128::from(middle_ns)).unwrap_or(0);
        let is_same = boot == own_boot() && offset_ns.unsigned_abs() <= trip_ns;
        if best.is_none_or(|(trip, ..)| trip_ns < trip) {
            best = Some((trip_ns, offset_ns, is_same));
        }
    }
    let relation = match best {
        None => Relation::Unknown,
        Some((_, _, true)) => Relation::Same,
        Some((trip_ns, offset_ns, false)) => {
            Relation::Ahead { offset_ns, error_ns: trip_ns.div_ceil(2) }
        }
    };
    Ok((address, relation))
}

/// Connects to the first of the addresses that can be reached: a name may have one of IPv6 where
/// the consumer listens at IPv4 alone.
fn connect(addresses: &[SocketAddr], deadline: Instant) -> Result<(SocketAddr, TcpStream), Error> {
    let mut whys = Vec::new();
    for (at, address) in addresses.iter().enumerate() {
        let others = u32::try_from(addresses.len() - at).unwrap_or(u32::MAX);
        // What is left is for all that are left: one that is silent does not take it all.
        let stream = match left(deadline).map(|left| left / others) {
            Some(part) if !part.is_zero() => TcpStream::connect_timeout(address, part),
            _ => Err(io::ErrorKind::TimedOut.into()),
        };
        match stream.and_then(|stream| stream.set_nodelay(true).map(|()| stream)) {
            Ok(stream) => return Ok((*address, stream)),
            Err(why) => whys.push(format!("{address} ({why})")),
        }
    }
    Err(Error::Peer(format!("cannot reach {}; is the consumer running?", whys.join(", "))))
}

/// The time until then, if there is any.
fn left(deadline: Instant) -> Option<Duration> {
    deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
}

fn own_boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// One question: when it was asked, what was told, of which boot, and when the answer came.
fn ask(mut stream: &TcpStream, host: &str, deadline: Instant) -> Option<(u64, u64, String, u64)> {
    stream.set_write_timeout(Some(left(deadline)?)).ok()?;
    let request = format!("GET /clock HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let before_ns = clock::monotonic_ns();
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    let (status, length, end) = loop {
        let mut piece = [0; 1024];
        stream.set_read_timeout(Some(left(deadline)?)).ok()?;
        let count = stream.read(&mut piece).ok().filter(|count| *count > 0)?;
        answer.extend_from_slice(piece.get(..count)?);
        if answer.len() > MAX_ANSWER_BYTES {
            return None;
        }
        let Some(end) = end_of_head(&answer, 0) else { continue };
        let head = ResponseHead::parse(answer.get(..end)?, b"GET").ok()?;
        let proto::http1::Framing::Length(length) = head.framing else { return None };
        let length = usize::try_from(length).ok()?;
        if answer.len() >= end.checked_add(length)? {
            break (head.status, length, end);
        }
    };
    let after_ns = clock::monotonic_ns();
    if status != 200 {
        return None;
    }
    let answer: Value = serde_json::from_slice(answer.get(end..end + length)?).ok()?;
    let boot = answer.get("boot")?.as_str()?.to_owned();
    Some((before_ns, answer.get("monotonic_ns")?.as_u64()?, boot, after_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_turned_into_the_consumers_clock() {
        assert_eq!(Relation::Same.of_consumer(5), Some(5));
        let ahead = |offset_ns| Relation::Ahead { offset_ns, error_ns: 1 };
        assert_eq!(ahead(-3).of_consumer(5), Some(2));
        assert_eq!(ahead(-6).of_consumer(5), None);
        assert_eq!(ahead(3).of_consumer(5), Some(8));
        assert_eq!(Relation::Unknown.of_consumer(5), None);
        assert!(ahead(2_000_000).text().contains("2000 us ahead"));
    }

    #[test]
    fn the_first_address_that_answers_is_taken() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let open = listener.local_addr().unwrap();
        let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let closed = gone.local_addr().unwrap();
        drop(gone);
        let deadline = Instant::now() + Duration::from_secs(10);
        let (address, _) = connect(&[closed, open], deadline).unwrap();
        assert_eq!(address, open);
        let line = connect(&[closed], deadline).unwrap_err().to_string();
        assert!(line.contains(&closed.to_string()), "{line}");
    }

    #[test]
    fn a_consumer_that_answers_byte_by_byte_has_the_time_of_one_answer() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let slow = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            // Until nobody reads any more: there is always one more byte, and never an end.
            while peer.write_all(b"H").is_ok() {
                // sleep: that bytes come slowly is what is tested.
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let (began, timeout) = (Instant::now(), Duration::from_millis(200));
        let stop = AtomicBool::new(false);
        let (_, relation) = compare(&[address], "here", timeout, &stop).unwrap();
        assert_eq!(relation, Relation::Unknown);
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        slow.join().unwrap();
    }
}
