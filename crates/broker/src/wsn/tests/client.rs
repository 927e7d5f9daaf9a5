//! What a client says is what the adapter reads, and the other way round.

use proptest::prelude::*;

use super::*;
use crate::wsn::client::{
    Manner, Notified, Policies, Said, Wish, create_pull_point, destroy_pull_point, get_messages,
    notify, read_fault, read_messages, read_pull_point, read_renewed, read_subscribed, renew,
    subscribe, unsubscribe,
};

fn wish(filter: &str) -> Wish<'_> {
    Wish {
        filter,
        manner: Manner::Usual,
        lifetime: Duration::from_secs(600),
        policies: Some(Policies { send_current: false }),
    }
}

fn said<'a>(topic: &'a str, payload: &'a [u8]) -> Said<'a> {
    Said { topic, payload, content_type: None, properties: &[] }
}

/// What the adapter answers.
fn asked(bench: &mut Bench, path: &str, body: &Bytes) -> Bytes {
    bench.ask_as(path, "text/xml", body, "").body
}

/// The path of an address of the adapter's.
fn path(address: &str) -> String {
    let (_, rest) = address.split_once("://").unwrap();
    rest.find('/').map_or("/", |at| &rest[at..]).to_owned()
}

#[test]
fn a_subscription_is_made_renewed_and_ended() {
    let mut bench = Bench::new();
    let body = subscribe(Ok(CONSUMER), &wish("unit/+")).unwrap();
    let subscribed = read_subscribed(&asked(&mut bench, "/", &body)).unwrap();
    assert_eq!(subscribed.lifetime, Some(Duration::from_secs(600)));
    let at = path(subscribed.reference.address());
    bench.publish("other", "<a/>");
    bench.publish_as("unit/7", "<a>1</a>", |publication| {
        publication.grade = Grade::AtLeastOnce;
        publication.details_mut().properties = vec![("k".to_owned(), "v".to_owned())];
    });
    let post = bench.posted(Some(202));
    let wanted = Notified {
        topic: Some("unit/7".to_owned()),
        payload: "<a>1</a>".into(),
        content_type: Some("application/xml".to_owned()),
        properties: vec![("k".to_owned(), "v".to_owned())],
    };
    assert_eq!(read_messages(&post.body), Ok(vec![wanted]));
    let body = renew(&subscribed.reference, Duration::from_secs(60));
    let renewed = read_renewed(&asked(&mut bench, &at, &body));
    assert_eq!(renewed, Ok(Some(Duration::from_secs(60))));
    let body = unsubscribe(&subscribed.reference);
    assert_eq!(read_fault(&asked(&mut bench, &at, &body)), None);
    let fault = read_fault(&asked(&mut bench, &at, &body)).unwrap();
    assert!(fault.starts_with("ResourceUnknownFault: "), "{fault}");
}

#[test]
fn what_is_published_arrives_in_each_manner() {
    let mut bench = Bench::new();
    let body = subscribe(Ok(CONSUMER), &wish("#")).unwrap();
    read_subscribed(&asked(&mut bench, "/", &body)).unwrap();
    let pairs = [("k".to_owned(), "v".to_owned())];
    for manner in [Manner::Usual, Manner::Simple] {
        for topic in ["a", "a/b.c/ä", "unit 7//x_y"] {
            for (payload, content_type, known) in [
                (&b"<x:a xmlns:x='u'>1</x:a>"[..], None, Some("application/xml")),
                (b"text", None, None),
                (b"{\"a\":1}", Some("application/json"), Some("application/json")),
                (b"\0\xff", None, None),
                (b"<a/>", Some("text/plain"), Some("text/plain")),
            ] {
                let message = Said { content_type, properties: &pairs, ..said(topic, payload) };
                let body = notify(&message, manner).unwrap();
                assert_eq!(asked(&mut bench, "/", &body), Bytes::new());
                let post = bench.posted(Some(202));
                let came = read_messages(&post.body).unwrap();
                let [came] = came.as_slice() else { panic!("{came:?}") };
                assert_eq!(came.topic.as_deref(), Some(topic));
                assert_eq!((&came.payload[..], came.content_type.as_deref()), (payload, known));
                assert_eq!(came.properties, pairs);
            }
        }
    }
    assert!(notify(&said("a/#", b""), Manner::Usual).is_err());
}

#[test]
fn a_pull_point_gives_what_waits() {
    let mut bench = Bench::new();
    let point = read_pull_point(&asked(&mut bench, "/", &create_pull_point())).unwrap();
    let body = subscribe(Err(&point), &wish("a/#")).unwrap();
    read_subscribed(&asked(&mut bench, "/", &body)).unwrap();
    let at = path(point.address());
    let get = |bench: &mut Bench| read_messages(&asked(bench, &at, &get_messages(&point, 5)));
    assert_eq!(get(&mut bench), Ok(Vec::new()));
    bench.publish("a/b", "<one/>");
    let came = get(&mut bench).unwrap();
    assert_eq!(came.len(), 1);
    assert_eq!((came[0].topic.as_deref(), &came[0].payload[..]), (Some("a/b"), &b"<one/>"[..]));
    assert_eq!(read_fault(&asked(&mut bench, &at, &destroy_pull_point(&point))), None);
    assert!(get(&mut bench).unwrap_err().contains("ResourceUnknown"));
}

#[test]
fn dialects_are_those_that_a_filter_needs() {
    for (filter, manner, dialect, text) in [
        ("a", Manner::Usual, "Simple", ">a<"),
        ("a/b", Manner::Usual, "Concrete", ">a/b<"),
        ("a/+", Manner::Usual, "Full", ">a/*<"),
        ("a/#", Manner::Usual, "Full", ">a//.<"),
        ("a/b", Manner::Simple, "Simple", ">a_x002F_b<"),
    ] {
        let body = subscribe(Ok(CONSUMER), &Wish { manner, ..wish(filter) }).unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(body.contains(&format!("/{dialect}\"")) && body.contains(text), "{body}");
    }
    for (filter, manner) in
        [("a/+", Manner::Simple), ("a/#/b", Manner::Usual), ("$share/g/a", Manner::Usual)]
    {
        assert!(subscribe(Ok(CONSUMER), &Wish { manner, ..wish(filter) }).is_err(), "{filter}");
    }
}

#[test]
fn parameters_of_a_reference_come_back_with_each_request() {
    let answer = soap11(
        "<n:SubscribeResponse><n:SubscriptionReference><a:Address>http://h/m</a:Address>\
         <a:ReferenceParameters><l:Id>7</l:Id></a:ReferenceParameters></n:SubscriptionReference>\
         </n:SubscribeResponse>",
    );
    let subscribed = read_subscribed(answer.as_bytes()).unwrap();
    assert_eq!(subscribed.lifetime, None);
    let body = String::from_utf8(unsubscribe(&subscribed.reference).to_vec()).unwrap();
    let tree = Tree::parse(&body).unwrap();
    let header = tree.child(tree.root(), SOAP11, "Header").unwrap();
    assert!(tree.elements(header).any(|block| tree.name(block).local == "Id"), "{body}");
    let far = answer.replace("http://h/m", "urn:x");
    assert!(read_subscribed(far.as_bytes()).unwrap_err().contains("not of HTTP"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn answers_of_anybody_are_read_or_refused(
        body in prop::collection::vec(any::<u8>(), 0..200),
        content in "(<n:[A-Z][a-z]{0,8}>|</n:Notify>|<n:Topic>|[a-z/*. ]{0,5}|<a:Address>){0,8}",
    ) {
        for body in [body, soap11(&content).into_bytes()] {
            let _ = (read_subscribed(&body), read_renewed(&body), read_pull_point(&body));
            let _ = (read_messages(&body), read_fault(&body));
        }
    }
}
