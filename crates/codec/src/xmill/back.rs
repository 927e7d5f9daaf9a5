//! The general compressors behind the columns.

use crate::codec::{Decoder, Encoder, Options};
use crate::deflate::Deflate;
use crate::zstd::Zstd;
use crate::{Codec, Error};

/// Which general compressor takes the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Back {
    Deflate,
    Zstd,
}

impl Back {
    fn codec(self) -> &'static dyn Codec {
        match self {
            Self::Deflate => &Deflate,
            Self::Zstd => &Zstd,
        }
    }

    pub(super) fn encoder(self, options: Options) -> Result<Box<dyn Encoder>, Error> {
        self.codec().encoder(options)
    }

    pub(super) fn decoder(self, options: Options) -> Result<Box<dyn Decoder>, Error> {
        self.codec().decoder(options)
    }

    pub(super) fn encoder_bytes(self, options: Options) -> usize {
        self.codec().encoder_bytes(options)
    }

    pub(super) fn decoder_bytes(self, options: Options) -> usize {
        self.codec().decoder_bytes(options)
    }
}
