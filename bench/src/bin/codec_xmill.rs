//! Sizes and speeds of the compressor for XML beside zstd and xz, each message coded alone.

use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use codec::Settings;
use longwire_bench::machine::describe;
use longwire_bench::markdown::{Document, Table};

const SUBJECT_COUNT: usize = 6;
/// What is measured: name, codec, level.
const SUBJECTS: [(&str, &str, i8); SUBJECT_COUNT] = [
    ("xmill:1", "xmill", 1),
    ("xmill:5", "xmill", 5),
    ("xmill:8", "xmill", 8),
    ("xmill:9", "xmill", 9),
    ("zstd:9", "zstd", 9),
    ("zstd:19", "zstd", 19),
];
/// The section of a document that `--markdown` keeps.
const SECTION: &str = "codec_xmill";
/// Rounds of a message: as many as fit into this, three to fifteen.
const MESSAGE_TIME: Duration = Duration::from_millis(400);

/// Compare xmill with zstd and xz over XML messages.
///
/// Speeds are of one processor; subjects take turns, and the median counts. The exit status is 1
/// when a message does not come back.
#[derive(Parser)]
#[command(
    version,
    after_help = "\
Examples:
  codec_xmill ogc=../shared/data/soap/ogc_owslib cda=../shared/data/soap/cda
  codec_xmill --least-bytes 1000 tpch=/tmp/tpch      messages above 1 kB, from /tmp/tpch"
)]
struct Cli {
    /// A name for a group, and a file or a folder of its messages; may repeat. None: OGC answers
    /// and C-CDA documents of $LONGWIRE_DATA.
    #[arg(value_name = "NAME=PATH", value_parser = group)]
    groups: Vec<(String, PathBuf)>,
    /// Leave out messages that are not above this size.
    #[arg(long, value_name = "BYTES", default_value_t = 50_000)]
    least_bytes: u64,
    /// Leave out xz -9e, which is run as a program.
    #[arg(long)]
    no_xz: bool,
    /// Put the table into this document too, between `<!-- codec_xmill: begin -->` and its end.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

fn group(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) = text.split_once('=').ok_or("say NAME=PATH")?;
    Ok((name.to_owned(), PathBuf::from(path)))
}

#[derive(Clone, Copy, Default)]
struct Sum {
    bytes: usize,
    encode: Duration,
    decode: Duration,
}

/// Messages, their bytes, those of xz, and what each subject made of them.
type Groups<'a> = BTreeMap<&'a str, (usize, usize, usize, [Sum; SUBJECT_COUNT])>;

fn main() -> Result<()> {
    let mut cli = Cli::parse();
    if cli.groups.is_empty() {
        cli.groups = of_data();
    }
    let document = cli.markdown.clone().map(|path| Document::open(path, SECTION)).transpose()?;
    let mut groups = Groups::new();
    for (name, path) in &cli.groups {
        for file in messages(path, cli.least_bytes)? {
            let message = std::fs::read(&file)?;
            let sums = groups.entry(name).or_default();
            sums.0 += 1;
            sums.1 += message.len();
            if !cli.no_xz {
                sums.2 += xz_bytes(&file)?;
            }
            measure(&message, &mut sums.3).with_context(|| file.display().to_string())?;
        }
    }
    let machine = longwire_bench::machine::render(&describe(SECTION));
    let text = format!("{machine}\n{}", table(groups));
    stdout().write_all(text.as_bytes())?;
    document.map_or(Ok(()), |document| document.update(&text))
}

fn of_data() -> Vec<(String, PathBuf)> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let data = std::env::var_os("LONGWIRE_DATA").map_or_else(beside, PathBuf::from);
    let group = |name: &str, folder: &str| (name.to_owned(), data.join("soap").join(folder));
    vec![group("ogc", "ogc_owslib"), group("cda", "cda")]
}

fn table(groups: Groups<'_>) -> String {
    let heads =
        ["group", "messages", "bytes", "codec", "coded", "of xz -9e", "encode MB/s", "decode MB/s"];
    let mut table = Table::new(&heads);
    for (name, (messages, bytes, xz, sums)) in groups {
        let mut row = |codec: &str, coded: usize, speeds: [String; 2]| {
            let [encode, decode] = speeds;
            let (messages, bytes) = (messages.to_string(), bytes.to_string());
            let before = [name.to_owned(), messages, bytes, codec.to_owned()];
            let after = [coded.to_string(), ratio(coded, xz), encode, decode];
            table.row(before.into_iter().chain(after));
        };
        for ((subject, ..), sum) in SUBJECTS.iter().zip(sums) {
            let speed = |time| format!("{:.1}", rate(bytes, time));
            row(subject, sum.bytes, [speed(sum.encode), speed(sum.decode)]);
        }
        if xz > 0 {
            row("xz -9e", xz, Default::default());
        }
    }
    table.render()
}

fn ratio(bytes: usize, of: usize) -> String {
    if of == 0 { String::new() } else { format!("{:.3}", bytes as f64 / of as f64) }
}

fn rate(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / time.as_secs_f64() / 1e6
}

fn messages(path: &Path, least_bytes: u64) -> Result<Vec<PathBuf>> {
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        files = std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        files.sort();
    }
    files.retain(|file| {
        file.metadata().is_ok_and(|data| data.is_file() && data.len() > least_bytes)
    });
    Ok(files)
}

fn xz_bytes(file: &Path) -> Result<usize> {
    let output = Command::new("xz")
        .args(["-9e", "--keep", "--stdout"])
        .arg(file)
        .stdin(Stdio::null())
        .output()
        .context("xz cannot be run; leave it out with --no-xz")?;
    ensure!(output.status.success(), "xz failed");
    Ok(output.stdout.len())
}

/// Adds sizes and median times; subjects take turns, so that a slow moment hits all alike.
fn measure(message: &[u8], sums: &mut [Sum; SUBJECT_COUNT]) -> Result<()> {
    let mut times = [const { (Vec::new(), Vec::new()) }; SUBJECT_COUNT];
    let begin = Instant::now();
    for round in 0..15 {
        if round >= 3 && begin.elapsed() > MESSAGE_TIME {
            break;
        }
        for (i, (_, codec, level)) in SUBJECTS.iter().enumerate() {
            let settings = Settings { level: Some(*level), ..Settings::default() };
            let start = Instant::now();
            let coded = settings.encode(codec, message)?;
            times[i].0.push(start.elapsed());
            let start = Instant::now();
            let decoded = settings.decode(codec, &coded)?;
            times[i].1.push(start.elapsed());
            ensure!(decoded == message, "{codec} does not bring it back");
            if round == 0 {
                sums[i].bytes += coded.len();
            }
        }
    }
    for (sum, (encode, decode)) in sums.iter_mut().zip(&mut times) {
        encode.sort_unstable();
        decode.sort_unstable();
        sum.encode += encode[encode.len() / 2];
        sum.decode += decode[decode.len() / 2];
    }
    Ok(())
}
