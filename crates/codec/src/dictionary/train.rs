//! Dictionaries out of samples.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Error, Limits};

use super::{Dictionary, NAME, store::pack};

/// Most bytes of samples that are gathered: a model reads them in a fifth of a second.
const MAX_GATHERED: usize = 256 << 10;
/// Bytes that count as one piece of text.
const PIECE: usize = 8;
/// Fewest bytes that are taken over together; shorter ones cost more than they save.
const SHORTEST: usize = 16;
/// Known bytes that a run may go over, since each cut costs a reference: the widest that has room.
const BRIDGES: [usize; 10] = [512, 256, 128, 96, 64, 48, 32, 16, 8, 0];

/// A dictionary with entropy tables by zstd's trainer (RFC 8878 §5), at most `bytes` long. It wants
/// many samples, with a total of some ten times its own size.
pub fn train(samples: &[&[u8]], bytes: usize, limits: &Limits) -> Result<Dictionary, Error> {
    check(samples, limits)?;
    let sizes: Vec<usize> = samples.iter().map(|sample| sample.len()).collect();
    let mut content: Vec<u8> = Vec::with_capacity(bytes);
    zstd_safe::train_from_buffer(&mut content, &samples.concat(), &sizes).map_err(|code| {
        let why = zstd_safe::get_error_name(code);
        Error::Option { what: format!("{} samples train no dictionary: {why}", samples.len()) }
    })?;
    Dictionary::new(content, limits)
}

fn check(samples: &[&[u8]], limits: &Limits) -> Result<(), Error> {
    let total: usize = samples.iter().map(|sample| sample.len()).sum();
    if total > limits.message_bytes {
        let what = format!("samples of {total} bytes, limit {}", limits.message_bytes);
        return Err(Error::Limit { codec: NAME, what });
    }
    Ok(())
}

/// Whole samples, as many as take at most `packed_bytes` when they are packed as in a
/// [`Store`](super::Store): samples repeat each other, so that is far less than their length, which
/// stays within 256 KiB. With [`Method::Mix`](super::Method::Mix), which learns from repetition, it
/// is the best dictionary.
pub fn gather(
    samples: &[&[u8]],
    packed_bytes: usize,
    limits: &Limits,
) -> Result<Dictionary, Error> {
    check(samples, limits)?;
    let mut order = by_worth(samples, &counts(samples));
    let mut total = 0;
    order.retain(|index| {
        total += samples[*index].len();
        total <= MAX_GATHERED
    });
    let content = |count: usize| -> Vec<u8> {
        order.iter().take(count).rev().flat_map(|index| samples[*index]).copied().collect()
    };
    // The most samples that fit: their packed length grows with their number, nearly.
    let (mut fits, mut too_many) = (0, order.len() + 1);
    while too_many - fits > 1 {
        let middle = fits.midpoint(too_many);
        if pack(&content(middle))?.len() <= packed_bytes {
            fits = middle;
        } else {
            too_many = middle;
        }
    }
    Dictionary::new(content(fits), limits)
}

/// Indexes of the samples: those first that share most with others, so that their runs stay whole.
fn by_worth(samples: &[&[u8]], counts: &BTreeMap<&[u8], u64>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..samples.len()).collect();
    let worth = |sample: &[u8]| -> u64 {
        let shared = sample.windows(PIECE).filter_map(|piece| counts.get(piece)).sum::<u64>();
        64 * shared / (sample.len() as u64 + 1)
    };
    order.sort_by_cached_key(|index| std::cmp::Reverse(worth(samples[*index])));
    order
}

/// A run of one sample, and how often its pieces stand in other samples.
struct Run {
    sample: usize,
    from: usize,
    to: usize,
    value: u64,
}

/// A dictionary of text out of `samples`, at most `bytes` long: what most samples share first, and
/// nothing twice. What is worth most stands last, where references to it are shortest.
pub fn excerpt(samples: &[&[u8]], bytes: usize, limits: &Limits) -> Result<Dictionary, Error> {
    check(samples, limits)?;
    let counts = counts(samples);
    let order = by_worth(samples, &counts);
    // Text that is known already joins what is new around it, as much as there is room for.
    for bridge in BRIDGES {
        let mut known = BTreeSet::new();
        let mut runs = Vec::new();
        for &sample in &order {
            new_runs(samples[sample], (sample, bridge), &counts, &mut known, &mut runs);
        }
        let total: usize = runs.iter().map(|run| run.to - run.from).sum();
        if total <= bytes || bridge == 0 {
            return Dictionary::raw(assemble(samples, runs, bytes), limits);
        }
    }
    Dictionary::raw(Vec::new(), limits)
}

/// The runs of most value a byte that fit into `bytes`, the best last.
fn assemble(samples: &[&[u8]], mut runs: Vec<Run>, bytes: usize) -> Vec<u8> {
    runs.sort_by_key(|run| std::cmp::Reverse(run.value / (run.to - run.from) as u64));
    let mut left = bytes;
    runs.retain(|run| match left.checked_sub(run.to - run.from) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    });
    let text = runs.iter().rev().filter_map(|run| samples.get(run.sample)?.get(run.from..run.to));
    text.flatten().copied().collect()
}

/// In how many samples each piece stands.
fn counts<'a>(samples: &[&'a [u8]]) -> BTreeMap<&'a [u8], u64> {
    let mut counts: BTreeMap<&[u8], (u64, usize)> = BTreeMap::new();
    for (index, sample) in samples.iter().enumerate() {
        for piece in sample.windows(PIECE) {
            let count = counts.entry(piece).or_insert((0, usize::MAX));
            if count.1 != index {
                *count = (count.0 + 1, index);
            }
        }
    }
    counts.into_iter().map(|(piece, (count, _))| (piece, count)).collect()
}

/// Adds the runs of `sample` that are not known yet.
fn new_runs<'a>(
    sample: &'a [u8],
    (index, bridge): (usize, usize),
    counts: &BTreeMap<&[u8], u64>,
    known: &mut BTreeSet<&'a [u8]>,
    runs: &mut Vec<Run>,
) {
    let mut open: Option<Run> = None;
    for (at, piece) in sample.windows(PIECE).enumerate() {
        if !known.insert(piece) {
            continue;
        }
        let worth = counts.get(piece).copied().unwrap_or(0);
        match &mut open {
            Some(run) if at <= run.to + bridge => {
                run.to = at + PIECE;
                run.value += worth;
            }
            _ => {
                runs.extend(open.take());
                open = Some(Run { sample: index, from: at, to: at + PIECE, value: worth });
            }
        }
    }
    runs.extend(open);
    runs.retain(|run| run.to - run.from >= SHORTEST);
}
