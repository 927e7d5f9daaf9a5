//! The header of a stream (EXI §5).

use super::{
    Alignment, Options,
    bits::{Fault, Reader, Writer},
    options_document,
};

/// The cookie (EXI §5.1).
const COOKIE: [u8; 4] = *b"$EXI";

/// What a header says before its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) cookie: bool,
    /// Whether an options document follows.
    pub(crate) options: bool,
}

/// Reads cookie, distinguishing bits, presence bit and version.
pub(crate) fn read(from: &mut Reader) -> Result<Start, Fault> {
    let begin = *from;
    let cookie = (0..4).all(|at| from.byte() == COOKIE[at]);
    if !cookie {
        if from.over() {
            return Err(Fault::Short);
        }
        *from = begin;
    }
    let distinguishing = from.bits(2);
    if from.over() {
        return Err(Fault::Short);
    }
    if distinguishing != 0b10 {
        return Err(Fault::Bad(&"not an EXI stream: no distinguishing bits"));
    }
    let options = from.bits(1) == 1;
    // Preview versions (EXI §5.3) differed in nothing that streams of today show.
    from.bits(1);
    let mut version = 1;
    loop {
        let part = from.bits(4);
        version += part;
        if part < 15 || from.over() {
            break;
        }
    }
    if from.over() {
        return Err(Fault::Short);
    }
    if version != 1 {
        return Err(Fault::Bad(&"a version of EXI other than 1"));
    }
    Ok(Start { cookie, options })
}

/// Writes all but the options document.
pub(crate) fn write(options: &Options, to: &mut Writer) {
    if options.cookie {
        to.bytes(&COOKIE);
    }
    to.bits(0b10, 2);
    to.bits(u32::from(options.options_in_header), 1);
    to.bits(0, 5);
}

/// Whether the body begins at a byte (EXI §5: padding bits), and is read in bytes.
pub(crate) fn is_aligned(options: &Options) -> bool {
    options.alignment != Alignment::BitPacked
}

/// Reads a header; the options are those in it, or `agreed`.
pub(crate) fn read_options(
    from: &mut Reader,
    agreed: &Options,
    limits: &crate::Limits,
) -> Result<Options, Fault> {
    let start = read(from)?;
    let mut options = agreed.effective();
    (options.cookie, options.options_in_header) = (start.cookie, start.options);
    if !start.options {
        return Ok(options);
    }
    let read = options_document::read(from, &options, limits)?;
    if from.over() { Err(Fault::Short) } else { Ok(read) }
}

/// Writes the header of a stream in front of its body.
pub(crate) fn begin(
    options: &Options,
    walk: &mut super::walk::Walk,
    limits: &crate::Limits,
) -> Result<(), Fault> {
    let mut to = Writer::new(false);
    write(options, &mut to);
    if options.options_in_header {
        to = options_document::write(options, to, limits)?;
    }
    walk.begin(to, is_aligned(options));
    Ok(())
}
