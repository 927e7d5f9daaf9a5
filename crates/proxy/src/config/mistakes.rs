//! What is wrong with a configuration: all of it, each with its place in the file.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::units::Period;
use super::{MIN_TIME, caller};
use crate::Error;

/// Where a value stands: a key of a section, or an item of its list.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    /// `edge`, `gateway`, `log` or `service`; empty for what is no section.
    pub(super) section: &'static str,
    /// Which of the services.
    pub(super) service: usize,
    /// Empty for the section as a whole.
    pub(super) key: &'static str,
    /// 0 for the value as a whole, else which item of its list, from 1.
    pub(super) item: usize,
}

/// The lines of a file's keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    pub(super) file: PathBuf,
    pub(super) of: BTreeMap<Spot, usize>,
}

impl Lines {
    /// The line of a value, or else of what it is part of.
    fn find(&self, spot: &Spot) -> Option<usize> {
        let value = Spot { item: 0, ..spot.clone() };
        let section = Spot { key: "", ..value.clone() };
        let mut all =
            [spot, &value].into_iter().chain((spot.section == "service").then_some(&section));
        all.find_map(|spot| self.of.get(spot)).copied()
    }
}

/// One thing that is wrong.
#[derive(Debug)]
pub struct Mistake {
    spot: Spot,
    /// Other keys of the section that it is about.
    with: &'static [&'static str],
    place: Option<(PathBuf, usize)>,
    error: Error,
}

impl Mistake {
    /// The file and the line of it; none for what came of the command line, or of nowhere.
    #[must_use]
    pub fn place(&self) -> Option<(&Path, usize)> {
        self.place.as_ref().map(|(file, line)| (file.as_path(), *line))
    }

    /// `edge.listen`, `service.deadline`; empty where it is about no key.
    #[must_use]
    pub fn key(&self) -> String {
        match (self.spot.section, self.spot.key) {
            (section, "") => section.to_owned(),
            (section, key) => format!("{section}.{key}"),
        }
    }

    /// What is wrong, without its place.
    #[must_use]
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// Whether another says already that one of its keys is wrong, so that this may only follow.
    fn follows(&self, other: &Self) -> bool {
        let (spot, earlier) = (&self.spot, &other.spot);
        let keys = || [spot.key].into_iter().chain(self.with.iter().copied());
        let same = spot.section == earlier.section && spot.service == earlier.service;
        // Of a line that cannot be read nobody knows the section.
        (same || earlier.section.is_empty())
            && !earlier.key.is_empty()
            && keys().any(|key| key == earlier.key)
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place() {
            Some((file, line)) => write!(f, "{}:{line}: {}", file.display(), self.error),
            None => self.error.fmt(f),
        }
    }
}

/// All that is wrong.
#[derive(Debug, Default)]
pub struct Mistakes(Vec<Mistake>);

impl Mistakes {
    /// Something wrong with a key of a section, or with what is no section (both empty).
    pub fn add(&mut self, section: &'static str, key: &'static str, error: Error) {
        let spot = Spot { section, key, ..Spot::default() };
        self.push(Mistake { spot, with: &[], place: None, error });
    }

    pub(super) fn at_line(&mut self, file: &Path, line: usize, spot: Spot, what: String) {
        let place = Some((file.to_owned(), line));
        self.push(Mistake { spot, with: &[], place, error: Error::Caller(what) });
    }

    fn push(&mut self, mistake: Mistake) {
        self.0.push(mistake);
    }

    /// Adds what was found later, but for what may only follow from what was found before.
    pub fn and(&mut self, later: Self) {
        let earlier = self.0.len();
        for new in later.0 {
            if !self.0.iter().take(earlier).any(|one| new.follows(one)) {
                self.0.push(new);
            }
        }
    }

    /// Says where in the file each is, but for the sections' keys that the command line has given.
    pub fn locate(&mut self, lines: &Lines, given: &[(&str, &str)]) {
        for mistake in self.0.iter_mut().filter(|mistake| mistake.place.is_none()) {
            let spot = &mistake.spot;
            if !given.contains(&(spot.section, spot.key)) {
                mistake.place = lines.find(spot).map(|line| (lines.file.clone(), line));
            }
        }
        self.0.sort_by_key(|mistake| mistake.place.as_ref().map_or(0, |(_, line)| *line));
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Each of them, those of the command line first, then by line.
    pub fn iter(&self) -> impl Iterator<Item = &Mistake> {
        self.0.iter()
    }
}

/// The first one, and how many there are besides.
impl From<Mistakes> for Error {
    fn from(mistakes: Mistakes) -> Self {
        let more = mistakes.len().saturating_sub(1);
        let Some(first) = mistakes.0.into_iter().next() else {
            return Self::Caller("nothing is wrong".to_owned());
        };
        let noun = if more == 1 { "mistake" } else { "mistakes" };
        let line = match more {
            0 => first.to_string(),
            _ => format!("{first} (and {more} more {noun}: --check lists them)"),
        };
        match first.error {
            Self::Caller(_) => Self::Caller(line),
            error => error,
        }
    }
}

/// Checks the values of a section, and goes on behind what is wrong.
pub(super) struct Check {
    spot: Spot,
    pub(super) mistakes: Mistakes,
}

impl Check {
    pub(super) fn of(section: &'static str) -> Self {
        Self { spot: Spot { section, ..Spot::default() }, mistakes: Mistakes::default() }
    }

    /// What follows is about one of the services.
    pub(super) fn service(&mut self, service: usize) {
        self.spot = Spot { section: "service", service, ..Spot::default() };
    }

    /// The value, or nothing to go on with.
    pub(super) fn take<T: Default, E: Into<Error>>(
        &mut self,
        key: &'static str,
        result: Result<T, E>,
    ) -> T {
        self.about(key, &[], result)
    }

    /// The same of a value that goes with other keys.
    pub(super) fn about<T: Default, E: Into<Error>>(
        &mut self,
        key: &'static str,
        with: &'static [&'static str],
        result: Result<T, E>,
    ) -> T {
        result.unwrap_or_else(|error| {
            self.wrong(Spot { key, ..self.spot.clone() }, with, error.into());
            T::default()
        })
    }

    /// Each item of a list.
    pub(super) fn items<S, T>(
        &mut self,
        key: &'static str,
        items: &[S],
        mut parse: impl FnMut(&S) -> Result<T, String>,
    ) -> Vec<T> {
        let mut all = Vec::new();
        for (at, item) in items.iter().enumerate() {
            match parse(item) {
                Ok(item) => all.push(item),
                Err(what) => {
                    let spot = Spot { key, item: at + 1, ..self.spot.clone() };
                    self.wrong(spot, &[], Error::Caller(what));
                }
            }
        }
        all
    }

    /// A time, if one is given.
    pub(super) fn time(&mut self, value: &mut Duration, key: &'static str, given: Option<Period>) {
        match given {
            Some(Period(given)) if given < MIN_TIME => {
                let what = format!("{key} is less than 1 ms: give more, like '10 s'");
                self.take(key, Err::<(), _>(what));
            }
            Some(Period(given)) => *value = given,
            None => {}
        }
    }

    /// A number from 1 to `most`, if one is given.
    pub(super) fn count(
        &mut self,
        value: &mut usize,
        key: &'static str,
        given: Option<usize>,
        most: usize,
    ) {
        match given {
            Some(given) if !(1..=most).contains(&given) => {
                let what = format!("{key} is {given}: a number from 1 to {most}");
                self.take(key, Err::<(), _>(what));
            }
            Some(given) => *value = given,
            None => {}
        }
    }

    /// Refuses addresses that one process cannot have twice.
    pub(super) fn apart(&mut self, listeners: &[(&'static str, Option<SocketAddr>)]) {
        let given = |(key, address): &(&'static str, Option<SocketAddr>)| Some((*key, (*address)?));
        let all: Vec<_> = listeners.iter().filter_map(given).collect();
        for (at, (key, address)) in all.iter().enumerate() {
            let earlier = all.iter().take(at);
            let Some((other, _)) = earlier.into_iter().find(|(_, one)| same_place(*one, *address))
            else {
                continue;
            };
            let what = format!("{key} '{address}' is the port of '{other}': give each its own");
            self.about(key, &[], Err::<(), _>(what));
        }
    }

    fn wrong(&mut self, spot: Spot, with: &'static [&'static str], error: Error) {
        self.mistakes.push(Mistake { spot, with, place: None, error });
    }
}

/// Whether who listens at one of these leaves no room at the other; port 0 is any free one.
fn same_place(one: SocketAddr, other: SocketAddr) -> bool {
    let (a, b) = (one.ip().to_canonical(), other.ip().to_canonical());
    let all = |all: IpAddr, one: IpAddr| {
        all.is_unspecified() && (all.is_ipv6() || one.is_ipv4() || one.is_unspecified())
    };
    one.port() != 0 && one.port() == other.port() && (a == b || all(a, b) || all(b, a))
}

/// What is wrong with a value is so by whoever gave it.
impl From<String> for Error {
    fn from(what: String) -> Self {
        caller(what)
    }
}
