//! A network that is a function: what it answers to what was sent, and when.

use core::time::Duration;
use std::boxed::Box;
use std::collections::VecDeque;
use std::vec::Vec;

use crate::{Address, Error, Received, Socket};

/// The server, and somebody else.
pub(crate) const PEER: Address = Address([1; 18]);
pub(crate) const STRANGER: Address = Address([2; 18]);

type Answers = Box<dyn FnMut(&[Vec<u8>]) -> Vec<(Address, Vec<u8>)>>;

/// Answers come at once, or time passes.
pub(crate) struct Net {
    answers: Answers,
    waiting: VecDeque<(Address, Vec<u8>)>,
    pub(crate) sent: Vec<Vec<u8>>,
    pub(crate) now: Duration,
    pub(crate) fails: bool,
}

impl Net {
    /// `answers` gets all that was sent so far, each time that something is.
    pub(crate) fn new(
        answers: impl FnMut(&[Vec<u8>]) -> Vec<(Address, Vec<u8>)> + 'static,
    ) -> Self {
        let answers = Box::new(answers);
        let now = Duration::ZERO;
        Self { answers, waiting: VecDeque::new(), sent: Vec::new(), now, fails: false }
    }
}

impl Socket for Net {
    fn send(&mut self, datagram: &[u8]) -> Result<(), Error> {
        if self.fails {
            return Err(Error::Socket);
        }
        self.sent.push(datagram.to_vec());
        self.waiting.extend((self.answers)(&self.sent));
        Ok(())
    }

    fn receive(&mut self, room: &mut [u8], limit: Duration) -> Result<Received, Error> {
        let Some((from, bytes)) = self.waiting.pop_front() else {
            self.now += limit;
            return Ok(Received { now: self.now, datagram: None });
        };
        let len = bytes.len().min(room.len());
        room[..len].copy_from_slice(&bytes[..len]);
        Ok(Received { now: self.now, datagram: Some((from, bytes.len())) })
    }
}
