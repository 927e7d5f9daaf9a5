//! Codings with a dictionary as rows of the table.

use super::whole::Whole;
use crate::codec::{Fidelity, Flow, Needs, Properties};
use crate::dictionary::rfc9842::{self, Form};
use crate::dictionary::{Coder, Dictionary, Method, delta};
use crate::{Error, Settings, media};

const fn properties(
    name: &'static str,
    number: u64,
    levels: Option<(i8, i8, i8)>,
    form: &'static str,
) -> Properties {
    Properties {
        name,
        number,
        fidelity: Fidelity::Bytes,
        flow: Flow::Whole,
        needs: Needs::Dictionary,
        levels,
        media: media::ANY,
        form,
    }
}

/// A frame of [`crate::dictionary`].
const FRAME: &str = "a frame that names the dictionary";

pub(crate) static DEFLATE: Whole = Whole {
    properties: &properties("deflate-dictionary", 9, Some((1, 9, 9)), FRAME),
    check,
    encode: |message, settings| coder(Method::Deflate, settings)?.encode(message),
    decode: |coded, settings| coder(Method::Deflate, settings)?.decode(coded),
};

pub(crate) static ZSTD: Whole = Whole {
    properties: &properties("zstd-dictionary", 10, Some((1, 19, 22)), FRAME),
    check,
    encode: |message, settings| coder(Method::Zstd, settings)?.encode(message),
    decode: |coded, settings| coder(Method::Zstd, settings)?.decode(coded),
};

pub(crate) static DELTA: Whole = Whole {
    properties: &properties("delta", 11, None, "a frame that names the message before"),
    check,
    encode: |message, settings| delta(content(settings)?, &settings.limits)?.encode(message),
    decode: |coded, settings| delta(content(settings)?, &settings.limits)?.decode(coded),
};

pub(crate) static DCB: Whole = Whole {
    properties: &properties("dcb", 12, Some((0, 5, 11)), "dcb streams (RFC 9842)"),
    check,
    encode: |message, settings| rfc9842_encode(Form::Dcb, message, settings),
    decode: |coded, settings| rfc9842_decode(Form::Dcb, coded, settings),
};

pub(crate) static DCZ: Whole = Whole {
    properties: &properties("dcz", 13, Some((1, 3, 22)), "dcz streams (RFC 9842)"),
    check,
    encode: |message, settings| rfc9842_encode(Form::Dcz, message, settings),
    decode: |coded, settings| rfc9842_decode(Form::Dcz, coded, settings),
};

pub(crate) static BROTLI: Whole = Whole {
    properties: &properties("brotli-dictionary", 14, Some((0, 11, 11)), FRAME),
    check,
    encode: |message, settings| coder(Method::Brotli, settings)?.encode(message),
    decode: |coded, settings| coder(Method::Brotli, settings)?.decode(coded),
};

pub(crate) static MIX: Whole = Whole {
    properties: &properties("mix-dictionary", 15, None, FRAME),
    check,
    encode: |message, settings| coder(Method::Mix, settings)?.encode(message),
    decode: |coded, settings| coder(Method::Mix, settings)?.decode(coded),
};

fn check(settings: &Settings) -> Result<(), Error> {
    content(settings).map(|_| ())
}

fn content(settings: &Settings) -> Result<&[u8], Error> {
    settings.dictionary.as_deref().ok_or_else(|| {
        let what = "this codec needs a dictionary".to_owned();
        Error::Option { what }
    })
}

fn coder(method: Method, settings: &Settings) -> Result<Coder, Error> {
    let known = Dictionary::new(content(settings)?, &settings.limits)?;
    let level = settings.level.filter(|_| !matches!(method, Method::Mix));
    Coder::new(&known, method, level, &settings.limits)
}

fn rfc9842_encode(form: Form, message: &[u8], settings: &Settings) -> Result<Vec<u8>, Error> {
    let known = content(settings)?;
    rfc9842::encode(form, known, message, settings.level, &settings.limits)
}

fn rfc9842_decode(form: Form, coded: &[u8], settings: &Settings) -> Result<Vec<u8>, Error> {
    rfc9842::decode(form, content(settings)?, coded, &settings.limits)
}
