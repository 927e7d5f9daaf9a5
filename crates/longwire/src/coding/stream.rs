//! `longwire encode` and `longwire decode`: one codec, from stdin to stdout.

use std::io::{ErrorKind, Read, Write, stdin, stdout};
use std::process::ExitCode;

use anyhow::Context;
use codec::{Error, Settings};

use super::options::{ExiOptions, Header, Shared, bytes, check_encoding};

/// Bytes that are read at a time.
const BLOCK_BYTES: usize = 64 << 10;

/// Encode stdin with one codec and write its standard form to stdout.
///
/// What comes out is what other programs read: gzip, .zst, an EXI stream. Codecs that stream use
/// the same memory for any length; the others hold a message of up to 256 MiB (see `longwire
/// codecs`).
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire encode --codec zstd --level 19 < report.xml > report.xml.zst
  longwire encode --codec deflate < report.xml | gunzip
  longwire encode --codec exi --alignment compression --header options < track.xml > track.exi
  longwire encode --codec exi --schema track.xsd --strict < track.xml | wc -c
  longwire encode --codec mix-dictionary --dictionary tracks.dict < track.xml > track.coded

The exit status is 1 when the input is not what the codec takes, 2 on bad use.")]
pub(crate) struct EncodeArgs {
    /// How hard to try; `longwire codecs` has the range of each.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    level: Option<i8>,
    #[command(flatten)]
    common: Common,
    /// What the header of an EXI stream has.
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "EXI")]
    header: Vec<Header>,
    /// Write Canonical EXI: one stream for all documents that mean the same. Add `--header options`
    /// unless omitOptionsDocument is agreed on.
    #[arg(long, help_heading = "EXI")]
    canonical: bool,
    /// With --canonical, dates with a zone become those of UTC (utcTime).
    #[arg(long, requires = "canonical", help_heading = "EXI")]
    utc_time: bool,
}

/// Decode stdin with one codec and write what it was to stdout.
///
/// What a stream does not say of itself must be said here: the same dictionary, the same options of
/// EXI unless its header has them.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire decode --codec zstd < report.xml.zst > report.xml
  longwire decode --codec deflate --max-output '10 MB' < unknown.gz
  longwire decode --codec exi --schema track.xsd --strict < track.exi
  longwire decode --codec mix-dictionary --dictionary tracks.dict < track.coded

The exit status is 1 when the input is damaged, too large or ends early, 2 on bad use.")]
pub(crate) struct DecodeArgs {
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct Common {
    /// The codec: a name that `longwire codecs` lists.
    #[arg(long, value_name = "NAME")]
    codec: String,
    /// Most that may come out (default: 1 GiB).
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    max_output: Option<u64>,
    #[command(flatten)]
    shared: Shared,
    #[command(flatten)]
    exi: ExiOptions,
}

impl Common {
    /// The settings, when the codec takes all that was given.
    fn settings(&self) -> Result<Settings, Failure> {
        let codec = codec::find(&self.codec)?.properties();
        self.shared.check(codec)?;
        self.exi.check(codec)?;
        let mut settings = Settings::default();
        self.exi.apply(&mut settings.exi);
        if let Some(bytes) = self.max_output {
            settings.limits.output_bytes = bytes;
        }
        self.shared.load(&mut settings).map_err(Failure::Other)?;
        Ok(settings)
    }
}

/// Runs `encode`.
pub(crate) fn encode(args: EncodeArgs) -> anyhow::Result<ExitCode> {
    finish(encode_stdin(&args))
}

fn encode_stdin(args: &EncodeArgs) -> Result<(), Failure> {
    let codec = codec::find(&args.common.codec)?.properties();
    check_encoding(codec, args.level, &args.header, args.canonical)?;
    let mut settings = args.common.settings()?;
    settings.level = args.level;
    settings.exi.cookie = args.header.contains(&Header::Cookie);
    settings.exi.options_in_header = args.header.contains(&Header::Options);
    settings.exi.canonical = args.canonical;
    settings.exi.utc_time = args.utc_time;
    let mut encoder = settings.encoder(codec.name)?;
    let (mut out, mut left) = (Vec::new(), settings.limits.output_bytes);
    let mut sink = stdout().lock();
    each_block(|block, last| {
        encoder.encode(block, last, &mut out)?;
        let most = settings.limits.output_bytes;
        left = left.checked_sub(out.len() as u64).ok_or_else(|| Error::Limit {
            codec: codec.name,
            what: format!("more than {most} bytes would come out (--max-output)"),
        })?;
        sink.write_all(&out)?;
        out.clear();
        Ok(())
    })?;
    Ok(sink.flush()?)
}

/// Runs `decode`.
pub(crate) fn decode(args: DecodeArgs) -> anyhow::Result<ExitCode> {
    finish(decode_stdin(&args))
}

fn decode_stdin(args: &DecodeArgs) -> Result<(), Failure> {
    let settings = args.common.settings()?;
    let mut decoder = settings.decoder(&args.common.codec)?;
    let mut out = Vec::with_capacity(2 * BLOCK_BYTES);
    let mut sink = stdout().lock();
    each_block(|block, last| {
        let mut rest = block;
        loop {
            let step = decoder.decode(rest, last, &mut out)?;
            rest = rest.get(step.used..).unwrap_or_default();
            let idle = step.used == 0 && out.is_empty();
            sink.write_all(&out)?;
            out.clear();
            if step.done || idle {
                return Ok(());
            }
        }
    })?;
    Ok(sink.flush()?)
}

/// Hands over stdin in blocks; the last one, which may be empty, is marked.
fn each_block(mut take: impl FnMut(&[u8], bool) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut input = stdin().lock();
    let (mut block, mut next) = (Vec::new(), Vec::new());
    loop {
        next.clear();
        input
            .by_ref()
            .take(BLOCK_BYTES as u64)
            .read_to_end(&mut next)
            .context("cannot read stdin")
            .map_err(Failure::Other)?;
        if next.is_empty() {
            return take(&block, true);
        }
        if !block.is_empty() {
            take(&block, false)?;
        }
        std::mem::swap(&mut block, &mut next);
    }
}

/// Why a stream did not come through.
enum Failure {
    /// The codec's words.
    Codec(Error),
    /// Nobody reads on, which is no failure of ours.
    Closed,
    Other(anyhow::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Codec(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Other(anyhow::Error::new(error).context("cannot write to stdout")),
        }
    }
}

fn finish(result: Result<(), Failure>) -> anyhow::Result<ExitCode> {
    match result {
        Ok(()) | Err(Failure::Closed) => Ok(ExitCode::SUCCESS),
        Err(Failure::Codec(Error::Option { what })) => {
            eprintln!("longwire: {what}");
            Ok(ExitCode::from(crate::BAD_USE))
        }
        Err(Failure::Codec(error)) => Err(error.into()),
        Err(Failure::Other(error)) => Err(error),
    }
}
