//! What came out, in a few plain sentences.

use std::cmp::Ordering;

use record::demo::{Demo, Time};

use super::rows::{Row, item_noun, rows};
use crate::format;

/// The sentences.
pub(super) fn summary(demo: &Demo) -> String {
    let rows = rows(demo);
    let gain = |row: &Row<'_>| row.gains()[0].sure();
    // What the machine has spoilt is shown, but nothing is concluded from it.
    let is_sound = |row: &&Row<'_>| gain(row).is_some() && row.marks().join("").is_empty();
    let mut compared: Vec<&Row<'_>> = rows.iter().filter(is_sound).collect();
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
            unknown => format!(" ({unknown} unknown or spoilt)"),
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
    let compressed = compared.iter().filter(|row| row.has_gzip());
    let mut against_gzip: Vec<f64> = compressed.filter_map(|row| row.gains()[1].sure()).collect();
    against_gzip.sort_by(f64::total_cmp);
    if let Some(range) = range(&against_gzip, format::factor) {
        sentences.push(format!(
            "Where client and service use gzip already, longwire is {range} times as fast as they."
        ));
    }
    if against_gzip.is_empty() && !rows.iter().any(Row::has_gzip) {
        let line = "The service sent no less to the client that offers gzip: it does not compress.";
        sentences.push(line.to_string());
    }
    sentences.extend(repeated(demo, &rows));
    sentences.join(" ")
}

/// What must be known where one thing is fetched again and again.
fn repeated(demo: &Demo, rows: &[Row<'_>]) -> Option<String> {
    demo.setting.url.as_ref()?;
    let first = |row: &Row<'_>| {
        let [Time::Seconds(direct), _, Time::Seconds(longwire)] = row.firsts() else { return None };
        let [direct, longwire] = [direct, longwire].map(format::seconds);
        Some(format!("{longwire} s instead of {direct} s over {}", row.network.name))
    };
    let firsts = rows.iter().filter_map(first).collect::<Vec<_>>().join(", ");
    let firsts = match firsts.as_str() {
        "" => String::new(),
        firsts => format!(" The first answer took {firsts}."),
    };
    Some(format!(
        "One URL is fetched again and again: from the second time on, longwire sends each answer \
         as a delta of an earlier one, and the figures above are mostly of these.{firsts}"
    ))
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
