use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::catalogue::Catalogue;
use super::soap::Version;
use super::{DEFAULT_SEED, FILE_COUNT, NFFI_NAMESPACE, file_tracks, generate};
use crate::server::Document;
use crate::xml::{Node, Reader};

#[test]
fn the_same_seed_gives_the_same_files_and_another_seed_gives_others() {
    assert_eq!(generate(7), generate(7));
    let (seven, eight) = (generate(7), generate(8));
    assert!(seven.iter().zip(&eight).all(|(left, right)| left != right));
}

#[test]
fn there_are_22_files_of_the_sizes_promised_for_any_seed() {
    for seed in [DEFAULT_SEED, 0, 1, u64::MAX] {
        let catalogue = Catalogue::new(seed);
        let sizes: Vec<usize> = (1..=FILE_COUNT)
            .map(|number| catalogue.xml(number).map_or(0, |document| document.plain().len()))
            .collect();
        let mean = sizes.iter().sum::<usize>() / sizes.len();
        assert_eq!(sizes.len(), 22);
        assert!((800..=1500).contains(&sizes[0]), "seed {seed}: smallest has {} bytes", sizes[0]);
        assert!((130_000..=165_000).contains(&sizes[21]), "seed {seed}: largest {}", sizes[21]);
        assert!((36_000..=44_000).contains(&mean), "seed {seed}: mean {mean} bytes");
        assert!(catalogue.xml(0).is_none() && catalogue.xml(23).is_none());
    }
}

/// models.md of the design has 12 for a file of 43 KB; a repeated block would have 100 and more,
/// noise 2.
#[test]
fn files_compress_as_real_messages_do() {
    let catalogue = Catalogue::new(DEFAULT_SEED);
    for number in 1..=FILE_COUNT {
        let document = catalogue.xml(number).unwrap();
        let (plain, gzip) = (document.plain().len(), document.gzip().len());
        let ratio = plain as f64 / gzip as f64;
        println!("file {number}: {plain} bytes, gzip {gzip}, ratio {ratio:.1}");
        match plain {
            0..=1500 => assert!(ratio < 3.0, "file {number}: {ratio}"),
            35_000..=50_000 => assert!((10.0..14.0).contains(&ratio), "file {number}: {ratio}"),
            _ => assert!((1.5..15.0).contains(&ratio), "file {number}: {ratio}"),
        }
    }
}

/// The leaves of a tree: path and text of every value and attribute.
type Leaves = Vec<(String, String)>;

fn xml_leaves(document: &str) -> Leaves {
    let (mut leaves, mut path, mut text) = (Leaves::new(), Vec::<String>::new(), None);
    let mut reader = Reader::new(document);
    while let Some(node) = reader.next_node().unwrap() {
        match node {
            Node::Start { name, attributes, .. } => {
                path.push(name);
                for attribute in attributes {
                    leaves
                        .push((format!("{}/{}", path.join("/"), attribute.name), attribute.value));
                }
                text = Some(String::new());
            }
            Node::Text(more) => text.get_or_insert_default().push_str(&more),
            Node::End => {
                if let Some(text) = text.take() {
                    leaves.push((path.join("/"), text));
                }
                path.pop();
            }
            Node::Instruction => panic!("no instructions are written"),
        }
    }
    leaves.sort();
    leaves
}

fn json_leaves(path: &str, value: &serde_json::Value, leaves: &mut Leaves) {
    use serde_json::Value;
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let at = match (name.as_str(), path) {
                    ("value", path) => path.to_owned(),
                    (name, "") => name.to_owned(),
                    (name, path) => format!("{path}/{name}"),
                };
                json_leaves(&at, value, leaves);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| json_leaves(path, value, leaves)),
        Value::String(text) => leaves.push((path.to_owned(), text.clone())),
        other => leaves.push((path.to_owned(), other.to_string())),
    }
}

/// Numbers are compared as numbers: `5.10` and `5.1` are the same.
fn comparable(leaves: Leaves) -> BTreeSet<(String, String)> {
    let plain = |text: String| match text.parse::<f64>() {
        Ok(number) if !text.starts_with('+') && text.len() < 12 => number.to_string(),
        _ => text,
    };
    leaves.into_iter().map(|(path, text)| (path, plain(text))).collect()
}

#[test]
fn json_has_the_elements_of_the_xml() {
    for file in generate(DEFAULT_SEED) {
        let json: serde_json::Value = serde_json::from_str(&file.json).unwrap();
        let (xml, mut leaves) = (xml_leaves(&file.xml), Leaves::new());
        json_leaves("", &json, &mut leaves);
        assert_eq!(xml.len(), leaves.len());
        assert_eq!(comparable(xml), comparable(leaves));
        assert!(file.json.len() < file.xml.len());
    }
}

#[test]
fn every_track_is_one_of_a_unit_at_a_time_and_units_move() {
    for (file, number) in generate(DEFAULT_SEED).iter().zip(1..) {
        let json: serde_json::Value = serde_json::from_str(&file.json).unwrap();
        let tracks = json["NFFIMessage"]["track"].as_array().unwrap();
        assert_eq!(Some(tracks.len()), file_tracks(number));
        let text = |track: &serde_json::Value, path: &str| {
            track.pointer(path).map(ToString::to_string).unwrap_or_default()
        };
        let unit = |track| text(track, "/positionalData/trackSource/transponderId");
        let time = |track| text(track, "/positionalData/dateTime");
        let place = |track| text(track, "/positionalData/coordinates/latitude/value");
        let reports: BTreeSet<_> = tracks.iter().map(|track| (unit(track), time(track))).collect();
        assert_eq!(reports.len(), tracks.len(), "file {number}: a report comes twice");
        let places: BTreeSet<_> = tracks.iter().map(|track| (unit(track), place(track))).collect();
        assert_eq!(places.len(), tracks.len(), "file {number}: a unit stands still");
    }
}

#[test]
fn gzip_holds_the_same_bytes() {
    use std::io::Read;
    let document = Document::new("some text, some text, some text");
    let gzip = document.gzip();
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&gzip[..]).read_to_end(&mut plain).unwrap();
    assert_eq!(plain, document.plain());
}

/// What other people's data is at.
fn data() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    match std::env::var_os("LONGWIRE_DATA") {
        Some(path) => root.join(path),
        None => root.join("../shared/data"),
    }
}

/// What xmllint says of documents against a schema; `None` when there is none on this machine.
fn validate(schema: &Path, documents: &[PathBuf]) -> Option<Result<(), String>> {
    let mut command = Command::new("xmllint");
    command.args(["--noout", "--nonet", "--schema"]).arg(schema).args(documents);
    match command.output() {
        Ok(output) if output.status.success() => Some(Ok(())),
        Ok(output) => Some(Err(String::from_utf8_lossy(&output.stderr).into_owned())),
        Err(error) => {
            println!("skipped 1: no xmllint here ({error}); apt install libxml2-utils");
            None
        }
    }
}

/// A folder of this process for scratch files, gone at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("longwire-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn rest_documents(scratch: &Scratch, seed: u64) -> Vec<PathBuf> {
    let catalogue = Catalogue::new(seed);
    let write = |number| {
        let name = format!("{seed}-{number}.xml");
        scratch.write(&name, &catalogue.xml(number).unwrap().plain())
    };
    (1..=FILE_COUNT).map(write).collect()
}

#[test]
fn messages_are_valid_against_the_schema_of_nffi() {
    let schema = data().join("friendly_force/nffi13_sip3/SIP3_Service_ReqRes.xsd_1.xsd");
    if !schema.exists() {
        println!("skipped 1: no {}; set LONGWIRE_DATA", schema.display());
        return;
    }
    let scratch = Scratch::new("nffi");
    for seed in [DEFAULT_SEED, 1, 2] {
        let documents = rest_documents(&scratch, seed);
        let Some(result) = validate(&schema, &documents) else { return };
        assert_eq!(result, Ok(()));
    }
    let wrong = Catalogue::new(1).xml(1).unwrap().plain();
    let wrong = String::from_utf8_lossy(&wrong).replace("dateTime>2026", "dateTime>26");
    let wrong = scratch.write("wrong.xml", wrong.as_bytes());
    let refused = validate(&schema, &[wrong]).is_some_and(|result| result.is_err());
    assert!(refused, "the validator accepts a malformed date");
}

/// The schema inside the WSDL is ours; the messages must be valid against that one too.
#[test]
fn messages_are_valid_against_the_schema_in_the_wsdl() {
    let scratch = Scratch::new("wsdl");
    let schema = include_str!("soap/nffi.xsd").replace("@NFFI@", NFFI_NAMESPACE);
    let schema = scratch.write("nffi.xsd", schema.as_bytes());
    let documents = rest_documents(&scratch, DEFAULT_SEED);
    assert_eq!(validate(&schema, &documents).unwrap_or(Ok(())), Ok(()));
}

#[test]
fn soap_forms_carry_the_same_message() {
    let catalogue = Catalogue::new(DEFAULT_SEED);
    for (file, number) in generate(DEFAULT_SEED).iter().zip(1..) {
        for version in [Version::Soap11, Version::Soap12] {
            let soap = catalogue.soap(number, version).unwrap().plain();
            let soap = std::str::from_utf8(&soap).unwrap().to_owned();
            assert!(soap.contains(&file.xml) && soap.contains(version.namespace()));
            Reader::new(&soap).check_rest().unwrap();
        }
    }
}
