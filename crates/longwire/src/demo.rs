//! `longwire demo`: the pair over emulated links, before and after.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;
use lab::demo::{About, NETWORKS, Plan, track_name, url_items};
use record::demo::{Demo, Item, Service};
use services::client::{Config, Target};
use services::tracks::{Catalogue, DEFAULT_SEED, FILE_COUNT, soap};

/// What the bound counts with: the best that the table of codecs offers.
const BOUND_ENCODING: &str = "zstd:19";
/// How long a service of the user's own may take before anything is built.
const URL_PATIENCE: Duration = Duration::from_secs(30);
/// With what comes before and after, the whole stays below five minutes.
const DEFAULT_BUDGET: &str = "230 s";
/// Budgets that are taken.
const BUDGETS: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(3600);
/// What a shell answers for a command that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Show what the pair does to web services over bad links.
///
/// Fetches the same things from the same services over emulated links: directly, directly with
/// gzip, and through the pair, every combination on two hosts of its own, all side by side. Takes
/// at most five minutes, and up to a third more where the machine was too busy for some of it and
/// that is measured once more; ends with a table and a report in DIR/report.html, with the data in
/// DIR/results.json. As root, links are emulated truly; without, in a user namespace.
#[derive(clap::Args)]
#[command(after_help = "\
With --url the service is asked with GET through a plain TCP relay at the far end of each link, so
it must be reachable from here, by http. It sees its own name in Host; when it has none (an address,
localhost), 'b' and its port.

Examples:
  longwire demo
  longwire demo --networks satcom,cnr --services soap
  longwire demo --url http://127.0.0.1:8080/report.json --out /tmp/mine
  longwire demo --networks gprs,geo --budget '60 s' --json

`longwire lab presets` lists the networks.")]
pub(crate) struct Args {
    /// Where the report goes; made when it is not there.
    #[arg(long, value_name = "DIR", default_value = "out/demo")]
    out: PathBuf,
    /// The links, by the names of presets or saved links.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values = NETWORKS)]
    networks: Vec<String>,
    /// The interfaces of the tracks service.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum,
        default_values = ["soap", "rest-xml", "rest-json"], conflicts_with = "url")]
    services: Vec<ServiceName>,
    /// Decides every chance on the links: the same seed loses the same packets.
    #[arg(long, value_name = "N", default_value_t = 118)]
    seed: u64,
    /// Fetch this instead of the tracks: a service of your own.
    #[arg(long, value_name = "URL", value_parser = target)]
    url: Option<Target>,
    /// Longest that the fetches of one combination may take, from 1 s to 1 h.
    #[arg(long, value_name = "TIME", default_value = DEFAULT_BUDGET, value_parser = budget)]
    budget: Duration,
    /// Print the results as JSON instead of the table.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ServiceName {
    /// SOAP 1.1
    Soap,
    /// REST with XML
    RestXml,
    /// REST with JSON
    RestJson,
}

/// Runs the demonstration and writes its report.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    // First of all: it wants a process with one thread.
    let privilege = match lab::acquire(false) {
        Ok(privilege) => privilege,
        Err(error) => return refuse(error),
    };
    let services = match &args.url {
        None => track_services(&args.services)?,
        Some(url) => vec![url_service(url)?],
    };
    let plan = Plan {
        program: std::env::current_exe().context("cannot find this program")?,
        networks: args.networks,
        services,
        url: args.url,
        seed: args.seed,
        budget: args.budget,
        privilege,
        about: About {
            version: env!("CARGO_PKG_VERSION").to_string(),
            revision: option_env!("LONGWIRE_COMMIT").map(str::to_string),
            profile: if cfg!(debug_assertions) { "debug" } else { "release" }.to_string(),
            command: crate::command_line(),
            bound_encoding: BOUND_ENCODING.to_string(),
        },
    };
    if let Err(error) = plan.check() {
        return refuse(error);
    }
    // Now rather than after the minutes that the rest takes.
    fs::create_dir_all(&args.out).with_context(|| format!("cannot make {}", args.out.display()))?;
    match lab::demo::run(&plan) {
        Ok(Some(demo)) => finish(&demo, &args.out, args.json),
        Ok(None) => {
            eprintln!("longwire: interrupted; nothing is left running");
            Ok(ExitCode::from(INTERRUPTED))
        }
        Err(error) => refuse(error),
    }
}

/// Bad use is told apart from failure at work.
fn refuse(error: lab::Error) -> anyhow::Result<ExitCode> {
    match error {
        lab::Error::Caller(message) => {
            eprintln!("longwire: {message}");
            Ok(ExitCode::from(crate::BAD_USE))
        }
        other => Err(other.into()),
    }
}

/// Writes both files and prints the outcome. Success means that every cell has a result.
fn finish(demo: &Demo, out: &Path, json: bool) -> anyhow::Result<ExitCode> {
    let raw = serde_json::to_string(demo)? + "\n";
    let report = out.join("report.html");
    for (path, text) in [(&out.join("results.json"), &raw), (&report, &report::demo::html(demo)?)] {
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let text = if json {
        raw
    } else {
        format!("{}\nreport: {}\n", report::demo::table(demo), report.display())
    };
    crate::say(&text).context("cannot write the result")?;
    let whole = demo.cells.iter().all(|cell| cell.fetch.is_some());
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The tracks in the forms asked for, with what the bound needs to know.
fn track_services(names: &[ServiceName]) -> anyhow::Result<Vec<Service>> {
    let catalogue = Catalogue::new(DEFAULT_SEED);
    let service = |name: &ServiceName| {
        let items = (1..=FILE_COUNT).map(|number| track_item(&catalogue, *name, number));
        let name = name.to_possible_value().map(|value| value.get_name().to_string());
        Ok(Service { name: name.unwrap_or_default(), items: items.collect::<Result<_, _>>()? })
    };
    names.iter().map(service).collect()
}

fn track_item(catalogue: &Catalogue, name: ServiceName, number: usize) -> anyhow::Result<Item> {
    let version = soap::Version::Soap11;
    let (document, request) = match name {
        ServiceName::Soap => {
            (catalogue.soap(number, version), soap::request(version, number).into_bytes())
        }
        ServiceName::RestXml => (catalogue.xml(number), Vec::new()),
        ServiceName::RestJson => (catalogue.json(number), Vec::new()),
    };
    let body = document.with_context(|| format!("there is no track {number}"))?.plain();
    item(track_name(number), &body, &request)
}

fn item(name: String, body: &[u8], request: &[u8]) -> anyhow::Result<Item> {
    Ok(Item {
        name,
        body_bytes: body.len() as u64,
        encoded_body_bytes: encoded_bytes(body)?,
        encoded_request_bytes: encoded_bytes(request)?,
    })
}

/// The length in the best encoding, or as it is where that is no shorter.
fn encoded_bytes(content: &[u8]) -> anyhow::Result<u64> {
    let mut encoded = Vec::new();
    let mut encoder = codec::Options::of(BOUND_ENCODING).and_then(codec::Options::encoder)?;
    encoder.encode(content, true, &mut encoded)?;
    Ok(encoded.len().min(content.len()) as u64)
}

/// A service of the user's own: asked once from here, so that what is wrong with it shows at once.
fn url_service(url: &Target) -> anyhow::Result<Service> {
    let body = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&body);
    let mut plan = services::client::url_plan(url, 1);
    let first = plan.items.first_mut().context("nothing to fetch")?;
    let usual = std::mem::replace(&mut first.check, Box::new(|_| Ok(())));
    first.keep = true;
    first.check = Box::new(move |answer| {
        usual(answer)?;
        kept.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&answer.content);
        Ok(())
    });
    let config = Config {
        proxy: None,
        gzip: false,
        new_connection: false,
        warm_up: Some(0),
        timeout: URL_PATIENCE,
        budget: None,
        congestion: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let result = runtime.block_on(services::client::fetch(&plan, &config, |_| {}))?;
    runtime.shutdown_background();
    let exchange = result.measured.first().context("nothing was fetched")?;
    if let Some(error) = &exchange.error {
        anyhow::bail!("{url}: {error}");
    }
    anyhow::ensure!(!exchange.censored, "{url}: no answer within {URL_PATIENCE:?}");
    let body = body.lock().unwrap_or_else(PoisonError::into_inner);
    let items = url_items(&item(String::new(), &body, &[])?);
    Ok(Service { name: "url".to_string(), items })
}

fn target(text: &str) -> Result<Target, services::Error> {
    Target::parse(text)
}

fn budget(text: &str) -> Result<Duration, String> {
    let budget = link::units::parse_duration(text).map_err(|error| error.to_string())?;
    if BUDGETS.contains(&budget) {
        return Ok(budget);
    }
    Err("a budget is from 1 s to 1 h; give one like '230 s'".to_string())
}
