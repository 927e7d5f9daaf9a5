//! Our side of the comparison.

use std::cell::RefCell;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use codec::Limits;
use codec::exi::schema::{Document, Schema};
use codec::exi::{Alignment, Decoder, DocumentEncoder, Grammars, Options};

use super::peer::Done;

/// Our codec, ready for one mode.
pub(super) struct Ours {
    /// Kept from one document to the next, as the peer keeps its factory and what that learns.
    encoder: RefCell<DocumentEncoder>,
    options: Options,
    grammars: Option<Arc<Grammars>>,
    limits: Limits,
}

impl Ours {
    /// From the peer's words and a schema.
    ///
    /// # Errors
    /// When the schema cannot be read.
    pub(super) fn new(words: &str, schema: Option<&Path>) -> Result<Self> {
        let mut options = Options::default();
        for word in words.split(',') {
            match word {
                "bit-packed" => {}
                "compression" => options.alignment = Alignment::Compression,
                "strict" => options.strict = true,
                _ => bail!("no such option: {word}"),
            }
        }
        let limits = Limits::default();
        let grammars = schema.map(|path| grammars(path, &options, &limits)).transpose()?;
        let encoder = DocumentEncoder::new(&options, grammars.clone(), &limits);
        Ok(Self { encoder: RefCell::new(encoder), options, grammars, limits })
    }

    /// A stream of XML.
    ///
    /// # Errors
    /// When the document is not what the schema says.
    pub(super) fn encode(&self, xml: &[u8]) -> Result<Vec<u8>> {
        Ok(self.encoder.borrow_mut().encode(xml)?)
    }

    /// Does the work again and again for this long.
    ///
    /// # Errors
    /// When it fails.
    pub(super) fn repeat(&self, verb: &str, input: &[u8], time: Duration) -> Result<Done> {
        // As the peer, whose reader and output are one for all rounds too.
        let grammars = self.grammars.clone();
        let resolve = Box::new(move |_: &Options| Ok(grammars.clone()));
        let mut decoder = Decoder::new(&self.options, resolve, &self.limits);
        let mut text = Vec::new();
        let (begin, mut rounds) = (Instant::now(), 0);
        loop {
            match verb {
                "encode" => drop(black_box(self.encode(black_box(input))?)),
                "decode" => {
                    text.clear();
                    decoder.decode(black_box(input), &mut text)?;
                    black_box(&text);
                }
                _ => {
                    black_box(events(&mut decoder, black_box(input))?);
                }
            }
            rounds += 1;
            let elapsed = begin.elapsed();
            if elapsed >= time {
                return Ok(Done { rounds, elapsed });
            }
        }
    }
}

/// How many events there are.
fn events(decoder: &mut Decoder<'_>, stream: &[u8]) -> Result<u64> {
    decoder.reset();
    decoder.push(stream, true)?;
    let mut events = 0;
    while let Some(event) = decoder.next()? {
        black_box(event);
        events += 1;
    }
    Ok(events)
}

fn grammars(path: &Path, options: &Options, limits: &Limits) -> Result<Arc<Grammars>> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let location = path.file_name().unwrap_or_default().to_string_lossy();
    let document = Document { location: &location, bytes: &bytes };
    let mut resolve = |location: &str, _: Option<&str>| fs::read(folder.join(location)).ok();
    let schema = Schema::parse(&[document], &mut resolve, limits)?;
    Ok(Arc::new(schema.grammars(options, limits)?))
}
