//! What client and server agree on without a word: how long a transaction id means one request.

use std::time::Duration;

/// Longest that a datagram may be on the way, duplicates and all: what queues of slow links hold.
pub(super) const MAX_LATENCY: Duration = Duration::from_secs(30);
/// How long a server knows a request by its transaction id and digest, from when it last had it
/// to do with it. A client's last copy leaves within [`MAX_SPAN`] of the first.
pub(super) const KEEP: Duration = Duration::from_secs(150);
/// Longest from a request's first copy to when the client gives it up.
pub(super) const MAX_SPAN: Duration = Duration::from_secs(120);
/// How long a server waits for the service's answer. By then no copy of the request comes any more.
pub(super) const MAX_SERVICE: Duration = Duration::from_secs(240);
/// How long after a request was given up its answer may still come, with both ways.
pub(super) const MAX_LATE_ANSWER: Duration = Duration::from_secs(300);
/// Most bytes of a PDU, which has its transaction id before it in a datagram of UDP.
pub const MAX_PDU_BYTES: usize = 65_506;

// All copies of a request find it known: the last leaves before MAX_SPAN and is on the way no
// longer than MAX_LATENCY.
const _: () = assert!(KEEP.as_secs() >= MAX_SPAN.as_secs() + MAX_LATENCY.as_secs());
const _: () = assert!(MAX_SERVICE.as_secs() >= KEEP.as_secs());
const _: () =
    assert!(MAX_LATE_ANSWER.as_secs() >= MAX_SERVICE.as_secs() + 2 * MAX_LATENCY.as_secs());

/// Digest of a request, by which its copies are told from another request of the same transaction
/// id (FNV-1a of 128 bits). It holds off chance, and nobody else: who can send in a peer's name
/// can also answer in its name.
pub(super) fn digest(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(BASIS, |digest, byte| (digest ^ u128::from(*byte)).wrapping_mul(PRIME))
}
