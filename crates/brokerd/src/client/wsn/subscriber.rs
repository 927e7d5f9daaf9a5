//! Subscriptions that are renewed while somebody wants them, and ended when nobody does.

use std::pin::{Pin, pin};
use std::time::Duration;

use broker::wsn_client::{
    Manner, Notified, Policies, Reference, Subscribed, Wish as Asked, create_pull_point,
    destroy_pull_point, get_messages, read_messages, read_pull_point, read_renewed,
    read_subscribed, renew, subscribe as subscribe_body, unsubscribe,
};
use bytes::Bytes;
use tokio::time::Instant;

use super::consumer::{Consumer, Posted};
use super::http::Answer;
use super::{Broker, is_of_topics};
use crate::client::{Event, Message, Settings, Take, Taken, Target, Wish};
use crate::error::Error;

/// Subscriptions last so many times as long as they are not renewed.
const LIFETIMES: u32 = 3;
/// Shortest time between two renewals.
const MIN_RENEWAL: Duration = Duration::from_secs(1);
/// Messages that a pull point is asked for at once, and how long that is to take at most.
const MAX_PULLED: usize = 100;
const MAX_PULL: Duration = Duration::from_secs(10);
/// How long the broker may take for the end of it all.
const FAREWELL: Duration = Duration::from_secs(10);

/// See [`crate::client::subscribe`].
pub(in crate::client) async fn subscribe(
    target: &Target,
    settings: &Settings,
    wish: &Wish,
    take: &mut Take<'_>,
    mut end: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), Error> {
    let lifetime = settings.keep_alive.max(MIN_RENEWAL).saturating_mul(LIFETIMES);
    let mut subscriber = Subscriber {
        broker: Broker::new(target, settings),
        puller: Broker::new(target, settings),
        wish,
        lifetime,
        renewal: settings.keep_alive.max(MIN_RENEWAL),
        renew_at: Instant::now(),
        consumer: None,
        pull_point: None,
        subscribed: Vec::new(),
    };
    if wish.pull.is_none() {
        let consumer = tokio::select! {
            consumer = Consumer::listen(target, wish.listen) => consumer?,
            () = end.as_mut() => return Ok(()),
        };
        subscriber.consumer = Some(consumer);
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
    /// Asks the pull point, while the other renews.
    puller: Broker<'a>,
    wish: &'a Wish,
    lifetime: Duration,
    renewal: Duration,
    renew_at: Instant,
    consumer: Option<Consumer>,
    pull_point: Option<Reference>,
    /// By the filters.
    subscribed: Vec<Reference>,
}

impl Subscriber<'_> {
    /// Subscribes, and hands messages on until nobody wants one. May be dropped while it waits.
    async fn run(&mut self, take: &mut Take<'_>) -> Result<(), Error> {
        self.subscribe_all().await?;
        if take(Event::Subscribed(Vec::new())) != Taken::More {
            return Ok(());
        }
        match self.wish.pull {
            None => self.run_posted(take).await,
            Some(pause) => self.run_pulled(take, pause).await,
        }
    }

    /// Hands on what the broker posts.
    async fn run_posted(&mut self, take: &mut Take<'_>) -> Result<(), Error> {
        while let Some(consumer) = &mut self.consumer {
            let posted = tokio::select! {
                posted = consumer.next() => posted,
                () = tokio::time::sleep_until(self.renew_at) => None,
            };
            if let Some(Posted { messages, is_done }) = posted {
                let taken = hand_on(messages, take);
                if taken != Taken::Failed {
                    // What was handed on is acknowledged; whoever posted it may have gone.
                    let _ = is_done.send(());
                }
                if taken != Taken::More {
                    return Ok(());
                }
            }
            if Instant::now() >= self.renew_at {
                self.renew_all().await?;
            }
        }
        Ok(())
    }

    /// Hands on what waits in the pull point; where that is nothing, it is asked again a while
    /// later. Renewals do not wait for that.
    async fn run_pulled(&mut self, take: &mut Take<'_>, pause: Duration) -> Result<(), Error> {
        let (mut pull_at, mut most) = (Instant::now(), MAX_PULLED);
        loop {
            let Some(point) = self.pull_point.clone() else {
                self.subscribe_all().await?;
                continue;
            };
            let wake_at = pull_at.min(self.renew_at);
            // sleep: a pull point tells nobody when something is there.
            tokio::time::sleep_until(wake_at).await;
            if Instant::now() < pull_at {
                self.renew_all().await?;
                continue;
            }
            let began = Instant::now();
            let answer = self.pull(&point, most).await?;
            let taken = match read_messages(&answer.body) {
                Ok(messages) if messages.is_empty() => {
                    pull_at = Instant::now() + pause;
                    Taken::More
                }
                Ok(messages) => {
                    most = next_most(messages.len(), most, began.elapsed());
                    hand_on(messages, take)
                }
                // The broker has forgotten it: there is to be another.
                Err(fault) if fault.contains("ResourceUnknown") => {
                    self.subscribe_all().await?;
                    Taken::More
                }
                Err(fault) => return Err(Error::System(format!("the pull point: {fault}"))),
            };
            if taken != Taken::More {
                return Ok(());
            }
        }
    }

    /// Asks the pull point. What it answers it has no more, so that a renewal does not end this.
    async fn pull(&mut self, point: &Reference, most: usize) -> Result<Answer, Error> {
        let Self { broker, puller, subscribed, lifetime, renewal, renew_at, .. } = self;
        let mut asked = pin!(puller.ask(point.address(), get_messages(point, most)));
        loop {
            tokio::select! {
                answer = asked.as_mut() => return answer,
                () = tokio::time::sleep_until(*renew_at) => {
                    for reference in subscribed.iter() {
                        // What is forgotten is found out when there is time for it.
                        let body = renew(reference, *lifetime);
                        let renewed = broker.ask(reference.address(), body);
                        tokio::select! {
                            answer = asked.as_mut() => return answer,
                            renewed = renewed => { renewed?; }
                        }
                    }
                    *renew_at = Instant::now() + *renewal;
                }
            }
        }
    }

    async fn subscribe_all(&mut self) -> Result<(), Error> {
        self.leave().await;
        if self.consumer.is_none() {
            let url = self.broker.http.url();
            let answer = self.broker.ask(&url, create_pull_point()).await?;
            let point = read_pull_point(&answer.body);
            let words = |fault| Error::System(format!("the broker makes no pull point: {fault}"));
            self.pull_point = Some(point.map_err(words)?);
        }
        for filter in &self.wish.filters {
            let Subscribed { reference, lifetime } = self.subscribe_one(filter).await?;
            self.subscribed.push(reference);
            self.lasts(lifetime);
        }
        self.renew_at = Instant::now() + self.renewal;
        Ok(())
    }

    /// What the broker says a subscription lasts: it is renewed in time.
    fn lasts(&mut self, lifetime: Option<Duration>) {
        let lifetime = lifetime.unwrap_or(self.lifetime);
        self.renewal = self.renewal.min(lifetime / 2).max(MIN_RENEWAL);
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

    /// Renews; what the broker has forgotten is subscribed to again, and nothing else.
    async fn renew_all(&mut self) -> Result<(), Error> {
        for (at, filter) in self.wish.filters.iter().enumerate() {
            let Some(reference) = self.subscribed.get(at).cloned() else { continue };
            let body = renew(&reference, self.lifetime);
            let answer = self.broker.ask(reference.address(), body).await?;
            let lifetime = match read_renewed(&answer.body) {
                Ok(lifetime) => lifetime,
                Err(fault) if fault.contains("ResourceUnknown") => {
                    let Subscribed { reference, lifetime } = match self.subscribe_one(filter).await
                    {
                        Ok(subscribed) => subscribed,
                        // The pull point is forgotten, too.
                        Err(_) if self.pull_point.is_some() => return self.subscribe_all().await,
                        Err(error) => return Err(error),
                    };
                    if let Some(place) = self.subscribed.get_mut(at) {
                        *place = reference;
                    }
                    lifetime
                }
                Err(fault) => {
                    let text = format!("the broker renews no subscription: {fault}");
                    return Err(Error::System(text));
                }
            };
            self.lasts(lifetime);
        }
        self.renew_at = Instant::now() + self.renewal;
        Ok(())
    }

    /// Ends what there is.
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

/// Hands messages on, up to the first that is not to be followed by another.
fn hand_on(messages: Vec<Notified>, take: &mut Take<'_>) -> Taken {
    for one in messages {
        let taken = take(Event::Message(message(one)));
        if taken != Taken::More {
            return taken;
        }
    }
    Taken::More
}

/// How many messages are asked for when so many came in this time, of so many that were asked for:
/// as many as come in [`MAX_PULL`], as an answer that breaks off is lost.
fn next_most(came: usize, most: usize, took: Duration) -> usize {
    if took <= MAX_PULL {
        return most.saturating_mul(2).min(MAX_PULLED);
    }
    let share = MAX_PULL.as_millis() * came as u128 / took.as_millis().max(1);
    usize::try_from(share).unwrap_or(MAX_PULLED).clamp(1, MAX_PULLED)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_line_is_asked_for_less_at_once() {
        let seconds = Duration::from_secs;
        assert_eq!(next_most(100, 100, seconds(100)), 10);
        assert_eq!(next_most(10, 10, seconds(9)), 20);
        assert_eq!(next_most(90, 90, seconds(1)), MAX_PULLED);
        assert_eq!(next_most(1, 1, seconds(1000)), 1);
    }
}
