//! A connection between two members: frames out of bytes, and who has said them.
//!
//! Behind the two greetings every frame has a MAC with a key of this connection and direction, over
//! its number and its bytes: nobody without the members' key can say, change, repeat or leave out
//! one. What is said can be read by others, unless TLS is around it.

use bytes::{Buf as _, Bytes, BytesMut};

use super::wire::{MAC_BYTES, NONCE_BYTES, Wrong};

/// HMAC with SHA-256 (RFC 2104, FIPS 180-4) of some pieces behind each other, which the shell has:
/// first the key, then the pieces.
pub type Mac = fn(&[u8], &[&[u8]]) -> [u8; 32];

/// Longest frame before it is known who sends it.
const MAX_STRANGER_BYTES: usize = 512;

/// Who connected and who was connected to.
#[derive(Clone, Debug)]
pub(super) struct Greetings<'a> {
    pub(super) dialler: &'a str,
    pub(super) listener: &'a str,
    pub(super) dialler_nonce: &'a [u8; NONCE_BYTES],
    pub(super) listener_nonce: &'a [u8; NONCE_BYTES],
}

/// One direction.
#[derive(Debug)]
struct Way {
    key: [u8; 32],
    number: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Channel {
    input: BytesMut,
    out: Option<Way>,
    back: Option<Way>,
    /// A frame with a right MAC has come: the other has the key.
    is_proven: bool,
}

/// Keys are told apart by what they are for.
const FROM_DIALLER: &[u8] = b"longwire mesh 1 from dialler";
const FROM_LISTENER: &[u8] = b"longwire mesh 1 from listener";

impl Channel {
    /// The greetings are said: from now on frames have a MAC.
    pub(super) fn secure(&mut self, mac: Mac, key: &[u8], of: &Greetings<'_>, is_dialler: bool) {
        let way = |label: &[u8]| {
            let lens = [of.dialler.len() as u64, of.listener.len() as u64].map(u64::to_be_bytes);
            let pieces: [&[u8]; 7] = [
                label,
                &lens[0],
                of.dialler.as_bytes(),
                &lens[1],
                of.listener.as_bytes(),
                of.dialler_nonce,
                of.listener_nonce,
            ];
            Some(Way { key: mac(key, &pieces), number: 0 })
        };
        let (near, far) = (way(FROM_DIALLER), way(FROM_LISTENER));
        (self.out, self.back) = if is_dialler { (near, far) } else { (far, near) };
    }

    /// A frame as it leaves.
    pub(super) fn wrap(&mut self, mac: Mac, frame: &[u8]) -> Vec<u8> {
        let tail = if self.out.is_some() { MAC_BYTES } else { 0 };
        let mut out = Vec::with_capacity(4 + frame.len() + tail);
        let len = u32::try_from(frame.len() + tail).unwrap_or(u32::MAX);
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(frame);
        if let Some(way) = &mut self.out {
            let code = mac(&way.key, &[&way.number.to_be_bytes(), frame]);
            out.extend(code.iter().take(MAC_BYTES));
            way.number += 1;
        }
        out
    }

    /// Bytes came.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// The next frame, if all of it is there.
    ///
    /// # Errors
    /// It is too long, or not of who has the key.
    pub(super) fn next(&mut self, mac: Mac, max_bytes: usize) -> Result<Option<Bytes>, Wrong> {
        let max = if self.is_proven { max_bytes } else { MAX_STRANGER_BYTES };
        let Some(head) = self.input.first_chunk::<4>() else { return Ok(None) };
        let len = usize::try_from(u32::from_be_bytes(*head)).unwrap_or(usize::MAX);
        if len > max {
            return Err(match self.is_proven {
                true => "a frame that is longer than max_message_bytes allows",
                false => "a frame that is longer than a greeting",
            });
        }
        if self.input.len() < 4 + len {
            return Ok(None);
        }
        self.input.advance(4);
        let mut frame = self.input.split_to(len).freeze();
        let Some(way) = &mut self.back else { return Ok(Some(frame)) };
        let Some(at) = len.checked_sub(MAC_BYTES) else { return Err("a frame without a MAC") };
        let said = frame.split_off(at);
        let code = mac(&way.key, &[&way.number.to_be_bytes(), &frame]);
        way.number += 1;
        // All bytes are compared, so that the time tells nothing.
        let differs = code.iter().zip(&said).fold(0, |sum, (one, other)| sum | (one ^ other));
        if differs != 0 {
            return Err("a wrong key, or bytes that were changed or repeated (its MAC is wrong)");
        }
        self.is_proven = true;
        Ok(Some(frame))
    }
}
