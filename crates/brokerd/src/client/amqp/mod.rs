//! AMQP 1.0, over TCP or TLS: a link for each topic and each filter, whose addresses these are.

mod message;
mod publisher;
mod subscriber;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;
use proto::amqp::client::{self, Client, Input};
use proto::amqp::machine::Output;
use proto::amqp::performative::{ErrorInfo, ReceiverSettleMode, condition};
use proto::amqp::sasl::Credentials;

use super::again::Again;
use super::line::{Line, Machine, Next, Step};
use super::{Settings, Target};
use crate::error::Error;
use crate::store::random;

pub(super) use publisher::publish;
pub(super) use subscriber::subscribe;

/// Longest message that is taken.
const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// How long the broker may take to agree to the end.
const FAREWELL: Duration = Duration::from_secs(10);
/// The capability of a node that is a topic, which brokers with queues ask for.
const TOPIC: &str = "topic";

impl Machine for Client {
    type Said = Output;

    fn poll(&mut self) -> Option<Step<Output>> {
        Some(match self.poll_output()? {
            Output::Transmit(bytes) => Step::Transmit(bytes),
            Output::WakeAt(at) => Step::WakeAt(at),
            other => Step::Said(other),
        })
    }

    fn received(&mut self, now: Duration, bytes: Bytes) {
        self.handle_input(now, Input::Bytes(bytes));
    }

    fn woken(&mut self, now: Duration) {
        self.handle_input(now, Input::Wake);
    }
}

fn settle_mode(is_second: bool) -> ReceiverSettleMode {
    if is_second { ReceiverSettleMode::Second } else { ReceiverSettleMode::First }
}

/// A client, and its connection where there is one.
struct Talk<'a> {
    target: &'a Target,
    of_client: client::Settings,
    client: Client,
    line: Line<'a>,
    again: Again,
    has_been_open: bool,
}

impl<'a> Talk<'a> {
    fn new(target: &'a Target, settings: &Settings) -> Result<Self, Error> {
        let container_id = match settings.client_id.as_str() {
            "" => format!("longwire-{:016x}", random()?),
            id => id.to_owned(),
        };
        let keep_alive = Some(settings.keep_alive_s()).filter(|seconds| *seconds > 0);
        let of_client = client::Settings {
            container_id,
            hostname: Some(target.host.clone()),
            credentials: credentials(target)?,
            // The peer is told half of it.
            idle_timeout: keep_alive.map(|seconds| Duration::from_secs(seconds).saturating_mul(2)),
            max_message_bytes: MAX_MESSAGE_BYTES,
        };
        Ok(Self {
            target,
            client: Client::new(of_client.clone(), Duration::ZERO),
            of_client,
            line: Line::new(target),
            again: Again::new(settings.retry),
            has_been_open: false,
        })
    }

    fn input(&mut self, input: Input) {
        self.client.handle_input(self.line.now(), input);
    }

    /// Connects, once.
    async fn connect(&mut self) -> Result<(), Error> {
        self.line.connect().await?;
        self.client = Client::new(self.of_client.clone(), self.line.now());
        Ok(())
    }

    /// What the client says next; `None` when what was to be written has left, so that there is
    /// room for more. May be dropped while it waits.
    async fn next(&mut self) -> Option<Output> {
        loop {
            match self.line.next(&mut self.client).await {
                Next::Said(output) => {
                    if matches!(output, Output::Opened(_)) {
                        self.has_been_open = true;
                        self.again.connected();
                    }
                    return Some(output);
                }
                Next::Written => return None,
                Next::Lost => self.input(Input::Eof),
            }
        }
    }

    /// The connection is over: makes another.
    ///
    /// # Errors
    /// Where there is none to be had, or the broker does not want this client.
    async fn lost(&mut self, error: Option<&ErrorInfo>) -> Result<(), Error> {
        self.line.drop();
        // It ends, it has enough to do, or nothing came for long.
        let is_passing = error.is_none_or(|error| {
            [
                condition::CONNECTION_FORCED,
                condition::RESOURCE_LIMIT_EXCEEDED,
                condition::INTERNAL_ERROR,
            ]
            .contains(&error.condition)
        });
        let what = error.map_or_else(|| "the connection is broken".to_owned(), ToString::to_string);
        let mut why = Error::System(format!("{}: {what}", self.target.address));
        if !is_passing || !self.has_been_open {
            return Err(why);
        }
        while let Some(pause) = self.again.pause(self.line.now()) {
            tokio::time::sleep(pause).await;
            match self.connect().await {
                Ok(()) => return Ok(()),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// Bytes that have not left this process.
    fn unwritten_bytes(&self) -> usize {
        self.line.leaves.len() + self.client.unsent_bytes()
    }

    /// Says that it leaves, once all is written. Whether the broker still hears of that changes
    /// nothing any more.
    ///
    /// # Errors
    /// Where bytes could not be written.
    async fn leave(&mut self) -> Result<(), Error> {
        self.input(Input::Close);
        let left = async { while self.next().await != Some(Output::HangUp) {} };
        let _ = tokio::time::timeout(FAREWELL, left).await;
        self.line.finish().await
    }
}

/// By a user, by the certificate of TLS, or not at all.
fn credentials(target: &Target) -> Result<Credentials, Error> {
    let has_certificate = target.layers.tls.as_ref().is_some_and(|tls| tls.identity.is_some());
    let Some(user) = target.user.clone() else {
        return Ok(if has_certificate {
            Credentials::External { authorize_as: String::new() }
        } else {
            Credentials::Anonymous { trace: String::new() }
        });
    };
    let password = target.password.clone().unwrap_or_default();
    let password = String::from_utf8(password)
        .map_err(|_| Error::Caller("a password of AMQP is text in UTF-8".to_owned()))?;
    if user.contains('\0') || password.contains('\0') {
        let text = "neither a user nor a password has a zero in it";
        return Err(Error::Caller(text.to_owned()));
    }
    Ok(Credentials::Plain { authorize_as: String::new(), user, password })
}
