//! Which resource does what: the table that requests are answered by and the documents agree with.

use http::Method;

use super::Face;

/// A resource with one of its methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) method: &'static str,
    /// Its path; `{id}` stands for the id of a message.
    pub(super) path: &'static str,
    pub(super) face: Face,
    pub(super) does: Does,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    Submit,
    ListInbox,
    ShowArrived,
    Remove,
    MarkRead,
    ListOutbox,
    ShowOutgoing,
    Subscribe,
    ShowNode,
    Transfer,
    Receipt,
    Schema(Schema),
}

/// A document that describes the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Schema {
    Xsd,
    Json,
    Cddl,
    OpenApi,
}

const fn of(method: &'static str, path: &'static str, face: Face, does: Does) -> Route {
    Route { method, path, face, does }
}

/// All routes.
pub(super) const ROUTES: &[Route] = &[
    of("POST", "/messages", Face::Clients, Does::Submit),
    of("GET", "/inbox", Face::Clients, Does::ListInbox),
    of("GET", "/inbox/{id}", Face::Clients, Does::ShowArrived),
    of("DELETE", "/inbox/{id}", Face::Clients, Does::Remove),
    of("POST", "/inbox/{id}/read", Face::Clients, Does::MarkRead),
    of("GET", "/outbox", Face::Clients, Does::ListOutbox),
    of("GET", "/outbox/{id}", Face::Clients, Does::ShowOutgoing),
    of("GET", "/events", Face::Clients, Does::Subscribe),
    of("GET", "/node", Face::Clients, Does::ShowNode),
    of("POST", "/transfers", Face::Peers, Does::Transfer),
    of("POST", "/receipts", Face::Peers, Does::Receipt),
    of("GET", "/schemas/messaging.xsd", Face::Both, Does::Schema(Schema::Xsd)),
    of("GET", "/schemas/messaging.json", Face::Both, Does::Schema(Schema::Json)),
    of("GET", "/schemas/messaging.cddl", Face::Both, Does::Schema(Schema::Cddl)),
    of("GET", "/openapi.json", Face::Both, Does::Schema(Schema::OpenApi)),
];

/// What a request finds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// A route, and the id in the path.
    Route(Does, &'a str),
    /// The path has other methods.
    OtherMethods(Vec<&'static str>),
    /// There is no such path here.
    Nothing,
}

/// The route of a request that came by a face.
pub(super) fn find<'a>(face: Face, method: &Method, path: &'a str) -> Found<'a> {
    let is_served =
        |route: &&Route| face == Face::Both || route.face == Face::Both || route.face == face;
    let fitting = ROUTES.iter().filter(is_served);
    let fitting: Vec<(&Route, &str)> =
        fitting.filter_map(|route| Some((route, matches(route.path, path)?))).collect();
    match fitting.iter().find(|(route, _)| route.method == method.as_str()) {
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
