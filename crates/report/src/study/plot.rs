//! What the plots of the chapter have in common.

use crate::svg::{Anchor, Svg};

pub(super) const WIDTH: f64 = 960.0;

/// A rectangle to draw in.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

/// Several beside and below each other.
pub(super) struct Panels {
    columns: usize,
    height: f64,
    head: f64,
}

/// Room around a panel.
const LEFT: f64 = 52.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 38.0;
/// Width of a letter of a tick's text, at most.
const LETTER: f64 = 7.0;

impl Panels {
    /// In so many columns, each so high, below a head of so many pixels.
    pub(super) fn new(columns: usize, height: f64, head: f64) -> Self {
        Self { columns: columns.max(1), height, head }
    }

    /// A drawing with room for so many.
    pub(super) fn svg(&self, count: usize) -> Svg {
        self.svg_ending(count, self.height)
    }

    /// The same where the last row of panels is only so high.
    pub(super) fn svg_ending(&self, count: usize, last: f64) -> Svg {
        let rows = count.div_ceil(self.columns) as f64;
        Svg::new(WIDTH, self.head + rows * (TOP + self.height + BOTTOM) - self.height + last)
    }

    /// The place of one of them, from 0.
    pub(super) fn frame(&self, at: usize) -> Frame {
        let width = WIDTH / self.columns as f64;
        let left = width * (at % self.columns) as f64;
        let top = self.head + (at / self.columns) as f64 * (TOP + self.height + BOTTOM) + TOP;
        Frame { left: left + LEFT, top, right: left + width - RIGHT, bottom: top + self.height }
    }
}

impl Frame {
    /// What stands above it.
    pub(super) fn title(&self, svg: &mut Svg, text: &str) {
        svg.text(self.left, self.top - 8.0, "label", Anchor::Start, text);
    }

    /// Upright lines with a text below each where there is room for it, and what they mean.
    pub(super) fn x_axis(&self, svg: &mut Svg, ticks: &[(f64, String)], name: &str) {
        let mut free = f64::NEG_INFINITY;
        for (x, text) in ticks {
            svg.line("grid", (*x, self.top), (*x, self.bottom));
            let half = LETTER / 2.0 * text.chars().count() as f64;
            if x - half >= free {
                svg.text(*x, self.bottom + 14.0, "tick", Anchor::Middle, text);
                free = x + half + LETTER;
            }
        }
        svg.line("axis", (self.left, self.bottom), (self.right, self.bottom));
        svg.text(self.right, self.bottom + 29.0, "tick", Anchor::End, name);
    }

    /// Level lines with a text to the left of each.
    pub(super) fn y_axis(&self, svg: &mut Svg, ticks: &[(f64, String)]) {
        for (y, text) in ticks {
            svg.line("grid", (self.left, *y), (self.right, *y));
            svg.text(self.left - 6.0, y + 4.0, "tick", Anchor::End, text);
        }
        svg.line("axis", (self.left, self.top), (self.left, self.bottom));
    }
}

/// A figure with what stands below it.
pub(super) fn figure(drawing: &str, caption: &str) -> String {
    let caption = crate::text::escaped(caption);
    format!("<figure>{drawing}<figcaption>{caption}</figcaption></figure>\n")
}

/// Powers of ten among the ticks of a logarithmic scale.
pub(super) fn decades(ticks: Vec<f64>) -> Vec<f64> {
    let is_one = |tick: &f64| {
        let power = tick.log10();
        (power - power.round()).abs() < 1e-6
    };
    ticks.into_iter().filter(is_one).collect()
}

/// Seconds in words: `10 ms`, `1 s`.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        s if s < 0.9995e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 0.9995 => format!("{:.0} ms", s * 1e3),
        s => format!("{s:.0} s"),
    }
}

/// Bytes in words: `1 KB`.
pub(super) fn size(bytes: f64) -> String {
    match bytes {
        b if b < 999.5 => format!("{b:.0} B"),
        b if b < 999.5e3 => format!("{:.0} KB", b / 1e3),
        b => format!("{:.0} MB", b / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_below_an_axis_do_not_touch() {
        let mut svg = Svg::new(200.0, 100.0);
        let frame = Frame { left: 0.0, top: 0.0, right: 170.0, bottom: 80.0 };
        let ticks: Vec<_> = (0..8).map(|at| (23.0 * f64::from(at), format!("{at}00 ms"))).collect();
        frame.x_axis(&mut svg, &ticks, "expected");
        let drawn = svg.finish("");
        let texts = drawn.matches("00 ms").count();
        assert_eq!((drawn.matches("class=\"grid\"").count(), texts), (8, 3), "{drawn}");
        assert!(["000 ms", "300 ms", "600 ms"].iter().all(|text| drawn.contains(text)), "{drawn}");
    }
}
