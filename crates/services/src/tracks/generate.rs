//! The 22 files: how many tracks each has is fixed, what they say follows from the seed.

use super::NFFI_NAMESPACE;
use super::element::Element;
use super::force::Force;
use crate::random::Random;

/// How many files the service has (IST-118).
pub const FILE_COUNT: usize = 22;

/// Tracks per file, smallest first: about 1 KB to 150 KB, mean about 40 KB, as REST XML.
const FILE_TRACKS: [usize; FILE_COUNT] =
    [1, 2, 3, 5, 8, 11, 14, 18, 23, 28, 34, 40, 47, 54, 62, 70, 79, 89, 101, 116, 136, 188];

/// How many tracks file `number` (1 to 22) has; `None` for a number out of that range.
#[must_use]
pub fn file_tracks(number: usize) -> Option<usize> {
    FILE_TRACKS.get(number.checked_sub(1)?).copied()
}

/// One file in its two REST forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackFile {
    /// An `NFFIMessage` element, without XML declaration.
    pub xml: String,
    /// The same elements as JSON.
    pub json: String,
}

/// All 22 files of a seed, in order.
#[must_use]
pub fn generate(seed: u64) -> Vec<TrackFile> {
    FILE_TRACKS.iter().zip(1..).map(|(&tracks, number)| file(seed, number, tracks)).collect()
}

fn file(seed: u64, number: u64, tracks: usize) -> TrackFile {
    let mut random = Random::new(seed, number);
    let children = Force::deploy(&mut random, tracks).report(&mut random, tracks);
    let message = Element::parent("NFFIMessage", children).within(NFFI_NAMESPACE);
    let mut xml = String::new();
    message.write_xml(&mut xml);
    TrackFile { xml, json: message.to_json() }
}
