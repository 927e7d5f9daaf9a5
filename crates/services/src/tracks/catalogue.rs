//! Every answer that the service can give, made once.

use super::generate::{TrackFile, generate};
use super::soap;
use crate::server::Document;

/// The 22 files of one seed in their four forms.
#[derive(Debug)]
pub struct Catalogue {
    files: Vec<Forms>,
}

#[derive(Debug)]
struct Forms {
    xml: Document,
    json: Document,
    soap11: Document,
    soap12: Document,
}

impl Catalogue {
    /// The files of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { files: generate(seed).into_iter().map(Forms::of).collect() }
    }

    /// File `number` as REST XML; `None` unless 1 to 22.
    #[must_use]
    pub fn xml(&self, number: usize) -> Option<&Document> {
        self.forms(number).map(|forms| &forms.xml)
    }

    /// File `number` as REST JSON; `None` unless 1 to 22.
    #[must_use]
    pub fn json(&self, number: usize) -> Option<&Document> {
        self.forms(number).map(|forms| &forms.json)
    }

    /// File `number` in a SOAP envelope; `None` unless 1 to 22.
    #[must_use]
    pub fn soap(&self, number: usize, version: soap::Version) -> Option<&Document> {
        self.forms(number).map(|forms| match version {
            soap::Version::Soap11 => &forms.soap11,
            soap::Version::Soap12 => &forms.soap12,
        })
    }

    fn forms(&self, number: usize) -> Option<&Forms> {
        self.files.get(number.checked_sub(1)?)
    }
}

impl Forms {
    fn of(file: TrackFile) -> Self {
        let in_envelope = |version| Document::new(soap::answer(version, &file.xml));
        let declared = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{}", file.xml);
        Self {
            soap11: in_envelope(soap::Version::Soap11),
            soap12: in_envelope(soap::Version::Soap12),
            xml: Document::new(declared),
            json: Document::new(file.json),
        }
    }
}
