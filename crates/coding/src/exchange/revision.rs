//! How a message goes on behind its first block: whether its blocks go through its codec is revised
//! at the ends of blocks, where what they leave, or the path, deviates from what it was.
//!
//! A message names one codec and window in its head; each block goes through its context or as it
//! is, and may begin a new context, at another level. A message that begins as it is and is long
//! names a codec too, for what may come.

use std::time::Duration;

use codec::Options;
use decide::Arm;
use decide::head::share_left;
use proto::exchange::MAX_BLOCK_BYTES;
use record::decision as facts;

/// Bytes of blocks that are judged together, at first. Each revision doubles it, so that what
/// changes to and fro is judged as a whole; and no revision is worth while for fewer.
pub(crate) const STRETCH_BYTES: usize = MAX_BLOCK_BYTES;
/// A message that went in one arm for this share of its bytes tells what that arm is like.
const MOSTLY: f64 = 0.9;
/// Most revisions of a message.
const MAX_REVISIONS: usize = 6;
/// Blocks are others than before if so many times as much or as little is left of them.
pub(crate) const SHARE_DEVIATES: f64 = 1.05;
/// The same for times: of the encoder for each byte, of the network for a block.
const TIME_DEVIATES: f64 = 2.0;

/// Blocks since the last review.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    plain: usize,
    /// What was left of them; of those that went as they are, what a fast coder would leave.
    left: f64,
    encode: Duration,
}

/// What blocks, and the path, were like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) share: f64,
    /// Seconds of encoding for each byte.
    pub(crate) encode_s: f64,
    /// Seconds of the network for a full block that finds no queue.
    block_s: f64,
}

impl Seen {
    fn is_like(&self, other: &Self) -> bool {
        is_near(self.share, other.share, SHARE_DEVIATES)
            && is_near(self.encode_s, other.encode_s, TIME_DEVIATES)
            && is_near(self.block_s, other.block_s, TIME_DEVIATES)
    }
}

/// Neither is more than so many times the other.
pub(crate) fn is_near(a: f64, b: f64, most: f64) -> bool {
    a <= b * most && b <= a * most
}

/// From some byte of a body on it went otherwise.
#[derive(Clone, Copy, Debug)]
struct Revision {
    at_bytes: u64,
    options: Options,
    reason: &'static str,
}

/// What came of the coded blocks of a message that went in one arm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) arm: Arm,
    pub(crate) plain_bytes: u64,
    pub(crate) coded_bytes: u64,
    pub(crate) encode: Duration,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Revisions {
    /// What those blocks go in that are coded.
    pub(crate) arm: Arm,
    pub(crate) options: Options,
    /// What the head names, whatever the blocks behind go in.
    named: Options,
    stretch: Stretch,
    /// At the last review.
    seen: Option<Seen>,
    /// It found something new, of which there may be more to come: a stretch holds some of both.
    moving: bool,
    revisions: Vec<Revision>,
    /// Of each arm that blocks went in.
    parts: Vec<Part>,
}

impl Revisions {
    /// Of a message whose head names these options; none where its blocks belong together.
    pub(crate) fn new(arm: Arm, options: Options) -> Option<Self> {
        let together = !options.stands_alone() || options.is_identity();
        (!together).then(|| Self {
            arm,
            options,
            named: options,
            stretch: Stretch::default(),
            seen: None,
            moving: false,
            revisions: Vec::new(),
            parts: Vec::new(),
        })
    }

    /// What the head names.
    pub(crate) fn named(&self) -> Options {
        self.named
    }

    /// Not all of the message went as it began.
    pub(crate) fn is_revised(&self) -> bool {
        !self.revisions.is_empty()
    }

    /// There may be another revision.
    pub(crate) fn may_revise(&self) -> bool {
        self.revisions.len() < MAX_REVISIONS
    }

    /// From here on it goes otherwise; whether that was right is seen at the end of the next
    /// stretch.
    pub(crate) fn revise(&mut self, at_bytes: u64, options: Options, reason: &'static str) {
        self.revisions.push(Revision { at_bytes, options, reason });
        self.seen = None;
    }

    /// A block came out of its encoder.
    pub(crate) fn coded(&mut self, plain_len: usize, coded_len: usize, cpu: Duration) {
        let arm = self.arm;
        let at = self.parts.iter().position(|part| part.arm == arm).unwrap_or_else(|| {
            self.parts.push(Part { arm, plain_bytes: 0, coded_bytes: 0, encode: Duration::ZERO });
            self.parts.len() - 1
        });
        let part = &mut self.parts[at];
        part.plain_bytes += plain_len as u64;
        part.coded_bytes += coded_len as u64;
        part.encode += cpu;
    }

    /// What came of all but a little of a message of so many bytes, where that went in one arm.
    pub(crate) fn mostly(&self, plain_bytes: u64) -> Option<Part> {
        let most = |part: &&Part| part.plain_bytes as f64 >= MOSTLY * plain_bytes as f64;
        self.parts.iter().find(most).copied()
    }

    /// How it went on, as it is told.
    pub(crate) fn reported(&self) -> Vec<facts::Revision> {
        let reported = |revision: &Revision| facts::Revision {
            at_bytes: revision.at_bytes,
            encoding: revision.options.label(),
            reason: revision.reason.to_owned(),
        };
        self.revisions.iter().map(reported).collect()
    }

    /// A block went: with what came out of its encoder and how long that took, or as it is.
    pub(crate) fn note(&mut self, plain: &[u8], coded: Option<(usize, Duration)>) {
        let (left, encode) = match coded {
            Some((left, encode)) => (left as f64, encode),
            None => (share_left(plain) * plain.len() as f64, Duration::ZERO),
        };
        self.stretch.plain += plain.len();
        self.stretch.left += left;
        self.stretch.encode += encode;
    }

    /// What the blocks were like, where there are enough of them and they are not as before.
    pub(crate) fn deviates(&mut self, block_s: f64) -> Option<Seen> {
        if self.stretch.plain < STRETCH_BYTES << self.revisions.len() {
            return None;
        }
        let Stretch { plain, left, encode } = std::mem::take(&mut self.stretch);
        let bytes = plain as f64;
        let (share, encode_s) = (left / bytes, encode.as_secs_f64() / bytes);
        let now = Seen { share, encode_s, block_s };
        let is_new = !self.seen.is_some_and(|before| now.is_like(&before));
        let reviews = is_new || self.moving;
        self.moving = is_new;
        if reviews {
            self.seen = Some(now);
        }
        self.seen.filter(|_| reviews)
    }
}
