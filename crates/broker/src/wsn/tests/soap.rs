use super::*;

fn user_ask(bench: &mut Bench, path: &str, body: &str, user: &str) -> (u16, String) {
    let answer = bench.ask_as(path, "text/xml", soap11(body).as_bytes(), user);
    (answer.status, String::from_utf8(answer.body.to_vec()).unwrap())
}

#[test]
fn versions_are_kept_apart() {
    let mut bench = Bench::new();
    let other = "<s:Envelope xmlns:s='urn:other'><s:Body/></s:Envelope>";
    let answer = bench.ask_as("/", "text/xml", other.as_bytes(), "");
    assert_eq!(answer.status, 500);
    assert!(std::str::from_utf8(&answer.body).unwrap().contains(">s:VersionMismatch<"));
    for (kind, status) in [
        ("text/xml", 500),
        ("application/soap+xml", 400),
        ("application/json", 415),
        ("multipart/related; type=\"application/xop+xml\"", 415),
    ] {
        assert_eq!(bench.ask_as("/", kind, b"no xml", "").status, status, "{kind}");
    }
}

#[test]
fn headers_that_must_be_understood_are_or_not() {
    let mut bench = Bench::new();
    let mut ask = |soap: &str, attributes: &str| {
        let request = format!(
            "<s:Envelope xmlns:s='{soap}' xmlns:n='{WSNT}'><s:Header>\
             <q:Security xmlns:q='urn:q' {attributes}/></s:Header>\
             <s:Body><n:CreatePullPoint/></s:Body></s:Envelope>"
        );
        let kind = if soap == SOAP11 { "text/xml" } else { "application/soap+xml" };
        let answer = bench.ask_as("/", kind, request.as_bytes(), "");
        (answer.status, String::from_utf8(answer.body.to_vec()).unwrap())
    };
    assert_eq!(ask(SOAP11, "").0, 200);
    assert_eq!(ask(SOAP11, "s:mustUnderstand='0'").0, 200);
    assert_eq!(ask(SOAP11, "s:mustUnderstand='1' s:actor='urn:another'").0, 200);
    let (status, text) = ask(SOAP11, "s:mustUnderstand='1'");
    assert!(status == 500 && text.contains(">s:MustUnderstand<"), "{text}");
    let (status, text) = ask(SOAP12, "s:mustUnderstand='true'");
    assert_eq!(status, 500);
    let block = "<s:NotUnderstood xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\" \
                 xmlns:q=\"urn:q\" qname=\"q:Security\"/>";
    assert!(text.contains(block), "{text}");
    assert_eq!(ask(SOAP12, &format!("s:mustUnderstand='1' s:role='{SOAP12}/role/none'")).0, 200);
    assert_eq!(ask(SOAP12, &format!("s:mustUnderstand='1' s:role='{SOAP12}/role/next'")).0, 500);
}

#[test]
fn answers_go_where_the_request_says_if_that_is_here() {
    let mut bench = Bench::new();
    let mut ask = |uri: &str, address: &str| {
        let request = format!(
            "<s:Envelope xmlns:s='{SOAP11}' xmlns:n='{WSNT}' xmlns:a='{uri}'><s:Header>\
             <a:MessageID>urn:m</a:MessageID><a:ReplyTo s:mustUnderstand='1'>\
             <a:Address>{address}</a:Address></a:ReplyTo></s:Header>\
             <s:Body><n:CreatePullPoint/></s:Body></s:Envelope>"
        );
        let answer = bench.ask_as("/", "text/xml", request.as_bytes(), "");
        (answer.status, String::from_utf8(answer.body.to_vec()).unwrap())
    };
    let (status, text) = ask(WSA, names::WSA_ANONYMOUS);
    assert!(status == 200 && text.contains(">urn:m</wsa:RelatesTo>"), "{text}");
    assert_eq!(ask(WSA, names::WSA_NONE), (202, String::new()));
    let (status, text) = ask(names::WSA_2004, names::WSA_2004_ANONYMOUS);
    assert!(status == 200 && text.contains("ws/2004/08/addressing\">urn:m<"), "{text}");
    let (status, text) = ask(WSA, "http://elsewhere.example/");
    assert_eq!(status, 500);
    assert!(text.contains(">wsa:OnlyAnonymousAddressSupported<"), "{text}");
}

#[test]
fn faults_have_the_detail_of_their_standard() {
    let mut bench = Bench::new();
    let dialect = "<n:TopicExpression Dialect='urn:other'>a</n:TopicExpression>";
    let xpath = |text: &str| {
        format!("<n:MessageContent Dialect='{}'>{text}</n:MessageContent>", names::XPATH)
    };
    let policy = "<n:SubscriptionPolicy><q:Fast xmlns:q='urn:q'/></n:SubscriptionPolicy>";
    for (request, fault) in [
        (subscribe(CONSUMER, "a//b", "", ""), "InvalidTopicExpression"),
        (subscribe(CONSUMER, "x:a", "", ""), "InvalidTopicExpression"),
        (subscribe(CONSUMER, "a/_x002B_", "", ""), "TopicNotSupported"),
        (subscribe(CONSUMER, "", dialect, ""), "TopicExpressionDialectUnknown"),
        (subscribe(CONSUMER, "a", dialect, ""), "InvalidFilter"),
        (subscribe(CONSUMER, "", "<q:Mine xmlns:q='urn:q'/>", ""), "InvalidFilter"),
        (subscribe(CONSUMER, "", &xpath("a["), ""), "InvalidMessageContentExpression"),
        (subscribe(CONSUMER, "", &xpath("x:a"), ""), "InvalidMessageContentExpression"),
        (subscribe(CONSUMER, "", &xpath("a").repeat(9), ""), "InvalidMessageContentExpression"),
        (
            subscribe(CONSUMER, "", "<n:ProducerProperties Dialect='x'/>", ""),
            "InvalidProducerPropertiesExpression",
        ),
        (subscribe(CONSUMER, "a", "", policy), "UnrecognizedPolicyRequest"),
        (subscribe("mailto:a@b", "a", "", ""), "SubscribeCreationFailed"),
        (subscribe("http://127.0.0.1:8080/", "a", "", ""), "SubscribeCreationFailed"),
        (subscribe(names::WSA_ANONYMOUS, "a", "", ""), "SubscribeCreationFailed"),
        ("<n:Unsubscribe/>".to_owned(), "ResourceUnknown"),
        (
            "<n:Renew><n:TerminationTime>PT1S</n:TerminationTime></n:Renew>".to_owned(),
            "ResourceUnknown",
        ),
        ("<n:GetMessages/>".to_owned(), "ResourceUnknown"),
        (notify("a/_x002B_", "<x/>"), "TopicNotSupported"),
        (notify("a/*", "<x/>"), "InvalidTopicExpression"),
    ] {
        let text = bench.bad("/", &request, fault);
        assert!(text.contains("Timestamp>2026-11-28T00:00:01Z<"), "{text}");
    }
    let text = bench.bad("/", &subscribe(CONSUMER, "", "<q:Mine xmlns:q='urn:q'/>", ""), "Filter");
    assert!(text.contains("<f:UnknownFilter xmlns:n=\"urn:q\">n:Mine</f:UnknownFilter>"), "{text}");
    assert_eq!(bench.core.sizes().sessions, 0);
    let (_, text) = bench.ask("/", "<n:Bogus/>");
    assert!(text.contains(">wsa:ActionNotSupported<"), "{text}");
    for request in ["", "<n:Subscribe/>", "<n:Notify/>", "<n:CreatePullPoint/><n:CreatePullPoint/>"]
    {
        let (status, text) = bench.ask("/", request);
        assert!(status == 500 && text.contains(">s:Client<"), "{request} {text}");
    }
}

#[test]
fn messages_without_a_topic_have_the_one_that_is_set() {
    let mut bench = Bench::new();
    let bare = "<n:Notify><n:NotificationMessage><n:Message><x/></n:Message>\
                </n:NotificationMessage></n:Notify>";
    bench.bad("/", bare, "TopicNotSupported");
    bench.bad("/", "<q:raw xmlns:q='urn:q'/>", "TopicNotSupported");
    let default_topic = Some("in/wsn".to_owned());
    let mut bench = Bench::with(Settings { default_topic, ..Settings::default() });
    bench.subscribe("in/wsn", "");
    bench.good("/", bare);
    assert_eq!(messages(&bench.posted(Some(200)).body)[0].1, "<x/>");
    bench.good("/", "<q:raw xmlns:q='urn:q'/>");
    assert_eq!(messages(&bench.posted(Some(200)).body)[0].1, "<q:raw xmlns:q='urn:q'/>");
}

#[test]
fn an_expression_without_a_dialect_is_a_simple_one() {
    let mut bench = Bench::new();
    let topic = "<n:TopicExpression>a_x002F_b</n:TopicExpression>";
    bench.good("/", &subscribe(CONSUMER, "", topic, ""));
    bench.good("/", &notify("a/b", "<x/>"));
    let body = bench.posted(Some(200)).body;
    assert_eq!(messages(&body)[0].0, "a_x002F_b");
    assert!(String::from_utf8_lossy(&body).contains("TopicExpression/Simple"));
}

#[test]
fn what_one_user_has_made_is_not_anothers() {
    let mut bench = Bench::new();
    let (_, answer) = user_ask(&mut bench, "/", &subscribe(CONSUMER, "a", "", ""), "ann");
    let path = path_in(&answer);
    for (request, fault) in [
        ("<n:Unsubscribe/>", "UnableToDestroySubscription"),
        ("<n:PauseSubscription/>", "PauseFailed"),
        ("<n:ResumeSubscription/>", "ResumeFailed"),
    ] {
        for user in ["bob", ""] {
            let (status, text) = user_ask(&mut bench, &path, request, user);
            assert!(status == 500 && text.contains(&format!("{fault}Fault")), "{text}");
        }
    }
    let (_, answer) = user_ask(&mut bench, "/", "<n:CreatePullPoint/>", "ann");
    let point = path_in(&answer);
    let (_, text) = user_ask(&mut bench, &point, "<n:GetMessages/>", "bob");
    assert!(text.contains("UnableToGetMessagesFault"), "{text}");
    assert_eq!(user_ask(&mut bench, &path, "<n:Unsubscribe/>", "ann").0, 200);
    let guessed = path.replace("subscription/1-", "subscription/2-");
    bench.bad(&guessed, "<n:Unsubscribe/>", "ResourceUnknown");
}

#[test]
fn rules_hold_for_users_and_bounds_for_all() {
    let mut bench = Bench::with(Settings { max_subscriptions: 2, ..Settings::default() });
    let mut settings = crate::settings::Settings::default();
    settings.access.rules = vec![crate::access::Rule {
        user: Some("ann".to_owned()),
        action: None,
        filter: "a/#".to_owned(),
        allow: true,
    }];
    bench.core.set_settings(settings);
    assert_eq!(user_ask(&mut bench, "/", &notify("a", "<x/>"), "ann").0, 202);
    assert_eq!(user_ask(&mut bench, "/", &notify("b", "<x/>"), "ann").0, 500);
    assert_eq!(user_ask(&mut bench, "/", &notify("a", "<x/>"), "bob").0, 500);
    assert_eq!(user_ask(&mut bench, "/", &notify("a", "<x/>"), "").0, 500);
    let wide = subscribe(CONSUMER, "a|b", "", "");
    assert_eq!(user_ask(&mut bench, "/", &wide, "ann").0, 500);
    assert_eq!(bench.wsn.subscriptions.len(), 0);
    for _ in 0..2 {
        assert_eq!(user_ask(&mut bench, "/", &subscribe(CONSUMER, "a", "", ""), "ann").0, 200);
    }
    let (_, text) = user_ask(&mut bench, "/", &subscribe(CONSUMER, "a", "", ""), "ann");
    assert!(text.contains("SubscribeCreationFailedFault"), "{text}");
}

#[test]
fn resources_have_properties() {
    let mut bench = Bench::new();
    for topic in ["a", "a-b", "a/b", "{urn:t}/x/{urn:u}y", "$SYS/x"] {
        bench.publish_as(topic, "<x/>", |publication| {
            publication.protocol = Protocol::Broker;
            publication.retain = true;
        });
    }
    let get = |name: &str| {
        format!(
            "<rp:GetResourceProperty xmlns:rp='{}' xmlns:t='{}' xmlns:rl='{}'>{name}\
             </rp:GetResourceProperty>",
            names::WSRF_RP,
            names::WSTOP,
            names::WSRF_RL
        )
    };
    let text = bench.good("/", &get("t:TopicSet"));
    assert!(
        text.contains(
            "<l:a xmlns:l=\"urn:longwire:topics\" wstop:topic=\"true\">\
                       <b wstop:topic=\"true\"/></l:a>"
        ),
        "{text}"
    );
    assert!(text.contains("<t1:y wstop:topic=\"true\"/>"), "{text}");
    assert!(bench.good("/", &get("n:TopicExpressionDialect")).contains("TopicExpression/Full"));
    bench.bad("/", &get("n:Other"), "InvalidResourcePropertyQName");
    bench.bad("/", &get("x:Other"), "InvalidResourcePropertyQName");
    let path = bench.subscribe("a", "");
    assert!(bench.good(&path, &get("n:ConsumerReference")).contains(CONSUMER));
    let several = format!(
        "<rp:GetMultipleResourceProperties xmlns:rp='{0}' xmlns:rl='{1}'>\
         <rp:ResourceProperty>rl:TerminationTime</rp:ResourceProperty>\
         <rp:ResourceProperty>n:CreationTime</rp:ResourceProperty>\
         </rp:GetMultipleResourceProperties>",
        names::WSRF_RP,
        names::WSRF_RL
    );
    let text = bench.good(&path, &several);
    assert!(text.contains("2026-11-29T00:00:01Z") && text.contains("CreationTime"), "{text}");
}

#[test]
fn the_description_is_well_formed_and_names_what_is_served() {
    let mut bench = Bench::new();
    let asked = |target: &str| Asked {
        id: 1,
        is_get: true,
        is_secure: false,
        target: target.to_owned(),
        content_type: None,
        body: Bytes::new(),
        user: None,
    };
    bench.does(|wsn, context| wsn.ask(context, &asked("/any?WSDL")));
    let answer = bench.answers.pop().unwrap();
    let text = std::str::from_utf8(&answer.body).unwrap();
    Tree::parse(text).unwrap();
    for part in ["RegisterPublisher", "PauseFailedFault", "location=\"http://127.0.0.1:8080/pull"] {
        assert!(text.contains(part), "{part}");
    }
    bench.does(|wsn, context| wsn.ask(context, &asked("/")));
    assert_eq!(bench.answers.pop().unwrap().status, 404);
}
