//! `longwire fetch`: the measuring clients.

use std::io::{IsTerminal, stderr};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;
use record::result::{Calls, Exchange, Fetch};
use services::benchmark::methods::client::{MAX_SLOWDOWN, Over, Series, measure as measure_calls};
use services::benchmark::methods::{self, Method};
use services::benchmark::{self, Class, Form};
use services::client::{Config, Plan, Progress, Target, fetch, url_plan};
use services::tracks::FILE_COUNT;
use services::tracks::client::{Api, parse_numbers, plan};

/// Fetch things one after another and time each.
///
/// Everything is fetched twice: once to warm up (--warm-up says how much), once measured. The exit
/// status is 0 when every measured exchange succeeded or was cut off by a time limit, 1 when one
/// failed or none succeeded.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Benchmark(BenchmarkArgs),
    Methods(MethodsArgs),
    Tracks(TracksArgs),
    Url(UrlArgs),
}

/// The tracks of `longwire serve tracks` (IST-118); every answer is checked.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire fetch tracks --url http://127.0.0.1:8080 --api soap
  longwire fetch tracks --url http://b:8080 --api rest-json --gzip --json
  longwire fetch tracks --url http://b:8080 --api rest-xml --proxy http://127.0.0.1:3128
  longwire fetch tracks --url http://b:8080 --api soap --tracks 1,2,5-9 --cold --budget '240 s'")]
struct TracksArgs {
    /// The service, such as http://127.0.0.1:8080.
    #[arg(long, value_name = "URL", value_parser = target)]
    url: Target,
    /// Interface of the service.
    #[arg(long, value_name = "NAME", value_enum)]
    api: ApiName,
    /// Which of the 22 files, in which order, such as 1,2,5-9 (default: all).
    #[arg(long, value_name = "LIST", value_parser = tracks)]
    tracks: Option<Numbers>,
    #[command(flatten)]
    common: Common,
}

/// Answers of `longwire serve benchmark` (NAM), over and over.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire fetch benchmark --url http://127.0.0.1:8080 --class medium
  longwire fetch benchmark --url http://b:8080 --queries 12,20,3 --count 30 --warm-up 20 --json
  longwire fetch benchmark --url http://b:8080 --form compact --proxy http://127.0.0.1:3128")]
struct BenchmarkArgs {
    /// The service, such as http://127.0.0.1:8080.
    #[arg(long, value_name = "URL", value_parser = target)]
    url: Target,
    /// How the answers are written: soap, compact or pretty.
    #[arg(long, value_name = "NAME", default_value = "soap", value_parser = form)]
    form: Form,
    /// Queries by the size of their answers: small, medium, large, huge, or mixed for all but huge.
    #[arg(long, value_name = "NAME", default_value = "mixed", value_parser = class,
        conflicts_with = "queries")]
    class: Class,
    /// Which of the 22 queries, in which order, such as 12,20,1-5.
    #[arg(long, value_name = "LIST", value_parser = queries)]
    queries: Option<Numbers>,
    /// How many answers in the measured pass, from the first query again when all were asked
    /// (default: each query once), at most 100000.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    count: Option<u32>,
    #[command(flatten)]
    common: Common,
}

/// The methods of `longwire serve benchmark` (the WAP study), over and over: each call split into
/// what writing and parsing SOAP takes (t_SOAP) and what the call takes (t_call).
///
/// Over WSP and CoAP the client is the one for devices (docs/pocket.md).
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire fetch methods --url http://127.0.0.1:8080 --method nop --count 100
  longwire fetch methods --url http://b:8080 --method get-string --size 1000 --new-connection
  longwire fetch methods --url http://b:8080 --method get-int-array --form wbxml \\
      --over wsp --gateway 192.0.2.1:9200 --json
  longwire fetch methods --url http://b:8080 --form cbor --over coap --gateway 192.0.2.1:5683")]
struct MethodsArgs {
    /// The service, such as http://127.0.0.1:8080.
    #[arg(long, value_name = "URL", value_parser = target)]
    url: Target,
    /// The method: nop, get-string or get-int-array.
    #[arg(long, value_name = "NAME", default_value = "nop", value_parser = method)]
    method: Method,
    /// Characters of the string or numbers of the array, which is said beforehand.
    #[arg(long, value_name = "N", default_value_t = 100)]
    size: u32,
    /// How messages are written: xml, wbxml, cbor or exi.
    #[arg(long, value_name = "NAME", default_value = "xml", value_parser = message_form)]
    form: methods::Form,
    /// What they go over: http, wsp or coap.
    #[arg(long, value_name = "NAME", default_value = "http")]
    over: OverName,
    /// The WAP gateway, or the proxy of CoAP; an address and its port.
    #[arg(long, value_name = "ADDRESS", required_if_eq_any([("over", "wsp"), ("over", "coap")]))]
    gateway: Option<std::net::SocketAddr>,
    /// How many calls are measured.
    #[arg(long, value_name = "N", default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    count: u32,
    /// How many times slower than this machine's the client's processor is to seem: writing and
    /// parsing take as many times longer, 1 to 1000.
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SLOWDOWN)))]
    slowdown: u32,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, ValueEnum)]
enum OverName {
    Http,
    Wsp,
    Coap,
}

/// GET of one URL, several times.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire fetch url --url http://127.0.0.1:8080/rest/xml/7 --count 5
  longwire fetch url --url http://b/status --proxy http://127.0.0.1:3128 --json")]
struct UrlArgs {
    /// The URL.
    #[arg(long, value_name = "URL", value_parser = target)]
    url: Target,
    /// How many times in each pass, at most 100000.
    #[arg(long, value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    count: u32,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct Common {
    /// HTTP forward proxy to ask, such as http://127.0.0.1:3128.
    #[arg(long, value_name = "URL", value_parser = target)]
    proxy: Option<Target>,
    /// Offer gzip as content coding.
    #[arg(long)]
    gzip: bool,
    /// Open a connection for each exchange (default: keep one alive).
    #[arg(long)]
    new_connection: bool,
    /// How many things to fetch, from the first on, to warm up (default: all).
    #[arg(long, value_name = "N")]
    warm_up: Option<usize>,
    /// Measure at once, without warming up (the same as --warm-up 0).
    #[arg(long, conflicts_with = "warm_up")]
    cold: bool,
    /// Longest that one exchange may take.
    #[arg(long, value_name = "TIME", default_value = "200 s", value_parser = duration)]
    timeout: Duration,
    /// Longest that everything may take; what is left then is recorded as censored.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    budget: Option<Duration>,
    /// TCP congestion control, such as cubic (default: the system's).
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum ApiName {
    /// SOAP 1.1
    Soap,
    /// SOAP 1.2
    #[value(name = "soap12")]
    Soap12,
    /// REST with XML
    RestXml,
    /// REST with JSON
    RestJson,
}

impl From<ApiName> for Api {
    fn from(name: ApiName) -> Self {
        match name {
            ApiName::Soap => Self::Soap,
            ApiName::Soap12 => Self::Soap12,
            ApiName::RestXml => Self::RestXml,
            ApiName::RestJson => Self::RestJson,
        }
    }
}

/// Numbers of tracks or queries (a type of its own: clap takes a bare `Vec` for a repeated option).
#[derive(Clone)]
struct Numbers(Vec<usize>);

/// Runs the command to its end.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let (plan, common) = match args.what {
        What::Methods(args) => {
            let outcome = runtime.block_on(call_methods(args));
            runtime.shutdown_background();
            return outcome;
        }
        What::Tracks(args) => {
            let numbers = args.tracks.map_or_else(|| (1..=FILE_COUNT).collect(), |list| list.0);
            (plan(&args.url, args.api.into(), &numbers), args.common)
        }
        What::Benchmark(args) => {
            let queries = args.queries.map_or_else(|| args.class.queries().to_vec(), |list| list.0);
            let count = args.count.map_or(queries.len(), |count| count as usize);
            (benchmark::client::plan(&args.url, args.form, &queries, count), args.common)
        }
        What::Url(args) => (url_plan(&args.url, args.count as usize), args.common),
    };
    let outcome = runtime.block_on(measure(&plan, common));
    // Does not wait for a name that is still being looked up.
    runtime.shutdown_background();
    outcome
}

/// Options of [`Common`] that WSP and CoAP have no use for.
fn unused(args: &MethodsArgs) -> Option<&'static str> {
    let common = &args.common;
    let is_datagrams = !matches!(args.over, OverName::Http);
    let given = [
        (common.gzip, "--gzip"),
        (common.budget.is_some(), "--budget"),
        (is_datagrams && common.proxy.is_some(), "--proxy"),
        (is_datagrams && common.new_connection, "--new-connection"),
        (is_datagrams && common.congestion.is_some(), "--congestion"),
        (!is_datagrams && args.gateway.is_some(), "--gateway"),
    ];
    given.into_iter().find(|(is_given, _)| *is_given).map(|(_, name)| name)
}

async fn call_methods(args: MethodsArgs) -> anyhow::Result<ExitCode> {
    if let Some(name) = unused(&args) {
        eprintln!("longwire: {name} has no use here; leave it out");
        return Ok(ExitCode::from(2));
    }
    let MethodsArgs { url, method, size, form, over, gateway, count, slowdown, common } = args;
    let over = match (over, gateway) {
        (OverName::Wsp, Some(gateway)) => Over::Wsp(gateway),
        (OverName::Coap, Some(gateway)) => Over::Coap(gateway),
        _ => Over::Http,
    };
    let warm_up = if common.cold { 0 } else { common.warm_up.unwrap_or(count as usize) };
    let count = count as usize;
    let series = Series { base: url, method, size, form, over, count, warm_up, slowdown };
    let config = Config {
        proxy: common.proxy,
        gzip: false,
        new_connection: common.new_connection,
        warm_up: None,
        timeout: common.timeout,
        budget: None,
        congestion: common.congestion,
    };
    let calls = match measure_calls(&series, &config).await {
        Ok(calls) => calls,
        Err(error) => {
            eprintln!("longwire: {error}");
            return Ok(ExitCode::from(2));
        }
    };
    let text = if common.json { serde_json::to_string(&calls)? + "\n" } else { split(&calls) };
    crate::say(&text).context("cannot write the result")?;
    let good = calls.errors == 0 && calls.t_inv.is_some();
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The calls, for a person.
fn split(calls: &Calls) -> String {
    let mut text = format!("{} as {} over {}", calls.method, calls.form, calls.over);
    if let Some(size) = calls.size {
        text += &format!(", size {size}");
    }
    if let Some(proxy) = &calls.proxy {
        text += &format!(", through {proxy}");
    }
    if let Some(slowdown) = calls.slowdown {
        text += &format!(", by a processor {slowdown} times slower");
    }
    text += &format!("\n{} measured, {} errors", calls.measured.len(), calls.errors);
    if calls.not_made > 0 {
        text += &format!(", {} not made after so many", calls.not_made);
    }
    if let Some(call) = calls.measured.iter().find(|call| call.error.is_none()) {
        text += &format!(", {} and {} bytes", call.request_bytes, call.answer_bytes);
    }
    text += "\n";
    if let Some(error) = calls.measured.iter().find_map(|call| call.error.as_ref()) {
        text += &format!("first error: {error}\n");
    }
    let heads = ["ms", "mean", "least", "median", "p90", "p99", "most"];
    text += &heads.map(|head| format!("{head:>9}")).concat();
    for (name, of) in
        [("t_SOAP", &calls.t_soap), ("t_call", &calls.t_call), ("t_inv", &calls.t_inv)]
    {
        let Some(of) = of else { continue };
        text += &format!("\n{name:>9}");
        for seconds in [of.mean_s, of.min_s, of.median_s, of.p90_s, of.p99_s, of.max_s] {
            text += &format!("{:>9.3}", seconds * 1000.0);
        }
    }
    text + "\n"
}

async fn measure(plan: &Plan, common: Common) -> anyhow::Result<ExitCode> {
    let json = common.json;
    let config = Config {
        proxy: common.proxy,
        gzip: common.gzip,
        new_connection: common.new_connection,
        warm_up: if common.cold { Some(0) } else { common.warm_up },
        timeout: common.timeout,
        budget: common.budget,
        congestion: common.congestion,
    };
    let show_progress = stderr().is_terminal();
    let progress = |progress: Progress<'_>| {
        if show_progress {
            let pass = if progress.warm_up { "warming up" } else { "measuring" };
            let (done, total) = (progress.done, progress.total);
            eprint!("\r\x1b[K{pass}: {} ({done} of {total} done)", progress.name);
        }
    };
    let result = fetch(plan, &config, progress).await;
    if show_progress {
        eprint!("\r\x1b[K");
    }
    let result = match result {
        Ok(result) => result,
        Err(error) => {
            eprintln!("longwire: {error}");
            return Ok(ExitCode::from(2));
        }
    };
    let text = if json { serde_json::to_string(&result)? + "\n" } else { table(&result) };
    crate::say(&text).context("cannot write the result")?;
    let good = result.errors == 0 && result.summary.is_some();
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The measured pass, for a person.
fn table(result: &Fetch) -> String {
    let mut text = format!("{:<12} {:>6} {:>10} {:>10}\n", "what", "status", "bytes", "seconds");
    for exchange in &result.measured {
        let status = exchange.status.map_or("-".to_owned(), |status| status.to_string());
        let (name, bytes) = (&exchange.name, exchange.body_bytes);
        let seconds = seconds(exchange);
        text += format!("{name:<12} {status:>6} {bytes:>10} {seconds:>10}").trim_end();
        if let Some(error) = &exchange.error {
            text += &format!("  {error}");
        }
        text += "\n";
    }
    let connections = if result.new_connection { "new connections" } else { "keep-alive" };
    let gzip = if result.gzip { "gzip offered" } else { "no gzip" };
    let control = result.congestion_control.as_deref().unwrap_or("unknown congestion control");
    text += &format!("\n{}, {connections}, {gzip}, {control}", result.api);
    if let Some(proxy) = &result.proxy {
        text += &format!(", through {proxy}");
    }
    text += &format!(
        "\n{} measured: {} errors, {} censored, {} segments sent again\n",
        result.measured.len(),
        result.errors,
        result.censored,
        result.retransmits
    );
    if let Some(of) = &result.summary {
        text += &format!(
            "seconds: mean {:.3}, least {:.3}, median {:.3}, p90 {:.3}, p99 {:.3}, most {:.3}\n",
            of.mean_s, of.min_s, of.median_s, of.p90_s, of.p99_s, of.max_s
        );
    }
    text
}

/// The time of an exchange; with `>` when it was cut off and `-` when it never began.
fn seconds(exchange: &Exchange) -> String {
    match (exchange.censored, exchange.elapsed_s) {
        (true, 0.0) => "-".into(),
        (true, elapsed) => format!("> {elapsed:.3}"),
        (false, elapsed) => format!("{elapsed:.3}"),
    }
}

fn target(text: &str) -> Result<Target, services::Error> {
    Target::parse(text)
}

fn form(name: &str) -> Result<Form, String> {
    let found = Form::ALL.into_iter().find(|form| form.name() == name);
    found.ok_or_else(|| format!("one of {}", Form::ALL.map(Form::name).join(", ")))
}

fn method(name: &str) -> Result<Method, String> {
    match name {
        "nop" => Ok(Method::Nop),
        "get-string" | "getString" => Ok(Method::GetString),
        "get-int-array" | "getIntArray" => Ok(Method::GetIntArray),
        _ => Err("one of nop, get-string, get-int-array".to_owned()),
    }
}

fn message_form(name: &str) -> Result<methods::Form, String> {
    let names = methods::Form::ALL.map(methods::Form::name).join(", ");
    methods::Form::parse(name).ok_or_else(|| format!("one of {names}"))
}

fn class(name: &str) -> Result<Class, String> {
    Class::parse(name).ok_or_else(|| format!("one of {}", Class::ALL.map(Class::name).join(", ")))
}

fn tracks(text: &str) -> Result<Numbers, services::Error> {
    parse_numbers(text, "track").map(Numbers)
}

fn queries(text: &str) -> Result<Numbers, services::Error> {
    parse_numbers(text, "query").map(Numbers)
}

fn duration(text: &str) -> Result<Duration, String> {
    match link::units::parse_duration(text) {
        Ok(Duration::ZERO) => Err("a limit of no time at all; give one like '200 s'".into()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}
