//! `longwire compare`: what each codec makes of some files.

use std::io::{IsTerminal, stderr};
use std::path::PathBuf;
use std::process::ExitCode;

use codec::Settings;
use serde_json::json;

use super::list::fidelity;
use super::measure::{Measured, Way, ways};
use super::options::{Shared, read};

/// Show what every applicable codec makes of files, each coded by itself.
///
/// Bytes and ratio are sums over all files; speed is that of this machine now, in megabytes of
/// plain content a second. Every file is decoded again: where bytes come back they must be the
/// same; where an infoset does, elements, attributes and text (JSON: values) must be, and the
/// decoded text must go through once more unchanged. A file that a codec does not take counts
/// with its own length. The exit status is 1 when something did not come back.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire compare report.xml
  longwire compare --json tracks/*.xml | jq '.codecs[0]'
  longwire compare --schema tracks.xsd track.xml
  longwire train --out tracks.dict old-tracks/*.xml
  longwire compare --dictionary tracks.dict tracks/*.xml")]
pub(crate) struct Args {
    /// Files of one kind: all XML, all JSON, or anything.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    shared: Shared,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let files = args.files.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let mut settings = Settings::default();
    args.shared.load(&mut settings)?;
    let media = media_of(&files);
    let ways = ways(&settings, media);
    let mut rows = Vec::with_capacity(ways.len());
    let show_progress = stderr().is_terminal();
    for (at, way) in ways.iter().enumerate() {
        if show_progress {
            eprint!("\r\x1b[K{}: {} of {} done", way.label, at, ways.len());
        }
        rows.push((way, way.measure(&files, media)));
    }
    if show_progress {
        eprint!("\r\x1b[K");
    }
    rows.sort_by_key(|(_, measured)| measured.bytes);
    let plain: u64 = files.iter().map(|file| file.len() as u64).sum();
    let text = match args.json {
        true => object(&rows, files.len(), plain, media),
        false => table(&rows, files.len(), plain),
    };
    crate::say(&text)?;
    let broken = rows.iter().any(|(_, measured)| measured.broken > 0);
    Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What kind of content all files are, by how they begin.
fn media_of(files: &[Vec<u8>]) -> &'static str {
    let all_begin_with = |signs: &[u8]| {
        files.iter().all(|file| {
            // The marks of UTF-8 and UTF-16; in the latter every other byte of ASCII is 0.
            let mark = |byte: &u8| matches!(byte, 0xef | 0xbb | 0xbf | 0xfe | 0xff | 0);
            let first = file.iter().find(|byte| !byte.is_ascii_whitespace() && !mark(byte));
            first.is_some_and(|byte| signs.contains(byte))
        })
    };
    if all_begin_with(b"<") {
        "application/xml"
    } else if all_begin_with(b"{[") {
        "application/json"
    } else {
        "application/octet-stream"
    }
}

fn ratio(bytes: u64, plain: u64) -> f64 {
    if plain == 0 { 1.0 } else { bytes as f64 / plain as f64 }
}

fn table(rows: &[(&Way, Measured)], files: usize, plain: u64) -> String {
    let heads = ["codec", "bytes", "of plain", "encode MB/s", "decode MB/s", "back"];
    let [codec, bytes, share, encode, decode, back] = heads;
    let mut text = format!("{files} files, {plain} bytes\n\n");
    text += &format!("{codec:<24} {bytes:>11} {share:>9} {encode:>12} {decode:>12}  {back}\n");
    for (way, of) in rows {
        let share = 100.0 * ratio(of.bytes, plain);
        text += &format!(
            "{:<24} {:>11} {share:>7.1} % {:>12.1} {:>12.1}  {}",
            way.label,
            of.bytes,
            of.encode_bytes_s / 1e6,
            of.decode_bytes_s / 1e6,
            fidelity(way.codec.properties().fidelity),
        );
        if of.broken > 0 {
            text += &format!("; {} DID NOT COME BACK", of.broken);
        }
        if let Some(why) = &of.why {
            text += &format!("; {} not taken ({why})", of.refused);
        }
        text += "\n";
    }
    text
}

fn object(rows: &[(&Way, Measured)], files: usize, plain: u64, media: &str) -> String {
    let codecs: Vec<_> = rows
        .iter()
        .map(|(way, of)| {
            json!({
                "codec": way.codec.name(),
                "label": way.label,
                "fidelity": fidelity(way.codec.properties().fidelity),
                "bytes": of.bytes,
                "ratio": ratio(of.bytes, plain),
                "encode_bytes_s": of.encode_bytes_s.round(),
                "decode_bytes_s": of.decode_bytes_s.round(),
                "refused": of.refused,
                "why_refused": of.why,
                "broken": of.broken,
            })
        })
        .collect();
    let all = json!({ "files": files, "bytes": plain, "media": media, "codecs": codecs });
    format!("{all}\n")
}
