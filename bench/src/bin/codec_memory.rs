//! What the codecs that stream hold while a long message goes through.

use std::fs;
use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use codec::exi::Alignment;
use codec::{CODECS, Encoder, Flow, Limits, Needs, Settings, StreamDecoder};
use longwire_bench::machine::{describe, render};
use longwire_bench::markdown::{Document, Table};

/// The section of a document that `--markdown` keeps.
const SECTION: &str = "codec_memory";
/// What goes in at once, in bytes.
const BLOCK_BYTES: usize = 64 << 10;
/// Values that EXI's string tables remember: each row brings new ones, and what is remembered
/// without a bound grows with the stream by definition (EXI 1.0 §7.3.1).
const VALUE_PARTITION_CAPACITY: u32 = 10_000;
/// The alignments of EXI, each a case of its own.
const ALIGNMENTS: [(&str, Alignment); 4] = [
    ("bit-packed", Alignment::BitPacked),
    ("byte-packed", Alignment::BytePacked),
    ("pre-compression", Alignment::PreCompression),
    ("compression", Alignment::Compression),
];

/// Send a long message through each codec that streams, and show the most memory that was held.
///
/// Rows with ever new values, XML or JSON as the codec takes it, are encoded and decoded in one
/// process per codec; neither the message nor its coded form is ever there as a whole. Peaks are of
/// resident memory, of the process with both directions: after a tenth of the message and at its
/// end. The exit status is 1 if any grew by more than 4 MiB in between.
#[derive(Parser)]
#[command(
    version,
    after_help = "\
Examples:
  codec_memory
  codec_memory --megabytes 50 --only 'exi compression'
  codec_memory --markdown docs/benchmarks.md"
)]
struct Cli {
    /// Length of the message, in millions of bytes.
    #[arg(long, value_name = "N", default_value_t = 500)]
    #[arg(value_parser = clap::value_parser!(u64).range(10..))]
    megabytes: u64,
    /// Only this case.
    #[arg(long, value_name = "CASE")]
    only: Option<String>,
    /// Put the table into this document too, between `<!-- codec_memory: begin -->` and
    /// `<!-- codec_memory: end -->`.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// What a process of its own does: one case, its figures to stdout.
    #[arg(long, hide = true)]
    case: Option<String>,
}

/// Most growth in bytes: an allocator's slack, not a message's.
const MAX_GROWTH: u64 = 4 << 20;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match &cli.case {
        Some(case) => run_case(case, cli.megabytes * 1_000_000).map(|()| true),
        None => measure(&cli),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // The status tells it too.
            let _ = writeln!(stderr(), "codec_memory: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Every codec that streams.
fn cases() -> Vec<String> {
    let streaming = CODECS.iter().map(|codec| codec.properties());
    let streaming = streaming.filter(|of| of.flow != Flow::Whole && of.needs != Needs::Dictionary);
    streaming
        .flat_map(|of| match of.needs {
            Needs::SchemaOptional => {
                ALIGNMENTS.iter().map(|(word, _)| format!("{} {word}", of.name)).collect()
            }
            _ => vec![of.name.to_owned()],
        })
        .collect()
}

/// Each case in a process of its own. Answers whether all stayed flat.
fn measure(cli: &Cli) -> Result<bool> {
    let document = cli.markdown.clone().map(|path| Document::open(path, SECTION)).transpose()?;
    let cases = cases();
    if let Some(only) = cli.only.as_ref().filter(|only| !cases.contains(only)) {
        bail!("no case '{only}'; there are: {}", cases.join(", "));
    }
    let heads =
        ["codec", "in MB", "coded MB", "peak MiB at a tenth", "peak MiB at the end", "MB/s"];
    let mut table = Table::new(&heads);
    let (mut is_flat, program) = (true, std::env::current_exe()?);
    for case in cases.iter().filter(|case| cli.only.as_ref().is_none_or(|only| only == *case)) {
        writeln!(stderr(), "{case}")?;
        let megabytes = cli.megabytes.to_string();
        let output =
            Command::new(&program).args(["--megabytes", &megabytes, "--case", case]).output()?;
        ensure!(output.status.success(), "{case}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout)?;
        let figures: Vec<f64> =
            text.split_whitespace().filter_map(|one| one.parse().ok()).collect();
        let [plain, coded, early, late, seconds] = figures[..] else { bail!("{case}: '{text}'") };
        is_flat &= late - early <= MAX_GROWTH as f64;
        let cell = |value: f64| format!("{value:.1}");
        let mib = f64::from(1 << 20);
        table.row([
            case.clone(),
            cell(plain / 1e6),
            cell(coded / 1e6),
            cell(early / mib),
            cell(late / mib),
            cell(plain / 1e6 / seconds),
        ]);
    }
    let text = format!("{}\n{}", render(&describe("codec_memory")), table.render());
    write!(stdout(), "{text}")?;
    document.map_or(Ok(()), |document| document.update(&text))?;
    Ok(is_flat)
}

/// One case: bytes in and coded, the peaks of memory, and seconds.
fn run_case(case: &str, bytes: u64) -> Result<()> {
    let (name, alignment) = case.split_once(' ').unwrap_or((case, ""));
    let mut settings = Settings {
        limits: Limits { output_bytes: u64::MAX, ..Limits::default() },
        ..Settings::default()
    };
    settings.exi.value_partition_capacity = Some(VALUE_PARTITION_CAPACITY);
    if let Some((_, alignment)) = ALIGNMENTS.iter().find(|(word, _)| *word == alignment) {
        settings.exi.alignment = *alignment;
    }
    let properties = codec::find(name)?.properties();
    let rows = Rows::new(properties.applies_to("application/xml"), bytes);
    let begun = Instant::now();
    let mut through = Through {
        encoder: settings.encoder(name)?,
        decoder: settings.decoder(name)?,
        coded: Vec::new(),
        decoded: Vec::new(),
        sums: [0; 3],
    };
    let mut early = 0;
    for (block, is_last) in rows {
        through.block(&block, is_last)?;
        if early == 0 && through.sums[0] > bytes / 10 {
            early = peak_bytes()?;
        }
    }
    let [plain, coded, decoded] = through.sums;
    ensure!(decoded > plain / 2, "{decoded} bytes came back of {plain}");
    let seconds = begun.elapsed().as_secs_f64();
    writeln!(stdout(), "{plain} {coded} {early} {} {seconds}", peak_bytes()?)?;
    Ok(())
}

/// Both directions, and how many bytes went in, between and out.
struct Through {
    encoder: Box<dyn Encoder>,
    decoder: Box<dyn StreamDecoder>,
    coded: Vec<u8>,
    decoded: Vec<u8>,
    sums: [u64; 3],
}

impl Through {
    fn block(&mut self, block: &[u8], is_last: bool) -> Result<()> {
        self.coded.clear();
        self.encoder.encode(block, is_last, &mut self.coded)?;
        self.sums[0] += block.len() as u64;
        self.sums[1] += self.coded.len() as u64;
        let mut at = 0;
        loop {
            self.decoded.clear();
            let step = self.decoder.decode(&self.coded[at..], is_last, &mut self.decoded)?;
            at += step.used;
            self.sums[2] += self.decoded.len() as u64;
            let is_idle = step.used == 0 && self.decoded.is_empty();
            if step.done || is_idle || (at == self.coded.len() && self.decoded.is_empty()) {
                ensure!(at == self.coded.len(), "{} bytes left", self.coded.len() - at);
                return Ok(());
            }
        }
    }
}

/// A message of rows as a database gives them, in blocks.
struct Rows {
    is_xml: bool,
    left: u64,
    number: u64,
    state: u64,
    ended: bool,
}

impl Rows {
    fn new(is_xml: bool, bytes: u64) -> Self {
        Self { is_xml, left: bytes, number: 0, state: 1, ended: false }
    }

    /// One row, its values new each time.
    fn row(&mut self) -> String {
        // xorshift64: repeatable, and nothing a codec could guess.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let (number, name, price) = (self.number, self.state >> 20, self.state % 99_999);
        self.number += 1;
        if self.is_xml {
            return format!(
                "<row id=\"{number}\"><name>Part {name:x}</name><price>{}.{:02}</price>\
                 <note>as ordered</note></row>\n",
                price / 100,
                price % 100
            );
        }
        let comma = if number == 0 { "" } else { "," };
        format!(
            "{comma}{{\"id\":{number},\"name\":\"Part {name:x}\",\"price\":{}.{:02},\
             \"note\":\"as ordered\"}}\n",
            price / 100,
            price % 100
        )
    }
}

impl Iterator for Rows {
    type Item = (Vec<u8>, bool);

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let (open, close) = if self.is_xml { ("<rows>", "</rows>") } else { ("[", "]") };
        let mut block = String::with_capacity(BLOCK_BYTES + 256);
        if self.number == 0 {
            block += open;
        }
        while block.len() < BLOCK_BYTES {
            block += &self.row();
        }
        self.left = self.left.saturating_sub(block.len() as u64);
        self.ended = self.left == 0;
        if self.ended {
            block += close;
        }
        Some((block.into_bytes(), self.ended))
    }
}

/// The most resident memory so far, in bytes.
fn peak_bytes() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().split(' ').next()).context("VmHWM")?;
    Ok(kib.parse::<u64>()? << 10)
}
