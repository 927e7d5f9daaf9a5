//! Encoding of rtnetlink requests and reading of their answers (RFC 3549 §2, rtnetlink(7)).

use std::ffi::c_int;
use std::net::IpAddr;

/// Length of `struct nlmsghdr`.
pub(super) const HEADER_BYTES: usize = 16;
/// Netlink aligns messages and attributes to this.
const ALIGN: usize = 4;

/// A request being written.
pub(super) struct Request {
    bytes: Vec<u8>,
}

/// An attribute that holds others, still open.
#[must_use]
pub(super) struct Nest(usize);

impl Request {
    /// A request of `kind` (RTM_…) with `flags` (NLM_F_…) beside NLM_F_REQUEST, and its fixed part.
    pub(super) fn new(kind: u16, flags: c_int, fixed: &[u8]) -> Self {
        let flags = u16::try_from(flags | libc::NLM_F_REQUEST).unwrap_or(u16::MAX);
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(fixed);
        Self { bytes }
    }

    /// Adds an attribute.
    pub(super) fn attribute(&mut self, kind: u16, value: &[u8]) {
        let nest = self.open(kind);
        self.bytes.extend_from_slice(value);
        self.close(nest);
    }

    /// Adds an attribute with an address.
    pub(super) fn address(&mut self, kind: u16, value: IpAddr) {
        match value {
            IpAddr::V4(v4) => self.attribute(kind, &v4.octets()),
            IpAddr::V6(v6) => self.attribute(kind, &v6.octets()),
        }
    }

    /// Adds an attribute with a text that ends in a zero byte.
    pub(super) fn text(&mut self, kind: u16, value: &str) {
        let nest = self.open(kind);
        self.bytes.extend_from_slice(value.as_bytes());
        self.bytes.push(0);
        self.close(nest);
    }

    /// Adds bytes without a header of their own (the fixed part inside a nested attribute).
    pub(super) fn raw(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.pad();
    }

    /// Begins an attribute that holds others.
    pub(super) fn open(&mut self, kind: u16) -> Nest {
        self.pad();
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0, 0]);
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        Nest(at)
    }

    /// Ends it.
    pub(super) fn close(&mut self, nest: Nest) {
        let length = u16::try_from(self.bytes.len() - nest.0).unwrap_or(u16::MAX);
        self.bytes[nest.0..nest.0 + 2].copy_from_slice(&length.to_ne_bytes());
        self.pad();
    }

    /// The finished message.
    pub(super) fn finish(mut self, sequence: u32) -> Vec<u8> {
        self.pad();
        let length = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        self.bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGN), 0);
    }
}

/// One message of an answer.
pub(super) struct Answer<'a> {
    /// RTM_… or NLMSG_….
    pub(super) kind: u16,
    /// The sequence number of the request it answers.
    pub(super) sequence: u32,
    /// What follows the header.
    pub(super) body: &'a [u8],
}

/// The messages of one datagram; ends at the first that is cut short.
pub(super) fn answers(mut datagram: &[u8]) -> impl Iterator<Item = Answer<'_>> {
    std::iter::from_fn(move || {
        let length = usize::try_from(u32_at(datagram, 0)?).ok()?;
        let body = datagram.get(HEADER_BYTES..length)?;
        let answer = Answer { kind: u16_at(datagram, 4)?, sequence: u32_at(datagram, 8)?, body };
        datagram = datagram.get(length.next_multiple_of(ALIGN)..).unwrap_or_default();
        Some(answer)
    })
}

/// The value of the first attribute of `kind` after `fixed` bytes.
pub(super) fn attribute(body: &[u8], fixed: usize, kind: u16) -> Option<&[u8]> {
    let mut rest = body.get(fixed.next_multiple_of(ALIGN)..)?;
    while let (Some(length), Some(found)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let length = usize::from(length);
        let value = rest.get(4..length)?;
        // The two upper bits are flags (nested, byte order).
        if found & 0x3fff == kind {
            return Some(value);
        }
        rest = rest.get(length.next_multiple_of(ALIGN)..)?;
    }
    None
}

/// An attribute's text, without the zero byte that ends it.
pub(super) fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_string()
}

/// The 16-bit number at `at`, in this machine's byte order.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The 32-bit number at `at`.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The 64-bit number at `at`.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_laid_out_as_the_kernel_reads_it() {
        let mut request = Request::new(16, libc::NLM_F_ACK, &[1; 16]);
        let nest = request.open(18);
        request.text(1, "veth");
        request.close(nest);
        let bytes = request.finish(7);
        // nlmsghdr, 16 bytes fixed, nest header, "veth\0" in an attribute padded to 12 bytes.
        assert_eq!(bytes.len(), 16 + 16 + 4 + 12);
        assert_eq!(u32_at(&bytes, 0), Some(48));
        assert_eq!(u32_at(&bytes, 8), Some(7));
        assert_eq!(u16_at(&bytes, 32), Some(16), "the nest counts its padding");
        assert_eq!(u16_at(&bytes, 36), Some(9), "an attribute does not");
        let message = answers(&bytes).next().unwrap();
        let inner = attribute(message.body, 16, 18).unwrap();
        assert_eq!(attribute(inner, 0, 1), Some(b"veth\0".as_slice()));
        assert_eq!(attribute(inner, 0, 2), None);
    }

    #[test]
    fn cut_answers_end_the_reading() {
        let bytes = Request::new(16, 0, &[0; 16]).finish(1);
        for length in 0..bytes.len() {
            assert_eq!(answers(&bytes[..length]).count(), 0, "{length} bytes");
        }
        // A length of zero must not turn into an endless row of messages.
        assert_eq!(answers(&[0; 64]).count(), 0);
        assert_eq!(attribute(&[0; 64], 0, 1), None);
    }

    proptest::proptest! {
        #[test]
        fn no_answer_stops_the_reader(bytes in proptest::collection::vec(0_u8..24, 0..256)) {
            for answer in answers(&bytes) {
                let _ = attribute(answer.body, 16, 4);
            }
        }
    }
}
