//! Options that several commands of the codecs share, and what they mean for one codec.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::ValueEnum;
use codec::dictionary;
use codec::wbxml::TokenTable;
use codec::{CompiledSchema, Needs, Properties, Settings, exi};
use proxy::config;

/// The codec whose options these are, by name.
const EXI: &str = "exi";
/// Longest file that is read beside the message: dictionaries, tables.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// What both sides have beforehand.
#[derive(clap::Args)]
#[command(next_help_heading = "What both sides have")]
pub(crate) struct Shared {
    /// An XML Schema for EXI, or a WSDL with some; what they import or include is read from files
    /// beside it; may repeat.
    #[arg(long, value_name = "FILE.xsd")]
    pub(crate) schema: Vec<PathBuf>,
    /// Names as tokens of WBXML, for vocabularies without a table of their own.
    #[arg(long, value_name = "FILE")]
    token_table: Option<PathBuf>,
    /// The dictionary, for codecs that need one.
    #[arg(long, value_name = "FILE")]
    pub(crate) dictionary: Option<PathBuf>,
}

/// How a stream is laid out.
#[derive(clap::Args)]
#[command(next_help_heading = "EXI")]
pub(crate) struct ExiOptions {
    /// Layout of the stream.
    #[arg(long, value_name = "HOW")]
    alignment: Option<AlignmentName>,
    /// Only what the schema allows, in fewer bits; of --preserve, only lexical works with it.
    #[arg(long)]
    strict: bool,
    /// What is kept besides elements, attributes and their values.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    preserve: Vec<Preserved>,
    /// The stream may have elements that can be read alone; those named, as {NAMESPACE}ELEMENT or
    /// ELEMENT, are made such.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = element,
        num_args = 0.., require_equals = true)]
    self_contained: Option<Vec<[String; 2]>>,
    /// Any number of elements at the top.
    #[arg(long)]
    fragment: bool,
    /// Values of one type coded like those of another, {NAMESPACE}TYPE={NAMESPACE}TYPE; may repeat.
    #[arg(long, value_name = "TYPE=TYPE", value_parser = type_pair)]
    datatype_map: Vec<TypePair>,
    /// Values in a block of channels (default: 1000000).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    block_size: Option<u32>,
    /// Longest value that is remembered, in characters (default: any).
    #[arg(long, value_name = "N")]
    value_max_length: Option<u32>,
    /// Most values that are remembered (default: any).
    #[arg(long, value_name = "N")]
    value_partition_capacity: Option<u32>,
    /// Whether values are remembered by their names too: localValuePartitions of the EXI Profile
    /// (default: true).
    #[arg(long, value_name = "BOOL")]
    profile_local_value_partitions: Option<bool>,
    /// Most grammars of elements that are learned: maximumNumberOfBuiltInElementGrammars of the EXI
    /// Profile (default: any).
    #[arg(long, value_name = "N")]
    profile_built_in_element_grammars: Option<u32>,
    /// Most productions that are learned: maximumNumberOfBuiltInProductions of the EXI Profile
    /// (default: any).
    #[arg(long, value_name = "N")]
    profile_built_in_productions: Option<u32>,
}

#[derive(Clone, Copy, ValueEnum)]
enum AlignmentName {
    BitPacked,
    BytePacked,
    PreCompression,
    Compression,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Preserved {
    Comments,
    Pis,
    Dtd,
    Prefixes,
    Lexical,
}

/// What the header of an EXI stream says.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Header {
    /// Begin with `$EXI`
    Cookie,
    /// Carry the options
    Options,
}

/// Two expanded names.
type TypePair = ([String; 2], [String; 2]);

/// Reads `{NAMESPACE}ELEMENT` or `ELEMENT`.
fn element(text: &str) -> Result<[String; 2], String> {
    let parts = match text.strip_prefix('{') {
        Some(rest) => rest.split_once('}'),
        None => Some(("", text)),
    };
    let parts = parts.filter(|(_, local)| !local.is_empty() && !local.contains(['{', '}', ':']));
    let (namespace, local) =
        parts.ok_or_else(|| format!("'{text}' is not like {{urn:a}}element or element"))?;
    Ok([namespace.to_owned(), local.to_owned()])
}

/// Reads `{NAMESPACE}TYPE={NAMESPACE}TYPE`.
fn type_pair(text: &str) -> Result<TypePair, String> {
    let name = |text: &str| {
        let (namespace, local) = text.strip_prefix('{')?.split_once('}')?;
        (!local.is_empty()).then(|| [namespace.to_owned(), local.to_owned()])
    };
    // A namespace may hold '='; a local name holds neither '{' nor '='.
    let (from, to) = text.split_once("={").ok_or_else(|| not_a_pair(text))?;
    let pair = name(from).zip(name(&format!("{{{to}")));
    pair.ok_or_else(|| not_a_pair(text))
}

fn not_a_pair(text: &str) -> String {
    format!("'{text}' is not like {{urn:a}}type={{http://www.w3.org/2001/XMLSchema}}string")
}

/// An option that was given, and whether a codec takes it.
struct Given {
    flag: &'static str,
    given: bool,
    taken: bool,
}

/// Refuses the first option that this codec does not take.
fn check(codec: &Properties, options: &[Given]) -> Result<(), codec::Error> {
    let wrong = options.iter().find(|option| option.given && !option.taken);
    wrong.map_or(Ok(()), |option| {
        let what = format!("{} makes no sense for the codec {}", option.flag, codec.name);
        Err(codec::Error::Option { what })
    })
}

impl Shared {
    /// Whether the codec takes what was given, and was given what it needs.
    pub(crate) fn check(&self, codec: &Properties) -> Result<(), codec::Error> {
        let wants_dictionary = codec.needs == Needs::Dictionary;
        if wants_dictionary && self.dictionary.is_none() {
            let what = format!("the codec {} needs --dictionary FILE", codec.name);
            return Err(codec::Error::Option { what });
        }
        let takes_schema = codec.needs == Needs::SchemaOptional;
        let takes_tokens = codec.needs == Needs::TokenTableOptional;
        let options = [
            ("--schema", !self.schema.is_empty(), takes_schema),
            ("--token-table", self.token_table.is_some(), takes_tokens),
            ("--dictionary", self.dictionary.is_some(), wants_dictionary),
        ];
        check(codec, &options.map(|(flag, given, taken)| Given { flag, given, taken }))
    }

    /// Reads the files into `settings`.
    pub(crate) fn load(&self, settings: &mut Settings) -> anyhow::Result<()> {
        if let Some(path) = &self.dictionary {
            settings.dictionary = Some(Arc::new(dictionary::Kept::new(read(path)?)));
        }
        if let Some(path) = &self.token_table {
            let text = String::from_utf8(read(path)?)
                .with_context(|| format!("{} is not UTF-8", path.display()))?;
            let table = TokenTable::parse(&text);
            let table = table.with_context(|| format!("cannot use {}", path.display()))?;
            settings.token_table = Some(Arc::new(table));
        }
        if !self.schema.is_empty() {
            let schema = config::read_schema(&self.schema, &settings.limits);
            let schema = schema.map_err(anyhow::Error::msg).context("--schema")?;
            settings.schema = Some(Arc::new(CompiledSchema::new(schema)));
        }
        Ok(())
    }
}

impl ExiOptions {
    /// Whether the codec takes what was given.
    pub(crate) fn check(&self, codec: &Properties) -> Result<(), codec::Error> {
        let taken = codec.name == EXI;
        let options = [
            ("--alignment", self.alignment.is_some()),
            ("--strict", self.strict),
            ("--preserve", !self.preserve.is_empty()),
            ("--self-contained", self.self_contained.is_some()),
            ("--fragment", self.fragment),
            ("--datatype-map", !self.datatype_map.is_empty()),
            ("--block-size", self.block_size.is_some()),
            ("--value-max-length", self.value_max_length.is_some()),
            ("--value-partition-capacity", self.value_partition_capacity.is_some()),
            ("--profile-local-value-partitions", self.profile_local_value_partitions.is_some()),
            (
                "--profile-built-in-element-grammars",
                self.profile_built_in_element_grammars.is_some(),
            ),
            ("--profile-built-in-productions", self.profile_built_in_productions.is_some()),
        ];
        check(codec, &options.map(|(flag, given)| Given { flag, given, taken }))
    }

    pub(crate) fn apply(&self, options: &mut exi::Options) {
        let kept = |what| self.preserve.contains(&what);
        options.alignment = match self.alignment {
            None | Some(AlignmentName::BitPacked) => exi::Alignment::BitPacked,
            Some(AlignmentName::BytePacked) => exi::Alignment::BytePacked,
            Some(AlignmentName::PreCompression) => exi::Alignment::PreCompression,
            Some(AlignmentName::Compression) => exi::Alignment::Compression,
        };
        options.strict = self.strict;
        options.preserve = exi::Preserve {
            comments: kept(Preserved::Comments),
            pis: kept(Preserved::Pis),
            dtd: kept(Preserved::Dtd),
            prefixes: kept(Preserved::Prefixes),
            lexical: kept(Preserved::Lexical),
        };
        options.self_contained = self.self_contained.is_some();
        options.self_contained_elements = self.self_contained.clone().unwrap_or_default();
        options.fragment = self.fragment;
        options.datatype_map.clone_from(&self.datatype_map);
        options.block_size = self.block_size.unwrap_or(options.block_size);
        options.value_max_length = self.value_max_length;
        options.value_partition_capacity = self.value_partition_capacity;
        options.profile = exi::Profile {
            local_value_partitions: self.profile_local_value_partitions.unwrap_or(true),
            built_in_grammars_max: self.profile_built_in_element_grammars,
            built_in_productions_max: self.profile_built_in_productions,
        };
    }
}

/// Options that only encoding has: whether the codec takes them.
pub(crate) fn check_encoding(
    codec: &Properties,
    level: Option<i8>,
    header: &[Header],
    canonical: bool,
) -> Result<(), codec::Error> {
    let is_exi = codec.name == EXI;
    let taken = [
        Given { flag: "--level", given: level.is_some(), taken: codec.levels.is_some() },
        Given { flag: "--header", given: !header.is_empty(), taken: is_exi },
        Given { flag: "--canonical", given: canonical, taken: is_exi },
    ];
    check(codec, &taken)?;
    if canonical && header.contains(&Header::Cookie) {
        let what = "Canonical EXI has no cookie; leave out one of --canonical and --header cookie";
        return Err(codec::Error::Option { what: what.to_owned() });
    }
    Ok(())
}

/// A number of bytes, plain or with its unit.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok());
    match plain.flatten() {
        Some(bytes) => Ok(bytes),
        None => link::units::parse_size(text).map_err(|error| error.to_string()),
    }
}

/// A file that is needed whole, of bounded length.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let bytes =
        std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.len();
    if bytes > MAX_FILE_BYTES {
        anyhow::bail!("{} has {bytes} bytes; at most {MAX_FILE_BYTES}", path.display());
    }
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_expanded_names() {
        assert_eq!(element("{urn:a}b").unwrap(), ["urn:a", "b"].map(String::from));
        assert_eq!(element("b").unwrap(), ["", "b"].map(String::from));
        for wrong in ["", "{a}", "{a", "a:b", "}b"] {
            assert!(element(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bytes_need_no_unit() {
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("4 KiB"), Ok(4096));
        for wrong in ["", "-1", "4096 x", "99999999999999999999"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn types_are_two_expanded_names() {
        let pair = type_pair("{urn:a=b}t={}u").unwrap();
        assert_eq!(pair.0, ["urn:a=b", "t"].map(String::from));
        assert_eq!(pair.1, ["", "u"].map(String::from));
        for wrong in ["t=u", "{a}t", "{a}={b}u", "{a}t={b}"] {
            assert!(type_pair(wrong).is_err(), "{wrong}");
        }
    }
}
