//! The file of a study: TOML, which is checked whole before anything is started.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use services::realtime::consumer::MAX_SAMPLES;
use services::realtime::entity::MAX_ENTITIES;
use services::realtime::profile::Profile;
use services::realtime::schedule::{MAX_DURATION, MAX_RATE_PER_S, Schedule};
use toml::{Table, Value};

use super::load::Load;
use crate::error::{Doing, Error, Result};

/// Largest file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 16;
/// Most phases.
const MAX_PHASES: usize = 16;
/// Shortest phase.
const MIN_PHASE: Duration = Duration::from_secs(2);

type Read<T> = std::result::Result<T, String>;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The study's name.
    pub name: String,
    /// How long each phase is.
    pub duration: Duration,
    /// How long it is in a quick run.
    pub quick: Duration,
    pub(super) rate_per_s: f64,
    pub(super) entities: u32,
    pub(super) profiles: Vec<Profile>,
    pub(super) warm_up: BTreeMap<u8, Duration>,
    pub(super) phases: Vec<Phase>,
}

/// What else runs on the core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Phase {
    pub(super) name: String,
    pub(super) loads: Vec<Load>,
    pub(super) on: Duration,
    pub(super) off: Duration,
}

impl Plan {
    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::System`] where it cannot be read, [`Error::Caller`] with what is wrong in it.
    pub fn read(path: &Path) -> Result<Self> {
        let doing = || format!("read {}", path.display());
        let mut text = String::new();
        let file = File::open(path).doing(doing)?;
        file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).doing(doing)?;
        let parsed = if text.len() as u64 > MAX_FILE_BYTES {
            Err(format!("it is longer than {MAX_FILE_BYTES} bytes"))
        } else {
            Self::parse(&text)
        };
        parsed.map_err(|what| Error::Caller(format!("{}: {what}", path.display())))
    }

    pub(super) fn parse(text: &str) -> Read<Self> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(0, |span| text[..span.start].lines().count().max(1));
            format!("line {line}: {}", error.message())
        })?;
        let keys =
            ["name", "duration", "quick", "rate", "entities", "profiles", "warm_up", "phase"];
        only(&table, "the study", &keys)?;
        let times = MIN_PHASE..=MAX_DURATION;
        let duration = time(&table, "duration", &times)?.ok_or("it needs 'duration'")?;
        let quick = time(&table, "quick", &times)?.unwrap_or(duration);
        let rate = table.get("rate").map_or(Some(20.0), number);
        let rate_per_s = rate.filter(|rate| *rate > 0.0 && *rate <= MAX_RATE_PER_S);
        let rate_per_s =
            rate_per_s.ok_or_else(|| format!("'rate' is above 0 and up to {MAX_RATE_PER_S}"))?;
        let entities = table.get("entities").map_or(Some(5), Value::as_integer);
        let entities = entities.and_then(|number| u32::try_from(number).ok());
        let is_few = |entities: &u32| (1..=MAX_ENTITIES).contains(&(*entities as usize));
        let entities = entities.filter(is_few);
        let entities = entities.ok_or_else(|| format!("'entities' is 1 to {MAX_ENTITIES}"))?;
        let plan = Self {
            name: name(&table, "name")?,
            duration,
            quick,
            rate_per_s,
            entities,
            profiles: profiles(&table)?,
            warm_up: warm_up(&table, duration)?,
            phases: phases(&table)?,
        };
        let most = plan.samples(duration.max(quick))?;
        if most > MAX_SAMPLES as u64 {
            return Err(format!(
                "a phase has {most} entities, and {MAX_SAMPLES} can be kept: give a lower \
                 'rate', fewer 'entities', or a shorter 'duration'"
            ));
        }
        Ok(plan)
    }

    /// How many entities a phase has at most, with room for some that come in a burst.
    fn samples(&self, duration: Duration) -> Read<u64> {
        let messages = Schedule::new(self.rate_per_s, duration)?.count();
        let entities = messages.saturating_mul(u64::from(self.entities));
        Ok(entities.saturating_add(entities / 100).saturating_add(1000))
    }

    /// How many entities a consumer keeps the times of: all of a phase.
    pub(super) fn kept(&self, is_quick: bool) -> usize {
        let (duration, _) = self.times(is_quick, Profile::ALL[0]);
        // Within the bound, or the plan was refused.
        let samples = self.samples(duration).ok().and_then(|samples| usize::try_from(samples).ok());
        samples.unwrap_or(MAX_SAMPLES).min(MAX_SAMPLES)
    }

    /// How long messages are sent, and what is left out of it for a profile.
    pub(super) fn times(&self, is_quick: bool, profile: Profile) -> (Duration, Duration) {
        let warm_up = self.warm_up.get(&profile.number()).copied().unwrap_or_default();
        match is_quick {
            false => (self.duration, warm_up),
            true => {
                let share = self.quick.as_secs_f64() / self.duration.as_secs_f64();
                (self.quick, warm_up.mul_f64(share.min(1.0)))
            }
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|number| number as f64))
}

fn only(table: &Table, of: &str, known: &[&str]) -> Read<()> {
    match table.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => {
            let key = key.escape_debug();
            Err(format!("{of} has no key '{key}'; there are {}", known.join(", ")))
        }
        None => Ok(()),
    }
}

fn time(table: &Table, key: &str, range: &RangeInclusive<Duration>) -> Read<Option<Duration>> {
    let Some(value) = table.get(key) else { return Ok(None) };
    let text = value.as_str().ok_or_else(|| format!("'{key}' is a text such as '20 min'"))?;
    let time = link::units::parse_duration(text).map_err(|error| format!("'{key}': {error}"))?;
    let (least, most) = (range.start().as_secs(), range.end().as_secs());
    match range.contains(&time) {
        true => Ok(Some(time)),
        false => Err(format!("'{key}' is '{}'; choose {least} s to {most} s", text.escape_debug())),
    }
}

/// A name, which becomes a part of a file's.
fn name(table: &Table, key: &str) -> Read<String> {
    let name = table.get(key).and_then(Value::as_str).unwrap_or_default();
    let is_good = |letter: char| letter.is_ascii_alphanumeric() || " -_".contains(letter);
    match (1..=32).contains(&name.len()) && name.chars().all(is_good) {
        true => Ok(name.to_owned()),
        false => Err(format!("'{key}' is 1 to 32 letters, digits, ' ', '-' or '_'")),
    }
}

fn profiles(table: &Table) -> Read<Vec<Profile>> {
    let Some(value) = table.get("profiles") else { return Ok(Profile::ALL.to_vec()) };
    let wrong = || "'profiles' is a list of numbers from 1 to 5, each once".to_owned();
    let mut found: Vec<Profile> = Vec::new();
    for value in value.as_array().ok_or_else(wrong)? {
        let number = value.as_integer().and_then(|number| u8::try_from(number).ok());
        let profile = number.and_then(Profile::of).ok_or_else(wrong)?;
        if found.contains(&profile) {
            return Err(wrong());
        }
        found.push(profile);
    }
    found.sort();
    if found.is_empty() { Err(wrong()) } else { Ok(found) }
}

fn warm_up(table: &Table, duration: Duration) -> Read<BTreeMap<u8, Duration>> {
    let Some(value) = table.get("warm_up") else { return Ok(BTreeMap::new()) };
    let of = value.as_table().ok_or("write [warm_up]")?;
    let range = Duration::ZERO..=duration.saturating_sub(Duration::from_secs(1));
    of.keys()
        .map(|key| {
            let profile = key.parse().ok().and_then(Profile::of);
            let profile = profile.ok_or_else(|| {
                format!("[warm_up] has profiles 1 to 5, not '{}'", key.escape_debug())
            })?;
            Ok((profile.number(), time(of, key, &range)?.unwrap_or_default()))
        })
        .collect()
}

fn phases(table: &Table) -> Read<Vec<Phase>> {
    let rows = table.get("phase").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if rows.is_empty() || rows.len() > MAX_PHASES {
        return Err(format!("{} of [[phase]]; choose 1 to {MAX_PHASES}", rows.len()));
    }
    let phases: Vec<Phase> = rows.iter().map(phase).collect::<Read<_>>()?;
    let mut names = std::collections::BTreeSet::new();
    match phases.iter().find(|phase| !names.insert(&phase.name)) {
        Some(phase) => Err(format!("two of [[phase]] are called '{}'", phase.name)),
        None => Ok(phases),
    }
}

fn phase(value: &Value) -> Read<Phase> {
    let table = value.as_table().ok_or("write [[phase]]")?;
    only(table, "phase", &["name", "loads", "on", "off"])?;
    let names = table.get("loads").map_or(Some(&[][..]), |value| value.as_array().map(|v| &v[..]));
    let wrong = || {
        let known = Load::ALL.map(Load::name).join(", ");
        format!("'loads' is a list of {known}, each once")
    };
    let mut loads = Vec::new();
    for name in names.ok_or_else(wrong)? {
        let load = name.as_str().and_then(Load::parse).ok_or_else(wrong)?;
        if loads.contains(&load) {
            return Err(wrong());
        }
        loads.push(load);
    }
    let range = Duration::from_secs(1)..=MAX_DURATION;
    let times = [time(table, "on", &range)?, time(table, "off", &range)?];
    match (times, loads.is_empty()) {
        ([Some(on), Some(off)], false) => Ok(Phase { name: name(table, "name")?, loads, on, off }),
        ([None, None], _) => {
            // All the time.
            let (on, off) = (MAX_DURATION, Duration::ZERO);
            Ok(Phase { name: name(table, "name")?, loads, on, off })
        }
        _ => Err("'on' and 'off' belong together, and to 'loads'".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = include_str!("../../../../scenarios/realtime.toml");

    #[test]
    fn the_file_that_comes_along_is_read() {
        let plan = Plan::parse(FILE).unwrap();
        assert_eq!((plan.duration.as_secs(), plan.quick.as_secs()), (1200, 180));
        assert_eq!(plan.profiles, Profile::ALL);
        assert_eq!(plan.phases[0].loads, []);
        assert_eq!(plan.phases[1].loads, Load::ALL);
        let seconds = |is_quick, profile: usize| {
            let (duration, warm_up) = plan.times(is_quick, Profile::ALL[profile]);
            (duration.as_secs(), warm_up.as_secs())
        };
        assert_eq!((seconds(false, 0), seconds(true, 0)), ((1200, 60), (180, 9)));
        assert_eq!((seconds(false, 4), seconds(true, 4)), ((1200, 100), (180, 15)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (from, to, word) in [
            ("rate = 20", "rate = 0", "'rate' is above 0"),
            ("rate = 20", "rate = 1000", "4194304 can be kept"),
            ("rate = 20", "speed = 20", "no key 'speed'"),
            ("entities = 5", "entities = 17", "'entities' is 1 to 16"),
            ("[1, 2, 3, 4, 5]", "[1, 1]", "each once"),
            ("[1, 2, 3, 4, 5]", "[]", "from 1 to 5"),
            ("duration = \"20 min\"", "duration = \"1 s\"", "choose 2 s"),
            ("duration = \"20 min\"", "", "needs 'duration'"),
            ("\"spin\", \"faults\"", "\"spin\", \"spin\"", "'loads' is a list"),
            ("off = \"18 s\"", "", "belong together"),
            ("1 = \"60 s\"", "6 = \"60 s\"", "profiles 1 to 5"),
            ("1 = \"60 s\"", "1 = \"20 min\"", "'1' is '20 min'"),
            ("with contention", "without contention", "two of [[phase]]"),
            ("name = \"realtime\"", "name = \"a/b\"", "'name' is 1 to 32"),
        ] {
            assert!(FILE.contains(from), "{from}");
            let wrong = Plan::parse(&FILE.replace(from, to)).unwrap_err();
            assert!(wrong.contains(word) && !wrong.contains('\n'), "{word}: {wrong}");
        }
    }
}
