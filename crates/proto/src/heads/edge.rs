//! The edge's end: it sends requests, and answers come.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::{
    ANSWER, HAS_BASE, IS_KEPT, KEPT, Lines, MIN_GAIN_BYTES, OFFERS, REQUEST, Sharing, fixed, flag,
    is_packed, may_be_kept, script,
};
use crate::{Error, varint};

/// A head that the gateway keeps, or an answer that this side does.
#[derive(Debug)]
struct Kept<O> {
    number: u64,
    owner: O,
    lines: Lines,
    /// The exchange of the request, until it was answered: only then the gateway is known to have
    /// the head.
    unanswered: Option<u64>,
}

/// A request that was not answered yet.
#[derive(Debug)]
struct Open<O> {
    /// Number of its base.
    base: Option<u64>,
    /// The answer that was offered.
    offered: Option<Lines>,
    /// Who may share the answer.
    owner: Option<O>,
}

/// See the module. `O`: whose a head is.
#[derive(Debug)]
pub struct Edge<O> {
    next: u64,
    requests: VecDeque<Kept<O>>,
    answers: VecDeque<Kept<O>>,
    open: BTreeMap<u64, Open<O>>,
}

impl<O> Default for Edge<O> {
    fn default() -> Self {
        let (requests, answers, open) = (VecDeque::new(), VecDeque::new(), BTreeMap::new());
        Self { next: 1, requests, answers, open }
    }
}

impl<O: Clone + PartialEq> Edge<O> {
    /// The head of a request as it crosses: as it is, where that is no request of HTTP.
    pub fn pack(&mut self, exchange: u64, head: &Bytes, sharing: &Sharing<O>) -> Bytes {
        let Some(lines) = super::lines_of_request(head) else { return head.clone() };
        let owner = sharing.owner.clone();
        let is_owned = |kept: &&Kept<O>| Some(&kept.owner) == owner.as_ref();
        let usable = |kept: &&Kept<O>| is_owned(kept) && kept.unanswered.is_none();
        let base = self.requests.iter().rev().find(usable);
        let base = base.map(|kept| (kept.number, kept.lines.clone()));
        let offered = self.answers.iter().rev().find(is_owned);
        let offered = offered.map(|kept| (kept.number, kept.lines.clone()));
        let mut text = Vec::new();
        let lines_of_base = base.as_ref().map(|(_, lines)| &lines[..]);
        script::write(fixed::REQUEST, &lines, lines_of_base, sharing, &mut text);
        // The gateway has to have the base of whatever has not come there yet.
        let oldest = self.open.values().filter_map(|open| open.base).min();
        let fits = oldest.is_none_or(|oldest| oldest + KEPT > self.next);
        let gains = text.len() > MIN_GAIN_BYTES && !sharing.fleeting && may_be_kept(&lines);
        let kept = owner.clone().filter(|_| gains && fits);
        let first = REQUEST
            | flag(base.is_some(), HAS_BASE)
            | flag(kept.is_some(), IS_KEPT)
            | flag(offered.is_some(), OFFERS);
        let mut out = vec![first];
        base.iter().for_each(|(number, _)| varint::encode(*number, &mut out));
        if let Some(owner) = kept {
            varint::encode(self.next, &mut out);
            let unanswered = Some(exchange);
            self.requests.push_back(Kept { number: self.next, owner, lines, unanswered });
            self.next += 1;
            let next = self.next;
            self.requests.retain(|kept| kept.number + KEPT > next);
        }
        offered.iter().for_each(|(number, _)| varint::encode(*number, &mut out));
        out.extend(text);
        let base = base.map(|(number, _)| number);
        let offered = offered.map(|(_, lines)| lines);
        self.open.insert(exchange, Open { base, offered, owner });
        out.into()
    }

    /// The head of an answer as it is.
    ///
    /// # Errors
    /// What no gateway sends.
    pub fn unpack(&mut self, exchange: u64, head: &Bytes) -> Result<Bytes, Error> {
        let open = self.open.remove(&exchange);
        let answered = |kept: &mut Kept<O>| {
            kept.unanswered.take_if(|unanswered| *unanswered == exchange);
        };
        self.requests.iter_mut().for_each(answered);
        if !is_packed(head) {
            return Ok(head.clone());
        }
        let (flags, mut rest) = super::flags(head, ANSWER, HAS_BASE | IS_KEPT)?;
        let (offered, owner) = open.map_or((None, None), |open| (open.offered, open.owner));
        let base = offered.filter(|_| flags & HAS_BASE != 0);
        if flags & HAS_BASE != 0 && base.is_none() {
            return Err(Error::Peer { what: "a base that was not offered", value: exchange });
        }
        let is_kept = flags & IS_KEPT != 0;
        let number = if is_kept { varint::decode(&mut rest, "a head")? } else { 0 };
        let lines: Lines = script::read(fixed::ANSWER, base.as_deref(), rest)?.into();
        let head = super::answer_of(&lines)?;
        if let Some(owner) = owner.filter(|_| is_kept && may_be_kept(&lines)) {
            self.answers.push_back(Kept { number, owner, lines, unanswered: None });
            if self.answers.len() as u64 > KEPT {
                self.answers.pop_front();
            }
        }
        Ok(head)
    }

    /// Nothing comes of an exchange any more: whether the gateway has its head will not be known.
    pub fn forget(&mut self, exchange: u64) {
        self.open.remove(&exchange);
        self.requests.retain(|kept| kept.unanswered != Some(exchange));
    }
}
