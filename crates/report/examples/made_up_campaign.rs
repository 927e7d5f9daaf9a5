//! Writes the report of a made-up campaign of full size to standard output, to be looked at:
//! `cargo run -p longwire-report --example made_up_campaign > report.html`. With `--table` it writes
//! what a terminal shows.

use std::io::Write;

#[path = "../tests/campaign/made_up.rs"]
#[allow(clippy::unwrap_used, clippy::cast_possible_truncation)]
mod made_up;

/// Enough for intervals.
const RUNS: u32 = 6;

fn main() -> std::io::Result<()> {
    let campaign = made_up::campaign(RUNS);
    let analysis = longwire_report::analysis::analyse(&campaign);
    let is_table = std::env::args().any(|argument| argument == "--table");
    let text = if is_table {
        longwire_report::campaign::table(&campaign, &analysis)
    } else {
        longwire_report::campaign::html(&campaign, &analysis)
    };
    std::io::stdout().write_all(text.as_bytes())
}
