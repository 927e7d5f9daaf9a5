//! Content codings of HTTP (RFC 9110 §8.4.1), a block at a time: each block comes out whole, so
//! that a client sees what was sent so far.
//!
//! ```
//! use longwire_codec::{Options, content::Coding};
//! let mut encoder = Coding::Gzip.encoder(Options::of("deflate:9")?)?;
//! let mut body = Vec::new();
//! encoder.encode(b"to be, ", false, &mut body)?;
//! encoder.encode(b"or not to be", true, &mut body)?;
//! assert_eq!(body[..2], [0x1f, 0x8b]);
//! # Ok::<(), longwire_codec::Error>(())
//! ```

use zstd_safe::FrameFormat;

use crate::brotli::Brotli;
use crate::deflate::Deflate;
use crate::gzip::GzipEncoder;
use crate::zstd::{Zstd, ZstdEncoder};
use crate::{Codec, Encoder, Error, Options};

/// A coding that clients of HTTP know, of a codec for any bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coding {
    /// RFC 1952.
    Gzip,
    /// RFC 1950, what HTTP calls deflate (RFC 9110 §8.4.1.2).
    Deflate,
    /// RFC 8878, with a window that every client has (RFC 9659).
    Zstd,
    /// RFC 7932.
    Brotli,
}

impl Coding {
    /// All, where two are of one codec the better understood first.
    pub const ALL: [Self; 4] = [Self::Gzip, Self::Deflate, Self::Zstd, Self::Brotli];

    /// Its name in Content-Encoding.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Zstd => "zstd",
            Self::Brotli => "br",
        }
    }

    /// The coding of a name, in lower case.
    #[must_use]
    pub fn named(token: &str) -> Option<Self> {
        // RFC 9110 §8.4.1.3: to be taken for gzip.
        let token = if token == "x-gzip" { "gzip" } else { token };
        Self::ALL.into_iter().find(|coding| coding.token() == token)
    }

    /// The codec that makes it.
    #[must_use]
    pub fn codec(self) -> &'static dyn Codec {
        match self {
            Self::Gzip | Self::Deflate => &Deflate,
            Self::Zstd => &Zstd,
            Self::Brotli => &Brotli,
        }
    }

    /// A fresh context with the level and window of `options`. Errors: they are another codec's.
    pub fn encoder(self, options: Options) -> Result<Box<dyn Encoder>, Error> {
        if options.codec != self.codec() {
            let (token, label) = (self.token(), options.label());
            return Err(Error::Option { what: format!("{token} is not made by {label}") });
        }
        match self {
            Self::Gzip => Ok(Box::new(GzipEncoder::gzip(options.level))),
            Self::Deflate => Ok(Box::new(GzipEncoder::zlib(options.level))),
            Self::Zstd => Ok(Box::new(ZstdEncoder::formed(options, FrameFormat::One)?)),
            // The blocks of the pair are those of RFC 7932.
            Self::Brotli => options.encoder(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;

    #[test]
    fn what_comes_out_is_the_standard_form_whole_after_each_block() {
        let text = b"<track id=\"7\"><pos>12.5 60.1</pos></track>\n".repeat(40);
        for coding in Coding::ALL {
            let codec = coding.codec();
            let (least, usual, most) = codec.levels().unwrap();
            for level in [least, usual, most] {
                let options = Options::of(&format!("{}:{level}", codec.name())).unwrap();
                let mut encoder = coding.encoder(options).unwrap();
                let mut decoder = Settings::default().decoder(codec.name()).unwrap();
                let (mut coded, mut back) = (Vec::new(), Vec::new());
                let blocks = [&text[..1], &text[1..100], &text[100..], b""];
                let mut sent = 0;
                for (at, block) in blocks.iter().enumerate() {
                    let (last, from) = (at == 3, coded.len());
                    encoder.encode(block, last, &mut coded).unwrap();
                    sent += block.len();
                    let mut rest = &coded[from..];
                    while !rest.is_empty() || (last && back.len() < sent) {
                        let step = decoder.decode(rest, last, &mut back).unwrap();
                        rest = &rest[step.used..];
                    }
                    assert_eq!(back, text[..sent], "{}:{level}", coding.token());
                }
                assert_eq!(Settings::default().decode(codec.name(), &coded).unwrap(), text);
                assert!(encoder.encode(b"x", true, &mut coded).is_err());
            }
        }
    }

    #[test]
    fn names_are_those_of_the_registry() {
        assert_eq!(Coding::named("x-gzip"), Some(Coding::Gzip));
        assert_eq!(Coding::named("br"), Some(Coding::Brotli));
        assert_eq!(Coding::named("compress"), None);
        assert!(Coding::Gzip.encoder(Options::of("zstd").unwrap()).is_err());
    }
}
