//! What members say to each other, as bytes. A frame is a length of 4 bytes, a kind of 1 byte and
//! a body; behind the greeting it ends with [`MAC_BYTES`] that the length counts too. Numbers are
//! big-endian, a text has its length in 2 bytes before it (docs/mesh.md has the table).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::urgency::Urgency;

use crate::filter::{check_filter, check_name};
use crate::ids::Protocol;
use crate::publication::{Details, Form, Grade, MAX_HOPS, Publication};

/// Version of the protocol.
pub(super) const VERSION: u8 = 2;
/// Bytes by which a frame is known to be its sender's.
pub(super) const MAC_BYTES: usize = 16;
/// Bytes of the number that a greeting is never the same by.
pub(super) const NONCE_BYTES: usize = 16;
/// Longest name of a member, as that of a node of bridges.
const MAX_NAME_BYTES: usize = 64;
/// Longest reason for a refusal, in bytes.
const MAX_WHY_BYTES: usize = 200;
/// Writers that one status names.
pub(super) const MAX_WRITERS: usize = 1024;
/// Filters in one frame.
pub(super) const MAX_FRAME_FILTERS: usize = 1024;
/// Properties of one publication.
const MAX_PROPERTIES: usize = 1024;

/// Whose log something is of: a member, and which of its lives. A member that has lost its store
/// begins another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Writer {
    pub(super) member: Arc<str>,
    pub(super) life: u64,
}

/// Where something stands in the log of its writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dot {
    pub(super) writer: Writer,
    pub(super) seq: u64,
}

/// A frame.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Frame {
    /// Who somebody says to be, to whom.
    Hello { from: Arc<str>, to: Arc<str>, nonce: [u8; NONCE_BYTES] },
    /// Nothing follows, for what reason.
    Refused { why: String },
    /// What the sender has of the receiver: of which life, up to where, and what it knows of its
    /// interest; and how long a frame it takes.
    Welcome { life: u64, your_life: u64, received: u64, interest: u64, max_frame: u64 },
    /// What the sender wants: all of it, or what has changed.
    Interest { version: u64, whole: bool, more: bool, add: Vec<Arc<str>>, remove: Vec<Arc<str>> },
    /// A publication of the sender's log; with a stamp it is a state too.
    Entry { seq: u64, stamp: u64, publication: Publication },
    /// A state, of the sender's log or of another's; without a value there is none any more. None
    /// of that log that counts stands between `from` and its place.
    State { from: u64, dot: Dot, stamp: u64, topic: Arc<str>, value: Option<Publication> },
    /// There is no state of a writer that counts between `from` and here.
    UpTo { from: u64, dot: Dot },
    /// What the sender has taken for good of the receiver's log.
    Ack { received: u64 },
    /// What states the sender has, which it wants from the receiver, and what all it has comes to.
    Status { held: Vec<Dot>, wants: Vec<Dot>, digest: u64 },
}

/// Why bytes are no frame.
pub(super) type Wrong = &'static str;

impl Frame {
    fn kind(&self) -> u8 {
        match self {
            Self::Hello { .. } => 1,
            Self::Refused { .. } => 2,
            Self::Welcome { .. } => 3,
            Self::Interest { .. } => 4,
            Self::Entry { .. } => 5,
            Self::State { .. } => 6,
            Self::UpTo { .. } => 7,
            Self::Ack { .. } => 8,
            Self::Status { .. } => 9,
        }
    }

    /// Kind and body.
    pub(super) fn encode(&self, now: Duration) -> Vec<u8> {
        let mut out = vec![self.kind()];
        match self {
            Self::Hello { from, to, nonce } => {
                out.push(VERSION);
                text(&mut out, from);
                text(&mut out, to);
                out.extend_from_slice(nonce);
            }
            Self::Refused { why } => text(&mut out, prefix(why, MAX_WHY_BYTES)),
            Self::Welcome { life, your_life, received, interest, max_frame } => {
                for number in [life, your_life, received, interest, max_frame] {
                    out.extend_from_slice(&number.to_be_bytes());
                }
            }
            Self::Interest { version, whole, more, add, remove } => {
                out.extend_from_slice(&version.to_be_bytes());
                out.push(u8::from(*whole) | u8::from(*more) << 1);
                for list in [add, remove] {
                    count(&mut out, list.len());
                    list.iter().for_each(|filter| text(&mut out, filter));
                }
            }
            Self::Entry { seq, stamp, publication } => {
                out.extend_from_slice(&seq.to_be_bytes());
                out.extend_from_slice(&stamp.to_be_bytes());
                put_publication(&mut out, now, publication);
            }
            Self::State { from, dot, stamp, topic, value } => {
                out.extend_from_slice(&from.to_be_bytes());
                put_dot(&mut out, dot);
                out.extend_from_slice(&stamp.to_be_bytes());
                match value {
                    Some(publication) => {
                        out.push(1);
                        put_publication(&mut out, now, publication);
                    }
                    None => {
                        out.push(0);
                        text(&mut out, topic);
                    }
                }
            }
            Self::UpTo { from, dot } => {
                out.extend_from_slice(&from.to_be_bytes());
                put_dot(&mut out, dot);
            }
            Self::Ack { received } => out.extend_from_slice(&received.to_be_bytes()),
            Self::Status { held, wants, digest } => {
                for list in [held, wants] {
                    count(&mut out, list.len());
                    list.iter().for_each(|dot| put_dot(&mut out, dot));
                }
                out.extend_from_slice(&digest.to_be_bytes());
            }
        }
        out
    }

    /// Reads kind and body, and nothing behind them.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(super) fn decode(now: Duration, bytes: &Bytes) -> Result<Self, Wrong> {
        let mut from = Reader::new(bytes);
        let frame = match from.u8()? {
            1 => {
                if from.u8()? != VERSION {
                    return Err("another version of the protocol: 2 is known");
                }
                let (name, to) = (from.name()?, from.name()?);
                let nonce = from.take(NONCE_BYTES)?.as_ref().try_into().map_err(|_| SHORT)?;
                Self::Hello { from: name, to, nonce }
            }
            2 => Self::Refused { why: prefix(&from.text()?, MAX_WHY_BYTES).to_owned() },
            3 => Self::Welcome {
                life: from.u64()?,
                your_life: from.u64()?,
                received: from.u64()?,
                interest: from.u64()?,
                max_frame: from.u64()?,
            },
            4 => from.interest()?,
            5 => {
                let (seq, stamp) = (from.u64()?, from.u64()?);
                Self::Entry { seq, stamp, publication: from.publication(now)? }
            }
            6 => {
                let (before, dot, stamp) = (from.u64()?, from.dot()?, from.u64()?);
                let value = match from.u8()? {
                    0 => None,
                    1 => Some(from.publication(now)?),
                    _ => return Err("a state neither with nor without a value"),
                };
                let topic = match &value {
                    Some(publication) => publication.topic.clone(),
                    None => from.topic()?,
                };
                Self::State { from: before, dot, stamp, topic, value }
            }
            7 => Self::UpTo { from: from.u64()?, dot: from.dot()? },
            8 => Self::Ack { received: from.u64()? },
            9 => Self::Status { held: from.dots()?, wants: from.dots()?, digest: from.u64()? },
            _ => return Err("a frame of a kind that is not known"),
        };
        from.end()?;
        Ok(frame)
    }
}

const SHORT: Wrong = "a frame that ends too early";

/// The beginning of a text, at most so many bytes.
fn prefix(text: &str, max_bytes: usize) -> &str {
    let mut end = text.len().min(max_bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

fn text(out: &mut Vec<u8>, text: &str) {
    let text = prefix(text, usize::from(u16::MAX));
    count(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

/// Lists are cut before they are over 65,535.
fn count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
}

fn put_dot(out: &mut Vec<u8>, dot: &Dot) {
    text(out, &dot.writer.member);
    out.extend_from_slice(&dot.writer.life.to_be_bytes());
    out.extend_from_slice(&dot.seq.to_be_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// A publication; its deadline as the time that is left, since clocks differ.
pub(super) fn put_publication(out: &mut Vec<u8>, now: Duration, publication: &Publication) {
    let form = match publication.form {
        Form::Bytes => 0,
        Form::Text => 1,
        Form::Xml => 2,
    };
    let flags = publication.grade.get()
        | u8::from(publication.retain) << 2
        | u8::from(publication.deadline.is_some()) << 3
        | u8::from(publication.details.is_some()) << 4
        | form << 5;
    out.push(flags);
    out.push(publication.urgency.get());
    if let Some(deadline) = publication.deadline {
        let left_ms = deadline.saturating_sub(now).as_millis();
        out.extend_from_slice(&u64::try_from(left_ms).unwrap_or(u64::MAX).to_be_bytes());
    }
    text(out, &publication.topic);
    if let Some(details) = &publication.details {
        put_details(out, details);
    }
    put_bytes(out, &publication.payload);
}

fn put_details(out: &mut Vec<u8>, details: &Details) {
    let Details { content_type, reply_to, correlation, properties, message_id, via, .. } = details;
    let has = [
        content_type.is_some(),
        reply_to.is_some(),
        correlation.is_some(),
        message_id.is_some(),
        details.priority.is_some(),
        details.created_ms.is_some(),
    ];
    out.push(has.iter().enumerate().fold(0, |flags, (at, has)| flags | u8::from(*has) << at));
    for value in [content_type, reply_to, message_id].into_iter().flatten() {
        text(out, value);
    }
    if let Some(correlation) = correlation {
        put_bytes(out, correlation);
    }
    out.extend(details.priority);
    out.extend(details.created_ms.into_iter().flat_map(u64::to_be_bytes));
    let properties = properties.get(..MAX_PROPERTIES).unwrap_or(properties);
    count(out, properties.len());
    for (name, value) in properties {
        text(out, name);
        text(out, value);
    }
    let via = via.get(..MAX_HOPS).unwrap_or(via);
    count(out, via.len());
    via.iter().for_each(|node| text(out, node));
}

/// Bytes that are read from the front.
pub(super) struct Reader {
    rest: Bytes,
}

impl Reader {
    /// All of them.
    pub(super) fn new(bytes: &Bytes) -> Self {
        Self { rest: bytes.clone() }
    }

    fn take(&mut self, bytes: usize) -> Result<Bytes, Wrong> {
        if bytes > self.rest.len() {
            return Err(SHORT);
        }
        Ok(self.rest.split_to(bytes))
    }

    /// One byte.
    pub(super) fn u8(&mut self) -> Result<u8, Wrong> {
        self.take(1)?.first().copied().ok_or(SHORT)
    }

    fn u16(&mut self) -> Result<usize, Wrong> {
        let bytes = self.take(2)?.as_ref().try_into().map_err(|_| SHORT)?;
        Ok(usize::from(u16::from_be_bytes(bytes)))
    }

    /// A number of 8 bytes.
    pub(super) fn u64(&mut self) -> Result<u64, Wrong> {
        let bytes = self.take(8)?.as_ref().try_into().map_err(|_| SHORT)?;
        Ok(u64::from_be_bytes(bytes))
    }

    fn bytes(&mut self) -> Result<Bytes, Wrong> {
        let len = self.take(4)?.as_ref().try_into().map_err(|_| SHORT)?;
        self.take(usize::try_from(u32::from_be_bytes(len)).unwrap_or(usize::MAX))
    }

    fn text(&mut self) -> Result<String, Wrong> {
        let len = self.u16()?;
        let bytes = self.take(len)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| "a text that is no UTF-8")
    }

    /// The name of a member.
    pub(super) fn name(&mut self) -> Result<Arc<str>, Wrong> {
        let name = self.text()?;
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            return Err("a name of a member that is not of 1 to 64 bytes");
        }
        Ok(name.into())
    }

    /// A text of so many bytes.
    pub(super) fn short_text(&mut self, bytes: u8) -> Result<Arc<str>, Wrong> {
        let bytes = self.take(usize::from(bytes))?;
        String::from_utf8(bytes.to_vec()).map(Into::into).map_err(|_| "a text that is no UTF-8")
    }

    fn topic(&mut self) -> Result<Arc<str>, Wrong> {
        let topic = self.text()?;
        check_name(&topic)?;
        if topic.starts_with('$') {
            return Err("a topic that begins with $, which stays with its broker");
        }
        Ok(topic.into())
    }

    /// A place in a log.
    pub(super) fn dot(&mut self) -> Result<Dot, Wrong> {
        let writer = Writer { member: self.name()?, life: self.u64()? };
        Ok(Dot { writer, seq: self.u64()? })
    }

    fn dots(&mut self) -> Result<Vec<Dot>, Wrong> {
        let count = self.u16()?;
        if count > MAX_WRITERS {
            return Err("a status of more than 1,024 writers");
        }
        (0..count).map(|_| self.dot()).collect()
    }

    fn filters(&mut self) -> Result<Vec<Arc<str>>, Wrong> {
        let count = self.u16()?;
        if count > MAX_FRAME_FILTERS {
            return Err("an interest of more than 1,024 filters in one frame");
        }
        let filter = |_| {
            let filter = self.text()?;
            check_filter(&filter)?;
            Ok(filter.into())
        };
        (0..count).map(filter).collect()
    }

    fn interest(&mut self) -> Result<Frame, Wrong> {
        let version = self.u64()?;
        let flags = self.u8()?;
        if flags > 3 {
            return Err("an interest with flags that are not known");
        }
        let (add, remove) = (self.filters()?, self.filters()?);
        let (whole, more) = (flags & 1 != 0, flags & 2 != 0);
        Ok(Frame::Interest { version, whole, more, add, remove })
    }

    /// A publication, which has come from another member.
    pub(super) fn publication(&mut self, now: Duration) -> Result<Publication, Wrong> {
        let (flags, urgency) = (self.u8()?, self.u8()?);
        let left_ms = if flags & 8 != 0 { Some(self.u64()?) } else { None };
        let topic = self.topic()?;
        let details = if flags & 16 != 0 { Some(Box::new(self.details()?)) } else { None };
        let payload = self.bytes()?;
        let mut publication = Publication::new(Protocol::Mesh, topic, payload);
        publication.grade = Grade::new(flags & 3).ok_or("a publication of QoS 3")?;
        publication.retain = flags & 4 != 0;
        publication.deadline = left_ms.map(|ms| now.saturating_add(Duration::from_millis(ms)));
        publication.form = match flags >> 5 {
            0 => Form::Bytes,
            1 => Form::Text,
            2 => Form::Xml,
            _ => return Err("a payload of a form that is not known"),
        };
        publication.urgency =
            Urgency::new(urgency.into()).ok_or("an urgency over 7 (RFC 9218 §4.1)")?;
        publication.details = details;
        Ok(publication)
    }

    fn details(&mut self) -> Result<Details, Wrong> {
        let flags = self.u8()?;
        let has = |at: u8| flags >> at & 1 != 0;
        let mut details = Details::default();
        let texts = [&mut details.content_type, &mut details.reply_to, &mut details.message_id];
        for (value, at) in texts.into_iter().zip([0, 1, 3]) {
            if has(at) {
                *value = Some(self.text()?);
            }
        }
        if has(2) {
            details.correlation = Some(self.bytes()?);
        }
        if has(4) {
            details.priority = Some(self.u8()?);
        }
        if has(5) {
            details.created_ms = Some(self.u64()?);
        }
        let count = self.u16()?;
        if count > MAX_PROPERTIES {
            return Err("a publication of more than 1,024 properties");
        }
        for _ in 0..count {
            details.properties.push((self.text()?, self.text()?));
        }
        let count = self.u16()?;
        if count > MAX_HOPS {
            return Err("a publication that has passed more than 8 nodes");
        }
        for _ in 0..count {
            details.via.push(self.text()?);
        }
        Ok(details)
    }

    /// There is nothing more.
    pub(super) fn end(&self) -> Result<(), Wrong> {
        if self.rest.is_empty() { Ok(()) } else { Err("bytes behind the end of a frame") }
    }
}
