//! A slice of the caller's that is filled from its begin.

use crate::Error;

/// What was written, and what is free behind it.
#[derive(Debug)]
pub(crate) struct Out<'a> {
    room: &'a mut [u8],
    len: usize,
    /// Bytes at the end of the room that are written apart.
    tail_len: usize,
}

impl<'a> Out<'a> {
    pub(crate) fn new(room: &'a mut [u8]) -> Self {
        Self { room, len: 0, tail_len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// What was written.
    pub(crate) fn written(&self) -> &[u8] {
        self.room.get(..self.len).unwrap_or_default()
    }

    /// Takes all of `bytes`, or nothing where they do not fit.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let end = self.len.saturating_add(bytes.len());
        let free_end = self.room.len() - self.tail_len;
        let free = self.room.get_mut(..free_end).and_then(|room| room.get_mut(self.len..end));
        free.ok_or(Error::NoRoom)?.copy_from_slice(bytes);
        self.len = end;
        Ok(())
    }

    /// What was written at the end of the room.
    pub(crate) fn tail(&self) -> &[u8] {
        self.room.get(self.room.len() - self.tail_len..).unwrap_or_default()
    }

    /// Appends bytes to the tail.
    pub(crate) fn put_tail(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let tail_at = self.room.len() - self.tail_len;
        let free = tail_at - self.len;
        let moved_to = tail_at.checked_sub(bytes.len()).filter(|_| bytes.len() <= free);
        let moved_to = moved_to.ok_or(Error::NoRoom)?;
        self.room.copy_within(tail_at.., moved_to);
        let place = self.room.len() - bytes.len();
        self.room.get_mut(place..).ok_or(Error::NoRoom)?.copy_from_slice(bytes);
        self.tail_len += bytes.len();
        Ok(())
    }

    /// Puts the tail before what was written, and returns how long that was.
    pub(crate) fn fold_tail(&mut self) -> usize {
        let (len, tail_len) = (self.len, core::mem::take(&mut self.tail_len));
        let tail_at = self.room.len() - tail_len;
        self.room.copy_within(tail_at.., len);
        self.len = len + tail_len;
        // What is reversed in two parts and then as a whole has changed places.
        reverse(self.room.get_mut(..len));
        reverse(self.room.get_mut(len..self.len));
        reverse(self.room.get_mut(..self.len));
        len
    }

    /// Puts bytes before what was written.
    pub(crate) fn put_before(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let end = self.len.saturating_add(bytes.len());
        if end > self.room.len() {
            return Err(Error::NoRoom);
        }
        self.room.copy_within(..self.len, bytes.len());
        self.room.get_mut(..bytes.len()).ok_or(Error::NoRoom)?.copy_from_slice(bytes);
        self.len = end;
        Ok(())
    }

    pub(crate) fn byte(&mut self, byte: u8) -> Result<(), Error> {
        self.put(&[byte])
    }

    /// Integers of WAP: seven bits an octet, the high bit on all but the last (WAP-230 §8.1.2,
    /// WAP-192 §5.1).
    pub(crate) fn uintvar(&mut self, value: usize) -> Result<(), Error> {
        let mut octets = [0; 5];
        let mut rest = value;
        let mut from = octets.len();
        for (at, octet) in octets.iter_mut().enumerate().rev() {
            let more = if at == 4 { 0 } else { 0x80 };
            *octet = rest.to_le_bytes()[0] & 0x7f | more;
            rest >>= 7;
            from = at;
            if rest == 0 {
                break;
            }
        }
        self.put(octets.get(from..).unwrap_or_default())
    }

    /// Sets bits of a byte that was written.
    pub(crate) fn mark(&mut self, at: usize, bits: u8) {
        if let Some(byte) = self.room.get_mut(..self.len).and_then(|bytes| bytes.get_mut(at)) {
            *byte |= bits;
        }
    }
}

fn reverse(bytes: Option<&mut [u8]>) {
    let mut rest = bytes.unwrap_or_default();
    while let [first, inner @ .., last] = rest {
        core::mem::swap(first, last);
        rest = inner;
    }
}

/// The decimal digits of a number, in room for them.
pub(crate) fn digits(value: i32, room: &mut [u8; 11]) -> &str {
    let mut rest = value.unsigned_abs();
    let mut from = room.len();
    for (at, digit) in room.iter_mut().enumerate().rev() {
        *digit = b'0' + (rest % 10).to_le_bytes()[0];
        rest /= 10;
        from = at;
        if rest == 0 {
            break;
        }
    }
    if value < 0
        && let Some(sign) = from.checked_sub(1)
        && let Some(place) = room.get_mut(sign)
    {
        *place = b'-';
        from = sign;
    }
    core::str::from_utf8(room.get(from..).unwrap_or_default()).unwrap_or_default()
}
