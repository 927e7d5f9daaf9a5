//! How an edge gets a connection to its gateway.
//!
//! Over a link that loses packets, or is down for a while, TCP waits ever longer before it tries
//! again. So an attempt that has no answer after about a round trip gets another beside it, later
//! each time, and the first that comes through counts: once the link is up, that takes a round trip
//! and at most four seconds more.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use relay::{CarrierId, DialFailure, Input};
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::{Carriers, Ended, TLS_BUFFER_BYTES, peer, stream_fd};
use crate::actor::Message;
use crate::tls;

/// Attempts under way at once. Beyond it the oldest, whose pauses are longest, gives way.
const MAX_ATTEMPTS: usize = 8;
/// Longest time from one attempt at an address to the next.
const MAX_PAUSE: Duration = Duration::from_secs(4);
/// Addresses of a name that are tried and remembered.
pub(super) const MAX_ADDRESSES: usize = 8;

impl Carriers {
    /// Edge: connects to the gateway at `address` (`HOST:PORT`) and runs the carrier of this kind
    /// to its end. An attempt waits for `pace` before another begins beside it.
    pub(crate) async fn dial(
        self,
        (carrier, kind): (CarrierId, &'static str),
        address: String,
        pace: Duration,
    ) {
        let limit = self.times.dial;
        let ended = match tokio::time::timeout(limit, self.connect(&address, pace)).await {
            Ok(Ok(stream)) => self.dialled((carrier, kind), &address, stream).await,
            Ok(Err(ended)) => ended,
            Err(_) => {
                let waited = limit.as_secs_f64();
                let reason = format!(
                    "cannot reach the gateway {address}: no connection within {waited} s \
                     (dial_timeout)"
                );
                Ended { failure: DialFailure::Silent, reason }
            }
        };
        let Ended { failure, reason } = ended;
        tracing::debug!(carrier = carrier.0, reason, "carrier ended");
        let input = Input::DialFailed { carrier, failure, reason };
        self.handle.send(Message::Input(input)).await;
    }

    async fn connect(&self, address: &str, pace: Duration) -> Result<TcpStream, Ended> {
        let cannot = |why: &str| format!("cannot reach the gateway {address}: {why}");
        let addresses = self.addresses(address, pace).await.map_err(|error| {
            let why = error.to_string();
            Ended { failure: failure_of_lookup(&why), reason: cannot(&why) }
        })?;
        let security = &self.trust.now().security;
        let permitted: Vec<_> =
            addresses.iter().copied().filter(|to| security.permits(*to)).collect();
        if let (true, Some(refused)) = (permitted.is_empty(), addresses.first()) {
            let reason = cannot(&security.refusal(*refused));
            return Err(Ended { failure: DialFailure::Refused, reason });
        }
        race(&permitted, &self.next_address, pace).await.map_err(|error| {
            let failure = match error.kind() {
                io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => {
                    DialFailure::Unreachable
                }
                io::ErrorKind::NotFound => DialFailure::Unreachable,
                // A router on the way says so while the link is down.
                _ => DialFailure::Silent,
            };
            Ended { failure, reason: cannot(&error.to_string()) }
        })
    }

    /// The gateway's addresses. Where a name server does not answer in time, those of before.
    pub(super) async fn addresses(
        &self,
        address: &str,
        pace: Duration,
    ) -> io::Result<Vec<SocketAddr>> {
        let before = self.resolved.lock().map(|known| known.clone()).unwrap_or_default();
        let lookup = tokio::net::lookup_host(address);
        let found = if before.is_empty() {
            lookup.await
        } else {
            match tokio::time::timeout(pace, lookup).await {
                Ok(Ok(found)) => Ok(found),
                Ok(Err(_)) | Err(_) => return Ok(before),
            }
        };
        let found: Vec<_> = found?.take(MAX_ADDRESSES).collect();
        if let Ok(mut known) = self.resolved.lock() {
            known.clone_from(&found);
        }
        Ok(found)
    }

    async fn dialled(
        &self,
        carrier: (CarrierId, &'static str),
        address: &str,
        stream: TcpStream,
    ) -> Ended {
        let trust = self.trust.now();
        let Some(connector) = &trust.client else {
            let socket = stream_fd(&stream);
            return self.run(carrier, address, &socket, stream, Bytes::new(), &|| {}).await;
        };
        let fd = stream_fd(&stream);
        // Not sent: the name of a peer is its key's.
        let Ok(name) = ServerName::try_from("longwire.invalid") else {
            return Ended::unreachable("no server name".to_owned());
        };
        let handshake = connector.connect_with(name, stream, |connection| {
            connection.set_buffer_limit(Some(TLS_BUFFER_BYTES));
        });
        match tokio::time::timeout(self.times.dial, handshake).await {
            Ok(Ok(stream)) => {
                let (peer, key) = peer(&trust, stream.get_ref().1.peer_certificates());
                tokio::select! {
                    ended = self.run(carrier, &peer, &fd, stream, Bytes::new(), &|| {}) => ended,
                    why = self.trust.lost(key) => {
                        Ended { failure: DialFailure::Refused, reason: format!("cut off: {why}") }
                    }
                }
            }
            Ok(Err(error)) => {
                let why = tls::explain(&error, trust.identity());
                let reason = format!("no TLS with the gateway {address}: {why}");
                Ended { failure: failure_of(&error), reason }
            }
            Err(_) => {
                let waited = self.times.dial.as_secs_f64();
                let reason = format!(
                    "no TLS with the gateway {address}: no answer within {waited} s (dial_timeout)"
                );
                Ended { failure: DialFailure::Silent, reason }
            }
        }
    }
}

/// What an error of a connection that came about says of the gateway.
pub(super) fn failure_of(error: &io::Error) -> DialFailure {
    if tls::is_refusal(error) { DialFailure::Refused } else { DialFailure::Unreachable }
}

/// A name server that is not there says nothing of the gateway; one that knows no such name does.
fn failure_of_lookup(why: &str) -> DialFailure {
    if why.contains("emporary") { DialFailure::Silent } else { DialFailure::Unreachable }
}

/// How long the next attempt waits behind the one that began last: a round of all addresses longer
/// each time, and no longer than that each address is tried every [`MAX_PAUSE`]. Attempts that come
/// at the same pace for ever fill a slow link with themselves, so that none of their answers comes
/// in time.
fn pause(begun: usize, addresses: usize, pace: Duration) -> Duration {
    let count = u32::try_from(addresses.max(1)).unwrap_or(u32::MAX);
    let round = u32::try_from(begun.saturating_sub(1) / addresses.max(1) + 1).unwrap_or(u32::MAX);
    pace.saturating_mul(round).min((MAX_PAUSE / count).max(pace))
}

/// The first connection to come about; an error once each address has failed and nothing is left to
/// wait for. It begins with the address behind the one that was tried last, so that each has its
/// turn however soon a race is given up, and leaves `first` at one that has come about.
async fn race(
    addresses: &[SocketAddr],
    first: &AtomicUsize,
    pace: Duration,
) -> io::Result<TcpStream> {
    let mut attempts = JoinSet::new();
    let mut handles: VecDeque<AbortHandle> = VecDeque::new();
    let begin = first.load(Ordering::Relaxed) % addresses.len().max(1);
    let mut next = addresses.iter().copied().enumerate().cycle().skip(begin);
    let (mut begun, mut failed) = (0_usize, 0_usize);
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    // sleep: until the next attempt is due
    let mut due = std::pin::pin!(tokio::time::sleep(Duration::ZERO));
    loop {
        tokio::select! {
            () = due.as_mut() => {
                let Some((place, address)) = next.next() else { return Err(last) };
                first.store(place + 1, Ordering::Relaxed);
                // What has failed takes no place of one that may come about.
                handles.retain(|handle| !handle.is_finished());
                let attempt = async move { (place, TcpStream::connect(address).await) };
                handles.push_back(attempts.spawn(attempt));
                begun += 1;
                due.as_mut().reset(Instant::now() + pause(begun, addresses.len(), pace));
                if handles.len() > MAX_ATTEMPTS && let Some(oldest) = handles.pop_front() {
                    oldest.abort();
                }
            }
            Some(done) = attempts.join_next() => match done {
                Ok((place, Ok(stream))) => {
                    first.store(place, Ordering::Relaxed);
                    return Ok(stream);
                }
                Ok((_, Err(error))) => {
                    (last, failed) = (error, failed + 1);
                    if failed >= addresses.len() && attempts.is_empty() {
                        return Err(last);
                    }
                    if begun < addresses.len() {
                        due.as_mut().reset(Instant::now());
                    }
                }
                // One that gave way.
                Err(_) => {}
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn attempts_on_a_slow_link_leave_room_for_their_answers() {
        let pace = Duration::from_millis(250);
        let mut begins = vec![Duration::ZERO];
        while begins.len() < 20 {
            let next = *begins.last().unwrap() + pause(begins.len(), 1, pace);
            begins.push(next);
        }
        let within = |seconds: u64| begins.iter().filter(|at| at.as_secs() < seconds).count();
        assert!((8..=10).contains(&within(10)), "{begins:?}");
        // The first is given up when there are eight others.
        let lives = |at: usize| begins[at + MAX_ATTEMPTS] - begins[at];
        assert!(lives(0) >= Duration::from_secs(9), "{:?}", lives(0));
        assert!((0..10).all(|at| lives(at) >= lives(0)));
        assert_eq!(pause(2, 4, pace), pace, "each address once at first");
        assert_eq!(pause(100, 1, Duration::from_secs(6)), Duration::from_secs(6));
        for count in 1..=MAX_ADDRESSES {
            let round = pause(1000, count, pace) * u32::try_from(count).unwrap();
            assert!(round <= MAX_PAUSE, "{count} addresses: {round:?}");
        }
    }

    #[tokio::test]
    async fn an_address_that_refuses_gives_way_to_the_next_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let there = listener.local_addr().unwrap();
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let long = Duration::from_secs(600);
        let stream = race(&[gone, there], &AtomicUsize::new(0), long).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), there);
        let error = race(&[gone, gone], &AtomicUsize::new(0), long).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[tokio::test]
    async fn an_address_that_is_silent_is_tried_beside_the_next() {
        // A listener whose backlog is full answers nobody.
        let full =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        full.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
        full.listen(0).unwrap();
        let silent = full.local_addr().unwrap().as_socket().unwrap();
        let mut fill = Vec::new();
        let short = Duration::from_millis(50);
        while let Ok(Ok(stream)) = tokio::time::timeout(short, TcpStream::connect(silent)).await {
            fill.push(stream);
            assert!(fill.len() < 64, "the backlog does not fill");
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let there = listener.local_addr().unwrap();
        let (first, both) = (AtomicUsize::new(0), [silent, there]);
        let stream = race(&both, &first, short).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), there);
        // A race that is given up too soon leaves its turn to the next address.
        let (first, long) = (AtomicUsize::new(0), Duration::from_secs(600));
        assert!(tokio::time::timeout(short, race(&both, &first, long)).await.is_err());
        assert_eq!(race(&both, &first, long).await.unwrap().peer_addr().unwrap(), there);
        assert_eq!(race(&both, &first, long).await.unwrap().peer_addr().unwrap(), there);
    }
}
