//! Whose page asks, and whether it may read the answer: what lengths may tell it, and what of the
//! request had a say in that.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use proto::bhttp;

use crate::fields;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    readable: Readable,
    /// Fields of the request that decided, for the answer's Vary.
    pub(crate) decided: Vec<HeaderName>,
}

/// Whether who asks may read the answer, so that its length tells nothing new (RFC 9842 §9.3.3).
#[derive(Clone, Debug)]
enum Readable {
    Yes,
    No,
    /// If the answer allows this origin.
    By(HeaderValue),
}

impl Reader {
    /// Of this request, in these words of the pair's.
    pub(crate) fn new(headers: &HeaderMap, request: &bhttp::Request) -> Self {
        let decided = decided(headers);
        if !relay::is_cross_site(request) {
            return Self { readable: Readable::Yes, decided };
        }
        let is_cors = headers.get(&SEC_FETCH_MODE).is_none_or(|mode| mode == "cors");
        let origin = headers.get(header::ORIGIN).filter(|_| is_cors);
        Self { readable: origin.cloned().map_or(Readable::No, Readable::By), decided }
    }

    /// Whether who asks may read an answer with these fields.
    pub(crate) fn permits(&self, headers: &HeaderMap) -> bool {
        let allowed = headers.get(header::ACCESS_CONTROL_ALLOW_ORIGIN);
        match &self.readable {
            Readable::Yes => true,
            Readable::No => false,
            Readable::By(origin) => allowed.is_some_and(|of| of == "*" || of == origin),
        }
    }

    /// No answer will do: lengths are to tell what they would if nobody stood in between.
    pub(crate) fn is_stranger(&self) -> bool {
        matches!(self.readable, Readable::No)
    }
}

/// The fields that tell whose page asks ([`relay::is_cross_site`]), as far as another value might
/// have had another answer.
fn decided(headers: &HeaderMap) -> Vec<HeaderName> {
    let has = |name: &HeaderName| headers.contains_key(name);
    let mut names = vec![SEC_FETCH_SITE, header::ORIGIN];
    if has(&SEC_FETCH_SITE) {
        // Whether the answer allows an origin is asked of those alone that send one.
        names.extend([SEC_FETCH_MODE].into_iter().filter(has));
        return names;
    }
    let credentials = [header::COOKIE, header::AUTHORIZATION];
    let shown: Vec<_> = credentials.into_iter().filter(has).collect();
    names.extend([header::REFERER].into_iter().filter(|name| has(name) || !shown.is_empty()));
    if !shown.is_empty() {
        names.push(header::USER_AGENT);
    }
    names.extend(shown);
    names
}

/// A request as the pair would put it.
pub(crate) fn in_words_of_the_pair(head: &Parts, target: &str) -> bhttp::Request {
    let (scheme, authority) = target.split_once("://").unwrap_or(("", target));
    bhttp::Request {
        method: head.method.as_str().to_owned().into(),
        scheme: scheme.to_owned().into(),
        authority: authority.to_owned().into(),
        path: head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned().into(),
        fields: fields::to_fields(&head.headers),
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn reader(lines: &[(&str, &str)]) -> Reader {
        let mut request = Request::builder().uri("/a").header("host", "o.example");
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        let head = request.body(()).unwrap().into_parts().0;
        let words = in_words_of_the_pair(&head, "http://o.example");
        Reader::new(&head.headers, &words)
    }

    #[test]
    fn what_decides_is_named() {
        let names = |lines: &[(&str, &str)]| {
            let decided = reader(lines).decided;
            decided.iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(&[]), "sec-fetch-site origin");
        assert_eq!(names(&[("sec-fetch-site", "cross-site")]), "sec-fetch-site origin");
        let both = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")];
        assert_eq!(names(&both), "sec-fetch-site origin sec-fetch-mode");
        assert_eq!(names(&[("referer", "http://o.example/")]), "sec-fetch-site origin referer");
        let cookie = "sec-fetch-site origin referer user-agent cookie";
        assert_eq!(names(&[("cookie", "a=1")]), cookie);
    }

    #[test]
    fn a_stranger_reads_what_is_allowed_alone() {
        let allowed = |origin: &'static str| {
            let value = HeaderValue::from_static(origin);
            HeaderMap::from_iter([(header::ACCESS_CONTROL_ALLOW_ORIGIN, value)])
        };
        let own = reader(&[("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "no-cors")]);
        assert!(own.permits(&HeaderMap::new()));
        let cors = [("sec-fetch-site", "cross-site"), ("origin", "https://p.example")];
        for mode in ["cors", "no-cors", "navigate"] {
            let reader = reader(&[cors[0], cors[1], ("sec-fetch-mode", mode)]);
            assert_eq!(reader.permits(&allowed("https://p.example")), mode == "cors", "{mode}");
            assert_eq!(reader.permits(&allowed("*")), mode == "cors", "{mode}");
            assert!(!reader.permits(&allowed("https://q.example")), "{mode}");
            assert_eq!(reader.is_stranger(), mode != "cors", "{mode}");
        }
    }
}
