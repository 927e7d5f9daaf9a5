//! The head of an item: major type and argument (RFC 8949 §3).

use core::ops::Deref;

use crate::Error;

/// The major types (RFC 8949 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Major {
    /// The argument itself.
    Unsigned = 0,
    /// −1 minus the argument.
    Negative = 1,
    /// The argument is a length in bytes.
    Bytes = 2,
    /// The argument is a length in bytes of UTF-8.
    Text = 3,
    /// The argument is the number of items.
    Array = 4,
    /// The argument is the number of pairs.
    Map = 5,
    /// The argument is the tag of the item that follows.
    Tag = 6,
    /// Floats, simple values and the break.
    Simple = 7,
}

const MAJORS: [Major; 8] = [
    Major::Unsigned,
    Major::Negative,
    Major::Bytes,
    Major::Text,
    Major::Array,
    Major::Map,
    Major::Tag,
    Major::Simple,
];

/// A head as it stands in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The upper three bits.
    pub major: Major,
    /// The lower five bits.
    pub info: u8,
    /// The argument; 0 where the length is indefinite (`info` 31).
    pub argument: u64,
    /// Bytes of the head itself, 1 to 9.
    pub len: u8,
}

impl Head {
    /// The head that `input` begins with; `None` while it is incomplete.
    pub fn take(input: &[u8]) -> Result<Option<Self>, Error> {
        let Some(&first) = input.first() else { return Ok(None) };
        let (major, info) = (MAJORS[usize::from(first >> 5)], first & 0x1f);
        let len: u8 = match info {
            0..=23 | 31 => 1,
            24 => 2,
            25 => 3,
            26 => 5,
            27 => 9,
            // RFC 8949 §3: 28 to 30 are reserved, and such an item is not well-formed.
            _ => {
                return Err(Error::Peer {
                    what: "reserved additional information",
                    value: info.into(),
                });
            }
        };
        let Some(argument) = input.get(1..usize::from(len)) else { return Ok(None) };
        let argument = match info {
            0..=23 => u64::from(info),
            _ => argument.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)),
        };
        // RFC 8949 §3.2: these have no indefinite length.
        if info == 31 && matches!(major, Major::Unsigned | Major::Negative | Major::Tag) {
            return Err(Error::Peer { what: "no indefinite length here", value: first.into() });
        }
        // RFC 8949 §3.3: two bytes for what fits in one are not well-formed.
        if major == Major::Simple && info == 24 && argument < 32 {
            return Err(Error::Peer { what: "simple value in two bytes", value: argument });
        }
        Ok(Some(Self { major, info, argument, len }))
    }

    /// Whether the length is indefinite, or the item is a break.
    #[must_use]
    pub fn is_indefinite(self) -> bool {
        self.info == 31
    }

    /// Whether the argument has its shortest form (RFC 8949 §4.2.1); floats have their own.
    #[must_use]
    pub fn is_shortest(self) -> bool {
        match self.info {
            _ if self.major == Major::Simple => true,
            24 => self.argument > 23,
            25 => self.argument > 0xff,
            26 => self.argument > 0xffff,
            27 => self.argument > 0xffff_ffff,
            info => info != 31,
        }
    }
}

/// The bytes of a head.
#[derive(Clone, Copy, Debug)]
pub struct HeadBytes {
    bytes: [u8; 9],
    len: u8,
}

impl Deref for HeadBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// A head in its shortest form (RFC 8949 §4.2.1).
#[must_use]
pub fn head(major: Major, argument: u64) -> HeadBytes {
    let high = (major as u8) << 5;
    let value = argument.to_be_bytes();
    let (info, from) = match argument {
        0..=23 => {
            let mut bytes = [0; 9];
            bytes[0] = high | value[7];
            return HeadBytes { bytes, len: 1 };
        }
        24..=0xff => (24, 7),
        0x100..=0xffff => (25, 6),
        0x1_0000..=0xffff_ffff => (26, 4),
        _ => (27, 0),
    };
    let tail = &value[from..];
    let mut bytes = [0; 9];
    bytes[0] = high | info;
    bytes[1..=tail.len()].copy_from_slice(tail);
    let len = 1 + (1 << (info - 24));
    HeadBytes { bytes, len }
}
