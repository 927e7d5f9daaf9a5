//! Datagrams: a packet and its records.

use super::packet::Packet;
use super::tail::{self, Records, Signature, Signatures, Signer};
use crate::Error;

/// Longest datagram over IPv4.
pub const MAX_DATAGRAM_BYTES: usize = 65_507;

/// A datagram that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The packet.
    pub packet: Packet<'a>,
    /// What stands behind it.
    pub records: Records,
    signatures: Signatures<'a>,
}

impl<'a> Datagram<'a> {
    /// Reads a whole datagram.
    ///
    /// # Errors
    /// [`Error::Truncated`] where it ends too early, and [`Error::Peer`] for a packet that is none
    /// of MQTT/UDP's, for octets behind its fields or behind the signature, for a record that is
    /// there twice or has another length than its kind, for an unknown record with a capital
    /// letter, and for a topic that is no UTF-8.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Error> {
        let (packet, rest) = Packet::take(bytes)?;
        let (records, signatures) = tail::decode(bytes, rest)?;
        Ok(Self { packet, records, signatures })
    }

    /// Whether `key` signed it. Of what stands behind a signature nothing is believed, since
    /// nothing but another signature may stand there.
    #[must_use]
    pub fn verify(&self, key: &[u8]) -> Signature {
        self.signatures.verify(key)
    }
}

impl Packet<'_> {
    /// Writes a datagram behind what `out` has.
    ///
    /// # Errors
    /// [`Error::Limit`] where it is over [`MAX_DATAGRAM_BYTES`], and [`Error::Caller`] for a QoS
    /// over 2 or a topic over 65,535 bytes; `out` is then as it was.
    pub fn encode(
        &self,
        records: &Records,
        signer: &Signer<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let start = out.len();
        let written = self.write(out);
        let written = written.and_then(|()| records.write(out));
        let written = written.and_then(|()| signer.sign(start, out));
        let written = written.and_then(|()| match out.len() - start {
            ..=MAX_DATAGRAM_BYTES => Ok(()),
            len => {
                let (value, limit) = (len as u64, MAX_DATAGRAM_BYTES as u64);
                Err(Error::Limit { what: "a datagram of MQTT/UDP in bytes", value, limit })
            }
        });
        if written.is_err() {
            out.truncate(start);
        }
        written
    }
}
