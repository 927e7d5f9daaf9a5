//! WS-Notification over HTTP: a Notify for each message; for who subscribes, a consumer that
//! listens or a pull point that is asked.

mod consumer;
mod http;
mod subscriber;

use broker::wsn_client::{Manner, Said, notify, read_fault};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::again::Again;
use super::{Message, Published, Settings, Target};
use crate::error::Error;
use http::{Answer, Http};

pub(super) use subscriber::subscribe;

/// Statuses of brokers that may take a request later.
const LATER: [u16; 5] = [408, 429, 502, 503, 504];

/// See [`super::publish`].
pub(super) async fn publish(
    target: &Target,
    settings: &Settings,
    mut messages: mpsc::Receiver<Message>,
) -> Result<Published, Error> {
    let mut broker = Broker::new(target, settings);
    let mut published = Published::default();
    let mut manner = Manner::Usual;
    while let Some(message) = messages.recv().await {
        let said = Said {
            topic: &message.topic,
            payload: &message.payload,
            content_type: message.content_type.as_deref(),
            properties: &message.properties,
        };
        match broker.notify(&said, &mut manner).await? {
            Ok(()) => published.accepted += 1,
            Err(why) => published.fail(why),
        }
    }
    Ok(published)
}

/// A broker that is asked again for as long as somebody has patience.
struct Broker<'a> {
    target: &'a Target,
    http: Http<'a>,
    again: Again,
    began: Instant,
}

impl<'a> Broker<'a> {
    fn new(target: &'a Target, settings: &Settings) -> Self {
        Self {
            target,
            http: Http::new(target),
            again: Again::new(settings.retry),
            began: Instant::now(),
        }
    }

    /// Publishes; what the broker refuses is in the inner result. A peer that knows only the
    /// dialect Simple is told topics in that from then on.
    async fn notify(
        &mut self,
        said: &Said<'_>,
        manner: &mut Manner,
    ) -> Result<Result<(), String>, Error> {
        loop {
            let body = match notify(said, *manner) {
                Ok(body) => body,
                Err(why) => return Ok(Err(why)),
            };
            let url = self.http.url();
            let answer = self.ask(&url, body).await?;
            let Some(fault) = answer.fault() else { return Ok(Ok(())) };
            if *manner == Manner::Simple || !is_of_topics(&fault) {
                return Ok(Err(format!("the broker refuses it: {fault}")));
            }
            *manner = Manner::Simple;
        }
    }

    /// Asks until there is an answer.
    ///
    /// # Errors
    /// Where the broker is not reached for too long, or does not know who asks.
    async fn ask(&mut self, url: &str, body: bytes::Bytes) -> Result<Answer, Error> {
        self.http.check(url)?;
        loop {
            let why = match self.http.post(url, body.clone()).await {
                Ok(answer) if answer.status == 401 || answer.status == 403 => {
                    let status = answer.status;
                    let text = format!("{url}: the broker does not let this client in ({status})");
                    return Err(Error::System(text));
                }
                Ok(answer) if !LATER.contains(&answer.status) => {
                    self.again.connected();
                    return Ok(answer);
                }
                Ok(answer) => format!("it answers with {}", answer.status),
                Err(why) => why,
            };
            let why = Error::System(format!("{}: {why}", self.target.address));
            if !self.http.has_connected {
                return Err(why);
            }
            let Some(pause) = self.again.pause(self.began.elapsed()) else { return Err(why) };
            tokio::time::sleep(pause).await;
        }
    }
}

impl Answer {
    /// What the broker says is wrong, if it does not do what it was asked for.
    fn fault(&self) -> Option<String> {
        if (200..300).contains(&self.status) {
            return None;
        }
        let status = format!("it answers with {}", self.status);
        if self.body.is_empty() {
            return Some(status);
        }
        Some(read_fault(&self.body).unwrap_or(status))
    }
}

/// Whether a fault is about how a topic is spelt.
fn is_of_topics(fault: &str) -> bool {
    ["TopicExpression", "TopicNotSupported", "InvalidFilter"]
        .iter()
        .any(|name| fault.contains(name))
}
