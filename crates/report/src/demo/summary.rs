//! What came out, in a few plain sentences.

use std::cmp::Ordering;

use record::demo::Demo;

use super::rows::{Row, item_noun, rows};
use crate::format;

/// The sentences.
pub(super) fn summary(demo: &Demo) -> String {
    let rows = rows(demo);
    let gain = |row: &Row<'_>| row.gains()[0].sure();
    let mut compared: Vec<&Row<'_>> = rows.iter().filter(|row| gain(row).is_some()).collect();
    compared.sort_by(|left, right| gain(left).partial_cmp(&gain(right)).unwrap_or(Ordering::Equal));
    let (Some(worst), Some(best)) = (compared.first(), compared.last()) else {
        return "No comparison came out: see the remarks.".to_string();
    };
    let mut sentences = vec![format!(
        "The median {} came faster through longwire than direct in {} of {} comparisons{}.",
        item_noun(demo),
        compared.iter().filter(|row| gain(row).is_some_and(|gain| gain > 1.0)).count(),
        rows.len(),
        match rows.len() - compared.len() {
            0 => String::new(),
            unknown => format!(" ({unknown} unknown)"),
        },
    )];
    match compared.len() {
        1 => sentences.push(format!("{}.", gained(best))),
        _ => sentences.push(format!("Best: {}. Worst: {}.", gained(best), gained(worst))),
    }
    let mut shares: Vec<f64> = rows.iter().filter_map(Row::byte_share).collect();
    shares.sort_by(f64::total_cmp);
    if let Some(range) = range(&shares, format::per_cent) {
        sentences.push(format!("It puts {range} of the bytes on the wire."));
    }
    let mut against_gzip: Vec<f64> = rows.iter().filter_map(|row| row.gains()[1].sure()).collect();
    against_gzip.sort_by(f64::total_cmp);
    if let Some(range) = range(&against_gzip, format::factor) {
        sentences.push(format!(
            "Where client and service use gzip already, longwire is {range} times as fast as they."
        ));
    }
    sentences.join(" ")
}

/// The least and the greatest of sorted values, `2 to 3`, or the one value that they are.
fn range(sorted: &[f64], text: impl Fn(f64) -> String) -> Option<String> {
    let (least, most) = (text(*sorted.first()?), text(*sorted.last()?));
    Some(if least == most { least } else { format!("{least} to {most}") })
}

/// What longwire does to one row.
fn gained(row: &Row<'_>) -> String {
    let name = format::service_name(&row.service.name);
    let [direct, _, longwire] = row.medians().map(format::time);
    let [gain, _] = row.gains();
    let network = &row.network.name;
    format!("{name} over {network} takes {longwire} s instead of {direct} s ({gain} times as fast)")
}
