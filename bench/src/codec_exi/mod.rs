//! Our EXI against EXIficient, the reference implementation: speed and size.
//!
//! Both are warm, in one process each, on one thread, and take turns of a fraction of a second, so
//! that whatever else the machine does meets both.

mod documents;
mod ours;
mod peer;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use record::machine::Machine;
use serde_json::{Value, json};

use crate::markdown::Table;
use crate::progress::Progress;
use crate::statistics::median;
use documents::Document;
use ours::Ours;
use peer::{Done, Peer, Request};

/// How long each side is run before it is measured: enough for a virtual machine to compile.
const WARM: Duration = Duration::from_secs(2);
/// How long each side's turn is at least.
const TURN: Duration = Duration::from_millis(250);
/// Turns of each.
const TURNS: usize = 7;

/// How much is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// `interop/exificient`.
    pub peer: PathBuf,
    /// Documents of others.
    pub data: PathBuf,
    /// Where files are put that both sides read.
    pub folder: PathBuf,
    /// Short turns: shows that it works, proves nothing.
    pub quick: bool,
    /// Measures only documents whose name contains this.
    pub only: Option<String>,
}

/// One verb on one document in one mode.
#[derive(Clone, Debug)]
pub struct Measured {
    document: String,
    xml_bytes: u64,
    mode: String,
    verb: &'static str,
    /// Bytes of XML text a second, turn by turn.
    ours: Vec<f64>,
    peers: Vec<f64>,
    /// Least median of the ratios that is wanted.
    wanted: f64,
    ours_bytes: u64,
    peer_bytes: u64,
}

impl Measured {
    fn ratios(&self) -> Vec<f64> {
        self.ours.iter().zip(&self.peers).map(|(ours, peer)| ours / peer).collect()
    }

    /// Whether it is as fast and as short as it has to be: by no more than 1 % longer.
    #[must_use]
    pub fn met(&self) -> bool {
        median(self.ratios()) >= self.wanted && self.ours_bytes * 100 <= self.peer_bytes * 101
    }

    /// All of it, for a machine.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "document": self.document, "xml_bytes": self.xml_bytes, "mode": self.mode,
            "verb": self.verb, "ours_bytes_per_s": self.ours, "peer_bytes_per_s": self.peers,
            "ratio_wanted": self.wanted, "ours_bytes": self.ours_bytes,
            "peer_bytes": self.peer_bytes, "met": self.met(),
        })
    }
}

/// Measures everything.
///
/// # Errors
/// When the peer cannot be had, or one side refuses a document.
pub fn run(options: &Options) -> Result<Vec<Measured>> {
    fs::create_dir_all(&options.folder).with_context(|| options.folder.display().to_string())?;
    let mut documents = documents::documents(&options.folder, &options.data)?;
    if let Some(only) = &options.only {
        documents.retain(|document| document.name.contains(only));
    }
    let mut peer = Peer::start(&options.peer)?;
    let (warm, turn, turns) = match options.quick {
        true => (Duration::from_millis(100), Duration::from_millis(50), 2),
        false => (WARM, TURN, TURNS),
    };
    let all_modes: usize = documents.iter().map(|document| modes(document).len()).sum();
    let turns_in_all = u32::try_from(turns).unwrap_or(u32::MAX);
    let each = (warm + turn * turns_in_all) * 2;
    let mut progress = Progress::new(each * u32::try_from(all_modes * VERBS.len()).unwrap_or(1));
    let mut all = Vec::new();
    for document in &documents {
        for mode in modes(document) {
            let mut pair = Pair::new(&mut peer, document, &mode, &options.folder)
                .with_context(|| format!("{}, {}", document.name, mode.words))?;
            for (verb, wanted) in VERBS {
                progress.step(&format!("{}, {}, {verb}", document.name, mode.name), each);
                let compressed = mode.words.starts_with("compression");
                let wanted = if compressed { WANTED_COMPRESSED } else { wanted };
                all.push(pair.measure(verb, wanted, warm, turn, turns)?);
            }
        }
    }
    progress.finish();
    Ok(all)
}

/// What is measured, and how much faster than the peer it has to be.
const VERBS: [(&str, f64); 3] = [("encode", 2.5), ("decode", 3.0), ("events", 2.0)];
/// The same, with compression.
const WANTED_COMPRESSED: f64 = 2.0;

/// One way of coding a document.
struct Mode {
    name: String,
    words: String,
    schema: Option<PathBuf>,
}

fn modes(document: &Document) -> Vec<Mode> {
    let mut modes = Vec::new();
    for alignment in ["bit-packed", "compression"] {
        let (name, words) = (alignment.to_string(), alignment.to_string());
        modes.push(Mode { name, words, schema: None });
        if let Some((schema, strict)) = &document.schema {
            let (name, words) = match strict {
                true => (format!("{alignment}, strict"), format!("{alignment},strict")),
                false => (format!("{alignment}, schema"), alignment.to_string()),
            };
            modes.push(Mode { name, words, schema: Some(schema.clone()) });
        }
    }
    modes
}

/// Both sides, with a document in both its forms.
struct Pair<'a> {
    peer: &'a mut Peer,
    ours: Ours,
    document: &'a Document,
    mode: &'a Mode,
    xml: Vec<u8>,
    ours_exi: Vec<u8>,
    /// The stream that both decode, which is ours.
    exi: PathBuf,
    peer_bytes: u64,
}

impl<'a> Pair<'a> {
    fn new(
        peer: &'a mut Peer,
        document: &'a Document,
        mode: &'a Mode,
        folder: &Path,
    ) -> Result<Self> {
        let ours = Ours::new(&mode.words, mode.schema.as_deref())?;
        let xml = fs::read(&document.xml).with_context(|| document.xml.display().to_string())?;
        let ours_exi = ours.encode(&xml)?;
        let exi = folder.join("document.exi");
        fs::write(&exi, &ours_exi)?;
        let peers = folder.join("peer.exi");
        peer.ask(&Request {
            verb: "encode",
            words: &mode.words,
            schema: mode.schema.as_deref().unwrap_or(Path::new("-")),
            input: &document.xml,
            output: Some(&peers),
            time: Duration::ZERO,
        })?;
        let peer_bytes = fs::metadata(&peers)?.len();
        Ok(Self { peer, ours, document, mode, xml, ours_exi, exi, peer_bytes })
    }

    fn measure(
        &mut self,
        verb: &'static str,
        wanted: f64,
        warm: Duration,
        turn: Duration,
        turns: usize,
    ) -> Result<Measured> {
        let xml_bytes = self.xml.len() as f64;
        let speed = |done: Done| xml_bytes * done.rounds as f64 / done.elapsed.as_secs_f64();
        self.ask(verb, warm)?;
        self.run(verb, warm)?;
        let (mut ours, mut peers) = (Vec::new(), Vec::new());
        for _ in 0..turns {
            ours.push(speed(self.run(verb, turn)?));
            peers.push(speed(self.ask(verb, turn)?));
        }
        Ok(Measured {
            document: self.document.name.clone(),
            xml_bytes: self.xml.len() as u64,
            mode: self.mode.name.clone(),
            verb,
            ours,
            peers,
            wanted,
            ours_bytes: self.ours_exi.len() as u64,
            peer_bytes: self.peer_bytes,
        })
    }

    fn run(&self, verb: &str, time: Duration) -> Result<Done> {
        let input = if verb == "encode" { &self.xml } else { &self.ours_exi };
        self.ours.repeat(verb, input, time)
    }

    fn ask(&mut self, verb: &str, time: Duration) -> Result<Done> {
        self.peer.ask(&Request {
            verb,
            words: &self.mode.words,
            schema: self.mode.schema.as_deref().unwrap_or(Path::new("-")),
            input: if verb == "encode" { &self.document.xml } else { &self.exi },
            output: None,
            time,
        })
    }
}

/// The result as tables, legible on a terminal too.
#[must_use]
pub fn render(machine: &Machine, all: &[Measured]) -> String {
    let mut text = crate::machine::render(machine);
    let span = |values: &[f64], scale: f64, digits: usize| {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min) / scale;
        let greatest = values.iter().copied().fold(0.0, f64::max) / scale;
        let middle = median(values.iter().copied()) / scale;
        format!("{middle:.digits$} ({least:.digits$} to {greatest:.digits$})")
    };
    for (verb, title) in
        [("encode", "XML text to EXI"), ("decode", "EXI to XML text"), ("events", "EXI to events")]
    {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n### {title}\n\n");
        let heads =
            ["document", "XML B", "mode", "ours MB/s", "EXIficient MB/s", "ratio", "wanted", "met"];
        let mut table = Table::new(&heads);
        for measured in all.iter().filter(|measured| measured.verb == verb) {
            table.row([
                measured.document.clone(),
                measured.xml_bytes.to_string(),
                measured.mode.clone(),
                span(&measured.ours, 1e6, 0),
                span(&measured.peers, 1e6, 0),
                span(&measured.ratios(), 1.0, 2),
                format!("{:.1}", measured.wanted),
                if measured.met() { "yes" } else { "no" }.to_string(),
            ]);
        }
        text.push_str(&table.render());
    }
    text.push_str("\n### Sizes\n\n");
    let mut table =
        Table::new(&["document", "XML B", "mode", "ours B", "EXIficient B", "ours / EXIficient"]);
    for measured in all.iter().filter(|measured| measured.verb == "encode") {
        table.row([
            measured.document.clone(),
            measured.xml_bytes.to_string(),
            measured.mode.clone(),
            measured.ours_bytes.to_string(),
            measured.peer_bytes.to_string(),
            format!("{:.4}", measured.ours_bytes as f64 / measured.peer_bytes as f64),
        ]);
    }
    text.push_str(&table.render());
    text
}
