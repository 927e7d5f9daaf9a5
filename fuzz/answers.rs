//! A peer of the client for devices that answers with whatever the input has: from which address,
//! how late, with the ids of the request or without.

use std::time::Duration;

use pocket::{Address, Error, Received, Socket};

/// The server that is asked.
pub const PEER: Address = Address([1; 18]);

/// A socket whose answers are bytes of the input.
pub struct Answers<'a> {
    rest: &'a [u8],
    now: Duration,
    /// The begin of the last datagram that was sent.
    ids: Vec<u8>,
    /// How many were.
    pub sent: usize,
    /// From where the last answer came.
    pub last_from: Address,
}

impl<'a> Answers<'a> {
    /// Nothing sent yet.
    pub fn new(rest: &'a [u8]) -> Self {
        let (now, last_from) = (Duration::ZERO, Address([0; 18]));
        Self { rest, now, ids: Vec::new(), sent: 0, last_from }
    }
}

impl Socket for Answers<'_> {
    fn send(&mut self, datagram: &[u8]) -> Result<(), Error> {
        assert!(!datagram.is_empty());
        if datagram.len() > 4 || self.ids.is_empty() {
            self.ids = datagram[..datagram.len().min(8)].to_vec();
        }
        self.sent += 1;
        Ok(())
    }

    fn receive(&mut self, room: &mut [u8], limit: Duration) -> Result<Received, Error> {
        let Some((&[how, len], rest)) = self.rest.split_first_chunk::<2>() else {
            self.now += limit;
            return Ok(Received { now: self.now, datagram: None });
        };
        let (bytes, rest) = rest.split_at(rest.len().min(usize::from(len) * 2));
        self.rest = rest;
        if how & 0x80 != 0 {
            return Err(Error::Socket);
        }
        self.now += limit.min(Duration::from_millis(u64::from(how & 7) * 100));
        let mut datagram = bytes.to_vec();
        // The ids of the request: one byte of WSP, message id and token of CoAP.
        let kept = match how >> 3 & 3 {
            0 => 0..0,
            1 => 0..1,
            2 => 2..8,
            _ => 4..8,
        };
        for at in kept {
            if let (Some(to), Some(from)) = (datagram.get_mut(at), self.ids.get(at)) {
                *to = *from;
            }
        }
        self.last_from = if how & 0x40 == 0 { PEER } else { Address([2; 18]) };
        let fits = datagram.len().min(room.len());
        room[..fits].copy_from_slice(&datagram[..fits]);
        Ok(Received { now: self.now, datagram: Some((self.last_from, datagram.len())) })
    }
}
