//! Messages go to consumers.

use std::sync::Arc;

use bytes::Bytes;
use codec::xml::is_text;

use super::addressing::{Endpoint, Headers};
use super::answers::{notification, write_notify};
use super::names::{NOTIFY, RAW};
use super::payload;
use super::soap::{envelope, raw};
use super::subscription::{Consumer, Flying, Posting, Style, Subscription};
use super::topics::Topics;
use super::tree::Tree;
use super::{Due, Purpose, Rendered, Wsn};
use crate::core::{Delivery, Next, tell_dropped_for, tell_sent, tell_unchosen};
use crate::event::{Drop, Event};
use crate::explain::Sent;
use crate::http::{Post, Posted};
use crate::ids::Protocol;
use crate::outputs::Context;
use crate::publication::{Form, Publication};

/// What sends, for who asks later.
pub(super) const PROTOCOL: &str = "WS-Notification 1.3";
/// Bytes after which a POST gets no further message.
const MAX_BATCH_BYTES: usize = 256 << 10;

impl Wsn {
    /// Posts what waits for a subscription, if nothing is under way for it.
    pub(super) fn send(&mut self, context: &mut Context<'_>, id: u64) {
        let Some(subscription) = self.subscriptions.get(&id) else { return };
        if subscription.is_asleep() || subscription.posting.is_some() {
            return;
        }
        let most = subscription.batch(self.settings.max_batch);
        let session = subscription.session;
        let (mut flying, mut elements) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        while flying.len() < most && bytes < MAX_BATCH_BYTES {
            let Some((taken, element)) = self.take(context, id) else { break };
            bytes += element.len();
            flying.push(taken);
            elements.push(element);
        }
        if flying.is_empty() {
            if context.core.has_more(session) {
                context.core.poke(session);
            }
            return;
        }
        self.last_post += 1;
        let post_id = self.last_post;
        let topics = Topics::new(&self.settings.mounts);
        let Some(subscription) = self.subscriptions.get_mut(&id) else { return };
        let Consumer::Push(endpoint) = &subscription.consumer else { return };
        let style = &subscription.style;
        let post = post(post_id, endpoint, style, &topics, &flying, &elements);
        let message_bytes = (flying.len() == 1).then_some(post.body.len());
        for Flying { publication, .. } in flying.iter().filter(|it| it.publication.is_followed) {
            let (protocol, to) = (PROTOCOL, Some(endpoint.address.clone()));
            let sent = Sent { protocol, to, message_bytes, ..Sent::default() };
            tell_sent(context.core, publication, session, sent);
        }
        context.outputs.post(post);
        subscription.posting = Some(Posting { id: post_id, flying });
        self.posts.insert(post_id, Purpose::Notify(id));
    }

    /// The next message that a subscription wants, with its element.
    pub(super) fn take(
        &mut self,
        context: &mut Context<'_>,
        id: u64,
    ) -> Option<(Flying, Arc<str>)> {
        let session = self.subscriptions.get(&id)?.session;
        loop {
            let Delivery { publication, handle, .. } =
                match context.core.take(context.now, session)? {
                    Next::Publish(delivery) => delivery,
                    // Nothing here is of grade 2.
                    Next::Release(handle) => {
                        context.core.finish(session, handle.get(), false);
                        continue;
                    }
                };
            let element = self.element(&publication);
            let subscription = self.subscriptions.get(&id)?;
            if is_wanted(context, subscription, &element) {
                return Some((Flying { handle, publication }, element));
            }
            tell_unchosen(context.core, &publication, session, "not-selected");
            if let Some(handle) = handle {
                context.core.finish(session, handle.get(), false);
            }
        }
    }

    /// A publication as an element, made once for all who get it.
    pub(super) fn element(&mut self, publication: &Publication) -> Arc<str> {
        let (id, coded) = (publication.id, publication.coded);
        let is_it = |it: &&Rendered| it.id == id && it.coded == coded;
        if let Some(Rendered { element, .. }) = self.rendered.as_ref().filter(is_it) {
            return element.clone();
        }
        let element: Arc<str> = element_of(publication).into();
        self.rendered = Some(Rendered { id, coded, element: element.clone() });
        element
    }

    /// What came of the POST of a subscription.
    pub(super) fn notified(&mut self, context: &mut Context<'_>, id: u64, posted: &Posted) {
        let (first, last) = (self.settings.first_retry, self.settings.max_retry);
        let Some(subscription) = self.subscriptions.get_mut(&id) else { return };
        let Some(posting) = subscription.posting.take_if(|posting| posting.id == posted.id) else {
            return;
        };
        let session = subscription.session;
        let finish = |context: &mut Context<'_>, refused: bool| {
            for Flying { handle, publication } in &posting.flying {
                match handle {
                    Some(handle) => {
                        context.core.finish(session, handle.get(), refused);
                    }
                    None if refused => {
                        context.core.tell_dropped(publication, Some(session), Drop::Refused);
                    }
                    None => {}
                }
            }
        };
        if posted.status.is_some_and(|status| (200..300).contains(&status)) {
            subscription.succeed();
            finish(context, false);
            return self.send(context, id);
        }
        let refused = posted.status.is_some_and(is_refusal);
        let what = match posted.status {
            Some(status) => format!("answered with {status}"),
            None => "is not reached".to_owned(),
        };
        let wait = subscription.fail(refused, first, last);
        let gives_up = refused
            && posting.flying.len() == 1
            && subscription.refusals >= self.settings.max_refusals.max(1);
        if gives_up {
            subscription.refusals = 0;
            finish(context, true);
        } else {
            for Flying { handle, publication } in posting.flying.iter().rev() {
                match handle {
                    Some(handle) => {
                        context.core.give_back(session, handle.get());
                    }
                    None => {
                        // At most once: it had its attempt.
                        let detail = format_args!("the consumer {what}");
                        let session = Some(session);
                        tell_dropped_for(context.core, publication, session, Drop::Refused, detail);
                    }
                }
            }
        }
        context.core.set_asleep(session, true);
        self.timers.set(Due::Retry(id), Some(context.now.saturating_add(wait)));
        let connection = None;
        let why = format!("the consumer of subscription {id:x} {what}");
        context.core.tell(Event::Refused { protocol: Protocol::Wsn, connection, why });
    }

    /// A consumer is tried again.
    pub(super) fn retry(&mut self, context: &mut Context<'_>, id: u64) {
        let Some(subscription) = self.subscriptions.get_mut(&id) else { return };
        subscription.backs_off = false;
        context.core.set_asleep(subscription.session, subscription.is_asleep());
        self.send(context, id);
    }
}

/// Whether a status says that the message is not wanted, rather than that this is no time for it.
fn is_refusal(status: u16) -> bool {
    (300..600).contains(&status) && !matches!(status, 408 | 425 | 429 | 502 | 503 | 504)
}

/// Whether a message passes a subscription's filters by content.
fn is_wanted(context: &mut Context<'_>, subscription: &Subscription, element: &str) -> bool {
    if subscription.contents.is_empty() {
        return true;
    }
    let Ok(tree) = Tree::parse(element) else { return false };
    subscription.contents.iter().all(|filter| match filter.is_match(&tree) {
        Ok(passes) => passes,
        Err(error) => {
            let why = error.to_string();
            context.core.tell(Event::Refused { protocol: Protocol::Wsn, connection: None, why });
            false
        }
    })
}

/// The element of a publication: as it came, where it came by this protocol.
fn element_of(publication: &Publication) -> String {
    let details = publication.details.as_deref();
    let original = details.and_then(|details| details.original.as_ref());
    let came = match (publication.protocol, original) {
        _ if publication.coded.is_some() => None,
        (Protocol::Wsn, Some(original)) => Some(original),
        (Protocol::Wsn, None) if publication.form == Form::Xml => Some(&publication.payload),
        _ => None,
    };
    if let Some(text) = came.and_then(|bytes| std::str::from_utf8(bytes).ok()) {
        return text.to_owned();
    }
    let content_type = details.and_then(|details| details.content_type.as_deref());
    payload::to_element(&publication.payload, publication.form, content_type)
}

/// A message as `NotificationMessage` for a consumer.
pub(super) fn notification_of(
    topics: &Topics<'_>,
    style: &Style,
    publication: &Publication,
    element: &str,
) -> String {
    let topic = topics.write_topic(&publication.topic, style.spelling);
    notification(&topic, style.spelling.dialect, element)
}

/// The POST of messages.
fn post(
    id: u64,
    endpoint: &Endpoint,
    style: &Style,
    topics: &Topics<'_>,
    flying: &[Flying],
    elements: &[Arc<str>],
) -> Post {
    let action = if style.policy.use_raw { RAW } else { NOTIFY };
    let single = match flying {
        [single] => single.publication.details.as_deref(),
        _ => None,
    };
    // Who has named reference parameters gets them in headers, and with them the others.
    let version =
        style.addressing.or((!endpoint.parameters.is_empty()).then_some(endpoint.version));
    let headers = version.map(|version| Headers {
        version,
        action,
        to: Some(&endpoint.address),
        message_id: single
            .and_then(|details| details.message_id.as_deref())
            .filter(|id| is_text(id)),
        relates_to: None,
        parameters: &endpoint.parameters,
    });
    let properties =
        single.filter(|details| style.policy.properties && !details.properties.is_empty());
    let body = envelope(
        style.soap,
        headers.as_ref(),
        |writer| {
            if let Some(details) = properties {
                payload::write_properties(writer, &details.properties);
            }
        },
        |writer| {
            if style.policy.use_raw {
                elements.iter().for_each(|element| raw(writer, element));
                return;
            }
            let all = flying.iter().zip(elements).map(|(flying, element)| {
                notification_of(topics, style, &flying.publication, element)
            });
            write_notify(writer, &all.collect::<Vec<_>>());
        },
    );
    let soap_action = style.soap.soap_action();
    Post {
        id,
        url: endpoint.address.clone(),
        content_type: style.soap.content_type(Some(action)),
        soap_action,
        body: Bytes::from(body),
    }
}
