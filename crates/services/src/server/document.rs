//! Content that is answered more than once.

use std::io::Write;
use std::sync::OnceLock;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// The content of an answer, and the same under the gzip content coding.
#[derive(Debug)]
pub struct Document {
    plain: Bytes,
    gzip: OnceLock<Bytes>,
}

impl Document {
    /// A document of these bytes.
    #[must_use]
    pub fn new(plain: impl Into<Bytes>) -> Self {
        Self { plain: plain.into(), gzip: OnceLock::new() }
    }

    /// The content itself.
    #[must_use]
    pub fn plain(&self) -> Bytes {
        self.plain.clone()
    }

    /// The content as one gzip member (RFC 1952), made when first asked for.
    #[must_use]
    pub fn gzip(&self) -> Bytes {
        self.gzip.get_or_init(|| gzip(&self.plain)).clone()
    }
}

fn gzip(plain: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to a vector cannot fail; were it to, the answer would be visibly truncated gzip.
    let _ = encoder.write_all(plain);
    encoder.finish().unwrap_or_default().into()
}
