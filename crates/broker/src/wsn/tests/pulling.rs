use super::*;

fn get(bench: &mut Bench, path: &str, most: &str) -> Vec<String> {
    let most = if most.is_empty() {
        String::new()
    } else {
        format!("<n:MaximumNumber>{most}</n:MaximumNumber>")
    };
    let answer = bench.good(path, &format!("<n:GetMessages>{most}</n:GetMessages>"));
    let tree = Tree::parse(&answer).unwrap();
    let body = tree.child(tree.root(), SOAP11, "Body").unwrap();
    let response = tree.child(body, WSNT, "GetMessagesResponse").unwrap();
    let all = tree.elements(response).map(|holder| {
        let message = tree.child(holder, WSNT, "Message").unwrap();
        tree.source(tree.elements(message).next().unwrap()).to_owned()
    });
    all.collect()
}

#[test]
fn messages_wait_for_who_asks() {
    let mut bench = Bench::new();
    let point = path_in(&bench.good("/", "<n:CreatePullPoint/>"));
    let address = format!("http://127.0.0.1:8080{point}");
    let one = path_in(&bench.good("/", &subscribe(&address, "a", "", "")));
    bench.good("/", &subscribe(&address, "b", "", ""));
    for number in 0..3 {
        bench.publish("a", &format!("<a>{number}</a>"));
    }
    bench.publish("b", "<b/>");
    bench.publish_as("b", "<at-most-once/>", |publication| publication.grade = Grade::AtMostOnce);
    assert!(bench.posts.is_empty());
    assert_eq!(get(&mut bench, &point, "2"), ["<a>0</a>", "<a>1</a>"]);
    assert_eq!(get(&mut bench, &point, "0"), Vec::<String>::new());
    assert_eq!(get(&mut bench, &point, ""), ["<b/>", "<at-most-once/>", "<a>2</a>"]);
    assert_eq!(get(&mut bench, &point, "9"), Vec::<String>::new());
    bench.good(&one, "<n:PauseSubscription/>");
    bench.publish("a", "<late/>");
    assert_eq!(get(&mut bench, &point, ""), Vec::<String>::new());
    bench.good(&one, "<n:ResumeSubscription/>");
    assert_eq!(get(&mut bench, &point, ""), ["<late/>"]);
    bench.good(&point, "<n:DestroyPullPoint/>");
    assert_eq!(bench.core.sizes().sessions, 0);
    bench.bad(&point, "<n:GetMessages/>", "ResourceUnknown");
    bench.bad(&point, "<n:DestroyPullPoint/>", "ResourceUnknown");
    bench.bad(&one, "<n:Unsubscribe/>", "ResourceUnknown");
}

#[test]
fn whoever_comes_by_tls_is_sent_nowhere_else() {
    let (address, secure_address) = ("http://a.example:1", "https://a.example:2");
    let mut bench = Bench::with(Settings {
        address: address.to_owned(),
        secure_address: secure_address.to_owned(),
        ..Settings::default()
    });
    for (is_secure, own, other) in
        [(false, address, secure_address), (true, secure_address, address)]
    {
        bench.is_secure = is_secure;
        let made = bench.good("/", "<n:CreatePullPoint/>");
        assert!(made.contains(own) && !made.contains(other), "{made}");
        let (_, behind) = made.split_once(own).unwrap();
        let (point, _) = behind.split_once('<').unwrap();
        // Either is this broker.
        for known in [own, other] {
            let answer = bench.good("/", &subscribe(&format!("{known}{point}"), "a", "", ""));
            assert!(answer.contains(own) && !answer.contains(other), "{answer}");
        }
    }
}

#[test]
fn what_others_send_to_it_waits_too_within_a_bound() {
    let mut bench = Bench::new();
    let point = path_in(&bench.good("/", "<n:CreatePullPoint/>"));
    for number in 0..resources::MAX_DIRECT + 5 {
        bench.good(&point, &notify("a", &format!("<n>{number}</n>")));
    }
    let found = get(&mut bench, &point, "");
    assert_eq!((found.len(), found[0].as_str()), (resources::MAX_DIRECT, "<n>5</n>"));
    let message = "<n:Notify><n:NotificationMessage><n:Message><x/></n:Message>\
                   </n:NotificationMessage></n:Notify>";
    bench.good(&point, message);
    assert_eq!(get(&mut bench, &point, ""), ["<x/>"]);
    bench.pass(Settings::default().max_lifetime);
    bench.bad(&point, "<n:GetMessages/>", "ResourceUnknown");
}

#[test]
fn pull_points_have_a_bound() {
    let mut bench = Bench::with(Settings { max_pull_points: 1, ..Settings::default() });
    bench.good("/", "<n:CreatePullPoint/>");
    bench.bad("/", "<n:CreatePullPoint/>", "UnableToCreatePullPoint");
}
