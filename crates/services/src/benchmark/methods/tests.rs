use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use proto::coap::machine::{Input, Output, Settings};
use proto::coap::transfer::Transfers;
use proto::coap::{Code, Content, format, option};
use proto::wsp::headers::{Rules, decode_with_content_type};
use proto::wsp::packet::{self, Pdu};
use proto::wsp::status;
use tokio::sync::oneshot;

use super::client::{MAX_FAILED, Over, Parsed, Series, judged, measure, timed, verify};
use super::service::{Methods, wsdl};
use super::{Form, MAX_ARRAY_ITEMS, MAX_STRING_CHARS, Method};
use crate::benchmark::{Answers, server};
use crate::client::{Config, Target};
use crate::xml::Reader;

fn ask(methods: &Methods, form: Form, xml: &str) -> (StatusCode, String) {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", form.media_type().parse().unwrap());
    let response = methods.answer(&headers, &form.encode(xml.as_bytes()).unwrap());
    assert_eq!(response.headers()["content-type"], form.media_type());
    let xml = form.decode(response.body()).unwrap();
    (response.status(), String::from_utf8(xml).unwrap())
}

fn envelope(content: &str) -> String {
    format!(
        "<e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\"><e:Body>{content}\
         </e:Body></e:Envelope>"
    )
}

#[test]
fn a_size_is_said_before_and_holds_for_all_forms() {
    let methods = Methods::new();
    for form in Form::ALL {
        let set =
            envelope("<setString xmlns='urn:longwire:benchmark:1'><size>40</size></setString>");
        assert_eq!(ask(&methods, form, &set).0, StatusCode::OK);
        for form in Form::ALL {
            let get = envelope("<b:getString xmlns:b='urn:longwire:benchmark:1'/>");
            let (status, answer) = ask(&methods, form, &get);
            assert_eq!(status, StatusCode::OK);
            assert!(answer.contains("abcdefghijklmnopqrstuvwxyz 0123456789abc<"), "{answer}");
        }
    }
}

#[test]
fn what_is_wrong_is_a_fault_in_the_form_of_the_request() {
    let methods = Methods::new();
    let over = (MAX_STRING_CHARS + 1).to_string();
    for (content, reason) in [
        ("<nop/>", "no method 'nop'"),
        ("<x xmlns='urn:longwire:benchmark:1'/>", "no method 'x'"),
        ("<setString xmlns='urn:longwire:benchmark:1'/>", "takes one element 'size'"),
        (
            &format!("<setString xmlns='urn:longwire:benchmark:1'><size>{over}</size></setString>"),
            "over the limit of 1000000",
        ),
        (
            "<setString xmlns='urn:longwire:benchmark:1'><size>-1</size></setString>",
            "over the limit of 1000000",
        ),
        ("<nop xmlns='urn:longwire:benchmark:1'/><b/>", "more than one element"),
        ("", "no SOAP envelope"),
    ] {
        for form in Form::ALL {
            let (status, answer) = ask(&methods, form, &envelope(content));
            assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
            let said = answer.replace("&apos;", "'");
            assert!(said.contains("Fault") && said.contains(reason), "{content}: {answer}");
        }
    }
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "text/plain".parse().unwrap());
    assert_eq!(methods.answer(&headers, b"").status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    headers.insert("content-type", "application/exi".parse().unwrap());
    assert_eq!(methods.answer(&headers, b"no EXI").status(), StatusCode::INTERNAL_SERVER_ERROR);
}

#[test]
fn the_description_names_every_method() {
    let wsdl = wsdl("http://h:1/methods");
    Reader::new(&wsdl).check_rest().unwrap();
    for method in Method::ALL {
        assert!(wsdl.contains(&format!("soapAction=\"{}\"", method.action())));
        assert!(wsdl.contains(&format!("<xsd:element name=\"{}\">", method.response())));
    }
    assert!(wsdl.contains("location=\"http://h:1/methods\"") && !wsdl.contains('@'));
}

/// A peer over UDP that a thread is, until it is dropped.
struct Peer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Peer {
    /// `serve` gets each datagram, and its answers to whoever sent it.
    fn new(mut serve: impl FnMut(&UdpSocket, SocketAddr, &[u8]) + Send + 'static) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = socket.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut room = vec![0; 65_536];
            loop {
                let (len, from) = socket.recv_from(&mut room).unwrap();
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                serve(&socket, from, &room[..len]);
            }
        });
        Self { address, stop, thread: Some(thread) }
    }

    /// A WAP gateway in front of the service.
    fn wsp() -> Self {
        let methods = Methods::new();
        Self::new(move |socket, from, datagram| {
            let (tid, pdu) = packet::decode(datagram).unwrap();
            let Pdu::Request { uri, headers, body, .. } = pdu else { panic!("{pdu:?}") };
            assert_eq!(uri, b"http://service.example/methods");
            let fields = decode_with_content_type(Rules::DEFAULT, headers).unwrap().fields;
            let mut headers = HeaderMap::new();
            headers.insert("content-type", HeaderValue::from_bytes(&fields[0].value).unwrap());
            let answer = methods.answer(&headers, body);
            let media = answer.headers()["content-type"].to_str().unwrap();
            let media = media.split(';').next().unwrap().to_owned() + "\0";
            let status = status::nearest(answer.status().as_u16());
            let reply = Pdu::Reply { status, headers: media.as_bytes(), body: answer.body() };
            let mut room = vec![0; answer.body().len() + 100];
            let len = packet::encode(tid, &reply, &mut room).unwrap();
            // What fits no datagram gets lost here, as it does at a gateway.
            let _ = socket.send_to(&room[..len], from);
        })
    }

    /// A proxy of CoAP in front of the service.
    fn coap() -> Self {
        let methods = Methods::new();
        let settings = Settings { seed: [3, 7], is_challenging: false, rate_bps: None };
        let mut machine = Transfers::new(&settings);
        let epoch = Instant::now();
        Self::new(move |socket, peer, datagram| {
            let bytes = Bytes::copy_from_slice(datagram);
            let now = epoch.elapsed();
            machine.handle_input(now, Input::Datagram { peer, bytes, is_group: false });
            while let Some(output) = machine.poll_output() {
                match output {
                    Output::Datagram { peer, bytes } => {
                        socket.send_to(&bytes, peer).unwrap();
                    }
                    Output::Request { exchange, content, .. } => {
                        let number = content.uint(option::CONTENT_FORMAT).unwrap();
                        let media = format::media_type(number.try_into().unwrap()).unwrap().0;
                        let mut headers = HeaderMap::new();
                        headers.insert("content-type", HeaderValue::from_static(media));
                        let answer = methods.answer(&headers, &content.payload);
                        let code = match answer.status() {
                            StatusCode::OK => Code::CHANGED,
                            _ => Code::INTERNAL_SERVER_ERROR,
                        };
                        let content = Content::new(code)
                            .with_uint(option::CONTENT_FORMAT, number)
                            .with_payload(answer.into_body());
                        machine.handle_input(now, Input::Respond { exchange, content });
                    }
                    _ => {}
                }
            }
        })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // So that the thread sees it.
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.send_to(b"", self.address).unwrap();
        let joined = self.thread.take().unwrap().join();
        assert!(joined.is_ok() || thread::panicking(), "the peer failed");
    }
}

fn config(timeout: Duration) -> Config {
    Config {
        proxy: None,
        gzip: false,
        new_connection: false,
        warm_up: None,
        timeout,
        budget: None,
        congestion: None,
    }
}

fn series(over: Over, form: Form, method: Method, size: u32) -> Series {
    let base = Target::parse("http://service.example").unwrap();
    Series { base, method, size, form, over, count: 1, warm_up: 0, slowdown: 1 }
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn calls_over_datagrams_are_split_and_checked() {
    for (over, peer) in
        [(Over::Wsp as fn(SocketAddr) -> Over, Peer::wsp()), (Over::Coap, Peer::coap())]
    {
        let over = over(peer.address);
        for form in Form::ALL {
            for method in Method::TIMED {
                let series = Series { count: 3, warm_up: 2, ..series(over, form, method, 300) };
                let measured = measure(&series, &config(LONG)).await;
                if let (Over::Coap(_), Form::Wbxml) = (over, form) {
                    let error = measured.unwrap_err().to_string();
                    assert!(error.contains("no content format of CoAP"), "{error}");
                    continue;
                }
                let calls = measured.unwrap();
                assert_eq!((calls.measured.len(), calls.errors), (3, 0), "{:?}", calls.measured);
                assert_eq!(calls.t_soap.unwrap().count, 3);
                assert!(calls.measured.iter().all(|call| call.sent > 0 && call.parse_s > 0.0));
            }
        }
        let series = series(over, Form::Xml, Method::GetIntArray, MAX_ARRAY_ITEMS + 1);
        let error = measure(&series, &config(LONG)).await.unwrap_err().to_string();
        assert!(error.contains("setIntArray: fault: a size over the limit of 100000"), "{error}");
    }
}

#[tokio::test]
async fn the_largest_answers_are_read_in_each_form() {
    let coap = Peer::coap();
    let (base, stop, serving) = served();
    for form in Form::ALL {
        for (method, size) in
            [(Method::GetString, MAX_STRING_CHARS), (Method::GetIntArray, MAX_ARRAY_ITEMS)]
        {
            let http = Series { base: base.clone(), ..series(Over::Http, form, method, size) };
            let calls = measure(&http, &config(LONG)).await.unwrap();
            assert_eq!(calls.errors, 0, "{:?}", calls.measured);
            let bytes = calls.measured[0].answer_bytes;
            if form != Form::Wbxml {
                let series = series(Over::Coap(coap.address), form, method, size);
                let calls = measure(&series, &config(LONG)).await.unwrap();
                assert_eq!(calls.errors, 0, "{:?}", calls.measured);
                assert_eq!(calls.measured[0].answer_bytes, bytes);
            }
        }
    }
    drop(stop);
    serving.await.unwrap();
    // A datagram takes no more than 64 KiB.
    let wsp = Peer::wsp();
    let series = series(Over::Wsp(wsp.address), Form::Xml, Method::GetString, MAX_STRING_CHARS);
    let calls = measure(&series, &config(Duration::from_millis(300))).await.unwrap();
    assert_eq!(calls.measured[0].error.as_deref(), Some("no answer in time"));
}

#[tokio::test]
async fn a_service_that_never_answers_is_given_up() {
    // Nobody reads what comes there, and nobody listens there.
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let silent = silent.local_addr().unwrap();
    let closed = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let base = Target::parse(&format!("http://{}", closed.local_addr().unwrap())).unwrap();
    drop(closed);
    for over in [Over::Wsp(silent), Over::Coap(silent), Over::Http] {
        let of = Series { base: base.clone(), ..series(over, Form::Xml, Method::Nop, 0) };
        let of = Series { count: 1000, warm_up: 2, ..of };
        let calls = measure(&of, &config(Duration::from_millis(20))).await.unwrap();
        let made = (calls.measured.len(), calls.errors, calls.not_made);
        assert_eq!(made, (MAX_FAILED - 2, MAX_FAILED - 2, 1002 - MAX_FAILED), "{over:?}");
        assert!(calls.t_call.is_none());
    }
}

#[test]
fn what_is_checked_is_no_part_of_what_is_read() {
    const CHECK: Duration = Duration::from_millis(50);
    fn slow(series: &Series, parsed: &Parsed) -> Result<(), String> {
        // sleep: what must not be measured is time.
        thread::sleep(CHECK);
        verify(series, parsed)
    }
    let methods = Methods::new();
    let series = series(Over::Http, Form::Xml, Method::GetIntArray, 100);
    let get = envelope("<getIntArray xmlns='urn:longwire:benchmark:1'/>");
    let (_, answer) = ask(&methods, Form::Xml, &get);
    let mut parsed = Parsed::new(&series);
    let begin = Instant::now();
    let (parse_s, outcome) = judged(&series, (200, answer.as_bytes()), &mut parsed, slow);
    assert_eq!(outcome, Ok(()));
    let elapsed_s = begin.elapsed().as_secs_f64();
    assert!(parse_s > 0.0 && elapsed_s - parse_s >= CHECK.as_secs_f64(), "{parse_s}");
    // What is wrong is told all the same.
    let other = answer.replacen("<item>", "<item>1", 1);
    let (_, outcome) = judged(&series, (200, other.as_bytes()), &mut parsed, verify);
    assert_eq!(outcome, Err("another number at 0".to_owned()));
    let cut = answer.replacen("</soap:Envelope>", "", 1);
    assert_ne!(cut, answer);
    assert!(judged(&series, (200, cut.as_bytes()), &mut parsed, verify).1.is_err());
}

#[test]
fn a_status_comes_before_what_is_no_soap() {
    let series = series(Over::Http, Form::Cbor, Method::Nop, 0);
    let mut parsed = Parsed::new(&series);
    let (_, outcome) = judged(&series, (406, b"format 60 is not known"), &mut parsed, verify);
    assert_eq!(outcome, Err("status 406".to_owned()));
    let methods = Methods::new();
    let request = Form::Cbor.encode(envelope("<x/>").as_bytes()).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/cbor"));
    let fault = methods.answer(&headers, &request).into_body();
    let (_, outcome) = judged(&series, (500, &fault), &mut parsed, verify);
    assert!(outcome.unwrap_err().starts_with("fault: no method 'x'"));
}

#[tokio::test]
async fn a_warm_up_is_no_longer_than_what_is_measured() {
    let series = Series { warm_up: 2, ..series(Over::Http, Form::Xml, Method::Nop, 0) };
    let error = measure(&series, &config(LONG)).await.unwrap_err().to_string();
    assert!(error.contains("choose one from 0 to 1"), "{error}");
}

#[tokio::test]
async fn a_slower_processor_takes_as_many_times_longer() {
    let series = Series { slowdown: 4, ..series(Over::Http, Form::Xml, Method::Nop, 0) };
    let took = Duration::from_millis(5);
    // sleep: work that takes a known time.
    let ((), took_s) = timed(&series, || thread::sleep(took));
    assert!(took_s >= 4.0 * took.as_secs_f64(), "{took_s}");
    for slowdown in [0, 1001] {
        let wrong = Series { slowdown, ..series.clone() };
        let error = measure(&wrong, &config(LONG)).await.unwrap_err().to_string();
        assert!(error.contains("choose 1 to 1000"), "{error}");
    }
}

/// The service over HTTP, until the sender is dropped.
fn served() -> (Target, oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
    let listen = (Ipv4Addr::LOCALHOST, 0).into();
    let (answers, settings) = (Answers::generated(1), crate::server::Settings::default());
    let config = server::Config { listen, answers, congestion: None, settings };
    let server = config.bind().unwrap();
    let base = Target::parse(&format!("http://{}", server.address())).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.run(async {
        let _ = stopped.await;
    }));
    (base, stop, serving)
}

#[tokio::test]
async fn calls_over_http_are_split_and_checked() {
    let (base, stop, serving) = served();
    for form in Form::ALL {
        for method in Method::TIMED {
            let series = Series {
                base: base.clone(),
                count: 3,
                warm_up: 1,
                ..series(Over::Http, form, method, 300)
            };
            let calls = measure(&series, &config(LONG)).await.unwrap();
            assert_eq!((calls.measured.len(), calls.errors), (3, 0), "{:?}", calls.measured);
            assert_eq!(calls.t_inv.unwrap().count, 3);
            assert!(calls.measured.iter().all(|call| call.answer_bytes > 0 && call.parse_s > 0.0));
        }
    }
    let over = series(Over::Http, Form::Xml, Method::GetString, MAX_STRING_CHARS + 1);
    let over = Series { base, ..over };
    let error = measure(&over, &config(LONG)).await.unwrap_err().to_string();
    assert!(error.contains("over the limit of 1000000"), "{error}");
    drop(stop);
    serving.await.unwrap();
}
