//! Subscriptions that are renewed while somebody wants them, and ended when nobody does.

use std::pin::Pin;
use std::time::Duration;

use broker::wsn_client::{
    Manner, Notified, Policies, Reference, Subscribed, Wish as Asked, create_pull_point,
    destroy_pull_point, get_messages, read_messages, read_pull_point, read_renewed,
    read_subscribed, renew, subscribe as subscribe_body, unsubscribe,
};
use bytes::Bytes;
use tokio::time::Instant;

use super::consumer::Consumer;
use super::{Broker, is_of_topics};
use crate::client::{Event, Message, Settings, Target, Wish};
use crate::error::Error;

/// Subscriptions last so many times as long as they are not renewed.
const LIFETIMES: u32 = 3;
/// Shortest time between two renewals.
const MIN_RENEWAL: Duration = Duration::from_secs(1);
/// Messages that a pull point is asked for at once.
const MAX_PULLED: usize = 100;
/// How long the broker may take for the end of it all.
const FAREWELL: Duration = Duration::from_secs(10);

/// See [`crate::client::subscribe`].
pub(in crate::client) async fn subscribe(
    target: &Target,
    settings: &Settings,
    wish: &Wish,
    take: &mut dyn FnMut(Event) -> bool,
    mut end: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), Error> {
    let lifetime = settings.keep_alive.max(MIN_RENEWAL).saturating_mul(LIFETIMES);
    let mut subscriber = Subscriber {
        broker: Broker::new(target, settings),
        wish,
        lifetime,
        renewal: settings.keep_alive.max(MIN_RENEWAL),
        consumer: None,
        pull_point: None,
        subscribed: Vec::new(),
    };
    if wish.pull.is_none() {
        subscriber.consumer = Some(Consumer::listen(target, wish.listen).await?);
    }
    let done = tokio::select! {
        done = subscriber.run(take) => done,
        () = end.as_mut() => Ok(()),
    };
    // The broker ends by itself what it cannot be told the end of.
    let _ = tokio::time::timeout(FAREWELL, subscriber.leave()).await;
    done
}

struct Subscriber<'a> {
    broker: Broker<'a>,
    wish: &'a Wish,
    lifetime: Duration,
    renewal: Duration,
    consumer: Option<Consumer>,
    pull_point: Option<Reference>,
    /// By the filters.
    subscribed: Vec<Reference>,
}

impl Subscriber<'_> {
    /// Subscribes, and hands messages on until nobody wants one. May be dropped while it waits.
    async fn run(&mut self, take: &mut dyn FnMut(Event) -> bool) -> Result<(), Error> {
        self.subscribe_all().await?;
        if !take(Event::Subscribed(Vec::new())) {
            return Ok(());
        }
        let mut renew_at = Instant::now() + self.renewal;
        loop {
            let came = match &mut self.consumer {
                Some(consumer) => tokio::select! {
                    posted = consumer.next() => posted.map(|it| (it.messages, Some(it.is_done))),
                    () = tokio::time::sleep_until(renew_at) => None,
                },
                None => self.pull().await?.map(|messages| (messages, None)),
            };
            if let Some((messages, is_done)) = came {
                let is_wanted = messages.into_iter().all(|one| take(Event::Message(message(one))));
                // What was handed on is acknowledged; whoever posted it may have gone.
                is_done.map(|is_done| is_done.send(()));
                if !is_wanted {
                    return Ok(());
                }
            }
            if Instant::now() >= renew_at {
                self.renew_all().await?;
                renew_at = Instant::now() + self.renewal;
            }
        }
    }

    /// What waits in the pull point; where that is nothing, it is asked again a while later.
    async fn pull(&mut self) -> Result<Option<Vec<Notified>>, Error> {
        let Some(point) = self.pull_point.clone() else {
            self.subscribe_all().await?;
            return Ok(None);
        };
        let answer = self.broker.ask(point.address(), get_messages(&point, MAX_PULLED)).await?;
        match read_messages(&answer.body) {
            Ok(messages) if messages.is_empty() => {
                // sleep: a pull point tells nobody when something is there.
                tokio::time::sleep(self.wish.pull.unwrap_or(MIN_RENEWAL)).await;
                Ok(None)
            }
            Ok(messages) => Ok(Some(messages)),
            // The broker has forgotten it: there is to be another.
            Err(fault) if fault.contains("ResourceUnknown") => {
                self.subscribe_all().await?;
                Ok(None)
            }
            Err(fault) => Err(Error::System(format!("the pull point: {fault}"))),
        }
    }

    async fn subscribe_all(&mut self) -> Result<(), Error> {
        self.subscribed.clear();
        if self.consumer.is_none() {
            let url = self.broker.http.url();
            let answer = self.broker.ask(&url, create_pull_point()).await?;
            let point = read_pull_point(&answer.body);
            let words = |fault| Error::System(format!("the broker makes no pull point: {fault}"));
            self.pull_point = Some(point.map_err(words)?);
        }
        let mut longest = self.lifetime;
        for filter in &self.wish.filters {
            let Subscribed { reference, lifetime } = self.subscribe_one(filter).await?;
            self.subscribed.push(reference);
            longest = longest.min(lifetime.unwrap_or(self.lifetime));
        }
        self.renewal = self.renewal.min(longest / 2).max(MIN_RENEWAL);
        Ok(())
    }

    /// Subscribes to a filter: with our policies where the broker takes them, and in the dialect
    /// Simple where it knows no other.
    async fn subscribe_one(&mut self, filter: &str) -> Result<Subscribed, Error> {
        let send_current = !self.wish.no_retained;
        let mut asked = Asked {
            filter,
            manner: Manner::Usual,
            lifetime: self.lifetime,
            policies: Some(Policies { send_current }),
        };
        loop {
            let body = self.body(&asked).map_err(Error::Caller)?;
            let url = self.broker.http.url();
            let answer = self.broker.ask(&url, body).await?;
            let fault = match read_subscribed(&answer.body) {
                Ok(subscribed) => return Ok(subscribed),
                Err(fault) => fault,
            };
            let has_wildcard = filter.contains(['+', '#']);
            if asked.policies.is_some() && fault.contains("UnrecognizedPolicy") {
                asked.policies = None;
            } else if asked.manner == Manner::Usual && !has_wildcard && is_of_topics(&fault) {
                asked.manner = Manner::Simple;
            } else {
                return Err(Error::System(format!("the broker refuses {filter}: {fault}")));
            }
        }
    }

    fn body(&self, asked: &Asked<'_>) -> Result<Bytes, String> {
        match (&self.consumer, &self.pull_point) {
            (Some(consumer), _) => subscribe_body(Ok(&consumer.url), asked),
            (None, Some(point)) => subscribe_body(Err(point), asked),
            (None, None) => Err("there is nowhere to send messages to".to_owned()),
        }
    }

    /// Renews; what the broker has forgotten is subscribed to again.
    async fn renew_all(&mut self) -> Result<(), Error> {
        for reference in self.subscribed.clone() {
            let body = renew(&reference, self.lifetime);
            let answer = self.broker.ask(reference.address(), body).await?;
            match read_renewed(&answer.body) {
                Ok(_) => {}
                Err(fault) if fault.contains("ResourceUnknown") => {
                    return self.subscribe_all().await;
                }
                Err(fault) => {
                    let text = format!("the broker renews no subscription: {fault}");
                    return Err(Error::System(text));
                }
            }
        }
        Ok(())
    }

    async fn leave(&mut self) {
        for reference in std::mem::take(&mut self.subscribed) {
            // Whether the broker takes it or not, this is the end.
            let _ = self.broker.http.post(reference.address(), unsubscribe(&reference)).await;
        }
        if let Some(point) = self.pull_point.take() {
            let _ = self.broker.http.post(point.address(), destroy_pull_point(&point)).await;
        }
    }
}

fn message(one: Notified) -> Message {
    Message {
        topic: one.topic.unwrap_or_default(),
        payload: one.payload,
        qos: 1,
        content_type: one.content_type,
        properties: one.properties,
        ..Message::default()
    }
}
