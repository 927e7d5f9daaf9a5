//! Origins with TLS, whose certificates are checked against the system's authorities.
//!
//! `data/origin.pem` and its key were made for this test alone, with
//! `openssl req -x509 -newkey ed25519 -nodes -days 36500 -subj '/CN=test origin' -addext
//! subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE`.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{Answer, edge, gateway, raw};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Answers every request with its request line.
async fn serve(listener: TcpListener) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certificate = CertificateDer::from_pem_file(data("origin.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(data("origin.key")).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let Ok(mut stream) = acceptor.accept(stream).await else { continue };
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        let line = String::from_utf8(request).unwrap().lines().next().unwrap().to_owned();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{line}", line.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
    }
}

/// The only test of this program, as it sets the environment.
#[tokio::test]
async fn an_origin_with_tls_is_asked_when_its_certificate_fits() {
    // SAFETY: the runtime of this test has one thread, and no other test runs in the process.
    unsafe { std::env::set_var("SSL_CERT_FILE", data("origin.pem")) };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(serve(listener));
    let gateway = gateway("allow = ['https://127.0.0.1:*', 'https://localhost:*']").await;
    let ask = "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    // The certificate is for the address, not for the name.
    for (host, status, text) in [
        ("127.0.0.1", 200, "GET /x HTTP/1.1"),
        ("localhost", 502, "TLS: its certificate is for other names"),
    ] {
        let upstream = format!("upstream = 'https://{host}:{port}'\n");
        let by_pair = edge(&format!("gateway = '{}'\n{upstream}", gateway.address)).await;
        let alone = edge(&upstream).await;
        for address in [by_pair.address, alone.address] {
            let answer = Answer::parse(&raw(address, ask).await.0);
            assert_eq!(answer.status, status, "{}", answer.text());
            assert!(answer.text().contains(text), "{}", answer.text());
        }
    }
}
