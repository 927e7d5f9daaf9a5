//! Which resource does what over HTTP: the table that requests are answered by and the OpenAPI
//! document agrees with.

use super::super::directory::Lookup;
use super::super::uddi::Set;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    LogIn,
    LogOut,
    List,
    Publish,
    Show,
    Replace,
    Renew,
    Remove,
    About,
    OpenApi,
    Uddi(Set),
    Wsdl(Set),
    Register,
    ShowLinks,
    Update,
    Unregister,
    LookUp(Lookup),
    WellKnown,
}

/// A resource with one of its methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) method: &'static str,
    /// Its path; `{id}` stands for the id of a service.
    pub(super) path: &'static str,
    pub(super) does: Does,
}

const fn of(method: &'static str, path: &'static str, does: Does) -> Route {
    Route { method, path, does }
}

/// All routes.
pub(super) const ROUTES: &[Route] = &[
    of("POST", "/tokens", Does::LogIn),
    of("DELETE", "/tokens", Does::LogOut),
    of("GET", "/services", Does::List),
    of("POST", "/services", Does::Publish),
    of("GET", "/services/{id}", Does::Show),
    of("PUT", "/services/{id}", Does::Replace),
    of("DELETE", "/services/{id}", Does::Remove),
    of("POST", "/services/{id}/lease", Does::Renew),
    of("GET", "/registry", Does::About),
    of("GET", "/openapi.json", Does::OpenApi),
    of("POST", "/uddi/inquiry", Does::Uddi(Set::Inquiry)),
    of("GET", "/uddi/inquiry", Does::Wsdl(Set::Inquiry)),
    of("POST", "/uddi/publish", Does::Uddi(Set::Publication)),
    of("GET", "/uddi/publish", Does::Wsdl(Set::Publication)),
    of("POST", "/uddi/security", Does::Uddi(Set::Security)),
    of("GET", "/uddi/security", Does::Wsdl(Set::Security)),
    of("POST", "/rd", Does::Register),
    of("GET", "/rd/{id}", Does::ShowLinks),
    of("POST", "/rd/{id}", Does::Update),
    of("DELETE", "/rd/{id}", Does::Unregister),
    of("GET", "/rd-lookup/ep", Does::LookUp(Lookup::Endpoints)),
    of("GET", "/rd-lookup/res", Does::LookUp(Lookup::Resources)),
    of("GET", "/.well-known/core", Does::WellKnown),
];

/// What a request finds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// A route, and the id in the path, with its escapes.
    Route(Does, &'a str),
    /// The path has other methods.
    OtherMethods(Vec<&'static str>),
    /// There is no such path.
    Nothing,
}

/// The route of a request. A slash at the end does not count.
pub(super) fn find<'a>(method: &str, path: &'a str) -> Found<'a> {
    let path = path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(path);
    let fitting = ROUTES.iter().filter_map(|route| Some((route, matches(route.path, path)?)));
    let fitting: Vec<(&Route, &str)> = fitting.collect();
    match fitting.iter().find(|(route, _)| route.method == method) {
        Some((route, id)) => Found::Route(route.does, id),
        None if fitting.is_empty() => Found::Nothing,
        None => Found::OtherMethods(fitting.iter().map(|(route, _)| route.method).collect()),
    }
}

/// The id in a path that is of a template; empty where the template has none.
fn matches<'a>(template: &str, path: &'a str) -> Option<&'a str> {
    let Some((before, after)) = template.split_once("{id}") else {
        return (template == path).then_some("");
    };
    let id = path.strip_prefix(before)?.strip_suffix(after)?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}
