use super::*;

fn register(publisher: &str, topics: &[&str], demand: bool) -> String {
    let dialect = topics::Dialect::Full.uri();
    let topics: String = topics
        .iter()
        .map(|topic| format!("<b:Topic Dialect='{dialect}'>{topic}</b:Topic>"))
        .collect();
    let publisher = if publisher.is_empty() {
        String::new()
    } else {
        format!("<b:PublisherReference><a:Address>{publisher}</a:Address></b:PublisherReference>")
    };
    format!(
        "<b:RegisterPublisher>{publisher}{topics}<b:Demand>{demand}</b:Demand>\
         </b:RegisterPublisher>"
    )
}

const PUBLISHER: &str = "http://publisher.example/p";

fn text(post: &crate::http::Post) -> &str {
    std::str::from_utf8(&post.body).unwrap()
}

fn subscribed() -> String {
    soap11(
        "<n:SubscribeResponse><n:SubscriptionReference>\
         <a:Address>http://publisher.example/s/1</a:Address></n:SubscriptionReference>\
         </n:SubscribeResponse>",
    )
}

#[test]
fn a_publisher_registers_and_goes() {
    let mut bench = Bench::new();
    let answer = bench.good("/", &register("", &["a"], false));
    let path = path_in(&answer);
    let consumer = "http://127.0.0.1:8080</wsa:Address></wsn-br:ConsumerReference>";
    assert!(answer.contains(consumer), "{answer}");
    let property = "<rp:GetResourceProperty xmlns:rp='http://docs.oasis-open.org/wsrf/rp-2'>\
                    b:Demand</rp:GetResourceProperty>";
    assert!(bench.good(&path, property).contains(">false</p:Demand>"));
    bench.good(&path, "<b:DestroyRegistration/>");
    bench.bad(&path, "<b:DestroyRegistration/>", "ResourceUnknown");
    bench.bad("/", "<b:DestroyRegistration/>", "ResourceUnknown");
    assert!(bench.posts.is_empty());
}

#[test]
fn a_publisher_on_demand_is_paused_while_nobody_wants_it() {
    let mut bench = Bench::new();
    let path = path_in(&bench.good("/", &register(PUBLISHER, &["l:a/*", "b"], true)));
    bench.pass(Duration::from_secs(1));
    let post = bench.posts.remove(0);
    assert_eq!(post.url, PUBLISHER);
    assert!(text(&post).contains(">l-0:a/*|l-1:b</wsnt:TopicExpression>"), "{}", text(&post));
    bench.answered(post.id, Some(200), &subscribed());
    bench.pass(Duration::from_secs(2));
    let post = bench.posts.remove(0);
    assert_eq!(post.url, "http://publisher.example/s/1");
    assert!(text(&post).contains("PauseSubscription"), "nobody has subscribed");
    bench.answered(post.id, Some(200), "");
    bench.pass(Duration::from_secs(5));
    assert!(bench.posts.is_empty());
    bench.subscribe("l:a/x", "");
    bench.pass(Duration::from_secs(2));
    let post = bench.posts.remove(0);
    assert!(text(&post).contains("ResumeSubscription"));
    // It has forgotten us: the subscription is made anew.
    bench.answered(post.id, Some(500), "");
    bench.pass(Duration::from_secs(11));
    let post = bench.posts.remove(0);
    assert!(text(&post).contains("wsnt:Subscribe "));
    bench.answered(post.id, Some(200), &subscribed());
    bench.pass(Duration::from_secs(5));
    assert!(bench.posts.is_empty());
    bench.good(&path, "<b:DestroyRegistration/>");
    let post = bench.posts.remove(0);
    assert!(text(&post).contains("Unsubscribe"));
    bench.answered(post.id, None, "");
    bench.pass(Duration::from_secs(60));
    assert!(bench.posts.is_empty());
}

#[test]
fn a_publisher_is_subscribed_to_with_topics_as_it_spells_them() {
    // CXF compares the text of a Simple expression, prefix and all.
    for (dialect, topics, wanted) in [
        (topics::Dialect::Simple, &["demand"][..], ">demand<"),
        (topics::Dialect::Simple, &["a_x002F_b"], ">a_x002F_b<"),
        (topics::Dialect::Simple, &["l:demand"], ">l-0:demand<"),
        (topics::Dialect::Concrete, &["a/b"], ">a/b<"),
        (topics::Dialect::Full, &["a/*", "b"], ">a/*|b<"),
    ] {
        let mut bench = Bench::new();
        let full = topics::Dialect::Full.uri();
        bench.good("/", &register(PUBLISHER, topics, true).replace(full, dialect.uri()));
        bench.pass(Duration::from_secs(1));
        let post = bench.posts.remove(0);
        assert!(text(&post).contains(wanted), "{}", text(&post));
        let of_many = topics.len() > 1;
        assert_eq!(text(&post).contains(full), of_many, "{}", text(&post));
    }
}

#[test]
fn who_cannot_publish_on_demand_is_rejected() {
    let mut bench = Bench::with(Settings { max_registrations: 1, ..Settings::default() });
    for request in [
        register("", &["a"], true),
        register(PUBLISHER, &[], true),
        register("mailto:x@example", &["a"], true),
    ] {
        bench.bad("/", &request, "PublisherRegistrationRejected");
    }
    bench.bad("/", &register("", &["a//b"], false), "InvalidTopicExpression");
    bench.good("/", &register("", &[], false));
    bench.bad("/", &register("", &[], false), "PublisherRegistrationFailed");
}

#[test]
fn a_registration_ends_at_its_time() {
    let mut bench = Bench::new();
    let until = "<b:InitialTerminationTime>2026-11-28T00:01:00Z</b:InitialTerminationTime>";
    let request = format!("<b:RegisterPublisher>{until}</b:RegisterPublisher>");
    let path = path_in(&bench.good("/", &request));
    bench.pass(Duration::from_secs(60));
    bench.bad(&path, "<b:DestroyRegistration/>", "ResourceUnknown");
}
