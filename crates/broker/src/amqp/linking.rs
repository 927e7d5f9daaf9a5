//! Links are attached: to publish, or to subscribe.

use std::sync::Arc;
use std::time::Duration;

use proto::amqp::machine::{Accepted, Input, LinkId};
use proto::amqp::performative::{
    Attach, DeliveryState, Durability, ErrorInfo, ExpiryPolicy, ReceiverSettleMode, Role,
    SenderSettleMode, Source, Target, TargetKind, condition,
};
use proto::amqp::types::{Symbol, Value};

use super::address::{self, REPLY};
use super::connection::{Connection, Link};
use super::deliver::Subscriber;
use super::selector::{self, Selector};
use super::{Shared, translate};
use crate::core::Opening;
use crate::filter::{check_name, shared as split_shared};
use crate::ids::{ClientKey, Protocol};
use crate::outputs::Context;
use crate::publication::Grade;
use crate::session::{RetainHandling, Subscription};

/// Capabilities of nodes that are known here.
const CAPABILITIES: [&str; 5] = ["topic", "shared", "global", "temporary-topic", "temporary-queue"];
/// The filter by which a subscriber gets nothing of its own connection, and its number.
const NO_LOCAL: (&str, u64) = ("apache.org:no-local-filter:list", 0x0000_468c_0000_0003);
/// The filter by which it gets what a condition fits, and its number.
const SELECTOR: (&str, u64) = ("apache.org:selector-filter:string", 0x0000_468c_0000_0004);

/// Which messages of its topics a subscriber wants.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    /// None of its own connection.
    pub(super) no_local: bool,
    /// Only those that this fits.
    pub(super) selector: Option<Selector>,
}

/// What a subscriber wants.
struct Wanted {
    /// The filter, with `$share/group/` before it where it is shared.
    filter: String,
    chosen: Chosen,
    /// How long it is kept without its link.
    expiry: Duration,
    /// What the peer is answer of it.
    source: Source,
    is_shared: bool,
}

impl Connection {
    /// The peer attaches a link.
    pub(super) fn attached(
        &mut self,
        context: &mut Context<'_>,
        shared: &mut Shared,
        link: LinkId,
        attach: &Attach,
    ) {
        let accepted = match attach.role {
            Role::Sender => self.publisher_link(context, shared, link, attach),
            Role::Receiver => self.subscriber_link(context, shared, link, attach),
        };
        match accepted {
            Ok(accepted) => {
                let ticket = context.core.journal.ticket();
                self.hold(context, shared, ticket, Input::Accept(Box::new(accepted)));
            }
            Err(error) => {
                self.refused(context, &format!("link {}: {error}", attach.name));
                self.inputs.push_back(Input::Refuse { link, error });
            }
        }
    }

    fn publisher_link(
        &mut self,
        context: &Context<'_>,
        shared: &Shared,
        link: LinkId,
        attach: &Attach,
    ) -> Result<Accepted, ErrorInfo> {
        let target = match &attach.target {
            Some(TargetKind::Target(target)) => target.clone(),
            Some(TargetKind::Coordinator(_)) => {
                let what = "there are no transactions here";
                return Err(ErrorInfo::new(condition::NOT_IMPLEMENTED, what));
            }
            // What was there before (AMQP 1.0 Part 2 §2.6.3) is not kept for publishers.
            None => return Err(ErrorInfo::new(condition::NOT_FOUND, "a link without a target")),
        };
        let (topic, target) = self.topic_of(*target)?;
        if let Some(topic) = &topic {
            check_name(topic).map_err(|what| ErrorInfo::new(condition::INVALID_FIELD, what))?;
            let access = &context.core.settings().access;
            let user = self.user.as_deref();
            if !access.may_publish(user, &self.container, topic) {
                let what = "the client's rules do not allow to publish to this";
                return Err(ErrorInfo::new(condition::UNAUTHORIZED_ACCESS, what));
            }
        }
        self.links.insert(link, Link::Publisher(topic));
        Ok(Accepted {
            link,
            source: attach.source.clone(),
            target: Some(TargetKind::Target(Box::new(target))),
            window: shared.settings.link_window,
            offered_capabilities: Vec::new(),
            properties: Vec::new(),
        })
    }

    /// The topic of a target, none for one that leaves it to the messages, and the target as it is.
    fn topic_of(&mut self, mut target: Target) -> Result<(Option<Arc<str>>, Target), ErrorInfo> {
        target.capabilities.retain(|it| CAPABILITIES.contains(&it.as_str()));
        if target.dynamic {
            let node = self.make_node();
            target.address = Some(Value::string(&node));
            return Ok((Some(node.into()), target));
        }
        let topic = match target.address.as_ref() {
            None => None,
            Some(address) => Some(address.as_text().ok_or_else(no_address)?),
        };
        let topic = topic.filter(|it| !it.is_empty()).map(|it| address::topic(it, false).into());
        Ok((topic, target))
    }

    /// A node for somebody who asked for one, as long as its connection is there.
    fn make_node(&mut self) -> String {
        self.last_node += 1;
        let container = address::level(&self.container);
        format!("{REPLY}{container}/{}-{}", self.id.0, self.last_node)
    }

    fn subscriber_link(
        &mut self,
        context: &mut Context<'_>,
        shared: &mut Shared,
        link: LinkId,
        attach: &Attach,
    ) -> Result<Accepted, ErrorInfo> {
        let wanted = match &attach.source {
            Some(source) => Some(self.wanted(source, attach)?),
            None => None,
        };
        let is_kept = wanted.as_ref().is_none_or(|wanted| !wanted.expiry.is_zero());
        let name = self.session_name(link, attach, is_kept);
        let expiry = wanted.as_ref().map_or(Duration::MAX, |it| it.expiry);
        let opening = Opening {
            client: ClientKey { protocol: Protocol::Amqp, name },
            connection: self.id,
            user: self.user.clone(),
            clean: !is_kept,
            expiry,
            window: u16::MAX,
            will: None,
        };
        let refused = |refusal| translate::refused(&refusal);
        let opened = context.core.open(context.now, opening).map_err(refused)?;
        if let Some(displaced) = opened.displaced {
            shared.displaced.push((displaced, opened.session));
        }
        let session = opened.session;
        let before: Vec<Arc<str>> = context.core.filters(session).cloned().collect();
        let wanted = match (wanted, before.first()) {
            (Some(wanted), _) => wanted,
            (None, Some(filter)) => recalled(filter),
            (None, None) => {
                context.core.end(context.now, session);
                let what = "there is no such subscription";
                return Err(ErrorInfo::new(condition::NOT_FOUND, what));
            }
        };
        // One that means something else now is a new one, as JMS 2.0 §8.3.3 has it.
        for old in before.iter().filter(|old| ***old != *wanted.filter) {
            context.core.unsubscribe(session, old);
        }
        let subscription = Subscription {
            grade: grade(attach),
            handling: RetainHandling::IfNew,
            ..Subscription::new(wanted.filter.clone(), Grade::AtMostOnce)
        };
        if let Err(refusal) = context.core.subscribe(context.now, session, subscription) {
            context.core.end(context.now, session);
            return Err(translate::refused(&refusal));
        }
        let subscriber = Subscriber::new(session, attach, &wanted.filter, expiry, wanted.chosen);
        self.links.insert(link, Link::Subscriber(Box::new(subscriber)));
        self.sessions.insert(session, link);
        let shared_subs = wanted.is_shared.then(|| Symbol::new("SHARED-SUBS"));
        Ok(Accepted {
            link,
            source: Some(wanted.source),
            target: attach.target.clone(),
            window: 0,
            offered_capabilities: shared_subs.into_iter().collect(),
            properties: Vec::new(),
        })
    }

    /// The name of a subscription's session: one that is kept has the same for the same container
    /// and link, or link alone where it is shared by all containers.
    fn session_name(&self, link: LinkId, attach: &Attach, is_kept: bool) -> Arc<str> {
        let is_global = attach.source.as_ref().map_or_else(
            || has(&attach.desired_capabilities, "global"),
            |source| has(&source.capabilities, "global"),
        );
        let container = if is_global { "" } else { &*self.container };
        let name = &attach.name;
        if is_kept {
            format!("{container}|{name}").into()
        } else {
            format!("{container}|{name}#{}.{}", self.id.0, link.0).into()
        }
    }

    /// What a source means.
    fn wanted(&mut self, source: &Source, attach: &Attach) -> Result<Wanted, ErrorInfo> {
        let mut answer = source.clone();
        answer.capabilities.retain(|it| CAPABILITIES.contains(&it.as_str()));
        answer.outcomes = DeliveryState::symbols();
        answer.distribution_mode = Some(Symbol::new("copy"));
        if has(&source.capabilities, "queue") {
            let what = "there are topics here, and no queues";
            return Err(ErrorInfo::new(condition::NOT_IMPLEMENTED, what));
        }
        let filter = if source.dynamic {
            let node = self.make_node();
            answer.address = Some(Value::string(&node));
            node
        } else {
            let address =
                source.address.as_ref().and_then(Value::as_text).ok_or_else(no_address)?;
            address::topic(address, true)
        };
        let chosen = chosen(source)?;
        let is_shared = has(&source.capabilities, "shared");
        let filter = if is_shared { self.in_group(&filter, source, attach) } else { filter };
        let (filter, expiry) = (filter, expiry(source));
        Ok(Wanted { filter, chosen, expiry, source: answer, is_shared })
    }

    /// The filter as those who share a subscription have it: its name is that of the link up to
    /// what tells several links of one container apart.
    fn in_group(&self, filter: &str, source: &Source, attach: &Attach) -> String {
        let name = attach.name.split('|').next().unwrap_or_default();
        let name = address::level(name);
        if has(&source.capabilities, "global") {
            format!("$share/{name}/{filter}")
        } else {
            format!("$share/{}|{name}/{filter}", address::level(&self.container))
        }
    }
}

fn has(capabilities: &[Symbol], name: &str) -> bool {
    capabilities.iter().any(|it| it.as_str() == name)
}

fn no_address() -> ErrorInfo {
    ErrorInfo::new(condition::INVALID_FIELD, "an address that is no string")
}

/// A subscription that was left, as the peer is answer of it.
fn recalled(filter: &str) -> Wanted {
    let (is_shared, address) = match split_shared(filter) {
        Ok(Some((_, address))) => (true, address),
        _ => (false, filter),
    };
    let capability = if is_shared { vec![Symbol::new("shared")] } else { Vec::new() };
    let source = Source {
        address: Some(Value::string(address)),
        durable: Durability::UnsettledState,
        expiry_policy: ExpiryPolicy::Never,
        outcomes: DeliveryState::symbols(),
        distribution_mode: Some(Symbol::new("copy")),
        capabilities: capability,
        ..Source::default()
    };
    let (filter, expiry) = (filter.to_owned(), Duration::MAX);
    Wanted { filter, chosen: Chosen::default(), expiry, source, is_shared }
}

/// How long a subscription is kept without its link (AMQP 1.0 Part 3 §3.5.6). The times of a
/// session's and a connection's end are not answer apart from that of the link's.
fn expiry(source: &Source) -> Duration {
    match source.expiry_policy {
        ExpiryPolicy::Never => Duration::MAX,
        _ => Duration::from_secs(source.timeout_s.into()),
    }
}

/// The highest grade that a link can have.
fn grade(attach: &Attach) -> Grade {
    match (attach.snd_settle_mode, attach.rcv_settle_mode) {
        (SenderSettleMode::Settled, _) => Grade::AtMostOnce,
        (_, ReceiverSettleMode::First) => Grade::AtLeastOnce,
        (_, ReceiverSettleMode::Second) => Grade::ExactlyOnce,
    }
}

/// What the filters of a source want. One that is not known is refused, as a subscriber that asks
/// for less must not get more.
fn chosen(source: &Source) -> Result<Chosen, ErrorInfo> {
    let mut chosen = Chosen::default();
    for (name, filter) in &source.filter {
        let Value::Described(described) = filter else {
            let what = "a filter that is no described value";
            return Err(ErrorInfo::new(condition::INVALID_FIELD, what));
        };
        let is_it = |(name, number): (&str, u64)| match &described.descriptor {
            Value::Ulong(it) => *it == number,
            descriptor => descriptor.as_text() == Some(name),
        };
        if is_it(NO_LOCAL) {
            chosen.no_local = true;
        } else if is_it(SELECTOR) {
            let text = described.value.as_text().ok_or("a selector that is no string");
            let parsed = text.and_then(selector::parse);
            let refused = |what| ErrorInfo::new(condition::INVALID_FIELD, what);
            chosen.selector = Some(parsed.map_err(refused)?);
        } else {
            let name = name.as_text().unwrap_or_default();
            let what = format!("filter {name} is not known here");
            return Err(ErrorInfo::new(condition::NOT_IMPLEMENTED, what));
        }
    }
    Ok(chosen)
}
