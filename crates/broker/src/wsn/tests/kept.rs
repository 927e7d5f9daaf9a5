use super::*;
use crate::change::Change;

fn durable() -> Bench {
    let core = crate::settings::Settings { durable: true, ..crate::settings::Settings::default() };
    Bench::over(Settings::default(), core)
}

impl Bench {
    /// What the store gets, which then has it.
    fn persist(&mut self, stored: &mut Vec<Change>) {
        while let Some((ticket, changes)) = self.core.journal.next_batch() {
            stored.extend(changes);
            self.core.persisted(ticket);
            self.does(|wsn, context| wsn.committed(context));
        }
    }

    /// Asks, and has the answer once the store has what it says.
    fn asked(&mut self, stored: &mut Vec<Change>, path: &str, body: &str) -> String {
        let asked = Asked {
            id: 1,
            is_get: false,
            is_secure: false,
            target: path.to_owned(),
            content_type: None,
            body: Bytes::from(soap11(body)),
            user: None,
        };
        self.does(|wsn, context| wsn.ask(context, &asked));
        let is_held = self.answers.is_empty();
        assert_eq!(is_held, self.core.journal.done() < self.core.journal.ticket());
        self.persist(stored);
        let answer = self.answers.pop().expect("an answer");
        assert!(answer.status < 300, "{answer:?}");
        String::from_utf8(answer.body.to_vec()).unwrap()
    }
}

#[test]
fn subscriptions_and_what_waits_for_them_outlive_the_process() {
    let mut stored = Vec::new();
    let mut bench = durable();
    let filter = format!(
        "<n:MessageContent Dialect='{}' xmlns:t='urn:t'>/t:x</n:MessageContent>",
        names::XPATH
    );
    let request = subscribe(CONSUMER, "l:a/*", &filter, "");
    let path = path_in(&bench.asked(&mut stored, "/", &request));
    let point = path_in(&bench.asked(&mut stored, "/", "<n:CreatePullPoint/>"));
    let address = format!("http://127.0.0.1:8080{point}");
    bench.asked(&mut stored, "/", &subscribe(&address, "l:a/b", "", ""));
    let brief = "<n:InitialTerminationTime>PT5S</n:InitialTerminationTime>";
    bench.asked(&mut stored, "/", &subscribe(CONSUMER, "l:a/b", "", brief));
    bench.asked(&mut stored, &path, "<n:PauseSubscription/>");
    bench.asked(&mut stored, "/", &notify("l:a/b", "<x xmlns='urn:t'/>"));
    bench.persist(&mut stored);
    drop(bench);

    let mut bench = durable();
    bench.now = Duration::from_secs(60);
    assert_eq!(bench.core.restore(bench.now, stored), 0);
    bench.does(|wsn, context| wsn.restore(context));
    assert_eq!(bench.wsn.subscriptions.len(), 2, "one has ended meanwhile");
    assert!(bench.posts.is_empty(), "it is paused still");
    let mut stored = Vec::new();
    bench.persist(&mut stored);
    bench.asked(&mut stored, &path, "<n:ResumeSubscription/>");
    let found = messages(&bench.posted(Some(200)).body);
    assert_eq!(found, [("l:a/b".to_owned(), "<x xmlns='urn:t'/>".to_owned())]);
    let text = bench.asked(&mut stored, &point, "<n:GetMessages/>");
    assert!(text.contains("<x xmlns='urn:t'/>"), "{text}");
    bench.asked(&mut stored, "/", &notify("l:a/b", "<y/>"));
    assert!(bench.posts.is_empty(), "its filter by content is there again");
}
