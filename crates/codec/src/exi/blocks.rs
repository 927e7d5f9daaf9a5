//! Reading blocks of channels (EXI §9) as they come, one at a time: the structure, then the values,
//! and only then the events, since an event's value may be the last that the block says.

use flate2::{Decompress, FlushDecompress, Status};

use super::{
    Alignment, Options,
    bits::{Fault, Reader},
    channels::{Plan, SMALL},
    decoder::{Core, Item},
    tables::NONE,
    text::Span,
};
use crate::Limits;

/// Bytes that are inflated at once: they stay in the cache until they are read.
const CHUNK: usize = 1 << 15;

/// The events of a block, a word each as a rule: a kind in three bits, and a name.
#[derive(Debug, Default)]
struct Queue {
    words: Vec<u32>,
    /// Events that do not fit into a word, with their values if those are not in channels.
    rare: Vec<(Item, Span)>,
    /// The next word, rare event and value to be handed out.
    next_word: usize,
    next_rare: usize,
    next_value: usize,
}

/// What a word says.
mod kind {
    pub(super) const START: u32 = 0;
    /// The number of the prefix is in the next word.
    pub(super) const START_PREFIXED: u32 = 1;
    pub(super) const ATTRIBUTE: u32 = 2;
    /// See [`START_PREFIXED`].
    pub(super) const ATTRIBUTE_PREFIXED: u32 = 3;
    pub(super) const CHARACTERS: u32 = 4;
    pub(super) const END: u32 = 5;
    pub(super) const RARE: u32 = 6;
}

impl Queue {
    #[inline]
    fn push(&mut self, item: Item, value: Span) {
        let deferred = value == Span::DEFERRED;
        let fits = |name: u32| name <= NONE >> 3;
        match item {
            Item::Start { name, prefix } if fits(name) => self.named(kind::START, name, prefix),
            Item::Attribute { name, prefix } if deferred && fits(name) => {
                self.named(kind::ATTRIBUTE, name, prefix);
            }
            Item::Characters if deferred => self.words.push(kind::CHARACTERS),
            Item::End => self.words.push(kind::END),
            _ => {
                self.words.push(kind::RARE);
                self.rare.push((item, value));
            }
        }
    }

    #[inline]
    fn named(&mut self, kind: u32, name: u32, prefix: u32) {
        if prefix == NONE {
            self.words.push(name << 3 | kind);
        } else {
            self.words.extend([name << 3 | kind | 1, prefix]);
        }
    }

    fn bytes(&self) -> usize {
        self.words.len() * 4 + self.rare.len() * size_of::<(Item, Span)>()
    }

    /// Brings the next event to [`Core::item`], and its value to [`Core::value`].
    #[inline]
    fn pop(&mut self, core: &mut Core) -> bool {
        let Some(&word) = self.words.get(self.next_word) else { return false };
        self.next_word += 1;
        let name = word >> 3;
        let no_value = Span::default();
        let (item, value) = match word & 7 {
            kind::START => (Item::Start { name, prefix: NONE }, no_value),
            kind::START_PREFIXED => (Item::Start { name, prefix: self.prefix() }, no_value),
            kind::END => (Item::End, no_value),
            kind::ATTRIBUTE => (Item::Attribute { name, prefix: NONE }, self.value(core)),
            kind::ATTRIBUTE_PREFIXED => {
                (Item::Attribute { name, prefix: self.prefix() }, self.value(core))
            }
            kind::CHARACTERS => (Item::Characters, self.value(core)),
            _ => {
                let Some(&(item, value)) = self.rare.get(self.next_rare) else { return false };
                self.next_rare += 1;
                match item {
                    // Its name does not fit into a word.
                    Item::Attribute { .. } if value == Span::DEFERRED => (item, self.value(core)),
                    _ => (item, value),
                }
            }
        };
        core.put(item, value);
        true
    }

    #[inline]
    fn prefix(&mut self) -> u32 {
        self.next_word += 1;
        self.words.get(self.next_word - 1).copied().unwrap_or(NONE)
    }

    #[inline]
    fn value(&mut self, core: &Core) -> Span {
        self.next_value += 1;
        core.block_value(self.next_value - 1)
    }

    fn clear(&mut self) {
        self.words.clear();
        self.rare.clear();
        (self.next_word, self.next_rare, self.next_value) = (0, 0, 0);
    }
}

/// One stream of DEFLATE after another (RFC 1951), inflated as far as it is read.
#[derive(Debug)]
struct Inflater {
    stream: Decompress,
    out: Vec<u8>,
    /// Bytes of `out` that were read.
    read: usize,
    begun: bool,
    ended: bool,
}

impl Inflater {
    fn new() -> Self {
        let stream = Decompress::new(false);
        Self { stream, out: Vec::new(), read: 0, begun: false, ended: false }
    }

    /// Goes on to the next stream.
    fn next(&mut self) {
        self.stream.reset(false);
        self.out.clear();
        (self.read, self.begun, self.ended) = (0, false, false);
    }

    /// Inflates until `wanted` bytes are there that were not read, or the stream is over, from the
    /// data behind `at`, its position in bits. Says whether that is so.
    fn fill(
        &mut self,
        wanted: usize,
        data: &[u8],
        at: &mut usize,
        last: bool,
    ) -> Result<bool, Fault> {
        self.out.drain(..self.read);
        self.read = 0;
        while !self.ended && self.out.len() < wanted {
            let rest = data.get(*at / 8..).unwrap_or_default();
            if rest.is_empty() && !self.begun && last {
                // A last block whose events take no bits may be left out.
                self.ended = true;
                break;
            }
            let room = rest.len().saturating_mul(4).clamp(256, CHUNK);
            self.out.reserve(room.max(wanted.saturating_sub(self.out.len()).min(CHUNK)));
            let (read, made) = (self.stream.total_in(), self.out.len());
            let status = self.stream.decompress_vec(rest, &mut self.out, FlushDecompress::None);
            let read = usize::try_from(self.stream.total_in() - read).unwrap_or(usize::MAX);
            *at += read * 8;
            self.begun |= read > 0;
            match status {
                Ok(Status::StreamEnd) => self.ended = true,
                Ok(_) if read > 0 || self.out.len() > made => {}
                Ok(_) if last => return Err(Fault::Short),
                Ok(_) => return Ok(false),
                Err(_) => return Err(Fault::Bad(&"not a stream of DEFLATE")),
            }
        }
        Ok(true)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Structure,
    Channels,
    Events,
}

/// Where in its blocks a stream is.
#[derive(Debug)]
pub(crate) struct Blocks {
    /// Of streams that are compressed.
    inflater: Option<Box<Inflater>>,
    phase: Phase,
    queue: Queue,
    /// Numbers of the block's channels as they come, and how many of them share a stream.
    order: Vec<usize>,
    small: usize,
    /// The next channel in `order`, and the next value in it.
    channel: usize,
    value: usize,
    /// The channel before which the current part, a stream of DEFLATE, ends.
    end: usize,
    /// Bytes that are wanted before the next try.
    wanted: usize,
    /// Most bytes that are held unread.
    most: usize,
}

impl Blocks {
    pub(crate) fn new(options: &Options, limits: &Limits) -> Self {
        let compressed = options.alignment == Alignment::Compression;
        Self {
            inflater: compressed.then(|| Box::new(Inflater::new())),
            phase: Phase::Structure,
            queue: Queue::default(),
            order: Vec::new(),
            small: 0,
            channel: 0,
            value: 0,
            end: 0,
            wanted: 0,
            most: limits.message_bytes,
        }
    }

    /// Brings the next event to `core`. Says no if more of the stream is needed than `data` has
    /// behind `at`, its position in bits; `last`: there is no more.
    #[inline]
    pub(crate) fn next(
        &mut self,
        core: &mut Core,
        data: &[u8],
        at: &mut usize,
        last: bool,
    ) -> Result<bool, Fault> {
        loop {
            if self.phase == Phase::Events {
                if self.queue.pop(core) {
                    return Ok(true);
                }
                self.queue.clear();
                core.end_block()?;
                self.phase = Phase::Structure;
            }
            if !self.read(core, data, at, last)? {
                return Ok(false);
            }
        }
    }

    /// Reads on in the current block; says whether it is whole.
    #[inline(never)]
    fn read(
        &mut self,
        core: &mut Core,
        data: &[u8],
        at: &mut usize,
        last: bool,
    ) -> Result<bool, Fault> {
        if let Some(mut inflater) = self.inflater.take() {
            let done = self.read_parts(core, &mut inflater, data, at, last);
            self.inflater = Some(inflater);
            return done;
        }
        if !last && data.len() < *at / 8 + self.wanted {
            return Ok(false);
        }
        let mut from = Reader::new(data, *at, true);
        let done = self.part(core, &mut from, false, last);
        *at = from.at;
        if !self.settle(done, from.left() / 8, last)? {
            return Ok(false);
        }
        self.phase = Phase::Events;
        Ok(true)
    }

    fn read_parts(
        &mut self,
        core: &mut Core,
        inflater: &mut Inflater,
        data: &[u8],
        at: &mut usize,
        last: bool,
    ) -> Result<bool, Fault> {
        while self.phase != Phase::Events {
            if !inflater.fill(self.wanted.max(CHUNK), data, at, last)? {
                return Ok(false);
            }
            let mut from = Reader::new(&inflater.out, 0, true);
            let done = self.part(core, &mut from, true, inflater.ended);
            inflater.read = from.at / 8;
            if !self.settle(done, from.left() / 8, inflater.ended)? {
                continue;
            }
            // The stream of DEFLATE has to end with what was read from it.
            if !inflater.fill(1, data, at, last)? {
                return Ok(false);
            }
            if !inflater.out.is_empty() {
                return Err(Fault::Bad(&"bytes behind the end of a channel"));
            }
            inflater.next();
            if self.channel == self.order.len() {
                self.phase = Phase::Events;
            } else {
                self.end = if self.channel < self.small { self.small } else { self.channel + 1 };
            }
        }
        Ok(true)
    }

    /// Whether all was read that was to be; `left` bytes were not.
    fn settle(&mut self, done: Result<(), Fault>, left: usize, whole: bool) -> Result<bool, Fault> {
        match done {
            Ok(()) => {
                self.wanted = 0;
                Ok(true)
            }
            Err(Fault::Short) if !whole && left > self.most => Err(Fault::Limit(&"message_bytes")),
            Err(Fault::Short) if !whole => {
                // Twice as much the next time: a long value is not read again for each piece.
                self.wanted = left.saturating_mul(2).saturating_add(1);
                Ok(false)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Reads to the end of the part, or of the block if there is only one.
    fn part(
        &mut self,
        core: &mut Core,
        from: &mut Reader,
        in_parts: bool,
        whole: bool,
    ) -> Result<(), Fault> {
        if self.phase == Phase::Structure {
            self.structure(core, from, whole)?;
            let count = core.plan.as_ref().map_or(0, |plan| plan.datatypes.len());
            (self.order, self.small) = core.plan.as_ref().map(Plan::order).unwrap_or_default();
            // EXI §9.3: a block of few values is one part.
            self.end = if in_parts && count > SMALL { 0 } else { self.order.len() };
            (self.channel, self.value) = (0, 0);
            self.phase = Phase::Channels;
        }
        while self.channel < self.end {
            let at = self.order.get(self.channel).copied().unwrap_or_default();
            core.channel(at, &mut self.value, from, whole, self.queue.bytes())?;
            self.channel += 1;
            self.value = 0;
        }
        Ok(())
    }

    fn structure(&mut self, core: &mut Core, from: &mut Reader, whole: bool) -> Result<(), Fault> {
        loop {
            let begin = from.at;
            if let Err(fault) = core.next(from, whole) {
                from.at = begin;
                return Err(fault);
            }
            self.queue.push(*core.item(), core.value());
            if self.queue.words.len().is_multiple_of(64) {
                core.check_block(self.queue.bytes())?;
            }
            let full = core.plan.as_ref().is_some_and(Plan::is_full);
            if full || matches!(core.item(), Item::EndDocument) {
                return Ok(());
            }
        }
    }
}
