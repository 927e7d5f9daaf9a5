//! What each encoding makes of each message of a folder: sizes, and processor time of this thread,
//! so that what else runs on the machine counts little. Caches are cold, as they are where a slow
//! link brings a message now and then: short ones cost several times what a loop would show.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use codec::{Options, Settings};
use longwire_bench::progress::Progress;
use nix::time::{ClockId, clock_gettime};
use sim::decision::{Coded, Message, Workload};

/// The arms, of which the first leaves bytes alone.
pub(crate) const ARMS: [&str; 12] = [
    "identity",
    "deflate:6",
    "deflate:9",
    "zstd:1",
    "zstd:3",
    "zstd:9",
    "zstd:19",
    "brotli:4",
    "brotli:9",
    "xmill:1",
    "xmill:5",
    "xmill:9",
];
/// NAM's: none, Zip, and XMill whose containers go through deflate.
pub(crate) const NAM_ARMS: [usize; 3] = [0, 1, 9];
/// Block of the pair.
const BLOCK_BYTES: usize = 64 * 1024;
/// Time for one message in one encoding.
const TIME: Duration = Duration::from_millis(300);
/// More than the caches of a core hold.
const CACHE_BYTES: usize = 64 << 20;
/// Bytes that come into a cache together.
const CACHE_LINE: usize = 64;
/// Most rounds of one message in one encoding.
const ROUNDS: usize = 15;

/// Reads a folder of messages; a file's class is its name up to the first dot.
pub(crate) fn measure(folder: &Path) -> Result<Workload> {
    let files = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut files: Vec<_> = files.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|file| file.is_file());
    files.sort();
    ensure!(!files.is_empty(), "{}: no messages", folder.display());
    let mut progress = Progress::new(Duration::ZERO);
    let mut messages = Vec::new();
    let mut other = vec![1; CACHE_BYTES];
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        progress.step(&format!("measures {name}"), Duration::ZERO);
        let message = std::fs::read(file)?;
        ensure!(!message.is_empty(), "{name}: empty");
        let coded =
            ARMS.iter().map(|arm| code(arm, &message, &mut other).with_context(|| arm.to_string()));
        let coded = coded.collect::<Result<_>>()?;
        let head_share = decide::head::share_left(&message);
        messages.push(Message { name, bytes: message.len() as f64, head_share, coded });
    }
    progress.finish();
    Ok(Workload { arms: ARMS.map(str::to_owned).to_vec(), messages })
}

pub(crate) fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Puts `other` into the caches in place of all that was there.
fn cool(other: &mut [u8]) {
    other.iter_mut().step_by(CACHE_LINE).for_each(|byte| *byte = byte.wrapping_add(1));
    std::hint::black_box(other);
}

/// Medians of the times.
fn code(arm: &str, message: &[u8], other: &mut [u8]) -> Result<Coded> {
    if arm == ARMS[0] {
        return Ok(Coded { bytes: message.len() as f64, encode_s: 0.0, decode_s: 0.0 });
    }
    let (mut encode, mut decode) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    let begin = Instant::now();
    while encode.len() < ROUNDS && (encode.is_empty() || begin.elapsed() < TIME) {
        cool(other);
        let start = now();
        let coded = encoded(arm, message)?;
        encode.push((now() - start).as_secs_f64());
        cool(other);
        let start = now();
        let back = decoded(arm, &coded, message.len())?;
        decode.push((now() - start).as_secs_f64());
        ensure!(back == message, "does not bring the message back");
        bytes = coded.iter().map(Vec::len).sum();
    }
    let median = longwire_bench::statistics::median;
    Ok(Coded { bytes: bytes as f64, encode_s: median(encode), decode_s: median(decode) })
}

/// In blocks where the codec has them, as the pair sends; else whole.
fn encoded(arm: &str, message: &[u8]) -> Result<Vec<Vec<u8>>> {
    let Ok(options) = Options::of(arm) else {
        let (settings, name) = settings(arm)?;
        return Ok(vec![settings.encode(name, message)?]);
    };
    let mut encoder = options.encoder()?;
    let blocks = message.chunks(BLOCK_BYTES);
    let count = blocks.len();
    let coded = blocks.enumerate().map(|(at, block)| {
        let mut coded = Vec::new();
        encoder.encode(block, at + 1 == count, &mut coded)?;
        Ok(coded)
    });
    coded.collect()
}

fn decoded(arm: &str, coded: &[Vec<u8>], len: usize) -> Result<Vec<u8>> {
    let Ok(options) = Options::of(arm) else {
        let (settings, name) = settings(arm)?;
        return Ok(settings.decode(name, &coded.concat())?);
    };
    let mut decoder = options.decoder()?;
    let mut message = Vec::with_capacity(len);
    for (at, block) in coded.iter().enumerate() {
        let bytes = (len - message.len()).min(BLOCK_BYTES);
        decoder.decode(block, bytes, at + 1 == coded.len(), &mut message)?;
    }
    Ok(message)
}

fn settings(arm: &str) -> Result<(Settings, &str)> {
    let (name, level) = arm.split_once(':').context("say NAME:LEVEL")?;
    Ok((Settings { level: Some(level.parse()?), ..Settings::default() }, name))
}
