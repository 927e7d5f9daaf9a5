//! Where data of other people is, and our codec on it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longwire_codec::exi::schema::{Document, Schema};
use longwire_codec::exi::{self, Grammars, Options, SchemaId};
use longwire_codec::{Error, Limits};

/// The folder of data, if it is there.
pub(crate) fn root() -> Option<PathBuf> {
    let given = std::env::var_os("LONGWIRE_DATA").map(PathBuf::from);
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let root = given.unwrap_or_else(beside);
    root.is_dir().then_some(root)
}

/// A document as UTF-8.
pub(crate) fn text(path: &Path) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    utf8(&bytes)
}

/// UTF-8 of a document that may be in UTF-16 or Latin-1, without what declares it.
fn utf8(bytes: &[u8]) -> Result<String, String> {
    let wide = |of: fn([u8; 2]) -> u16| {
        let units: Vec<u16> =
            bytes[2..].chunks_exact(2).map(|pair| of([pair[0], pair[1]])).collect();
        String::from_utf16(&units).map_err(|e| e.to_string())
    };
    match bytes {
        [0xff, 0xfe, ..] => wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] => wide(u16::from_be_bytes),
        _ => {
            let head = String::from_utf8_lossy(&bytes[..bytes.len().min(100)]).to_ascii_lowercase();
            let latin = head.starts_with("<?xml") && head.contains("iso-8859-1");
            if latin {
                return Ok(bytes.iter().map(|byte| char::from(*byte)).collect());
            }
            String::from_utf8(bytes.to_vec()).map_err(|e| e.to_string())
        }
    }
}

/// In place of a schema's file name: the built-in types only.
pub(crate) const BUILT_IN: &str = "=";

/// Schemas read once, and their grammars for each choice of options.
#[derive(Default)]
pub(crate) struct Schemas {
    read: BTreeMap<PathBuf, Result<Schema, String>>,
}

impl Schemas {
    /// The grammars of a schema's file; `None`: no schema.
    pub(crate) fn grammars(
        &mut self,
        schema: Option<&Path>,
        options: &Options,
    ) -> Result<Option<Arc<Grammars>>, String> {
        let Some(path) = schema else { return Ok(None) };
        if path.ends_with(BUILT_IN) {
            let grammars = Grammars::built_in(options, &Limits::default());
            return grammars.map(|grammars| Some(Arc::new(grammars))).map_err(|e| e.to_string());
        }
        let read = self.read.entry(path.to_path_buf()).or_insert_with(|| schema_of(path));
        let schema = read.as_ref().map_err(Clone::clone)?;
        let grammars = schema.grammars(options, &Limits::default()).map_err(|e| e.to_string())?;
        Ok(Some(Arc::new(grammars)))
    }

    /// XML of a stream whose header may say more than `options`; which schema it is, we say.
    pub(crate) fn decode(
        &mut self,
        stream: &[u8],
        options: &Options,
        schema: Option<&Path>,
    ) -> Result<String, String> {
        let mut resolve = |options: &Options| {
            let schema = match options.schema_id {
                SchemaId::None => None,
                SchemaId::BuiltIn => Some(Path::new(BUILT_IN)),
                SchemaId::Agreed | SchemaId::Named(_) => schema,
            };
            self.grammars(schema, options).map_err(|what| Error::Option { what })
        };
        let xml = exi::decode_with(stream, options, &mut resolve, &Limits::default());
        String::from_utf8(xml.map_err(|e| e.to_string())?).map_err(|e| e.to_string())
    }
}

fn schema_of(path: &Path) -> Result<Schema, String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let bytes = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let location = path.file_name().unwrap_or_default().to_string_lossy();
    let document = Document { location: &location, bytes: &bytes };
    let mut resolve = |location: &str, _: Option<&str>| fs::read(folder.join(location)).ok();
    Schema::parse(&[document], &mut resolve, &Limits::default()).map_err(|e| e.to_string())
}

/// XML of a stream whose options are all known.
pub(crate) fn decode(
    stream: &[u8],
    options: &Options,
    grammars: Option<&Arc<Grammars>>,
) -> Result<String, String> {
    let xml = exi::decode(stream, options, grammars, &Limits::default());
    String::from_utf8(xml.map_err(|e| e.to_string())?).map_err(|e| e.to_string())
}

/// A stream of XML.
pub(crate) fn encode(
    xml: &[u8],
    options: &Options,
    grammars: Option<&Arc<Grammars>>,
) -> Result<Vec<u8>, String> {
    exi::encode(xml, options, grammars, &Limits::default()).map_err(|e| e.to_string())
}

/// The XML documents of the kinds of messages that the project is about, with a schema for each:
/// its own, that of its envelope, or the built-in types.
pub(crate) fn messages(root: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut messages = Vec::new();
    let mut open: Vec<PathBuf> =
        ["soap", "friendly_force", "tpch"].iter().map(|folder| root.join(folder)).collect();
    while let Some(folder) = open.pop() {
        for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                open.push(path);
            } else if ["xml", "cot", "wsdl"].contains(&extension.as_str()) {
                let schema = schema_for(root, &path);
                messages.push((path, schema));
            }
        }
    }
    messages.sort();
    messages
}

fn schema_for(root: &Path, message: &Path) -> PathBuf {
    const JTLM: &str = "soap/jtlm_soap/";
    const COT: &str = "friendly_force/cot_atak_civ/";
    let relative = message.strip_prefix(root).unwrap_or(message);
    let is_soap = || {
        let envelope = b"http://schemas.xmlsoap.org/soap/envelope/";
        let bytes = fs::read(message).unwrap_or_default();
        bytes.windows(envelope.len()).any(|window| window == envelope)
    };
    if relative.starts_with(JTLM) {
        root.join(JTLM).join("schemas/TLMComposite.xsd")
    } else if relative.starts_with(COT) {
        root.join(COT).join("xsd/mitre/CoT Base-Event Schema  (PUBLIC RELEASE).xsd")
    } else if is_soap() {
        root.join(JTLM).join("schemas/soap_1_1.xsd")
    } else {
        PathBuf::from(BUILT_IN)
    }
}
