//! `longwire lab ping`: the round trip over a lab's link.

use std::ffi::OsStr;
use std::process::ExitCode;
use std::time::Duration;

use lab::ping::{Echoes, MAX_ECHOES, ping};
use lab::session;
use serde_json::json;

use super::say;

/// Measure the round trip over a lab's link by ICMP echo.
///
/// Needs no program for it on the machine. The exit status is 1 when nothing came back.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire lab ping field
  longwire lab ping field --from b --count 20 --interval '100 ms' --json")]
pub(super) struct PingArgs {
    /// The lab.
    name: String,
    /// The host that asks; the other one answers.
    #[arg(long, value_name = "HOST", default_value = "a", value_parser = ["a", "b"])]
    from: String,
    /// How many echoes.
    #[arg(long, value_name = "N", default_value_t = 4,
        value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_ECHOES)))]
    count: u16,
    /// From one to the next.
    #[arg(long, value_name = "TIME", default_value = "1 s", value_parser = duration)]
    interval: Duration,
    /// How long the last one is waited for.
    #[arg(long, value_name = "TIME", default_value = "10 s", value_parser = duration)]
    patience: Duration,
    /// Print {from, to, sent, received, round_trips_s, min_s, median_s, max_s}.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &PingArgs) -> anyhow::Result<ExitCode> {
    let to = if args.from == "a" { "b" } else { "a" };
    // The program that it prepares is not needed: this process asks itself.
    session::enter(&args.name, &args.from, OsStr::new("ping"))?;
    let PingArgs { count, interval, patience, .. } = *args;
    let found = ping(to, Echoes { count, interval, patience })?;
    let mut times: Vec<f64> = found.iter().flatten().map(Duration::as_secs_f64).collect();
    times.sort_by(f64::total_cmp);
    let (least, median, most) = (times.first(), times.get(times.len() / 2), times.last());
    if args.json {
        let round_trips: Vec<Option<f64>> =
            found.iter().map(|one| one.map(|time| time.as_secs_f64())).collect();
        let facts = json!({
            "from": args.from, "to": to, "sent": found.len(), "received": times.len(),
            "round_trips_s": round_trips, "min_s": least, "median_s": median, "max_s": most,
        });
        say(&facts.to_string())?;
    } else {
        for (number, round_trip) in found.iter().enumerate() {
            let time = round_trip.map_or("no answer".to_string(), |time| {
                format!("{:.3} ms", 1e3 * time.as_secs_f64())
            });
            say(&format!("{:>4}  {time}", number + 1))?;
        }
        let lost = found.len() - times.len();
        let summary = match (least, median, most) {
            (Some(least), Some(median), Some(most)) => format!(
                "; round trip at least {:.3}, median {:.3}, at most {:.3} ms",
                1e3 * least,
                1e3 * median,
                1e3 * most
            ),
            _ => String::new(),
        };
        say(&format!("{} → {to}: {} sent, {lost} lost{summary}", args.from, found.len()))?;
    }
    Ok(if times.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn duration(text: &str) -> Result<Duration, String> {
    /// Nobody waits longer than this by mistake.
    const MAX_WAIT: Duration = Duration::from_secs(3600);
    let time = link::units::parse_duration(text).map_err(|error| error.to_string())?;
    match time <= MAX_WAIT {
        true => Ok(time),
        false => Err("a time is at most 1 h".to_string()),
    }
}
