//! What dictionaries are worth on messages that the project did not make: half of them teach, the
//! other half is coded, and every byte of the coded messages counts, frames included.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Tests.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use longwire_codec::Limits;
use longwire_codec::dictionary::rfc9842::{self, Form};
use longwire_codec::dictionary::{Coder, Dictionary, Entry, Method, Store, excerpt, gather, train};

/// Dictionaries are at most this long, or packed at most this long where that is said.
const BUDGET: usize = 16 << 10;
const MAX_MESSAGE: usize = 10_240;

fn data() -> PathBuf {
    std::env::var_os("LONGWIRE_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    )
}

fn collect(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, extension, found);
        } else if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
}

/// Messages under 10 KB, by name.
fn messages(folder: &str, extension: &str) -> Vec<Vec<u8>> {
    let mut paths = Vec::new();
    collect(&data().join(folder), extension, &mut paths);
    paths.sort();
    let all = paths.iter().filter_map(|path| fs::read(path).ok());
    all.filter(|message| message.len() < MAX_MESSAGE).collect()
}

/// What `messages` take, as a part of their length; each is decoded again.
fn share(dictionary: &Dictionary, method: Method, messages: &[&[u8]]) -> f64 {
    let begin = Instant::now();
    let mut coder = Coder::new(dictionary, method, None, &Limits::default()).unwrap();
    let primed = begin.elapsed();
    let (mut coded_bytes, mut bytes) = (0, 0);
    for message in messages {
        let coded = coder.encode(message).unwrap();
        assert_eq!(coder.decode(&coded).unwrap(), *message);
        coded_bytes += coded.len();
        bytes += message.len();
    }
    let share = coded_bytes as f64 / bytes as f64;
    let each = (begin.elapsed() - primed) / (2 * u32::try_from(messages.len()).unwrap_or(1)).max(1);
    println!(
        "    {method:?}: {:.2} % ({coded_bytes} of {bytes} bytes; reading the dictionary \
         {primed:.1?}, a message {each:.1?}, {} KiB held)",
        100.0 * share,
        coder.memory_bytes() >> 10
    );
    share
}

/// The best share over `splits` into halves, and what it was with which dictionary.
fn worst_of_halves(folder: &str, extension: &str) -> Option<f64> {
    let all = messages(folder, extension);
    if all.is_empty() {
        println!("{folder}: not there, 2 splits left out");
        return None;
    }
    let limits = Limits::default();
    let mut worst: f64 = 0.0;
    for odd in [0, 1] {
        let half = |which: usize| -> Vec<&[u8]> {
            all.iter().skip(which).step_by(2).map(Vec::as_slice).collect()
        };
        let (samples, rest) = (half(odd), half(1 - odd));
        println!("{folder}, {} messages teach, {} are coded", samples.len(), rest.len());
        let mut best: f64 = 1.0;
        for (name, dictionary) in [
            ("trained", train(&samples, BUDGET, &limits)),
            ("excerpt", excerpt(&samples, BUDGET, &limits)),
            ("gathered", gather(&samples, BUDGET, &limits)),
        ] {
            let dictionary = dictionary.unwrap();
            let entry = Entry { label: folder.to_owned(), dictionary: dictionary.clone() };
            let packed = Store { entries: vec![entry] }.encode().unwrap().len();
            println!("  {name}: {} bytes, packed {packed}", dictionary.content().len());
            for method in [Method::Deflate, Method::Zstd, Method::Brotli, Method::Mix] {
                best = best.min(share(&dictionary, method, &rest));
            }
        }
        worst = worst.max(best);
    }
    Some(worst)
}

#[test]
fn camera_messages_take_a_twentieth() {
    if let Some(share) = worst_of_halves("soap/onvif_serverMockup", "xml") {
        assert!(share <= 0.06, "{share}");
    }
}

#[test]
fn position_events_take_a_fifth() {
    if let Some(share) = worst_of_halves("friendly_force", "cot") {
        assert!(share <= 0.20, "{share}");
    }
}

/// Runs the command line of zstd with a dictionary; `None` where there is none.
fn zstd(arguments: &[&str], dictionary: &[u8], input: &[u8]) -> Option<Vec<u8>> {
    let name = format!("longwire-dictionary-{}-{}", std::process::id(), arguments.len());
    let path = std::env::temp_dir().join(name);
    fs::write(&path, dictionary).ok()?;
    let mut child = Command::new("zstd")
        .args(["-q", "-c", "-D"])
        .arg(&path)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take()?;
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().ok()?;
    writer.join().ok()?.ok()?;
    fs::remove_file(&path).ok()?;
    assert!(output.status.success());
    Some(output.stdout)
}

#[test]
fn the_command_line_of_zstd_reads_dcz_and_writes_it() {
    let limits = Limits::default();
    let dictionary = b"<position><lat>1.5</lat><lon>2.5</lon></position>".repeat(3);
    let message: Vec<u8> = (0..2000)
        .flat_map(|i| {
            format!("<position><lat>{i}</lat><lon>{}</lon></position>", i * 7).into_bytes()
        })
        .collect();
    let coded = rfc9842::encode(Form::Dcz, &dictionary, &message, None, &limits).unwrap();
    // The header is a skippable frame, so the whole stream is one of zstd's (RFC 9842 §5).
    let Some(read) = zstd(&["-d"], &dictionary, &coded) else {
        println!("zstd is not there: 2 checks left out");
        return;
    };
    assert_eq!(read, message);
    let frame = zstd(&["-9", "--check"], &dictionary, &message).unwrap();
    let stream = [&coded[..40], &frame].concat();
    assert_eq!(rfc9842::decode(Form::Dcz, &dictionary, &stream, &limits).unwrap(), message);
    let two = [&stream[..], &frame].concat();
    let twice = rfc9842::decode(Form::Dcz, &dictionary, &two, &limits).unwrap();
    assert_eq!(twice, message.repeat(2));
}
