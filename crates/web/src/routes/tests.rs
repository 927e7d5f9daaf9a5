use super::*;

#[test]
fn each_route_is_found_and_described() {
    let described = open_api("1");
    for route in ROUTES {
        let path = route.path.replace(['{', '}'], "");
        let found = find(route.method, &path).unwrap();
        assert_eq!(found.action, route.action, "{path}");
        assert_eq!(found.names.len(), route.path.matches('{').count());
        let operation = &described["paths"][route.path][route.method.to_ascii_lowercase()];
        assert_eq!(operation["summary"], route.summary);
        assert!(route.path.starts_with(BASE));
    }
}

#[test]
fn examples_are_what_they_claim_to_be() {
    for Route { path, request, answer, kind, .. } in ROUTES {
        for text in [request, answer].into_iter().filter(|text| !text.is_empty()) {
            let is_json = serde_json::from_str::<Value>(text).is_ok();
            assert_eq!(is_json, *kind == JSON || text == request, "{path}: {text}");
        }
    }
}

#[test]
fn no_action_has_two_routes() {
    for (place, route) in ROUTES.iter().enumerate() {
        let twin = ROUTES[..place].iter().find(|other| other.action == route.action);
        assert!(twin.is_none(), "{:?}", route.action);
        assert!(!["GET", "HEAD"].contains(&route.method) || route.request.is_empty());
    }
}

#[test]
fn a_wrong_method_is_not_a_wrong_path() {
    assert_eq!(find("GET", "/api/v1/nothing").unwrap_err(), Missing::Path);
    assert_eq!(find("GET", "/api/v1/links/").unwrap_err(), Missing::Path);
    assert_eq!(find("GET", "/api/v1/links/a/b/c").unwrap_err(), Missing::Path);
    let other = find("PATCH", "/api/v1/links").unwrap_err();
    assert_eq!(other, Missing::Method(vec!["GET", "POST"]));
    assert_eq!(find("GET", "/api/v1/links/a%2Fb").unwrap().names, ["a%2Fb"]);
}
