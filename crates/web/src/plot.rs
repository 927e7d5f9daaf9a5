//! The picture of one parameter: a column for each value, in it a mark for each service at the
//! median of the runs, with its interval.

use record::campaign::Reference;
use report::svg::{Anchor, Mark, Scale, Svg};

use crate::cells::Row;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 64.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = HEIGHT - 58.0;
/// Services beyond this many would look like others.
const MAX_SERVICES: usize = 6;
/// More columns than this cannot be read.
const MAX_VALUES: usize = 24;
/// From this ratio of the greatest to the least on the axis is logarithmic.
const MAX_LINEAR_SPAN: f64 = 20.0;

/// What is drawn.
#[derive(Debug)]
pub struct Plot<'a> {
    /// What stands above it.
    pub title: &'a str,
    /// Each cell with its value of the parameter.
    pub cells: &'a [(String, Row<'a>)],
    /// What others have published.
    pub references: &'a [Reference],
    /// With rules for its classes, for a file of its own.
    pub alone: bool,
}

/// Rules for a drawing outside of our pages.
const RULES: &str = "text { font: 12px sans-serif; fill: #1b1b1b; } .grid { stroke: #d9d9d9; } \
    .s0 { fill: #0072b2; stroke: #0072b2; } .s1 { fill: #b35960; stroke: #b35960; } \
    .s2 { fill: #0a0866; stroke: #0a0866; } .s3 { fill: #e02604; stroke: #e02604; } \
    .s4 { fill: #431436; stroke: #431436; } .s5 { fill: #8701fc; stroke: #8701fc; } \
    .paper { fill: none; stroke: #1b1b1b; stroke-width: 1.5; } .whisker { stroke-width: 1.6; } \
    .lost { stroke: #a3003c; stroke-width: 2; }\n";

impl Plot<'_> {
    /// The drawing as an element.
    #[must_use]
    pub fn svg(&self) -> String {
        let mut svg = Svg::new(WIDTH, HEIGHT);
        if self.alone {
            svg.style(RULES);
        }
        svg.text(LEFT, 16.0, "title", Anchor::Start, self.title);
        let (values, services) = (self.values(), self.services());
        if values.is_empty() {
            svg.text(LEFT, TOP + 30.0, "note", Anchor::Start, "No cell differs in this alone.");
            return svg.finish(self.title);
        }
        let scale = self.scale();
        for tick in scale.ticks() {
            let y = scale.at(tick);
            svg.line("grid", (LEFT, y), (WIDTH - 8.0, y));
            let text = format!("{tick:.4}");
            let text = text.trim_end_matches('0').trim_end_matches('.');
            svg.text(LEFT - 6.0, y + 4.0, "tick", Anchor::End, text);
        }
        svg.text(8.0, TOP - 14.0, "tick", Anchor::Start, "seconds");
        let room = (WIDTH - 8.0 - LEFT) / values.len() as f64;
        for (column, value) in values.iter().enumerate() {
            let middle = LEFT + (column as f64 + 0.5) * room;
            svg.text(middle, BOTTOM + 18.0, "label", Anchor::Middle, value);
            for (place, service) in services.iter().enumerate() {
                let spread = (room * 0.6).min(26.0 * services.len() as f64);
                let offset = (place as f64 + 0.5) / services.len() as f64 - 0.5;
                let x = middle + spread * offset;
                for (_, row) in self
                    .cells
                    .iter()
                    .filter(|(of, row)| of == value && row.of.cell.service == *service)
                {
                    self.point(&mut svg, &scale, x, place, row);
                }
            }
        }
        for (place, service) in services.iter().enumerate() {
            let x = LEFT + 150.0 * place as f64;
            svg.mark(mark(place), &class(place), (x, HEIGHT - 12.0), "");
            svg.text(x + 9.0, HEIGHT - 8.0, "label", Anchor::Start, service);
        }
        svg.finish(&format!("{}; the same in the table below", self.title))
    }

    fn point(&self, svg: &mut Svg, scale: &Scale, x: f64, place: usize, row: &Row<'_>) {
        let cell = &row.of.cell;
        if let Some((low, high)) = row.interval_s {
            let class = format!("{} whisker", class(place));
            svg.line(&class, (x, scale.at(low)), (x, scale.at(high)));
        }
        let lost = row.lost.unwrap_or(0.0);
        match row.median_s {
            Some(median_s) => {
                let title = format!(
                    "{}: {median_s:.3} s, {} runs, {:.1} % lost",
                    cell.name,
                    row.of.good().count(),
                    100.0 * lost
                );
                svg.mark(mark(place), &class(place), (x, scale.at(median_s)), &title);
                if lost > 0.0 {
                    svg.cross("lost", (x, BOTTOM - 6.0));
                }
            }
            None => svg.cross("lost", (x, BOTTOM - 6.0)),
        }
        if let Some(paper) = self.references.iter().find(|of| of.cell == cell.name) {
            let title = format!("{}: the paper has {} s", cell.name, paper.seconds);
            svg.circle("paper", (x, scale.at(paper.seconds)), 6.0, &title);
        }
    }

    fn scale(&self) -> Scale {
        let ours = self.cells.iter().flat_map(|(_, row)| {
            let (low, high) = row.interval_s.unzip();
            [row.median_s, low, high].into_iter().flatten()
        });
        let named = |of: &&Reference| self.cells.iter().any(|(_, row)| row.of.cell.name == of.cell);
        let theirs = self.references.iter().filter(named).map(|of| of.seconds);
        let all: Vec<f64> = ours.chain(theirs).collect();
        Scale::fitting(&all, MAX_LINEAR_SPAN, BOTTOM, TOP)
    }

    /// Values of the parameter, the default first, numbers by size.
    fn values(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for (value, _) in self.cells {
            if !all.contains(&value.as_str()) {
                all.push(value);
            }
        }
        let number = |value: &str| {
            let digits: String =
                value.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
            digits.parse::<f64>().ok()
        };
        // The default, then numbers by size, then the others as they came.
        let rank = |value: &str| match number(value) {
            _ if value == "default" => (0, 0.0),
            Some(number) => (1, number),
            None => (2, 0.0),
        };
        all.sort_by(|one, other| {
            let (one, other) = (rank(one), rank(other));
            one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
        });
        all.truncate(MAX_VALUES);
        all
    }

    fn services(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for (_, row) in self.cells {
            let service = row.of.cell.service.as_str();
            if !all.contains(&service) {
                all.push(service);
            }
        }
        all.truncate(MAX_SERVICES);
        all
    }
}

fn class(place: usize) -> String {
    format!("s{}", place % MAX_SERVICES)
}

fn mark(place: usize) -> Mark {
    [Mark::Circle, Mark::Square, Mark::Diamond, Mark::Triangle][place % 4]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::{View, tests::cells};

    #[test]
    fn values_services_and_the_paper_are_drawn() {
        let cells = cells();
        let view = View::read(&crate::page::query("network=satcom&way=direct&parameter=chunking"));
        let compared = view.compared(&cells);
        let references = [Reference {
            cell: "satcom/tracks/soap/direct/chunking=on".to_string(),
            seconds: 3.5,
            note: String::new(),
        }];
        let plot = Plot { title: "<x>", cells: &compared, references: &references, alone: false };
        let svg = plot.svg();
        for text in [">default<", ">on<", ">soap<", "the paper has 3.5 s", "&lt;x&gt;"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        assert!(!svg.contains("<style"));
        assert!(Plot { alone: true, ..plot }.svg().contains("<style"));
        let empty = Plot { title: "x", cells: &[], references: &[], alone: false };
        assert!(empty.svg().contains("No cell differs"));
    }
}
