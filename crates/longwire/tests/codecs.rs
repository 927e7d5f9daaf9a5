//! `longwire encode`, `decode`, `codecs` and `compare` as processes.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Tests.

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};

/// Runs the command with `input` at stdin.
fn run(arguments: &[&str], input: &[u8]) -> Output {
    through(Command::new(env!("CARGO_BIN_EXE_longwire")).args(arguments), input)
}

fn through(command: &mut Command, input: &[u8]) -> Output {
    let mut command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, input) = (command.stdin.take().unwrap(), input.to_vec());
    // It may end before it has read everything.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = command.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn error(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn message() -> Vec<u8> {
    let track = |at| format!("<track id='{at}'><lat>{}</lat></track>\n", at * 7919 % 90_001);
    format!("<tracks>{}</tracks>", (0..5000).map(track).collect::<String>()).into_bytes()
}

fn codecs() -> Vec<serde_json::Value> {
    let output = run(&["codecs", "--json"], b"");
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn bytes_come_back_through_every_codec_that_gives_them_back() {
    let message = message();
    for codec in codecs() {
        if codec["fidelity"] != "bytes" || codec["needs"] == "dictionary" {
            continue;
        }
        let name = codec["name"].as_str().unwrap();
        let encoded = run(&["encode", "--codec", name], &message);
        assert!(encoded.status.success(), "{name}: {}", error(&encoded));
        let decoded = run(&["decode", "--codec", name], &encoded.stdout);
        assert!(decoded.status.success(), "{name}: {}", error(&decoded));
        assert!(decoded.stdout == message, "{name}");
    }
}

/// What we write, gzip and zstd read, and the other way round.
#[test]
fn other_programs_read_it() {
    let message = message();
    for (codec, program) in [("deflate", "gzip"), ("zstd", "zstd")] {
        if Command::new(program).arg("--version").output().is_err() {
            println!("{program} is not here: 2 cases left out");
            continue;
        }
        let encoded = run(&["encode", "--codec", codec, "--level", "9"], &message).stdout;
        let theirs = through(Command::new(program).arg("-dc"), &encoded);
        assert!(theirs.stdout == message, "{program}: {}", error(&theirs));
        let encoded = through(Command::new(program).arg("-c"), &message).stdout;
        assert!(run(&["decode", "--codec", codec], &encoded).stdout == message, "{program}");
    }
}

#[test]
fn bad_use_is_one_line_and_status_2() {
    let cases: &[(&[&str], &str)] = &[
        (&["encode"], "--codec"),
        (&["encode", "--codec", "lzma"], "unknown codec 'lzma': one of identity, deflate, zstd"),
        (&["encode", "--codec", "zstd", "--level", "99"], "a number from -7 to 19"),
        (&["encode", "--codec", "identity", "--level", "1"], "--level makes no sense"),
        (&["encode", "--codec", "zstd", "--strict"], "--strict makes no sense"),
        (&["decode", "--codec", "zstd", "--alignment", "compression"], "--alignment makes no"),
        (&["encode", "--codec", "zstd", "--header", "cookie"], "--header makes no sense"),
        (&["encode", "--codec", "zstd", "--dictionary", "x"], "--dictionary makes no sense"),
        (&["decode", "--codec", "zstd", "--level", "3"], "unexpected argument '--level'"),
        (&["decode", "--codec", "zstd", "--max-output", "much"], "--max-output"),
        (&["compare"], "FILE"),
    ];
    for (arguments, says) in cases {
        let output = run(arguments, b"");
        let error = error(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(says), "{arguments:?}: {error}");
        assert_eq!(error.trim_end().lines().count(), 1, "{error}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn bad_input_is_one_line_and_status_1() {
    let coded = run(&["encode", "--codec", "zstd"], &message()).stdout;
    let cut = &coded[..coded.len() - 1];
    let cases: &[(&[&str], &[u8], &str)] = &[
        (&["decode", "--codec", "zstd"], b"not zstd", "zstd: corrupt input"),
        (&["decode", "--codec", "zstd"], cut, "the input ends early"),
        (&["decode", "--codec", "deflate"], b"", "the input ends early"),
        (&["decode", "--codec", "zstd", "--max-output", "100 B"], &coded, "output_bytes"),
        (&["encode", "--codec", "identity", "--max-output", "3 B"], b"four", "--max-output"),
        (&["compare", "no-such-file"], b"", "cannot read no-such-file"),
    ];
    for (arguments, input, says) in cases {
        let output = run(arguments, input);
        let error = error(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.contains(says), "{arguments:?}: {error}");
        assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    }
}

#[test]
fn compare_shows_every_codec_sorted_and_says_that_all_came_back() {
    let file = std::env::temp_dir().join(format!("longwire-compare-{}.xml", std::process::id()));
    std::fs::write(&file, message()).unwrap();
    let path = file.to_str().unwrap();
    let (table, json) = (run(&["compare", path], b""), run(&["compare", "--json", path], b""));
    std::fs::remove_file(&file).unwrap();
    assert!(table.status.success(), "{}", error(&table));
    assert!(String::from_utf8(table.stdout).unwrap().contains("identity"));
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let ways = json["codecs"].as_array().unwrap();
    let bytes: Vec<_> = ways.iter().map(|way| way["bytes"].as_u64().unwrap()).collect();
    assert!(bytes.is_sorted() && bytes.len() > 5);
    assert!(ways.iter().all(|way| way["broken"] == 0));
    for codec in codecs().iter().filter(|codec| codec["needs"] != "dictionary") {
        let for_xml = codec["media"].to_string().contains("*/*")
            || codec["media"].to_string().contains("xml");
        let shown = ways.iter().any(|way| way["codec"] == codec["name"]);
        assert_eq!(shown, for_xml, "{codec}");
    }
}

/// Codecs that stream keep their memory, however much comes through.
#[test]
fn a_long_stream_takes_little_memory() {
    let name = "zstd";
    let mut encoder = Command::new(env!("CARGO_BIN_EXE_longwire"))
        .args(["encode", "--codec", name])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = encoder.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut coded = Vec::new();
        stdout.read_to_end(&mut coded).map(|_| coded.len()).unwrap()
    });
    let (mut stdin, block) = (encoder.stdin.take().unwrap(), message());
    for _ in 0..300 {
        stdin.write_all(&block).unwrap();
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", encoder.id())).unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    let peak_kib: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    drop(stdin);
    assert!(encoder.wait().unwrap().success());
    let coded = reader.join().unwrap();
    println!("{name}: {} bytes to {coded}, peak {peak_kib} KiB", 300 * block.len());
    assert!(300 * block.len() > 50 << 20 && peak_kib < 40 << 10, "{peak_kib} KiB");
}
