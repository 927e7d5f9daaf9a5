//! TLS of the broker's listeners, and what a client's certificate says.

use std::path::Path;
use std::sync::Arc;

use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::config::{BrokerConfig, Config};
use crate::error::Error;

/// Object identifier of a common name (RFC 4519 §2.3), in DER.
const COMMON_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x03];

/// What TLS is accepted by, where a listener has it.
pub(crate) fn acceptor(config: &Config) -> Result<Option<TlsAcceptor>, Error> {
    let said = &config.broker;
    let secure = [&said.mqtts, &said.wss, &said.amqps, &said.amqps091, &said.wsns];
    let [_, mesh] = config.mesh_addresses();
    let is_any = mesh.is_some() || secure.into_iter().any(Option::is_some);
    let acceptor = || Ok(TlsAcceptor::from(Arc::new(server_config(said)?)));
    is_any.then(acceptor).transpose()
}

/// What the listeners with TLS need.
fn server_config(said: &BrokerConfig) -> Result<ServerConfig, Error> {
    let (Some(certificate), Some(key)) = (&said.certificate, &said.private_key) else {
        let text = "TLS needs a certificate and its private key: --certificate FILE --private-key \
                    FILE, both in PEM";
        return Err(Error::Caller(text.to_owned()));
    };
    let chain = certificates(certificate)?;
    let key = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| Error::Caller(format!("{}: {error}", key.display())))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::System(error.to_string()))?;
    let builder = match &said.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates(path)? {
                roots
                    .add(authority)
                    .map_err(|error| Error::Caller(format!("{}: {error}", path.display())))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider)
                .build()
                .map_err(|error| Error::Caller(format!("{}: {error}", path.display())))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    builder
        .with_single_cert(chain, key)
        .map_err(|error| Error::Caller(format!("certificate and private key: {error}")))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let wrong = |what: String| Error::Caller(format!("{}: {what}", path.display()));
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| wrong(error.to_string()));
    match found {
        Ok(found) if found.is_empty() => Err(wrong("no certificate in PEM".to_owned())),
        found => found,
    }
}

/// The last common name in a client's certificate, which an authority of ours has signed: that of
/// its subject, which stands behind that of its issuer (RFC 5280 §4.1). `None` without certificate.
pub(crate) fn common_name(certificates: Option<&[CertificateDer<'_>]>) -> Option<Arc<str>> {
    let certificate = certificates?.first()?;
    // Extensions stand behind the subject's public key; names in them are no subject.
    let body = subject_end(certificate)?;
    let at = body.windows(COMMON_NAME.len()).rposition(|window| window == COMMON_NAME)?;
    let value = body.get(at + COMMON_NAME.len()..)?;
    let (&[_tag, len], rest) = value.split_first_chunk()?;
    let name = rest.get(..usize::from(len)).filter(|_| len < 0x80)?;
    str::from_utf8(name).ok().map(Into::into)
}

/// The certificate up to the end of its subject.
fn subject_end(certificate: &[u8]) -> Option<&[u8]> {
    let (outer, _) = element(certificate)?;
    let (mut rest, _) = element(outer)?;
    let start = rest;
    // version [0] (optional), serial number, signature, issuer, validity, subject
    let fields = if rest.first() == Some(&0xa0) { 6 } else { 5 };
    for _ in 0..fields {
        (_, rest) = element(rest)?;
    }
    start.get(..start.len() - rest.len())
}

/// The contents of the first element of DER, and what is behind it.
fn element(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[_tag, first], rest) = der.split_first_chunk()?;
    let (len, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let count = usize::from(first & 0x7f);
        let (bytes, rest) = rest.split_at_checked(count).filter(|_| (1..=4).contains(&count))?;
        (bytes.iter().fold(0, |len, byte| len << 8 | usize::from(*byte)), rest)
    };
    rest.split_at_checked(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(tag: u8, contents: &[u8]) -> Vec<u8> {
        [&[tag, u8::try_from(contents.len()).unwrap()][..], contents].concat()
    }

    fn name(common: &str) -> Vec<u8> {
        let value = [COMMON_NAME.to_vec(), tagged(0x0c, common.as_bytes())].concat();
        tagged(0x30, &tagged(0x31, &tagged(0x30, &value)))
    }

    #[test]
    fn the_subject_is_whom_a_certificate_names() {
        let fields = [
            tagged(0xa0, &tagged(2, &[2])),
            tagged(2, &[1]),
            tagged(0x30, &[]),
            name("authority"),
            tagged(0x30, &[]),
            name("ann"),
            tagged(0x30, &name("in an extension")),
        ];
        let certificate = tagged(0x30, &tagged(0x30, &fields.concat()));
        let found = common_name(Some(&[CertificateDer::from(certificate.clone())]));
        assert_eq!(found.as_deref(), Some("ann"));
        assert_eq!(common_name(None), None);
        for cut in 0..certificate.len() {
            let part = CertificateDer::from(certificate[..cut].to_vec());
            assert_eq!(common_name(Some(&[part])), None);
        }
    }
}
