//! Subscriptions outlive the process where the broker has a store.
//!
//! The core keeps sessions and what they have subscribed to. What else there is to know of a
//! subscription is kept as one more filter of its session, in a topic that nobody can publish to.

use std::sync::Arc;

use codec::xml::Writer;

use super::addressing::WsaVersion;
use super::base64;
use super::names::LW;
use super::requests::{Request, Subscribe};
use super::resources::{PullPoint, Resource};
use super::soap::{SoapVersion, raw};
use super::subscription::{Consumer, Style, Subscription};
use super::tree::Tree;
use super::{Due, FIRST_CONNECTION, Wsn};
use crate::core::Opening;
use crate::event::Event;
use crate::filter::MAX_TOPIC_BYTES;
use crate::ids::{ConnectionId, Protocol, SessionId};
use crate::outputs::Context;
use crate::publication::Grade;
use crate::session::{RetainHandling, Subscription as Filter};

/// The first levels of such a filter. Nobody publishes to topics that begin with `$`.
const NOTE: &str = "$lw/wsn/";

/// What is kept, as a filter.
fn note(subscription: &Subscription) -> String {
    let mut writer = Writer::new();
    writer.start("k:Kept");
    writer.namespace("k", LW);
    let Subscription { style, created_ms, terminates_ms, paused, source, .. } = subscription;
    let soap = if style.soap == SoapVersion::V12 { "12" } else { "11" };
    writer.attribute("soap", soap);
    if let Some(version) = style.addressing {
        writer.attribute("wsa", version.uri());
    }
    writer.attribute("created", &created_ms.to_string());
    writer.attribute("ends", &terminates_ms.to_string());
    writer.attribute("paused", if *paused { "1" } else { "0" });
    raw(&mut writer, source);
    writer.end("k:Kept");
    // RFC 4648 §5: without characters that mean something in filters.
    let text = base64::encode(&writer.finish());
    let text: String = text
        .chars()
        .map(|digit| match digit {
            '+' => '-',
            '/' => '_',
            digit => digit,
        })
        .collect();
    NOTE.to_owned() + &text
}

/// The document in such a filter.
fn noted(filter: &str) -> Option<String> {
    let text: String = filter
        .strip_prefix(NOTE)?
        .chars()
        .map(|digit| match digit {
            '-' => '+',
            '_' => '/',
            digit => digit,
        })
        .collect();
    String::from_utf8(base64::decode(&text)?).ok()
}

impl Wsn {
    /// Keeps what there is to know of a subscription now.
    pub(super) fn keep(&self, context: &mut Context<'_>, id: u64) {
        let Some(subscription) = self.subscriptions.get(&id) else { return };
        if !context.core.settings().durable {
            return;
        }
        let session = subscription.session;
        forget(context, session);
        let note = note(subscription);
        let kept = note.len() <= MAX_TOPIC_BYTES && {
            let mut filter = Filter::new(note, Grade::AtMostOnce);
            filter.handling = RetainHandling::Never;
            context.core.subscribe(context.now, session, filter).is_ok()
        };
        if !kept {
            let what = "is too long, or the rules do not let it be kept below $lw/wsn";
            let why = format!("subscription {id:x} ends with this process: it {what}");
            context.core.tell(Event::Refused { protocol: Protocol::Wsn, connection: None, why });
        }
    }

    /// Takes up the subscriptions that the core has from a store; those that nothing is known of
    /// end.
    pub(crate) fn restore(&mut self, context: &mut Context<'_>) {
        let sessions: Vec<(SessionId, Arc<str>)> = context
            .core
            .sessions_of(Protocol::Wsn)
            .map(|(session, client)| (session, client.name.clone()))
            .collect();
        for (session, name) in sessions {
            let taken = self.take_up(context, session, &name);
            if taken.is_none() {
                context.core.end(context.now, session);
            }
        }
    }

    fn take_up(&mut self, context: &mut Context<'_>, session: SessionId, name: &str) -> Option<()> {
        let Some(Resource::Subscription(id)) = self.settings.resource_at(&format!("/{name}"))
        else {
            return None;
        };
        let note = context.core.filters(session).find_map(|filter| noted(filter))?;
        let subscription = self.read_note(session, &note)?;
        if subscription.terminates_ms <= self.settings.unix_ms(context.now) {
            return None;
        }
        let user = context.core.user(session).cloned();
        let opening = Opening {
            client: context.core.client(session)?.clone(),
            connection: ConnectionId(FIRST_CONNECTION + id),
            user: user.clone(),
            clean: false,
            expiry: self.settings.max_lifetime,
            window: u16::try_from(self.settings.max_batch).unwrap_or(u16::MAX),
            will: None,
        };
        context.core.open(context.now, opening).ok()?;
        self.last_id = self.last_id.max(id);
        if let Consumer::Pull(point) = subscription.consumer {
            self.last_id = self.last_id.max(point);
            self.pull_points.entry(point).or_insert(PullPoint { user, ..PullPoint::default() });
            self.touch_pull_point(context.now, point);
        }
        let due = self.settings.when(context.now, subscription.terminates_ms);
        self.timers.set(Due::Termination(id), Some(due));
        context.core.set_asleep(session, subscription.is_asleep());
        self.subscriptions.insert(id, subscription);
        Some(())
    }

    fn read_note(&self, session: SessionId, note: &str) -> Option<Subscription> {
        let tree = Tree::parse(note).ok()?;
        let root = tree.root();
        let number = |name: &str| tree.attribute(root, "", name)?.parse::<i64>().ok();
        let element = tree.elements(root).next()?;
        let Ok(Request::Subscribe(subscribe)) =
            Request::read(&tree, element, &self.settings.topics())
        else {
            return None;
        };
        let Subscribe { consumer, spelling, contents, policy, .. } = *subscribe;
        let addressing = tree.attribute(root, "", "wsa");
        let soap = tree.attribute(root, "", "soap")?;
        let style = Style {
            soap: if soap == "12" { SoapVersion::V12 } else { SoapVersion::V11 },
            addressing: [WsaVersion::V2004, WsaVersion::V2005]
                .into_iter()
                .find(|version| Some(version.uri()) == addressing),
            spelling,
            policy,
        };
        let consumer = match self
            .settings
            .own_path(&consumer.address)
            .map(|path| self.settings.resource_at(path))
        {
            Some(Some(Resource::PullPoint(point))) => Consumer::Pull(point),
            Some(_) => return None,
            None => Consumer::Push(consumer),
        };
        Some(Subscription {
            session,
            consumer,
            style,
            contents,
            source: tree.standalone(element).into(),
            created_ms: number("created")?,
            terminates_ms: number("ends")?,
            paused: tree.attribute(root, "", "paused") == Some("1"),
            posting: None,
            failures: 0,
            refusals: 0,
            backs_off: false,
        })
    }
}

/// Takes the note of a session away.
fn forget(context: &mut Context<'_>, session: SessionId) {
    let old = context.core.filters(session).find(|filter| filter.starts_with(NOTE)).cloned();
    if let Some(old) = old {
        context.core.unsubscribe(session, &old);
    }
}
