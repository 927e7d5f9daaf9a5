//! The options of an EXI stream (EXI §5.4) and what its header carries.

use crate::Error;

/// How the parts of a stream are laid out (EXI §5.4, §9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Alignment {
    /// Values begin at any bit.
    #[default]
    BitPacked,
    /// Event codes and values begin at bytes.
    BytePacked,
    /// Bytes, reordered into channels, not yet deflated (EXI §9).
    PreCompression,
    /// The same, deflated.
    Compression,
}

/// What is kept beside elements, attributes and their values (EXI §6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Preserve {
    /// CM.
    pub comments: bool,
    /// PI.
    pub pis: bool,
    /// DT and ER.
    pub dtd: bool,
    /// NS, and prefixes of qualified names.
    pub prefixes: bool,
    /// Values as they were written.
    pub lexical: bool,
}

/// Which schema the grammars come from (EXI §5.4, schemaId).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum SchemaId {
    /// Not said in the header: both sides know.
    #[default]
    Agreed,
    /// No schema (`xsi:nil`).
    None,
    /// The built-in types of XML Schema only (the empty string).
    BuiltIn,
    /// As the parties named it.
    Named(String),
}

/// Parameters of the EXI Profile for limiting memory (W3C, 9 September 2014). A header with options
/// has them. Behind the bounds an encoder with a schema gives elements `xsi:type="xs:anyType"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Profile {
    /// Whether values enter the partition of their name.
    pub local_value_partitions: bool,
    /// Most built-in element grammars that the stream makes; `None`: no bound.
    pub built_in_grammars_max: Option<u32>,
    /// Most productions that are put into built-in element grammars; `None`: no bound.
    pub built_in_productions_max: Option<u32>,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            local_value_partitions: true,
            built_in_grammars_max: None,
            built_in_productions_max: None,
        }
    }
}

/// Everything that both sides of a stream must agree on, or that its header says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Layout.
    pub alignment: Alignment,
    /// Only what the schema allows, in fewer bits (EXI §8.5.4.4.2).
    pub strict: bool,
    /// Any number of elements at the top.
    pub fragment: bool,
    /// What is kept.
    pub preserve: Preserve,
    /// Elements may be such that they can be read alone (SC). Not with `strict`, nor with channels.
    pub self_contained: bool,
    /// Which ones an encoder makes so if they may, as (namespace, local name). No header says it.
    pub self_contained_elements: Vec<[String; 2]>,
    /// Schema.
    pub schema_id: SchemaId,
    /// Types, as (namespace, local name), whose values are coded like those of another (EXI §7.4).
    pub datatype_map: Vec<([String; 2], [String; 2])>,
    /// Values in a block of channels, from 1.
    pub block_size: u32,
    /// Longest string that enters the string table, in characters; `None`: no bound.
    pub value_max_length: Option<u32>,
    /// Most values in the string table; `None`: no bound.
    pub value_partition_capacity: Option<u32>,
    /// Bounds of what a receiver has to learn.
    pub profile: Profile,
    /// Whether the stream begins with `$EXI`.
    pub cookie: bool,
    /// Whether the options are in the header.
    pub options_in_header: bool,
    /// Whether the encoder writes Canonical EXI 1.0 (W3C, 7 June 2018), with the options that this
    /// asks for: pre-compression instead of compression, no cookie. Its option omitOptionsDocument
    /// is that `options_in_header` is not set. A reader that is told the options otherwise needs to
    /// know of it.
    pub canonical: bool,
    /// Whether dates with a zone become those of Coordinated Universal Time in canonical streams:
    /// the option utcTime of Canonical EXI 1.0.
    pub utc_time: bool,
}

impl Options {
    /// Whether an encoder can do what they say (EXI §5.4, selfContained).
    pub(crate) fn check(&self) -> Result<(), Error> {
        let packed = matches!(self.alignment, Alignment::BitPacked | Alignment::BytePacked);
        if self.self_contained_elements.is_empty()
            || (self.self_contained && packed && !self.strict)
        {
            return Ok(());
        }
        let what = "self-contained elements need the option selfContained, and go neither with \
                    strict nor with compression or pre-compression";
        Err(Error::Option { what: what.to_owned() })
    }
}

impl Default for Options {
    /// The defaults of EXI §5.4, without cookie and without options in the header.
    fn default() -> Self {
        Self {
            alignment: Alignment::BitPacked,
            strict: false,
            fragment: false,
            preserve: Preserve::default(),
            self_contained: false,
            self_contained_elements: Vec::new(),
            schema_id: SchemaId::Agreed,
            datatype_map: Vec::new(),
            block_size: 1_000_000,
            value_max_length: None,
            value_partition_capacity: None,
            profile: Profile::default(),
            cookie: false,
            options_in_header: false,
            canonical: false,
            utc_time: false,
        }
    }
}
