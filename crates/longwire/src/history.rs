//! `longwire history`: what was decided, what was expected and what came of it.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use proxy::config::Period;
use proxy::store::{Found, History};
use record::calendar;
use record::decision::Entry;

use crate::side;

/// List the last decisions of an edge or gateway that keeps a store, oldest first.
///
/// A line for each body that was sent: when, its service, the encoding that was chosen, the time
/// that was expected and that was measured, from encoding its first byte to decoding its last, and
/// where their difference comes from: encoding, decoding, the network, or another size than
/// expected; these four add up to it; then the request, without secrets, once it has ended: status,
/// client (at a gateway the edge), method and target. A dash: no receipt has come from the peer
/// (none comes for a message that fits in one packet as identity), or the policy was not asked. The
/// process that keeps the store may run meanwhile.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire edge --listen 127.0.0.1:3128 --gateway 127.0.0.1:4300 --store edge/store
  longwire history --store edge/store --service tracks.example --limit 20
  longwire history --store edge/store --since '2 h'
  longwire history --store edge/store --json | python3 -m json.tool --json-lines
  longwire explain --store edge/store 5f3a")]
pub(crate) struct Args {
    /// What --store names for the edge or gateway.
    #[arg(long, value_name = "DIR", default_value = ".")]
    store: PathBuf,
    /// Only services whose name contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    service: String,
    /// Only what was decided since: a time in UTC like '2026-11-21 03:04', or how long ago, like
    /// '2 h'.
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<f64>,
    /// The last so many.
    #[arg(long, value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit: u32,
    /// Print an object a line, with all that is known.
    #[arg(long)]
    json: bool,
}

/// Prints the list.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Found { entries, unreadable } = match read(args) {
        Ok(found) => found,
        Err(error) => return side::finish(Err(error)),
    };
    let mut text = String::new();
    if args.json {
        for entry in &entries {
            writeln!(text, "{}", serde_json::to_string(entry)?)?;
        }
    } else {
        table(&entries, &mut text)?;
    }
    crate::say(&text)?;
    tell_unreadable(unreadable);
    Ok(ExitCode::SUCCESS)
}

fn read(args: &Args) -> Result<Found, proxy::Error> {
    History::open(&args.store)?.since(&args.service, args.since.unwrap_or(0.0), args.limit)
}

/// Seconds since 1970 of a moment, or of so long ago.
fn since(text: &str) -> Result<f64, String> {
    #[allow(clippy::cast_precision_loss)] // Years up to 9999 are exact.
    if let Some(moment) = calendar::parse(text) {
        return Ok(moment as f64);
    }
    let ago = Period::parse(text).map_err(|why| {
        format!("'{text}' is no time like '2026-11-21 03:04' (UTC), and as how long ago {why}")
    })?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(now.saturating_sub(ago.0).as_secs_f64())
}

/// What is not shown, in one line on stderr.
pub(crate) fn tell_unreadable(rows: usize) {
    if rows > 0 {
        let noun = if rows == 1 { "row" } else { "rows" };
        eprintln!(
            "longwire: {rows} {noun} of the history cannot be read: damaged, or of another version"
        );
    }
}

/// Columns after the first four are as wide as their heads.
const HEADS: [&str; 9] = [
    "expected",
    "measured",
    "off by",
    "encode",
    "decode",
    "network",
    "size",
    "bytes in",
    "bytes out",
];

fn table(entries: &[Entry], text: &mut String) -> std::fmt::Result {
    let service = |entry: &Entry| {
        entry.decision.as_ref().map_or("-".to_owned(), |decision| printable(&decision.service))
    };
    let widest_client = entries.iter().map(|entry| client(entry).len()).max().unwrap_or(0);
    let widest_client = widest_client.clamp(6, 40);
    let widest_id = entries.iter().map(|entry| entry.exchange.len()).max().unwrap_or(0).max(16);
    let widest = entries.iter().map(|entry| service(entry).len()).max().unwrap_or(0).clamp(7, 40);
    write!(text, "{:<19} {:<widest_id$} {:<8} ", "when (UTC)", "id", "of")?;
    write!(text, "{:<widest$} {:<10}", "service", "chosen")?;
    HEADS.iter().try_for_each(|head| write!(text, " {head:>9}"))?;
    writeln!(text, " {:>6} {:<widest_client$} request", "status", "client")?;
    for entry in entries {
        let when = calendar::utc(whole(entry.unix_s));
        write!(text, "{when:<19} {:<widest_id$} {:<8} ", entry.exchange, entry.direction.name())?;
        write!(text, "{:<widest$} {:<10}", service(entry), entry.encoding)?;
        cells(entry).iter().try_for_each(|cell| write!(text, " {cell:>9}"))?;
        let status = entry.request.as_ref().and_then(|request| request.status);
        let status = status.map_or("-".to_owned(), |status| status.to_string());
        writeln!(text, " {status:>6} {:<widest_client$} {}", client(entry), request(entry))?;
    }
    Ok(())
}

fn client(entry: &Entry) -> String {
    entry.request.as_ref().map_or("-".to_owned(), |request| printable(&request.client))
}

/// Method and target.
pub(crate) fn request(entry: &Entry) -> String {
    entry.request.as_ref().map_or("-".to_owned(), |request| {
        printable(&format!("{} {}", request.method, request.target))
    })
}

/// What stands below [`HEADS`].
fn cells(entry: &Entry) -> [String; 9] {
    let none = || "-".to_owned();
    let decision = entry.decision.as_ref();
    let bytes = decision.map_or_else(none, |decision| decision.body_bytes.to_string());
    let Some(outcome) = &entry.outcome else {
        let expected = decision.map_or_else(none, |known| seconds(known.expected.total_s()));
        let [a, b, c, d, e, f] = std::array::from_fn(|_| none());
        return [expected, a, b, c, d, e, f, bytes, none()];
    };
    let (expected, actual, split) = (&outcome.expected, &outcome.actual, &outcome.split);
    [
        seconds(expected.total_s()),
        seconds(actual.total_s()),
        signed(actual.total_s() - expected.total_s()),
        signed(split.encode_s),
        signed(split.decode_s),
        signed(split.network_s),
        signed(split.size_s),
        outcome.body_bytes.to_string(),
        actual.bytes.to_string(),
    ]
}

/// A time with three figures, in the unit that suits it.
pub(crate) fn seconds(seconds: f64) -> String {
    let (value, unit) = match seconds.abs() {
        1.0.. => (seconds, "s"),
        1e-3.. => (seconds * 1e3, "ms"),
        _ => (seconds * 1e6, "us"),
    };
    let decimals = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {unit}")
}

/// The same for a difference.
pub(crate) fn signed(difference: f64) -> String {
    let sign = if difference > 0.0 { "+" } else { "" };
    format!("{sign}{}", seconds(difference))
}

/// What a peer named cannot steer a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Whole seconds since 1970.
pub(crate) fn whole(unix_s: f64) -> u64 {
    std::time::Duration::try_from_secs_f64(unix_s).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_figures_and_their_unit() {
        for (value, expected) in [
            (0.0, "0.00 us"),
            (0.000_012_3, "12.3 us"),
            (0.0123, "12.3 ms"),
            (0.25, "250 ms"),
            (1.0, "1.00 s"),
            (123.4, "123 s"),
            (-0.002, "-2.00 ms"),
        ] {
            assert_eq!(seconds(value), expected);
        }
        assert_eq!((signed(0.5), signed(-0.5)), ("+500 ms".to_owned(), "-500 ms".to_owned()));
    }
}
