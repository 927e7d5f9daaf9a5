//! What crosses a bridge, and under which topics.

use std::sync::Arc;

use crate::filter::matches;
use crate::publication::Grade;

/// Topics that cross a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Topics, without what each side has before them.
    pub filter: String,
    /// They come from the other broker.
    pub comes: bool,
    /// They go to the other broker.
    pub goes: bool,
    /// Highest grade.
    pub max_grade: Grade,
    /// What they begin with here.
    pub local: String,
    /// What they begin with there.
    pub remote: String,
}

impl Route {
    /// The filter by which they are subscribed to here.
    #[must_use]
    pub fn local_filter(&self) -> String {
        [&*self.local, &*self.filter].concat()
    }

    /// The filter by which they are subscribed to there.
    #[must_use]
    pub fn remote_filter(&self) -> String {
        [&*self.remote, &*self.filter].concat()
    }
}

/// The topic there of one here; `None` where no route goes.
pub(in crate::mqtt) fn to_remote(routes: &[Route], topic: &Arc<str>) -> Option<Arc<str>> {
    let route = routes.iter().filter(|route| route.goes);
    map(route, topic, |route| (&route.local, &route.remote))
}

/// The topic here of one there; `None` where no route comes.
pub(in crate::mqtt) fn to_local(routes: &[Route], topic: &Arc<str>) -> Option<Arc<str>> {
    let route = routes.iter().filter(|route| route.comes);
    map(route, topic, |route| (&route.remote, &route.local))
}

/// By the first route that the topic fits.
fn map<'a>(
    mut routes: impl Iterator<Item = &'a Route>,
    topic: &Arc<str>,
    prefixes: impl Fn(&'a Route) -> (&'a str, &'a str),
) -> Option<Arc<str>> {
    routes.find_map(|route| {
        let (from, to) = prefixes(route);
        let rest = topic.strip_prefix(from)?;
        if !matches(&[from, &*route.filter].concat(), topic) {
            return None;
        }
        Some(if from == to { topic.clone() } else { [to, rest].concat().into() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(filter: &str, local: &str, remote: &str) -> Route {
        let (local, remote) = (local.to_owned(), remote.to_owned());
        let filter = filter.to_owned();
        Route { filter, comes: true, goes: true, max_grade: Grade::ExactlyOnce, local, remote }
    }

    #[test]
    fn topics_get_the_beginning_of_the_other_side_and_come_back() {
        let routes = [route("+/track", "unit/", "nato/nor/"), route("chat/#", "", "")];
        for (here, there) in [
            ("unit/7/track", Some("nato/nor/7/track")),
            ("unit/7/8/track", None),
            ("chat", Some("chat")),
            ("chat/a/b", Some("chat/a/b")),
            ("other", None),
        ] {
            let here = Arc::<str>::from(here);
            let mapped = to_remote(&routes, &here);
            assert_eq!(mapped.as_deref(), there);
            if let Some(there) = mapped {
                assert_eq!(to_local(&routes, &there), Some(here));
            }
        }
    }

    #[test]
    fn a_route_of_one_way_is_of_no_use_in_the_other() {
        let only = Route { comes: false, ..route("#", "", "") };
        let topic = Arc::<str>::from("a");
        assert_eq!(to_remote(std::slice::from_ref(&only), &topic).as_deref(), Some("a"));
        assert_eq!(to_local(&[only], &topic), None);
    }
}
