//! Captures of other people's clients and brokers: found by `$LONGWIRE_DATA`, read and not copied.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use bytes::BytesMut;

use super::super::*;
use super::{MAX_PACKET_BYTES, bytes_of};

/// One direction of a connection: the addresses and ports it is from and to.
type Way = [(Vec<u8>, usize); 2];
/// Segments of it, by sequence number.
type Segments = BTreeMap<u32, Vec<u8>>;

fn le(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte))
}

fn be(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |value, byte| value << 8 | usize::from(*byte))
}

/// The packets of a capture of either format, from their Ethernet header on.
fn frames_of(file: &[u8]) -> Vec<&[u8]> {
    let (mut frames, mut at) = (Vec::new(), 0);
    let is_new = file.starts_with(b"\x0a\x0d\x0d\x0a");
    if !is_new {
        at = 24;
    }
    while at + 16 <= file.len() {
        if is_new {
            // An Enhanced Packet Block has the packet behind 28 bytes.
            if le(&file[at..at + 4]) == 6 {
                frames.push(&file[at + 28..at + 28 + le(&file[at + 20..at + 24])]);
            }
            at += le(&file[at + 4..at + 8]);
        } else {
            let len = le(&file[at + 8..at + 12]);
            frames.push(&file[at + 16..at + 16 + len]);
            at += 16 + len;
        }
    }
    frames
}

/// The segment of TCP in a frame, with the addresses it is from and to.
fn segment(frame: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let packet = &frame[14..];
    match frame[12..14] {
        [0x08, 0x00] if packet[9] == 6 => {
            let segment = &packet[usize::from(packet[0] & 15) * 4..be(&packet[2..4])];
            Some((&packet[12..16], &packet[16..20], segment))
        }
        [0x86, 0xdd] if packet[6] == 6 => {
            let segment = &packet[40..40 + be(&packet[4..6])];
            Some((&packet[8..24], &packet[24..40], segment))
        }
        _ => None,
    }
}

/// What went which way over TCP.
fn ways(file: &[u8]) -> BTreeMap<Way, Segments> {
    let mut ways: BTreeMap<Way, Segments> = BTreeMap::new();
    for (source, destination, segment) in frames_of(file).into_iter().filter_map(segment) {
        let payload = &segment[usize::from(segment[12] >> 4) * 4..];
        let (from, to) = (be(&segment[..2]), be(&segment[2..4]));
        if payload.is_empty() || from != 1883 && to != 1883 {
            continue;
        }
        let way = [(source.to_vec(), from), (destination.to_vec(), to)];
        let sequence = u32::try_from(be(&segment[4..8])).unwrap();
        ways.entry(way).or_default().insert(sequence, payload.to_vec());
    }
    ways
}

/// What was read of a file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    packets: usize,
    versions: BTreeSet<Version>,
    refused: Vec<(u8, Reason)>,
    /// Bytes at the end of a direction that are no whole packet.
    left_bytes: usize,
}

/// Reads a stream; a broker's, which names no version, as `version`.
fn read(stream: &[u8], version: &mut Version, seen: &mut Seen) {
    let mut input = BytesMut::from(stream);
    while let Ok(Some(header)) = frame(&input, MAX_PACKET_BYTES) {
        if input.len() < header.packet_len() {
            break;
        }
        let bytes = input.split_to(header.packet_len()).freeze();
        let packet = match decode(*version, header.first, bytes.slice(header.header_len..)) {
            Ok(packet) => packet,
            Err(refused) => {
                seen.refused.push((header.first, refused.reason));
                continue;
            }
        };
        if let Packet::Connect(connect) = &packet {
            *version = connect.version;
        }
        seen.versions.insert(*version);
        seen.packets += 1;
        // A DISCONNECT may say Success where it need not say anything.
        if bytes[..] != *b"\xe0\x01\x00" {
            assert_eq!(bytes_of(*version, &packet), bytes, "{packet:?}");
        }
    }
    if let Err(refused) = frame(&input, MAX_PACKET_BYTES) {
        seen.refused.push((input[0], refused.reason));
    }
    seen.left_bytes += input.len();
}

fn seen_in(path: &Path) -> Seen {
    let file = fs::read(path).unwrap();
    let ways = ways(&file);
    let mut seen = Seen::default();
    for (way, segments) in &ways {
        // What clients send comes first, since they name the version.
        if way[1].1 != 1883 {
            continue;
        }
        let stream = segments.values().flatten().copied().collect::<Vec<u8>>();
        let answers = ways.get(&[way[1].clone(), way[0].clone()]);
        let answers = answers.into_iter().flat_map(BTreeMap::values).flatten().copied();
        let answers = answers.collect::<Vec<u8>>();
        // Where nobody names it, the length of the CONNACK does.
        let is_v5 = answers.len() > 2 && answers[0] == 0x20 && answers[1] != 2;
        let mut version = if is_v5 { Version::V5 } else { Version::V311 };
        read(&stream, &mut version, &mut seen);
        read(&answers, &mut version, &mut seen);
    }
    seen
}

#[test]
fn captures_are_read_and_written_as_they_were() {
    let folder = std::env::var_os("LONGWIRE_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let folder = folder.join("pubsub_coap");
    let files = ["mqtt_http2_suricata", "ndpi"].into_iter().flat_map(|name| {
        let entries = fs::read_dir(folder.join(name)).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("mqtt") && name.ends_with(".pcap")
        })
    });
    let (mut total, mut versions, mut count) = (0, BTreeSet::new(), 0);
    for path in files {
        let seen = seen_in(&path);
        println!("{}: {seen:?}", path.display());
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let refused: &[(u8, Reason)] = match &name[..] {
            "mqtt-events-unassigned-msgtype__input.pcap" => &[(0, Reason::MALFORMED_PACKET)],
            // Their will and their message have the Payload Format Indicators 144 and 88.
            "mqtt5-pub-mosquittoprops__input.pcap" => {
                &[(0x10, Reason::PROTOCOL_ERROR), (0x32, Reason::PROTOCOL_ERROR)]
            }
            "mqtt5-sub-mosquittoprops__input.pcap" => &[(0x10, Reason::PROTOCOL_ERROR)],
            _ => &[],
        };
        assert_eq!(seen.refused, refused, "{name}");
        total += seen.packets;
        versions.extend(seen.versions);
        count += 1;
    }
    if count == 0 {
        println!("the captures are not there: 22 files left out");
        return;
    }
    println!("{total} packets of {count} files");
    assert_eq!((count, versions.len()), (22, 3));
    assert!(total > 100);
}
