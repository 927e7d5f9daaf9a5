//! `longwire produce`: messages on schedule to a consumer.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _, stderr};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use services::Error;
use services::client::Target;
use services::realtime::entity::MAX_ENTITIES;
use services::realtime::producer::{self, Config, MAX_CONNECTIONS, Produced, Progress, Relation};
use services::realtime::results;
use services::realtime::schedule::Schedule;
use services::realtime::signals::Stop;

use crate::terminal::{BAD_USE, say, tell};

/// Real-time priority of the sending thread: below all of a consumer beside it.
const PRIORITY: i32 = 15;
/// How often the progress is shown.
const SHOWN: Duration = Duration::from_millis(500);

/// Send messages of entities to a consumer on schedule, whatever becomes of those before (RT-SOA).
///
/// The exit status is 0 when each message was accepted, 1 when not, 2 for bad use.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire produce --duration '20 min'
  longwire produce --url http://127.0.0.1:8096/consumer/2 --rate 1000 --duration '10 s'
  longwire produce --url http://ship:8096/consumer --urgency 0 --json

The usual rate, 20 messages of 5 entities a second, is that of RT-SOA.")]
pub(crate) struct Args {
    /// The consumer; /consumer/CLASS sends to a class.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8096/consumer",
        value_parser = Target::parse)]
    url: Target,
    /// Messages a second, up to 20000.
    #[arg(long, value_name = "N", default_value_t = 20.0)]
    rate: f64,
    /// Entities of each message.
    #[arg(long, value_name = "N", default_value_t = 5,
        value_parser = clap::value_parser!(u64).range(1..=MAX_ENTITIES as u64))]
    entities: u64,
    /// For how long.
    #[arg(long, value_name = "TIME", default_value = "60 s", value_parser = duration)]
    duration: Duration,
    /// Name this class in the SOAP header.
    #[arg(long, value_name = "CLASS")]
    class: Option<usize>,
    /// Say this urgency in the field Priority (RFC 9218): 0 (urgent) to 7.
    #[arg(long, value_name = "U", value_parser = clap::value_parser!(u8).range(0..=7))]
    urgency: Option<u8>,
    /// Connections; a message that finds none free waits, and is as old as it was due.
    #[arg(long, value_name = "N", default_value_t = 8,
        value_parser = clap::value_parser!(u64).range(1..=MAX_CONNECTIONS as u64))]
    connections: u64,
    /// Longest that an answer may take.
    #[arg(long, value_name = "TIME", default_value = "10 s", value_parser = duration)]
    timeout: Duration,
    /// Send from a real-time thread.
    #[arg(long)]
    real_time: bool,
    /// Keep to this core (default: to any).
    #[arg(long, value_name = "N")]
    core: Option<usize>,
    /// The consumer is on this host, and tells no clock as longwire's does: messages carry T0 by
    /// this host's.
    #[arg(long)]
    same_clock: bool,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

fn duration(text: &str) -> Result<Duration, link::Error> {
    link::units::parse_duration(text)
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let schedule = match Schedule::new(args.rate, args.duration) {
        Ok(schedule) => schedule,
        Err(line) => {
            tell(&line);
            return Ok(ExitCode::from(BAD_USE));
        }
    };
    let config = Config {
        url: args.url.clone(),
        schedule,
        entities: usize::try_from(args.entities).unwrap_or(1),
        class: args.class,
        urgency: args.urgency,
        connections: usize::try_from(args.connections).unwrap_or(1),
        timeout: args.timeout,
        priority: args.real_time.then_some(PRIORITY),
        core: args.core,
        is_same_clock: args.same_clock,
    };
    let stop = Stop::hold();
    let (progress, is_stopped) = (Progress::default(), AtomicBool::new(false));
    let produced = thread::scope(|scope| {
        let sending = scope.spawn(|| producer::produce(&config, &progress, &is_stopped));
        let is_shown = stderr().is_terminal();
        while !sending.is_finished() {
            if stop.wait(Some(SHOWN)) {
                is_stopped.store(true, Ordering::Relaxed);
            }
            if is_shown {
                show(&progress, args, schedule.count());
            }
        }
        if is_shown {
            let _ = writeln!(stderr());
        }
        sending.join()
    });
    let produced = produced.map_err(|_| anyhow::anyhow!("the producer ended by a defect"))?;
    let produced = match produced {
        Ok(produced) => produced,
        Err(error) => {
            tell(&error.to_string());
            let is_ours = matches!(error, Error::Caller(_));
            return Ok(if is_ours { ExitCode::from(BAD_USE) } else { ExitCode::FAILURE });
        }
    };
    if let Some(why) = &produced.refused_priority {
        tell(&format!("{why}; it sends as ordinary"));
    }
    match args.json {
        true => say(&format!("{}\n", figures(&produced)))?,
        false => say(&text(&produced))?,
    }
    let is_whole = produced.accepted == schedule.count();
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(progress: &Progress, args: &Args, count: u64) {
    let sent = progress.sent.load(Ordering::Relaxed);
    let failed = progress.failed.load(Ordering::Relaxed);
    let left_s = (count.saturating_sub(sent) as f64 / args.rate).ceil();
    let (minutes, seconds) = ((left_s / 60.0).floor(), left_s % 60.0);
    // Nobody may look.
    let _ = write!(
        stderr(),
        "\r{sent} of {count} sent, {failed} not accepted, {minutes:.0}:{seconds:02.0} left  "
    );
}

fn figures(of: &Produced) -> Value {
    let clock = match of.clocks {
        Relation::Same => json!({"error_us": 0}),
        Relation::Ahead { offset_ns, error_ns } => json!({
            "offset_us": offset_ns as f64 / 1e3,
            "error_us": error_ns as f64 / 1e3,
        }),
        Relation::Unknown => Value::Null,
    };
    json!({
        "due": of.due,
        "sent": of.sent,
        "accepted": of.accepted,
        "refused": of.refused,
        "failed": of.failed,
        "unknown": of.unknown,
        "skipped": of.skipped,
        "clock": clock,
        "lateness": results::summary(of.lateness.as_ref()),
        "answers": results::summary(of.answers.as_ref()),
        "real_time_refused": of.refused_priority,
        "first_failure": of.first_failure,
    })
}

fn text(of: &Produced) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} due, {} sent, {} accepted, {} refused, {} failed, {} unknown, {} skipped; {}",
        of.due,
        of.sent,
        of.accepted,
        of.refused,
        of.failed,
        of.unknown,
        of.skipped,
        of.clocks.text(),
    );
    for (name, series) in [("lateness", &of.lateness), ("answers", &of.answers)] {
        let Some(series) = series else { continue };
        let _ = writeln!(
            out,
            "{name}: mean {:.1} us, p50 {:.1}, p99 {:.1}, p99.9 {:.1}, max {:.1}",
            series.mean_us, series.p50_us, series.p99_us, series.p999_us, series.max_us,
        );
    }
    if let Some(why) = &of.first_failure {
        let _ = writeln!(out, "first not accepted: {}", why.escape_debug());
    }
    out
}
