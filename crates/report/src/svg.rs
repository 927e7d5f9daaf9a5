//! Drawings in SVG 1.1, as little of it as the plots need.
//!
//! Colours and fonts are the document's: shapes only carry class names.

use std::fmt::Write;

use crate::text::escaped;

/// A drawing in pixels; grows with what is put in.
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
}

/// Where a text stands relative to its point.
#[derive(Clone, Copy)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

/// The shape of a point: tells ways apart without colour.
#[derive(Clone, Copy)]
pub enum Mark {
    /// A disc.
    Circle,
    /// A square.
    Square,
    /// A square on its corner.
    Diamond,
    /// A triangle.
    Triangle,
}

/// How far a point's shape reaches from its centre.
const MARK_RADIUS: f64 = 3.2;

impl Svg {
    /// An empty drawing.
    #[must_use]
    pub fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    /// A text in one line.
    pub fn text(&mut self, x: f64, y: f64, class: &str, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escaped(text);
        self.put(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\" text-anchor=\"{anchor}\">\
             {text}</text>"
        ));
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.put(format_args!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        ));
    }

    /// A rectangle; `title` shows when it is pointed at.
    pub fn bar(&mut self, class: &str, at: (f64, f64), size: (f64, f64), title: &str) {
        let ((x, y), (width, height), title) = (at, size, escaped(title));
        self.put(format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\"><title>{title}</title></rect>"
        ));
    }

    /// A point; `title` shows when it is pointed at.
    pub fn mark(&mut self, mark: Mark, class: &str, (x, y): (f64, f64), title: &str) {
        let r = MARK_RADIUS;
        match mark {
            Mark::Circle => self.circle(class, (x, y), r, title),
            Mark::Square => {
                let half = 0.85 * r;
                self.bar(class, (x - half, y - half), (2.0 * half, 2.0 * half), title);
            }
            Mark::Diamond => {
                let r = 1.2 * r;
                let corners = [(x, y - r), (x + r, y), (x, y + r), (x - r, y)];
                self.polygon(class, &corners, title);
            }
            Mark::Triangle => {
                let r = 1.2 * r;
                self.polygon(class, &[(x, y - r), (x + r, y + r), (x - r, y + r)], title);
            }
        }
    }

    /// Lines and dots in the language of SVG's paths (SVG 1.1 §8.3), which the caller writes;
    /// `title` shows when it is pointed at.
    pub fn path(&mut self, class: &str, steps: &str, title: &str) {
        let title = escaped(title);
        let inside = if title.is_empty() { title } else { format!("<title>{title}</title>") };
        self.put(format_args!("<path class=\"{class}\" d=\"{steps}\">{inside}</path>"));
    }

    /// Rules for the classes of this drawing, which then needs no document's.
    pub fn style(&mut self, rules: &str) {
        self.put(format_args!("<style>\n{}</style>", escaped(rules)));
    }

    /// A disc; `title` shows when it is pointed at.
    pub fn circle(&mut self, class: &str, (x, y): (f64, f64), radius: f64, title: &str) {
        let title = escaped(title);
        self.put(format_args!(
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\">\
             <title>{title}</title></circle>"
        ));
    }

    /// A point that says 'at least': an arrow to the right that begins there.
    pub fn arrow(&mut self, class: &str, (x, y): (f64, f64), title: &str) {
        let corners = [(x, y - 5.0), (x + 9.0, y), (x, y + 5.0)];
        self.polygon(class, &corners, title);
    }

    /// A point that says 'failed'.
    pub fn cross(&mut self, class: &str, (x, y): (f64, f64)) {
        let r = 1.3 * MARK_RADIUS;
        self.line(class, (x - r, y - r), (x + r, y + r));
        self.line(class, (x - r, y + r), (x + r, y - r));
    }

    /// The drawing as an element; `label` says what it shows to those who do not see it.
    #[must_use]
    pub fn finish(self, label: &str) -> String {
        let Self { width, height, body } = self;
        let label = escaped(label);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             role=\"img\" aria-label=\"{label}\">\n{body}</svg>\n"
        )
    }

    fn polygon(&mut self, class: &str, corners: &[(f64, f64)], title: &str) {
        let points = corners.iter().map(|(x, y)| format!("{x:.1},{y:.1}"));
        let (points, title) = (points.collect::<Vec<_>>().join(" "), escaped(title));
        self.put(format_args!(
            "<polygon class=\"{class}\" points=\"{points}\"><title>{title}</title></polygon>"
        ));
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "{element}");
    }
}

/// Powers of ten that a scale may show: nanoseconds to gigabytes.
const POWERS: std::ops::RangeInclusive<i32> = -9..=9;

/// A logarithmic scale from seconds, bytes or what not to pixels.
pub struct LogScale {
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl LogScale {
    /// From the 1, 2 or 5 at or below the least value to that at or above the greatest.
    #[must_use]
    pub fn around(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        let values = values.into_iter().filter(|value| *value > 0.0);
        let (least, most) = values.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        if most == 0.0 {
            return Self { least: 1.0, most: 10.0, from, to };
        }
        let least = steps(least / 10.0, least).last().copied().unwrap_or(least);
        let most = steps(most, most * 10.0).first().copied().unwrap_or(most);
        // A single value still needs a range.
        let most = if most > least { most } else { 10.0 * least };
        Self { least, most, from, to }
    }

    /// Where a value is.
    #[must_use]
    pub fn at(&self, value: f64) -> f64 {
        let share = (value / self.least).ln() / (self.most / self.least).ln();
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// 1, 2 and 5 times the powers of ten on the scale.
    #[must_use]
    pub fn ticks(&self) -> Vec<f64> {
        steps(self.least, self.most)
    }
}

/// A scale from zero on in equal steps.
pub struct LinearScale {
    most: f64,
    step: f64,
    from: f64,
    to: f64,
}

impl LinearScale {
    /// From zero to a round value at or above the greatest.
    #[must_use]
    pub fn up_to(most: f64, from: f64, to: f64) -> Self {
        /// So many steps at the most.
        const STEPS: f64 = 8.0;
        let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
        let step = steps(most / STEPS, most).first().copied().unwrap_or(most);
        Self { most: (most / step).ceil() * step, step, from, to }
    }

    /// Where a value is.
    #[must_use]
    pub fn at(&self, value: f64) -> f64 {
        self.from + (value / self.most).clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Values for lines and numbers.
    #[must_use]
    pub fn ticks(&self) -> Vec<f64> {
        let count = (self.most / self.step).round();
        let numbers = (0_u32..).map(f64::from).take_while(|number| *number <= count);
        numbers.map(|number| number * self.step).collect()
    }
}

/// Either kind of scale.
pub enum Scale {
    /// In equal steps from zero.
    Linear(LinearScale),
    /// By powers of ten.
    Log(LogScale),
}

impl Scale {
    /// From zero on, unless the greatest value is over `span_max` times the least.
    #[must_use]
    pub fn fitting(values: &[f64], span_max: f64, from: f64, to: f64) -> Self {
        let values = values.iter().copied().filter(|value| value.is_finite() && *value > 0.0);
        let (least, most) =
            values.clone().fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
                (least.min(value), most.max(value))
            });
        if most > span_max * least {
            return Self::Log(LogScale::around(values, from, to));
        }
        Self::Linear(LinearScale::up_to(most, from, to))
    }

    /// Where a value is.
    #[must_use]
    pub fn at(&self, value: f64) -> f64 {
        match self {
            Self::Linear(scale) => scale.at(value),
            Self::Log(scale) => scale.at(value),
        }
    }

    /// Values for lines and numbers.
    #[must_use]
    pub fn ticks(&self) -> Vec<f64> {
        match self {
            Self::Linear(scale) => scale.ticks(),
            Self::Log(scale) => scale.ticks(),
        }
    }

    /// `linear` or `logarithmic`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Linear(_) => "linear",
            Self::Log(_) => "logarithmic",
        }
    }
}

/// 1, 2 and 5 times powers of ten from `least` to `most`, a rounding error apart.
fn steps(least: f64, most: f64) -> Vec<f64> {
    const ROUNDING: f64 = 1e-9;
    let all = POWERS.flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
    all.filter(|step| (least * (1.0 - ROUNDING)..=most * (1.0 + ROUNDING)).contains(step)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_begins_and_ends_at_round_values() {
        let scale = LogScale::around([0.0, 0.03, 41.0], 100.0, 500.0);
        let expected = [0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0];
        let ticks = scale.ticks();
        assert_eq!(ticks.len(), expected.len());
        assert!(ticks.iter().zip(expected).all(|(found, one)| (found / one - 1.0).abs() < 1e-9));
        assert_eq!((scale.at(0.02), scale.at(1e9)), (100.0, 500.0));
        assert!((scale.at(1.0) - 300.0).abs() < 1e-9);
    }

    #[test]
    fn a_scale_of_one_value_or_none_is_still_one() {
        assert!(LogScale::around([1.0], 0.0, 1.0).ticks().len() > 2);
        assert!(LogScale::around([], 0.0, 1.0).ticks().len() > 2);
    }

    #[test]
    fn a_linear_scale_begins_at_zero_and_ends_at_a_round_value() {
        let scale = LinearScale::up_to(1.87, 100.0, 500.0);
        assert_eq!(scale.ticks(), [0.0, 0.5, 1.0, 1.5, 2.0]);
        assert_eq!((scale.at(0.0), scale.at(1.0), scale.at(9.0)), (100.0, 300.0, 500.0));
        assert_eq!(LinearScale::up_to(f64::NAN, 0.0, 1.0).ticks().len(), 6);
    }

    #[test]
    fn a_wide_span_makes_a_scale_logarithmic() {
        assert_eq!(Scale::fitting(&[1.0, 10.0], 10.0, 0.0, 1.0).name(), "linear");
        assert_eq!(Scale::fitting(&[1.0, 10.1], 10.0, 0.0, 1.0).name(), "logarithmic");
        assert_eq!(Scale::fitting(&[], 10.0, 0.0, 1.0).name(), "linear");
    }

    #[test]
    fn what_is_shown_is_escaped() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text(1.0, 2.0, "c", Anchor::Start, "<&>");
        svg.mark(Mark::Square, "c", (1.0, 2.0), "a\"b");
        let text = svg.finish("\"x\"");
        assert!(text.contains("&lt;&amp;&gt;") && text.contains("a&quot;b"), "{text}");
    }
}
