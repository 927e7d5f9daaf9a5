//! What the plots have in common.

use record::demo::Mode;

use crate::svg::{Anchor, Mark, Svg};

/// Width of every plot.
pub(super) const WIDTH: f64 = 960.0;
/// Where the names of rows end and the scale begins.
pub(super) const LEFT: f64 = 168.0;

/// The class that gives a way its colour.
pub(super) fn class(mode: Mode) -> &'static str {
    mode.name()
}

/// The shape of a way's points.
pub(super) fn mark(mode: Mode) -> Mark {
    match mode {
        Mode::Direct => Mark::Circle,
        Mode::Gzip => Mark::Square,
        Mode::Longwire => Mark::Diamond,
    }
}

/// A way as the plots name it.
pub(super) fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Direct => "direct",
        Mode::Gzip => "direct with gzip",
        Mode::Longwire => "longwire",
    }
}

/// The names of the ways with their shapes, from `x` on; returns where it ends.
pub(super) fn legend(svg: &mut Svg, x: f64, y: f64) -> f64 {
    /// Shape, gap and about seven pixels per letter.
    const LETTER: f64 = 7.0;
    let mut x = x;
    for mode in Mode::ALL {
        let name = mode_name(mode);
        svg.mark(mark(mode), class(mode), (x, y - 4.0), name);
        svg.text(x + 9.0, y, "label", Anchor::Start, name);
        x += 30.0 + LETTER * name.len() as f64;
    }
    x
}
