//! How late the ferry was: a histogram of all packets.

use record::result::Lateness;

use super::figures::WIDTH;
use crate::format;
use crate::svg::{Anchor, Svg};

/// Upper edges of the plot's bins, in microseconds; one more bin holds what is above.
const EDGES_US: [u64; 13] =
    [5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000];
const HEIGHT: f64 = 170.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 34.0;

/// The plot.
pub(crate) fn plot(lateness: &Lateness) -> String {
    let counts = counts(lateness);
    let total = counts.iter().sum::<u64>().max(1) as f64;
    let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let mut svg = Svg::new(WIDTH, TOP + HEIGHT + BOTTOM);
    let base = TOP + HEIGHT;
    let width = WIDTH / counts.len() as f64;
    for (index, count) in counts.iter().enumerate() {
        let x = index as f64 * width;
        let height = *count as f64 / most * HEIGHT;
        let (name, share) = (bin_name(index), *count as f64 / total);
        let title = format!("{name}: {count} packets");
        svg.bar("lateness", (x + 3.0, base - height), (width - 6.0, height), &title);
        svg.text(x + width / 2.0, base + 15.0, "tick", Anchor::Middle, &name);
        if *count > 0 {
            let text = if share < 0.0005 { count.to_string() } else { format::per_cent(share) };
            svg.text(x + width / 2.0, base - height - 5.0, "tick", Anchor::Middle, &text);
        }
    }
    svg.line("axis", (0.0, base), (WIDTH, base));
    svg.text(WIDTH, base + 31.0, "tick", Anchor::End, "late by, in milliseconds");
    svg.finish("Histogram of the ferry's lateness")
}

fn counts(lateness: &Lateness) -> Vec<u64> {
    let mut counts = vec![0; EDGES_US.len() + 1];
    for (edge_us, packets) in &lateness.bins {
        counts[EDGES_US.partition_point(|edge| edge < edge_us)] += packets;
    }
    counts
}

fn bin_name(index: usize) -> String {
    let in_ms = |us: u64| us as f64 / 1000.0;
    match EDGES_US.get(index) {
        Some(edge_us) => format!("≤ {}", in_ms(*edge_us)),
        None => format!("> {}", in_ms(EDGES_US[EDGES_US.len() - 1])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_is_in_one_bin() {
        let bins = vec![(1, 1), (5, 2), (6, 4), (50_000, 8), (50_001, 16)];
        let counts = counts(&Lateness { bins, ..Lateness::default() });
        assert_eq!((counts[0], counts[1]), (3, 4));
        assert_eq!(counts[EDGES_US.len() - 1..], [8, 16]);
        assert_eq!(counts.iter().sum::<u64>(), 31);
    }
}
