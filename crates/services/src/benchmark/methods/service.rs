//! The service: answers that are ready before they are asked for.

use std::fmt::Write as _;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap};
use http::{Response, StatusCode};
use pocket::document::{CBOR, Event, Name, Reader, Writer, XML};
use pocket::{Error, Tokens, soap};

use super::{
    Form, MAX_ARRAY_ITEMS, MAX_STRING_CHARS, Method, NAMESPACE, character, element, number,
};
use crate::http::MediaType;
use crate::server::answer::{plain, with_type};
use crate::tracks::soap::{Code, Fault, Version, envelope};

/// How many characters and numbers there are at the begin.
const DEFAULT_SIZE: u32 = 100;

/// An answer in each form, in the order of [`Form::ALL`].
type Prepared = Arc<[Bytes; 4]>;

/// The service.
#[derive(Debug)]
pub(in crate::benchmark) struct Methods {
    /// In the order of [`Method::ALL`].
    answers: RwLock<[Prepared; 5]>,
}

impl Methods {
    pub(in crate::benchmark) fn new() -> Self {
        let answers = Method::ALL.map(|method| prepared(method, DEFAULT_SIZE));
        Self { answers: RwLock::new(answers) }
    }

    /// Answers a POST.
    pub(in crate::benchmark) fn answer(&self, headers: &HeaderMap, body: &[u8]) -> Response<Bytes> {
        let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media = media.and_then(MediaType::parse);
        let Some(form) = media.and_then(|media| Form::of_media(&media.essence)) else {
            let types = Form::ALL.map(Form::media_type).join(", ");
            let line = format!("no SOAP 1.1 in a form that is known; send one of {types}");
            return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, &line);
        };
        match self.carry_out(form, body) {
            Ok(answer) => with_type(StatusCode::OK, form.media_type(), answer),
            Err(reason) => {
                let code = Code::Sender { in_body: true };
                let fault = Fault { version: Version::Soap11, code, reason, service: NAMESPACE };
                let body = form.encode(fault.to_xml().as_bytes()).unwrap_or_default();
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                with_type(status, form.media_type(), body.into())
            }
        }
    }

    fn carry_out(&self, form: Form, body: &[u8]) -> Result<Bytes, String> {
        let xml = form.decode(body)?;
        let mut reader = Reader::new(&xml, &XML, Tokens::NONE);
        let wrong = |error: Error| format!("the request: {error}");
        let found = soap::open(&mut reader).map_err(wrong)?;
        let method = Method::ALL.into_iter().find(|method| found.is(&element(method.name())));
        let method = method.ok_or_else(|| {
            let names = Method::ALL.map(Method::name).join(", ");
            format!("no method '{}' of {NAMESPACE}; there are {names}", found.local)
        })?;
        let (changed, limit) = match method {
            Method::SetString => (Some(Method::GetString), MAX_STRING_CHARS),
            Method::SetIntArray => (Some(Method::GetIntArray), MAX_ARRAY_ITEMS),
            _ => (None, 0),
        };
        let mut size = None;
        if changed.is_some() {
            soap::expect(&mut reader, &element("size")).map_err(|error| {
                format!("{} takes one element 'size', from 0 to {limit}: {error}", method.name())
            })?;
            let value = soap::integer(&mut reader).map_err(|error| format!("size: {error}"))?;
            let value = u32::try_from(value).ok().filter(|value| *value <= limit);
            size = Some(value.ok_or_else(|| format!("a size over the limit of {limit}"))?);
        }
        // What follows must be whole, and nothing more.
        soap::skip(&mut reader).map_err(wrong)?;
        loop {
            match reader.next().map_err(wrong)? {
                Event::Over => break,
                Event::Start(_) => return Err("more than one element in the Body".to_owned()),
                _ => {}
            }
        }
        if let (Some(changed), Some(size)) = (changed, size) {
            let ready = prepared(changed, size);
            let mut answers = self.answers.write().unwrap_or_else(PoisonError::into_inner);
            answers[changed as usize] = ready;
        }
        let answers = self.answers.read().unwrap_or_else(PoisonError::into_inner);
        Ok(answers[method as usize][form as usize].clone())
    }
}

/// The answer of a method in each form.
fn prepared(method: Method, size: u32) -> Prepared {
    let mut content = String::new();
    let size = size as usize;
    match method {
        Method::GetString => {
            content.push_str("<value>");
            content.extend((0..size).map(character));
            content.push_str("</value>");
        }
        Method::GetIntArray => {
            for at in 0..size {
                // Writing to a string cannot fail.
                let _ = write!(content, "<item>{}</item>", number(at));
            }
        }
        _ => {}
    }
    let name = method.response();
    let element = format!("<{name} xmlns=\"{NAMESPACE}\">{content}</{name}>");
    let xml = envelope(Version::Soap11, "", &element);
    // What is made here is within all limits; a test finds where not.
    Arc::new(Form::ALL.map(|form| match form {
        Form::Cbor => without_references(&xml).unwrap_or_default().into(),
        form => form.encode(xml.as_bytes()).unwrap_or_default().into(),
    }))
}

/// A document in CBOR whose texts all stand where they are: a client for devices keeps none, and
/// would read the document again for each that is a number.
fn without_references(xml: &str) -> Result<Vec<u8>, Error> {
    let mut room = vec![0; xml.len()];
    let mut reader = Reader::new(xml.as_bytes(), &XML, Tokens::NONE);
    let mut writer = Writer::new(&mut room, &CBOR, Tokens::NONE);
    loop {
        match reader.next()? {
            Event::Start(found) => {
                let [space, ..] = found.space.parts();
                writer.begin(Name { space, local: found.local })?;
            }
            Event::Text(text) => writer.text(text)?,
            Event::Char(char) => writer.text(char.encode_utf8(&mut [0; 4]))?,
            Event::End => writer.end()?,
            Event::Over => break,
        }
    }
    let len = writer.finish()?;
    room.truncate(len);
    Ok(room)
}

/// The description of the service at `address`, an `http` URL.
pub(in crate::benchmark) fn wsdl(address: &str) -> String {
    let mut escaped = String::new();
    crate::xml::escape(address, &mut escaped);
    include_str!("methods.wsdl").replace("@SERVICE@", NAMESPACE).replace("@ADDRESS@", &escaped)
}
