//! The gateway's end: requests come, and it sends answers.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::{
    ANSWER, HAS_BASE, IS_KEPT, KEPT, Lines, MIN_GAIN_BYTES, OFFERS, REQUEST, Sharing, fixed, flag,
    is_packed, may_be_kept, script,
};
use crate::{Error, varint};

/// Most requests whose answers may be packed; an edge has fewer open.
const MAX_OPEN: usize = 4096;

/// See the module.
#[derive(Debug, Default)]
pub struct Gateway {
    requests: BTreeMap<u64, Lines>,
    /// Answers that the edge may offer: those of the last numbers.
    answers: VecDeque<(u64, Lines)>,
    last: u64,
    /// Requests whose answers may be packed, with the answer that was offered.
    open: BTreeMap<u64, Option<Lines>>,
}

impl Gateway {
    /// The head of a request as it is.
    ///
    /// # Errors
    /// What no edge sends.
    pub fn unpack(&mut self, exchange: u64, head: &Bytes) -> Result<Bytes, Error> {
        if !is_packed(head) {
            return Ok(head.clone());
        }
        let (flags, mut rest) = super::flags(head, REQUEST, HAS_BASE | IS_KEPT | OFFERS)?;
        let mut number = |bit: u8| match flags & bit {
            0 => Ok(None),
            _ => varint::decode(&mut rest, "a head").map(Some),
        };
        let (base, kept, offered) = (number(HAS_BASE)?, number(IS_KEPT)?, number(OFFERS)?);
        let unknown = |value| Error::Peer { what: "a base that is not kept", value };
        let base = base.map(|base| self.requests.get(&base).cloned().ok_or(unknown(base)));
        let base = base.transpose()?;
        let lines: Lines = script::read(fixed::REQUEST, base.as_deref(), rest)?.into();
        let head = super::request_of(&lines)?;
        if let Some(number) = kept.filter(|_| may_be_kept(&lines)) {
            self.requests.insert(number, lines);
            // As the edge has it: the last numbers that there were, whichever came.
            while let Some((oldest, greatest)) = self.ends()
                && oldest + KEPT <= greatest
            {
                self.requests.pop_first();
            }
        }
        let offered = offered.and_then(|offered| {
            let found = self.answers.iter().find(|(number, _)| *number == offered);
            found.map(|(_, lines)| lines.clone())
        });
        self.open.insert(exchange, offered);
        if self.open.len() > MAX_OPEN {
            self.open.pop_first();
        }
        Ok(head)
    }

    fn ends(&self) -> Option<(u64, u64)> {
        let (oldest, _) = self.requests.first_key_value()?;
        let (greatest, _) = self.requests.last_key_value()?;
        Some((*oldest, *greatest))
    }

    /// The head of an answer as it crosses: as it is, where that is no answer of HTTP, or the edge
    /// did not pack its request.
    pub fn pack<O>(&mut self, exchange: u64, head: &Bytes, sharing: &Sharing<O>) -> Bytes {
        let Some(offered) = self.open.remove(&exchange) else { return head.clone() };
        let Some(lines) = super::lines_of_answer(head) else { return head.clone() };
        let mut text = Vec::new();
        script::write(fixed::ANSWER, &lines, offered.as_deref(), sharing, &mut text);
        let gains = text.len() > MIN_GAIN_BYTES && !sharing.fleeting && may_be_kept(&lines);
        let mut out = vec![ANSWER | flag(offered.is_some(), HAS_BASE) | flag(gains, IS_KEPT)];
        if gains {
            self.last += 1;
            varint::encode(self.last, &mut out);
            self.answers.push_back((self.last, lines));
            if self.answers.len() as u64 > KEPT {
                self.answers.pop_front();
            }
        }
        out.extend(text);
        out.into()
    }

    /// Nothing comes of an exchange any more.
    pub fn forget(&mut self, exchange: u64) {
        self.open.remove(&exchange);
    }
}
