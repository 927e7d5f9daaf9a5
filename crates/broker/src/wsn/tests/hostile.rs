use std::path::Path;

use proptest::prelude::*;

use super::*;

fn status(bench: &mut Bench, request: &str) -> (u16, String) {
    let answer = bench.ask_as("/", "text/xml", request.as_bytes(), "");
    (answer.status, String::from_utf8(answer.body.to_vec()).unwrap())
}

#[test]
fn documents_that_would_grow_or_nest_are_refused() {
    let mut bench = Bench::new();
    let good = soap11(&notify("a", "<x/>"));
    let entities = "<!DOCTYPE x [<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;'>]>";
    let deep = notify("a", &["<x>".repeat(5000), "</x>".repeat(5000)].concat());
    let wide = notify("a", &format!("<x>{}</x>", "<y/>".repeat(200_000)));
    let names: String = (0..70).map(|at| format!(" xmlns:p{at}='urn:{at}'")).collect();
    for (request, what) in [
        (format!("{entities}{good}"), "document type"),
        (format!("<!DOCTYPE x SYSTEM 'file:///etc/passwd'>{good}"), "document type"),
        (soap11(&notify("a", "<x>&b;</x>")), "reference"),
        (soap11(&notify("a", "<q:x/>")), "not declared"),
        (soap11(&deep), "depth"),
        (soap11(&wide), "nodes"),
        (soap11(&notify("a", &format!("<x{names}/>"))), "declarations"),
        (good.replace("</s:Body>", ""), "end tag"),
        (format!("{good}<more/>"), "behind"),
    ] {
        let (status, text) = status(&mut bench, &request);
        assert!(status == 500 && text.contains("s:Client"), "{what}: {text}");
    }
    assert_eq!(bench.core.counts().published, 0);
    let long = vec![b' '; Settings::default().max_body_bytes + 1];
    assert_eq!(bench.ask_as("/", "text/xml", &long, "").status, 413);
}

#[test]
fn a_filter_that_never_ends_harms_nobody_else() {
    let mut bench = Bench::new();
    let filter = format!(
        "<n:MessageContent Dialect='{}'>//*[count(//*[count(//*) > 1]) > 1]</n:MessageContent>",
        names::XPATH
    );
    bench.good("/", &subscribe("http://slow.example/", "a", &filter, ""));
    bench.subscribe("a", "");
    bench.publish("a", &format!("<a>{}</a>", "<b/>".repeat(5000)));
    assert_eq!(bench.posted(Some(200)).url, CONSUMER);
}

#[test]
fn too_much_of_anything_is_refused() {
    let mut bench = Bench::new();
    let message = "<n:NotificationMessage><n:Topic \
                   Dialect='http://docs.oasis-open.org/wsn/t-1/TopicExpression/Simple'>a</n:Topic>\
                   <n:Message><x/></n:Message></n:NotificationMessage>";
    let many = format!("<n:Notify>{}</n:Notify>", message.repeat(1001));
    assert_eq!(bench.ask("/", &many).0, 500);
    let consumer = format!("http://{}/", "x".repeat(3000));
    assert_eq!(bench.ask("/", &subscribe(&consumer, "a", "", "")).0, 500);
    for address in ["http://a/ b", "http://a/&#10;X: y", "", "http://é/"] {
        assert_eq!(bench.ask("/", &subscribe(address, "a", "", "")).0, 500, "{address}");
    }
    let parameters = "<a:k/>".repeat(17);
    let reference = format!(
        "http://a/</a:Address><a:ReferenceParameters>{parameters}</a:ReferenceParameters>\
         <a:Address>x"
    );
    assert_eq!(bench.ask("/", &subscribe(&reference, "a", "", "")).0, 500);
    let header = format!(
        "<s:Envelope xmlns:s='{SOAP11}' xmlns:lw='urn:longwire:wsn'><s:Header><lw:Properties>{}\
         </lw:Properties></s:Header><s:Body/></s:Envelope>",
        "<lw:Property name='a'/>".repeat(65)
    );
    assert_eq!(status(&mut bench, &header).0, 500);
}

/// Envelopes of other people: none is answered with what is no envelope, or with more than one.
#[test]
fn messages_of_others_are_answered() {
    let Ok(data) = std::env::var("LONGWIRE_DATA") else {
        println!("LONGWIRE_DATA is not set: no message of others was tried");
        return;
    };
    let mut bench = Bench::new();
    let mut tried = 0;
    let mut folders = vec![Path::new(&data).join("soap")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "xml") {
                let Ok(bytes) = std::fs::read(&path) else { continue };
                let answer = bench.ask_as("/", "text/xml", &bytes, "");
                assert!([200, 202, 400, 413, 500].contains(&answer.status), "{path:?} {answer:?}");
                tried += 1;
            }
        }
    }
    println!("{tried} messages of others were tried");
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes: Vec<u8>, path in "/[a-z0-9-]{0,12}/?[0-9a-f-]{0,20}") {
        let mut bench = Bench::new();
        let answer = bench.ask_as(&path, "text/xml", &bytes, "");
        prop_assert!(answer.status >= 200);
    }

    #[test]
    fn a_request_with_a_change_is_answered(at: prop::sample::Index, byte: u8) {
        let mut bench = Bench::new();
        let filter = format!(
            "<n:MessageContent Dialect='{}'>//l:x[1] = 'y'</n:MessageContent>", names::XPATH
        );
        for request in [
            soap11(&subscribe(CONSUMER, "l:a//.|b/*", &filter, "")),
            soap11(&notify("l:a", "<q:x xmlns:q='urn:q' y='1'>text &amp; more</q:x>")),
        ] {
            let mut bytes = request.into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bench.ask_as("/", "text/xml", &bytes, "");
        }
        for post in std::mem::take(&mut bench.posts) {
            prop_assert!(Tree::parse(std::str::from_utf8(&post.body).unwrap()).is_ok());
        }
    }
}
