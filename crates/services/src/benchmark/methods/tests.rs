use std::net::Ipv4Addr;
use std::time::Duration;

use http::{HeaderMap, StatusCode};

use super::client::{Over, Series, measure};
use super::service::{Methods, wsdl};
use super::{Form, MAX_STRING_CHARS, Method};
use crate::benchmark::{Answers, server};
use crate::client::{Config, Target};
use crate::server::Settings;
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
            assert!(answer.contains("Fault") && answer.contains(reason), "{content}: {answer}");
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

#[tokio::test]
async fn calls_over_http_are_split_and_checked() {
    let listen = (Ipv4Addr::LOCALHOST, 0).into();
    let (answers, settings) = (Answers::generated(1), Settings::default());
    let config = server::Config { listen, answers, congestion: None, settings };
    let server = config.bind().unwrap();
    let base = Target::parse(&format!("http://{}", server.address())).unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(server.run(async {
        let _ = stopped.await;
    }));
    let config = Config {
        proxy: None,
        gzip: false,
        new_connection: false,
        warm_up: None,
        timeout: Duration::from_secs(20),
        budget: None,
        congestion: None,
    };
    for form in Form::ALL {
        for method in Method::TIMED {
            let (base, size, over) = (base.clone(), 300, Over::Http);
            let series = Series { base, method, size, form, over, count: 3, warm_up: 1 };
            let calls = measure(&series, &config).await.unwrap();
            assert_eq!((calls.measured.len(), calls.errors), (3, 0), "{:?}", calls.measured);
            assert_eq!(calls.t_inv.unwrap().count, 3);
            assert!(calls.measured.iter().all(|call| call.answer_bytes > 0 && call.parse_s > 0.0));
        }
    }
    let series = Series {
        base,
        method: Method::GetString,
        size: MAX_STRING_CHARS + 1,
        form: Form::Xml,
        over: Over::Http,
        count: 1,
        warm_up: 0,
    };
    let error = measure(&series, &config).await.unwrap_err().to_string();
    assert!(error.contains("over the limit of 1000000"), "{error}");
    drop(stop);
    serving.await.unwrap();
}
