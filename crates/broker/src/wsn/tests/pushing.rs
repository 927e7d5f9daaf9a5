use super::*;
use crate::publication::Form;

#[test]
fn what_others_publish_is_posted_to_the_consumer() {
    let mut bench = Bench::new();
    bench.subscribe("l:unit/*/track", "");
    bench.publish("unit/7/track", "<?xml version='1.0'?><track id='7'/>");
    bench.publish("unit/7/other", "<other/>");
    let post = bench.posted(Some(202));
    assert_eq!(post.url, CONSUMER);
    assert_eq!(post.content_type, "text/xml; charset=utf-8");
    assert_eq!(post.soap_action.as_deref(), Some("\"\""));
    assert!(!post.body.windows(6).any(|part| part == b"Header"), "it has not spoken of addresses");
    let found = messages(&post.body);
    assert_eq!(found, [("l:unit/_x0037_/track".to_owned(), "<track id='7'/>".to_owned())]);
    assert!(bench.posts.is_empty());
}

#[test]
fn a_notify_goes_to_all_and_text_is_wrapped() {
    let mut bench = Bench::new();
    bench.subscribe("//*", "");
    bench.publish_as("a", "hello & <x>", |publication| {
        publication.details_mut().content_type = Some("text/plain".to_owned());
        publication.form = Form::Text;
    });
    let found = messages(&bench.posted(Some(200)).body);
    let text = "<lw:Text xmlns:lw=\"urn:longwire:wsn\" contentType=\"text/plain\">hello &amp; \
                &lt;x&gt;</lw:Text>";
    assert_eq!(found, [("a".to_owned(), text.to_owned())]);
    bench.good("/", &notify("l:b", "<t:x xmlns:t='urn:t' at='l:b'><l:y/></t:x>"));
    let post = bench.posted(Some(200));
    let found = messages(&post.body);
    assert_eq!(found[0].0, "b");
    assert_eq!(
        found[0].1,
        "<t:x xmlns:l=\"urn:longwire:topics\" xmlns:t='urn:t' at='l:b'><l:y/></t:x>"
    );
    bench.good("/", &notify("b", "<Content>as it came</Content>"));
    assert_eq!(messages(&bench.posted(None).body)[0].1, "<Content>as it came</Content>");
}

#[test]
fn one_post_at_a_time_and_what_came_meanwhile_in_the_next() {
    let mut bench = Bench::new();
    bench.subscribe("a", "");
    for number in 0..5 {
        bench.publish("a", &format!("<n>{number}</n>"));
    }
    assert_eq!(messages(&bench.posts[0].body).len(), 1);
    bench.posted(Some(200));
    let rest = messages(&bench.posted(Some(200)).body);
    let rest: Vec<_> = rest.iter().map(|(_, element)| element.as_str()).collect();
    assert_eq!(rest, ["<n>1</n>", "<n>2</n>", "<n>3</n>", "<n>4</n>"]);
    assert!(bench.posts.is_empty());
}

#[test]
fn a_consumer_that_is_not_reached_gets_it_later_in_order() {
    let mut bench = Bench::new();
    bench.subscribe("a", "");
    bench.publish("a", "<n>0</n>");
    bench.posted(None);
    for number in 1..3 {
        bench.publish("a", &format!("<n>{number}</n>"));
        assert!(bench.posts.is_empty(), "it is left alone");
    }
    bench.pass(Duration::from_secs(1));
    assert_eq!(messages(&bench.posted(Some(503)).body).len(), 3);
    bench.pass(Duration::from_millis(1900));
    assert!(bench.posts.is_empty(), "twice as long the second time");
    bench.pass(Duration::from_millis(100));
    let post = bench.posted(Some(202));
    let found: Vec<_> = messages(&post.body).into_iter().map(|(_, element)| element).collect();
    assert_eq!(found, ["<n>0</n>", "<n>1</n>", "<n>2</n>"]);
}

#[test]
fn what_has_expired_is_not_tried_again() {
    let mut bench = Bench::new();
    bench.subscribe("a", "");
    let deadline = bench.now + Duration::from_millis(500);
    bench.publish_as("a", "<late/>", |publication| {
        publication.grade = Grade::AtLeastOnce;
        publication.deadline = Some(deadline);
    });
    bench.posted(None);
    bench.publish("a", "<fresh/>");
    bench.pass(Duration::from_secs(1));
    assert_eq!(messages(&bench.posted(Some(200)).body)[0].1, "<fresh/>");
    assert!(bench.posts.is_empty());
}

#[test]
fn a_message_that_is_refused_again_and_again_makes_way() {
    let mut bench = Bench::new();
    bench.subscribe("a", "");
    bench.publish("a", "<first/>");
    for element in ["<poison/>", "<good/>"] {
        bench.publish("a", element);
    }
    bench.posted(Some(200));
    // Both in one, then one by one until the first is given up.
    assert_eq!(messages(&bench.posted(Some(500)).body).len(), 2);
    for _ in 0..4 {
        bench.pass(Duration::from_secs(60));
        let found = messages(&bench.posted(Some(500)).body);
        assert_eq!((found.len(), found[0].1.as_str()), (1, "<poison/>"));
    }
    bench.pass(Duration::from_secs(60));
    assert_eq!(messages(&bench.posted(Some(200)).body)[0].1, "<good/>");
    assert_eq!(bench.core.counts().dropped.iter().sum::<u64>(), 1);
}

#[test]
fn a_paused_subscription_gets_all_of_it_when_it_goes_on() {
    let mut bench = Bench::new();
    let path = bench.subscribe("a", "");
    bench.good(&path, "<n:PauseSubscription/>");
    bench.publish("a", "<n>0</n>");
    bench.publish("a", "<n>1</n>");
    assert!(bench.posts.is_empty());
    bench.good(&path, "<n:ResumeSubscription/>");
    assert_eq!(messages(&bench.posted(Some(200)).body).len(), 2);
    bench.good(&path, "<n:Unsubscribe/>");
    bench.publish("a", "<n>2</n>");
    assert!(bench.posts.is_empty());
    bench.bad(&path, "<n:Unsubscribe/>", "ResourceUnknown");
    assert_eq!(bench.core.sizes().sessions, 0);
}

#[test]
fn a_subscription_ends_at_its_time_unless_it_is_renewed() {
    let mut bench = Bench::new();
    let time = "<n:InitialTerminationTime>PT10S</n:InitialTerminationTime>";
    let path = bench.subscribe("a", time);
    bench.pass(Duration::from_secs(9));
    let renew = "<n:Renew><n:TerminationTime>PT10S</n:TerminationTime></n:Renew>";
    let answer = bench.good(&path, renew);
    assert!(answer.contains("TerminationTime>2026-11-28T00:00:20Z<"), "{answer}");
    bench.pass(Duration::from_secs(9));
    bench.publish("a", "<x/>");
    bench.posted(Some(200));
    bench.pass(Duration::from_secs(1));
    bench.bad(&path, renew, "ResourceUnknown");
    assert_eq!(bench.core.sizes().sessions, 0);
    for time in ["2000-01-01T00:00:00Z", "P1Y", "-PT1S"] {
        let time = format!("<n:InitialTerminationTime>{time}</n:InitialTerminationTime>");
        let request = subscribe(CONSUMER, "a", "", &time);
        let fault = bench.bad("/", &request, "UnacceptableInitialTerminationTime");
        assert!(fault.contains("MinimumTime"), "{fault}");
    }
    let time = "<n:InitialTerminationTime>soon</n:InitialTerminationTime>";
    let (_, fault) = bench.ask("/", &subscribe(CONSUMER, "a", "", time));
    assert!(fault.contains(">s:Client<"), "{fault}");
    let path = bench.subscribe("a", "");
    let late = "<n:Renew><n:TerminationTime>P1Y</n:TerminationTime></n:Renew>";
    let fault = bench.bad(&path, late, "UnacceptableTerminationTime");
    assert!(fault.contains("MaximumTime"), "{fault}");
}

#[test]
fn only_content_that_passes_is_sent() {
    let mut bench = Bench::new();
    let filter = format!(
        "<n:MessageContent Dialect='{}' xmlns:t='urn:t'>/t:track[@speed > 10]\
         </n:MessageContent>",
        names::XPATH
    );
    bench.good("/", &subscribe(CONSUMER, "a", &filter, ""));
    bench.publish("a", "<track xmlns='urn:t' speed='9'/>");
    bench.publish("a", "no xml at all");
    bench.publish("a", "<track xmlns='urn:t' speed='11'/>");
    let found = messages(&bench.posted(Some(200)).body);
    assert_eq!(found[0].1, "<track xmlns='urn:t' speed='11'/>");
    assert_eq!(bench.core.waiting(bench.wsn.subscriptions[&1].session), (0, 0));
}

#[test]
fn raw_messages_have_no_notify_around_them() {
    let mut bench = Bench::new();
    let raw = "<n:SubscriptionPolicy><n:UseRaw/></n:SubscriptionPolicy>";
    bench.subscribe("a|b", raw);
    bench.publish("a", "<x/>");
    bench.publish("b", "<y/>");
    let body = bench.posted(Some(200)).body;
    let text = std::str::from_utf8(&body).unwrap();
    assert!(text.contains("<s:Body><x/></s:Body>"), "{text}");
    let body = bench.posted(Some(200)).body;
    assert!(std::str::from_utf8(&body).unwrap().contains("<s:Body><y/></s:Body>"));
}

#[test]
fn who_speaks_soap_12_and_of_addresses_is_spoken_to_like_that() {
    let mut bench = Bench::new();
    let request = format!(
        "<s:Envelope xmlns:s='{SOAP12}' xmlns:n='{WSNT}' xmlns:a='{WSA}' xmlns:p='urn:p'>\
         <s:Header><a:MessageID>urn:m</a:MessageID><a:Action>x</a:Action></s:Header><s:Body>\
         <n:Subscribe><n:ConsumerReference><a:Address>{CONSUMER}</a:Address>\
         <a:ReferenceParameters><p:key>1 &amp; 2</p:key></a:ReferenceParameters>\
         </n:ConsumerReference></n:Subscribe></s:Body></s:Envelope>"
    );
    let kind = "application/soap+xml; charset=utf-8";
    let answer = bench.ask_as("/", kind, request.as_bytes(), "");
    assert_eq!((answer.status, answer.content_type.as_deref()), (200, Some(kind)));
    let text = std::str::from_utf8(&answer.body).unwrap();
    assert!(text.contains(">urn:m</wsa:RelatesTo>"), "{text}");
    assert!(text.contains("bw-2/NotificationProducer/SubscribeResponse</wsa:Action>"), "{text}");
    bench.publish_as("a", "<x/>", |publication| {
        publication.details_mut().message_id = Some("urn:of-the-publisher".to_owned());
    });
    let post = bench.posted(Some(200));
    assert_eq!(post.soap_action, None);
    assert!(post.content_type.ends_with("NotificationConsumer/Notify\""), "{}", post.content_type);
    let text = std::str::from_utf8(&post.body).unwrap();
    for part in [
        "soap-envelope",
        ">http://consumer.example/sink</wsa:To>",
        ">urn:of-the-publisher</wsa:MessageID>",
        "<p:key xmlns:lwa=\"http://www.w3.org/2005/08/addressing\" \
         lwa:IsReferenceParameter=\"true\" xmlns:p=\"urn:p\">1 &amp; 2</p:key>",
    ] {
        assert!(text.contains(part), "{part} {text}");
    }
    assert_eq!(messages(&post.body)[0].0, "l:a");
}

#[test]
fn properties_come_in_a_header_where_they_are_asked_for() {
    let mut bench = Bench::new();
    let policy = "<n:SubscriptionPolicy xmlns:lw='urn:longwire:wsn'><lw:Properties/>\
                  </n:SubscriptionPolicy>";
    bench.subscribe("a", policy);
    bench.publish_as("a", "<x/>", |publication| {
        publication.details_mut().properties = vec![("k".to_owned(), "1 < 2".to_owned())];
    });
    let body = bench.posted(Some(200)).body;
    let text = std::str::from_utf8(&body).unwrap();
    assert!(text.contains("<lw:Property name=\"k\">1 &lt; 2</lw:Property>"), "{text}");
}

#[test]
fn what_is_retained_comes_where_it_is_asked_for() {
    let mut bench = Bench::new();
    bench.publish_as("a", "<now/>", |publication| publication.retain = true);
    bench.subscribe("a", "");
    assert!(bench.posts.is_empty());
    let policy = "<n:SubscriptionPolicy xmlns:lw='urn:longwire:wsn'><lw:SendCurrent/>\
                  </n:SubscriptionPolicy>";
    bench.subscribe("a", policy);
    assert_eq!(messages(&bench.posted(Some(200)).body)[0].1, "<now/>");
    let current = |topic: &str| {
        let dialect = topics::Dialect::Simple.uri();
        format!(
            "<n:GetCurrentMessage><n:Topic Dialect='{dialect}'>{topic}</n:Topic>\
             </n:GetCurrentMessage>"
        )
    };
    assert!(bench.good("/", &current("a")).contains("Response xmlns:wsnt="));
    assert!(bench.good("/", &current("l:a")).contains("<now/>"));
    bench.bad("/", &current("b"), "NoCurrentMessageOnTopic");
    let dialect = topics::Dialect::Full.uri();
    let all = format!(
        "<n:GetCurrentMessage><n:Topic Dialect='{dialect}'>a|b</n:Topic></n:GetCurrentMessage>"
    );
    bench.bad("/", &all, "MultipleTopicsSpecified");
}
