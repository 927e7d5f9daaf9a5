//! One way of coding, over files: bytes, speed, and whether everything comes back.

use std::time::{Duration, Instant};

use super::same::same;
use codec::{Codec, Error, Fidelity, Needs, Settings, exi};

/// Time that each direction of a way is measured for, at least, over all files.
const MEASURED: Duration = Duration::from_millis(100);
/// Most passes over the files in that time.
const MAX_PASSES: u32 = 1000;

/// A codec with settings, as it stands in the table.
pub(crate) struct Way {
    pub(crate) codec: &'static dyn Codec,
    pub(crate) label: String,
    pub(crate) settings: Settings,
}

/// What a way gave.
pub(crate) struct Measured {
    pub(crate) bytes: u64,
    pub(crate) encode_bytes_s: f64,
    pub(crate) decode_bytes_s: f64,
    /// Files that the codec cannot take, counted with their own length, and why the first was not.
    pub(crate) refused: usize,
    pub(crate) why: Option<String>,
    /// Files that did not come back.
    pub(crate) broken: usize,
}

/// Every way that a file of this content can take, with what the settings offer.
pub(crate) fn ways(settings: &Settings, media: &str) -> Vec<Way> {
    let mut ways = Vec::new();
    for &codec in codec::CODECS {
        let properties = codec.properties();
        let lacks_dictionary =
            properties.needs == Needs::Dictionary && settings.dictionary.is_none();
        if lacks_dictionary || !properties.applies_to(media) {
            continue;
        }
        if properties.needs == Needs::SchemaOptional {
            ways.extend(exi_ways(codec, settings));
            continue;
        }
        let levels =
            properties.levels.map_or(vec![None], |levels| levels_of(properties.name, levels));
        for level in levels {
            let label = level
                .map_or(properties.name.to_owned(), |level| format!("{}:{level}", properties.name));
            ways.push(Way { codec, label, settings: Settings { level, ..settings.clone() } });
        }
    }
    ways
}

/// The levels that say most about a codec: usual, greatest, and zstd's in between.
fn levels_of(name: &str, (_, usual, most): (i8, i8, i8)) -> Vec<Option<i8>> {
    let mut levels = vec![usual, most];
    if name == "zstd" {
        levels.push(9);
    }
    levels.sort_unstable();
    levels.dedup();
    levels.into_iter().map(Some).collect()
}

/// EXI as it is, compressed, and both with what a person would keep.
fn exi_ways(codec: &'static dyn Codec, settings: &Settings) -> Vec<Way> {
    let name = codec.name();
    let way = |label: &str, change: &dyn Fn(&mut exi::Options)| {
        let mut settings = settings.clone();
        change(&mut settings.exi);
        Way { codec, label: format!("{name}{label}"), settings }
    };
    let compressed = |exi: &mut exi::Options| exi.alignment = exi::Alignment::Compression;
    let mut ways = vec![way("", &|_| {}), way(" compression", &compressed)];
    if settings.schema.is_some() {
        ways.push(way(" strict", &|exi| exi.strict = true));
        ways.push(way(" strict compression", &|exi| {
            exi.strict = true;
            compressed(exi);
        }));
        let mut without = way(" without schema", &|_| {});
        without.settings.schema = None;
        ways.push(without);
    }
    ways
}

impl Way {
    fn encode(&self, file: &[u8]) -> Result<Vec<u8>, Error> {
        self.settings.encode(self.codec.name(), file)
    }

    fn decode(&self, coded: &[u8]) -> Result<Vec<u8>, Error> {
        self.settings.decode(self.codec.name(), coded)
    }

    /// Whether `decoded` is `file`: its bytes, or a text that says the same, to the codec and to
    /// another reader. (A schema may write values another way, which only the codec can tell.)
    fn is_same(&self, file: &[u8], decoded: &[u8], media: &str) -> bool {
        match self.codec.properties().fidelity {
            Fidelity::Bytes => decoded == file,
            Fidelity::Infoset => {
                let is_same = self.settings.schema.is_some() || same(file, decoded, media);
                // Other bytes may say the same: a comment that went changes a string table.
                let again = self.encode(decoded).and_then(|again| self.decode(&again));
                is_same && again.as_deref() == Ok(decoded)
            }
        }
    }

    /// Codes every file by itself.
    pub(crate) fn measure(&self, files: &[Vec<u8>], media: &str) -> Measured {
        let (mut bytes, mut refused, mut why) = (0, 0, None);
        let mut taken = Vec::new();
        let begun = Instant::now();
        for file in files {
            match self.encode(file) {
                Ok(coded) => {
                    bytes += coded.len() as u64;
                    taken.push((file.as_slice(), coded));
                }
                Err(error) => {
                    bytes += file.len() as u64;
                    refused += 1;
                    why.get_or_insert_with(|| error.to_string());
                }
            }
        }
        let encoding = begun.elapsed();
        let plain: u64 = taken.iter().map(|(file, _)| file.len() as u64).sum();
        let begun = Instant::now();
        let decoded: Vec<_> = taken.iter().map(|(_, coded)| self.decode(coded).ok()).collect();
        let decoding = begun.elapsed();
        let came_back = taken.iter().zip(&decoded).filter(|((file, _), decoded)| {
            decoded.as_ref().is_some_and(|decoded| self.is_same(file, decoded, media))
        });
        let broken = taken.len() - came_back.count();
        let encode_bytes_s = speed(plain, encoding, || {
            taken.iter().filter_map(|(file, _)| self.encode(file).ok()).map(|out| out.len()).sum()
        });
        let decode_bytes_s = speed(plain, decoding, || {
            taken.iter().filter_map(|(_, coded)| self.decode(coded).ok()).map(|out| out.len()).sum()
        });
        Measured { bytes, encode_bytes_s, decode_bytes_s, refused, why, broken }
    }
}

/// Bytes of plain content a second: of the first pass where that took long, else of more passes.
fn speed(bytes: u64, first: Duration, mut pass: impl FnMut() -> usize) -> f64 {
    let (mut seconds, mut passes) = (first.as_secs_f64(), 1);
    if first < MEASURED {
        let begun = Instant::now();
        passes = 0;
        while passes == 0 || (begun.elapsed() < MEASURED && passes < MAX_PASSES) {
            std::hint::black_box(pass());
            passes += 1;
        }
        seconds = begun.elapsed().as_secs_f64();
    }
    bytes as f64 * f64::from(passes) / seconds.max(1e-9)
}
