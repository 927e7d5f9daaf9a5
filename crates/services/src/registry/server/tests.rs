use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::path::PathBuf;

use bytes::Bytes;
use proto::coap::machine::{Input, Output, Settings};
use proto::coap::transfer::Transfers;
use proto::coap::{Code, Content, format, option};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::super::core::{Core, Limits};
use super::super::store::Store;
use super::super::users::testing;
use super::http::OPENAPI;
use super::route::{Found, ROUTES, find};
use super::*;

/// A registry that serves, with users alice and bob.
struct Registry {
    http: SocketAddr,
    coap: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    done: tokio::task::JoinHandle<()>,
    folder: PathBuf,
    is_kept: bool,
}

impl Registry {
    async fn new(name: &str) -> Self {
        let name = format!("longwire-registry-server-{name}-{}", std::process::id());
        Self::at(std::env::temp_dir().join(name), Duration::from_secs(60)).await
    }

    async fn at(folder: PathBuf, token_life: Duration) -> Self {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let config = Config {
            listen: any,
            coap: Some(any),
            store: folder.clone(),
            users: None,
            coap_publisher: Some("alice".to_owned()),
            token_life,
            max_lease: Duration::from_secs(90_000),
            max_entries: 1000,
            max_entries_of_publisher: 100,
        };
        let (store, entities) = Store::open(&config.store).unwrap();
        let core = Core::new(Limits { ..config.limits() }, entities);
        let shared =
            Arc::new(Shared::of(&config, core, store, testing(&["alice", "bob"], token_life)));
        let listener = TcpListener::bind(any).await.unwrap();
        let address = listener.local_addr().unwrap();
        let coap = coap::bind(any).await.unwrap();
        let server = Server { shared, listener, address, coap: Some(coap) };
        let addresses = server.addresses();
        let (stop, stopped) = oneshot::channel::<()>();
        let done = tokio::spawn(server.run(async { drop(stopped.await) }));
        let [http, coap] = addresses[..] else { panic!("two addresses") };
        Self { http, coap, stop: Some(stop), done, folder, is_kept: false }
    }

    async fn end(mut self) {
        drop(self.stop.take());
        (&mut self.done).await.unwrap();
    }

    /// The folder outlives this registry.
    async fn leave(mut self) -> PathBuf {
        self.is_kept = true;
        let folder = self.folder.clone();
        self.end().await;
        folder
    }

    /// One request; the status, the fields and the content.
    async fn ask(
        &self,
        method: &str,
        path: &str,
        fields: &str,
        body: &str,
    ) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.http).await.unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{fields}\
             Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, content) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_lowercase(), content.to_owned())
    }

    async fn token(&self, user: &str) -> String {
        let body = format!("{{\"user\":\"{user}\",\"password\":\"{user}-password\"}}");
        let (status, _, content) = self.ask("POST", "/tokens", "", &body).await;
        assert_eq!(status, 201, "{content}");
        let value: Value = serde_json::from_str(&content).unwrap();
        value["token"].as_str().unwrap().to_owned()
    }

    async fn json(&self, method: &str, path: &str, token: &str, body: &str) -> (u16, Value) {
        let fields = format!("Authorization: Bearer {token}\r\nContent-Type: application/json\r\n");
        let (status, _, content) = self.ask(method, path, &fields, body).await;
        (status, serde_json::from_str(&content).unwrap_or(Value::String(content)))
    }

    /// A message of UDDI; the status and the answer.
    async fn soap(&self, set: &str, message: &str) -> (u16, String) {
        let name = message.find([' ', '>', '/']).unwrap();
        let (name, rest) = message.split_at(name);
        let message = format!("{name} xmlns='urn:uddi-org:api_v3'{rest}");
        let body = format!(
            "<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'><e:Body>{message}\
             </e:Body></e:Envelope>"
        );
        let path = format!("/uddi/{set}");
        let (status, _, content) =
            self.ask("POST", &path, "Content-Type: text/xml\r\n", &body).await;
        (status, content)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

const QUALITY: &str = r#""quality":{"mean_us":14,"p99_us":23,"p999_us":70,"p9999_us":150,
"max_us":175,"samples":107000,"window_s":1200,"measured_at":"2026-03-14T06:00:00Z"}"#;

fn consumer(name: &str, quality: &str) -> String {
    let comma = if quality.is_empty() { "" } else { "," };
    format!(
        "{{\"name\":\"{name}\",\"kind\":\"consumer\",\"url\":\"http://192.0.2.1/{name}\"\
         {comma}{quality}}}"
    )
}

#[tokio::test]
async fn what_is_published_by_json_is_found_by_all_faces() {
    let registry = Registry::new("faces").await;
    let token = registry.token("alice").await;
    let (status, made) = registry.json("POST", "/services", &token, &consumer("a", QUALITY)).await;
    assert_eq!(status, 201, "{made}");
    registry.json("POST", "/services", &token, &consumer("b", "")).await;
    let path = "/services?kind=consumer&max_latency_us=3000&determinism=hard";
    let (status, found) = registry.json("GET", path, "", "").await;
    assert_eq!((status, &found["count"]), (200, &1.into()), "{found}");
    let service = &found["services"][0];
    assert_eq!((&service["id"], &service["name"]), (&made["id"], &"a".into()));
    assert_eq!(service["quality"]["p9999_us"], 150);
    assert!(service["rungs"].as_array().unwrap().contains(&"hard-le-300".into()), "{service}");
    let bag = "<find_service><categoryBag>\
               <keyedReference tModelKey='uddi:longwire.example:kind' keyValue='consumer'/>\
               <keyedReference tModelKey='uddi:longwire.example:qos-latency' \
               keyValue='hard-le-3000'/>\
               </categoryBag></find_service>";
    let (status, list) = registry.soap("inquiry", bag).await;
    assert_eq!(status, 200);
    assert!(list.contains("<actualCount>1</actualCount>") && list.contains(">a</name>"), "{list}");
    let (_, head, links) =
        registry.ask("GET", "/rd-lookup/res?rt=consumer&qos=hard-le-3000", "", "").await;
    assert!(head.contains("application/link-format"), "{head}");
    assert_eq!(
        links,
        "<http://192.0.2.1/a>;rt=\"consumer\";qos=\"le-100 firm-le-100 hard-le-300\""
    );
    registry.end().await;
}

#[tokio::test]
async fn nobody_publishes_without_a_token_or_anothers_service() {
    let registry = Registry::new("tokens").await;
    for (method, path, body) in [
        ("POST", "/services", &*consumer("a", "")),
        ("PUT", "/services/x", &consumer("a", "")),
        ("DELETE", "/services/x", ""),
        ("POST", "/services/x/lease", ""),
        ("POST", "/rd?ep=a&base=coap://x", "</a>"),
        ("POST", "/rd/x", ""),
        ("DELETE", "/rd/x", ""),
        ("DELETE", "/tokens", ""),
    ] {
        for token in ["", "0123"] {
            assert_eq!(registry.json(method, path, token, body).await.0, 401, "{method} {path}");
        }
    }
    let wrong = "{\"user\":\"alice\",\"password\":\"x\"}";
    assert_eq!(registry.json("POST", "/tokens", "", wrong).await.0, 401);
    let (alice, bob) = (registry.token("alice").await, registry.token("bob").await);
    let made = registry.json("POST", "/services", &alice, &consumer("a", "")).await.1;
    let path = format!("/services/{}", made["id"].as_str().unwrap());
    assert_eq!(registry.json("DELETE", &path, &bob, "").await.0, 403);
    assert_eq!(registry.json("PUT", &path, &bob, &consumer("b", "")).await.0, 403);
    assert_eq!(registry.json("POST", &format!("{path}/lease"), &bob, "").await.0, 403);
    assert_eq!(registry.json("PUT", &path, &alice, &consumer("b", "")).await.0, 200);
    assert_eq!(registry.json("GET", &path, "", "").await.1["name"], "b");
    assert_eq!(registry.json("DELETE", "/tokens", &alice, "").await.0, 204);
    assert_eq!(registry.json("DELETE", &path, &alice, "").await.0, 401);
    registry.end().await;
}

#[tokio::test]
async fn uddi_is_published_and_read_back() {
    let registry = Registry::new("uddi").await;
    let (status, answer) =
        registry.soap("security", "<get_authToken userID='alice' cred='alice-password'/>").await;
    assert_eq!(status, 200, "{answer}");
    let token = answer.split("<authInfo>").nth(1).unwrap().split('<').next().unwrap().to_owned();
    let publish = |message: &str| {
        let message = message.replace("AUTH", &format!("<authInfo>{token}</authInfo>"));
        let registry = &registry;
        async move { registry.soap("publish", &message).await }
    };
    let business = "<save_business>AUTH<businessEntity><name>b</name><businessServices>\
                    <businessService><name>s</name><bindingTemplates><bindingTemplate>\
                    <accessPoint useType='endPoint'>http://192.0.2.1/</accessPoint>\
                    </bindingTemplate></bindingTemplates></businessService></businessServices>\
                    </businessEntity></save_business>";
    let (status, saved) = publish(business).await;
    assert_eq!(status, 200, "{saved}");
    let key = |name: &str| {
        let from = format!("{name}=\"");
        saved.split(&from).nth(1).unwrap().split('"').next().unwrap().to_owned()
    };
    for (call, name) in [
        ("get_serviceDetail", "serviceKey"),
        ("get_businessDetail", "businessKey"),
        ("get_bindingDetail", "bindingKey"),
    ] {
        let of = key(name).to_uppercase().replace("UDDI:", "uddi:");
        let message = format!("<{call}><{name}>{of}</{name}></{call}>");
        let (status, detail) = registry.soap("inquiry", &message).await;
        assert_eq!(status, 200, "{detail}");
        assert!(detail.contains("http://192.0.2.1/"), "{detail}");
    }
    let info = format!(
        "<get_operationalInfo><entityKey>{}</entityKey></get_operationalInfo>",
        key("serviceKey")
    );
    let (_, info) = registry.soap("inquiry", &info).await;
    assert!(info.contains("<authorizedName>alice</authorizedName>"), "{info}");
    let delete = format!(
        "<delete_service>AUTH<serviceKey>{}</serviceKey></delete_service>",
        key("serviceKey")
    );
    let (status, answer) = publish(&delete).await;
    assert!(status == 200 && answer.contains("<soap:Body></soap:Body>"), "{answer}");
    let (status, fault) = publish(&delete).await;
    assert!(status == 500 && fault.contains("errno=\"10210\""), "{fault}");
    let done = format!("<discard_authToken><authInfo>{token}</authInfo></discard_authToken>");
    assert_eq!(registry.soap("security", &done).await.0, 200);
    let (_, fault) = publish(business).await;
    assert!(fault.contains("errno=\"10120\""), "{fault}");
    registry.end().await;
}

#[tokio::test]
async fn faults_have_the_numbers_of_the_standard() {
    let registry = Registry::new("faults").await;
    for (set, message, expected) in [
        ("security", "<get_authToken userID='alice' cred='x'/>", "10150"),
        ("security", "<discard_authToken><authInfo>x</authInfo></discard_authToken>", "10120"),
        ("publish", "<save_service><businessService/></save_service>", "10120"),
        (
            "inquiry",
            "<get_serviceDetail><serviceKey>uddi:x</serviceKey></get_serviceDetail>",
            "10210",
        ),
        ("inquiry", "<find_service businessKey='uddi:x'><name>a</name></find_service>", "10210"),
        (
            "inquiry",
            "<find_service><findQualifiers><findQualifier>bogus</findQualifier></findQualifiers>\
             </find_service>",
            "10050",
        ),
        (
            "inquiry",
            "<find_service><findQualifiers><findQualifier>exactMatch</findQualifier>\
             <findQualifier>approximateMatch</findQualifier></findQualifiers></find_service>",
            "40500",
        ),
        (
            "inquiry",
            "<find_relatedBusinesses><businessKey>uddi:x</businessKey></find_relatedBusinesses>",
            "10050",
        ),
        ("inquiry", "<find_service maxRows='0'><name>a</name></find_service>", "20200"),
    ] {
        let (status, fault) = registry.soap(set, message).await;
        assert_eq!(status, 500, "{fault}");
        assert!(fault.contains(&format!("errno=\"{expected}\"")), "{message}: {fault}");
    }
    let (status, fault) = registry.soap("inquiry", "<get_authToken userID='a' cred='b'/>").await;
    assert!(status == 500 && fault.contains("another API set"), "{fault}");
    let (status, ..) =
        registry.ask("POST", "/uddi/inquiry", "Content-Type: text/plain\r\n", "x").await;
    assert_eq!(status, 415);
    let large = "x".repeat((1 << 20) + 1);
    let fields = "Content-Type: text/xml\r\n";
    let (status, _, fault) = registry.ask("POST", "/uddi/inquiry", fields, &large).await;
    assert!(status == 500 && fault.contains("errno=\"30110\""), "{fault}");
    registry.end().await;
}

#[tokio::test]
async fn what_was_published_outlives_the_process_and_leases_go_on() {
    let registry = Registry::new("restart").await;
    let token = registry.token("alice").await;
    let (_, made) = registry.json("POST", "/services", &token, &consumer("a", QUALITY)).await;
    let path = format!("/services/{}", made["id"].as_str().unwrap());
    let before = registry.json("GET", &path, "", "").await.1;
    let short = consumer("short", "\"lease_s\":1");
    let (_, short) = registry.json("POST", "/services", &token, &short).await;
    let short = format!("/services/{}", short["id"].as_str().unwrap());
    let folder = registry.leave().await;
    let registry = Registry::at(folder, Duration::from_secs(60)).await;
    let after = registry.json("GET", &path, "", "").await.1;
    for name in
        ["id", "name", "url", "kind", "publisher", "modified", "rungs", "quality", "lease_s"]
    {
        assert_eq!(before[name], after[name], "{name}");
    }
    assert_eq!(registry.json("POST", "/services", &token, "{}").await.0, 401, "tokens do not");
    // The lease ends by the clock, whether or not the registry ran.
    tokio::time::timeout(Duration::from_secs(20), async {
        while registry.json("GET", &short, "", "").await.0 != 404 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    registry.end().await;
}

#[tokio::test]
async fn bad_documents_are_refused_with_a_line() {
    let registry = Registry::new("bad").await;
    let token = registry.token("alice").await;
    let good = consumer("a", QUALITY);
    for (body, status, expected) in [
        ("{".to_owned(), 400, "line 1"),
        ("{}".to_owned(), 400, "missing field"),
        (good.replace("\"kind\"", "\"kin\""), 400, "unknown field"),
        (good.replace("\"a\"", "\"\""), 400, "1 to 255"),
        (good.replace("\"a\"", &format!("\"{}\"", "x".repeat(256))), 400, "256 characters"),
        (good.replace("\"p99_us\":23", "\"p99_us\":71"), 400, "above p999_us"),
        (good.replace("2026-03-14T06:00:00Z", "now"), 400, "measured_at"),
        (good.replacen('{', "{\"lease_s\":0,", 1), 400, "a lease of 0 s"),
        (good.replacen('{', "{\"lease_s\":90001,", 1), 400, "a lease of 90001 s"),
    ] {
        let (found, answer) = registry.json("POST", "/services", &token, &body).await;
        let line = answer.as_str().unwrap_or_default();
        assert!(found == status && line.contains(expected), "{body}: {found} {answer}");
        assert_eq!(line.trim_end().lines().count(), 1, "{line}");
    }
    for (path, status) in [
        ("/services?bogus=1", 400),
        ("/services?limit=0", 400),
        ("/services?kind=a&kind=b", 400),
        ("/services?determinism=sure", 400),
        ("/services?max_latency_us=%zz", 400),
        ("/services/uddi:none", 404),
        ("/rd-lookup/res?page=1", 400),
        ("/nowhere", 404),
        ("/uddi/nowhere", 404),
    ] {
        assert_eq!(registry.json("GET", path, "", "").await.0, status, "{path}");
    }
    assert_eq!(registry.json("PATCH", "/services", "", "").await.0, 405);
    assert_eq!(registry.json("GET", "/registry", "", "").await.1["services"], 0);
    registry.end().await;
}

/// A client of CoAP for one request after another.
struct Caller {
    socket: UdpSocket,
    transfers: Transfers<SocketAddr>,
    began: std::time::Instant,
    last: u64,
}

impl Caller {
    fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let settings = Settings { seed: [1, 2], is_challenging: false, rate_bps: None };
        let transfers = Transfers::new(&settings);
        Self { socket, transfers, began: std::time::Instant::now(), last: 0 }
    }

    fn request(&mut self, peer: SocketAddr, content: Content) -> Content {
        self.last += 1;
        let request = self.last;
        self.transfers.handle_input(
            self.began.elapsed(),
            Input::Request { request, peer, content, is_confirmable: true },
        );
        self.next()
    }

    /// The next answer or notification.
    fn next(&mut self) -> Content {
        let mut room = [0; 2048];
        loop {
            assert!(self.began.elapsed() < Duration::from_secs(60), "no answer");
            while let Some(output) = self.transfers.poll_output() {
                match output {
                    Output::Datagram { peer, bytes } => {
                        self.socket.send_to(&bytes, peer).unwrap();
                    }
                    Output::Response { content, .. } => return content,
                    Output::Failed { reason, .. } => panic!("{reason:?}"),
                    _ => {}
                }
            }
            let input = match self.socket.recv_from(&mut room) {
                Ok((length, peer)) => {
                    let bytes = Bytes::copy_from_slice(&room[..length]);
                    Input::Datagram { peer, bytes, is_group: false }
                }
                Err(_) => Input::Wake,
            };
            self.transfers.handle_input(self.began.elapsed(), input);
        }
    }
}

fn to(code: Code, path: &[&str], query: &[&str]) -> Content {
    let content = path.iter().fold(Content::new(code), |content, segment| {
        content.with(option::URI_PATH, segment.as_bytes())
    });
    query.iter().fold(content, |content, pair| content.with(option::URI_QUERY, pair.as_bytes()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoints_register_look_up_and_observe_over_coap() {
    let registry = Registry::new("coap").await;
    let peer = registry.coap;
    let talk = move || {
        let (mut one, mut observer) = (Caller::new(), Caller::new());
        let text = |content: &Content| String::from_utf8_lossy(&content.payload).into_owned();
        let core = one.request(peer, to(Code::GET, &[".well-known", "core"], &["rt=core.rd*"]));
        assert_eq!(core.uint(option::CONTENT_FORMAT), Some(40));
        assert!(text(&core).contains("</rd>;rt=\"core.rd\";ct=40"), "{}", text(&core));
        let watched = to(Code::GET, &["rd-lookup", "res"], &["rt=light"]);
        let first = observer.request(peer, watched.with_uint(option::OBSERVE, 0));
        assert!(first.first(option::OBSERVE).is_some(), "{first:?}");
        assert_eq!(text(&first), "");
        let links = to(Code::POST, &["rd"], &["ep=node1", "lt=60"])
            .with_uint(option::CONTENT_FORMAT, format::LINK_FORMAT.into())
            .with_payload("</light>;rt=\"light\"");
        let made = one.request(peer, links.clone());
        assert_eq!(made.code, Code::CREATED, "{made:?}");
        let location: Vec<String> = made
            .all(option::LOCATION_PATH)
            .map(|one| String::from_utf8_lossy(one).into_owned())
            .collect();
        assert_eq!((location.len(), location[0].as_str()), (2, "rd"));
        let notified = text(&observer.next());
        let found = text(&one.request(peer, to(Code::GET, &["rd-lookup", "res"], &["ep=node1"])));
        assert!(found.starts_with("<coap://127.0.0.1:") && found.ends_with("/light>;rt=\"light\""));
        assert_eq!(notified, found);
        let again = one.request(peer, links.clone().with_payload("<"));
        assert_eq!(again.code, Code::BAD_REQUEST, "{again:?}");
        let bare = one.request(peer, links.with_uint(option::CONTENT_FORMAT, 50));
        assert_eq!(bare.code.class(), 2, "the first of two options counts: {bare:?}");
        let path: Vec<&str> = location.iter().map(String::as_str).collect();
        assert_eq!(one.request(peer, to(Code::POST, &path, &["lt=90"])).code, Code::CHANGED);
        assert_eq!(one.request(peer, to(Code::DELETE, &path, &[])).code, Code::DELETED);
        assert_eq!(text(&observer.next()), "");
        assert_eq!(one.request(peer, to(Code::DELETE, &path, &[])).code, Code::NOT_FOUND);
        assert_eq!(one.request(peer, to(Code::PUT, &["rd"], &[])).code, Code::METHOD_NOT_ALLOWED);
        assert_eq!(one.request(peer, to(Code::GET, &["x"], &[])).code, Code::NOT_FOUND);
    };
    tokio::task::spawn_blocking(talk).await.unwrap();
    registry.end().await;
}

#[test]
fn the_openapi_document_has_the_routes_and_fields() {
    let document: Value = serde_json::from_str(OPENAPI).unwrap();
    let mut described = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys().filter(|name| *name != "parameters") {
            described.insert((method.to_uppercase(), path.clone()));
        }
    }
    let served: BTreeSet<_> =
        ROUTES.iter().map(|route| (route.method.to_owned(), route.path.to_owned())).collect();
    assert_eq!(described, served);
    assert!(matches!(find("PATCH", "/services"), Found::OtherMethods(_)));
    // A document with all properties is read; each of those that are required is missed.
    let schemas = &document["components"]["schemas"];
    let whole = format!(
        "{{\"name\":\"a\",\"kind\":\"k\",\"url\":\"u\",\"more_urls\":[\"v\"],\"description\":\"d\",\
         \"attributes\":{{\"a\":\"b\"}},\"lease_s\":5,{QUALITY}}}"
    );
    let whole: Value = serde_json::from_str(&whole).unwrap();
    let names = |value: &Value| -> BTreeSet<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(names(&whole), names(&schemas["publishing"]["properties"]));
    assert_eq!(names(&whole["quality"]), names(&schemas["quality"]["properties"]));
    for (of, schema) in [(None, "publishing"), (Some("quality"), "quality")] {
        for name in names(&schemas[schema]["properties"]) {
            let mut without = whole.clone();
            let place = match of {
                Some(of) => without.get_mut(of).unwrap(),
                None => &mut without,
            };
            place.as_object_mut().unwrap().remove(&name);
            let is_required =
                schemas[schema]["required"].as_array().unwrap().contains(&name.clone().into());
            let read = super::super::document::parse(without.to_string().as_bytes());
            assert_eq!(read.is_err(), is_required, "{name}");
        }
    }
    let parameters = document["paths"]["/services"]["get"]["parameters"].as_array().unwrap();
    for parameter in parameters {
        let name = parameter["name"].as_str().unwrap();
        let value = if name == "determinism" { "hard" } else { "5" };
        let pairs = [(name.to_owned(), value.to_owned())];
        assert!(super::super::document::Asked::of(&pairs).is_ok(), "{name}");
    }
    assert_eq!(parameters.len(), 6);
}
