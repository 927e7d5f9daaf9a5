use std::fs;
use std::net::Ipv4Addr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};

use super::methods::Methods;
use super::server::{Config, Site};
use super::{Answers, Class, Form, QUERY_COUNT, RUN_QUERY, client};
use crate::client::{self as fetching, Target, fetch};
use crate::server::{Settings, Site as _};
use crate::tracks::soap::Version;
use crate::xml::Reader;

const SEED: u64 = 5;

fn site() -> Site {
    let (answers, settings) = (Answers::generated(SEED), Settings::default());
    Site { answers, methods: Methods::new(), settings }
}

/// Answers a request without a socket.
fn ask(request: http::request::Builder, body: &str) -> Response<Bytes> {
    let (parts, ()) = request.header("host", "h:1").body(()).unwrap().into_parts();
    site().answer(&parts, body.as_bytes())
}

#[test]
fn every_class_has_answers_of_its_size_and_every_query_is_in_one() {
    let answers = Answers::generated(SEED);
    let mut numbers: Vec<usize> = Vec::new();
    let ranges = [0..1_100, 900..1_000_000, 1_000_000..10_000_000, 10_000_000..50_000_000];
    for (class, range) in Class::ALL.into_iter().zip(ranges) {
        numbers.extend(class.queries());
        for number in class.queries() {
            let bytes = answers.get(Form::Soap, *number).unwrap().plain().len();
            assert!(range.contains(&bytes), "{class:?} {number}: {bytes}");
        }
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=QUERY_COUNT).collect::<Vec<_>>());
    assert!(Class::ALL.iter().all(|class| Class::parse(class.name()) == Some(*class)));
}

#[test]
fn every_form_is_well_formed_and_says_the_same() {
    let (answers, again) = (Answers::generated(SEED), Answers::generated(SEED));
    for number in [1, 2, 9, 11, 13, 15, 18, 20, 21, 22] {
        let rows = Form::ALL.map(|form| {
            let content = answers.get(form, number).unwrap().plain();
            assert_eq!(content, again.get(form, number).unwrap().plain(), "the seed decides");
            let text = std::str::from_utf8(&content).unwrap();
            Reader::new(text).check_rest().unwrap();
            text.matches("<row>").count()
        });
        assert!(rows[0] > 0 && rows.iter().all(|count| *count == rows[0]), "{number}: {rows:?}");
    }
    assert_ne!(
        answers.get(Form::Soap, 2).unwrap().plain(),
        Answers::generated(SEED + 1).get(Form::Soap, 2).unwrap().plain()
    );
}

#[test]
fn each_path_and_each_mistake_has_its_answer() {
    let get = |path: &str| ask(Request::get(path), "");
    assert_eq!(get("/q/12").body(), get("/q/12/compact").body());
    assert_ne!(get("/q/12").body(), get("/q/12/pretty").body());
    for (path, status) in [
        ("/", 200),
        ("/q/22/soap", 200),
        ("/q/0", 404),
        ("/q/23", 404),
        ("/q/+1", 404),
        ("/q/1/json", 404),
        ("/q/1/soap/x", 404),
        ("/soap", 405),
    ] {
        assert_eq!(get(path).status().as_u16(), status, "{path}");
    }
    let head = ask(Request::head("/q/1"), "");
    assert!(head.body().is_empty());
    assert_eq!(head.headers()["content-length"], get("/q/1").body().len().to_string());
    let post = |text: String, media: &str| {
        ask(Request::post("/soap").header("content-type", media), &text)
    };
    let called = post(RUN_QUERY.request(Version::Soap11, 12), "text/xml");
    assert_eq!(called.body(), get("/q/12/soap").body());
    for (text, media, status, said) in [
        (RUN_QUERY.request(Version::Soap11, 23), "text/xml", 500, "no query &apos;23&apos;"),
        (RUN_QUERY.request(Version::Soap12, 1), "application/soap+xml", 400, "SOAP 1.1"),
        (crate::tracks::soap::request(Version::Soap11, 1), "text/xml", 500, "RunQuery"),
        (String::new(), "text/xml", 500, "Envelope"),
    ] {
        let refused = post(text, media);
        let line = String::from_utf8_lossy(refused.body()).into_owned();
        assert_eq!(refused.status().as_u16(), status, "{line}");
        assert!(line.contains(said), "{line}");
    }
}

#[test]
fn files_are_served_as_they_are_and_what_is_not_there_is_said() {
    let directory = std::env::temp_dir().join(format!("lw-benchmark-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let none = Answers::of_files(&directory).unwrap_err().to_string();
    assert!(none.contains("interop/tpch-files"), "{none}");
    fs::write(directory.join("q07.pretty.xml"), "<a/>").unwrap();
    let answers = Answers::of_files(&directory).unwrap();
    assert_eq!(answers.get(Form::Pretty, 7).unwrap().plain(), "<a/>");
    let missing = answers.get(Form::Soap, 7).unwrap_err();
    assert!(missing.contains("q07.soap.xml"), "{missing}");
    let large = fs::File::create(directory.join("q10.soap.xml")).unwrap();
    large.set_len(65 * 1024 * 1024).unwrap();
    let refused = Answers::of_files(&directory).unwrap_err().to_string();
    assert!(refused.contains("over the limit"), "{refused}");
    fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn our_client_reads_every_form_from_our_server() {
    let listen = (Ipv4Addr::LOCALHOST, 0).into();
    let (answers, settings) = (Answers::generated(SEED), Settings::default());
    let server = Config { listen, answers, congestion: None, settings }.bind().unwrap();
    let base = Target::parse(&format!("http://{}", server.address())).unwrap();
    let task = tokio::spawn(server.run(std::future::pending()));
    let config = fetching::Config {
        proxy: None,
        gzip: false,
        new_connection: false,
        warm_up: Some(1),
        timeout: Duration::from_secs(20),
        budget: None,
        congestion: None,
    };
    for form in Form::ALL {
        let plan = client::plan(&base, form, &[12, 9], 5);
        let fetched = fetch(&plan, &config, |_| {}).await.unwrap();
        let names: Vec<&str> = fetched.measured.iter().map(|of| of.name.as_str()).collect();
        assert_eq!(names, ["query 12", "query 9", "query 12", "query 9", "query 12"]);
        assert_eq!((fetched.errors, fetched.warm_up.len()), (0, 1), "{:?}", fetched.measured);
        let expected = site().answers.get(form, 9).unwrap().plain().len() as u64;
        assert_eq!(fetched.measured[1].body_bytes, expected);
    }
    task.abort();
}
