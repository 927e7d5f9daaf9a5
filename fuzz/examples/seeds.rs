//! Seeds for the fuzz targets of the codecs: messages made here and, where it is, real data, and
//! what each codec makes of them.
//!
//! `scripts/fuzz` calls it with the folder that has one folder per target.

#[path = "../through.rs"]
mod through;

use std::fs;
use std::io::Result;
use std::path::{Path, PathBuf};

use codec::{CODECS, Codec};

/// Files of real data that become seeds: each kind a few, as the fuzzer does the rest.
const MAX_FILES: usize = 60;
/// Longest seed, in bytes: short inputs run fast.
const MAX_SEED_BYTES: u64 = 8 << 10;
/// Bytes before the input that choose settings (see `fuzz/through.rs`): none kept, all kept.
const HEADS: [[u8; 2]; 4] = [[0, 0], [0x3e, 1], [0, 2], [0x3e, 3]];

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or("corpus".to_owned()));
    let mut messages = vec![
        b"<a/>".to_vec(),
        b"<p:a xmlns:p='urn:p' b=\"1 &lt; 2\"><c>text &#65;</c><!-- x --><?y z?></p:a>".to_vec(),
        br#"{"a":[1,-2.50,1e5,true,null,"\u00e9\n"],"a":{}}"#.to_vec(),
        b"to be, or not to be, to be, or not to be".to_vec(),
    ];
    let data = std::env::var("LONGWIRE_DATA").unwrap_or("../shared/data".to_owned());
    println!("schema: {} schemas", schemas(Path::new(&data), &folder)?);
    let before = messages.len();
    collect(Path::new(&data), &["xml", "json"], &mut messages);
    println!("{} seeds made here, {} from {data}", before, messages.len() - before);
    for &codec in CODECS.iter().filter(|codec| codec.number() != 0) {
        println!(
            "{}: {} messages and their streams",
            codec.name(),
            seed(&folder, codec, &messages)?
        );
    }
    Ok(())
}

/// Small files below `folder`, evenly from all that there are.
fn collect(folder: &Path, ends: &[&str], messages: &mut Vec<Vec<u8>>) {
    let mut files = Vec::new();
    walk(folder, ends, &mut files);
    files.sort();
    let step = files.len().div_ceil(MAX_FILES).max(1);
    messages.extend(files.iter().step_by(step).filter_map(|file| fs::read(file).ok()));
}

fn walk(folder: &Path, ends: &[&str], files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (path, Ok(about)) = (entry.path(), entry.metadata()) else { continue };
        let is_text = path.extension().is_some_and(|end| ends.iter().any(|known| end == *known));
        if about.is_dir() {
            walk(&path, ends, files);
        } else if is_text && about.len() <= MAX_SEED_BYTES {
            files.push(path);
        }
    }
}

/// Writes schemas, and grammars made of them, for their target: how many.
fn schemas(data: &Path, folder: &Path) -> Result<usize> {
    let own = br#"<s:schema xmlns:s="http://www.w3.org/2001/XMLSchema"><s:element name="a">
<s:complexType><s:choice maxOccurs="unbounded"><s:element name="b" type="s:int"/><s:any/></s:choice>
<s:attribute name="c" use="required"/><s:anyAttribute/></s:complexType></s:element></s:schema>"#;
    let mut found = vec![own.to_vec()];
    collect(data, &["xsd"], &mut found);
    let folder = folder.join("codec_schema");
    fs::create_dir_all(&folder)?;
    for (at, bytes) in found.iter().enumerate() {
        let document = codec::exi::schema::Document { location: "a.xsd", bytes };
        let limits = codec::Limits::default();
        let schema = codec::exi::Schema::parse(&[document], &mut |_, _| None, &limits);
        let made = schema.and_then(|schema| schema.grammars(&Default::default(), &limits));
        if let Ok(grammars) = made {
            let bytes = [&[1][..], &grammars.to_bytes()].concat();
            fs::write(folder.join(format!("seed-grammars-{at:04}")), bytes)?;
        }
        let head = [[0], [2], [4], [12]][at % 4];
        fs::write(folder.join(format!("seed-schema-{at:04}")), [&head[..], bytes].concat())?;
    }
    Ok(found.len())
}

/// Writes the seeds of one codec, streams for its decoder and messages for its encoder: how many.
fn seed(folder: &Path, codec: &dyn Codec, messages: &[Vec<u8>]) -> Result<usize> {
    let name = codec.name().replace('-', "_");
    let put = |way: &str, at: usize, bytes: &[u8]| {
        let folder = folder.join(format!("codec_{name}_{way}"));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("seed-{at:04}")), bytes)
    };
    let mut taken = 0;
    for (at, message) in messages.iter().enumerate() {
        let head = HEADS[at % HEADS.len()];
        let input = [&head[..], message].concat();
        let Some((settings, message)) = through::settings(codec.name(), &input) else { continue };
        let Ok(coded) = settings.encode(codec.name(), message) else { continue };
        put("encode", at, &input)?;
        put("decode", at, &[&head[..], &coded].concat())?;
        taken += 1;
    }
    Ok(taken)
}
