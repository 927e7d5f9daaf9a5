//! Bytes of a connection between two nodes, in which what has crossed shortens what follows.
//!
//! They go in runs of packets of one [`Principal`] each, and each principal has a context of its
//! own: an adversary who publishes and watches the lengths that an encrypted connection has would
//! otherwise learn what others say. A run is
//!
//! ```text
//! context  varint (RFC 9000 §16): its number, and 1 in the lowest bit where it begins anew
//! length   varint: of what it stands for, in bytes, 1 to 65,536
//! coded    varint: length of what follows; not in context 0, whose bytes are as they are
//! bytes    deflate (RFC 1951) that goes on from the context's last run, flushed, without the
//!          four bytes 00 00 ff ff that end a flush (as RFC 7692 §7.2.1 has it)
//! ```

#[cfg(test)]
mod tests;

use bytes::{Buf, BytesMut};
use codec::{Decoder, Encoder, Options};
use proto::mqtt::Refused;
use proto::varint;

use crate::ids::{Principal, Principals};

/// How the other side names this coding.
pub(crate) const NAME: &str = "deflate-runs";
/// Contexts of each direction of a connection, besides that without coding. Each takes about
/// 400 KB.
const MAX_CONTEXTS: usize = 8;
/// What a run stands for at most, in bytes.
const MAX_RUN_BYTES: usize = 64 << 10;
/// What its coded form is longer by at most: five bytes for each stored block of deflate.
const MAX_GROWTH_BYTES: usize = 64;
/// How zlib's flush ends.
const FLUSH_END: [u8; 4] = [0, 0, 0xff, 0xff];
/// More costs more time than it saves of runs of a few packets.
const CODING: &str = "deflate:6";

/// Codes what is sent.
#[derive(Default)]
pub(crate) struct Coder {
    contexts: Vec<Outbound>,
    /// Whose bytes begin where, in order; those before the first are nobody's.
    marks: Vec<(usize, Principal)>,
    /// The number of the last run.
    runs: u64,
}

struct Outbound {
    principal: Principal,
    encoder: Box<dyn Encoder>,
    used: u64,
    is_new: bool,
}

impl std::fmt::Debug for Coder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coder").field("contexts", &self.contexts.len()).finish_non_exhaustive()
    }
}

impl Coder {
    /// What is written from `at` on, counted in bytes since the last [`Self::code`], is of another.
    pub(crate) fn mark(&mut self, at: usize, principal: Principal) {
        if self.marks.last().is_some_and(|(last, _)| *last == at) {
            self.marks.pop();
        }
        let last = self.marks.last().map_or(Principal::UNKNOWN, |(_, principal)| *principal);
        if last != principal {
            self.marks.push((at, principal));
        }
    }

    /// The coded form of what was written; what is written next is nobody's until it is marked.
    pub(crate) fn code(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len() / 2 + 16);
        let marks = std::mem::take(&mut self.marks);
        let ends = marks.iter().skip(1).map(|(at, _)| *at).chain([bytes.len()]);
        let first = marks.first().map_or(bytes.len(), |(at, _)| *at);
        self.part(bytes.get(..first).unwrap_or_default(), Principal::UNKNOWN, &mut out);
        for ((start, principal), end) in marks.iter().zip(ends) {
            self.part(bytes.get(*start..end).unwrap_or_default(), *principal, &mut out);
        }
        out
    }

    fn part(&mut self, bytes: &[u8], principal: Principal, out: &mut Vec<u8>) {
        for run in bytes.chunks(MAX_RUN_BYTES) {
            let is_coded = principal.is_known() && self.run(run, principal, out).is_some();
            if !is_coded {
                varint::encode(0, out);
                varint::encode(run.len() as u64, out);
                out.extend_from_slice(run);
            }
        }
    }

    /// `None`: there is no memory for a context, and nothing was written.
    fn run(&mut self, run: &[u8], principal: Principal, out: &mut Vec<u8>) -> Option<()> {
        let at = self.context(principal)?;
        let context = self.contexts.get_mut(at)?;
        self.runs += 1;
        context.used = self.runs;
        let mut coded = Vec::with_capacity(run.len() / 2 + 16);
        if context.encoder.encode(run, false, &mut coded).is_err() || !coded.ends_with(&FLUSH_END) {
            self.contexts.remove(at);
            return None;
        }
        coded.truncate(coded.len() - FLUSH_END.len());
        varint::encode((at as u64 + 1) << 1 | u64::from(context.is_new), out);
        context.is_new = false;
        varint::encode(run.len() as u64, out);
        varint::encode(coded.len() as u64, out);
        out.extend_from_slice(&coded);
        Some(())
    }

    /// The context of a principal: its own, a new one, or that which has not been used for longest.
    fn context(&mut self, principal: Principal) -> Option<usize> {
        if let Some(at) = self.contexts.iter().position(|one| one.principal == principal) {
            return Some(at);
        }
        if self.contexts.len() < MAX_CONTEXTS {
            let encoder = Options::of(CODING).ok()?.encoder().ok()?;
            self.contexts.push(Outbound { principal, encoder, used: 0, is_new: true });
            return Some(self.contexts.len() - 1);
        }
        let (at, oldest) = self.contexts.iter_mut().enumerate().min_by_key(|(_, one)| one.used)?;
        if !oldest.encoder.renew() {
            oldest.encoder = Options::of(CODING).ok()?.encoder().ok()?;
        }
        (oldest.principal, oldest.is_new) = (principal, true);
        Some(at)
    }
}

/// Decodes what is received.
pub(crate) struct Uncoder {
    /// What has come and is not a whole run.
    input: BytesMut,
    contexts: Vec<Inbound>,
    principal: Principal,
}

struct Inbound {
    principal: Principal,
    decoder: Box<dyn Decoder>,
}

impl std::fmt::Debug for Uncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uncoder")
            .field("input", &self.input.len())
            .field("contexts", &self.contexts.len())
            .finish_non_exhaustive()
    }
}

impl Uncoder {
    /// One for what came behind the packet with which the coding began.
    pub(crate) fn new(rest: BytesMut) -> Self {
        Self { input: rest, contexts: Vec::new(), principal: Principal::UNKNOWN }
    }

    /// Bytes have come.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Whose the last run was: not the same as any of this side, nor as any of another connection.
    pub(crate) fn principal(&self) -> Principal {
        self.principal
    }

    /// Decodes the next run behind `out`; `false`: it is not whole yet.
    ///
    /// # Errors
    /// It breaks the rules of the module.
    pub(crate) fn next(
        &mut self,
        principals: &mut Principals,
        out: &mut BytesMut,
    ) -> Result<bool, Refused> {
        let mut rest = &*self.input;
        let Some(head) = varint::take(&mut rest) else { return Ok(false) };
        let (number, is_new) = (head >> 1, head & 1 == 1);
        let Some(len) = length(&mut rest, MAX_RUN_BYTES)? else { return Ok(false) };
        if number == 0 {
            let Some(bytes) = rest.get(..len) else { return Ok(false) };
            out.extend_from_slice(bytes);
            let used = self.input.len() - rest.len() + len;
            self.input.advance(used);
            self.principal = Principal::UNKNOWN;
            return Ok(true);
        }
        let Some(coded_len) = length(&mut rest, MAX_RUN_BYTES + MAX_GROWTH_BYTES)? else {
            return Ok(false);
        };
        let Some(coded) = rest.get(..coded_len) else { return Ok(false) };
        let at = usize::try_from(number - 1).unwrap_or(usize::MAX);
        let context = inbound(&mut self.contexts, principals, at, is_new)?;
        let mut block = Vec::with_capacity(coded_len + FLUSH_END.len());
        block.extend_from_slice(coded);
        block.extend_from_slice(&FLUSH_END);
        let mut bytes = Vec::with_capacity(len);
        let result = context.decoder.decode(&block, len, false, &mut bytes);
        result.map_err(|_| Refused::malformed("a run of a coded connection is not deflate"))?;
        self.principal = context.principal;
        let used = self.input.len() - rest.len() + coded_len;
        self.input.advance(used);
        out.extend_from_slice(&bytes);
        Ok(true)
    }
}

/// Takes a length of 1 to `max`; `None`: it is not whole.
fn length(input: &mut &[u8], max: usize) -> Result<Option<usize>, Refused> {
    let Some(length) = varint::take(input) else { return Ok(None) };
    match usize::try_from(length) {
        Ok(length) if (1..=max).contains(&length) => Ok(Some(length)),
        _ => Err(Refused::malformed("a run of a coded connection is empty or over 64 KiB")),
    }
}

/// The context of a run.
fn inbound<'a>(
    contexts: &'a mut Vec<Inbound>,
    principals: &mut Principals,
    at: usize,
    is_new: bool,
) -> Result<&'a mut Inbound, Refused> {
    if is_new && at <= contexts.len() && at < MAX_CONTEXTS {
        let decoder = Options::of(CODING).and_then(Options::decoder);
        let decoder = decoder.map_err(|_| Refused::malformed("no memory for a context"))?;
        let fresh = Inbound { principal: principals.add(), decoder };
        match contexts.get_mut(at) {
            Some(context) => *context = fresh,
            None => contexts.push(fresh),
        }
    }
    let known = contexts.get_mut(at);
    known.ok_or_else(|| Refused::malformed("a run of a context that has not begun, or is over 8"))
}
