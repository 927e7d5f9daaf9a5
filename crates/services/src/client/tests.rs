//! The client against a real service in this process and against servers that misbehave by script.

use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::time::Duration;

use http::Method;
use record::result::{Exchange, Fetch};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::{Config, Target, fetch, url_plan};
use crate::Error;
use crate::server::Settings;
use crate::tracks::client::{Api, parse_numbers, plan};
use crate::tracks::server::Config as ServerConfig;
use crate::tracks::{Catalogue, soap};

fn config() -> Config {
    Config {
        proxy: None,
        gzip: false,
        new_connection: false,
        warm_up: Some(0),
        timeout: Duration::from_secs(10),
        budget: None,
        congestion: None,
    }
}

/// The service itself, for as long as the runtime lives.
fn service() -> Target {
    let listen = (Ipv4Addr::LOCALHOST, 0).into();
    let server = ServerConfig { listen, seed: 5, congestion: None, settings: Settings::default() }
        .bind()
        .unwrap();
    let target = Target::parse(&format!("http://{}", server.address())).unwrap();
    tokio::spawn(server.run(std::future::pending()));
    target
}

/// What a scripted server does with the next request on a connection.
enum Act {
    /// Reads it and writes this.
    Answer(Vec<u8>),
    /// Reads it, writes this and closes both ways.
    AnswerAndClose(Vec<u8>),
    /// Reads it and says nothing for ever.
    Hang,
}

/// Serves one connection per script, one after another; when a script is at its end, so is its
/// connection. Gives the requests that came, per connection.
async fn scripted(scripts: Vec<Vec<Act>>) -> (Target, JoinHandle<Vec<Vec<String>>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let target = format!("http://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        let mut seen = Vec::new();
        for script in scripts {
            let (stream, _) = listener.accept().await.unwrap();
            seen.push(follow(stream, script).await);
        }
        seen
    });
    (Target::parse(&target).unwrap(), task)
}

async fn follow(mut stream: TcpStream, script: Vec<Act>) -> Vec<String> {
    let mut requests = Vec::new();
    for act in script {
        requests.push(read_request(&mut stream).await);
        match act {
            Act::Answer(bytes) => stream.write_all(&bytes).await.unwrap(),
            Act::AnswerAndClose(bytes) => {
                let _ = stream.write_all(&bytes).await;
                break;
            }
            Act::Hang => {
                // Until the client gives up and closes.
                let _ = stream.read_to_end(&mut Vec::new()).await;
                break;
            }
        }
    }
    requests
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lower = head.to_ascii_lowercase();
            let length = lower.split_once("content-length: ").map_or(0, |(_, rest)| {
                rest.lines().next().unwrap_or_default().parse::<usize>().unwrap()
            });
            if body.len() >= length {
                return text;
            }
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await.unwrap() {
            0 => return text,
            count => bytes.extend_from_slice(&piece[..count]),
        }
    }
}

fn answer(media: &str, extra: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: {length}\r\n{extra}\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn xml_answer(number: usize) -> Vec<u8> {
    answer("application/xml", "", &Catalogue::new(5).xml(number).unwrap().plain())
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

async fn run(target: &Target, api: Api, numbers: &[usize], config: &Config) -> Fetch {
    fetch(&plan(target, api, numbers), config, |_| {}).await.unwrap()
}

/// Fetches track 1 as REST XML from a server that answers with these bytes and closes.
async fn one_from(bytes: Vec<u8>, config: &Config) -> Exchange {
    let (target, _server) = scripted(vec![vec![Act::AnswerAndClose(bytes)]]).await;
    run(&target, Api::RestXml, &[1], config).await.measured.remove(0)
}

async fn error_from(bytes: Vec<u8>, config: &Config) -> String {
    let exchange = one_from(bytes, config).await;
    assert!(!exchange.censored && !exchange.succeeded());
    let error = exchange.error.unwrap();
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

#[tokio::test]
async fn every_interface_gives_every_track_in_every_way_of_asking() {
    let target = service();
    let all: Vec<usize> = (1..=22).collect();
    for api in Api::ALL {
        let mut sizes = Vec::new();
        for (gzip, new_connection) in [(false, false), (true, false), (false, true)] {
            let config = Config { gzip, new_connection, warm_up: gzip.then_some(0), ..config() };
            let result = run(&target, api, &all, &config).await;
            assert_eq!((result.errors, result.censored), (0, 0), "{:?}", result.measured);
            assert_eq!(result.warm_up.len(), if gzip { 0 } else { 22 });
            assert_eq!(result.summary.as_ref().map(|summary| summary.count), Some(22));
            assert_eq!(result.retransmits, 0);
            assert!(result.congestion_control.is_some());
            let names: Vec<_> = result.measured.iter().map(|one| one.name.clone()).collect();
            assert_eq!((names[0].as_str(), names[21].as_str()), ("track 1", "track 22"));
            assert!(result.measured.iter().all(|one| one.status == Some(200)));
            assert!(result.measured.windows(2).all(|pair| pair[0].start_s <= pair[1].start_s));
            sizes.push(result.measured.iter().map(|one| one.body_bytes).collect::<Vec<_>>());
        }
        assert!(sizes.windows(2).all(|pair| pair[0] == pair[1]), "gzip changes the counts");
    }
}

#[tokio::test]
async fn progress_tells_each_exchange_before_it() {
    let target = service();
    let mut reported = Vec::new();
    let config = Config { warm_up: None, ..config() };
    fetch(&plan(&target, Api::RestJson, &[3, 1]), &config, |progress| {
        reported.push(format!(
            "{} {}/{} {}",
            progress.name, progress.done, progress.total, progress.warm_up
        ));
    })
    .await
    .unwrap();
    assert_eq!(
        reported,
        ["track 3 0/4 true", "track 1 1/4 true", "track 3 2/4 false", "track 1 3/4 false"]
    );
}

#[tokio::test]
async fn the_warm_up_is_as_long_as_asked_for() {
    let target = service();
    for (warm_up, count) in [(None, 3), (Some(0), 0), (Some(2), 2), (Some(3), 3)] {
        let result = run(&target, Api::RestJson, &[3, 1, 2], &Config { warm_up, ..config() }).await;
        assert_eq!((result.warm_up.len(), result.measured.len()), (count, 3));
        assert!(result.warm_up.iter().zip(&result.measured).all(|(a, b)| a.name == b.name));
    }
    let config = Config { warm_up: Some(4), ..config() };
    let refused = fetch(&plan(&target, Api::RestJson, &[3, 1, 2]), &config, |_| {}).await;
    assert!(refused.unwrap_err().to_string().contains("from 0 to 3"));
}

#[tokio::test]
async fn connections_and_clocks_are_reported() {
    let target = service();
    let before = crate::processor::monotonic_s();
    let opened = |result: &Fetch| -> Vec<u32> {
        result.measured.iter().map(|one| one.connections).collect()
    };
    let kept = run(&target, Api::Soap, &[1, 2, 3], &config()).await;
    assert_eq!(opened(&kept), [1, 0, 0]);
    assert!((before..=crate::processor::monotonic_s()).contains(&kept.started_monotonic_s));
    // Absent where the kernel does not tell.
    assert!(kept.processor_wait_s.is_none_or(|wait| (0.0..60.0).contains(&wait)));
    let config = Config { new_connection: true, ..config() };
    assert_eq!(opened(&run(&target, Api::Soap, &[1, 2, 3], &config).await), [1, 1, 1]);
}

#[tokio::test]
async fn one_connection_is_kept_and_requests_say_what_they_should() {
    let script = vec![vec![Act::Answer(xml_answer(1)), Act::Answer(xml_answer(2))]];
    let (target, server) = scripted(script).await;
    let config = Config { gzip: true, ..config() };
    let result = run(&target, Api::RestXml, &[1, 2], &config).await;
    assert_eq!(result.errors, 0, "{:?}", result.measured);
    let seen = server.await.unwrap();
    let head = seen[0][1].to_ascii_lowercase();
    assert!(head.starts_with("get /rest/xml/2 http/1.1\r\n"), "{head}");
    for field in [
        format!("host: {}", target.authority()),
        "accept: application/xml".into(),
        "accept-encoding: gzip".into(),
        format!("user-agent: longwire/{}", env!("CARGO_PKG_VERSION")),
    ] {
        assert_eq!(head.matches(&format!("\r\n{field}\r\n")).count(), 1, "{field} in {head}");
    }
}

#[tokio::test]
async fn a_proxy_is_asked_in_absolute_form() {
    let (proxy, server) = scripted(vec![vec![Act::AnswerAndClose(xml_answer(1))]]).await;
    let config = Config { proxy: Some(proxy), ..config() };
    let origin = Target::parse("http://origin.invalid:81/base/").unwrap();
    let result = run(&origin, Api::RestXml, &[1], &config).await;
    assert_eq!(result.errors, 0, "{:?}", result.measured);
    let head = server.await.unwrap().remove(0).remove(0);
    assert!(
        head.starts_with("GET http://origin.invalid:81/base/rest/xml/1 HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(head.to_ascii_lowercase().contains("\r\nhost: origin.invalid:81\r\n"), "{head}");
    assert!(!head.to_ascii_lowercase().contains("accept-encoding"), "{head}");
}

#[tokio::test]
async fn a_connection_that_the_server_closed_while_idle_is_opened_anew() {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let target = Target::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let (closed, closings) = std::sync::mpsc::channel();
    let server = std::thread::spawn(move || {
        let catalogue = Catalogue::new(5);
        for number in 1..=3 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"</soap:Envelope>") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            let body = catalogue.soap(number, soap::Version::Soap11).unwrap().plain();
            stream.write_all(&answer("text/xml", "", &body)).unwrap();
            drop(stream);
            closed.send(()).unwrap();
        }
    });
    // Each request but the first begins when the closing of the connection has arrived: SOAP may
    // not be sent again, so that all succeed only if that is seen before sending.
    let (plan, config) = (plan(&target, Api::Soap, &[1, 2, 3]), config());
    let result = fetch(&plan, &config, |progress| {
        if progress.done > 0 {
            closings.recv().unwrap();
        }
    });
    let result = result.await.unwrap();
    assert_eq!(result.errors, 0, "{:?}", result.measured);
    server.join().unwrap();
}

#[tokio::test]
async fn an_unanswered_request_is_sent_again_only_when_that_is_safe() {
    // The kept connection takes the second request and closes without a word.
    let script = || {
        let first = Act::Answer(xml_answer(1));
        vec![vec![first, Act::AnswerAndClose(Vec::new())], vec![Act::AnswerAndClose(xml_answer(2))]]
    };
    let (target, server) = scripted(script()).await;
    let result = run(&target, Api::RestXml, &[1, 2], &config()).await;
    assert_eq!(result.errors, 0, "GET is idempotent: {:?}", result.measured);
    let opened: Vec<_> = result.measured.iter().map(|one| one.connections).collect();
    assert_eq!(opened, [1, 1], "the second was sent again on a connection of its own");
    let seen = server.await.unwrap();
    assert_eq!((seen[0].len(), seen[1].len()), (2, 1));

    let body = Catalogue::new(5).soap(1, soap::Version::Soap11).unwrap().plain();
    let first = Act::Answer(answer("text/xml", "", &body));
    let scripts = vec![vec![first, Act::AnswerAndClose(Vec::new())], vec![Act::Hang]];
    let (target, server) = scripted(scripts).await;
    let result = run(&target, Api::Soap, &[1, 2], &config()).await;
    assert!(result.measured[0].succeeded());
    let error = result.measured[1].error.clone().unwrap();
    assert!(error.starts_with("no answer"), "{error}");
    assert!(!server.is_finished(), "POST was sent again on a second connection");
    server.abort();
}

#[tokio::test]
async fn a_new_connection_that_closes_without_a_word_is_an_error_at_once() {
    let scripts = vec![vec![Act::AnswerAndClose(Vec::new())], vec![Act::Hang]];
    let (target, server) = scripted(scripts).await;
    let result = run(&target, Api::RestXml, &[1], &config()).await;
    assert!(result.measured[0].error.is_some());
    assert!(!server.is_finished());
    server.abort();
}

#[tokio::test]
async fn answers_that_are_not_whole_are_errors() {
    let whole = xml_answer(1);
    let cut = whole[..whole.len() - 10].to_vec();
    assert!(error_from(cut, &config()).await.starts_with("the answer broke off"));
    let zipped = gzip(&Catalogue::new(5).xml(1).unwrap().plain());
    let gzip_offered = Config { gzip: true, ..config() };
    let coded = |body: &[u8], coding: &str| {
        answer("application/xml", &format!("Content-Encoding: {coding}\r\n"), body)
    };
    assert!(one_from(coded(&zipped, "gzip"), &gzip_offered).await.succeeded());
    assert!(
        one_from(coded(&[zipped.clone(), gzip(b"")].concat(), "gzip"), &gzip_offered)
            .await
            .succeeded()
    );
    for cut in [0, 5, zipped.len() / 2, zipped.len() - 8, zipped.len() - 1] {
        let error = error_from(coded(&zipped[..cut], "gzip"), &gzip_offered).await;
        assert!(error.starts_with("the answer's"), "cut at {cut}: {error}");
    }
    let mut corrupt = zipped.clone();
    let middle = corrupt.len() / 2;
    corrupt[middle] ^= 0x40;
    let error = error_from(coded(&corrupt, "gzip"), &gzip_offered).await;
    assert!(error.starts_with("the answer's"), "{error}");
    assert!(one_from(coded(&zipped, "gzip"), &config()).await.succeeded(), "forced gzip");
    let error = error_from(coded(&zipped, "br"), &gzip_offered).await;
    assert!(error.contains("'br'"), "{error}");
}

#[tokio::test]
async fn answers_that_are_not_the_track_are_errors() {
    let xml = Catalogue::new(5).xml(1).unwrap().plain();
    let xml = String::from_utf8_lossy(&xml).into_owned();
    let of = |body: &str| answer("application/xml", "", body.as_bytes());
    let cases = [
        (answer("text/html", "", xml.as_bytes()), "content type 'text/html'"),
        (of("<NFFIMessage/>"), "0 tracks in the answer instead of 1"),
        (of(&xml.replace("urn:nato", "urn:x")), "0 tracks"),
        (of(&xml.replace("</NFFIMessage>", "<track/></NFFIMessage>")), "2 tracks"),
        (of(&xml.replace("</NFFIMessage>", "")), "not well-formed"),
        (of(&xml.replace("<track>", "<x><track>").replace("</track>", "</track></x>")), "0 tracks"),
        (of("<!DOCTYPE x><x/>"), "DOCTYPE"),
        (of("\u{0}"), "not well-formed"),
        (answer("application/xml", "", &[0xff, 0xfe]), "utf-8"),
        (b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(), "status 204"),
        (b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n".to_vec(), "status 503"),
        (b"nonsense\r\n\r\n".to_vec(), "no answer"),
    ];
    for (bytes, expected) in cases {
        let error = error_from(bytes, &config()).await;
        assert!(error.contains(expected), "{error} instead of {expected}");
    }
}

#[tokio::test]
async fn json_and_soap_answers_are_checked_too() {
    let one = |bytes, api| async move {
        let (target, _server) = scripted(vec![vec![Act::AnswerAndClose(bytes)]]).await;
        run(&target, api, &[1], &config()).await.measured.remove(0).error.unwrap_or_default()
    };
    let json = |body: &str| answer("application/json", "", body.as_bytes());
    assert!(one(json("{"), Api::RestJson).await.contains("not JSON"));
    assert!(one(json("{}"), Api::RestJson).await.contains("no NFFIMessage"));
    let two = "{\"NFFIMessage\":{\"track\":[1,2]}}";
    assert!(one(json(two), Api::RestJson).await.contains("2 tracks in the answer instead of 1"));
    let deep = "[".repeat(100_000);
    assert!(one(json(&deep), Api::RestJson).await.contains("not JSON"));

    let catalogue = Catalogue::new(5);
    let bare = catalogue.xml(1).unwrap().plain();
    assert!(one(answer("text/xml", "", &bare), Api::Soap).await.contains("0 tracks"));
    let code = soap::Code::Sender { in_body: true };
    let reason = "because & so".to_owned();
    for (version, api) in [(soap::Version::Soap11, Api::Soap), (soap::Version::Soap12, Api::Soap12)]
    {
        let fault =
            soap::Fault { version, code: code.clone(), reason: reason.clone(), service: "urn:x" }
                .to_xml();
        let bytes = answer(version.media_type(), "", fault.as_bytes());
        let bytes =
            String::from_utf8(bytes).unwrap().replace("200 OK", "500 Internal Server Error");
        let error = one(bytes.into_bytes(), api).await;
        assert!(error.contains("status 500") && error.contains("because & so"), "{error}");
    }
}

#[tokio::test]
async fn content_beyond_the_limit_is_refused() {
    let body = vec![b' '; 17 * 1024 * 1024];
    let error = error_from(answer("application/xml", "", &body), &config()).await;
    assert!(error.contains("16777216 bytes"), "{error}");
    let bomb = answer("application/xml", "Content-Encoding: gzip\r\n", &gzip(&body));
    let error = error_from(bomb, &Config { gzip: true, ..config() }).await;
    assert!(error.contains("16777216 bytes"), "{error}");
}

#[tokio::test]
async fn an_exchange_out_of_time_is_censored_and_the_next_goes_on() {
    let partly = xml_answer(1)[..200].to_vec();
    let script = vec![
        vec![Act::Answer(partly), Act::Hang],
        vec![Act::Hang],
        vec![Act::AnswerAndClose(xml_answer(3))],
    ];
    let (target, _server) = scripted(script).await;
    let config = Config { timeout: Duration::from_millis(200), ..config() };
    let result = run(&target, Api::RestXml, &[1, 2, 3], &config).await;
    let [partly, never, good] = &result.measured[..] else { panic!("three exchanges") };
    assert!(partly.censored && partly.status == Some(200) && partly.error.is_none());
    assert!(never.censored && never.status.is_none() && never.error.is_none());
    for cut in [partly, never] {
        assert!((0.2..2.0).contains(&cut.elapsed_s), "{}", cut.elapsed_s);
    }
    assert!(good.succeeded(), "{good:?}");
    assert_eq!((result.errors, result.censored), (0, 2));
    assert_eq!(result.summary.map(|summary| summary.count), Some(1));
}

#[tokio::test]
async fn what_the_budget_leaves_no_time_for_is_censored_at_zero() {
    let (target, _server) = scripted(vec![vec![Act::Answer(xml_answer(1)), Act::Hang]]).await;
    let config = Config { budget: Some(Duration::from_millis(300)), ..config() };
    let result = run(&target, Api::RestXml, &[1, 2, 3, 4], &config).await;
    let [good, cut, third, fourth] = &result.measured[..] else { panic!("four exchanges") };
    assert!(good.succeeded() && cut.censored && cut.elapsed_s > 0.0);
    for never in [third, fourth] {
        assert!(never.censored && never.elapsed_s == 0.0 && never.start_s >= 0.3, "{never:?}");
    }
    assert_eq!((result.errors, result.censored), (0, 3));
}

#[tokio::test]
async fn a_budget_spent_while_warming_up_censors_the_measured_pass() {
    let (target, _server) = scripted(vec![vec![Act::Hang]]).await;
    let config = Config { warm_up: None, budget: Some(Duration::from_millis(100)), ..config() };
    let result = run(&target, Api::RestXml, &[1, 2], &config).await;
    assert_eq!((result.warm_up.len(), result.measured.len(), result.censored), (2, 2, 2));
    assert!(result.summary.is_none());
}

#[tokio::test]
async fn a_service_that_is_not_there_is_an_error_of_every_exchange() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let target = Target::parse(&format!("http://{address}")).unwrap();
    let result = run(&target, Api::RestXml, &[1, 2], &config()).await;
    assert_eq!(result.errors, 2);
    let error = result.measured[0].error.clone().unwrap();
    let named = format!("cannot connect to 127.0.0.1:{}", address.port());
    assert!(error.contains(&named) && error.contains("refused"), "{error}");
}

#[tokio::test]
async fn congestion_control_that_cannot_be_set_is_refused_before_anything_is_asked() {
    let config = Config { congestion: Some("no-such".into()), ..config() };
    let target = Target::parse("http://127.0.0.1:1").unwrap();
    let error = fetch(&plan(&target, Api::Soap, &[1]), &config, |_| {}).await.unwrap_err();
    assert!(matches!(&error, Error::Caller(line) if line.contains("'no-such'")), "{error}");
    let config = Config { congestion: Some("reno".into()), ..config };
    let result = run(&service(), Api::Soap, &[1], &config).await;
    assert_eq!((result.errors, result.congestion_control.as_deref()), (0, Some("reno")));
}

#[tokio::test]
async fn any_url_is_fetched_and_counted() {
    let target = service().join("/rest/json/7");
    let result = fetch(&url_plan(&target, 3), &config(), |_| {}).await.unwrap();
    assert_eq!((result.errors, result.measured.len(), result.api.as_str()), (0, 3, "url"));
    let bytes = Catalogue::new(5).json(7).unwrap().plain().len() as u64;
    assert!(result.measured.iter().all(|one| one.body_bytes == bytes));
    let moved = b"HTTP/1.1 302 Found\r\nLocation: http://x/y\r\nContent-Length: 0\r\n\r\n".to_vec();
    let (target, _server) = scripted(vec![vec![Act::AnswerAndClose(moved)]]).await;
    let result = fetch(&url_plan(&target, 1), &config(), |_| {}).await.unwrap();
    let error = result.measured[0].error.clone().unwrap();
    assert!(error.contains("302") && error.contains("http://x/y"), "{error}");
}

#[test]
fn plans_ask_as_the_standards_say() {
    let base = Target::parse("http://h:1/base/").unwrap();
    let soap = &plan(&base, Api::Soap, &[7]).items[0];
    assert_eq!(
        (soap.method.clone(), soap.target.to_string()),
        (Method::POST, "http://h:1/base/soap".into())
    );
    assert_eq!(soap.headers["soapaction"], "\"urn:longwire:tracks:1#GetTrack\"");
    assert_eq!(soap.headers["content-type"], "text/xml; charset=utf-8");
    let soap12 = &plan(&base, Api::Soap12, &[7]).items[0];
    let media = "application/soap+xml; charset=utf-8; action=\"urn:longwire:tracks:1#GetTrack\"";
    assert_eq!(soap12.headers["content-type"], media);
    assert!(!soap12.headers.contains_key("soapaction"));
    let rest = &plan(&base, Api::RestJson, &[7]).items[0];
    assert_eq!(rest.target.to_string(), "http://h:1/base/rest/json/7");
}

#[test]
fn urls_are_refused_with_a_remedy() {
    let long = format!("http://h/{}", "x".repeat(9000));
    for text in [
        "",
        "h",
        "h:80",
        "/path",
        "ftp://h",
        "https://h",
        "http://",
        "http:///x",
        "http://u:p@h/",
        "http://h:99999/",
        "http://h:x/",
        "http://h h/",
        &long,
    ] {
        let error = Target::parse(text).unwrap_err();
        assert!(error.to_string().contains("http://host:8080"), "{text}: {error}");
        assert!(error.to_string().len() < 400);
    }
    let target = Target::parse("http://[::1]/a?b").unwrap();
    assert_eq!((target.host(), target.port(), target.path()), ("::1", 80, "/a?b"));
    assert_eq!(target.to_string(), "http://[::1]/a?b");
}

#[test]
fn lists_of_tracks_are_read_or_refused() {
    assert_eq!(parse_numbers("1,2,5-9", "track"), Ok(vec![1, 2, 5, 6, 7, 8, 9]));
    assert_eq!(parse_numbers("22, 1 - 2", "track"), Ok(vec![22, 1, 2]));
    for text in
        ["", ",", "0", "23", "1-23", "5-4", "x", "1,,2", "-", "1-2-3", "99999999999999999999"]
    {
        let error = parse_numbers(text, "track").unwrap_err();
        assert!(error.to_string().contains("1 to 22"), "{text}: {error}");
    }
    assert!(parse_numbers("1-3,2", "track").unwrap_err().to_string().contains("twice"));
}
