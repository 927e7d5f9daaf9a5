//! A service whose infoset is enough, through the pair: other bytes that say the same, with the
//! length that they have; and all bytes of what is signed.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use codec::Options;
use codec::infoset::{SchemaContext, made};
use common::origin::Origin;
use common::{Answer, Side, pair, raw, send};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ASK: &str = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
const XML: &str = "Content-Type: application/soap+xml; charset=utf-8\r\n";

fn message(inside: &str) -> String {
    let track = |at: u32| {
        let noise = at.wrapping_mul(2_654_435_761) >> 4;
        format!("  <t:track  id=\"{at}\" ><t:label>unit {noise}</t:label></t:track>\n")
    };
    let all: String = (0..20).map(track).collect();
    format!(
        "<?xml version='1.0'?>\n<s:Envelope xmlns:s='http://www.w3.org/2003/05/soap-envelope'>\n\
         <s:Header>{inside}</s:Header><s:Body xmlns:t='urn:t'>\n{all}</s:Body></s:Envelope>\n"
    )
}

/// What comes out of a message's infoset, through one link.
fn text(options: Options, message: &[u8]) -> Vec<u8> {
    let schema_context = Arc::new(SchemaContext::without_schema());
    let mut out = Vec::new();
    schema_context.encoder(options).encode(message, true, &mut out).unwrap();
    made(&out).unwrap().text.to_vec()
}

/// A pair that believes its link to be slow: on loopback nothing gains by any coding.
async fn both(encodings: &str) -> (Side, Side) {
    let service = format!(
        "admin = '127.0.0.1:0'\nrate_cap = '100 kbit/s'\n[[service]]\n\
         match = 'http://127.0.0.1:*'\nfidelity = 'infoset'\nencodings = ['{encodings}']"
    );
    pair(&service, &service).await
}

async fn echo(edge: &Side, origin: &Origin, fields: &str, body: &[u8]) -> Answer {
    let answer = send(edge.address, "POST", &origin.url("/echo"), fields, body).await;
    assert_eq!(answer.status, 200);
    answer
}

/// On a busy machine a body may come so long after its head that it goes as it is; so often it does
/// not.
const MAX_LATE: usize = 20;

#[tokio::test]
async fn other_bytes_come_that_say_the_same_and_have_their_length() {
    let origin = Origin::start().await;
    let json = "Content-Type: application/json\r\n";
    let values: String = (0..40).map(|at| format!(" {at} , \"\\u0061{at}\",")).collect();
    let values = format!("[{values} null ]");
    for (encoding, options, fields, body) in [
        ("exi", Options::EXI, XML, message("")),
        ("wbxml", Options::WBXML, XML, message("")),
        ("cbor", Options::CBOR, json, values),
    ] {
        let (edge, gateway) = both(encoding).await;
        let (body, expected) = (body.as_bytes(), text(options, body.as_bytes()));
        assert_ne!(expected, body);
        let coded = expected.len().to_string();
        let mut answer = echo(&edge, &origin, fields, body).await;
        for _ in 0..MAX_LATE {
            let is_coded =
                origin.last()["content-length"] == coded && answer.text().len() != body.len();
            if is_coded {
                break;
            }
            answer = echo(&edge, &origin, fields, body).await;
        }
        assert_eq!(answer.text(), String::from_utf8(expected.clone()).unwrap(), "{encoding}");
        assert!(answer.has(&format!("content-length: {}", expected.len())), "{}", answer.head);
        assert_eq!(origin.last()["content-length"], coded);
        for side in [&edge, &gateway] {
            let admin = side.admin.unwrap();
            let metrics = raw(admin, ASK).await.0;
            let metrics = String::from_utf8(metrics).unwrap();
            let reported = metrics.lines().any(|line| line.contains(&format!("\"{encoding}\"")));
            assert!(reported, "{encoding}: {metrics}");
        }
    }
}

#[tokio::test]
async fn what_is_signed_comes_byte_for_byte() {
    let origin = Origin::start().await;
    let (edge, _gateway) = both("exi").await;
    let signature = "<d:Signature xmlns:d='http://www.w3.org/2000/09/xmldsig#'/>";
    let signed = message(&format!("<o:Security xmlns:o='urn:wsse'>{signature}</o:Security>"));
    let answer = echo(&edge, &origin, XML, signed.as_bytes()).await;
    assert_eq!(answer.text(), signed);
    let plain = message("");
    for field in ["Content-Digest: sha-256=:YQ==:\r\n", "Cache-Control: no-transform\r\n"] {
        // The request only: the answer does not have the field.
        echo(&edge, &origin, &format!("{XML}{field}"), plain.as_bytes()).await;
        assert_eq!(origin.last()["content-length"], plain.len().to_string(), "{field}");
    }
}

/// The length that GET would tell hangs on the encoding (RFC 9110 §8.6).
#[tokio::test]
async fn an_answer_without_a_body_tells_no_length_that_may_change() {
    let origin = Origin::start().await;
    let (edge, _gateway) = both("exi").await;
    for (len, reported) in [(1000, false), (70_000, true)] {
        let url = origin.url(&format!("/text/{len}"));
        let head = send(edge.address, "HEAD", &url, "", b"").await;
        assert_eq!((head.status, head.body.len()), (200, 0));
        assert_eq!(head.has(&format!("content-length: {len}")), reported, "{}", head.head);
        assert!(reported || !head.head.contains("content-length"), "{}", head.head);
        let whole = send(edge.address, "GET", &url, "", b"").await;
        assert!(whole.has(&format!("content-length: {len}")), "{}", whole.head);
    }
}

const XSD: &str = "<x:schema xmlns:x='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:t'>
<x:element name='track'><x:complexType><x:sequence><x:any processContents='lax'/></x:sequence>
<x:attribute name='id' type='x:unsignedByte'/></x:complexType></x:element></x:schema>";

/// Time for a parcel of some hundred bytes, of which a twentieth of the link carries some hundred
/// a second.
const PARCEL_PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_schema_at_the_edge_alone_serves_both_ways() {
    let origin = Origin::start().await;
    let folder = std::env::temp_dir().join(format!("longwire-schema-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("tracks.xsd");
    std::fs::write(&file, XSD).unwrap();
    let service = "admin = '127.0.0.1:0'\nrate_cap = '100 kbit/s'\n[[service]]\n\
                   match = 'http://127.0.0.1:*'\nfidelity = 'infoset'\nencodings = ['exi-schema']";
    let of_edge = format!("{service}\nschemas = ['{}']", file.display());
    let (edge, gateway) = pair(&of_edge, service).await;
    std::fs::remove_dir_all(&folder).unwrap();
    let body = message("");
    let answers_with_schema = async || {
        let metrics = raw(gateway.admin.unwrap(), ASK).await.0;
        let metrics = String::from_utf8(metrics).unwrap();
        metrics.lines().any(|line| line.contains("\"exi-schema\""))
    };
    let began = Instant::now();
    while !answers_with_schema().await {
        assert!(began.elapsed() < PARCEL_PATIENCE, "it has not come");
        let answer = echo(&edge, &origin, XML, body.as_bytes()).await;
        assert!(answer.text().contains("unit "), "{}", answer.text());
        // sleep: a schema crosses while nothing else does.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
