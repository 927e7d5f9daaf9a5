//! What a client takes: Accept-Encoding (RFC 9110 §12.5.3).

use codec::content::Coding;
use codec::dictionary::rfc9842::Form;
use http::header::{self, HeaderMap, HeaderValue};

use crate::fields;

/// Most members of the field that are looked at.
const MAX_MEMBERS: usize = 64;

/// Weights in thousandths; none where the client did not name it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    codings: [Option<u16>; Coding::ALL.len()],
    /// The codings with a dictionary: only who has one names them (RFC 9842 §6.1).
    dcb: Option<u16>,
    dcz: Option<u16>,
    identity: Option<u16>,
    any: Option<u16>,
}

impl Accepted {
    /// What the field says. A client that sends none gets no coding: it may take any by the
    /// standard, but few that do not ask can read one.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut accepted = Self::default();
        for member in fields::tokens(headers, &header::ACCEPT_ENCODING).take(MAX_MEMBERS) {
            let (coding, parameters) = member.split_once(';').unwrap_or((&member, ""));
            let coding = coding.trim();
            let Some(weight) = weight(parameters) else { continue };
            let place = match (coding, Coding::named(coding)) {
                ("*", _) => &mut accepted.any,
                ("identity", _) => &mut accepted.identity,
                ("dcb", _) => &mut accepted.dcb,
                ("dcz", _) => &mut accepted.dcz,
                (_, Some(coding)) => &mut accepted.codings[coding as usize],
                (_, None) => continue,
            };
            // What is said twice counts as refused if it is once.
            *place = Some(place.map_or(weight, |before| before.min(weight)));
        }
        accepted
    }

    /// Whether no answer without a coding is taken.
    pub(crate) fn forbids_identity(&self) -> bool {
        self.identity.or(self.any) == Some(0)
    }

    /// The codings that the client likes best: of equal weight, no other with a greater one, and
    /// none if it likes no coding better still.
    pub(crate) fn best(&self) -> impl Iterator<Item = Coding> + use<> {
        let (weights, most) = (self.weights(), self.most());
        let taken = move |coding: &Coding| most > 0 && weights[*coding as usize] == most;
        Coding::ALL.into_iter().filter(taken)
    }

    /// Whether the client takes what is coded with a dictionary, and likes no other better.
    pub(crate) fn takes(&self, form: Form) -> bool {
        let weight = match form {
            Form::Dcb => self.dcb,
            Form::Dcz => self.dcz,
        };
        weight.is_some_and(|weight| weight > 0 && weight >= self.most())
    }

    /// What is asked of the origin, so that its answer can be coded as fits best: content as it is,
    /// or, where `with_dictionary`, encoded with one that the origin gave the client.
    pub(crate) fn for_origin(&self, with_dictionary: bool) -> HeaderValue {
        let taken = |form| with_dictionary && self.takes(form);
        HeaderValue::from_static(match (taken(Form::Dcb), taken(Form::Dcz)) {
            (true, true) => "dcb, dcz",
            (true, false) => "dcb",
            (false, true) => "dcz",
            (false, false) => "identity",
        })
    }

    fn weights(&self) -> [u16; Coding::ALL.len()] {
        self.codings.map(|weight| weight.or(self.any).unwrap_or(0))
    }

    /// The greatest weight, but for codings with a dictionary.
    fn most(&self) -> u16 {
        let most = self.weights().into_iter().max().unwrap_or(0);
        most.max(self.identity.unwrap_or(0))
    }
}

/// `q=0.5` in thousandths; none for what is no weight (RFC 9110 §12.4.2).
fn weight(parameters: &str) -> Option<u16> {
    let parameters = parameters.trim();
    if parameters.is_empty() {
        return Some(1000);
    }
    let text = parameters.strip_prefix("q=")?.trim();
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 3 || !part.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let thousandths: u16 = format!("{part:0<3}").parse().ok()?;
    match (whole, thousandths) {
        ("0", _) => Some(thousandths),
        ("1", 0) => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn of(value: &str) -> Accepted {
        let value = HeaderValue::from_str(value).unwrap();
        Accepted::of(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, value)]))
    }

    #[test]
    fn the_codings_of_the_greatest_weight_are_taken() {
        use Coding::{Brotli, Deflate, Gzip, Zstd};
        assert_eq!(Accepted::of(&HeaderMap::new()).best().count(), 0);
        for (value, expected) in [
            ("", &[][..]),
            ("gzip, deflate, br, zstd", &[Gzip, Deflate, Zstd, Brotli]),
            ("GZIP , x-unknown;q=1", &[Gzip]),
            ("x-gzip", &[Gzip]),
            ("br;q=1.0, gzip;q=0.8, *;q=0.1", &[Brotli]),
            ("gzip;q=0.5, br;q=0.500", &[Gzip, Brotli]),
            ("*", &[Gzip, Deflate, Zstd, Brotli]),
            ("*;q=0.3, zstd;q=0", &[Gzip, Deflate, Brotli]),
            ("gzip;q=0", &[]),
            ("gzip;q=0.5, identity", &[]),
            ("gzip, identity;q=0.5", &[Gzip]),
            ("gzip;q=2, br;q=-1, zstd;q=0.1234, deflate;q=x", &[]),
            ("gzip, gzip;q=0", &[]),
            ("gzip;a=b", &[]),
        ] {
            assert_eq!(of(value).best().collect::<Vec<_>>(), expected, "{value}");
        }
    }

    #[test]
    fn a_coding_with_a_dictionary_is_taken_by_name_alone() {
        use Form::{Dcb, Dcz};
        for (value, dcb, dcz, asked) in [
            ("gzip, br, dcb, dcz", true, true, "dcb, dcz"),
            ("gzip;q=0.5, DCZ", false, true, "dcz"),
            ("gzip, dcb;q=0.9, dcz;q=0", false, false, "identity"),
            ("dcb;q=0.1", true, false, "dcb"),
            ("*", false, false, "identity"),
            ("identity, dcb;q=0.3", false, false, "identity"),
            ("", false, false, "identity"),
        ] {
            let accepted = of(value);
            assert_eq!((accepted.takes(Dcb), accepted.takes(Dcz)), (dcb, dcz), "{value}");
            assert_eq!(accepted.for_origin(true), asked, "{value}");
            assert_eq!(accepted.for_origin(false), "identity");
        }
        // Who has no dictionary of ours gets the next best.
        assert_eq!(of("dcb, gzip;q=0.5").best().collect::<Vec<_>>(), [Coding::Gzip]);
    }

    #[test]
    fn identity_is_forbidden_only_in_so_many_words() {
        for (value, expected) in [
            ("gzip, br", false),
            ("identity;q=0, gzip", true),
            ("gzip;q=1.0, *;q=0", true),
            ("*;q=0.000, identity", false),
            ("identity; q=0.5", false),
            ("", false),
        ] {
            assert_eq!(of(value).forbids_identity(), expected, "{value}");
        }
    }
}
