//! Streams that other encoders made.
//!
//! The options of each are out of band: a table here for those collected by hand, a manifest beside
//! the streams for those that one program made.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::data::{self, Schemas};
use crate::infoset::{Rules, difference, wrapped};
use crate::options::{kept, options};

/// A stream, its document and what has to be known beside it.
struct Case {
    stream: PathBuf,
    xml: PathBuf,
    schema: Option<PathBuf>,
    words: String,
}

/// Folder; stream, document, schema (`-` for none), options. `*` stands for each alignment.
type Row = (&'static str, &'static str, &'static str, &'static str);

const OPENEXI: &[Row] = &[
    (
        "JTLM/publish100/publish100.*",
        "../../soap/jtlm_soap/publish100.xml",
        "../../soap/jtlm_soap/schemas/TLMComposite.xsd",
        "",
    ),
    (
        "NLM/catplussamp2006.*",
        "NLM/catplussamp2006.xml",
        "NLM/nlmcatalogrecord_060101.xsd",
        "strict",
    ),
    ("Ant/build-build.bitPacked", "Ant/build-build.xml", "-", ""),
    (
        "DataStore/instance/1000BooleanStore.bitPacked",
        "DataStore/instance/1000BooleanStore.xml",
        "DataStore/DataStore.xsd",
        "strict",
    ),
    (
        "FixML-4.4/AllocationInstructionAck.exi_vi_openexi.bitPacked",
        "FixML-4.4/AllocationInstructionAck.xml",
        "FixML-4.4/schema/fixml-main-4-4.xsd",
        "strict",
    ),
    ("@sequence-01.*", "@sequence-01.xml", "@../acceptance.xsd", "strict"),
    ("@all-03.bitPacked", "@all-03.xml", "@../acceptance.xsd", "strict"),
    ("@complexType-05.byteAligned", "@complexType-05.xml", "@../acceptance.xsd", "strict"),
    ("@document-01.byteAligned", "@document-01.xml", "@document.xsd", "prefixes"),
    ("@fragment-03.byteAligned", "@fragment-03.xml", "@fragment-b.xsd", "pis,fragment"),
    ("@fragment-04.byteAligned", "@fragment-04.xml", "@fragment-c.xsd", "pis,fragment"),
    ("@elementFragment-02b.byteAligned", "@elementFragment-02b.xml", "@elementFragment.xsd", EF),
    ("@elementFragment-03.bitPacked", "@elementFragment-03.xml", "@elementFragment.xsd", EF),
    ("@elementFragment-04.byteAligned", "@elementFragment-04.xml", "@elementFragment.xsd", EF),
    (
        "interop/datatypes/enumeration/enumeration-valid-04.byteAligned",
        "interop/datatypes/enumeration/enumeration-valid-04.xml",
        "interop/datatypes/enumeration/enumeration.xsd",
        "strict",
    ),
    (
        "perversion/duplicateLocalNames_01.byteAligned",
        "perversion/duplicateLocalNames_01.xml",
        "-",
        "",
    ),
    (
        "perversion/duplicateURIsLocalNames_01.byteAligned",
        "perversion/duplicateURIsLocalNames_01.xml",
        "-",
        "",
    ),
    (
        "compression/emptyBlock_01.compress",
        "compression/emptyBlock_01.xml",
        "compression/emptyBlock_01.xsd",
        "strict,block-size=1",
    ),
    (
        "encoding/headerOptions-01.*",
        "encoding/headerOptions-01.xml",
        "encoding/headerOptions-01.xsd",
        "",
    ),
    ("profile/nestedA_01_profile.*", "profile/nestedA_01.xml", "=", PROFILE),
    ("profile/xsiType-02_profile.*", "profile/xsiType-02.xml", "=", PROFILE),
];
/// Where most of the interoperability cases are.
const PRODUCTIONS: &str = "interop/schemaInformedGrammar/declaredProductions/";
const EF: &str = "strict,fragment";
const PROFILE: &str = "strict,built-in-grammars-max=1";

const EXIP: &[Row] = &[
    ("Ant/build-build.bitPacked", "Ant/build-build.xml", "-", ""),
    ("EmptyTypes/emptyTypeTest-def.exi", "EmptyTypes/emptyTypeTest.xml", EMPTY_TYPES, ""),
    ("EmptyTypes/emptyTypeTest-strict.exi", "EmptyTypes/emptyTypeTest.xml", EMPTY_TYPES, "strict"),
    ("testStates/acceptance_a_01.exi", "testStates/acceptance_a_01.xml", ACCEPTANCE, ""),
    ("testStates/acceptance_a_01a.exi", "testStates/acceptance_a_01a.xml", ACCEPTANCE, ""),
    ("#builtInElement-01.exi", "#builtInElement-01.xml", BUILT_IN, NO_LEARNING),
    ("#builtInElement-02.exi", "#builtInElement-02.xml", BUILT_IN, NO_LEARNING),
    ("#builtInElement-03.exi", "#builtInElement-03.xml", BUILT_IN, NO_LEARNING),
    ("#builtInElement-04.exi", "#builtInElement-04.xml", BUILT_IN, NO_LEARNING),
    ("#builtInElement-05.exi", "#builtInElement-05.xml", BUILT_IN, NO_LEARNING),
    ("#builtInElement-23.exi", "#builtInElement-23.xml", BUILT_IN, NO_LEARNING),
];
const EMPTY_TYPES: &str = "EmptyTypes/emptyTypeSchema.xsd";
const ACCEPTANCE: &str = "testStates/acceptance.xsd";
const BUILT_IN: &str = "Profile/input/noLearning/builtInElement.xsd";
const NO_LEARNING: &str = "built-in-grammars-max=0,built-in-productions-max=0";

/// Streams that have to be refused, without a schema.
const REFUSED: [&str; 2] = ["exip/SchemaLess-TotallyWrong.exi", "exip/SchemaLess-WrongBody.exi"];

/// Streams that are not what their document says, and why.
const EXCEPTIONS: [(&str, &str); 3] = [
    ("indexed-schema-xsd.exi", NEEDS_XSD),
    ("builtInElement-schema-xsd.exi", NEEDS_XSD),
    ("exipd-test-schema.exi", NEEDS_XSD),
];
const NEEDS_XSD: &str = "coded with the schema of schemas, which is not among the data";

/// Streams whose documents are not there: each has to be read as a document at least.
const WITHOUT_DOCUMENT: [(&str, &str); 2] =
    [("exip/Schema.exi", "-"), ("exip/examples/simpleDecoding/exipd-test.exi", "exipd-test.xsd")];

/// What an alignment is called at the end of a name.
const SUFFIXES: [(&str, &str); 4] = [
    ("bitPacked", "bit-packed"),
    ("byteAligned", "byte-packed"),
    ("preCompress", "pre-compression"),
    ("compress", "compression"),
];

fn cases(folder: &Path, rows: &[Row]) -> Vec<Case> {
    let mut cases = Vec::new();
    for (stream, xml, schema, words) in rows {
        let named = |name: &str| name.replacen('@', PRODUCTIONS, 1);
        let wild = stream.strip_suffix('*');
        let suffixes = SUFFIXES.iter().filter(|(suffix, _)| match wild {
            Some(_) => true,
            None => stream.ends_with(&format!(".{suffix}")),
        });
        let mut streams: Vec<(String, &str)> = suffixes
            .map(|(suffix, word)| {
                let stem = wild.map_or_else(|| (*stream).to_string(), |w| format!("{w}{suffix}"));
                (stem, *word)
            })
            .collect();
        if streams.is_empty() {
            streams.push(((*stream).to_string(), "bit-packed"));
        }
        for (stream, alignment) in streams {
            let in_profile =
                |of: &str, name: &str| name.replacen('#', &format!("Profile/{of}/noLearning/"), 1);
            cases.push(Case {
                stream: folder.join(named(&in_profile("EXIficient", &stream))),
                xml: folder.join(named(&in_profile("input", xml))),
                schema: (*schema != "-").then(|| folder.join(named(schema))),
                words: format!("{alignment},{words}"),
            });
        }
    }
    cases
}

/// Streams of schemas: each holds the document of its neighbour with another ending.
fn schema_cases(folder: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.to_string_lossy();
            let stem = ["-xsd.exi", ".exs", "-schema.exi", "schema_demo.exi"]
                .iter()
                .find_map(|ending| name.strip_suffix(ending));
            let Some(stem) = stem else { continue };
            let stem = if stem.ends_with('/') { format!("{stem}schema_demo") } else { stem.into() };
            let xml = [format!("{stem}.xsd"), stem.replace("-schema", "") + ".xsd"]
                .into_iter()
                .map(PathBuf::from)
                .find(|path| path.exists());
            if let Some(xml) = xml {
                cases.push(Case { stream: path, xml, schema: None, words: String::new() });
            }
        }
    }
    cases.sort_by(|a, b| a.stream.cmp(&b.stream));
    cases
}

/// What the manifest beside generated streams says of them.
fn generated_cases(root: &Path) -> Vec<Case> {
    let folder = root.join("exi/exificient_generated");
    let Ok(text) = fs::read_to_string(folder.join("manifest.json")) else { return Vec::new() };
    let manifest: serde_json::Value = serde_json::from_str(&text).expect("a manifest");
    let case = |case: &serde_json::Value| {
        let path = |key: &str| case[key].as_str().map(|path| root.join(path));
        let words: Vec<&str> = case["options"].as_array()?.iter().map(word).collect();
        Some(Case {
            stream: folder.join(case["out"].as_str()?),
            xml: path("xml")?,
            schema: path("xsd"),
            words: words.join(","),
        })
    };
    manifest["cases"].as_array().into_iter().flatten().filter_map(case).collect()
}

/// Our word for an option of the program that made the streams.
fn word(option: &serde_json::Value) -> &'static str {
    match option.as_str().unwrap_or_default() {
        "-bytePacked" => "byte-packed",
        "-preCompression" => "pre-compression",
        "-compression" => "compression",
        "-strict" => "strict",
        "-preservePrefixes" => "prefixes",
        "-preserveComments" => "comments",
        "-preservePIs" => "pis",
        "-preserveDTDs" => "dtd",
        "-preserveLexicalValues" => "lexical",
        "-includeCookie" => "cookie",
        "-includeOptions" => "options",
        other => panic!("the manifest has an option {other} that this test does not know"),
    }
}

/// Why a stream does not say what its document does; `None`: it does.
fn wrong(case: &Case, schemas: &mut Schemas) -> Option<String> {
    let options = options(&case.words);
    let rules = Rules {
        // Whether hints are kept is the encoder's choice.
        schema_location: false,
        any_type: options.profile.built_in_grammars_max.is_none(),
        ..kept(&options, case.schema.is_some())
    };
    let mut attempt = || {
        let expected = data::text(&case.xml)?;
        let stream = fs::read(&case.stream).map_err(|e| e.to_string())?;
        let actual = schemas.decode(&stream, &options, case.schema.as_deref())?;
        let (expected, actual) = match options.fragment {
            true => (wrapped(&expected), wrapped(&actual)),
            false => (expected, actual),
        };
        Ok(difference(&expected, &actual, &rules))
    };
    attempt().unwrap_or_else(Some)
}

#[test]
fn streams_of_others_decode_to_their_documents() {
    let Some(root) = data::root() else {
        println!("skipped all streams: no data; set LONGWIRE_DATA");
        return;
    };
    let sets = [
        ("OpenEXI", cases(&root.join("exi/openexi_nagasena"), OPENEXI)),
        ("exip", cases(&root.join("exi/exip"), EXIP)),
        ("exip, schemas", schema_cases(&root.join("exi/exip"))),
        ("EXIficient", generated_cases(&root)),
    ];
    let mut schemas = Schemas::default();
    let mut failures = BTreeMap::new();
    for (name, cases) in sets {
        let (mut passed, mut absent, mut excepted) = (0, 0, 0);
        for case in &cases {
            let path = case.stream.strip_prefix(&root).expect("below the root");
            let path = path.to_string_lossy().into_owned();
            if !case.stream.exists() || !case.xml.exists() {
                absent += 1;
            } else if let Some((_, why)) = EXCEPTIONS.iter().find(|(s, _)| path.ends_with(s)) {
                println!("excepted: {path}: {why}");
                excepted += 1;
            } else if let Some(why) = wrong(case, &mut schemas) {
                failures.insert(path, why);
            } else {
                passed += 1;
            }
        }
        let all = cases.len();
        println!("{name}: {all} streams, {passed} passed, {excepted} excepted, {absent} absent");
    }
    for (path, why) in &failures {
        println!("{path}: {why}");
    }
    assert!(failures.is_empty(), "{} streams differ", failures.len());
}

#[test]
fn streams_without_a_document_decode() {
    let Some(root) = data::root() else {
        println!("skipped {}: no data; set LONGWIRE_DATA", WITHOUT_DOCUMENT.len());
        return;
    };
    let mut schemas = Schemas::default();
    for (stream, schema) in WITHOUT_DOCUMENT {
        let path = root.join("exi").join(stream);
        let Ok(bytes) = fs::read(&path) else {
            println!("skipped {stream}: absent");
            continue;
        };
        let schema = (schema != "-").then(|| path.with_file_name(schema));
        let xml = schemas.decode(&bytes, &options(""), schema.as_deref()).unwrap();
        assert_eq!(difference(&xml, &xml, &Rules::EXACT), None, "{stream}");
    }
}

#[test]
fn streams_that_are_wrong_are_refused() {
    let Some(root) = data::root() else {
        println!("skipped {}: no data; set LONGWIRE_DATA", REFUSED.len());
        return;
    };
    for stream in REFUSED {
        let Ok(bytes) = fs::read(root.join("exi").join(stream)) else {
            println!("skipped {stream}: absent");
            continue;
        };
        assert!(data::decode(&bytes, &options(""), None).is_err(), "{stream}");
    }
}

/// The encoder that made these writes what ours does, but for the bit that says "not yet final".
#[test]
fn our_stream_of_a_document_is_the_foreign_one() {
    let Some(root) = data::root() else {
        println!("skipped 2: no data; set LONGWIRE_DATA");
        return;
    };
    let folder = root.join("exi/openexi_nagasena/NLM");
    let mut schemas = Schemas::default();
    for (suffix, alignment) in SUFFIXES.iter().filter(|(suffix, _)| *suffix != "compress") {
        let Ok(foreign) = fs::read(folder.join(format!("catplussamp2006.{suffix}"))) else {
            println!("skipped {suffix}: absent");
            continue;
        };
        let options = options(&format!("{alignment},strict"));
        let schema = folder.join("nlmcatalogrecord_060101.xsd");
        let grammars = schemas.grammars(Some(&schema), &options).unwrap();
        let xml = fs::read(folder.join("catplussamp2006.xml")).unwrap();
        let ours = data::encode(&xml, &options, grammars.as_ref()).unwrap();
        assert_eq!(ours[0] | 0x10, foreign[0] | 0x10, "{suffix}");
        let differs = ours[1..].iter().zip(&foreign[1..]).position(|(a, b)| a != b);
        assert_eq!((differs, ours.len()), (None, foreign.len()), "{suffix}");
    }
}
