//! What a mesh is told: what clients here publish, and what all of them together want.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::Core;
use crate::change::Change;
use crate::ids::Protocol;
use crate::publication::{Grade, Publication};

/// Something that a mesh has to know.
#[derive(Debug)]
pub(crate) enum Seen {
    /// A client has published, and it was taken.
    Published(Arc<Publication>),
    /// The first session has subscribed to a filter.
    Wanted(Arc<str>),
    /// The last one has not any more.
    Unwanted(Arc<str>),
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// How many subscriptions there are to each filter.
    // bound: max_sessions of max_subscriptions each, as the index.
    filters: BTreeMap<Arc<str>, usize>,
    // bound: what one input leads to; it is taken before the next.
    seen: VecDeque<Seen>,
    /// Whether another member wants anything.
    is_wanted: bool,
}

/// A mesh is to be told from now on, which is before any input.
pub(crate) fn watch(core: &mut Core) {
    core.watch = Some(Box::default());
}

/// The next thing that a mesh has to know.
pub(crate) fn seen(core: &mut Core) -> Option<Seen> {
    core.watch.as_mut()?.seen.pop_front()
}

/// Whether another member wants anything.
pub(crate) fn set_wanted(core: &mut Core, is_wanted: bool) {
    if let Some(watch) = &mut core.watch {
        watch.is_wanted = is_wanted;
    }
}

/// A publication was taken. Where it may have to be kept for others, it has a place in the batch
/// that is open, so that its acknowledgement waits for what is kept.
pub(super) fn published(core: &mut Core, publication: &Arc<Publication>) {
    let Some(watch) = &mut core.watch else { return };
    if matches!(publication.protocol, Protocol::Broker | Protocol::Mesh)
        || publication.topic.starts_with('$')
    {
        return;
    }
    watch.seen.push_back(Seen::Published(publication.clone()));
    let is_kept = publication.grade > Grade::AtMostOnce && watch.is_wanted || publication.retain;
    if is_kept {
        let (protocol, key) = (Protocol::Mesh, Arc::from("batch"));
        core.journal.add(Change::Kept { protocol, key, value: None });
    }
}

/// A session has one more subscription.
pub(super) fn wanted(core: &mut Core, filter: &str) {
    let Some(watch) = &mut core.watch else { return };
    let filter: Arc<str> = filter.into();
    let count = watch.filters.entry(filter.clone()).or_default();
    *count += 1;
    if *count == 1 {
        watch.seen.push_back(Seen::Wanted(filter));
    }
}

/// A session has one less.
pub(super) fn unwanted(core: &mut Core, filter: &str) {
    let Some(watch) = &mut core.watch else { return };
    let Some(count) = watch.filters.get_mut(filter) else { return };
    *count = count.saturating_sub(1);
    if *count == 0
        && let Some((filter, _)) = watch.filters.remove_entry(filter)
    {
        watch.seen.push_back(Seen::Unwanted(filter));
    }
}
