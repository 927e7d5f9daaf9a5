//! Forwards TCP over QUIC, as a peer to compare carriers with: each TCP connection that the client
//! accepts becomes one bidirectional stream of one kept connection, and the server connects it to
//! TARGET. Nobody is verified: it is for measurements only.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, Endpoint, RecvStream, SendStream, ServerConfig};
use rustls::DigitallySignedStruct;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio::io;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

const USAGE: &str = "usage: quic-bulk server LISTEN TARGET | quic-bulk client LISTEN SERVER";
const NAME: &str = "quic-bulk";

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [role, listen, other] = words.as_slice() else { return Err(USAGE.into()) };
    let (listen, other) = (listen.parse()?, other.parse()?);
    match role.as_str() {
        "server" => serve(listen, other).await,
        "client" => connect(listen, other).await,
        _ => Err(USAGE.into()),
    }
}

async fn serve(listen: SocketAddr, target: SocketAddr) -> Result<(), Failure> {
    let own = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der())?;
    let config = ServerConfig::with_single_cert(vec![own.cert.into()], key)?;
    let endpoint = Endpoint::server(config, listen)?;
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            let Ok(connection) = incoming.await else { return };
            while let Ok(both) = connection.accept_bi().await {
                tokio::spawn(async move {
                    // A target that refuses drops both halves, which resets the stream.
                    if let Ok(stream) = TcpStream::connect(target).await {
                        forward(stream, both).await;
                    }
                });
            }
        });
    }
    Ok(())
}

async fn connect(listen: SocketAddr, server: SocketAddr) -> Result<(), Failure> {
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    let mut endpoint = Endpoint::client(SocketAddr::from(([0, 0, 0, 0], 0)))?;
    endpoint.set_default_client_config(config);
    let kept = Arc::new(Kept { endpoint, server, connection: Mutex::new(None) });
    let listener = TcpListener::bind(listen).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let kept = Arc::clone(&kept);
        tokio::spawn(async move {
            let Some(connection) = kept.get().await else { return };
            if let Ok(both) = connection.open_bi().await {
                forward(stream, both).await;
            }
        });
    }
}

/// The one connection to the server, made anew when it is closed.
struct Kept {
    endpoint: Endpoint,
    server: SocketAddr,
    connection: Mutex<Option<Connection>>,
}

impl Kept {
    async fn get(&self) -> Option<Connection> {
        let mut kept = self.connection.lock().await;
        if kept.as_ref().is_none_or(|one| one.close_reason().is_some()) {
            let connecting = self.endpoint.connect(self.server, NAME).ok()?;
            *kept = Some(connecting.await.ok()?);
        }
        kept.clone()
    }
}

/// Copies both ways until both have ended; what fails ends both.
async fn forward(mut tcp: TcpStream, (mut send, mut receive): (SendStream, RecvStream)) {
    let mut quic = io::join(&mut receive, &mut send);
    let copied = match tcp.set_nodelay(true) {
        Ok(()) => io::copy_bidirectional(&mut tcp, &mut quic).await.map(|_| ()),
        Err(error) => Err(error),
    };
    if copied.is_err() {
        // Else the stream would be finished in order, as if all had been sent. It fails only
        // where the stream has ended already.
        let _ = send.reset(0u32.into());
    }
}

/// Takes any certificate.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        default_provider().signature_verification_algorithms.supported_schemes()
    }
}
