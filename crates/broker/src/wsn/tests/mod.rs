//! The adapter with a core below it.

mod brokered;
mod client;
mod hostile;
mod kept;
mod pulling;
mod pushing;
mod soap;

use std::time::Duration;

use super::names::{SOAP11, SOAP12, WSA, WSNT};
use super::*;
use crate::core::Core;
use crate::outputs::{Output, Outputs};
use crate::publication::{Grade, Publication};

pub(super) const CONSUMER: &str = "http://consumer.example/sink";
const UNIX_MS: u64 = 1_795_824_000_000;

/// A broker that speaks WS-Notification only.
pub(super) struct Bench {
    pub(super) wsn: Wsn,
    pub(super) core: Core,
    pub(super) outputs: Outputs,
    pub(super) now: Duration,
    /// Requests come over TLS.
    pub(super) is_secure: bool,
    last: u64,
    pub(super) posts: Vec<crate::http::Post>,
    pub(super) answers: Vec<Answer>,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(super) fn with(settings: Settings) -> Self {
        Self::over(settings, crate::settings::Settings::default())
    }

    pub(super) fn over(settings: Settings, core: crate::settings::Settings) -> Self {
        Self {
            wsn: Wsn::new(Settings { unix_ms: UNIX_MS, seed: 7, ..settings }),
            core: Core::new(core),
            outputs: Outputs::default(),
            now: Duration::from_secs(1),
            is_secure: false,
            last: 0,
            posts: Vec::new(),
            answers: Vec::new(),
        }
    }

    pub(super) fn does(&mut self, act: impl FnOnce(&mut Wsn, &mut Context<'_>)) {
        let Self { wsn, core, outputs, now, .. } = self;
        act(wsn, &mut Context { now: *now, core, outputs });
        while let Some((_, connection)) = self.core.next_ready() {
            let Self { wsn, core, outputs, now, .. } = self;
            wsn.deliver(&mut Context { now: *now, core, outputs }, connection);
        }
        while let Some(output) = self.outputs.poll() {
            match output {
                Output::Post(post) => self.posts.push(post),
                Output::Answer(answer) => self.answers.push(answer),
                other => panic!("{other:?}"),
            }
        }
    }

    pub(super) fn ask_as(&mut self, path: &str, kind: &str, body: &[u8], user: &str) -> Answer {
        self.last += 1;
        let asked = Asked {
            id: self.last,
            is_get: false,
            is_secure: self.is_secure,
            target: path.to_owned(),
            content_type: Some(kind.to_owned()),
            body: Bytes::copy_from_slice(body),
            user: (!user.is_empty()).then(|| user.into()),
        };
        self.does(|wsn, context| wsn.ask(context, &asked));
        let answer = self.answers.pop().expect("an answer");
        assert_eq!(answer.id, self.last);
        answer
    }

    /// The status and body of what SOAP 1.1 with this body is answered with.
    pub(super) fn ask(&mut self, path: &str, body: &str) -> (u16, String) {
        let answer = self.ask_as(path, "text/xml", soap11(body).as_bytes(), "");
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        if !text.is_empty() {
            Tree::parse(&text).unwrap();
        }
        (answer.status, text)
    }

    /// The same with a response.
    pub(super) fn good(&mut self, path: &str, body: &str) -> String {
        let (status, text) = self.ask(path, body);
        assert!(status == 200 || status == 202, "{status} {text}");
        text
    }

    /// The fault that it is answered with.
    pub(super) fn bad(&mut self, path: &str, body: &str, fault: &str) -> String {
        let (status, text) = self.ask(path, body);
        assert_eq!(status, 500, "{text}");
        assert!(text.contains(&format!("{fault}Fault")), "{fault}: {text}");
        text
    }

    /// The path of a subscription to a topic, in the dialect Full.
    pub(super) fn subscribe(&mut self, topic: &str, more: &str) -> String {
        let answer = self.good("/", &subscribe(CONSUMER, topic, "", more));
        path_in(&answer)
    }

    pub(super) fn publish(&mut self, topic: &str, payload: &str) {
        self.publish_as(topic, payload, |publication| publication.grade = Grade::AtLeastOnce);
    }

    pub(super) fn publish_as(
        &mut self,
        topic: &str,
        payload: &str,
        change: impl FnOnce(&mut Publication),
    ) {
        let payload = payload.as_bytes().to_vec();
        let mut publication = Publication::new(Protocol::Mqtt, topic, payload);
        publication.details_mut().content_type = Some("application/xml".to_owned());
        change(&mut publication);
        self.core.publish(self.now, publication).unwrap();
        self.does(|_, _| ());
    }

    /// The consumer answers the only POST that is under way.
    pub(super) fn posted(&mut self, status: Option<u16>) -> crate::http::Post {
        assert_eq!(self.posts.len(), 1, "{:?}", self.posts);
        let post = self.posts.remove(0);
        self.answered(post.id, status, "");
        post
    }

    pub(super) fn answered(&mut self, id: u64, status: Option<u16>, body: &str) {
        let posted = Posted { id, status, body: Bytes::copy_from_slice(body.as_bytes()) };
        self.does(|wsn, context| wsn.posted(context, &posted));
    }

    pub(super) fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(due) = self.wsn.wake_at().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.does(|wsn, context| wsn.wake(context));
        }
        self.now = until;
    }
}

pub(super) fn soap11(body: &str) -> String {
    format!(
        "<s:Envelope xmlns:s='{SOAP11}' xmlns:n='{WSNT}' xmlns:b='{}' xmlns:a='{WSA}' \
         xmlns:l='{}'><s:Body>{body}</s:Body></s:Envelope>",
        names::WSN_BR,
        names::LW_TOPICS
    )
}

pub(super) fn subscribe(consumer: &str, topic: &str, filters: &str, more: &str) -> String {
    let dialect = topics::Dialect::Full.uri();
    let topic = if topic.is_empty() {
        String::new()
    } else {
        format!("<n:TopicExpression Dialect='{dialect}'>{topic}</n:TopicExpression>")
    };
    format!(
        "<n:Subscribe><n:ConsumerReference><a:Address>{consumer}</a:Address>\
         </n:ConsumerReference><n:Filter>{topic}{filters}</n:Filter>{more}</n:Subscribe>"
    )
}

pub(super) fn notify(topic: &str, content: &str) -> String {
    let dialect = topics::Dialect::Concrete.uri();
    format!(
        "<n:Notify><n:NotificationMessage><n:Topic Dialect='{dialect}'>{topic}</n:Topic>\
         <n:Message>{content}</n:Message></n:NotificationMessage></n:Notify>"
    )
}

/// The path of the address in an answer.
pub(super) fn path_in(answer: &str) -> String {
    let tree = Tree::parse(answer).unwrap();
    let address = (0..tree.len())
        .map(|at| NodeId(u32::try_from(at).unwrap()))
        .find(|node| tree.is(*node, WSA, "Address"))
        .expect("an address");
    let address = tree.text(address).into_owned();
    address.strip_prefix("http://127.0.0.1:8080").unwrap().to_owned()
}

/// Topics and elements of the messages of a POST.
pub(super) fn messages(body: &[u8]) -> Vec<(String, String)> {
    let text = std::str::from_utf8(body).unwrap();
    let tree = Tree::parse(text).unwrap();
    let root = tree.root();
    let uri = if tree.is(root, SOAP12, "Envelope") { SOAP12 } else { SOAP11 };
    let body = tree.child(root, uri, "Body").unwrap();
    let notify = tree.child(body, WSNT, "Notify").expect(text);
    let all = tree.elements(notify).map(|holder| {
        let topic = tree.child(holder, WSNT, "Topic").unwrap();
        let message = tree.child(holder, WSNT, "Message").unwrap();
        let element = tree.elements(message).next().unwrap();
        (tree.text(topic).into_owned(), tree.source(element).to_owned())
    });
    all.collect()
}
