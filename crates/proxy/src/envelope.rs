//! Which version of SOAP a document is an envelope of, as far as its beginning tells.

/// In which the namespace stands, if at all.
const MAX_ROOT_BYTES: usize = 1024;
/// The namespaces of envelopes (SOAP 1.1 §3, SOAP 1.2 part 1 §5).
const SOAP_11: &[u8] = b"http://schemas.xmlsoap.org/soap/envelope/";
const SOAP_12: &[u8] = b"http://www.w3.org/2003/05/soap-envelope";

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Soap {
    /// Goes as `text/xml` (SOAP 1.1 §6).
    V1_1,
    /// Goes as `application/soap+xml` (RFC 3902).
    V1_2,
}

impl Soap {
    /// Of a document; `None`: it is another one.
    pub(crate) fn of(document: &[u8]) -> Option<Self> {
        let root = document.get(..MAX_ROOT_BYTES).unwrap_or(document);
        let names = |namespace: &[u8]| root.windows(namespace.len()).any(|part| part == namespace);
        match (names(SOAP_11), names(SOAP_12)) {
            (_, true) => Some(Self::V1_2),
            (true, false) => Some(Self::V1_1),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_is_known_by_its_namespace() {
        let of =
            |namespace: &[u8]| Soap::of(&[b"<e xmlns='".as_slice(), namespace, b"'/>"].concat());
        assert_eq!(of(SOAP_11), Some(Soap::V1_1));
        assert_eq!(of(SOAP_12), Some(Soap::V1_2));
        assert_eq!((of(b"urn:a"), Soap::of(b"")), (None, None));
        let behind = [&[b' '; MAX_ROOT_BYTES][..], SOAP_11].concat();
        assert_eq!(Soap::of(&behind), None);
    }
}
