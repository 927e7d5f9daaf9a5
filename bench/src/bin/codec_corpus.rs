//! What each codec makes of real messages, by their size.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Parser;
use liblzma::bufread::{XzDecoder, XzEncoder};
use liblzma::stream::{Check, PRESET_EXTREME, Stream};
use longwire_bench::machine::describe;
use longwire_bench::markdown::{Document, Table};
use serde_json::Value;

/// The section of a document that `--markdown` keeps.
const SECTION: &str = "corpus";
/// Folders of the data whose messages services really exchange.
const FOLDERS: [&str; 5] = ["soap", "friendly_force", "tpch", "json_rest", "xml_compression"];
/// Upper ends of the size classes in bytes, with their names.
const CLASSES: [(u64, &str); 4] =
    [(1_000, "<1 KB"), (10_000, "1-10 KB"), (100_000, "10-100 KB"), (u64::MAX, ">100 KB")];
/// Longest file that takes part: beyond it stand data sets, not messages.
const MAX_FILE_BYTES: u64 = 20_000_000;

/// Compare the codecs over the messages of $LONGWIRE_DATA, by kind and size.
///
/// Runs `longwire compare` and xz at -9e, each message coded by itself. Dictionaries come from one
/// half of the messages of a class and code the other half, both ways round. Without the data it
/// says so and ends well.
#[derive(Parser)]
#[command(
    version,
    after_help = "\
Examples:
  cargo build --release --package longwire
  codec_corpus
  codec_corpus --markdown docs/codec-comparison.md --table docs/codec-comparison.tsv"
)]
struct Cli {
    /// Put the tables into this document too, between `<!-- corpus: begin -->` and
    /// `<!-- corpus: end -->`.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write a table of tab-separated values for programs.
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
}

fn main() -> ExitCode {
    match measure(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // The status tells it too.
            let _ = writeln!(stderr(), "codec_corpus: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Messages of one kind and size.
type Class = (&'static str, usize);

/// What a way of coding made of a class, over both halves.
#[derive(Default)]
struct Sum {
    fidelity: String,
    bytes: u64,
    encode_s: f64,
    decode_s: f64,
    refused: u64,
    broken: u64,
}

/// Answers whether everything came back.
fn measure(cli: &Cli) -> Result<bool> {
    let document = cli.markdown.clone().map(|path| Document::open(path, SECTION)).transpose()?;
    let data = std::env::var("LONGWIRE_DATA").unwrap_or_else(|_| "../shared/data".to_owned());
    let classes = classes(Path::new(&data));
    let mut out = stdout().lock();
    if classes.is_empty() {
        writeln!(out, "codec_corpus: skipped, no data at {data} ($LONGWIRE_DATA)")?;
        return Ok(true);
    }
    let machine = describe("codec_corpus");
    let mut text = format!(
        "Measured on {}, revision {}, {} build; {} cores, {}, {}.\n\n```\n{}\n```\n",
        machine.date,
        machine.revision.as_deref().unwrap_or("unknown"),
        machine.profile,
        machine.cores,
        machine.processor,
        machine.kernel,
        machine.command
    );
    let mut rows = "media\tclass\tfiles\tplain_bytes\tcodec\tfidelity\tbytes\tratio\
                    \tencode_bytes_s\tdecode_bytes_s\trefused\n"
        .to_owned();
    let mut broken = 0;
    for (&(media, size), files) in &classes {
        let plain: u64 = files.iter().map(|(_, bytes)| bytes).sum();
        let sums = sums(files)?;
        let class = CLASSES[size].1;
        text += &format!("\n### {media}, {class}: {} messages, {plain} bytes\n\n", files.len());
        let mut sorted: Vec<_> = sums.iter().collect();
        sorted.sort_by_key(|(_, sum)| sum.bytes);
        text += &table(&sorted, plain);
        for (label, sum) in sorted {
            if sum.broken > 0 {
                let count = sum.broken;
                writeln!(stderr(), "{media}, {class}, {label}: {count} did not come back")?;
            }
            broken += sum.broken;
            rows += &line(media, class, files.len(), plain, label, sum);
        }
    }
    write!(out, "{text}")?;
    if let Some(document) = document {
        document.update(&text)?;
    }
    if let Some(path) = &cli.table {
        fs::write(path, rows).with_context(|| path.display().to_string())?;
    }
    Ok(broken == 0)
}

fn table(sums: &[(&String, &Sum)], plain: u64) -> String {
    let heads = ["codec", "bytes", "of plain", "encode MB/s", "decode MB/s", "not taken", "back"];
    let mut table = Table::new(&heads);
    for (label, sum) in sums {
        let speed = |seconds: f64| match seconds {
            0.0 => "-".to_owned(),
            seconds => format!("{:.1}", plain as f64 / seconds / 1e6),
        };
        table.row([
            (*label).clone(),
            sum.bytes.to_string(),
            format!("{:.1} %", 100.0 * sum.bytes as f64 / plain as f64),
            speed(sum.encode_s),
            speed(sum.decode_s),
            sum.refused.to_string(),
            sum.fidelity.clone(),
        ]);
    }
    table.render()
}

fn line(media: &str, class: &str, files: usize, plain: u64, label: &str, sum: &Sum) -> String {
    let speed = |seconds: f64| match seconds {
        0.0 => String::new(),
        seconds => format!("{:.0}", plain as f64 / seconds),
    };
    format!(
        "{media}\t{class}\t{files}\t{plain}\t{label}\t{}\t{}\t{:.4}\t{}\t{}\t{}\n",
        sum.fidelity,
        sum.bytes,
        sum.bytes as f64 / plain as f64,
        speed(sum.encode_s),
        speed(sum.decode_s),
        sum.refused
    )
}

/// Messages with their lengths, by class.
fn classes(data: &Path) -> BTreeMap<Class, Vec<(PathBuf, u64)>> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        walk(&data.join(folder), &mut files);
    }
    files.sort();
    let mut classes: BTreeMap<Class, Vec<(PathBuf, u64)>> = BTreeMap::new();
    for (path, bytes) in files {
        let media = match path.extension().and_then(|end| end.to_str()) {
            Some("xml" | "cot" | "wsdl") => "XML",
            Some("json" | "geojson") => "JSON",
            _ => continue,
        };
        let size = CLASSES.iter().position(|(end, _)| bytes < *end).unwrap_or(CLASSES.len() - 1);
        classes.entry((media, size)).or_default().push((path, bytes));
    }
    classes
}

fn walk(folder: &Path, files: &mut Vec<(PathBuf, u64)>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (path, Ok(about)) = (entry.path(), entry.metadata()) else { continue };
        if about.is_dir() {
            walk(&path, files);
        } else if (1..=MAX_FILE_BYTES).contains(&about.len()) {
            files.push((path, about.len()));
        }
    }
}

/// Both halves, each with a dictionary from the other.
fn sums(files: &[(PathBuf, u64)]) -> Result<BTreeMap<String, Sum>> {
    let half = |odd: usize| -> Vec<&PathBuf> {
        files.iter().skip(odd).step_by(2).map(|(path, _)| path).collect()
    };
    let mut sums = BTreeMap::new();
    for (coded, samples) in [(half(0), half(1)), (half(1), half(0))] {
        if coded.is_empty() {
            continue;
        }
        let dictionary = Dictionary::train(&samples)?;
        let mut command = longwire()?;
        command.args(["compare", "--json"]).args(&coded);
        if let Some(dictionary) = &dictionary {
            command.arg("--dictionary").arg(&dictionary.path);
        }
        let output = command.output().context("run longwire compare")?;
        let result: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())?;
        add(&mut sums, &result)?;
        add_xz(&mut sums, &coded)?;
    }
    Ok(sums)
}

fn add(sums: &mut BTreeMap<String, Sum>, result: &Value) -> Result<()> {
    let plain = result["bytes"].as_f64().context("longwire compare: bytes")?;
    for way in result["codecs"].as_array().context("longwire compare: codecs")? {
        let sum: &mut Sum =
            sums.entry(way["label"].as_str().unwrap_or("?").to_owned()).or_default();
        let count = |key: &str| way[key].as_u64().unwrap_or(0);
        let seconds = |key: &str| plain / way[key].as_f64().unwrap_or(0.0).max(1.0);
        way["fidelity"].as_str().unwrap_or("?").clone_into(&mut sum.fidelity);
        sum.bytes += count("bytes");
        sum.refused += count("refused");
        sum.broken += count("broken");
        sum.encode_s += seconds("encode_bytes_s");
        sum.decode_s += seconds("decode_bytes_s");
    }
    Ok(())
}

/// The yardstick, as `xz -9e` does it, one pass over the messages.
fn add_xz(sums: &mut BTreeMap<String, Sum>, files: &[&PathBuf]) -> Result<()> {
    let sum = sums.entry("xz -9e".to_owned()).or_default();
    "bytes".clone_into(&mut sum.fidelity);
    for file in files {
        let message = fs::read(file).with_context(|| file.display().to_string())?;
        let begun = Instant::now();
        let stream = Stream::new_easy_encoder(9 | PRESET_EXTREME, Check::Crc64)?;
        let mut coded = Vec::new();
        XzEncoder::new_stream(message.as_slice(), stream).read_to_end(&mut coded)?;
        sum.encode_s += begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let mut decoded = Vec::with_capacity(message.len());
        XzDecoder::new(coded.as_slice()).read_to_end(&mut decoded)?;
        sum.decode_s += begun.elapsed().as_secs_f64();
        sum.broken += u64::from(decoded != message);
        sum.bytes += coded.len() as u64;
    }
    Ok(())
}

fn longwire() -> Result<Command> {
    let program = std::env::current_exe()?.with_file_name("longwire");
    if !program.is_file() {
        bail!("no program at {}; cargo build --release --package longwire", program.display());
    }
    Ok(Command::new(program))
}

/// A dictionary in a file, removed when it has served.
struct Dictionary {
    path: PathBuf,
}

impl Dictionary {
    /// From these samples; none where they give none.
    fn train(samples: &[&PathBuf]) -> Result<Option<Self>> {
        let name = format!("longwire-corpus-{}.dictionary", std::process::id());
        let made = Self { path: std::env::temp_dir().join(name) };
        let mut command = longwire()?;
        let status = command.args(["train", "--out"]).arg(&made.path).args(samples).output();
        Ok(status.context("run longwire train")?.status.success().then_some(made))
    }
}

impl Drop for Dictionary {
    fn drop(&mut self) {
        // It may never have been written.
        let _ = fs::remove_file(&self.path);
    }
}
