//! `longwire train`: a dictionary out of messages.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::ValueEnum;
use codec::dictionary::{Dictionary, excerpt, gather, train};
use codec::{Error, Limits};

use super::options::{bytes, read};

/// Bounds of a dictionary, in bytes: below is nothing worth naming, above nothing is sent about.
const MIN_BYTES: u64 = 256;
const MAX_BYTES: u64 = 16 << 20;

/// Make a dictionary out of samples, for the codecs that need one.
///
/// The samples should be messages of one service, some dozens or hundreds. Both sides must have the
/// same file. Whoever can have parts of a message chosen and sees lengths learns what is in the
/// dictionary: nothing secret belongs into samples.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire train --out tracks.dict old-tracks/*.xml
  longwire train --out tracks.dict --how gathered old-tracks/*.xml    # best for mix-dictionary
  longwire compare --dictionary tracks.dict new-tracks/*.xml
  longwire encode --codec dcz --dictionary tracks.dict < track.xml > track.dcz")]
pub(crate) struct Args {
    /// Messages like those that will be coded.
    #[arg(value_name = "SAMPLE", required = true)]
    samples: Vec<PathBuf>,
    /// File for the dictionary; an older one is replaced.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Most that the dictionary may have, from 256 B to 16 MiB.
    #[arg(long, value_name = "BYTES", default_value = "16 KiB", value_parser = size)]
    size: usize,
    /// What the dictionary is made of.
    #[arg(long, value_name = "HOW", default_value = "excerpt")]
    how: How,
    /// Print a JSON object instead of a line.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum How {
    /// The text that most samples share
    Excerpt,
    /// Whole samples, so many that they pack into the size
    Gathered,
    /// Text with tables of zstd's trainer
    Trained,
}

/// Makes the dictionary and writes it.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let samples = args.samples.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    let dictionary = match make(args, &samples) {
        Ok(dictionary) => dictionary,
        Err(Error::Option { what }) => {
            eprintln!("longwire: {what}");
            return Ok(ExitCode::from(crate::BAD_USE));
        }
        Err(error) => return Err(error.into()),
    };
    let (path, bytes, id) = (args.out.display(), dictionary.content().len(), dictionary.id());
    let write = std::fs::write(&args.out, dictionary.content());
    write.with_context(|| format!("cannot write {path}"))?;
    let text = if args.json {
        let facts = serde_json::json!({
            "path": path.to_string(),
            "bytes": bytes,
            "sha256": id.to_string(),
            "samples": samples.len(),
        });
        format!("{facts}\n")
    } else {
        format!("{path}: {bytes} bytes of {} samples, SHA-256 {id}\n", samples.len())
    };
    crate::say(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn make(args: &Args, samples: &[&[u8]]) -> Result<Dictionary, Error> {
    let limits = Limits::default();
    let dictionary = match args.how {
        How::Excerpt => excerpt(samples, args.size, &limits),
        How::Gathered => gather(samples, args.size, &limits),
        How::Trained => train(samples, args.size, &limits),
    }?;
    if dictionary.content().is_empty() {
        let what = format!("{} samples have too little in common", samples.len());
        return Err(Error::Option { what });
    }
    Ok(dictionary)
}

fn size(text: &str) -> Result<usize, String> {
    let bytes = bytes(text)?;
    match usize::try_from(bytes) {
        Ok(size) if (MIN_BYTES..=MAX_BYTES).contains(&bytes) => Ok(size),
        _ => Err(format!("{bytes} B is not from {MIN_BYTES} B to {} MiB", MAX_BYTES >> 20)),
    }
}
