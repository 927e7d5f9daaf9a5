//! A link for each filter, and what comes over it.

use std::pin::Pin;

use proto::amqp::client::Input;
use proto::amqp::machine::{Delivery, LinkId, Output};
use proto::amqp::performative::{
    Attach, DeliveryState, Durability, ErrorInfo, ExpiryPolicy, Role, SenderSettleMode, Source,
    TargetKind, condition,
};
use proto::amqp::types::{Symbol, Value};

use super::{TOPIC, Talk, message, settle_mode};
use crate::client::{Event, Settings, Take, Taken, Target, Wish};
use crate::error::Error;

/// Messages of each filter that may be on the way to a subscriber.
const WINDOW: u32 = 100;

/// See [`crate::client::subscribe`].
pub(in crate::client) async fn subscribe(
    target: &Target,
    settings: &Settings,
    wish: &Wish,
    take: &mut Take<'_>,
    mut end: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), Error> {
    let mut talk = Talk::new(target, settings)?;
    tokio::select! {
        connected = talk.connect() => connected?,
        () = end.as_mut() => return Ok(()),
    }
    let mut links = Subscriptions::default();
    loop {
        let output = tokio::select! {
            output = talk.next() => output,
            () = end.as_mut() => break,
        };
        let Some(output) = output else { continue };
        let taken = match output {
            Output::Opened(_) => {
                links = Subscriptions::default();
                for (link, filter) in (0..).map(LinkId).zip(&wish.filters) {
                    let attach = Box::new(receiver(settings, wish, filter));
                    talk.input(Input::Attach { link, attach, window: WINDOW });
                }
                Taken::More
            }
            Output::Attached { link, .. } => {
                links.attached.push(link);
                links.answered(wish, take)?
            }
            Output::Detached { link, error, .. } => {
                let filter = filter_of(wish, link);
                let why = error.map_or_else(|| "it was detached".to_owned(), |it| it.to_string());
                if links.attached.contains(&link) {
                    let text = format!("{filter}: the broker has ended the link: {why}");
                    return Err(Error::System(text));
                }
                links.refused.push(format!("{filter}: {why}"));
                links.answered(wish, take)?
            }
            Output::Delivery(delivery) => came(&mut talk, &delivery, wish, take),
            Output::Closed { error, .. } => {
                tokio::select! {
                    lost = talk.lost(error.as_ref()) => lost?,
                    () = end.as_mut() => return Ok(()),
                }
                Taken::More
            }
            _ => Taken::More,
        };
        if taken != Taken::More {
            break;
        }
    }
    // What it got is there, whether the broker agrees to the end or not.
    let _ = talk.leave().await;
    Ok(())
}

/// A message came: the broker hears what became of it, unless it is to stay there.
fn came(talk: &mut Talk<'_>, delivery: &Delivery, wish: &Wish, take: &mut Take<'_>) -> Taken {
    let (state, taken) = match message::decode(delivery, filter_of(wish, delivery.link)) {
        Ok(message) if wish.no_retained && message.retain => (DeliveryState::Accepted, Taken::More),
        Ok(message) => (DeliveryState::Accepted, take(Event::Message(message))),
        Err(why) => {
            let error = ErrorInfo::new(condition::DECODE_ERROR, why.clone());
            (DeliveryState::Rejected(Some(error)), take(Event::Unreadable(why)))
        }
    };
    if !delivery.settled && taken != Taken::Failed {
        let (link, delivery) = (delivery.link, delivery.delivery);
        talk.input(Input::Outcome { link, delivery, state });
    }
    taken
}

/// What the broker has said of the links of a subscriber.
#[derive(Default)]
struct Subscriptions {
    attached: Vec<LinkId>,
    refused: Vec<String>,
}

impl Subscriptions {
    /// One more is answered.
    fn answered(&mut self, wish: &Wish, take: &mut Take<'_>) -> Result<Taken, Error> {
        if self.refused.len() == wish.filters.len() {
            let what = self.refused.join(", ");
            return Err(Error::System(format!("the broker refuses all: {what}")));
        }
        let is_last = self.attached.len() + self.refused.len() == wish.filters.len();
        if !is_last {
            return Ok(Taken::More);
        }
        Ok(take(Event::Subscribed(std::mem::take(&mut self.refused))))
    }
}

fn filter_of(wish: &Wish, link: LinkId) -> &str {
    let at = usize::try_from(link.0).unwrap_or(usize::MAX);
    wish.filters.get(at).map_or("", String::as_str)
}

/// The link of a filter. One that is kept has a terminus that outlives it (AMQP 1.0 Part 3 §3.5.5).
fn receiver(settings: &Settings, wish: &Wish, filter: &str) -> Attach {
    let mut attach = Attach::new(filter, 0, Role::Receiver);
    attach.snd_settle_mode = match wish.qos {
        0 => SenderSettleMode::Settled,
        _ => SenderSettleMode::Unsettled,
    };
    attach.rcv_settle_mode = settle_mode(wish.qos == 2);
    let mut source = Source {
        address: Some(Value::string(filter)),
        outcomes: DeliveryState::symbols(),
        capabilities: vec![Symbol::new(TOPIC)],
        ..Source::default()
    };
    if !settings.expiry.is_zero() {
        source.durable = Durability::UnsettledState;
        match u32::try_from(settings.expiry.as_secs()) {
            Ok(seconds) => {
                source.expiry_policy = ExpiryPolicy::LinkDetach;
                source.timeout_s = seconds;
            }
            Err(_) => source.expiry_policy = ExpiryPolicy::Never,
        }
    }
    attach.source = Some(source);
    attach.target = Some(TargetKind::Target(Box::default()));
    attach
}
