//! The message digest MD5 (RFC 1321), which signatures of the protocol are made with. It protects
//! against nobody who looks for collisions; within HMAC that is not asked of it (RFC 6151 §2.3).

/// Bytes that one step takes (RFC 1321 §3).
const BLOCK_BYTES: usize = 64;
/// Where the length stands in the last block (RFC 1321 §3.2).
const LENGTH_AT: usize = BLOCK_BYTES - 8;
/// The state before the first block (RFC 1321 §3.3).
const START: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
/// By how much each of four rounds rotates, step by step (RFC 1321 §3.4).
const ROTATIONS: [[u32; 4]; 4] =
    [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
/// In which order a round takes the words of a block: the first, and how far the next is.
const ORDERS: [(usize, usize); 4] = [(0, 1), (1, 5), (5, 3), (0, 7)];
/// The whole part of 2^32 times the sine of each step's number, in radians (RFC 1321 §3.4).
const SINES: [[u32; 16]; 4] = [
    [
        0xd76a_a478,
        0xe8c7_b756,
        0x2420_70db,
        0xc1bd_ceee,
        0xf57c_0faf,
        0x4787_c62a,
        0xa830_4613,
        0xfd46_9501,
        0x6980_98d8,
        0x8b44_f7af,
        0xffff_5bb1,
        0x895c_d7be,
        0x6b90_1122,
        0xfd98_7193,
        0xa679_438e,
        0x49b4_0821,
    ],
    [
        0xf61e_2562,
        0xc040_b340,
        0x265e_5a51,
        0xe9b6_c7aa,
        0xd62f_105d,
        0x0244_1453,
        0xd8a1_e681,
        0xe7d3_fbc8,
        0x21e1_cde6,
        0xc337_07d6,
        0xf4d5_0d87,
        0x455a_14ed,
        0xa9e3_e905,
        0xfcef_a3f8,
        0x676f_02d9,
        0x8d2a_4c8a,
    ],
    [
        0xfffa_3942,
        0x8771_f681,
        0x6d9d_6122,
        0xfde5_380c,
        0xa4be_ea44,
        0x4bde_cfa9,
        0xf6bb_4b60,
        0xbebf_bc70,
        0x289b_7ec6,
        0xeaa1_27fa,
        0xd4ef_3085,
        0x0488_1d05,
        0xd9d4_d039,
        0xe6db_99e5,
        0x1fa2_7cf8,
        0xc4ac_5665,
    ],
    [
        0xf429_2244,
        0x432a_ff97,
        0xab94_23a7,
        0xfc93_a039,
        0x655b_59c3,
        0x8f0c_cc92,
        0xffef_f47d,
        0x8584_5dd1,
        0x6fa8_7e4f,
        0xfe2c_e6e0,
        0xa301_4314,
        0x4e08_11a1,
        0xf753_7e82,
        0xbd3a_f235,
        0x2ad7_d2bb,
        0xeb86_d391,
    ],
];

/// The digest of several parts, one behind the other.
pub(super) fn digest(parts: &[&[u8]]) -> [u8; 16] {
    let mut hash = Hash { state: START, block: [0; BLOCK_BYTES], used: 0 };
    for byte in parts.iter().copied().flatten() {
        hash.put(*byte);
    }
    // RFC 1321 §3.1, §3.2: a bit, zeros, and the length in bits.
    let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
    hash.put(0x80);
    while hash.used != LENGTH_AT {
        hash.put(0);
    }
    for byte in bytes.wrapping_mul(8).to_le_bytes() {
        hash.put(byte);
    }
    let mut digest = [0; 16];
    for (four, word) in digest.chunks_exact_mut(4).zip(hash.state) {
        four.copy_from_slice(&word.to_le_bytes());
    }
    digest
}

/// What has been read so far.
struct Hash {
    state: [u32; 4],
    block: [u8; BLOCK_BYTES],
    /// Bytes of the block, fewer than it has.
    used: usize,
}

impl Hash {
    /// Adds a byte to the block, and the block to the state where it is full.
    fn put(&mut self, byte: u8) {
        self.block[self.used % BLOCK_BYTES] = byte;
        self.used = (self.used + 1) % BLOCK_BYTES;
        if self.used == 0 {
            self.state = step(self.state, &self.block);
        }
    }
}

/// RFC 1321 §3.4.
fn step(before: [u32; 4], block: &[u8; BLOCK_BYTES]) -> [u32; 4] {
    let mut words = [0; 16];
    for (word, four) in words.iter_mut().zip(block.as_chunks().0) {
        *word = u32::from_le_bytes(*four);
    }
    let [mut a, mut b, mut c, mut d] = before;
    for (round, sines) in SINES.iter().enumerate() {
        let ((first, next), rotations) = (ORDERS[round], ROTATIONS[round]);
        for (at, sine) in sines.iter().enumerate() {
            let mixed = match round {
                0 => b & c | !b & d,
                1 => b & d | c & !d,
                2 => b ^ c ^ d,
                _ => c ^ (b | !d),
            };
            let word = words[(first + at * next) % 16];
            let sum = a.wrapping_add(mixed).wrapping_add(word).wrapping_add(*sine);
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(rotations[at % 4]));
        }
    }
    let [a0, b0, c0, d0] = before;
    [a0.wrapping_add(a), b0.wrapping_add(b), c0.wrapping_add(c), d0.wrapping_add(d)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// RFC 1321 §A.5.
    #[test]
    fn the_test_suite_of_the_rfc_holds() {
        let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        let numbers = "1234567890".repeat(8);
        for (text, expected) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("a", "0cc175b9c0f1b6a831c399e269772661"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
            (letters, "d174ab98d277d9f5a5611c2c9f419d9f"),
            (&numbers, "57edf4a22be3c955ac49da2e2107b67a"),
        ] {
            assert_eq!(hex(&digest(&[text.as_bytes()])), expected, "{text}");
            let (one, other) = text.as_bytes().split_at(text.len() / 3);
            assert_eq!(hex(&digest(&[one, b"", other])), expected, "{text} in parts");
        }
    }
}
