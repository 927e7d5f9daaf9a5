//! Benchmarks of the broker on one machine over loopback, beside Mosquitto's.

mod bulk;
mod cases;
mod client;
mod load;
mod matching;
mod report;
mod servers;

use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Parser;
use longwire_bench::machine::{cores, describe, pin_this_thread, raise_descriptor_limit, render};
use longwire_bench::markdown::Document;
use serde_json::json;

use cases::{Part, Plan};
use servers::{Kind, Setup};

/// The section of a document that `--markdown` keeps.
const SECTION: &str = "broker";
/// Exit status when the command itself is wrong.
const BAD_USE: u8 = 2;

/// Measure the broker beside Mosquitto: deliveries a second, times, memory, what is kept.
///
/// Both brokers run on one core, the clients of this program on another; everything goes over
/// loopback, in rounds that go from one to the other. A message that is lost, comes twice or out
/// of order ends the measurement. The exit status is 1 for that or where a bound is missed, 2 on
/// bad use.
#[derive(Parser)]
#[command(
    version,
    after_help = "\
Examples:
  apt install mosquitto
  cargo build --release --package longwire
  broker                                    everything, about 6 minutes
  broker --only throughput --case '1→50'    some of it
  broker --rounds 1 --seconds 0.3           to see that it works"
)]
struct Cli {
    /// The binary to measure [default: longwire beside this program].
    #[arg(long, value_name = "FILE")]
    longwire: Option<PathBuf>,
    /// The other broker, version 2.
    #[arg(long, value_name = "FILE", default_value = "/usr/sbin/mosquitto")]
    mosquitto: PathBuf,
    /// Measure longwire alone.
    #[arg(long)]
    alone: bool,
    /// Measure only throughput, latency, durable, bulk or matching; may repeat.
    #[arg(long, value_name = "PART", value_parser = part)]
    only: Vec<Part>,
    /// Measure only cases whose name has this, such as '1→50' or 'QoS 0'.
    #[arg(long, value_name = "TEXT")]
    case: Option<String>,
    /// Rounds of each case.
    #[arg(long, value_name = "N", default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Seconds that a case is measured for in a round, 0.1 to 60.
    #[arg(long, value_name = "S", default_value = "1", value_parser = seconds)]
    seconds: Duration,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// Put the table into this document too, between `<!-- broker: begin -->` and
    /// `<!-- broker: end -->`.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

fn part(name: &str) -> Result<Part, String> {
    let found = Part::ALL.into_iter().find(|(_, known)| *known == name);
    found.map(|(part, _)| part).ok_or_else(|| {
        let names = Part::ALL.map(|(_, name)| name).join(", ");
        format!("no such part; choose one of {names}")
    })
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.1..=60.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "give a number from 0.1 to 60".to_owned())
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let open = |path| Document::open(path, SECTION);
    let prepare = || Ok((cli.markdown.clone().map(open).transpose()?, plan(&cli)?));
    let (document, plan) = match prepare() {
        Ok(prepared) => prepared,
        Err(error) => return fail(&error, BAD_USE),
    };
    let outcome = measure(&cli, document, &plan);
    // What brokers have left there is of no use.
    let _ = std::fs::remove_dir_all(&plan.setup.folder);
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => fail(&error, 1),
    }
}

fn fail(error: &anyhow::Error, status: u8) -> ExitCode {
    // The status tells it too.
    let _ = writeln!(stderr(), "broker: {error:#}");
    ExitCode::from(status)
}

/// Answers whether every bound was kept.
fn measure(cli: &Cli, document: Option<Document>, plan: &Plan) -> Result<bool> {
    raise_descriptor_limit()?;
    let machine = describe("broker");
    // The last core is this program's, as long as there are two.
    pin_this_thread(cores().last().copied().unwrap_or(0));
    let rows = cases::run(plan)?;
    let (table, about) = (report::render(&rows), render(&machine));
    let mut out = stdout().lock();
    if cli.json {
        let rounds = cli.rounds;
        let object = json!({
            "machine": machine, "rounds": rounds, "rows": report::object(&rows),
        });
        writeln!(out, "{}", serde_json::to_string_pretty(&object)?)?;
    } else {
        write!(out, "{table}")?;
    }
    if let Some(document) = document {
        document.update(&format!("{about}\n{table}"))?;
    }
    Ok(rows.iter().all(|row| row.is_kept() != Some(false)))
}

fn plan(cli: &Cli) -> Result<Plan> {
    let longwire = match &cli.longwire {
        Some(path) => path.clone(),
        None => std::env::current_exe()?.with_file_name("longwire"),
    };
    if !longwire.is_file() {
        bail!(
            "no program at {}; build it (cargo build --release --package longwire) or name it \
             (--longwire)",
            longwire.display()
        );
    }
    if !cli.alone && Command::new(&cli.mosquitto).arg("-h").output().is_err() {
        bail!(
            "no Mosquitto at {}; install it (apt install mosquitto), name it (--mosquitto), or \
             measure without (--alone)",
            cli.mosquitto.display()
        );
    }
    let kinds = if cli.alone { vec![Kind::Longwire] } else { Kind::ALL.to_vec() };
    let folder = std::env::temp_dir().join(format!("longwire-broker-{}", std::process::id()));
    let core = cores().first().copied().unwrap_or(0);
    Ok(Plan {
        setup: Setup { longwire, mosquitto: cli.mosquitto.clone(), folder, core },
        parts: match &*cli.only {
            [] => Part::ALL.map(|(part, _)| part).to_vec(),
            some => some.to_vec(),
        },
        kinds,
        only: cli.case.clone(),
        rounds: cli.rounds,
        lasts: cli.seconds,
    })
}
