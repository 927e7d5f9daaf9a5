//! As much of ELF as the sizes of a linked file need: its section headers.

/// What a program needs at run time, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Code and constants.
    pub(crate) read_only: u64,
    /// Variables.
    pub(crate) writable: u64,
    /// Tables for unwinding, which nobody reads where a panic ends the program.
    pub(crate) unwinding: u64,
}

impl Sizes {
    /// Code and data.
    pub(crate) fn all(self) -> u64 {
        self.read_only + self.writable
    }
}

const ALLOCATED: u64 = 2;
const WRITABLE: u64 = 1;
const MAX_SECTIONS: u64 = 4096;

/// The sizes of the sections that are loaded; `None` for what is no ELF of 32 or 64 bits, the low
/// byte first.
pub(crate) fn sizes(file: &[u8]) -> Option<Sizes> {
    let is_64 = match file.get(..6)? {
        [0x7f, b'E', b'L', b'F', 1, 1] => false,
        [0x7f, b'E', b'L', b'F', 2, 1] => true,
        _ => return None,
    };
    let number = |at: u64, len: usize| {
        let at = usize::try_from(at).ok()?;
        let bytes = file.get(at..at.checked_add(len)?)?;
        Some(bytes.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte)))
    };
    let word = if is_64 { 8 } else { 4 };
    let (table_at, entry_len, count) = match is_64 {
        true => (number(40, 8)?, number(58, 2)?, number(60, 2)?),
        false => (number(32, 4)?, number(46, 2)?, number(48, 2)?),
    };
    // The section that has the names of all.
    let names = number(if is_64 { 62 } else { 50 }, 2)?;
    let offset = if is_64 { 24 } else { 16 };
    let names_at = number(table_at.checked_add(names * entry_len)? + offset, word)?;
    let mut sizes = Sizes::default();
    for index in 0..count.min(MAX_SECTIONS) {
        let at = table_at.checked_add(index * entry_len)?;
        let name = names_at.checked_add(number(at, 4)?)?;
        let name = file.get(usize::try_from(name).ok()?..)?;
        let flags = number(at + 8, word)?;
        let size = number(at + if is_64 { 32 } else { 20 }, word)?;
        if flags & ALLOCATED == 0 {
            continue;
        }
        if name.starts_with(b".eh_frame") || name.starts_with(b".ARM.ex") {
            sizes.unwinding += size;
        } else if flags & WRITABLE == 0 {
            sizes.read_only += size;
        } else {
            sizes.writable += size;
        }
    }
    Some(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_that_are_loaded_count() {
        let mut file = vec![0; 52 + 4 * 40];
        file[..6].copy_from_slice(b"\x7fELF\x01\x01");
        file[32] = 52;
        file[46] = 40;
        file[48] = 4;
        // Names are in the last one, behind all.
        file[50] = 3;
        file[52 + 3 * 40 + 16] = 52 + 4 * 40;
        file.extend(b"\0.eh_frame\0");
        let sections = [(0, 6, 100), (0, 3, 7), (1, 2, 9), (0, 0, 50)];
        for (index, (name, flags, size)) in sections.into_iter().enumerate() {
            file[52 + 40 * index] = name;
            file[52 + 40 * index + 8] = flags;
            file[52 + 40 * index + 20] = size;
        }
        let expected = Sizes { read_only: 100, writable: 7, unwinding: 9 };
        assert_eq!((sizes(&file), expected.all()), (Some(expected), 107));
        assert_eq!(sizes(&file[..100]), None);
        assert_eq!(sizes(b"#!/bin/sh\n"), None);
        let own = std::fs::read(std::env::current_exe().expect("is there")).expect("is read");
        assert!(sizes(&own).is_some_and(|sizes| sizes.all() > 10_000));
    }
}
