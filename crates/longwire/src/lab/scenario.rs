//! `longwire lab scenario`: scenarios of radio nets, checked, shown, kept and compared.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use lab::{Error, scenario};
use link::losses::NodeId;
use link::medium::Access;
use link::net::{HopCounts, Problem, Problems, Resolved, differences};
use link::units::{format_duration, format_rate, parse_duration};
use serde_json::{Value, json};

use super::{BAD_USE, say};

/// Exit status where two scenarios differ, as that of `diff`.
const DIFFERENT: u8 = 1;
/// Longest value of a difference that people see, in characters; JSON has all of it.
const MAX_SHOWN_CHARS: usize = 100;
/// Most times that one page shows.
const MAX_TIMES: usize = 50;

/// Check, show, keep and compare scenarios: nodes that move over ground, the radio channels that
/// they share, and the messages that they send.
///
/// A scenario is a TOML file, or the name of one that was kept with copy.
#[derive(clap::Args)]
pub(super) struct ScenarioArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Check(CheckArgs),
    Show(ShowArgs),
    List(ListArgs),
    Copy(CopyArgs),
    Diff(DiffArgs),
    Forget(ForgetArgs),
}

/// Say all that is wrong with a scenario, each with file, line and field.
///
/// Path losses are calculated too, as a node may pass a hole of the map. The exit status is 2 where
/// something is wrong.
#[derive(clap::Args)]
struct CheckArgs {
    /// A file, or the name of a kept scenario.
    scenario: String,
    /// Print {scenario, fingerprint, problems, more}.
    #[arg(long)]
    json: bool,
}

/// Show a scenario: what there is, and at a time who hears whom.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire lab scenario show scenarios/ist150-platoons.toml
  longwire lab scenario show scenarios/ist150-platoons.toml --at '60 s' --out map.svg
  longwire lab scenario show scenarios/six-companies.toml --at '0 s' --at '5 min' --routes a1 \\
      --out six.html")]
struct ShowArgs {
    /// A file, or the name of a kept scenario.
    scenario: String,
    /// A time since the scenario's start; for a page several may be given.
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Vec<Duration>,
    /// Draw it: FILE ends in .svg for a picture of one time, or in .html for a page.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Draw the routes of all nodes to this one.
    #[arg(long, value_name = "NODE")]
    routes: Option<String>,
    /// Print one object.
    #[arg(long, conflicts_with = "out")]
    json: bool,
}

/// Show the scenarios that were kept.
#[derive(clap::Args)]
struct ListArgs {
    /// Print an array of {name, path, title, nodes, messages}, with error where one is not sound.
    #[arg(long)]
    json: bool,
}

/// Keep a scenario under a name, with the files beside it that it names.
///
/// They are in $LONGWIRE_HOME/scenarios, or in longwire/scenarios under $XDG_CONFIG_HOME or
/// ~/.config.
#[derive(clap::Args)]
struct CopyArgs {
    /// A file, or the name of a kept scenario.
    scenario: String,
    /// The name: letters, digits, '-' and '_'.
    name: String,
    /// Take the place of a scenario that was kept under this name.
    #[arg(long)]
    replace: bool,
}

/// Say what differs between two scenarios, path losses included.
///
/// The exit status is 0 where they are the same, 1 where they differ.
#[derive(clap::Args)]
struct DiffArgs {
    /// A file, or the name of a kept scenario.
    first: String,
    /// The other one.
    second: String,
    /// Print {fingerprints, differences}.
    #[arg(long)]
    json: bool,
}

/// Remove a kept scenario.
#[derive(clap::Args)]
struct ForgetArgs {
    /// Its name.
    name: String,
}

fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

pub(super) fn run(args: &ScenarioArgs) -> anyhow::Result<ExitCode> {
    match &args.what {
        What::Check(args) => check(args),
        What::Show(args) => show(args),
        What::List(args) => list(args),
        What::Copy(args) => {
            let path = scenario::copy(&args.scenario, &args.name, args.replace)?;
            say(&format!("kept {} in {}", args.name, path.display()))?;
            Ok(ExitCode::SUCCESS)
        }
        What::Diff(args) => diff(args),
        What::Forget(args) => {
            scenario::forget(&args.name)?;
            say(&format!("forgot {}", args.name))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn check(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let (resolved, problems) = match scenario::check(&args.scenario)? {
        Err(problems) => (None, problems),
        Ok(read) => match read.resolve() {
            Ok(resolved) => (Some(resolved), Problems::default()),
            Err(error) => {
                let path = scenario::find(&args.scenario)?;
                let mut problems = Problems::default();
                problems.push(Problem {
                    file: path.to_string_lossy().into_owned(),
                    line: None,
                    field: String::new(),
                    what: error.to_string(),
                    limit: String::new(),
                    remedy: String::new(),
                });
                (None, problems)
            }
        },
    };
    if args.json {
        let problem = |one: &Problem| {
            json!({
                "file": one.file, "line": one.line, "field": one.field,
                "what": one.what, "limit": one.limit, "remedy": one.remedy,
            })
        };
        let fingerprint = resolved.as_ref().map(|one| format!("{:016x}", one.fingerprint()));
        say(&serde_json::to_string_pretty(&json!({
            "scenario": args.scenario,
            "fingerprint": fingerprint,
            "problems": problems.list().iter().map(problem).collect::<Vec<_>>(),
            "more": problems.more(),
        }))?)?;
    } else if let Some(resolved) = &resolved {
        say(&headline(resolved))?;
    } else {
        eprintln!("{problems}");
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(BAD_USE) })
}

/// A scenario in a line.
fn headline(resolved: &Resolved) -> String {
    let one = &resolved.scenario;
    format!(
        "{}: {} nodes, {} channels, {} messages, {} cases, {}, fingerprint {:016x}",
        one.title,
        one.nodes.len(),
        one.media.len(),
        one.messages.len(),
        one.cases.len(),
        format_duration(one.duration),
        resolved.fingerprint()
    )
}

fn show(args: &ShowArgs) -> anyhow::Result<ExitCode> {
    let resolved = scenario::load(&args.scenario)?;
    let duration = resolved.scenario.duration;
    if let Some(late) = args.at.iter().find(|at| **at > duration) {
        let (late, end) = (format_duration(*late), format_duration(duration));
        anyhow::bail!(Error::Caller(format!("--at {late}: the scenario ends at {end}")));
    }
    if args.at.len() > MAX_TIMES {
        anyhow::bail!(Error::Caller(format!("{} times: at most {MAX_TIMES}", args.at.len())));
    }
    let root = args.routes.as_deref().map(|name| node(&resolved, name)).transpose()?;
    if let Some(path) = &args.out {
        return draw(args, &resolved, root, path);
    }
    if args.json {
        say(&serde_json::to_string_pretty(&as_json(&resolved, &args.at))?)?;
    } else {
        say(as_text(&resolved, &args.at, root).trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn node(resolved: &Resolved, name: &str) -> Result<NodeId, Error> {
    let names = || resolved.scenario.nodes.iter().map(|node| node.name.as_str());
    resolved.scenario.node_named(name).ok_or_else(|| {
        let known: Vec<&str> = names().collect();
        let meant = link::nearest(name, &known);
        let meant = meant.map_or(String::new(), |one| format!(", did you mean '{one}'?"));
        let shown: String = name.chars().take(60).flat_map(char::escape_debug).collect();
        Error::Caller(format!("there is no node '{shown}'{meant}"))
    })
}

fn draw(
    args: &ShowArgs,
    resolved: &Resolved,
    root: Option<NodeId>,
    path: &Path,
) -> anyhow::Result<ExitCode> {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let text = match (ending, args.at.as_slice()) {
        (Some("svg"), []) => report::net::picture(resolved, Duration::ZERO, root),
        (Some("svg"), [at]) => report::net::picture(resolved, *at, root),
        (Some("svg"), _) => anyhow::bail!(Error::Caller(
            "a picture shows one time: give one --at, or a FILE that ends in .html".to_owned()
        )),
        (Some("html"), []) => {
            let end = resolved.scenario.duration;
            report::net::scenario_page(resolved, &[Duration::ZERO, end / 3, end * 2 / 3, end], root)
        }
        (Some("html"), times) => report::net::scenario_page(resolved, times, root),
        _ => anyhow::bail!(Error::Caller(format!(
            "--out {}: the file's name must end in .svg or .html",
            path.display()
        ))),
    };
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    say(&format!("wrote {}", path.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Hops over all steps: of all together, and the greatest mean of a step.
fn hops(resolved: &Resolved) -> (HopCounts, f64) {
    let (mut sum, mut greatest) = (HopCounts::default(), 0.0_f64);
    for (_, counts) in resolved.hops() {
        greatest = greatest.max(counts.mean());
        sum.add(&counts);
    }
    (sum, greatest)
}

fn as_text(resolved: &Resolved, times: &[Duration], root: Option<NodeId>) -> String {
    let scenario = &resolved.scenario;
    let mut text = headline(resolved) + "\n";
    if !scenario.about.is_empty() {
        text += &format!("{}\n", scenario.about.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    for (index, net) in scenario.media.iter().enumerate() {
        let rates: Vec<String> =
            net.config.radio.rates.iter().map(|rate| format_rate(rate.rate_bps)).collect();
        let access = match net.config.access {
            Access::Tdma(_) => "TDMA",
            Access::Csma(_) => "CSMA",
        };
        let (mhz, members) = (net.frequency_hz / 1e6, scenario.members(index).count());
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {:<16} {access} at {mhz} MHz, {}, {members} nodes",
            net.name,
            rates.join(", ")
        );
    }
    let (sum, greatest) = hops(resolved);
    let share = 100.0 * sum.connected() as f64 / sum.pairs.max(1) as f64;
    let _ = writeln!(
        text,
        "hops: {:.2} on average ({greatest:.2} at worst), {} at most; {share:.0} % of pairs \
         connected",
        sum.mean(),
        sum.max()
    );
    for at in times {
        text += &at_time(resolved, *at, root);
    }
    text
}

/// Who hears whom at a time.
fn at_time(resolved: &Resolved, at: Duration, root: Option<NodeId>) -> String {
    let scenario = &resolved.scenario;
    let name = |id: NodeId| scenario.node(id).map_or("", |node| node.name.as_str());
    let links = resolved.links(at);
    let routes = resolved.routes(at);
    let mut text = format!("\nat {}\n", format_duration(at));
    for node in &scenario.nodes {
        let place = node.track.as_ref().map(|track| track.at(at));
        let place = place.map_or("no place".to_owned(), |place| {
            format!("{:.5},{:.5}", place.lat_deg, place.lon_deg)
        });
        let heard: Vec<String> = links
            .iter()
            .filter(|link| link.from == node.id)
            .map(|link| format!("{} {:.0} dB", name(link.to), link.snr_db))
            .collect();
        let hops = root.and_then(|root| routes.hops(node.id, root));
        let hops = hops.map_or(String::new(), |hops| format!("  {hops} hops"));
        let _ = writeln!(text, "  {:<12} {place:<20}{hops}  {}", node.name, heard.join(", "));
    }
    text
}

fn as_json(resolved: &Resolved, times: &[Duration]) -> Value {
    let scenario = &resolved.scenario;
    let (sum, _) = hops(resolved);
    let facts: BTreeMap<String, String> =
        resolved.facts().into_iter().map(|fact| (fact.what, fact.value)).collect();
    let names = |ids: &[NodeId]| -> Vec<String> {
        ids.iter().filter_map(|id| scenario.node(*id)).map(|node| node.name.clone()).collect()
    };
    let groups: BTreeMap<&str, Vec<String>> =
        scenario.groups.iter().map(|one| (one.name.as_str(), names(&one.nodes))).collect();
    json!({
        "title": scenario.title,
        "fingerprint": format!("{:016x}", resolved.fingerprint()),
        "duration_s": scenario.duration.as_secs_f64(),
        "nodes": scenario.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(),
        "groups": groups,
        "messages": scenario.messages.len(),
        "cases": scenario.cases.iter().map(|case| case.name.as_str()).collect::<Vec<_>>(),
        "hops": { "mean": sum.mean(), "most": sum.max(), "pairs": sum.pairs,
            "connected": sum.connected(), "by_hops": sum.by_hops },
        "facts": facts,
        "times": times.iter().map(|at| time_json(resolved, *at)).collect::<Vec<_>>(),
    })
}

fn time_json(resolved: &Resolved, at: Duration) -> Value {
    let scenario = &resolved.scenario;
    let name = |id: NodeId| scenario.node(id).map_or("", |node| node.name.as_str());
    let medium = |place: usize| scenario.media.get(place).map_or("", |net| net.name.as_str());
    let links = resolved.links(at).into_iter().map(|link| {
        json!({
            "medium": medium(link.medium), "from": name(link.from), "to": name(link.to),
            "snr_db": link.snr_db, "rate_bps": link.rate_bps,
        })
    });
    let places = scenario.nodes.iter().filter_map(|node| {
        let place = node.track.as_ref()?.at(at);
        Some(json!({ "node": node.name, "lat_deg": place.lat_deg, "lon_deg": place.lon_deg }))
    });
    let counts = resolved.routes(at).hop_counts();
    json!({
        "at_s": at.as_secs_f64(),
        "places": places.collect::<Vec<_>>(),
        "links": links.collect::<Vec<_>>(),
        "hops": { "mean": counts.mean(), "most": counts.max(), "connected": counts.connected() },
    })
}

fn list(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let all = scenario::list()?;
    if args.json {
        let one = |kept: &scenario::Kept| match &kept.scenario {
            Ok(Ok(one)) => json!({
                "name": kept.name, "path": kept.path, "title": one.title,
                "nodes": one.nodes.len(), "messages": one.messages.len(),
            }),
            Ok(Err(problems)) => json!({
                "name": kept.name, "path": kept.path, "error": problems.to_string(),
            }),
            Err(error) => json!({
                "name": kept.name, "path": kept.path, "error": error.to_string(),
            }),
        };
        say(&serde_json::to_string_pretty(&all.iter().map(one).collect::<Vec<_>>())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    for kept in all {
        match kept.scenario {
            Ok(Ok(one)) => {
                let (nodes, messages) = (one.nodes.len(), one.messages.len());
                let line = format!("{} ({nodes} nodes, {messages} messages)", one.title);
                say(&format!("{:<18} {line}", kept.name))?;
            }
            Ok(Err(problems)) => {
                let first = problems.list().first().map_or(String::new(), ToString::to_string);
                eprintln!("longwire: {}: {first}", kept.name);
            }
            Err(error) => eprintln!("longwire: {}: {error}", kept.name),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn diff(args: &DiffArgs) -> anyhow::Result<ExitCode> {
    let (a, b) = (scenario::load(&args.first)?, scenario::load(&args.second)?);
    let differing = differences(&a.facts(), &b.facts());
    if args.json {
        type Difference = (String, Option<String>, Option<String>);
        let one = |(what, a, b): &Difference| json!({ "what": what, "first": a, "second": b });
        let fingerprints = [&a, &b].map(|one| format!("{:016x}", one.fingerprint()));
        say(&serde_json::to_string_pretty(&json!({
            "fingerprints": fingerprints,
            "differences": differing.iter().map(one).collect::<Vec<_>>(),
        }))?)?;
    } else {
        for (what, a, b) in &differing {
            say(what)?;
            for (sign, value) in [('-', a), ('+', b)] {
                if let Some(value) = value {
                    say(&format!("  {sign} {}", cut(value)))?;
                }
            }
        }
    }
    Ok(if differing.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENT) })
}

/// A value on one line, cut where it is long.
fn cut(value: &str) -> String {
    let line = value.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
