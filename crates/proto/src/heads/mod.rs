//! Heads of HTTP messages as they cross between two relays: what both know already is left out.
//!
//! A head is a list of lines: its control data (RFC 9292 §3.4, §3.5) and its fields. Common ones
//! have a number (`fixed`), as in QPACK's static table (RFC 9204 §3.1). Besides, a head may
//! be encoded against one that went before on the same carrier, its base, by what it changes of
//! that (`script`): the edge names the base of its request, and offers one for the answer. A base
//! is one that the other side is known to have, whatever gets lost or overtakes: the head of a
//! request that was answered, or of an answer that came (`edge`, `gateway`). So nothing waits for
//! anything, and nothing has to arrive in the order in which it left.
//!
//! Who calls sees to it that a head and its base are of the same owner, for the length shows what
//! both have in common: an owner is whoever asks, and of whom.
//!
//! ```text
//! 0x30 + b + d + o   [base] [number] [offer] script     a request
//! 0x38 + b + d       [number] script                    an answer; its base is what was offered
//! ```
//!
//! b = 1: it has a base, and d = 2: it is kept by this number, from 1; o = 4: the answer of this
//! number is offered. Numbers are those of RFC 9000 §16. The first byte is none of binary HTTP's
//! framing indicators (RFC 9292 §3.3), nor one of [`crate::message`].

mod edge;
mod fixed;
mod gateway;
mod script;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;

use crate::{Error, bhttp};

pub use edge::Edge;
pub use gateway::Gateway;

const REQUEST: u8 = 0x30;
const ANSWER: u8 = 0x38;
const HAS_BASE: u8 = 1;
const IS_KEPT: u8 = 2;
const OFFERS: u8 = 4;
/// Heads of either sort that a side keeps of a carrier: those of the last so many numbers.
const KEPT: u64 = 64;
/// Longer ones, in bytes of their lines with what each takes in memory, are not kept.
const MAX_KEPT_BYTES: usize = 4096;
const LINE_BYTES: usize = 32;
/// Where a script is longer, the head is kept: one more like it has less to tell.
const MIN_GAIN_BYTES: usize = 24;
/// Names of control data.
const METHOD: &[u8] = b":method";
const SCHEME: &[u8] = b":scheme";
const AUTHORITY: &[u8] = b":authority";
const PATH: &[u8] = b":path";
const STATUS: &[u8] = b":status";

/// A name and a value.
type Line = (Bytes, Bytes);
/// A head, line by line.
type Lines = Arc<[Line]>;

/// What a head may have in common with others.
#[derive(Clone, Copy, Debug)]
pub struct Sharing<O> {
    /// Whose it is: only with heads of the same owner; with none where nobody knows.
    pub owner: Option<O>,
    /// Only whole lines: a stranger may have written some of it.
    pub whole: bool,
    /// Nobody may keep it.
    pub fleeting: bool,
    /// Lines of such names are only shared whole.
    pub is_secret: fn(&[u8]) -> bool,
}

/// Whether it is a head that this module reads: others cross as they are.
#[must_use]
pub fn is_packed(head: &[u8]) -> bool {
    head.first().is_some_and(|first| (REQUEST..REQUEST + 16).contains(first))
}

/// A flag in the first byte, or none.
fn flag(is: bool, bit: u8) -> u8 {
    if is { bit } else { 0 }
}

/// The flags of a packed head of this sort, which may be these, and what is behind them.
fn flags(head: &Bytes, sort: u8, known: u8) -> Result<(u8, &[u8]), Error> {
    let (first, rest) = head.split_first().ok_or(Error::Truncated { what: "a head" })?;
    match first ^ sort {
        flags if flags & !known == 0 => Ok((flags, rest)),
        _ => Err(Error::Peer { what: "the first byte of a head", value: (*first).into() }),
    }
}

fn lines_of_request(head: &[u8]) -> Option<Lines> {
    let request = bhttp::Request::decode(head).ok()?;
    let bhttp::Request { method, scheme, authority, path, fields } = request;
    let control = [(METHOD, method), (SCHEME, scheme), (AUTHORITY, authority), (PATH, path)];
    let control = control.map(|(name, value)| (Bytes::from_static(name), value));
    let lines: Lines = control.into_iter().chain(fields).collect();
    // What is written otherwise than this side writes it crosses as it is.
    (request_of(&lines).ok()?[..] == *head).then_some(lines)
}

fn lines_of_answer(head: &[u8]) -> Option<Lines> {
    let bhttp::Response { status, fields } = bhttp::Response::decode(head).ok()?;
    let status = (Bytes::from_static(STATUS), status.to_string().into());
    let lines: Lines = [status].into_iter().chain(fields).collect();
    (answer_of(&lines).ok()?[..] == *head).then_some(lines)
}

fn control(line: Option<&Line>, name: &'static [u8]) -> Result<Bytes, Error> {
    let line = line.filter(|(one, _)| one == name).map(|(_, value)| value.clone());
    line.ok_or(Error::Peer { what: "a head without its control data", value: 0 })
}

/// The head as binary HTTP has it. What lines may be is for whoever reads that.
fn request_of(lines: &[Line]) -> Result<Bytes, Error> {
    let [method, scheme, authority, path] = [METHOD, SCHEME, AUTHORITY, PATH];
    let request = bhttp::Request {
        method: control(lines.first(), method)?,
        scheme: control(lines.get(1), scheme)?,
        authority: control(lines.get(2), authority)?,
        path: control(lines.get(3), path)?,
        fields: lines.get(4..).unwrap_or_default().to_vec(),
    };
    let mut head = Vec::new();
    request.encode(&mut head);
    Ok(head.into())
}

fn answer_of(lines: &[Line]) -> Result<Bytes, Error> {
    let status = control(lines.first(), STATUS)?;
    let status = str::from_utf8(&status).ok().and_then(|status| status.parse().ok());
    let status = status.ok_or(Error::Peer { what: "a status is a number", value: 0 })?;
    let fields = lines.get(1..).unwrap_or_default().to_vec();
    let mut head = Vec::new();
    bhttp::Response { status, fields }.encode(&mut head);
    Ok(head.into())
}

fn may_be_kept(lines: &[Line]) -> bool {
    let taken = |(name, value): &Line| name.len() + value.len() + LINE_BYTES;
    lines.iter().map(taken).sum::<usize>() <= MAX_KEPT_BYTES
}
