//! CBOR in place of JSON and of XML, as rows of the table.

use crate::cbor::{JsonDecoder, JsonEncoder, XmlDecoder, XmlEncoder};
use crate::codec::{Codec, Encoder, Fidelity, Flow, Needs, Properties, StreamDecoder};
use crate::{Error, Settings, media};

static JSON: Properties = Properties {
    name: "cbor",
    number: 7,
    fidelity: Fidelity::Infoset,
    flow: Flow::Stream,
    needs: Needs::Nothing,
    levels: None,
    media: media::JSON,
    form: "CBOR (RFC 8949), numbers with their text",
};

static XML: Properties = Properties {
    name: "cbor-xml",
    number: 8,
    media: media::XML,
    form: "CBOR (RFC 8949) by docs/formats/cbor-xml.md",
    ..JSON
};

pub(crate) struct CborJson;

impl Codec for CborJson {
    fn properties(&self) -> &'static Properties {
        &JSON
    }

    fn stream_encoder(&self, settings: &Settings) -> Result<Box<dyn Encoder>, Error> {
        Ok(Box::new(JsonEncoder::new(&settings.limits)))
    }

    fn stream_decoder(&self, settings: &Settings) -> Result<Box<dyn StreamDecoder>, Error> {
        Ok(Box::new(JsonDecoder::new(&settings.limits)))
    }
}

pub(crate) struct CborXml;

impl Codec for CborXml {
    fn properties(&self) -> &'static Properties {
        &XML
    }

    fn stream_encoder(&self, settings: &Settings) -> Result<Box<dyn Encoder>, Error> {
        Ok(Box::new(XmlEncoder::new(&settings.limits)?))
    }

    fn stream_decoder(&self, settings: &Settings) -> Result<Box<dyn StreamDecoder>, Error> {
        Ok(Box::new(XmlDecoder::new(&settings.limits)))
    }
}
