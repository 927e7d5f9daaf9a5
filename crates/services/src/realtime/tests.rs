use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::admission::USUAL_SHARE_PERMILLE;
use super::consumer::{Config, Consumer, Outcome};
use super::entity::Entity;
use super::producer::{self, Produced, Progress, Relation};
use super::profile::Profile;
use super::request::NAMESPACE;
use super::results;
use super::schedule::{Content, Schedule};
use crate::client::Target;
use crate::xml::{Node, Reader};

const FREE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);
const MAX_WAIT: Duration = Duration::from_secs(20);

fn ordinary() -> Config {
    let profile = Profile::of(5).unwrap();
    Config { samples: 4096, ..Config::new(FREE, profile) }
}

fn message(sequence: u64, class: Option<usize>) -> String {
    let mut text = String::new();
    Content { sequence, sent_ns: None, entities: 2, class, time_ms: 1 }.write(&mut text);
    text
}

struct Client(TcpStream);

impl Client {
    fn to(consumer: &Consumer) -> Self {
        let stream = TcpStream::connect(consumer.address()).unwrap();
        stream.set_read_timeout(Some(MAX_WAIT)).unwrap();
        Self(stream)
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// The next answer: its status and content.
    fn answer(&mut self) -> (u16, String) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            assert_eq!(self.0.read(&mut byte).unwrap(), 1, "ended behind {head:?}");
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let mut content = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        self.0.read_exact(&mut content).unwrap();
        (status, String::from_utf8(content).unwrap())
    }

    fn post(&mut self, path: &str, fields: &str, content: &str) -> (u16, String) {
        let length = content.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\n{fields}\
             Content-Length: {length}\r\n\r\n"
        );
        // In one piece: the second of two would wait for the first to be acknowledged.
        self.send(format!("{head}{content}").as_bytes());
        self.answer()
    }

    fn is_closed(&mut self) -> bool {
        matches!(self.0.read(&mut [0]), Ok(0) | Err(_))
    }
}

fn fault_text(content: &str) -> String {
    let mut reader = Reader::new(content);
    let mut text = String::new();
    while let Some(node) = reader.next_node().unwrap() {
        if let Node::Text(piece) = node {
            text.push_str(&piece);
        }
    }
    text
}

fn ended(consumer: Consumer) -> Outcome {
    consumer.stop().unwrap()
}

#[test]
fn what_is_accepted_is_stored_and_sampled() {
    let consumer = Consumer::start(&ordinary()).unwrap();
    let mut client = Client::to(&consumer);
    for sequence in 1..=100 {
        assert_eq!(client.post("/consumer", "", &message(sequence, None)).0, 202);
    }
    let outcome = ended(consumer);
    let class = &outcome.classes[0];
    assert_eq!((class.accepted, class.processed, class.panicked), (100, 100, 0));
    assert_eq!(class.samples.len(), 200, "one for each entity");
    assert!(class.samples.iter().all(|sample| sample.stored_ns >= sample.handed_ns));
    assert_eq!(class.samples[199].sequence, 100);
    assert!(outcome.is_as_asked(), "{:?}", outcome.granted);
}

#[test]
fn a_class_is_chosen_by_path_header_or_urgency() {
    let consumer = Consumer::start(&Config { classes: 3, ..ordinary() }).unwrap();
    let mut client = Client::to(&consumer);
    let mut post = |path: &str, fields: &str, class| client.post(path, fields, &message(1, class));
    assert_eq!(post("/consumer/0", "", None).0, 202);
    assert_eq!(post("/consumer", "", Some(1)).0, 202);
    assert_eq!(post("/consumer", "Priority: u=7\r\n", None).0, 202);
    assert_eq!(post("/consumer", "", None).0, 202);
    for (path, class, word) in
        [("/consumer/3", None, "no class 3"), ("/consumer/1", Some(2), "send one of them")]
    {
        let (status, content) = post(path, "", class);
        let text = fault_text(&content);
        assert!(status == 500 && text.contains("Client") && text.contains(word), "{text}");
    }
    assert_eq!(post("/other", "", None).0, 404);
    let accepted: Vec<u64> = ended(consumer).classes.iter().map(|class| class.accepted).collect();
    assert_eq!(accepted, [1, 2, 1]);
}

#[test]
fn bad_input_is_answered_and_the_next_is_served() {
    let consumer = Consumer::start(&ordinary()).unwrap();
    let good = message(1, None);
    let mut client = Client::to(&consumer);
    for (content, word) in [
        ("", "root element"),
        ("<a/>", "no SOAP envelope"),
        (&good[..good.len() - 5], "without an end"),
        (&good.replace("Process", "Other"), "no operation"),
        (&good.replace("<kind>surface</kind>", ""), "'kind' is due"),
        (&good.replace("<id>2</id>", "<id>4096</id>"), "choose 0 to 4095"),
        (&good.replace("<courseDeg>2.0", "<courseDeg>inf"), "send 0 to 360"),
        (&format!("<!DOCTYPE a>{good}"), "document type"),
    ] {
        let (status, answer) = client.post("/consumer", "", content);
        let text = fault_text(&answer);
        assert!(status == 500 && text.contains(word), "{word}: {text}");
    }
    let (status, line) = client.post("/consumer", "Content-Encoding: gzip\r\n", &good);
    assert_eq!((status, line.contains("coding")), (415, true));
    assert_eq!(client.post("/consumer", "SOAPAction: \"urn:x\"\r\n", &good).0, 500);
    assert_eq!(client.post("/consumer", "", &good).0, 202, "the connection is still good");
    client.send(b"POST /consumer HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n\r\n");
    assert_eq!(client.answer().0, 413);
    assert!(client.is_closed());
    let mut garbage = Client::to(&consumer);
    garbage.send(b"\x16\x03\x01\x02\x00\n\n");
    assert_eq!(garbage.answer().0, 400);
    assert!(garbage.is_closed());
    let outcome = ended(consumer);
    assert_eq!((outcome.classes[0].accepted, outcome.engine.bad_requests), (1, 12));
}

#[test]
fn requests_in_one_piece_and_in_chunks_are_answered_in_order() {
    let consumer = Consumer::start(&ordinary()).unwrap();
    let mut client = Client::to(&consumer);
    let good = message(1, None);
    let length = good.len();
    let (first, second) = good.split_at(100);
    let both = format!(
        "POST /consumer HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\n\
         Content-Length: {length}\r\n\r\n{good}\
         POST /consumer HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\n\
         Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n\
         HEAD /consumer?wsdl HTTP/1.1\r\nHost: a\r\n\r\n",
        first.len(),
        second.len(),
    );
    client.send(both.as_bytes());
    assert_eq!(client.answer().0, 202);
    assert_eq!(client.answer().0, 202);
    let mut head = vec![0; 4096];
    let count = client.0.read(&mut head).unwrap();
    assert!(head[..count].ends_with(b"\r\n\r\n"), "HEAD has no content");
    client.send(
        b"POST /consumer HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\n\
          Expect: 100-continue\r\nContent-Length: 4\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(client.answer().0, 100);
    client.send(b"<a/>");
    assert_eq!(client.answer().0, 500);
    assert!(client.is_closed());
    assert_eq!(ended(consumer).classes[0].processed, 2);
}

#[test]
fn a_worker_that_panics_is_counted_and_goes_on() {
    fn fails_at_four(entity: &Entity) {
        if entity.id == 4 {
            std::panic::resume_unwind(Box::new("a defect"));
        }
    }
    let consumer = Consumer::start(&Config { job: fails_at_four, ..ordinary() }).unwrap();
    let mut client = Client::to(&consumer);
    for sequence in 1..=4 {
        assert_eq!(client.post("/consumer", "", &message(sequence, None)).0, 202);
    }
    let class = &ended(consumer).classes[0];
    assert_eq!((class.processed, class.panicked, class.samples.len()), (3, 1, 6));
}

#[test]
fn a_full_queue_and_a_spent_share_refuse_and_lose_nothing() {
    let slow = Config { places: 2, share_permille: None, ..ordinary() };
    let slow = Config { work_ns: [20_000_000; 8], ..slow };
    let consumer = Consumer::start(&slow).unwrap();
    let mut client = Client::to(&consumer);
    let mut accepted = 0;
    for sequence in 1..=20 {
        let (status, content) = client.post("/consumer", "", &message(sequence, None));
        match status {
            202 => accepted += 1,
            _ => assert!(fault_text(&content).contains("the queue is full"), "{content}"),
        }
    }
    let class = &ended(consumer).classes[0];
    assert!(class.refused_full > 0 && class.refused_full + accepted == 20);
    assert_eq!(class.processed, accepted, "what was accepted is processed behind the end");

    let small = Config { share_permille: Some(10), work_ns: [5_000_000; 8], ..ordinary() };
    let consumer = Consumer::start(&small).unwrap();
    let mut client = Client::to(&consumer);
    // Until one was processed its cost is a guess.
    let mut refusal = None;
    for sequence in 1..=2000 {
        let (status, content) = client.post("/consumer", "", &message(sequence, None));
        if status == 500 {
            refusal = Some(fault_text(&content));
            break;
        }
    }
    assert!(refusal.unwrap().contains("share of the core"));
    let class = &ended(consumer).classes[0];
    assert_eq!((class.refused_over_share, class.processed), (1, class.accepted));
}

#[test]
fn the_description_is_xml_with_the_address_that_was_asked() {
    let consumer = Consumer::start(&ordinary()).unwrap();
    let mut client = Client::to(&consumer);
    client.send(b"GET /consumer?wsdl HTTP/1.1\r\nHost: ship.example:81\r\n\r\n");
    let (status, text) = client.answer();
    assert_eq!(status, 200);
    let mut reader = Reader::new(&text);
    reader.check_rest().unwrap();
    assert_eq!(text.matches("http://ship.example:81/consumer\"").count(), 2);
    client.send(b"GET /consumer?wsdl HTTP/1.1\r\nHost: \"><\r\n\r\n");
    assert!(client.answer().1.contains(&format!("{}/consumer", consumer.address())));
    client.send(b"GET /statistics HTTP/1.1\r\nHost: a\r\n\r\n");
    let counts: serde_json::Value = serde_json::from_str(&client.answer().1).unwrap();
    assert_eq!(counts["namespace"], NAMESPACE);
    assert_eq!(counts["classes"][0]["accepted"], 0);
    client.send(b"PUT /consumer HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer().0, 405);
    ended(consumer);
}

#[test]
fn more_connections_than_places_are_served() {
    let consumer = Consumer::start(&ordinary()).unwrap();
    let mut clients: Vec<Client> = Vec::new();
    for sequence in 1..=(super::engine::MAX_CONNECTIONS as u64 + 3) {
        let mut client = Client::to(&consumer);
        assert_eq!(client.post("/consumer", "", &message(sequence, None)).0, 202);
        clients.push(client);
    }
    assert!(clients[0].is_closed(), "the one that was longest silent");
    let last = clients.last_mut().unwrap();
    assert_eq!(last.post("/consumer", "", &message(99, None)).0, 202);
    assert_eq!(ended(consumer).engine.closed_connections, 3);
}

#[test]
fn strangers_take_the_places_of_strangers() {
    let consumer = Consumer::start(&ordinary()).unwrap();
    let mut producer = Client::to(&consumer);
    assert_eq!(producer.post("/consumer", "", &message(1, None)).0, 202);
    let strangers = 2 * super::engine::MAX_CONNECTIONS;
    let mut strangers: Vec<Client> = (0..strangers).map(|_| Client::to(&consumer)).collect();
    let last = strangers.last_mut().unwrap();
    last.send(b"GET /clock HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(last.answer().0, 200, "all before it have had a place");
    assert_eq!(producer.post("/consumer", "", &message(2, None)).0, 202);
    ended(consumer);
}

/// One message of one entity.
fn one_message(url: &str) -> producer::Config {
    producer::Config {
        url: Target::parse(url).unwrap(),
        schedule: Schedule::new(1.0, Duration::from_secs(1)).unwrap(),
        entities: 1,
        class: None,
        urgency: None,
        connections: 1,
        timeout: MAX_WAIT,
        priority: None,
        core: None,
        is_same_clock: false,
    }
}

fn produce(consumer: &Consumer, rate_per_s: f64, duration: Duration) -> Produced {
    let config = producer::Config {
        schedule: Schedule::new(rate_per_s, duration).unwrap(),
        entities: 5,
        urgency: Some(0),
        connections: 4,
        ..one_message(&format!("http://{}/consumer", consumer.address()))
    };
    producer::produce(&config, &Progress::default(), &AtomicBool::new(false)).unwrap()
}

#[test]
fn a_producer_sends_on_schedule_and_all_of_it_is_stored() {
    let config = Config { share_permille: Some(USUAL_SHARE_PERMILLE), ..ordinary() };
    let consumer = Consumer::start(&config).unwrap();
    let produced = produce(&consumer, 200.0, Duration::from_millis(500));
    assert_eq!((produced.due, produced.sent, produced.accepted), (100, 100, 100), "{produced:?}");
    assert_eq!(produced.clocks, Relation::Same);
    let outcome = ended(consumer);
    let figures = results::consumer(&config, &outcome, 0);
    let class = &figures["classes"][0];
    assert_eq!((&class["accepted"], &class["t2_t0"]["samples"]), (&100.into(), &500.into()));
    assert_eq!(class["clocks_disagree"], 0);
    let (inside, whole) = (&class["t2_t1"]["mean_us"], &class["t2_t0"]["mean_us"]);
    assert!(inside.as_f64() < whole.as_f64(), "{class}");
    let text = results::consumer_text(&figures);
    assert!(text.contains("100 accepted") && text.contains("T1-T0"), "{text}");
    let mut out = Vec::new();
    results::write_samples(&outcome, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap().lines().count(), 501);
}

/// Another's consumer, that has no `/clock`: it is not asked, and gets T0 all the same.
#[test]
fn a_consumer_of_the_same_host_need_not_tell_its_clock() {
    use std::io::{BufRead as _, BufReader};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let other = std::thread::spawn(move || {
        // The first connection is to see whether somebody is there.
        drop(listener.accept().unwrap());
        let mut from = BufReader::new(listener.accept().unwrap().0);
        let (mut lines, mut line) = (Vec::new(), String::new());
        while from.read_line(&mut line).unwrap() > 2 {
            lines.push(std::mem::take(&mut line));
        }
        let length = lines.iter().find_map(|line| line.strip_prefix("Content-Length: "));
        let mut body = vec![0; length.unwrap().trim().parse().unwrap()];
        from.read_exact(&mut body).unwrap();
        from.get_mut().write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").unwrap();
        (lines.remove(0), String::from_utf8(body).unwrap())
    });
    let url = format!("http://{address}/axis2/services/consumer");
    let config = producer::Config { is_same_clock: true, ..one_message(&url) };
    let produced = producer::produce(&config, &Progress::default(), &AtomicBool::new(false));
    let (line, body) = other.join().unwrap();
    assert!(line.starts_with("POST /axis2/services/consumer "), "{line}");
    assert!(body.contains("<sentNs>"), "{body}");
    let produced = produced.unwrap();
    assert_eq!((produced.accepted, produced.clocks), (1, Relation::Same), "{produced:?}");
}

#[test]
fn a_producer_that_is_faster_than_the_consumer_counts_what_is_refused() {
    let slow = Config { places: 1, share_permille: None, ..ordinary() };
    let consumer = Consumer::start(&Config { work_ns: [10_000_000; 8], ..slow }).unwrap();
    let produced = produce(&consumer, 1000.0, Duration::from_millis(200));
    let outcome = ended(consumer);
    let class = &outcome.classes[0];
    assert_eq!((produced.accepted, produced.refused), (class.accepted, class.refused_full));
    assert!(produced.refused > 0 && produced.accepted == class.processed, "{produced:?}");
    assert_eq!(produced.accepted + produced.refused + produced.unknown, produced.sent);
    assert!(produced.first_failure.unwrap().contains("queue is full"));
}

#[test]
fn a_consumer_that_is_not_there_is_said() {
    let consumer = Consumer::start(&ordinary()).unwrap();
    let address = consumer.address();
    ended(consumer);
    let config = one_message(&format!("http://{address}/consumer"));
    let error = producer::produce(&config, &Progress::default(), &AtomicBool::new(false));
    assert!(error.unwrap_err().to_string().contains("is the consumer running?"));
}

#[test]
fn settings_out_of_range_are_refused() {
    for config in [
        Config { classes: 0, ..ordinary() },
        Config { classes: 9, ..ordinary() },
        Config { places: 0, ..ordinary() },
        Config { samples: 0, ..ordinary() },
        Config { share_permille: Some(1000), ..ordinary() },
        Config { core: Some(100_000), ..ordinary() },
    ] {
        let line = Consumer::start(&config).map(ended).unwrap_err().to_string();
        assert!(!line.contains('\n'), "{line}");
    }
}
