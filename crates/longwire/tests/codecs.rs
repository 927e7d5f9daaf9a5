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

/// Messages of one service, as files.
fn samples(folder: &std::path::Path) -> Vec<String> {
    std::fs::create_dir_all(folder).unwrap();
    let write = |at: usize| {
        let text = format!(
            "<track xmlns='urn:example:track' id='{at}'><unit>ALPHA-{}</unit><lat>{}</lat>\
             <symbol>friendly ground unit infantry</symbol></track>",
            at % 7,
            at * 7919 % 90_001
        );
        let path = folder.join(format!("{at}.xml"));
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    (0..40).map(write).collect()
}

#[test]
fn a_trained_dictionary_codes_other_messages_and_a_wrong_one_is_refused() {
    let folder = std::env::temp_dir().join(format!("longwire-train-{}", std::process::id()));
    let samples = samples(&folder);
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (right, wrong) = (path("right"), path("wrong"));
    for (dictionary, from) in [(&right, 1..20), (&wrong, 20..40)] {
        let mut arguments = vec!["train", "--size", "1 KiB", "--json", "--out", dictionary];
        arguments.extend(samples[from].iter().map(String::as_str));
        let output = run(&arguments, b"");
        assert!(output.status.success(), "{}", error(&output));
        let facts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(facts["bytes"].as_u64().unwrap() <= 1024 && facts["sha256"].is_string());
    }
    let message = std::fs::read(&samples[0]).unwrap();
    for codec in codecs().iter().filter(|codec| codec["needs"] == "dictionary") {
        let name = codec["name"].as_str().unwrap();
        let code = |verb, dictionary: &str, input: &[u8]| {
            run(&[verb, "--codec", name, "--dictionary", dictionary], input)
        };
        let coded = code("encode", &right, &message);
        assert!(coded.status.success(), "{name}: {}", error(&coded));
        assert!(coded.stdout.len() * 3 < message.len() * 2, "{name}: {}", coded.stdout.len());
        assert!(code("decode", &right, &coded.stdout).stdout == message, "{name}");
        let refused = code("decode", &wrong, &coded.stdout);
        assert_eq!(refused.status.code(), Some(1), "{name}: {}", error(&refused));
        assert!(refused.stdout.is_empty());
        let without = run(&["encode", "--codec", name], &message);
        assert_eq!(without.status.code(), Some(2), "{name}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_schema_makes_exi_smaller_and_its_import_is_found_beside_it() {
    let folder = std::env::temp_dir().join(format!("longwire-schema-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let schema = |text: &str| {
        format!("<s:schema xmlns:s='http://www.w3.org/2001/XMLSchema' {text}</s:schema>")
    };
    let main = schema(
        "targetNamespace='urn:a' xmlns:b='urn:b' elementFormDefault='qualified'>\
         <s:import namespace='urn:b' schemaLocation='b.xsd'/><s:element name='a'><s:complexType>\
         <s:sequence><s:element name='n' type='b:count' maxOccurs='unbounded'/></s:sequence>\
         </s:complexType></s:element>",
    );
    let imported = schema(
        "targetNamespace='urn:b'><s:simpleType name='count'><s:restriction base='s:int'>\
         <s:minInclusive value='0'/><s:maxInclusive value='9'/></s:restriction></s:simpleType>",
    );
    let path = folder.join("a.xsd");
    std::fs::write(&path, main).unwrap();
    std::fs::write(folder.join("b.xsd"), imported).unwrap();
    let path = path.to_str().unwrap();
    let message = b"<a xmlns='urn:a'><n>1</n><n>9</n><n>3</n></a>";
    let options = ["--codec", "exi", "--schema", path, "--strict"];
    let coded = run(&[&["encode"][..], &options].concat(), message);
    assert!(coded.status.success(), "{}", error(&coded));
    let plain = run(&["encode", "--codec", "exi"], message).stdout;
    assert!(coded.stdout.len() < 6 && plain.len() > 15, "{} {}", coded.stdout.len(), plain.len());
    let decoded = run(&[&["decode"][..], &options].concat(), &coded.stdout);
    assert!(decoded.status.success(), "{}", error(&decoded));
    let text = String::from_utf8(decoded.stdout).unwrap();
    assert!(text.contains(">9<") && text.contains("urn:a"), "{text}");
    let missing = run(&["encode", "--codec", "exi", "--schema", "no-such.xsd"], message);
    assert_eq!(missing.status.code(), Some(1));
    std::fs::remove_dir_all(&folder).unwrap();
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
        (&["encode", "--codec", "exi", "--canonical", "--header", "cookie"], "leave out one"),
        (&["encode", "--codec", "exi", "--utc-time"], "--canonical"),
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

/// EXI Profile §4: the parameters shape the stream, and its header says them.
#[test]
fn parameters_of_the_exi_profile_are_options() {
    let row = |at| format!("<row{at} kind='a'><name>ALPHA</name></row{at}>");
    let message = format!("<rows>{}</rows>", (0..9).map(row).collect::<String>());
    let with = |options: &[&str]| {
        let arguments = [&["encode", "--codec", "exi", "--header", "options"], options].concat();
        let coded = run(&arguments, message.as_bytes());
        assert!(coded.status.success(), "{}", error(&coded));
        // The header says it: reading takes no options.
        let decoded = run(&["decode", "--codec", "exi"], &coded.stdout);
        assert!(decoded.status.success(), "{}", error(&decoded));
        assert_eq!(String::from_utf8(decoded.stdout).unwrap(), message.replace('\'', "\""));
        coded.stdout
    };
    let plain = with(&[]);
    for (option, value) in [
        ("--profile-local-value-partitions", "false"),
        ("--profile-built-in-element-grammars", "2"),
        ("--profile-built-in-productions", "2"),
    ] {
        assert!(with(&[option, value]) != plain, "{option}");
        let refused = run(&["encode", "--codec", "zstd", option, value], b"");
        assert_eq!(refused.status.code(), Some(2), "{option}: {}", error(&refused));
    }
}

#[test]
fn bad_input_is_one_line_and_status_1() {
    let coded = run(&["encode", "--codec", "zstd"], &message()).stdout;
    let cut = &coded[..coded.len() - 1];
    let cases: &[(&[&str], &[u8], &str)] = &[
        (&["decode", "--codec", "zstd"], b"not zstd", "zstd: at byte 0: "),
        (&["decode", "--codec", "zstd"], cut, "the input ends early"),
        (&["decode", "--codec", "deflate"], b"", "the input ends early"),
        (&["decode", "--codec", "zstd", "--max-output", "100 B"], &coded, "output_bytes"),
        (&["encode", "--codec", "identity", "--max-output", "3 B"], b"four", "--max-output"),
        (&["encode", "--codec", "identity", "--max-output", "3"], b"four", "--max-output"),
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
