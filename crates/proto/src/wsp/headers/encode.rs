//! Values of HTTP's fields into those of WSP (WAP-230 §8.4.2).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::tables::{self, Grammar, Names};
use super::text::{self, Parameter};
use super::{EncodingVersion, Rules, parameter, value};

/// The octet that says that a scheme is Basic (§8.4.2.5), that a range has a first byte
/// (§8.4.2.42), that a time is a date (§8.4.2.44), or that a length is not known (§8.4.2.23).
pub(super) const FIRST_FORM: u8 = 0x80;
/// The octet for the other form: a range from the end, or seconds.
pub(super) const SECOND_FORM: u8 = 0x81;
/// Octets of an MD5 digest.
pub(super) const MD5_BYTES: usize = 16;

/// Puts the value of a field, or of one element of its list; `None` where the grammar has no form
/// for it. What was put until then is to be taken back.
pub(super) fn put(grammar: Grammar, rules: Rules, text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let version = rules.version;
    match grammar {
        Grammar::Text => value::put_text(text, out),
        Grammar::Quoted => {
            text::inner(text)?;
            value::put_text_value(Some(text), out);
        }
        Grammar::Integer => value::put_integer(text::decimal(text)?, out),
        Grammar::Date => value::put_long(value::seconds(text)?, out),
        Grammar::Tags => tags(text, out)?,
        Grammar::TagOrDate => match value::seconds(text) {
            Some(seconds) => value::put_long(seconds, out),
            None => tags(text, out)?,
        },
        Grammar::Named(names) => named(names, version, text, out)?,
        Grammar::Qualified(names) => qualified(names, version, text, out)?,
        Grammar::WithParameters(names) => with_parameters(names, version, text, out)?,
        Grammar::Media => parameter::put_media(text, version, out)?,
        Grammar::Disposition => disposition(version, text, out)?,
        Grammar::Application => match Names::Listed(&tables::APPLICATIONS).number(text, version) {
            Some(number) => value::put_integer(number, out),
            None => value::put_text(text, out),
        },
        Grammar::CacheControl => cache_directive(version, text, out)?,
        Grammar::Challenge => challenge(text, out)?,
        Grammar::Credentials => credentials(text, out)?,
        Grammar::ContentRange => content_range(rules, text, out)?,
        Grammar::Md5 => {
            let octets = canonical_base64(text).filter(|octets| octets.len() == MD5_BYTES)?;
            value::put_counted(&octets, out);
        }
        Grammar::Pragma => pragma(version, text, out)?,
        Grammar::Range => range(text, out)?,
        Grammar::RetryAfter => retry_after(text, out)?,
        Grammar::Te => te(version, text, out)?,
        Grammar::Version => value::put_short(value::version(text)?, out),
        Grammar::Warning => warning(text, out)?,
        // Cookies of today have no version, and profiles are text: by their names they stay so.
        Grammar::Cookie | Grammar::SetCookie | Grammar::ProfileWarning | Grammar::Opaque => {
            return None;
        }
    }
    Some(())
}

/// Kannel 1.4.5 takes a quote at the begin of such a text for that of a Quoted-string and drops it,
/// but none of a field that goes by its name: so there such tags go.
fn tags(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    (!text.starts_with(b"\"")).then(|| value::put_text(text, out))
}

fn named(names: Names, version: EncodingVersion, text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    match (names.number(text, version), names) {
        (Some(number), _) => value::put_integer(number, out),
        // §8.4.2.12: a method that has no number has no form.
        (None, Names::Method) => return None,
        (None, _) => text::is_token(text).then(|| value::put_text(text, out))?,
    }
    Some(())
}

fn qualified(names: Names, version: EncodingVersion, text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (name, parameters) = text::parameters(text)?;
    let weight = match parameters.as_slice() {
        [] => 1000,
        [(q, Some(weight))] if q.eq_ignore_ascii_case(b"q") => text::weight(weight)?,
        _ => return None,
    };
    let number = names.number(name, version);
    if number.is_none() && !text::is_token(name) {
        return None;
    }
    let mut body = Vec::new();
    match number {
        Some(number) => value::put_integer(number, &mut body),
        None => value::put_text(name, &mut body),
    }
    // §8.4.2.8: without a weight the constrained form, which has no long integer.
    if weight == 1000 && number.is_none_or(|number| number < 128) {
        out.extend_from_slice(&body);
        return Some(());
    }
    if weight < 1000 {
        value::put_weight(weight, &mut body);
    }
    value::put_counted(&body, out);
    Some(())
}

fn with_parameters(
    names: &'static [&'static str],
    version: EncodingVersion,
    text: &[u8],
    out: &mut Vec<u8>,
) -> Option<()> {
    let (name, parameters) = text::parameters(text)?;
    // What has a value of its own, as an expectation may, stays text.
    if parameters.is_empty() {
        return named(Names::Listed(names), version, name, out);
    }
    counted_with_parameters(names, version, (name, parameters), out)
}

fn counted_with_parameters(
    names: &'static [&'static str],
    version: EncodingVersion,
    (name, parameters): (&[u8], Vec<Parameter<'_>>),
    out: &mut Vec<u8>,
) -> Option<()> {
    let mut body = Vec::new();
    named(Names::Listed(names), version, name, &mut body)?;
    for parameter in parameters {
        parameter::put(parameter, version, &mut body)?;
    }
    value::put_counted(&body, out);
    Some(())
}

fn disposition(version: EncodingVersion, text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    counted_with_parameters(&tables::DISPOSITIONS, version, text::parameters(text)?, out)
}

/// §8.4.2.15.
fn cache_directive(version: EncodingVersion, text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (name, argument) = text::parameter(text)?;
    let names = Names::Listed(&tables::CACHE_DIRECTIVES);
    let number = names.number(name, version);
    // The last one came with version 1.4.
    let number = number.filter(|number| *number < 11 || version >= EncodingVersion::V1_4);
    let Some(argument) = argument else {
        return match number {
            // These two mean something only with seconds.
            Some(2 | 4 | 11) => None,
            Some(number) => {
                value::put_integer(number, out);
                Some(())
            }
            None => text::is_token(name).then(|| value::put_text(name, out)),
        };
    };
    let mut body = Vec::new();
    value::put_integer(number?, &mut body);
    match number? {
        2 | 3 | 4 | 11 => value::put_integer(text::decimal(argument)?, &mut body),
        0 | 7 => {
            let fields = text::unquote(argument);
            let fields = text::split(&fields, b',').filter(|fields| !fields.is_empty())?;
            for field in fields {
                named(Names::Field, version, field, &mut body)?;
            }
        }
        _ => return None,
    }
    value::put_counted(&body, out);
    Some(())
}

fn canonical_base64(text: &[u8]) -> Option<Vec<u8>> {
    let octets = STANDARD.decode(text).ok()?;
    (STANDARD.encode(&octets).as_bytes() == text).then_some(octets)
}

/// A scheme of authentication and what follows it.
fn scheme(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|byte| *byte == b' ')?;
    let (scheme, rest) = text.split_at_checked(at)?;
    text::is_token(scheme).then_some((scheme, text::trim(rest)))
}

/// Parameters between commas, each with a value.
fn authentication_parameters(text: &[u8]) -> Option<Vec<Parameter<'_>>> {
    let parts = text::split(text, b',')?;
    let parameters: Option<Vec<_>> = parts.into_iter().map(text::parameter).collect();
    parameters.filter(|all| !all.is_empty() && all.iter().all(|(_, value)| value.is_some()))
}

/// §8.4.2.5.
fn credentials(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (scheme, rest) = scheme(text)?;
    let mut body = Vec::new();
    if scheme.eq_ignore_ascii_case(b"basic") {
        let cookie = canonical_base64(rest).filter(|cookie| text::is_text(cookie))?;
        let colon = cookie.iter().position(|byte| *byte == b':')?;
        body.push(FIRST_FORM);
        value::put_text(cookie.get(..colon)?, &mut body);
        value::put_text(cookie.get(colon + 1..)?, &mut body);
    } else {
        let parameters = authentication_parameters(rest)?;
        value::put_text(scheme, &mut body);
        parameters.into_iter().for_each(|one| parameter::put_textual(one, &mut body));
    }
    value::put_counted(&body, out);
    Some(())
}

/// §8.4.2.5; more than one challenge in a field stays text.
fn challenge(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (scheme, rest) = scheme(text)?;
    let parameters = authentication_parameters(rest)?;
    let ((name, realm), rest) = parameters.split_first()?;
    if !name.eq_ignore_ascii_case(b"realm") {
        return None;
    }
    let realm = text::unquote((*realm)?);
    let mut body = Vec::new();
    if scheme.eq_ignore_ascii_case(b"basic") {
        if !rest.is_empty() {
            return None;
        }
        body.push(FIRST_FORM);
    } else {
        value::put_text(scheme, &mut body);
    }
    value::put_text(&realm, &mut body);
    rest.iter().for_each(|one| parameter::put_textual(*one, &mut body));
    value::put_counted(&body, out);
    Some(())
}

fn uintvar_of(text: &[u8]) -> Option<u32> {
    u32::try_from(text::decimal(text)?).ok()
}

fn divided(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|byte| *byte == separator)?;
    Some((text::trim(text.get(..at)?), text::trim(text.get(at + 1..)?)))
}

/// §8.4.2.23: the last byte is not said but known from the body, whose length must fit.
fn content_range(rules: Rules, text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (range, entity) = divided(text.strip_prefix(b"bytes ")?, b'/')?;
    let (first, last) = divided(range, b'-')?;
    let (first, last) = (uintvar_of(first)?, uintvar_of(last)?);
    if rules.body_bytes? != u64::from(last.checked_sub(first)?) + 1 {
        return None;
    }
    let mut body = Vec::new();
    value::put_uintvar(first, &mut body);
    match entity {
        // The encoding of a length that is not known came with version 1.3.
        b"*" if rules.version >= EncodingVersion::V1_3 => body.push(FIRST_FORM),
        entity => value::put_uintvar(uintvar_of(entity)?, &mut body),
    }
    value::put_counted(&body, out);
    Some(())
}

/// §8.4.2.42; more than one range stays text.
fn range(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (first, last) = divided(text.strip_prefix(b"bytes=")?, b'-')?;
    let mut body = Vec::new();
    if first.is_empty() {
        body.push(SECOND_FORM);
        value::put_uintvar(uintvar_of(last)?, &mut body);
    } else {
        body.push(FIRST_FORM);
        value::put_uintvar(uintvar_of(first)?, &mut body);
        if !last.is_empty() {
            value::put_uintvar(uintvar_of(last)?, &mut body);
        }
    }
    value::put_counted(&body, out);
    Some(())
}

/// §8.4.2.38.
fn pragma(version: EncodingVersion, text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (name, value) = text::parameter(text)?;
    if value.is_none() {
        return name.eq_ignore_ascii_case(b"no-cache").then(|| value::put_short(0, out));
    }
    let mut body = Vec::new();
    parameter::put((name, value), version, &mut body)?;
    value::put_counted(&body, out);
    Some(())
}

/// §8.4.2.44.
fn retry_after(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut body = Vec::new();
    match text::decimal(text) {
        Some(seconds) => {
            body.push(SECOND_FORM);
            value::put_integer(seconds, &mut body);
        }
        None => {
            body.push(FIRST_FORM);
            value::put_long(value::seconds(text)?, &mut body);
        }
    }
    value::put_counted(&body, out);
    Some(())
}

fn te(version: EncodingVersion, text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (name, parameters) = text::parameters(text)?;
    let number = Names::Listed(&tables::TRANSFER_ENCODINGS).number(name, version);
    if number == Some(1) {
        return parameters.is_empty().then(|| value::put_short(1, out));
    }
    let mut body = Vec::new();
    named(Names::Listed(&tables::TRANSFER_ENCODINGS), version, name, &mut body)?;
    match parameters.as_slice() {
        [] => {}
        [(q, Some(weight))] if q.eq_ignore_ascii_case(b"q") => {
            let weight = text::weight(weight)?;
            if weight < 1000 {
                body.push(FIRST_FORM);
                value::put_weight(weight, &mut body);
            }
        }
        _ => return None,
    }
    value::put_counted(&body, out);
    Some(())
}

/// §8.4.2.51; a warning with a date stays text.
fn warning(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (code, rest) = divided(text, b' ')?;
    let (agent, warning) = divided(rest, b' ')?;
    let code = text::decimal(code)?;
    let (number, _) = tables::WARNINGS.iter().find(|(_, http)| *http == code)?;
    let mut body = Vec::new();
    value::put_short(*number, &mut body);
    value::put_text(agent, &mut body);
    value::put_text(&text::unescape(text::inner(warning)?), &mut body);
    value::put_counted(&body, out);
    Some(())
}
