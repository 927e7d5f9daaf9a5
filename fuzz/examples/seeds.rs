//! Seeds for the fuzz targets of the codecs: messages made here and, where it is, real data, and
//! what each codec makes of them; and for that of what policies have learned.
//!
//! `scripts/fuzz` calls it with the folder that has one folder per target.

#[path = "../through.rs"]
mod through;

use std::fs;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};

use codec::{CODECS, Codec, Needs};
use decide::Arm;
use decide::arm::{Prior, Speed};
use decide::learned::Learned;
use decide::models::{Models, Seen, Subject};
use decide::nam::Nam;
use decide::policy::{Observation, Policy};

/// Files of real data that become seeds: each kind a few, as the fuzzer does the rest.
const MAX_FILES: usize = 60;
/// Longest seed, in bytes: short inputs run fast.
const MAX_SEED_BYTES: u64 = 8 << 10;
/// Bytes before the input that choose settings (see `fuzz/through.rs`): none kept, all kept.
const HEADS: [[u8; 2]; 4] = [[0, 0], [0x3e, 1], [0, 2], [0x3e, 3]];
/// The same with the schema there, default and strict.
const SCHEMA_HEADS: [[u8; 2]; 8] =
    [[0, 4], [0x80, 4], [0x3e, 5], [0x80, 5], [0, 6], [0xc0, 6], [0x12, 7], [0x80, 7]];
/// Documents of that schema.
const OF_SCHEMA: [&[u8]; 3] = [
    br#"<r p="7" q="x"><i>-12</i><u>300</u><b>true</b><f>-1.5E3</f><t>2026-11-21T19:00:00.25Z</t>
<d>2026-11-21</d><h>00FF</h><x>AAEC</x><c>blue</c><k>A1B2</k><n>-3</n><e>red</e><l>1.5 -2</l></r>"#,
    br#"<r q=""><r q="x"><e>12</e><a><u/>y</a></r><b
xmlns:s="http://www.w3.org/2001/XMLSchema-instance" s:nil="true"/><other/></r>"#,
    br#"<r q="x" xmlns:s="http://www.w3.org/2001/XMLSchema-instance" s:type="more"><z>end</z></r>"#,
];

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or("corpus".to_owned()));
    let mut messages = vec![
        b"<a/>".to_vec(),
        b"<p:a xmlns:p='urn:p' b=\"1 &lt; 2\"><c>text &#65;</c><!-- x --><?y z?></p:a>".to_vec(),
        br#"{"a":[1,-2.50,1e5,true,null,"\u00e9\n"],"a":{}}"#.to_vec(),
        b"to be, or not to be, to be, or not to be".to_vec(),
    ];
    let data = std::env::var("LONGWIRE_DATA").unwrap_or("../shared/data".to_owned());
    learned(&folder)?;
    println!("schema: {} schemas", schemas(Path::new(&data), &folder)?);
    let before = messages.len();
    collect(Path::new(&data), &["xml"], &mut messages);
    collect(Path::new(&data), &["json"], &mut messages);
    println!("{} seeds made here, {} from {data}", before, messages.len() - before);
    secrets(&folder, &messages)?;
    for &codec in CODECS.iter().filter(|codec| codec.number() != 0) {
        let taken = seed(&folder, codec, &messages)?;
        println!("{}: {taken} messages and their streams", codec.name());
        if taken == 0 {
            return Err(Error::other("its target would see nothing but refusals"));
        }
    }
    Ok(())
}

/// Writes what policies save, fresh and taught: chance does not find a head that fits its length.
fn learned(folder: &Path) -> Result<()> {
    let folder = folder.join("decide_state");
    fs::create_dir_all(&folder)?;
    let speed = Speed { fixed_s: 2e-5, per_byte_s: 1e-8 };
    let size = [-0.5, 0.9, 0.0, 0.0];
    let prior = |family| Prior { size, overhead_bytes: 12.0, encode: speed, decode: speed, family };
    let priors = vec![Prior::IDENTITY, prior("deflate"), prior("zstd")];
    let policies: [(&str, Box<dyn Policy>); 2] =
        [("learned", Box::new(Learned::new(Models::new(priors)))), ("nam", Box::new(Nam::new(3)))];
    for (name, mut policy) in policies {
        for taught in 0..4_u32 {
            let mut bytes = Vec::new();
            policy.save(&["identity", "deflate:6", "zstd:3"], &mut bytes);
            fs::write(folder.join(format!("seed-{name}-{taught}")), bytes)?;
            let (class, peer) = (taught.into(), taught.into());
            let subject = Subject { peer, class, bytes: 5e4, head_share: 0.3 };
            let arm = Arm(1 + taught as usize % 2);
            let seen = Seen { bytes: 9e3, encode_s: Some(1e-3), decode_s: Some(1e-4) };
            policy.observe(&Observation::Encoding { subject: &subject, arm, seen: &seen });
        }
    }
    Ok(())
}

/// Writes messages with secrets in them, and without.
fn secrets(folder: &Path, messages: &[Vec<u8>]) -> Result<()> {
    let own: [&[u8]; 4] = [
        b"<a><w:Password xmlns:w='u'>p</w:Password><h name='X' value='Basic dTpwYXNz'/></a>",
        b"<a u='https://u:p@h/?sig=1%3d2&amp;token=t'><!-- Cookie: c --><b>eyJhbGciOi.e30.</b></a>",
        br#"{"apiKey":"k","a":["\u0041uthorization: Bearer t",{"x":"https:\/\/u:p@h"}]}"#,
        br#"{"m":"-----BEGIN PRIVATE KEY-----","n":"<token>t</token>","access_token":{"b":[1]}}"#,
    ];
    let folder = folder.join("codec_secrets");
    fs::create_dir_all(&folder)?;
    for (at, message) in own.into_iter().chain(messages.iter().map(Vec::as_slice)).enumerate() {
        fs::write(folder.join(format!("seed-{at:04}")), message)?;
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
    let headed = messages.iter().zip(HEADS.iter().cycle());
    let headed = headed.map(|(message, head)| (head, message.as_slice()));
    let of_schema =
        OF_SCHEMA.iter().flat_map(|&one| SCHEMA_HEADS.iter().map(move |head| (head, one)));
    let of_schema = of_schema.filter(|_| codec.properties().needs == Needs::SchemaOptional);
    for (at, (head, message)) in headed.chain(of_schema).enumerate() {
        let input = [&head[..], message].concat();
        let Some((settings, message)) = through::settings(codec.name(), &input) else { continue };
        let Ok(coded) = settings.encode(codec.name(), message) else { continue };
        put("encode", at, &input)?;
        put("decode", at, &[&head[..], &coded].concat())?;
        taken += 1;
    }
    Ok(taken)
}
