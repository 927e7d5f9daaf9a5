//! `longwire explain`: why a body was encoded as it was, and what would have been better; of a
//! broker, what became of publications.

mod publications;

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use proxy::store::{Found, History};
use record::calendar;
use record::decision::{Base, Candidate, Decision, Entry, Link, Outcome, Route};
use serde_json::json;

use crate::history::{self, printable, seconds, signed, tell_unreadable, whole};
use crate::side;

/// Digits of the longest id that was ever printed.
const MAX_ID_DIGITS: usize = 32;
/// Bodies that are explained at once: the two of an exchange.
const MAX_BODIES: u32 = 2;

/// Explain the decisions of one exchange: why each body got its encoding.
///
/// For each body: by which carrier it went where there were several, what every encoding was
/// expected to take and why some were not allowed, the estimate of the path and on how many
/// measurements that rests, what was measured, where the difference comes from, and what the other
/// encodings would have taken on the network as it turned out to be (their own times and sizes
/// remain as expected).
///
/// With --broker: what became of publications. Who got each, when and in which form, what was
/// dropped and why, and the nodes that it has passed where it crosses bridges.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire history --store edge/store
  longwire explain --store edge/store 5f3a9c070000002a
  longwire explain --store edge/store 5f3a9c070000002a --json
  longwire explain --broker 127.0.0.1:9100 --topic 'unit/+/track' --last 3
  longwire explain --broker 127.0.0.1:9100 255")]
pub(crate) struct Args {
    /// The exchange's id, as longwire history and the log print it, or its beginning. With --broker
    /// a publication's number there, or the first of its hops, as this command prints both.
    #[arg(value_name = "ID", required_unless_present = "broker")]
    id: Option<String>,
    /// What --store names for the edge or gateway.
    #[arg(long, value_name = "DIR", default_value = ".", conflicts_with = "broker")]
    store: PathBuf,
    /// The admin address of a broker that runs, on this machine.
    #[arg(long, value_name = "ADDRESS")]
    broker: Option<SocketAddr>,
    /// With --broker: publications whose topic a filter of MQTT fits.
    #[arg(long, short, value_name = "FILTER", requires = "broker")]
    topic: Option<String>,
    /// With --broker: at most so many publications, the last; 10 if it is not given.
    #[arg(long, value_name = "N", requires = "broker")]
    last: Option<usize>,
    /// Print an array of objects instead of text.
    #[arg(long)]
    json: bool,
}

fn id(text: &str) -> Result<String, proxy::Error> {
    let hexadecimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if hexadecimal && text.len() <= MAX_ID_DIGITS {
        return Ok(text.to_ascii_lowercase());
    }
    let what = "an id is 16 hexadecimal digits, or some of the first: longwire history lists them";
    Err(proxy::Error::Caller(format!("'{text}': {what}")))
}

/// Prints the explanation.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(address) = args.broker {
        return publications::run(address, args);
    }
    let Found { entries, unreadable } = match find(args) {
        Ok(found) => found,
        Err(error) => return side::finish(Err(error)),
    };
    let text = if args.json {
        let all: Vec<_> = entries.iter().map(object).collect();
        serde_json::to_string_pretty(&all)? + "\n"
    } else {
        let mut text = String::new();
        entries.iter().try_for_each(|entry| explain(entry, &mut text))?;
        text
    };
    crate::say(&text)?;
    tell_unreadable(unreadable);
    Ok(ExitCode::SUCCESS)
}

fn find(args: &Args) -> Result<Found, proxy::Error> {
    let id = id(args.id.as_deref().unwrap_or_default())?;
    let wrong = |what: &str| Err(proxy::Error::Caller(format!("'{id}' {what}")));
    let mut found = History::open(&args.store)?.of_exchange(&id, MAX_BODIES + 1)?;
    let entries = &mut found.entries;
    let same = |entry: &Entry| entries.first().is_some_and(|one| one.exchange == entry.exchange);
    if entries.is_empty() && found.unreadable > 0 {
        let why = "what is kept of it cannot be read: damaged, or of another version";
        let doing = format!("explain '{id}'");
        return Err(proxy::Error::System { doing, source: io::Error::other(why) });
    }
    if entries.is_empty() {
        return wrong("is in no decision that is kept: longwire history lists them");
    }
    if !entries.iter().all(same) {
        return wrong("begins the ids of several exchanges: give more of it");
    }
    entries.sort_by_key(|entry| entry.direction);
    Ok(found)
}

/// Everything known, and what the candidates would have taken.
fn object(entry: &Entry) -> serde_json::Value {
    let hindsight =
        entry.decision.as_ref().zip(entry.outcome.as_ref()).map(|(decision, outcome)| {
            let one = |candidate: &Candidate| {
                let total_s = in_hindsight(candidate, &entry.encoding, outcome);
                json!({ "encoding": candidate.encoding, "total_s": total_s })
            };
            decision.candidates.iter().map(one).collect::<Vec<_>>()
        });
    json!({ "decided": entry, "hindsight": hindsight })
}

/// Of the one that was taken, what was measured.
fn in_hindsight(candidate: &Candidate, taken: &str, outcome: &Outcome) -> f64 {
    if candidate.encoding == taken {
        return outcome.actual.total_s();
    }
    outcome.hindsight_s(&candidate.expected)
}

fn explain(entry: &Entry, text: &mut String) -> std::fmt::Result {
    let (when, of) = (calendar::utc(whole(entry.unix_s)), entry.direction.name());
    writeln!(text, "{of} of {}, {when} UTC", entry.exchange)?;
    if let Some(request) = &entry.request {
        let status = request.status.map_or("no status".to_owned(), |status| status.to_string());
        let client = printable(&request.client);
        let trace = request.trace.as_deref().map(printable).unwrap_or_default();
        let trace = if trace.is_empty() { trace } else { format!(", trace {trace}") };
        let asked = history::request(entry);
        writeln!(text, "  for {asked}: {status}, requester {client}{trace}")?;
    }
    writeln!(text, "  chosen: {}: {}", entry.encoding, printable(&entry.reason))?;
    let Some(decision) = &entry.decision else {
        return writeln!(text, "  The policy was not asked.\n");
    };
    match &decision.base {
        Some(Base::Message { sha256 }) => {
            writeln!(text, "  delta; base: the message {} before it", printable(sha256))?;
        }
        Some(Base::Dictionary { sha256, version }) => {
            writeln!(text, "  dictionary {}, version {version}", printable(sha256))?;
        }
        None => {}
    }
    let kind = decision.content_type.as_deref().unwrap_or("no content type");
    let (service, kind) = (printable(&decision.service), printable(kind));
    writeln!(text, "  service {service}, {} bytes, {kind}", decision.body_bytes)?;
    let share = 100.0 * decision.head_share;
    writeln!(
        text,
        "  a fast encoding leaves {share:.0} % of its prefix; class {}",
        decision.class
    )?;
    writeln!(text, "  objective: {}", decision.objective)?;
    decision.route.iter().try_for_each(|route| carriers(route, text))?;
    link(&decision.link, text)?;
    candidates(entry, decision, text)?;
    for forbidden in &decision.forbidden {
        let (encoding, why) = (printable(&forbidden.encoding), printable(&forbidden.why));
        writeln!(text, "    {encoding:<12} not allowed: {why}")?;
    }
    if let Some(probe) = &decision.probe {
        writeln!(text, "  probe, encoded only to learn from: {}", printable(probe))?;
    }
    match &entry.outcome {
        Some(outcome) => came(outcome, decision, &entry.encoding, text),
        None => {
            write!(text, "  No receipt has come from the peer; ")?;
            writeln!(text, "none comes for a message that fits in one packet as identity.\n")
        }
    }
}

fn carriers(route: &Route, text: &mut String) -> std::fmt::Result {
    let (carrier, reason) = (printable(&route.carrier), printable(&route.reason));
    writeln!(text, "  carrier: {carrier}: {reason}")?;
    let mut all: Vec<_> = route.candidates.iter().collect();
    all.sort_by(|a, b| a.expected_s.total_cmp(&b.expected_s));
    for candidate in all {
        let (carrier, expected) = (printable(&candidate.carrier), seconds(candidate.expected_s));
        writeln!(text, "    {carrier:<12} {expected:>9} for the request and its answer")?;
    }
    Ok(())
}

fn link(link: &Link, text: &mut String) -> std::fmt::Result {
    let reported = |weight: f64| match weight {
        0.0 => "nothing was measured".to_owned(),
        weight => format!("weight of {weight:.1} measurements"),
    };
    let (rate, rtt, loss) = (&link.rate_bps, &link.rtt_s, &link.loss);
    writeln!(text, "  the estimate of the path:")?;
    writeln!(text, "    rate       {} ({})", bits(rate.value), reported(rate.weight))?;
    writeln!(text, "    round trip {} ({})", seconds(rtt.value), reported(rtt.weight))?;
    writeln!(text, "    loss       {:.2} % ({})", 100.0 * loss.value, reported(loss.weight))?;
    writeln!(text, "    queueing   {}", seconds(link.queueing_s))?;
    match link.window_packets {
        0.0 => Ok(()),
        packets => writeln!(text, "    window     {packets:.0} packets may leave at once"),
    }
}

/// A rate with three figures, in the unit that suits it.
fn bits(bps: f64) -> String {
    let (value, unit) = match bps {
        1e9.. => (bps / 1e9, "Gbit/s"),
        1e6.. => (bps / 1e6, "Mbit/s"),
        1e3.. => (bps / 1e3, "kbit/s"),
        _ => (bps, "bit/s"),
    };
    let decimals = match value {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {unit}")
}

fn candidates(entry: &Entry, decision: &Decision, text: &mut String) -> std::fmt::Result {
    writeln!(text, "  what was expected of each encoding, the best first:")?;
    write!(text, "    {:<12} {:>10} {:>9} {:>9}", "encoding", "bytes", "encode", "network")?;
    write!(text, " {:>9} {:>9}", "decode", "in all")?;
    let outcome = entry.outcome.as_ref();
    writeln!(text, "{}", if outcome.is_some() { "  in hindsight" } else { "" })?;
    let mut all: Vec<&Candidate> = decision.candidates.iter().collect();
    all.sort_by(|a, b| a.expected.total_s().total_cmp(&b.expected.total_s()));
    for candidate in all {
        let expected = &candidate.expected;
        let encode_s = expected.wait_s + expected.encode_s;
        let times = [encode_s, expected.network_s, expected.decode_s, expected.total_s()];
        write!(text, "    {:<12} {:>10}", printable(&candidate.encoding), expected.bytes)?;
        times.iter().try_for_each(|time| write!(text, " {:>9}", seconds(*time)))?;
        if let Some(outcome) = outcome {
            let would = seconds(in_hindsight(candidate, &entry.encoding, outcome));
            let mark = if candidate.encoding == entry.encoding { " (measured)" } else { "" };
            write!(text, "  {would:>12}{mark}")?;
        }
        writeln!(text)?;
    }
    Ok(())
}

fn came(
    outcome: &Outcome,
    decision: &Decision,
    taken: &str,
    text: &mut String,
) -> std::fmt::Result {
    let (expected, actual, split) = (&outcome.expected, &outcome.actual, &outcome.split);
    let off = actual.total_s() - expected.total_s();
    writeln!(text, "  what was measured:")?;
    for revision in &outcome.revisions {
        let (encoding, why) = (printable(&revision.encoding), printable(&revision.reason));
        writeln!(text, "    revision: from byte {} on {encoding}: {why}", revision.at_bytes)?;
    }
    write!(text, "    {} bytes became {}, ", outcome.body_bytes, actual.bytes)?;
    writeln!(text, "{} were expected", expected.bytes)?;
    write!(text, "    {} in all, ", seconds(actual.total_s()))?;
    writeln!(text, "{} were expected: off by {}", seconds(expected.total_s()), signed(off))?;
    let receiver = match decision.edgeless {
        true => "as expected: an edgeless client sends no receipt",
        false => "the receiver's side",
    };
    for (part, time, share, whose) in [
        ("encode", Some(actual.wait_s + actual.encode_s), split.encode_s, "the sender's side"),
        ("decode", Some(actual.decode_s), split.decode_s, receiver),
        ("network", Some(actual.network_s), split.network_s, "other than the model, for the bytes"),
        ("size", None, split.size_s, "other bytes than expected"),
    ] {
        let time = time.map_or("-".to_owned(), seconds);
        writeln!(text, "    {part:<8} {time:>9}  of the error {:>9}  ({whose})", signed(share))?;
    }
    if actual.wait_s > 0.0 {
        let (waited, expected) = (seconds(actual.wait_s), seconds(expected.wait_s));
        writeln!(text, "    {waited} of it waited for an encoder, {expected} were expected")?;
    }
    others(outcome, decision, taken, text)
}

/// What another would have gained of what was wanted.
fn others(
    outcome: &Outcome,
    decision: &Decision,
    taken: &str,
    text: &mut String,
) -> std::fmt::Result {
    let actual = &outcome.actual;
    let others = decision.candidates.iter().filter(|other| other.encoding != taken);
    if decision.objective != "time" {
        let best = others.min_by_key(|other| other.expected.bytes);
        return match best.filter(|other| other.expected.bytes < actual.bytes) {
            Some(other) => {
                let (name, fewer) =
                    (printable(&other.encoding), actual.bytes - other.expected.bytes);
                writeln!(text, "    {name} was expected to take {fewer} bytes fewer than that.\n")
            }
            None => writeln!(text, "    No other was expected to take fewer bytes.\n"),
        };
    }
    let best = others.map(|other| (outcome.hindsight_s(&other.expected), &other.encoding));
    let best = best.min_by(|a, b| a.0.total_cmp(&b.0));
    match best.filter(|(would, _)| *would < actual.total_s()) {
        Some((would, other)) => {
            let gain = seconds(actual.total_s() - would);
            writeln!(text, "    In hindsight {} may have been {gain} faster.\n", printable(other))
        }
        None => writeln!(text, "    In hindsight no other would have been faster.\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_figures_and_their_unit() {
        for (bps, shown) in [
            (32_601_300_000.0, "32.6 Gbit/s"),
            (250e3, "250 kbit/s"),
            (9600.0, "9.60 kbit/s"),
            (1.5e6, "1.50 Mbit/s"),
            (0.0, "0.00 bit/s"),
        ] {
            assert_eq!(bits(bps), shown);
        }
    }
}
