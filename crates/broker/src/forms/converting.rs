//! A publication whose payload is in another form.

use std::sync::Arc;

use bytes::Bytes;
use codec::Limits;
use codec::notation::{Notation, translate};

use crate::publication::{Details, Form, MEDIA_TYPE, PayloadForm, Publication};

/// Longest payload that is put into another form, and longest one that comes of it, in bytes: the
/// broker does nothing else meanwhile.
pub(super) const MAX_BYTES: usize = 64 << 10;
/// What a payload may take while it is translated.
const LIMITS: Limits = Limits {
    output_bytes: MAX_BYTES as u64,
    depth: 64,
    table_bytes: 2 << 20,
    message_bytes: MAX_BYTES,
};

/// The publication with its payload in a form, or why it stays as it came.
pub(super) fn convert(
    publication: &Arc<Publication>,
    form: PayloadForm,
) -> Result<Publication, String> {
    if publication.payload.len() > MAX_BYTES {
        let bytes = publication.payload.len();
        return Err(format!("{bytes} bytes, over the {MAX_BYTES} that are put into another form"));
    }
    let details = publication.details.as_deref();
    let content_type = details.and_then(|details| details.content_type.as_deref());
    let from = notation_of(publication, content_type)?;
    let to = match (form, from.text()) {
        (PayloadForm::Json, _) => Notation::Json,
        (PayloadForm::Cbor, Notation::Xml) => Notation::CborXml,
        (PayloadForm::Cbor, _) => Notation::Cbor,
        (PayloadForm::Xml, _) => Notation::Xml,
        (PayloadForm::Exi, _) => Notation::Exi,
        (PayloadForm::Identity, _) => from,
    };
    if to == from {
        return Err(format!("it is in {} already", from.name()));
    }
    let payload =
        translate(&publication.payload, from, to, &LIMITS).map_err(|error| error.to_string())?;
    let mut converted = Publication::clone(publication);
    converted.payload = Bytes::from(payload);
    converted.form = match to {
        Notation::Json | Notation::Xml => Form::Text,
        Notation::Cbor | Notation::Exi | Notation::CborXml => Form::Bytes,
    };
    converted.coded = Some(form);
    let named = content_type.map(str::to_owned);
    name_type(converted.details_mut(), named, to);
    Ok(converted)
}

/// What a payload is written in: by its media type; of those that name none, by what they begin
/// with.
fn notation_of(publication: &Publication, content_type: Option<&str>) -> Result<Notation, String> {
    if let Some(content_type) = content_type {
        // What the parameter says holds for XML before what the document says (RFC 7303 §3.2), and
        // only UTF-8 is read here.
        return match (Notation::of_media_type(content_type), charset(content_type)) {
            (Some(Notation::Xml), Some(charset)) if !charset.eq_ignore_ascii_case("utf-8") => {
                Err(format!("{content_type} is not in UTF-8"))
            }
            (Some(notation), _) => Ok(notation),
            (None, _) => Err(format!("{content_type} is none of JSON, CBOR, XML and EXI")),
        };
    }
    let first = publication.payload.iter().find(|byte| !byte.is_ascii_whitespace());
    match first {
        _ if publication.form == Form::Xml => Ok(Notation::Xml),
        Some(b'{' | b'[') => Ok(Notation::Json),
        Some(b'<') => Ok(Notation::Xml),
        _ => Err("it names no content type, and looks like neither JSON nor XML".to_owned()),
    }
}

/// The parameter `charset` of a media type.
fn charset(media_type: &str) -> Option<&str> {
    media_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    })
}

/// Says what the payload is now. A media type that says more than the usual one goes along, and is
/// the payload's again when that is written so once more.
fn name_type(details: &mut Details, named: Option<String>, to: Notation) {
    let kept = details.properties.iter().position(|(name, _)| name == MEDIA_TYPE);
    let known = kept.map(|at| details.properties.remove(at).1).or(named);
    match known {
        Some(known)
            if Notation::of_media_type(&known) == Some(to)
                && charset(&known).is_none_or(|charset| charset.eq_ignore_ascii_case("utf-8")) =>
        {
            details.content_type = Some(known);
        }
        known => {
            let is_usual = |it: &String| Notation::ALL.iter().any(|(.., usual)| usual == it);
            let known = known.filter(|it| !is_usual(it));
            details.properties.extend(known.map(|known| (MEDIA_TYPE.to_owned(), known)));
            details.content_type = Some(to.media_type().to_owned());
        }
    }
}
