//! Which name comes next: documents repeat themselves, and to confirm a guess takes a comparison of
//! bytes where to look a name up takes a search, a hash and a table.

use super::chars::is_name_byte;

/// Bytes of a name that are compared in registers: nearly all names are shorter.
const HEAD: usize = 32;

/// No guess.
pub(super) const NO_GUESS: u32 = u32::MAX;

/// What a name looks like as written, and what followed it last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The first bytes; zeros behind a shorter name.
    head: [u128; 2],
    len: u32,
    /// The start tag that came after a start tag, or an end tag, of this name.
    pub(super) tag: [u32; 2],
    /// The attribute that came after this name in a tag.
    pub(super) attribute: u32,
}

impl Shape {
    /// What a name looks like whose length is below 4 GiB; another is never recognised.
    pub(super) fn of(name: &str) -> Self {
        let mut head = [0; HEAD];
        let part = name.len().min(HEAD);
        head[..part].copy_from_slice(&name.as_bytes()[..part]);
        let len = u32::try_from(name.len()).unwrap_or(u32::MAX);
        Self { head: words(&head), len, tag: [NO_GUESS; 2], attribute: NO_GUESS }
    }

    /// Where the name ends if it stands at `at` as a whole; `None` says that it does not, or that
    /// there are too few bytes to see it quickly. `name` is what the shape is of.
    #[inline]
    pub(super) fn end<'n>(
        &self,
        bytes: &[u8],
        at: usize,
        name: impl FnOnce() -> &'n str,
    ) -> Option<usize> {
        let rest = bytes.get(at..)?;
        let [first, second] = words(rest.first_chunk::<HEAD>()?);
        let len = self.len as usize;
        let mask = MASKS[len.min(HEAD)];
        let differs = (first ^ self.head[0]) & mask[0] | (second ^ self.head[1]) & mask[1];
        if differs != 0 || rest.get(len).is_none_or(|byte| is_name_byte(*byte)) {
            return None;
        }
        let long = len > HEAD && rest.get(HEAD..len) != name().as_bytes().get(HEAD..);
        (!long).then_some(at + len)
    }
}

/// Which bits count of a name of each length.
static MASKS: [[u128; 2]; HEAD + 1] = {
    let mut masks = [[0; 2]; HEAD + 1];
    let mut len = 1;
    while len <= HEAD {
        masks[len] = masks[len - 1];
        masks[len][(len - 1) / 16] |= 0xff << ((len - 1) % 16 * 8);
        len += 1;
    }
    masks
};

#[inline]
fn words(bytes: &[u8; HEAD]) -> [u128; 2] {
    let (halves, _) = bytes.as_chunks::<16>();
    [u128::from_le_bytes(halves[0]), u128::from_le_bytes(halves[1])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_recognised_as_a_whole_or_not_at_all() {
        let behind = " and thirty-two bytes or more behind it";
        for len in [1, 2, 15, 16, 17, 31, 32, 33, 50] {
            let name: String = ('a'..='z').cycle().take(len).collect();
            let shape = Shape::of(&name);
            let end = |text: &str| shape.end(text.as_bytes(), 1, || &name);
            assert_eq!(end(&format!("<{name}{behind}")), Some(1 + len));
            assert_eq!(end(&format!("<{name}>{behind}")), Some(1 + len));
            assert_eq!(end(&format!("<{name}s{behind}")), None);
            assert_eq!(end(&format!("<{name}é{behind}")), None);
            assert_eq!(end(&format!("<{}A{behind}", &name[1..])), None);
            assert_eq!(end(&format!("<{}{behind}", &name[1..])), None);
            assert_eq!(end(&format!("<{name}")), None);
        }
    }
}
