//! TLS 1.3 between the two sides with raw public keys (RFC 7250), pinned.

use std::io;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{
    AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage, ServerSessionMemoryCache,
};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName,
    OtherError, ServerConfig, SignatureScheme,
};
use rustls_pki_types::{
    CertificateDer, PrivateKeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};

use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};

use crate::Error;
use crate::keys::{Identity, PublicKey};

/// Names the protocol inside (RFC 7301).
const ALPN: &[u8] = b"longwire/1";
/// The same over QUIC.
const QUIC_ALPN: &[u8] = b"longwire-quic/1";
/// Sessions that an edge, and a gateway, remember to go on with.
const MAX_CLIENT_SESSIONS: usize = 16;
const MAX_SERVER_SESSIONS: usize = 1024;
/// Tickets for a session that a gateway gives: each is good for one connection.
const TICKETS: usize = 2;

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The edge's side.
pub(crate) fn client_config(identity: &Arc<Identity>) -> Result<ClientConfig, Error> {
    let provider = provider();
    let verifier = Arc::new(Pinned::new(identity, &provider));
    let key = certified_key(identity, &provider)?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(broken)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(key)));
    config.alpn_protocols = vec![ALPN.to_vec()];
    // A resumed session would rest on a key that may have been taken off the peer file since.
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    Ok(config)
}

/// The gateway's side.
pub(crate) fn server_config(identity: &Arc<Identity>) -> Result<ServerConfig, Error> {
    let provider = provider();
    let verifier = Arc::new(Pinned::new(identity, &provider));
    let key = certified_key(identity, &provider)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(broken)?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(key)));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// The edge's side over QUIC. Sessions are resumed, so that what may be repeated without harm can
/// go with the first flight (RFC 9001 §4.6): who the peer is, is looked up again each time.
pub(crate) fn quic_client_config(identity: &Arc<Identity>) -> Result<Arc<QuicClientConfig>, Error> {
    let mut config = client_config(identity)?;
    config.alpn_protocols = vec![QUIC_ALPN.to_vec()];
    config.resumption = Resumption::in_memory_sessions(MAX_CLIENT_SESSIONS);
    config.enable_early_data = true;
    QuicClientConfig::try_from(config).map(Arc::new).map_err(no_suite)
}

/// The gateway's side over QUIC. A ticket is taken once, by the process that gave it.
pub(crate) fn quic_server_config(identity: &Arc<Identity>) -> Result<Arc<QuicServerConfig>, Error> {
    let mut config = server_config(identity)?;
    config.alpn_protocols = vec![QUIC_ALPN.to_vec()];
    config.session_storage = ServerSessionMemoryCache::new(MAX_SERVER_SESSIONS);
    config.send_tls13_tickets = TICKETS;
    // RFC 9001 §4.6.1: all, or none.
    config.max_early_data_size = u32::MAX;
    QuicServerConfig::try_from(config).map(Arc::new).map_err(no_suite)
}

fn no_suite(error: quinn_proto::crypto::rustls::NoInitialCipherSuite) -> Error {
    Error::Caller(format!("QUIC cannot be spoken: {error}"))
}

fn certified_key(
    identity: &Identity,
    provider: &CryptoProvider,
) -> Result<Arc<CertifiedKey>, Error> {
    let private = PrivateKeyDer::Pkcs8(identity.pkcs8.clone_key());
    let key = provider.key_provider.load_private_key(private).map_err(broken)?;
    // RFC 7250 §3: the SubjectPublicKeyInfo stands in the certificate's place.
    let spki = CertificateDer::from(identity.key.to_spki());
    Ok(Arc::new(CertifiedKey::new(vec![spki], key)))
}

fn broken(error: rustls::Error) -> Error {
    Error::Caller(format!("this key cannot be used: {error}"))
}

/// Key of the peer at the other end of a finished handshake.
pub(crate) fn peer_key(certificates: Option<&[CertificateDer<'_>]>) -> Option<PublicKey> {
    certificates.and_then(|list| list.first()).and_then(|der| PublicKey::from_spki(der))
}

/// Name of the peer at the other end of a finished handshake.
pub(crate) fn peer_name(
    identity: &Identity,
    certificates: Option<&[CertificateDer<'_>]>,
) -> String {
    identity.admit(peer_key(certificates)).unwrap_or("a peer without a key").to_owned()
}

/// Whether a side does not want the other, or speaks something else: no other try ends otherwise.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    use rustls::Error::{AlertReceived, InvalidCertificate, InvalidMessage, PeerIncompatible};
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(
        inner,
        Some(AlertReceived(_) | InvalidCertificate(_) | InvalidMessage(_) | PeerIncompatible(_))
    )
}

/// What went wrong, in words of keys; `identity` is ours.
pub(crate) fn explain(error: &io::Error, identity: Option<&Identity>) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match (inner, identity) {
        (
            Some(rustls::Error::AlertReceived(
                AlertDescription::CertificateUnknown
                | AlertDescription::BadCertificate
                | AlertDescription::CertificateRequired
                | AlertDescription::AccessDenied
                | AlertDescription::UnknownCA,
            )),
            Some(identity),
        ) => format!(
            "the other side refused our key {}: add our public key to its --peer file",
            identity.key.fingerprint()
        ),
        (Some(rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(why)))), _) => {
            why.to_string()
        }
        (Some(rustls::Error::InvalidMessage(_)), _) => {
            "the other side does not speak TLS: give both sides keys, or neither".to_owned()
        }
        _ => words(error),
    }
}

/// Why there is no TLS with an origin, in words of whoever runs a side.
pub(crate) fn explain_origin(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let why = match inner {
        Some(rustls::Error::InvalidMessage(_)) => "it does not speak TLS at this port",
        Some(rustls::Error::AlertReceived(_)) => "it refused the handshake",
        Some(rustls::Error::PeerIncompatible(_)) => "it speaks no version of TLS that is safe",
        Some(rustls::Error::InvalidCertificate(wrong)) => match wrong {
            CertificateError::UnknownIssuer => {
                "nobody whom this machine trusts vouches for its certificate: add its authority to \
                 the system's, or name a file of authorities in SSL_CERT_FILE"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "its certificate has expired, or this machine's clock is wrong"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "its certificate is not valid yet, or this machine's clock is wrong"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is for other names"
            }
            CertificateError::Other(OtherError(why)) if format!("{why:?}").contains(AUTHORITY) => {
                "its certificate is that of an authority, not of a server"
            }
            _ => "its certificate cannot be used",
        },
        _ => return words(error),
    };
    why.to_owned()
}

/// What the library calls a certificate that may only sign others.
const AUTHORITY: &str = "CaUsedAsEndEntity";

/// An error of a connection in words of whoever runs a side.
pub(crate) fn words(error: &io::Error) -> String {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, TimedOut, UnexpectedEof};
    match error.kind() {
        UnexpectedEof => "the other side died or was cut off: it closed without a word",
        ConnectionReset | BrokenPipe => {
            "the other side died, or something in between cut it off: the connection was reset"
        }
        TimedOut => "nothing was acknowledged for too long: the link is cut, or far too slow",
        _ => return error.to_string(),
    }
    .to_owned()
}

/// Whether what came first on a carrier without TLS begins a record of TLS (RFC 8446 §5.1): the
/// type of an alert, a handshake or the like, then the version.
pub(crate) fn is_record(first: &[u8]) -> bool {
    matches!(first, [0x14..=0x17, 0x03, ..])
}

/// Accepts the keys of the peer file and no others.
#[derive(Debug)]
struct Pinned {
    identity: Arc<Identity>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pinned {
    fn new(identity: &Arc<Identity>, provider: &CryptoProvider) -> Self {
        let algorithms = provider.signature_verification_algorithms;
        Self { identity: Arc::clone(identity), algorithms }
    }

    fn check(&self, spki: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        let Err(why) = self.identity.admit(PublicKey::from_spki(spki)) else { return Ok(()) };
        let other = OtherError(Arc::new(Unknown(why)));
        Err(rustls::Error::InvalidCertificate(CertificateError::Other(other)))
    }

    fn verify(
        &self,
        message: &[u8],
        spki: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let spki = SubjectPublicKeyInfoDer::from(spki.as_ref());
        verify_tls13_signature_with_raw_key(message, &spki, signature, &self.algorithms)
    }
}

#[derive(Debug)]
struct Unknown(String);

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unknown {}

fn no_tls12() -> rustls::Error {
    rustls::Error::General("only TLS 1.3 is spoken".to_owned())
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check(end_entity).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        spki: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verify(message, spki, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        spki: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verify(message, spki, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
