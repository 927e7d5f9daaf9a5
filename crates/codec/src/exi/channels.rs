//! Blocks of channels (EXI §9): the structure first, then the values of each name together.

use flate2::{Compress, Compression, FlushCompress, Status};

use super::{Alignment, Options, bits::Fault, grammar::DatatypeId, tables::NONE, text::Span};

/// Values that a channel may have to share a stream with others (EXI §9.3).
pub(crate) const SMALL: usize = 100;

/// The values of one name in a block.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    pub(crate) name: u32,
    /// Numbers of the values in the block.
    pub(crate) values: Vec<u32>,
}

/// Which values of a block belong to which channel.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    block_size: usize,
    /// Datatype of each value.
    pub(crate) datatypes: Vec<DatatypeId>,
    pub(crate) channels: Vec<Channel>,
    /// Channel + 1 of each name; 0 if it has none in this block.
    of_name: Vec<u32>,
    /// What was read.
    pub(crate) values: Vec<Span>,
}

impl Plan {
    pub(crate) fn of(options: &Options) -> Option<Self> {
        let block_size = usize::try_from(options.block_size.max(1)).unwrap_or(usize::MAX);
        matches!(options.alignment, Alignment::PreCompression | Alignment::Compression)
            .then(|| Self { block_size, ..Self::default() })
    }

    /// Whether the block has all its values.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.datatypes.len() >= self.block_size
    }

    /// One more value.
    pub(crate) fn push(&mut self, name: u32, datatype: DatatypeId) {
        let value = u32::try_from(self.datatypes.len()).unwrap_or(NONE);
        self.datatypes.push(datatype);
        if name as usize >= self.of_name.len() {
            self.of_name.resize(name as usize + 1, 0);
        }
        let place = &mut self.of_name[name as usize];
        if *place == 0 {
            self.channels.push(Channel { name, values: Vec::new() });
            *place = u32::try_from(self.channels.len()).unwrap_or(NONE);
        }
        if let Some(channel) = self.channels.get_mut(*place as usize - 1) {
            channel.values.push(value);
        }
    }

    /// Numbers of the channels in the order of the stream (EXI §9.3), and how many of them are
    /// small. In a block of few values the order is that of the first value.
    pub(crate) fn order(&self) -> (Vec<usize>, usize) {
        let all = 0..self.channels.len();
        if self.datatypes.len() <= SMALL {
            return (all.collect(), self.channels.len());
        }
        let is_small = |&at: &usize| self.channels[at].values.len() <= SMALL;
        let mut order: Vec<usize> = all.clone().filter(is_small).collect();
        let small = order.len();
        order.extend(all.filter(|at| !is_small(at)));
        (order, small)
    }

    /// Bytes that it takes, with what values will.
    pub(crate) fn bytes(&self) -> usize {
        let value = size_of::<DatatypeId>() + size_of::<u32>() + size_of::<Span>();
        self.datatypes.len() * value + self.channels.len() * size_of::<Channel>()
    }

    /// Ready for the next block.
    pub(crate) fn clear(&mut self) {
        for channel in self.channels.drain(..) {
            self.of_name[channel.name as usize] = 0;
        }
        self.datatypes.clear();
        self.values.clear();
    }

    /// As before the first block.
    pub(crate) fn reset(&mut self) {
        *self = Self { block_size: self.block_size, ..Self::default() };
    }
}

/// Appends `bytes` as one stream of DEFLATE (RFC 1951).
pub(crate) fn deflate(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let mut stream = Compress::new(Compression::best(), false);
    loop {
        let read = usize::try_from(stream.total_in()).unwrap_or(usize::MAX);
        out.reserve(64 + (bytes.len() - read) / 4);
        let rest = bytes.get(read..).unwrap_or_default();
        match stream.compress_vec(rest, out, FlushCompress::Finish) {
            Ok(Status::StreamEnd) => return Ok(()),
            Ok(_) => {}
            Err(_) => return Err(Fault::Bad(&"deflate refuses to work")),
        }
    }
}
