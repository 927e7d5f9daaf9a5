//! What a policy has learned, as bytes and back: a process that starts again goes on where it
//! ended.
//!
//! Little-endian. A head: version of the format (1 byte), kind of policy (1 byte), number of arms
//! (1 byte), and of each its name (1 byte of length, UTF-8). Arms are known by their names, so that
//! another set of them takes what it knows: the rest is skipped. Then the policy's own, each part
//! written beside its type (`Persist`). Nothing may follow.
//!
//! The bytes come from a disk: every figure has a range and every count a bound, and what is
//! refused leaves the policy as it was.

use std::fmt;
use std::ops::RangeInclusive;

use crate::arm::{Arm, Speed};

/// Version of the format; another one is refused, for a wrong profile is worse than none.
pub const VERSION: u8 = 10;
/// Most arms: more than all codecs have levels worth telling apart.
pub const MAX_ARMS: usize = 64;
/// Longest name of an arm, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// Why bytes are no state.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// Another version of the format.
    Version(u8),
    /// Of another policy.
    Kind(u8),
    /// The bytes end early.
    Short,
    /// So many bytes follow.
    Trailing(usize),
    /// A name is no text, or longer than [`MAX_NAME_BYTES`].
    Name,
    /// A figure is out of its range.
    Range {
        /// Which.
        what: &'static str,
        /// As it is.
        value: f64,
        /// The least that it may be.
        least: f64,
        /// The most.
        most: f64,
    },
    /// Figures that do not go together.
    Damaged(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(found) => {
                write!(f, "learned state of version {found}; this longwire knows {VERSION}")
            }
            Self::Kind(found) => write!(f, "learned state of another policy ({found})"),
            Self::Short => write!(f, "learned state ends early"),
            Self::Trailing(bytes) => write!(f, "learned state has {bytes} bytes too many"),
            Self::Name => write!(f, "an arm's name is no text of {MAX_NAME_BYTES} bytes"),
            Self::Range { what, value, least, most } => {
                write!(f, "learned state: {what} is {value}, not from {least} to {most}")
            }
            Self::Damaged(what) => write!(f, "learned state: {what}"),
        }
    }
}

impl std::error::Error for Error {}

/// Whose state it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Learned = 1,
    Nam = 2,
}

/// What can be saved. `read` into a part that is as new; what it holds after an error is no good.
pub(crate) trait Persist {
    fn write(&self, to: &mut Writer<'_>);
    fn read(&mut self, from: &mut Reader<'_>) -> Result<(), Error>;
}

/// Saves a policy of `own` arms that have these names. Nothing is saved where the names are not one
/// an arm, or beyond the bounds: nobody could restore it.
pub(crate) fn save(kind: Kind, arms: &[&str], own: usize, state: &impl Persist, out: &mut Vec<u8>) {
    let bad = |name: &&str| name.len() > MAX_NAME_BYTES;
    if arms.len() != own || own > MAX_ARMS || arms.iter().any(bad) {
        return;
    }
    let mut to = Writer { out };
    to.u8(VERSION);
    to.u8(kind as u8);
    to.count(own);
    for name in arms {
        to.count(name.len());
        to.out.extend_from_slice(name.as_bytes());
    }
    state.write(&mut to);
}

/// Restores `state` of `own` arms that have these names; after an error it is as it was.
pub(crate) fn restore<S: Persist + Clone>(
    kind: Kind,
    arms: &[&str],
    own: usize,
    state: &mut S,
    bytes: &[u8],
) -> Result<(), Error> {
    let mut from = Reader { left: bytes, arms: Vec::new() };
    match from.u8()? {
        VERSION => {}
        other => return Err(Error::Version(other)),
    }
    match from.u8()? {
        found if found == kind as u8 => {}
        other => return Err(Error::Kind(other)),
    }
    for _ in 0..from.count("number of arms", MAX_ARMS)? {
        let length = from.count("length of a name", MAX_NAME_BYTES)?;
        let name = std::str::from_utf8(from.take(length)?).map_err(|_| Error::Name)?;
        from.arms.push(arms.iter().take(own).position(|arm| *arm == name).map(Arm));
    }
    let mut restored = state.clone();
    restored.read(&mut from)?;
    if !from.left.is_empty() {
        return Err(Error::Trailing(from.left.len()));
    }
    *state = restored;
    Ok(())
}

/// Writes figures.
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    /// A number that is bounded far below what two bytes hold.
    pub(crate) fn count(&mut self, value: usize) {
        let value = u16::try_from(value).unwrap_or(u16::MAX);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn f64(&mut self, value: f64) {
        self.u64(value.to_bits());
    }

    pub(crate) fn speed(&mut self, speed: &Speed) {
        self.f64(speed.fixed_s);
        self.f64(speed.per_byte_s);
    }
}

/// A million observations a second would take half a million years to it.
const MAX_CLOCK: u64 = 1 << 63;

/// Reads figures, each within its range.
pub(crate) struct Reader<'a> {
    left: &'a [u8],
    /// Of each arm of the state, which one of ours it is.
    arms: Vec<Option<Arm>>,
}

/// Slowest that a codec is believed to be: 10 s to begin with, and a byte in 10 ms.
const SLOWEST: Speed = Speed { fixed_s: 10.0, per_byte_s: 1e-2 };

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, left) = self.left.split_at_checked(length).ok_or(Error::Short)?;
        self.left = left;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.take(N)?.try_into().map_err(|_| Error::Short)
    }

    fn u8(&mut self) -> Result<u8, Error> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(crate) fn count(&mut self, what: &'static str, most: usize) -> Result<usize, Error> {
        let value = usize::from(u16::from_le_bytes(self.array()?));
        if value <= most {
            return Ok(value);
        }
        Err(Error::Range { what, value: value as f64, least: 0.0, most: most as f64 })
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A clock that counts observations; it must be able to go on.
    pub(crate) fn clock(&mut self) -> Result<u64, Error> {
        let clock = self.u64()?;
        (clock <= MAX_CLOCK).then_some(clock).ok_or(Error::Damaged("its clock is about to end"))
    }

    /// A figure within its range; what is no number is in none.
    pub(crate) fn f64(
        &mut self,
        what: &'static str,
        range: RangeInclusive<f64>,
    ) -> Result<f64, Error> {
        let value = f64::from_bits(self.u64()?);
        if range.contains(&value) {
            return Ok(value);
        }
        Err(Error::Range { what, value, least: *range.start(), most: *range.end() })
    }

    pub(crate) fn speed(&mut self) -> Result<Speed, Error> {
        Ok(Speed {
            fixed_s: self.f64("seconds that a codec begins with", 0.0..=SLOWEST.fixed_s)?,
            per_byte_s: self.f64("seconds a byte", 0.0..=SLOWEST.per_byte_s)?,
        })
    }

    /// Number of arms in the state, and which of ours each is.
    pub(crate) fn arms(&self) -> Vec<Option<Arm>> {
        self.arms.clone()
    }

    /// An arm of the state, by its number there.
    pub(crate) fn arm(&mut self) -> Result<Option<Arm>, Error> {
        let most = self.arms.len().saturating_sub(1);
        let at = self.count("number of an arm", most)?;
        self.arms.get(at).copied().ok_or(Error::Damaged("an arm that it does not name"))
    }
}
