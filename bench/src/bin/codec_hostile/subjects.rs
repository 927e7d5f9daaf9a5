//! Each codec with settings that matter, and what it is given.

use std::sync::Arc;

use anyhow::Result;
use codec::exi::schema::Document;
use codec::exi::{Alignment, Preserve, Schema, SchemaId};
use codec::{CODECS, Codec, CompiledSchema, Error, Flow, Limits, Needs, Settings};

use crate::hostile::{self, Trap};
use crate::meter::timed;

/// Limits small enough that the inputs reach them.
pub(crate) const LIMITS: Limits =
    Limits { output_bytes: 4 << 20, depth: 256, table_bytes: 8 << 20, message_bytes: 4 << 20 };
/// For what takes any depth: more than any stack that is recursed on would bear.
const ANY_DEPTH: usize = 1 << 20;
/// What an open level may take where nothing bounds the depth.
const LEVEL_BYTES: usize = 64;
/// Blocks that streams are cut into.
const BLOCK_BYTES: usize = 1000;

/// Where the input goes in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Encode,
    Decode,
}

impl Direction {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Encode => "encode",
            Self::Decode => "decode",
        }
    }
}

/// What is measured.
#[derive(Clone)]
pub(crate) struct Subject {
    /// Codec and setting.
    pub(crate) name: String,
    /// Of the table; `None`: schemas, which only go in.
    codec: Option<&'static dyn Codec>,
    pub(crate) settings: Settings,
    messages: Vec<Trap>,
}

/// An input by its name and its length.
pub(crate) type Input<'a> = (String, Box<dyn Fn(usize) -> Option<Vec<u8>> + 'a>);

impl Subject {
    /// Whether it takes its input in blocks as they come.
    pub(crate) fn streams(&self) -> bool {
        self.codec.is_some_and(|codec| codec.properties().flow != Flow::Whole)
    }

    /// The most memory that it may take for an input: twice the limits, for what grows by doubling
    /// is there twice while it is copied, and contexts, which go by the level and not by the input.
    /// Where nothing bounds the depth, each byte may open a level.
    pub(crate) fn allowed_bytes(&self, input_bytes: usize) -> usize {
        let Limits { output_bytes, table_bytes, message_bytes, .. } = self.settings.limits;
        let output_bytes = usize::try_from(output_bytes).unwrap_or(usize::MAX);
        let context_bytes = match self.name.split_once(':') {
            // Windows of 4 and 8 MiB, and what is looked up in them.
            Some(("brotli" | "brotli-dictionary" | "dcb", level)) if level.len() == 2 => 64 << 20,
            Some(("zstd", "19")) => 96 << 20,
            _ => 8 << 20,
        };
        let level_bytes = if self.settings.limits.depth == ANY_DEPTH { LEVEL_BYTES } else { 0 };
        2 * (output_bytes + table_bytes + message_bytes) + context_bytes + level_bytes * input_bytes
    }

    /// Directions that there are.
    pub(crate) fn directions(&self) -> &'static [Direction] {
        match self.codec {
            Some(_) => &[Direction::Encode, Direction::Decode],
            None => &[Direction::Encode],
        }
    }

    /// The same without a bound on depth.
    pub(crate) fn of_any_depth(&self) -> Self {
        let limits = Limits { depth: ANY_DEPTH, ..self.settings.limits };
        Self { settings: Settings { limits, ..self.settings.clone() }, ..self.clone() }
    }

    /// Lets one input through: bytes that came out, and how it ended.
    pub(crate) fn run(&self, direction: Direction, pieces: bool, input: &[u8]) -> Outcome {
        let mut out = Vec::new();
        let block = if pieces { BLOCK_BYTES } else { input.len().max(1) };
        let result = match (self.codec, direction) {
            (None, _) => compile(input, &self.settings),
            (Some(codec), Direction::Encode) => self.encode(codec, block, input, &mut out),
            (Some(codec), Direction::Decode) => self.decode(codec, block, input, &mut out),
        };
        // What came out over the limit took its time too, and is gone.
        let is_over =
            matches!(&result, Err(Error::Limit { what, .. }) if what.contains("output_bytes"));
        let most = usize::try_from(self.settings.limits.output_bytes).unwrap_or(usize::MAX);
        (if is_over { most } else { out.len() }, result)
    }

    fn encode(
        &self,
        codec: &dyn Codec,
        block: usize,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut encoder = self.settings.encoder(codec.name())?;
        if block >= input.len() {
            return encoder.encode(input, true, out);
        }
        input.chunks(block).try_for_each(|block| encoder.encode(block, false, out))?;
        encoder.encode(b"", true, out)
    }

    fn decode(
        &self,
        codec: &dyn Codec,
        block: usize,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut decoder = self.settings.decoder(codec.name())?;
        let mut at = 0;
        let mut end = block.min(input.len());
        loop {
            let (before, last) = (out.len(), end == input.len());
            let step = decoder.decode(&input[at..end], last, out)?;
            at += step.used;
            if step.done {
                return Ok(());
            }
            if step.used == 0 && out.len() == before {
                // Nothing happens any more: what is left goes in with the next block.
                end = (end + block).min(input.len());
            } else if at == end {
                end = (end + block).min(input.len());
            }
        }
    }

    /// About as long an input as takes `longest_s`, in bytes, between the bounds.
    pub(crate) fn shortest(&self, longest_s: f64, (least, most): (usize, usize)) -> usize {
        let Some(usual) = self.messages.last() else { return least };
        let message = (usual.make)(least * 4);
        let seconds = timed(|| self.run(Direction::Encode, false, &message)).seconds;
        let mut bytes = most;
        while bytes > least && seconds * (bytes * 8) as f64 / message.len() as f64 > longest_s {
            bytes /= 2;
        }
        bytes
    }

    /// What goes in, in one direction.
    pub(crate) fn inputs(&self, direction: Direction) -> Vec<Input<'_>> {
        match (self.codec, direction) {
            (Some(codec), Direction::Decode) => self.streams_of(codec),
            _ => {
                let message = |trap: Trap| -> Input<'_> {
                    (trap.name.to_owned(), Box::new(move |len| Some((trap.make)(len))))
                };
                self.messages.iter().copied().map(message).collect()
            }
        }
    }

    /// What the messages become, and what damage, other codes and lies of length make of it.
    fn streams_of(&self, codec: &'static dyn Codec) -> Vec<Input<'_>> {
        let mut inputs: Vec<Input<'_>> = Vec::new();
        for trap in self.messages.iter().copied() {
            let coded = move |len| self.coded(codec, &(trap.make)(len));
            inputs.push((trap.name.to_owned(), Box::new(coded)));
        }
        for trap in hostile::streams(codec.name()) {
            inputs.push((trap.name.to_owned(), Box::new(|len| Some((trap.make)(len)))));
        }
        let Some(usual) = self.messages.last().copied() else { return inputs };
        let stream = move |len| self.coded(codec, &(usual.make)(len));
        for part in 1..16 {
            let cut = move |len| {
                let mut coded = stream(len)?;
                coded.truncate(coded.len() / 16 * part);
                Some(coded)
            };
            inputs.push((format!("{part}/16 of a usual stream"), Box::new(cut)));
        }
        for head in [0, 1, 2, 4, 8, 13, 16, 40, 64] {
            for fill in [Some(0), Some(0xff), Some(0x80), None] {
                let filled = move |len| {
                    let mut coded = stream(len)?;
                    coded.truncate(head);
                    coded.extend(fill.map_or_else(|| hostile::noise(len), |byte| vec![byte; len]));
                    Some(coded)
                };
                let fill = fill.map_or("noise".to_owned(), |fill: u8| format!("{fill:#04x}"));
                inputs.push((format!("{head} bytes of a stream, then {fill}"), Box::new(filled)));
            }
        }
        inputs
            .push(("a stream twice".to_owned(), Box::new(move |len| Some(stream(len)?.repeat(2)))));
        inputs.push((
            "a bomb".to_owned(),
            Box::new(move |len| {
                let roomy = Settings { limits: Limits::default(), ..self.settings.clone() };
                let bomb = [b"<r>".to_vec(), vec![b'0'; 8 * len], b"</r>".to_vec()];
                let json = ["\"".to_owned(), "0".repeat(8 * len), "\"".to_owned()];
                let is_json = codec.properties().applies_to("application/json");
                let is_json = is_json && !codec.properties().applies_to("application/xml");
                let bomb = if is_json { json.concat().into_bytes() } else { bomb.concat() };
                roomy.encode(codec.name(), &bomb).ok()
            }),
        ));
        inputs
    }

    fn coded(&self, codec: &dyn Codec, message: &[u8]) -> Option<Vec<u8>> {
        let limits = Limits { output_bytes: u64::MAX, ..self.settings.limits };
        Settings { limits, ..self.settings.clone() }.encode(codec.name(), message).ok()
    }
}

/// Bytes that came out, and how it ended.
pub(crate) type Outcome = (usize, Result<(), Error>);

/// A schema up to its grammars.
fn compile(bytes: &[u8], settings: &Settings) -> Result<(), Error> {
    let schema = schema(bytes, &settings.limits)?;
    schema.grammars(&settings.exi, &settings.limits).map(drop)
}

pub(crate) fn schema(bytes: &[u8], limits: &Limits) -> Result<Schema, Error> {
    Schema::parse(&[Document { location: "hostile.xsd", bytes }], &mut |_, _| None, limits)
}

/// All subjects.
pub(crate) fn all() -> Result<Vec<Subject>> {
    let mut subjects = Vec::new();
    for codec in CODECS.iter().copied() {
        let properties = codec.properties();
        let mut settings = Settings { limits: LIMITS, ..Settings::default() };
        if properties.needs == Needs::Dictionary {
            let dictionary = codec::dictionary::Kept::new(hostile::usual_xml(4000));
            settings.dictionary = Some(Arc::new(dictionary));
        }
        let messages = if properties.applies_to("application/octet-stream") {
            hostile::BYTES.to_vec()
        } else if properties.applies_to("application/json") {
            hostile::JSON.to_vec()
        } else {
            hostile::XML.to_vec()
        };
        let name = properties.name;
        let subject = Subject { name: name.to_owned(), codec: Some(codec), settings, messages };
        if properties.needs == Needs::SchemaOptional {
            subjects.extend(exi(&subject)?);
        } else if let Some((least, usual, most)) = properties.levels {
            let mut levels = vec![least, usual, most];
            levels.dedup();
            subjects.extend(levels.into_iter().map(|level| Subject {
                name: format!("{name}:{level}"),
                settings: Settings { level: Some(level), ..subject.settings.clone() },
                ..subject.clone()
            }));
        } else {
            subjects.push(subject);
        }
    }
    let settings = Settings { limits: LIMITS, ..Settings::default() };
    let messages = hostile::SCHEMAS.to_vec();
    subjects.push(Subject { name: "xsd".to_owned(), codec: None, settings, messages });
    Ok(subjects)
}

/// EXI in each way that has code of its own.
fn exi(plain: &Subject) -> Result<Vec<Subject>> {
    let schema = schema(hostile::SCHEMA.as_bytes(), &Limits::default())?;
    let schema = Arc::new(CompiledSchema::new(schema));
    let all = Preserve { comments: true, pis: true, dtd: true, prefixes: true, lexical: true };
    let with = |name: &str, change: &dyn Fn(&mut Settings)| {
        let mut subject = plain.clone();
        subject.name = format!("{} {name}", plain.name);
        change(&mut subject.settings);
        if subject.settings.schema.is_some() {
            subject.messages = hostile::TYPED.iter().chain(hostile::XML).copied().collect();
        }
        subject
    };
    let aligned = |alignment| move |settings: &mut Settings| settings.exi.alignment = alignment;
    let informed = |settings: &mut Settings| settings.schema = Some(Arc::clone(&schema));
    Ok(vec![
        with("bit-packed", &aligned(Alignment::BitPacked)),
        with("byte-packed", &aligned(Alignment::BytePacked)),
        with("pre-compression", &aligned(Alignment::PreCompression)),
        with("compression", &aligned(Alignment::Compression)),
        with("preserving", &|settings| settings.exi.preserve = all),
        with("bounded tables", &|settings| {
            settings.exi.value_partition_capacity = Some(100);
            settings.exi.value_max_length = Some(100);
            settings.exi.block_size = 100;
            settings.exi.alignment = Alignment::Compression;
        }),
        with("schema", &informed),
        with("schema, compression", &|settings| {
            informed(settings);
            settings.exi.alignment = Alignment::Compression;
        }),
        with("schema, lexical", &|settings| {
            informed(settings);
            settings.exi.preserve.lexical = true;
        }),
        with("strict", &|settings| {
            informed(settings);
            settings.exi.strict = true;
        }),
        with("canonical", &|settings| {
            informed(settings);
            settings.exi.canonical = true;
            settings.exi.utc_time = true;
        }),
        with("built-in types", &|settings| settings.exi.schema_id = SchemaId::BuiltIn),
    ])
}
