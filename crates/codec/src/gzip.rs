//! Deflate as other programs keep it: gzip (RFC 1952), and zlib (RFC 1950) where it comes.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::{Encoder, Error, Settings, Step, StreamDecoder};

const NAME: &str = "deflate";
/// Window of all of deflate, as a power of two.
const WINDOW_LOG: u8 = 15;
/// Least room for what one step gives, in bytes.
const STEP_BYTES: usize = 64 << 10;
/// First byte of a gzip member (RFC 1952 §2.3.1).
const GZIP_ID1: u8 = 0x1f;

pub(crate) fn encoder(settings: &Settings) -> Result<Box<dyn Encoder>, Error> {
    let level = settings.level.unwrap_or(6);
    Ok(Box::new(GzipEncoder { between: FlushCompress::None, ..GzipEncoder::gzip(level) }))
}

pub(crate) fn decoder(_: &Settings) -> Result<Box<dyn StreamDecoder>, Error> {
    Ok(Box::new(GzipDecoder { context: None, gzip: false, offset: 0 }))
}

pub(crate) struct GzipEncoder {
    context: Compress,
    /// What is asked for behind each block but the last.
    between: FlushCompress,
    closed: bool,
}

impl GzipEncoder {
    /// A member of gzip whose blocks each come out whole.
    pub(crate) fn gzip(level: i8) -> Self {
        Self::of(Compress::new_gzip(compression(level), WINDOW_LOG))
    }

    /// The same as a stream of zlib.
    pub(crate) fn zlib(level: i8) -> Self {
        Self::of(Compress::new(compression(level), true))
    }

    fn of(context: Compress) -> Self {
        Self { context, between: FlushCompress::Sync, closed: false }
    }
}

fn compression(level: i8) -> Compression {
    Compression::new(u32::from(level.unsigned_abs()))
}

impl Encoder for GzipEncoder {
    fn encode(&mut self, block: &[u8], last: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.closed {
            let what = "a block behind the last".to_owned();
            return Err(Error::Option { what });
        }
        self.closed = last;
        let flush = if last { FlushCompress::Finish } else { self.between };
        let mut rest = block;
        loop {
            out.reserve(4096.max(rest.len() / 4));
            let before = self.context.total_in();
            let status = self
                .context
                .compress_vec(rest, out, flush)
                .map_err(|error| Error::Limit { codec: NAME, what: error.to_string() })?;
            rest = rest.get(progress(before, self.context.total_in())..).unwrap_or_default();
            // With room left over and nothing to read, a flush is complete (zlib manual).
            let flushed = out.len() < out.capacity() || matches!(flush, FlushCompress::None);
            if status == Status::StreamEnd || (!last && rest.is_empty() && flushed) {
                return Ok(());
            }
        }
    }
}

struct GzipDecoder {
    /// Of the member that is under way, or of the one that just ended.
    context: Option<Decompress>,
    gzip: bool,
    /// Bytes used of the stream.
    offset: u64,
}

impl StreamDecoder for GzipDecoder {
    fn decode(&mut self, input: &[u8], last: bool, out: &mut Vec<u8>) -> Result<Step, Error> {
        out.reserve(STEP_BYTES);
        let mut used = 0;
        loop {
            let rest = &input[used..];
            let context = match (&mut self.context, rest.first()) {
                (Some(context), _) => context,
                (None, None) => return Ok(Step { used, done: false }),
                (none, Some(first)) => {
                    self.gzip = *first == GZIP_ID1;
                    none.insert(match self.gzip {
                        true => Decompress::new_gzip(WINDOW_LOG),
                        false => Decompress::new(true),
                    })
                }
            };
            let before = context.total_in();
            let status = context.decompress_vec(rest, out, FlushDecompress::None);
            let now = progress(before, context.total_in()).min(rest.len());
            used += now;
            self.offset += now as u64;
            let malformed =
                |what: String| Error::Malformed { codec: NAME, offset: self.offset, what };
            let status = status.map_err(|error| malformed(error.to_string()))?;
            match (status, input.get(used)) {
                (Status::StreamEnd, None) => return Ok(Step { used, done: last }),
                // Members may follow one another (RFC 1952 §2.2).
                (Status::StreamEnd, Some(&GZIP_ID1)) if self.gzip => self.context = None,
                (Status::StreamEnd, Some(_)) => {
                    return Err(malformed("bytes behind the end".to_owned()));
                }
                _ => return Ok(Step { used, done: false }),
            }
        }
    }
}

/// What one of zlib's counters grew by since `before`; a block's fits `usize`.
fn progress(before: u64, after: u64) -> usize {
    usize::try_from(after.saturating_sub(before)).unwrap_or(usize::MAX)
}
