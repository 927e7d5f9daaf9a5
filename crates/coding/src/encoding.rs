//! The encodings of the pair, and who chooses among them.

use std::sync::Arc;

use codec::Options;
use codec::infoset::SchemaContext;
use decide::arm::Prior;
use decide::fixed::Fixed;
use decide::learned::Learned;
use decide::models::Models;
use decide::nam::Nam;
use decide::policy::{Objective, Policy};
use decide::triage::{Message, Triage, triage};

/// What is chosen among unless the operator says otherwise.
const ARMS: [&str; 14] = [
    "deflate:6",
    "deflate:9",
    "zstd:1",
    "zstd:3",
    "zstd:9",
    "zstd:19",
    "brotli:4",
    "brotli:5",
    "brotli:9",
    "xmill:1",
    "xmill:5",
    "xmill:9",
    "delta",
    "zstd-dictionary:19",
];
/// What NAM's paper chose among: Zip and XMill, which had Zip inside.
const NAM_ARMS: [&str; 2] = ["deflate:6", "xmill:1"];
/// Most arms, with those that services name: what a choice weighs has to stay little.
const MAX_ARMS: usize = 32;
/// A codec that is not for any bytes is no better with a greater window than this, and its decoder
/// takes eight times as much.
const MAX_SPECIAL_WINDOW_LOG: u8 = 17;

/// A media type that only codecs for any bytes apply to.
pub(crate) const ANY: &str = "application/octet-stream";

/// Who chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Learned,
    Nam,
    Fixed,
}

/// The encodings, the first of which leaves bytes alone, and who chooses among them.
#[derive(Clone, Debug)]
pub struct Encoding {
    way: Way,
    arms: Vec<Options>,
    /// What is expected of each arm before it was seen at work.
    priors: Vec<Prior>,
}

/// What is set for one service.
#[derive(Clone, Debug, Default)]
pub struct Service {
    /// Its name in events: the operator's pattern.
    pub name: String,
    /// What is wanted of it.
    pub objective: Objective,
    /// The only encodings that it may go in, besides going as it is; all of them where none.
    pub encodings: Option<Vec<Options>>,
    /// What its messages are made of, where their infoset is all that has to come back.
    pub infoset: Option<Arc<SchemaContext>>,
}

impl Encoding {
    fn over(way: Way, arms: impl IntoIterator<Item = Options>) -> Self {
        let mut encoding = Self { way, arms: Vec::new(), priors: Vec::new() };
        arms.into_iter().for_each(|options| encoding.push(options, prior(options)));
        encoding
    }

    /// What is learned of the traffic decides.
    #[must_use]
    pub fn auto() -> Self {
        Self::over(Way::Learned, table(&ARMS))
    }

    /// NAM as it was published decides.
    #[must_use]
    pub fn nam() -> Self {
        Self::over(Way::Nam, table(&NAM_ARMS))
    }

    /// Always the same coding.
    #[must_use]
    pub fn fixed(options: Options) -> Self {
        let coded = (!options.is_identity()).then_some(options);
        Self::over(Way::Fixed, [Options::IDENTITY].into_iter().chain(coded))
    }

    /// Reads `auto`, `nam`, `NAME` or `NAME:LEVEL`.
    pub fn of(text: &str) -> Result<Self, codec::Error> {
        match text {
            "auto" => Ok(Self::auto()),
            "nam" => Ok(Self::nam()),
            // Alone they are no choice: somebody has to bring the first message.
            _ if based(text).is_some() => Err(codec::Error::Option {
                what: format!("encoding '{text}' is chosen where it fits: say 'auto'"),
            }),
            _ => match named(text)? {
                options if options.is_infoset() => Err(codec::Error::Option {
                    what: format!(
                        "encoding '{text}' is only for services with fidelity 'infoset': say 'auto'"
                    ),
                }),
                options => Ok(Self::fixed(options)),
            },
        }
    }

    /// Adds what gives an infoset back, for services that allow it: where one among several is
    /// chosen.
    pub fn allow_infoset(&mut self) {
        if self.way == Way::Learned && !self.arms.contains(&Options::EXI) {
            Options::INFOSET.into_iter().for_each(|options| self.push(options, prior(options)));
        }
    }

    /// Adds an encoding of whatever codec, with what is expected of it, where one among several is
    /// chosen.
    ///
    /// # Errors
    /// They are too many.
    pub fn add(&mut self, options: Options, expected: Prior) -> Result<(), codec::Error> {
        if self.way == Way::Learned && !self.arms.contains(&options) {
            self.push(options, expected);
        }
        self.check()
    }

    fn push(&mut self, options: Options, expected: Prior) {
        self.arms.push(options);
        self.priors.push(expected);
    }

    /// Refuses more encodings than may be weighed.
    fn check(&self) -> Result<(), codec::Error> {
        if self.arms.len() > MAX_ARMS {
            let what = format!("{} encodings in all: at most {MAX_ARMS}", self.arms.len());
            return Err(codec::Error::Option { what });
        }
        Ok(())
    }

    /// The encodings by arm.
    #[must_use]
    pub fn arms(&self) -> &[Options] {
        &self.arms
    }

    /// The encodings that `names` mean: `NAME` for a codec's every level in the table, and
    /// `NAME:LEVEL` for one. What is not in the table comes into it, where one among several is
    /// chosen. Errors: a name that no codec for blocks has, a level that it has not, too many of
    /// them.
    pub fn meant_by(&mut self, names: &[String]) -> Result<Vec<Options>, codec::Error> {
        let mut selected = Vec::new();
        for name in names {
            let options = named(name)?;
            let levels = self.arms.iter().filter(|arm| arm.codec == options.codec).copied();
            let alone = name.contains(':') || options.is_infoset();
            let mut meant: Vec<_> = levels.filter(|arm| !alone || *arm == options).collect();
            if meant.is_empty() {
                meant.push(options);
                if self.way == Way::Learned {
                    self.push(options, prior(options));
                }
            }
            selected.append(&mut meant);
        }
        self.check()?;
        Ok(selected)
    }

    /// A policy that has learned nothing yet.
    #[must_use]
    pub fn policy(&self) -> Box<dyn Policy> {
        match self.way {
            Way::Learned => Box::new(Learned::new(Models::new(self.priors.clone()))),
            Way::Nam => Box::new(Nam::new(self.arms.len())),
            Way::Fixed => Box::new(Fixed(decide::Arm(self.arms.len() - 1))),
        }
    }

    /// Whether a message may go on otherwise than it began.
    #[must_use]
    pub fn may_revise(&self) -> bool {
        self.way == Way::Learned
    }

    /// Who chooses, in a word: what one has learned is of no use to another.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.way {
            Way::Learned => "learned",
            Way::Nam => "nam",
            Way::Fixed => "fixed",
        }
    }

    /// The choice was the operator's.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.way == Way::Fixed
    }

    /// What need not be weighed. An operator's fixed choice is taken for all that has a body.
    #[must_use]
    pub fn triage(&self, message: &Message<'_>) -> Triage {
        match (self.way, message.body_bytes) {
            (Way::Fixed, Some(0)) => Triage::Alone("no body"),
            (Way::Fixed, _) => Triage::Open { head_share: 1.0 },
            _ => triage(message),
        }
    }
}

fn table(names: &[&str]) -> Vec<Options> {
    let coded = names.iter().filter_map(|name| named(name).ok());
    [Options::IDENTITY].into_iter().chain(coded).collect()
}

/// The encodings by what both ends hold.
fn based(name: &str) -> Option<Options> {
    match name {
        "delta" => Some(Options::DELTA),
        "zstd-dictionary" | "zstd-dictionary:19" => Some(Options::DICTIONARY),
        _ => None,
    }
}

/// Reads `NAME` or `NAME:LEVEL`.
fn named(name: &str) -> Result<Options, codec::Error> {
    if let Some(options) = based(name) {
        return Ok(options);
    }
    if let Some(options) = Options::INFOSET.into_iter().find(|options| options.label() == name) {
        return Ok(options);
    }
    let options = Options::of(name)?;
    let any = options.codec.properties().applies_to(ANY);
    let most = if any { codec::MAX_WINDOW_LOG } else { MAX_SPECIAL_WINDOW_LOG };
    Ok(Options { window_log: options.window_log.min(most), ..options })
}

/// What is expected of an encoding before it was seen at work. One that nothing is known of is not
/// expected to do anything.
fn prior(options: Options) -> Prior {
    decide::prior::of(&options.label()).unwrap_or(Prior::IDENTITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_add_what_they_name_to_what_is_chosen_among() {
        let mut auto = Encoding::auto();
        let before = auto.arms().len();
        let of = |text: &str| Options::of(text).unwrap();
        let names =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let zstd = auto.meant_by(&names(&["zstd"])).unwrap();
        assert_eq!((zstd.len(), auto.arms().len()), (4, before));
        let some = auto.meant_by(&names(&["brotli:4", "brotli:7"])).unwrap();
        assert_eq!(some, [of("brotli:4"), of("brotli:7")]);
        assert_eq!(auto.arms().len(), before + 1);
        assert!(auto.meant_by(&names(&["lzma"])).is_err());
        let based = auto.meant_by(&names(&["delta", "zstd-dictionary"])).unwrap();
        assert_eq!(based, [Options::DELTA, Options::DICTIONARY]);
        assert_eq!(auto.arms().len(), before + 1);
        assert!(Encoding::of("delta").is_err() && Encoding::of("zstd-dictionary:19").is_err());
        auto.allow_infoset();
        auto.allow_infoset();
        assert_eq!(auto.arms().len(), before + 1 + Options::INFOSET.len());
        for options in Options::INFOSET {
            let meant = auto.meant_by(&[options.label()]).unwrap();
            assert_eq!(meant, [options]);
            assert!(Encoding::of(&options.label()).is_err(), "{}", options.label());
            assert_ne!(prior(options), Prior::IDENTITY);
        }
        let all =
            (1..=19).flat_map(|level| [format!("zstd:{level}"), format!("brotli:{}", level % 12)]);
        assert!(auto.meant_by(&all.collect::<Vec<_>>()).is_err(), "too many");
    }

    #[test]
    fn what_is_added_comes_once_and_with_what_is_expected_of_it() {
        let (mut auto, mut fixed) = (Encoding::auto(), Encoding::fixed(Options::IDENTITY));
        let before = auto.arms().len();
        let options = Options::of("brotli:7").unwrap();
        let expected = Prior { overhead_bytes: 7.0, ..Prior::IDENTITY };
        for encoding in [&mut auto, &mut fixed] {
            encoding.add(options, expected).unwrap();
            encoding.add(options, prior(options)).unwrap();
        }
        assert_eq!((auto.arms().len(), fixed.arms().len()), (before + 1, 1));
        assert_eq!((auto.arms()[before], &auto.priors[before..]), (options, &[expected][..]));
        let more = (-7..=19).map(|level| Options { level, ..Options::of("zstd").unwrap() });
        let added: Result<Vec<_>, _> = more.map(|options| auto.add(options, expected)).collect();
        assert!(added.is_err(), "too many");
    }

    #[test]
    fn every_arm_is_known_beforehand() {
        let auto = Encoding::auto();
        assert_eq!(auto.arms()[0], Options::IDENTITY);
        assert_eq!(auto.arms().len(), ARMS.len() + 1);
        for arm in &auto.arms()[1..] {
            assert_ne!(prior(*arm), Prior::IDENTITY, "{}", arm.label());
        }
        assert_eq!(Encoding::nam().arms().len(), 3);
    }
}
