//! What was measured, beside what is required: a table, and an object for programs.

use longwire_bench::markdown::Table;
use longwire_bench::statistics::median;
use serde_json::{Value, json};

use crate::servers::Kind;

/// Bound of a figure of ours.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    /// At least so many times the other's.
    TimesAtLeast(f64),
    /// At most so many times the other's.
    TimesAtMost(f64),
    /// At most this.
    AtMost(f64),
    /// None: shown for what it is.
    Shown,
}

/// One figure of both brokers, over all rounds.
pub(crate) struct Row {
    /// Of what.
    pub(crate) what: String,
    pub(crate) unit: &'static str,
    pub(crate) bound: Bound,
    /// Ours, then the other's, which may be none.
    pub(crate) values: [Vec<f64>; 2],
}

impl Row {
    /// A row without values.
    pub(crate) fn new(what: String, unit: &'static str, bound: Bound) -> Self {
        Self { what, unit, bound, values: [Vec::new(), Vec::new()] }
    }

    /// Adds the value of a round.
    pub(crate) fn add(&mut self, kind: Kind, value: f64) {
        self.values[kind as usize].push(value);
    }

    /// Ours by the other's.
    fn ratio(&self) -> Option<f64> {
        let [ours, other] = self.values.each_ref().map(|all| median(all.iter().copied()));
        (other > 0.0).then(|| ours / other)
    }

    /// Whether the bound is kept; nothing is known without both values.
    pub(crate) fn is_kept(&self) -> Option<bool> {
        match self.bound {
            Bound::TimesAtLeast(least) => self.ratio().map(|ratio| ratio >= least),
            Bound::TimesAtMost(most) => self.ratio().map(|ratio| ratio <= most),
            Bound::AtMost(most) => Some(median(self.values[0].iter().copied()) <= most),
            Bound::Shown => None,
        }
    }

    fn bound_text(&self) -> String {
        match self.bound {
            Bound::TimesAtLeast(least) => format!("≥ {least} ×"),
            Bound::TimesAtMost(most) => format!("≤ {most} ×"),
            Bound::AtMost(most) => format!("≤ {most}"),
            Bound::Shown => "-".to_owned(),
        }
    }
}

/// The table.
pub(crate) fn render(rows: &[Row]) -> String {
    let mut table = Table::new(&["what", "longwire", "mosquitto", "ratio", "bound", "kept"]);
    for row in rows {
        table.row([
            format!("{}, {}", row.what, row.unit),
            spread(&row.values[0]),
            spread(&row.values[1]),
            row.ratio().map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
            row.bound_text(),
            match row.is_kept() {
                Some(true) => "yes",
                Some(false) => "NO",
                None => "-",
            }
            .to_owned(),
        ]);
    }
    table.render()
}

/// The same for programs.
pub(crate) fn object(rows: &[Row]) -> Value {
    let row = |row: &Row| {
        let mid = |at: usize| (!row.values[at].is_empty()).then(|| median(row.values[at].clone()));
        json!({
            "what": row.what, "unit": row.unit, "bound": row.bound_text(), "kept": row.is_kept(),
            "longwire": mid(0), "mosquitto": mid(1), "ratio": row.ratio(),
            "rounds": { "longwire": row.values[0], "mosquitto": row.values[1] },
        })
    };
    rows.iter().map(row).collect()
}

/// The median, and between what the rounds were.
fn spread(values: &[f64]) -> String {
    if values.is_empty() {
        return "-".to_owned();
    }
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(0.0, f64::max);
    let mid = number(median(values.iter().copied()));
    if values.len() == 1 {
        mid
    } else {
        format!("{mid} ({}–{})", number(least), number(greatest))
    }
}

fn number(value: f64) -> String {
    match value {
        value if value >= 10_000.0 => format!("{:.0}k", value / 1000.0),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(bound: Bound, ours: f64, other: f64) -> Row {
        let mut row = Row::new("x".to_owned(), "µs", bound);
        row.add(Kind::Longwire, ours);
        row.add(Kind::Mosquitto, other);
        row
    }

    #[test]
    fn bounds_are_judged_by_medians() {
        assert_eq!(row(Bound::TimesAtLeast(1.0), 10.0, 9.0).is_kept(), Some(true));
        assert_eq!(row(Bound::TimesAtLeast(1.0), 8.0, 9.0).is_kept(), Some(false));
        assert_eq!(row(Bound::TimesAtMost(1.25), 12.0, 9.0).is_kept(), Some(false));
        assert_eq!(row(Bound::AtMost(12.0), 12.0, 0.0).is_kept(), Some(true));
        let mut alone = Row::new("x".to_owned(), "µs", Bound::TimesAtMost(1.0));
        alone.add(Kind::Longwire, 1.0);
        assert_eq!(alone.is_kept(), None);
        for value in [1.0, 2.0, 30.0] {
            alone.add(Kind::Mosquitto, value);
        }
        assert_eq!(alone.is_kept(), Some(true));
        assert!(render(&[alone]).contains("2.00 (1.00–30.0) |  0.50 | ≤ 1 × |"));
    }
}
