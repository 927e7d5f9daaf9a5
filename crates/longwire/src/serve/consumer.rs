//! `longwire serve consumer`: messages by SOAP, processed by threads with priorities.

use std::fs::File;
use std::io::{BufWriter, Write as _, stdout};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use services::realtime::admission::{MAX_SHARE_PERMILLE, USUAL_SHARE_PERMILLE};
use services::realtime::class::MAX_CLASSES;
use services::realtime::consumer::{Config, Consumer, MAX_SAMPLES, MAX_WORK_NS, USUAL_SAMPLES};
use services::realtime::profile::{Priorities, Profile};
use services::realtime::queue::MAX_PLACES;
use services::realtime::results;
use services::realtime::signals::Stop;

use crate::terminal::{BAD_USE, say, tell};

/// A consumer of messages (RT-SOA): entities by SOAP 1.1 and 1.2 into a table, with priority queues
/// and real-time threads.
///
/// Prints `listening on ADDRESS` when it is ready. SIGTERM, Ctrl-C or --duration end it behind what
/// was accepted; then it prints latencies: T2-T1 within it, T1-T0 before it, T2-T0 from end to end.
/// Real time that is not permitted is said, and it runs as ordinary.
#[derive(clap::Args)]
#[command(after_help = "\
Profiles (runtime / engine / worker): 1 RT/RT/RT, 2 RT/std/RT, 3 RT/RT/std, 4 RT/std/std,
5 std/std/std.

Examples:
  longwire serve consumer --profile 1 --core 1
  longwire produce --url http://127.0.0.1:8096/consumer --duration '60 s'
  longwire serve consumer --profile 1 --core 1 --queues 3 --work '1=1 ms' --work '2=1 ms'
  python3 -m zeep 'http://127.0.0.1:8096/consumer?wsdl'

A message's class: the path /consumer/CLASS, the SOAP header Class, or the field Priority (RFC
9218).
docs/realtime.md explains the figures.")]
pub(super) struct Args {
    /// Address and port to listen at; port 0 takes any free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8096",
        value_parser = super::address)]
    listen: SocketAddr,
    /// Which of the five profiles.
    #[arg(long, value_name = "N", default_value = "5", value_parser = profile)]
    profile: Profile,
    /// Queues, each with a thread; class 0 is the most urgent.
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=MAX_CLASSES as u64))]
    queues: u64,
    /// Messages that wait in a queue; what comes beyond is refused with a fault.
    #[arg(long, value_name = "N", default_value_t = 256,
        value_parser = clap::value_parser!(u64).range(1..=MAX_PLACES as u64))]
    places: u64,
    /// Keep all threads on this core (default: on any).
    #[arg(long, value_name = "N")]
    core: Option<usize>,
    /// The share of a core that messages may take, such as '90 %', or off; beyond it they are
    /// refused, the least urgent first.
    #[arg(long, value_name = "SHARE", default_value = "90 %", value_parser = share)]
    share: Share,
    /// Processor time that each message of a class takes besides, such as '1=1 ms'. May repeat.
    #[arg(long, value_name = "CLASS=TIME", value_parser = work)]
    work: Vec<(usize, u64)>,
    /// Real-time priorities, 1 to 99: the engine's, then the workers' by class.
    #[arg(long, value_name = "ENGINE,WORKER,..", value_parser = priorities)]
    priorities: Option<Priorities>,
    /// End after this time (default: when told).
    #[arg(long, value_name = "TIME", value_parser = super::duration)]
    duration: Option<Duration>,
    /// Leave the first of this time out of the latencies.
    #[arg(long, value_name = "TIME", default_value = "0 s", value_parser = super::duration)]
    warm_up: Duration,
    /// Entities of each class whose times are kept, in memory from the start (32 B each).
    #[arg(long, value_name = "N", default_value_t = USUAL_SAMPLES as u64,
        value_parser = clap::value_parser!(u64).range(1..=MAX_SAMPLES as u64))]
    keep: u64,
    /// Write T0, T1 and T2 of each entity there when it ends (CSV).
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy)]
struct Share(Option<u64>);

fn profile(text: &str) -> Result<Profile, String> {
    let number = text.parse().ok().and_then(Profile::of);
    number.ok_or_else(|| "choose 1 to 5".to_owned())
}

fn share(text: &str) -> Result<Share, String> {
    if text == "off" {
        return Ok(Share(None));
    }
    let number = text.trim_end_matches('%').trim().parse::<u64>().ok();
    let share = number.filter(|number| (1..=MAX_SHARE_PERMILLE / 10).contains(number));
    let most = MAX_SHARE_PERMILLE / 10;
    let share = share.ok_or_else(|| {
        let usual = USUAL_SHARE_PERMILLE / 10;
        format!("choose '1 %' to '{most} %', such as '{usual} %', or off")
    })?;
    Ok(Share(Some(share * 10)))
}

fn work(text: &str) -> Result<(usize, u64), String> {
    let (class, time) = text.split_once('=').ok_or("write CLASS=TIME, such as '1=1 ms'")?;
    let class = class.trim().parse().ok().filter(|class| *class < MAX_CLASSES);
    let class = class.ok_or_else(|| format!("a class is 0 to {}", MAX_CLASSES - 1))?;
    let time = link::units::parse_duration(time.trim()).map_err(|error| error.to_string())?;
    let work_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    if work_ns > MAX_WORK_NS {
        return Err(format!("choose at most {} ms", MAX_WORK_NS / 1_000_000));
    }
    Ok((class, work_ns))
}

fn priorities(text: &str) -> Result<Priorities, String> {
    let mut found = Priorities::default();
    let mut places = std::iter::once(&mut found.engine).chain(&mut found.workers);
    for number in text.split(',') {
        let number: Option<i32> = number.trim().parse().ok();
        let number = number.filter(|number| (1..=99).contains(number));
        let number = number.ok_or("a priority is 1 to 99")?;
        *places.next().ok_or_else(|| format!("at most {MAX_CLASSES} workers"))? = number;
    }
    Ok(found)
}

/// Runs the command until it is told to stop.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let profile = args.profile;
    let mut config = Config::new(args.listen, profile);
    config.classes = usize::try_from(args.queues).unwrap_or(MAX_CLASSES);
    config.places = usize::try_from(args.places).unwrap_or(MAX_PLACES);
    config.core = args.core;
    config.share_permille = args.share.0;
    config.priorities = args.priorities.unwrap_or_default();
    config.samples = usize::try_from(args.keep).unwrap_or(MAX_SAMPLES);
    for (class, work_ns) in &args.work {
        if *class >= config.classes {
            let classes = config.classes;
            tell(&format!("--work names class {class} of {classes}, from 0 on: raise --queues"));
            return Ok(ExitCode::from(BAD_USE));
        }
        if let Some(place) = config.work_ns.get_mut(*class) {
            *place = *work_ns;
        }
    }
    let stop = Stop::hold();
    let consumer = match Consumer::start(&config) {
        Ok(consumer) => consumer,
        Err(error) => {
            tell(&error.to_string());
            return Ok(ExitCode::from(BAD_USE));
        }
    };
    // The file is there before anybody relies on the consumer, and not emptied for one that is not.
    let file = match &args.samples {
        None => None,
        Some(path) => {
            let made = File::create(path);
            Some(made.with_context(|| format!("cannot write {}", path.display()))?)
        }
    };
    for one in consumer.granted() {
        if let Some(why) = &one.refused {
            tell(&format!("{}: {why}; it runs as ordinary", one.name));
        }
    }
    let mut out = stdout().lock();
    // Whoever started it may have closed stdout; that is no reason not to serve.
    let _ = writeln!(out, "listening on {}", consumer.address()).and_then(|()| out.flush());
    drop(out);
    let _is_ended = stop.wait(args.duration);
    // What waits is processed yet; whoever will not wait for that stops it once more.
    stop.release();
    let outcome = consumer.stop()?;
    if let Some(file) = file {
        results::write_samples(&outcome, &mut BufWriter::new(file))
            .context("cannot write the samples")?;
    }
    let warm_up_ns = u64::try_from(args.warm_up.as_nanos()).unwrap_or(u64::MAX);
    let figures = results::consumer(&config, &outcome, warm_up_ns);
    if args.json {
        say(&format!("{figures}\n"))?;
    } else {
        say(&results::consumer_text(&figures))?;
    }
    Ok(ExitCode::SUCCESS)
}
