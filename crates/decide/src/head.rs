//! How well a message compresses, guessed from its first bytes.

/// Bytes of a message that are looked at: enough to tell, few enough to take some microseconds.
pub const HEAD_BYTES: usize = 4096;
/// Slots of the table of places, a power of two.
const SLOTS: usize = 1 << 11;
/// Shortest repetition that counts.
const SHORTEST: usize = 4;
/// What a repetition costs, in bits: as in the formats that this stands for.
const REPETITION_BITS: f64 = 20.0;

/// Estimates the share of bytes that a fast dictionary coder would leave of `message`, from its
/// first [`HEAD_BYTES`]: 1 for what does not compress. An empty message gives 1.
///
/// Repetitions of four bytes and more are looked for as LZ77 coders do, what is left is counted
/// with the entropy of its bytes.
#[must_use]
pub fn share_left(message: &[u8]) -> f64 {
    let head = message.get(..HEAD_BYTES).unwrap_or(message);
    if head.is_empty() {
        return 1.0;
    }
    let mut places = [0_u16; SLOTS];
    let mut counts = [0_u32; 256];
    let (mut at, mut literals, mut repetitions) = (0, 0_u32, 0_u32);
    while at < head.len() {
        let length = repeated(head, at, &mut places);
        if length >= SHORTEST {
            repetitions += 1;
            at += length;
        } else {
            counts[usize::from(head[at])] += 1;
            literals += 1;
            at += 1;
        }
    }
    let bits = f64::from(repetitions) * REPETITION_BITS + entropy_bits(&counts, literals);
    (bits / 8.0 / head.len() as f64).clamp(0.01, 1.0)
}

/// Length of what was there before and comes again at `at`.
fn repeated(head: &[u8], at: usize, places: &mut [u16; SLOTS]) -> usize {
    let Some(&[a, b, c, d]) = head.get(at..at + SHORTEST).and_then(|four| four.first_chunk())
    else {
        return 0;
    };
    let hash = u32::from_le_bytes([a, b, c, d]).wrapping_mul(2_654_435_761) >> 21;
    // Places count from 1: 0 is none.
    let place = &mut places[hash as usize % SLOTS];
    let before = usize::from(std::mem::replace(place, u16::try_from(at + 1).unwrap_or(0)));
    let Some(before) = before.checked_sub(1).filter(|&before| before < at) else { return 0 };
    head[before..].iter().zip(&head[at..]).take_while(|(old, new)| old == new).count()
}

fn entropy_bits(counts: &[u32; 256], total: u32) -> f64 {
    let of = |count: u32| f64::from(count) * (f64::from(total) / f64::from(count)).log2();
    counts.iter().filter(|&&count| count > 0).map(|&count| of(count)).sum()
}
