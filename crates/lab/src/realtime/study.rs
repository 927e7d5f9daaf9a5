//! All phases of a study: the profiles side by side, each a consumer and a producer.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signalfd::SignalFd;
use record::machine::{Busy, Machine};
use record::realtime::{ProfileRun, RealtimeRun, Second, Spread};
use serde_json::Value;
use services::realtime::profile::Profile;
use services::realtime::statistics::{Sample, Series, Summary};

use super::load::Loads;
use super::plan::{Phase, Plan};
use super::program::Program;
use crate::error::{Doing, Error, Result};
use crate::experiment::live::{Live, clock};
use crate::experiment::machine;
use crate::experiment::scratch::Scratch;
use crate::processor::ProcessorTime;
use crate::signals;

/// How often it is looked whether producers have ended.
const TICK: Duration = Duration::from_millis(200);
/// How long producers may take beyond their time: for answers that are late.
const MAX_LATE: Duration = Duration::from_secs(30);
/// Largest file of a run, most files of a directory, and most lines of samples.
const MAX_RUN_BYTES: u64 = 256 << 20;
const MAX_FILES: usize = 1000;
const MAX_SAMPLES: usize = 1 << 24;

/// A study to be made.
#[derive(Clone, Debug)]
pub struct Order {
    /// The binary that is started.
    pub program: PathBuf,
    /// Where the runs go: a file for each phase.
    pub directory: PathBuf,
    /// Phases are as long as a quick run has them.
    pub is_quick: bool,
    /// The core of the consumers.
    pub core: usize,
    /// Version of longwire.
    pub version: String,
    /// Revision of the sources, where known.
    pub revision: Option<String>,
    /// `release` or `debug`.
    pub profile: String,
    /// The command that repeats it.
    pub command: String,
}

/// How a study ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Phases that were measured.
    pub done: usize,
    /// Phases of the study.
    pub phases: usize,
    /// Why one could not be.
    pub failure: Option<String>,
    /// A signal ended it.
    pub is_interrupted: bool,
}

/// Makes all phases, one after another, with progress and the time left on stderr.
///
/// # Errors
/// [`Error::System`] where results cannot be kept.
pub fn run(plan: &Plan, order: &Order) -> Result<Ended> {
    let directory = &order.directory;
    fs::create_dir_all(directory).doing(|| format!("make {}", directory.display()))?;
    clear(plan, directory)?;
    let interrupt = signals::catch()?;
    let scratch = Scratch::new().doing(|| "make a directory for temporary files".to_string())?;
    let mut ended = Ended { phases: plan.phases.len(), ..Ended::default() };
    let mut live = Live::new();
    for phase in &plan.phases {
        let study = Study { plan, order, phase, scratch: scratch.path(), at: ended.done };
        match study.measure(&interrupt, &mut live) {
            Ok(Some(run)) => keep(&study.path(), &run)?,
            Ok(None) => {
                ended.is_interrupted = true;
                break;
            }
            Err(why) => {
                ended.failure = Some(format!("{}: {why}", phase.name));
                break;
            }
        }
        ended.done += 1;
    }
    live.finish();
    Ok(ended)
}

/// Where a phase's run goes.
fn path(directory: &Path, at: usize, phase: &Phase) -> PathBuf {
    let name = phase.name.replace(' ', "-");
    directory.join(format!("{}-{name}.json", at + 1))
}

/// Takes away what an earlier run of the study has left, so that no phase of that one stands beside
/// those of this one. A directory with runs of something else is refused.
fn clear(plan: &Plan, directory: &Path) -> Result<()> {
    let own: Vec<PathBuf> =
        plan.phases.iter().enumerate().map(|(at, phase)| path(directory, at, phase)).collect();
    if let Some(other) = paths(directory)?.into_iter().find(|path| !own.contains(path)) {
        return Err(Error::Caller(format!(
            "{} is not of this study: give another directory, or take it away",
            other.display()
        )));
    }
    for path in own.iter().filter(|path| path.exists()) {
        fs::remove_file(path).doing(|| format!("remove {}", path.display()))?;
    }
    Ok(())
}

struct Study<'a> {
    plan: &'a Plan,
    order: &'a Order,
    phase: &'a Phase,
    scratch: &'a Path,
    at: usize,
}

/// A profile under way.
struct Pair {
    profile: Profile,
    consumer: Program,
    producer: Program,
    samples: PathBuf,
}

impl Study<'_> {
    /// `None` where a signal ended it.
    fn measure(
        &self,
        interrupt: &SignalFd,
        live: &mut Live,
    ) -> std::result::Result<Option<RealtimeRun>, String> {
        let mut pairs = self.start()?;
        let before = ProcessorTime::now();
        let (on, off) = (self.phase.on, self.phase.off);
        let loads = Loads::start(self.order.core, &self.phase.loads, (on, off));
        let is_whole = self.wait(&mut pairs, interrupt, live);
        let holes = loads.end();
        if !is_whole? {
            return Ok(None);
        }
        let spent = before.zip(ProcessorTime::now());
        let stolen = spent.and_then(|(before, now)| now.stolen_since(&before));
        let mut profiles = Vec::new();
        for pair in pairs {
            profiles.push(self.ended(pair)?);
        }
        let (duration, _) = self.plan.times(self.order.is_quick, Profile::ALL[0]);
        Ok(Some(RealtimeRun {
            study: self.plan.name.clone(),
            phase: self.phase.name.clone(),
            loads: self.phase.loads.iter().map(|load| load.name().to_owned()).collect(),
            duration_s: duration.as_secs(),
            rate_per_s: self.plan.rate_per_s,
            entities: self.plan.entities,
            core: self.order.core,
            version: self.order.version.clone(),
            machine: self.machine(),
            busy: Busy {
                stolen_percent: 100.0 * stolen.unwrap_or(0.0),
                // What others did is not told apart from the loads.
                others_percent: 0.0,
            },
            holes: holes.filter(|holes| holes.watched_s > 0.0),
            profiles,
        }))
    }

    /// Consumers first; when all listen, their producers.
    fn start(&self) -> std::result::Result<Vec<Pair>, String> {
        let program = &self.order.program;
        let (duration, _) = self.plan.times(self.order.is_quick, Profile::ALL[0]);
        let text = |text: &str| text.to_owned();
        let mut listening = Vec::new();
        for profile in &self.plan.profiles {
            let number = profile.number();
            let samples = self.scratch.join(format!("{}-{number}.csv", self.at));
            let arguments = [
                text("serve"),
                text("consumer"),
                text("--listen"),
                text("127.0.0.1:0"),
                text("--profile"),
                number.to_string(),
                text("--core"),
                self.order.core.to_string(),
                text("--json"),
                text("--samples"),
                samples.display().to_string(),
                text("--keep"),
                self.plan.kept(self.order.is_quick).to_string(),
            ];
            let mut consumer = Program::start(program, &arguments)?;
            let address = consumer.address()?;
            listening.push((*profile, consumer, address, samples));
        }
        let cores = machine::cores();
        let other = (0..cores).find(|core| *core != self.order.core);
        let mut pairs = Vec::new();
        for (profile, consumer, address, samples) in listening {
            let mut arguments = vec![
                text("produce"),
                text("--url"),
                format!("http://{address}/consumer"),
                text("--rate"),
                self.plan.rate_per_s.to_string(),
                text("--entities"),
                self.plan.entities.to_string(),
                text("--duration"),
                format!("{} ms", duration.as_millis()),
                text("--real-time"),
                text("--json"),
            ];
            if let Some(other) = other {
                arguments.extend([text("--core"), other.to_string()]);
            }
            let producer = Program::start(program, &arguments)?;
            pairs.push(Pair { profile, consumer, producer, samples });
        }
        Ok(pairs)
    }

    /// Waits until all producers have ended; false where a signal came first.
    fn wait(
        &self,
        pairs: &mut [Pair],
        interrupt: &SignalFd,
        live: &mut Live,
    ) -> std::result::Result<bool, String> {
        let (duration, _) = self.plan.times(self.order.is_quick, Profile::ALL[0]);
        let begun = Instant::now();
        let phases = self.plan.phases.len();
        loop {
            let elapsed = begun.elapsed();
            if pairs.iter_mut().all(|pair| pair.producer.has_ended()) {
                return Ok(true);
            }
            if matches!(interrupt.read_signal(), Ok(Some(_))) {
                return Ok(false);
            }
            if elapsed > duration + MAX_LATE {
                return Err("producers did not end in time".to_owned());
            }
            let later = u32::try_from(phases - self.at - 1).unwrap_or(0);
            let left = duration.saturating_sub(elapsed) + duration * later;
            let name = &self.phase.name;
            let text = format!("phase {} of {phases}, {name}: {} left", self.at + 1, clock(left));
            let done = usize::try_from(elapsed.as_secs()).unwrap_or(0);
            let all = usize::try_from(duration.as_secs()).unwrap_or(1);
            live.show("real time", done.min(all), all, &text);
            thread::sleep(TICK);
        }
    }

    fn ended(&self, pair: Pair) -> std::result::Result<ProfileRun, String> {
        let Pair { profile, consumer, producer, samples } = pair;
        let number = profile.number();
        let failed = |what: &str, why: String| format!("profile {number}, {what}: {why}");
        let produced = producer.figures().map_err(|why| failed("producer", why))?;
        consumer.ask_to_end();
        let figures = consumer.figures().map_err(|why| failed("consumer", why))?;
        let taken = read_samples(&samples).map_err(|why| failed("samples", why))?;
        let (_, warm_up) = self.plan.times(self.order.is_quick, profile);
        Ok(profile_run(profile, (&figures, &produced), &taken, warm_up))
    }

    fn machine(&self) -> Machine {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Machine {
            kernel: machine::kernel(),
            processor: machine::processor(),
            cores: machine::cores(),
            revision: self.order.revision.clone(),
            date: record::calendar::day(since.unwrap_or_default().as_secs()),
            profile: self.order.profile.clone(),
            command: self.order.command.clone(),
        }
    }

    fn path(&self) -> PathBuf {
        path(&self.order.directory, self.at, self.phase)
    }
}

fn profile_run(
    profile: Profile,
    (consumer, producer): (&Value, &Value),
    samples: &[Sample],
    warm_up: Duration,
) -> ProfileRun {
    let first_ns = samples.iter().map(|sample| sample.stored_ns).min().unwrap_or(0);
    let warm_up_ns = u64::try_from(warm_up.as_nanos()).unwrap_or(u64::MAX);
    let series = Series::of(samples, first_ns.saturating_add(warm_up_ns));
    let class = &consumer["classes"][0];
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let granted = consumer["granted"].as_array().map(Vec::as_slice).unwrap_or_default();
    let refused = granted.iter().filter_map(|one| one["refused"].as_str());
    ProfileRun {
        profile: profile.number(),
        is_as_asked: consumer["as_asked"] == true,
        refused: refused.map(str::to_owned).collect(),
        due: count(&producer["due"]),
        accepted: count(&class["accepted"]),
        processed: count(&class["processed"]),
        warm_up_s: warm_up.as_secs(),
        internal: spread(series.internal.as_ref()),
        before: spread(series.before.as_ref()),
        whole: spread(series.whole.as_ref()),
        uneven_s: series.uneven_s,
        whole_s: series.whole_s,
        seconds: seconds(samples, first_ns),
    }
}

fn spread(of: Option<&Summary>) -> Spread {
    of.map_or_else(Spread::default, |of| Spread {
        samples: of.samples,
        mean_us: of.mean_us,
        p50_us: of.p50_us,
        p99_us: of.p99_us,
        p999_us: of.p999_us,
        p9999_us: of.p9999_us,
        max_us: of.max_us,
        over_300_us: of.over_300_us,
    })
}

/// What was stored in each second from the first on.
fn seconds(samples: &[Sample], first_ns: u64) -> Vec<Second> {
    const NS_PER_S: u64 = 1_000_000_000;
    let mut all: Vec<Second> = Vec::new();
    for sample in samples {
        let at_s = sample.stored_ns.saturating_sub(first_ns) / NS_PER_S;
        let Ok(at) = usize::try_from(at_s) else { continue };
        if at >= MAX_SAMPLES {
            continue;
        }
        while all.len() <= at {
            all.push(Second { at_s: all.len() as u64, ..Second::default() });
        }
        let Some(second) = all.get_mut(at) else { continue };
        let internal_us = sample.stored_ns.saturating_sub(sample.handed_ns) as f64 / 1000.0;
        let is_dated = sample.sent_ns != 0 && sample.sent_ns <= sample.handed_ns;
        let whole_ns = if is_dated { sample.stored_ns - sample.sent_ns } else { 0 };
        let whole_us = whole_ns as f64 / 1000.0;
        second.entities += 1;
        // Sums, until the end.
        second.internal_mean_us += internal_us;
        second.whole_mean_us += whole_us;
        second.internal_max_us = second.internal_max_us.max(internal_us);
        second.whole_max_us = second.whole_max_us.max(whole_us);
    }
    for second in &mut all {
        let entities = second.entities.max(1) as f64;
        second.internal_mean_us /= entities;
        second.whole_mean_us /= entities;
    }
    all
}

/// Reads what `serve consumer --samples` wrote.
fn read_samples(path: &Path) -> std::result::Result<Vec<Sample>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut samples = Vec::new();
    for line in BufReader::new(file).lines().skip(1).take(MAX_SAMPLES) {
        let line = line.map_err(|error| error.to_string())?;
        let mut fields = line.split(',').skip(1).map(str::parse::<u64>);
        let (Some(Ok(sequence)), Some(Ok(sent_ns)), Some(Ok(handed_ns)), Some(Ok(stored_ns))) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Err(format!("'{}' is no sample", line.escape_debug()));
        };
        samples.push(Sample { sequence, sent_ns, handed_ns, stored_ns });
    }
    Ok(samples)
}

/// Writes a run; it is there whole or not at all.
fn keep(path: &Path, run: &RealtimeRun) -> Result<()> {
    let doing = || format!("write {}", path.display());
    let text = serde_json::to_vec(run).map_err(std::io::Error::other).doing(doing)?;
    let part = path.with_extension("part");
    let mut file = File::create(&part).doing(doing)?;
    file.write_all(&text).doing(doing)?;
    file.sync_all().doing(doing)?;
    fs::rename(&part, path).doing(doing)
}

/// All runs of a directory, by phase.
///
/// # Errors
/// [`Error::Caller`] for a file that is no run, [`Error::System`] when it cannot be read.
pub fn load(directory: &Path) -> Result<Vec<RealtimeRun>> {
    let read = |path: &PathBuf| {
        let doing = || format!("read {}", path.display());
        let mut text = Vec::new();
        File::open(path).doing(doing)?.take(MAX_RUN_BYTES).read_to_end(&mut text).doing(doing)?;
        serde_json::from_slice(&text).map_err(|error| {
            Error::Caller(format!("{} is no run of real time: {error}", path.display()))
        })
    };
    paths(directory)?.iter().map(read).collect()
}

/// The files of runs in a directory, by name.
fn paths(directory: &Path) -> Result<Vec<PathBuf>> {
    let doing = || format!("read {}", directory.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).doing(doing)?.take(MAX_FILES) {
        let path = entry.doing(doing)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(stored_ns: u64) -> Sample {
        let handed_ns = stored_ns - 10_000;
        Sample { sequence: 1, sent_ns: handed_ns - 90_000, handed_ns, stored_ns }
    }

    #[test]
    fn samples_are_read_as_they_are_written_and_summed_by_second() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().join("a.csv");
        let text = "class,sequence,t0_ns,t1_ns,t2_ns\n0,7,1,2,3\n0,8,4,5,6\n";
        fs::write(&path, text).unwrap();
        let samples = read_samples(&path).unwrap();
        assert_eq!(samples.len(), 2);
        assert_eq!(samples[1], Sample { sequence: 8, sent_ns: 4, handed_ns: 5, stored_ns: 6 });
        fs::write(&path, "head\n0,7,1,x,3\n").unwrap();
        assert!(read_samples(&path).unwrap_err().contains("no sample"));

        let all = [sample(1_000_000_000), sample(1_500_000_000), sample(3_000_000_000)];
        let seconds = seconds(&all, 1_000_000_000);
        let counts: Vec<u64> = seconds.iter().map(|second| second.entities).collect();
        assert_eq!(counts, [2, 0, 1]);
        assert_eq!((seconds[0].internal_mean_us, seconds[0].whole_max_us), (10.0, 100.0));
        assert_eq!(seconds[1].whole_mean_us, 0.0);
    }

    #[test]
    fn an_earlier_run_goes_and_another_studys_stays() {
        let scratch = Scratch::new().unwrap();
        let plan =
            Plan::parse("name = 'a'\nduration = '60 s'\n[[phase]]\nname = 'in calm'").unwrap();
        let old = scratch.path().join("1-in-calm.json");
        fs::write(&old, "{}").unwrap();
        clear(&plan, scratch.path()).unwrap();
        assert!(!old.exists());
        let other = scratch.path().join("1-in-storm.json");
        fs::write(&other, "{}").unwrap();
        let line = clear(&plan, scratch.path()).unwrap_err().to_string();
        assert!(line.contains("1-in-storm.json") && other.exists(), "{line}");
    }

    #[test]
    fn a_run_of_a_profile_leaves_out_what_warms_up() {
        let all: Vec<Sample> = (0..50).map(|at| sample(1_000_000_000 + at * 100_000_000)).collect();
        let consumer = serde_json::json!({
            "as_asked": false,
            "granted": [{"refused": null}, {"refused": "no"}],
            "classes": [{"accepted": 50, "processed": 50}],
        });
        let producer = serde_json::json!({"due": 51});
        let run =
            profile_run(Profile::ALL[2], (&consumer, &producer), &all, Duration::from_secs(2));
        assert_eq!((run.profile, run.is_as_asked), (3, false));
        assert_eq!(run.refused, ["no"]);
        assert_eq!((run.due, run.accepted, run.internal.samples), (51, 50, 30));
        assert_eq!(run.seconds.len(), 5);
    }
}
