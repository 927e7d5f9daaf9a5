//! `longwire codecs`: the table of codecs.

use std::process::ExitCode;

use codec::{Fidelity, Flow, Needs, Properties};
use serde_json::json;

/// List the codecs with their properties.
///
/// Columns: what comes back (bytes: every byte; infoset: the same information), how it flows
/// (blocks: each comes out at once; stream: memory is bounded; whole: a message is held), what both
/// sides need, levels from least to most with the usual one, what it applies to, and the standard
/// form that `longwire encode` writes.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire codecs
  longwire codecs --json | python3 -m json.tool")]
pub(crate) struct Args {
    /// Print an array of objects instead of a table.
    #[arg(long)]
    json: bool,
}

/// Prints the table.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let all = codec::CODECS.iter().map(|codec| codec.properties());
    let text = if args.json {
        let all: Vec<_> = all.map(object).collect();
        serde_json::to_string_pretty(&all)? + "\n"
    } else {
        let row = |cells: [&str; 7]| {
            let [name, fidelity, flow, needs, levels, applies, form] = cells;
            format!(
                "{name:<18} {fidelity:<8} {flow:<7} {needs:<22} {levels:<12} {applies:<5} {form}\n"
            )
        };
        let heads = ["codec", "back", "flow", "needs", "levels", "for", "form"];
        all.fold(row(heads), |text, codec| {
            text + &row([
                codec.name,
                fidelity(codec.fidelity),
                flow(codec.flow),
                needs(codec.needs),
                &levels(codec),
                applies(codec),
                codec.form,
            ])
        })
    };
    crate::say(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn object(codec: &Properties) -> serde_json::Value {
    let levels = codec
        .levels
        .map(|(least, usual, most)| json!({ "least": least, "usual": usual, "most": most }));
    json!({
        "name": codec.name,
        "number": codec.number,
        "fidelity": fidelity(codec.fidelity),
        "flow": flow(codec.flow),
        "needs": needs(codec.needs),
        "levels": levels,
        "media": codec.media,
        "form": codec.form,
    })
}

/// What comes back, in a word.
pub(super) fn fidelity(of: Fidelity) -> &'static str {
    match of {
        Fidelity::Bytes => "bytes",
        Fidelity::Infoset => "infoset",
    }
}

fn flow(of: Flow) -> &'static str {
    match of {
        Flow::Blocks => "blocks",
        Flow::Stream => "stream",
        Flow::Whole => "whole",
    }
}

fn needs(of: Needs) -> &'static str {
    match of {
        Needs::Nothing => "nothing",
        Needs::Dictionary => "dictionary",
        Needs::SchemaOptional => "schema (optional)",
        Needs::TokenTableOptional => "token table (optional)",
    }
}

fn levels(codec: &Properties) -> String {
    codec.levels.map_or("-".to_owned(), |(least, usual, most)| format!("{least}..{most} ({usual})"))
}

/// The kind of content in a word: the table has no room for media types.
fn applies(codec: &Properties) -> &'static str {
    match (codec.applies_to("application/octet-stream"), codec.applies_to("application/json")) {
        (true, _) => "any",
        (false, true) => "JSON",
        (false, false) => "XML",
    }
}
