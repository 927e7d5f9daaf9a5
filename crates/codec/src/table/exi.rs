//! EXI as a row of the table.

use std::sync::Arc;

use super::schema::CompiledSchema;
use crate::codec::{Codec, Encoder, Fidelity, Flow, Needs, Properties, Step, StreamDecoder};
use crate::exi::{self, Grammars, Options, SchemaId};
use crate::{Error, Limits, Settings, media};

static PROPERTIES: Properties = Properties {
    name: "exi",
    number: 5,
    fidelity: Fidelity::Infoset,
    flow: Flow::Stream,
    needs: Needs::SchemaOptional,
    levels: None,
    media: media::XML,
    form: "EXI 1.0 streams (W3C, second edition)",
};

pub(crate) struct Exi;

impl Codec for Exi {
    fn properties(&self) -> &'static Properties {
        &PROPERTIES
    }

    fn stream_encoder(&self, settings: &Settings) -> Result<Box<dyn Encoder>, Error> {
        let grammars = grammars(settings.schema.as_deref(), &settings.exi, &settings.limits)?;
        let encoder = exi::Encoder::new(&settings.exi, grammars, &settings.limits)?;
        Ok(Box::new(ExiEncoder(encoder)))
    }

    fn stream_decoder(&self, settings: &Settings) -> Result<Box<dyn StreamDecoder>, Error> {
        let (schema, limits) = (settings.schema.clone(), settings.limits);
        let resolve = move |options: &Options| grammars(schema.as_deref(), options, &limits);
        let decoder = exi::Decoder::new(&settings.exi, Box::new(resolve), &settings.limits);
        Ok(Box::new(ExiDecoder(decoder)))
    }
}

/// The grammars that options ask for (EXI §5.4, schemaId).
fn grammars(
    schema: Option<&CompiledSchema>,
    options: &Options,
    limits: &Limits,
) -> Result<Option<Arc<Grammars>>, Error> {
    match (&options.schema_id, schema) {
        (SchemaId::None, _) => Ok(None),
        (SchemaId::BuiltIn, _) => Grammars::built_in(options, limits).map(|of| Some(Arc::new(of))),
        (SchemaId::Agreed | SchemaId::Named(_), Some(schema)) => {
            schema.grammars(options, limits).map(Some)
        }
        (SchemaId::Agreed, None) => Ok(None),
        (SchemaId::Named(name), None) => {
            Err(Error::Option { what: format!("the stream needs the schema '{name}'; give it") })
        }
    }
}

struct ExiEncoder(exi::Encoder);

impl Encoder for ExiEncoder {
    fn encode(&mut self, block: &[u8], last: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        self.0.push(block, last, out)
    }
}

struct ExiDecoder(exi::Decoder<'static>);

impl StreamDecoder for ExiDecoder {
    fn decode(&mut self, input: &[u8], last: bool, out: &mut Vec<u8>) -> Result<Step, Error> {
        self.0.push(input, last)?;
        self.0.text(out)?;
        Ok(Step { used: input.len(), done: last })
    }
}
