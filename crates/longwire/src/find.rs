//! `longwire find`: services of a registry by kind and measured quality.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use services::Error;
use services::client::Target;
use services::registry::client::{Api, Client, Offer, Search};
use services::registry::quality::{Determinism, Wanted};

use crate::terminal::{BAD_USE, say, tell};

/// Find services at a registry by their kind and by the latency that was measured of them; the best
/// come first.
///
/// The exit status is 0 when there is one at least, 1 when there is none or the registry does not
/// answer, 2 for bad use.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire find --kind consumer
  longwire find --kind consumer --max-latency '3 ms' --determinism hard --json
  longwire find --api uddi --registry http://127.0.0.1:8080/inquiry --kind consumer

A grade of determinism says how many samples are within the latency: soft 99 of 100, firm 999 of
1,000, hard 9,999 of 10,000. What was measured, over which time and when is what services say of
themselves.")]
pub(crate) struct Args {
    /// The registry; with --api uddi the address of its inquiry.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8095", value_parser = url)]
    registry: Target,
    /// By what it is asked.
    #[arg(long, value_name = "API", default_value = "json")]
    api: ApiName,
    /// The kind of service (default: any).
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Longest latency, such as '3 ms' (default: any).
    #[arg(long, value_name = "TIME", value_parser = latency)]
    max_latency: Option<Duration>,
    /// How sure the latency is (default: soft).
    #[arg(long, value_name = "GRADE", requires = "max_latency")]
    determinism: Option<GradeName>,
    /// Most services that are shown, up to 1000.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = limit)]
    limit: usize,
    /// How long an answer may take.
    #[arg(long, value_name = "TIME", default_value = "10 s", value_parser = duration)]
    timeout: Duration,
    /// Print an array of {id, name, url, quality, expires_in_s}.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum ApiName {
    /// JSON over HTTP, of a registry of longwire
    Json,
    /// UDDI v3, of anybody's
    Uddi,
}

#[derive(Clone, Copy, ValueEnum)]
enum GradeName {
    /// 99 of 100 samples
    Soft,
    /// 999 of 1,000 samples
    Firm,
    /// 9,999 of 10,000 samples
    Hard,
}

impl From<GradeName> for Determinism {
    fn from(name: GradeName) -> Self {
        match name {
            GradeName::Soft => Self::Soft,
            GradeName::Firm => Self::Firm,
            GradeName::Hard => Self::Hard,
        }
    }
}

fn url(text: &str) -> Result<Target, Error> {
    Target::parse(text)
}

fn duration(text: &str) -> Result<Duration, link::Error> {
    link::units::parse_duration(text)
}

fn latency(text: &str) -> Result<Duration, String> {
    let latency = link::units::parse_duration(text).map_err(|error| error.to_string())?;
    if latency < Duration::from_micros(1) {
        return Err("choose one of a microsecond at least".to_owned());
    }
    Ok(latency)
}

fn limit(text: &str) -> Result<usize, String> {
    let limit = text.parse().ok().filter(|limit| (1..=1000).contains(limit));
    limit.ok_or_else(|| "choose a number from 1 to 1000".to_owned())
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let client = Client { url: args.registry.clone(), timeout: args.timeout };
    let wanted = args.max_latency.map(|latency| Wanted {
        max_us: u64::try_from(latency.as_micros()).unwrap_or(u64::MAX),
        grade: args.determinism.map_or(Determinism::Soft, Into::into),
    });
    let search = Search { kind: args.kind.clone(), wanted, limit: args.limit };
    let api = match args.api {
        ApiName::Json => Api::Json,
        ApiName::Uddi => Api::Uddi,
    };
    let offers = match runtime.block_on(client.find(api, &search)) {
        Ok(offers) => offers,
        Err(error) => {
            tell(&error.to_string());
            let is_ours = matches!(error, Error::Caller(_));
            return Ok(if is_ours { ExitCode::from(BAD_USE) } else { ExitCode::FAILURE });
        }
    };
    if args.json {
        let all: Vec<_> = offers.iter().map(Offer::json).collect();
        say(&format!("{}\n", serde_json::Value::from(all)))?;
    } else {
        say(&table(&offers))?;
    }
    if offers.is_empty() {
        tell("no such service; ask for a longer latency or a weaker determinism");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn table(offers: &[Offer]) -> String {
    let mut out = String::new();
    for (offer, at) in offers.iter().zip(1..) {
        let _ = writeln!(out, "{at}. {}  {}", clean(&offer.name), clean(&offer.url));
        let _ = match &offer.facts {
            None => writeln!(out, "   nothing was measured"),
            Some(facts) => writeln!(
                out,
                "   mean {} us, p99 {}, p99.9 {}, p99.99 {}, max {}; {} samples over {} s",
                facts.mean_us,
                facts.p99_us,
                facts.p999_us,
                facts.p9999_us,
                facts.max_us,
                facts.samples,
                facts.window.as_secs(),
            ),
        };
    }
    out
}

/// Text of a stranger's for a terminal.
fn clean(text: &str) -> String {
    text.chars()
        .flat_map(|one| match one.is_control() {
            true => one.escape_default().collect::<Vec<_>>(),
            false => vec![one],
        })
        .collect()
}
