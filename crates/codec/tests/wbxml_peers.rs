//! Our WBXML read by programs of others; run by `interop/libwbxml/check`, which names a folder for
//! files by `$LONGWIRE_WBXML_PEERS`. Without it the tests say so and pass.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "common/collapsed.rs"]
mod collapsed;
mod infoset;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use collapsed::collapsed;
use infoset::{Rules, difference};
use longwire_codec::Limits;
use longwire_codec::wbxml::{Settings, TokenTable, decode, encode, tables};
use longwire_codec::xml::{Event, Reader, to_utf8};

/// What stays of a document on its way through a program that treats white space in its own way.
const KEPT: Rules = Rules { comments: false, ..Rules::ELEMENTS };
/// libwbxml 0.11.8 refuses ours, and it is not known why.
const REFUSED: &str = "channel12/channel-001.xml";
/// Documents of one folder that tshark gets: it starts slowly.
const TSHARK_DOCUMENTS: usize = 12;

fn work() -> Option<PathBuf> {
    let work = std::env::var_os("LONGWIRE_WBXML_PEERS").map(PathBuf::from);
    if work.is_none() {
        println!("left out: $LONGWIRE_WBXML_PEERS names no folder");
    }
    work
}

fn data() -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    std::env::var_os("LONGWIRE_DATA").map_or(default, PathBuf::from)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else {
        println!("left out: {} is not there", folder.display());
        return found;
    };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "xml") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn same(expected: &str, actual: &str) -> Result<(), String> {
    // `$(x)` is `$(x:noesc)` where nothing else is said (WAP-191 §10.3.2).
    let collapsed = |text: &str| {
        let text = collapsed(text).map_err(|error| error.to_string());
        text.map(|text| text.replace(":noesc)", ")"))
    };
    match difference(&collapsed(expected)?, &collapsed(actual)?, &KEPT) {
        None => Ok(()),
        Some(what) => Err(what),
    }
}

/// How libwbxml calls the types that a stream's header does not tell.
fn language(folder: &str) -> Option<(&'static str, &'static str)> {
    match folder {
        "activesync" => Some(("ACTIVESYNC", "ActiveSync, namespaces with a colon")),
        "airsync" => Some(("AIRSYNC", "AirSync")),
        "ota" => Some(("OTA", "OTA")),
        _ => None,
    }
}

fn run(program: &str, arguments: &[&str], input: &[u8], work: &Path) -> Option<Vec<u8>> {
    let (from, to) = (work.join("peer-in"), work.join("peer-out"));
    fs::write(&from, input).unwrap();
    let _ = fs::remove_file(&to);
    let output = Command::new(program).args(arguments).arg("-o").arg(&to).arg(&from).output();
    output.unwrap().status.success().then(|| fs::read(&to).ok()).flatten()
}

/// What libwbxml makes of a stream.
fn to_xml(stream: &[u8], folder: &str, work: &Path) -> Option<String> {
    let mut arguments = vec!["-k", "-m", "0"];
    if let Some((name, _)) = language(folder) {
        arguments.extend(["-l", name]);
    }
    let xml = run("wbxml2xml", &arguments, stream, work)?;
    to_utf8(&xml, &Limits::default()).ok().map(|text| text.into_owned())
}

#[test]
fn libwbxml_reads_what_we_write_and_we_what_it_writes() {
    let Some(work) = work() else { return };
    let (mut documents, mut read, mut written, mut both) = (0, 0, 0, 0);
    let (mut ours, mut theirs) = (0, 0);
    let mut wrong = Vec::new();
    for path in files(&data().join("wbxml")) {
        let folder = path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        let of_folder = language(&folder).map(|(_, name)| name);
        let mut table = tables().iter().find(|table| of_folder == Some(table.name.as_str()));
        if !path.to_string_lossy().contains("libwbxml") && folder == "activesync" {
            table = None;
        }
        let settings = Settings { table, keep_white_space: false, ..Settings::default() };
        let document = fs::read(&path).unwrap();
        let Ok(text) = to_utf8(&document, &Limits::default()) else { continue };
        let Ok(stream) = encode(&document, &settings, &Limits::default()) else { continue };
        documents += 1;
        let name = format!("{folder}/{}", path.file_name().unwrap().to_string_lossy());
        // What libwbxml cannot bring through itself tells nothing about our stream.
        let their_stream = run("xml2wbxml", &[], &document, &work);
        let own = their_stream.as_ref().and_then(|stream| to_xml(stream, &folder, &work));
        let fit = own.as_ref().is_some_and(|own| same(&text, own).is_ok());
        let through = to_xml(&stream, &folder, &work).map(|xml| same(&text, &xml));
        match through {
            Some(Ok(())) => read += 1,
            Some(Err(what)) if fit => wrong.push(format!("{name}, read by libwbxml: {what}")),
            None if fit && name != REFUSED => wrong.push(format!("{name}: refused by libwbxml")),
            _ => {}
        }
        let Some(their_stream) = their_stream.filter(|_| fit) else { continue };
        written += 1;
        (ours, theirs) = (ours + stream.len(), theirs + their_stream.len());
        match back(&their_stream, table).and_then(|xml| same(&text, &xml)) {
            Ok(()) => both += 1,
            Err(what) => wrong.push(format!("{name}, written by libwbxml: {what}")),
        }
    }
    println!(
        "| documents | ours read by libwbxml | its own good | of these read by us | bytes | its |"
    );
    println!("| {documents} | {read} | {written} | {both} | {ours} | {theirs} |");
    wrong.iter().for_each(|line| println!("{line}"));
    assert!(wrong.is_empty(), "{}", wrong.len());
}

fn back(stream: &[u8], table: Option<&TokenTable>) -> Result<String, String> {
    let settings = Settings { table, ..Settings::default() };
    let xml = decode(stream, &settings, &Limits::default()).map_err(|error| error.to_string())?;
    String::from_utf8(xml).map_err(|error| error.to_string())
}

/// A capture of one packet with an answer over HTTP that is a WBXML document.
fn capture(stream: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.wap.wmlc\r\nContent-Length: {}\r\n\r\n",
        stream.len()
    );
    let payload = [head.as_bytes(), stream].concat();
    let mut packet = vec![0x45, 0];
    let len = u16::try_from(40 + payload.len()).unwrap();
    packet.extend(len.to_be_bytes());
    packet.extend([0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend([0, 80, 0x9c, 0x40, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 0x20, 0, 0, 0, 0, 0]);
    packet.extend(payload);
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 1 << 18, 101, 0, 0] {
        file.extend(word.to_le_bytes());
    }
    let len = u32::from(len);
    file.extend(len.to_le_bytes());
    file.extend(len.to_le_bytes());
    file.extend(packet);
    file
}

/// The names of start tags that tshark shows, in their order.
fn shown(output: &str) -> Vec<String> {
    let rows = output.lines().filter_map(|line| {
        let columns: Vec<_> = line.splitn(5, '|').collect();
        (columns.len() == 5 && columns[1].trim() == "Tag").then(|| columns[4].trim())
    });
    let starts = rows.filter_map(|shown| shown.strip_prefix('<').filter(|s| !s.starts_with('/')));
    let name = |start: &str| {
        let end = start.find([' ', '>', '/']).unwrap_or(start.len());
        start[..end].to_owned()
    };
    starts.map(name).collect()
}

fn names(document: &str) -> Vec<String> {
    let mut reader = Reader::of(document, &Limits::default());
    let mut names = Vec::new();
    loop {
        match reader.next().unwrap() {
            Event::Start(_) => names.push(reader.scanner().written().to_owned()),
            Event::Eof => return names,
            _ => {}
        }
    }
}

#[test]
fn tshark_reads_our_literal_streams() {
    let Some(work) = work() else { return };
    let (mut read, mut wrong) = (0, Vec::new());
    let literal = TokenTable::parse("name none\nnumber 0x1\n").unwrap();
    let settings = Settings { table: Some(&literal), ..Settings::default() };
    for folder in ["xml_compression", "friendly_force", "soap/onvif_serverMockup", "wbxml"] {
        for path in files(&data().join(folder)).into_iter().take(TSHARK_DOCUMENTS) {
            let document = fs::read(&path).unwrap();
            let Ok(stream) = encode(&document, &settings, &Limits::default()) else { continue };
            // One packet holds it.
            if stream.len() > 60_000 {
                continue;
            }
            let text = to_utf8(&document, &Limits::default()).unwrap();
            let file = work.join("literal.pcap");
            fs::write(&file, capture(&stream)).unwrap();
            let output = Command::new("tshark").arg("-V").arg("-r").arg(&file).output().unwrap();
            let output = String::from_utf8_lossy(&output.stdout);
            let (shown, expected) = (shown(&output), names(&text));
            let malformed = output.contains("Malformed");
            if shown == expected && !malformed {
                read += 1;
            } else {
                let (found, name) = (shown.len(), path.display());
                wrong.push(format!("{name}: {found} of {} tags, {malformed}", expected.len()));
            }
        }
    }
    println!("tshark reads {read} of our literal streams");
    wrong.iter().for_each(|line| println!("{line}"));
    assert!(wrong.is_empty(), "{}", wrong.len());
}
