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
//!
//! A run stands for at most 32 times its coded bytes and 128 more, so that a few bytes are not the
//! work of many; where deflate does better, empty stored blocks fill it up.

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
/// What a run stands for at most: so many bytes for each of its coded ones, and so many more.
const MAX_RATIO: usize = 32;
const MIN_RATIO_BYTES: usize = 128;
/// What is coded at once, in bytes; of more the rest goes as it is, since others wait meanwhile.
const MAX_CODED_BYTES: usize = 256 << 10;
/// Runs without which a context may be taken for somebody else: with more principals than contexts
/// each would otherwise find its own gone.
const MIN_IDLE_RUNS: u64 = 64;
/// How zlib's flush ends.
const FLUSH_END: [u8; 4] = [0, 0, 0xff, 0xff];
/// The head of an empty stored block at the beginning of a byte (RFC 1951 §3.2.4).
const STORED_BLOCK: u8 = 0;
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
    /// Bytes that are still to be coded at once.
    left_bytes: usize,
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
        self.left_bytes = MAX_CODED_BYTES;
        self.part(bytes.get(..first).unwrap_or_default(), Principal::UNKNOWN, &mut out);
        for ((start, principal), end) in marks.iter().zip(ends) {
            self.part(bytes.get(*start..end).unwrap_or_default(), *principal, &mut out);
        }
        out
    }

    fn part(&mut self, bytes: &[u8], principal: Principal, out: &mut Vec<u8>) {
        for run in bytes.chunks(MAX_RUN_BYTES) {
            let may_be = principal.is_known() && run.len() <= self.left_bytes;
            let is_coded = may_be && self.run(run, principal, out).is_some();
            if !is_coded {
                varint::encode(0, out);
                varint::encode(run.len() as u64, out);
                out.extend_from_slice(run);
            }
        }
    }

    /// `None`: there is no context for it, and nothing was written.
    fn run(&mut self, run: &[u8], principal: Principal, out: &mut Vec<u8>) -> Option<()> {
        self.runs += 1;
        let at = self.context(principal)?;
        let context = self.contexts.get_mut(at)?;
        context.used = self.runs;
        self.left_bytes -= run.len();
        let mut coded = Vec::with_capacity(run.len() / 2 + 16);
        let result = context.encoder.encode(run, false, &mut coded);
        if result.is_err() || !coded.ends_with(&FLUSH_END) {
            // Whatever it has is of no use to the other side.
            context.encoder = Options::of(CODING).ok()?.encoder().ok()?;
            context.is_new = true;
            return None;
        }
        coded.truncate(coded.len() - FLUSH_END.len());
        while run.len() > most_bytes(coded.len()) {
            coded.extend_from_slice(&FLUSH_END);
            coded.push(STORED_BLOCK);
        }
        varint::encode((at as u64 + 1) << 1 | u64::from(context.is_new), out);
        context.is_new = false;
        varint::encode(run.len() as u64, out);
        varint::encode(coded.len() as u64, out);
        out.extend_from_slice(&coded);
        Some(())
    }

    /// The context of a principal: its own, a new one, or one that has not been used for long.
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
        if oldest.used + MIN_IDLE_RUNS > self.runs {
            return None;
        }
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
        if len > most_bytes(coded_len) {
            let what = "a run of a coded connection stands for over 32 times its bytes";
            return Err(Refused::malformed(what));
        }
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

/// What so many coded bytes may stand for.
fn most_bytes(coded_len: usize) -> usize {
    coded_len.saturating_mul(MAX_RATIO).saturating_add(MIN_RATIO_BYTES)
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
        let principal = principals.add();
        let renewed = contexts.get_mut(at).is_some_and(|context| {
            context.principal = principal;
            context.decoder.renew()
        });
        if !renewed {
            let decoder = Options::of(CODING).and_then(Options::decoder);
            let decoder = decoder.map_err(|_| Refused::malformed("no memory for a context"))?;
            contexts.truncate(at);
            contexts.push(Inbound { principal, decoder });
        }
    }
    let known = contexts.get_mut(at);
    known.ok_or_else(|| Refused::malformed("a run of a context that has not begun, or is over 8"))
}
