//! Codings with a dictionary as rows of the table.

use super::whole::Whole;
use crate::codec::{Fidelity, Flow, Needs, Properties};
use crate::dictionary::rfc9842::{self, Form};
use crate::dictionary::{Kept, Method, delta};
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
    encode: |message, settings| encode(Method::Deflate, message, settings),
    decode: |coded, settings| decode(Method::Deflate, coded, settings),
};

pub(crate) static ZSTD: Whole = Whole {
    properties: &properties("zstd-dictionary", 10, Some((1, 19, 22)), FRAME),
    check,
    encode: |message, settings| encode(Method::Zstd, message, settings),
    decode: |coded, settings| decode(Method::Zstd, coded, settings),
};

pub(crate) static DELTA: Whole = Whole {
    properties: &properties("delta", 11, None, "a frame that names the message before"),
    check,
    encode: |message, settings| delta(content(settings)?, &settings.limits)?.encode(message),
    decode: |coded, settings| delta(content(settings)?, &settings.limits)?.decode(coded),
};

pub(crate) static DCB: Whole = Whole {
    properties: &properties("dcb", 12, Some((10, 10, 11)), "dcb streams (RFC 9842)"),
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
    properties: &properties("brotli-dictionary", 14, Some((10, 11, 11)), FRAME),
    check,
    encode: |message, settings| encode(Method::Brotli, message, settings),
    decode: |coded, settings| decode(Method::Brotli, coded, settings),
};

pub(crate) static MIX: Whole = Whole {
    properties: &properties("mix-dictionary", 15, None, FRAME),
    check,
    encode: |message, settings| encode(Method::Mix, message, settings),
    decode: |coded, settings| decode(Method::Mix, coded, settings),
};

fn check(settings: &Settings) -> Result<(), Error> {
    content(settings).map(|_| ())
}

fn known(settings: &Settings) -> Result<&Kept, Error> {
    settings.dictionary.as_deref().ok_or_else(|| {
        let what = "this codec needs a dictionary".to_owned();
        Error::Option { what }
    })
}

fn content(settings: &Settings) -> Result<&[u8], Error> {
    known(settings).map(Kept::content)
}

fn encode(method: Method, message: &[u8], settings: &Settings) -> Result<Vec<u8>, Error> {
    let (level, limits) = (settings.level, &settings.limits);
    known(settings)?.with(method, level, limits, |coder| coder.encode(message))
}

fn decode(method: Method, coded: &[u8], settings: &Settings) -> Result<Vec<u8>, Error> {
    let (level, limits) = (settings.level, &settings.limits);
    known(settings)?.with(method, level, limits, |coder| coder.decode(coded))
}

fn rfc9842_encode(form: Form, message: &[u8], settings: &Settings) -> Result<Vec<u8>, Error> {
    let known = content(settings)?;
    rfc9842::encode(form, known, message, settings.level, &settings.limits)
}

fn rfc9842_decode(form: Form, coded: &[u8], settings: &Settings) -> Result<Vec<u8>, Error> {
    rfc9842::decode(form, content(settings)?, coded, &settings.limits)
}
