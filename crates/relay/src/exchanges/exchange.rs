//! One exchange: where it stands, its two messages, its meter.

use std::time::Duration;

use codec::dictionary::Id;
use coding::ExchangeId;
use proto::bhttp;
use proto::carrier::Abilities;
use proto::exchange::Part;
use proto::heads::Sharing;
use record::event::Carried;

use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::padding::Block;
use crate::api::{Cause, CauseKind};
use crate::config::{MIN_IDLE, MIN_STUCK};
use crate::handling::Wait;
use crate::http::Traits;
use crate::http::privacy::{Guard, proves};
use crate::ids::CarrierId;
use crate::outcomes::Log;
use crate::shares::{Class, ExchangePlace};

/// Where an exchange stands towards its carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Edge: no carrier yet; nothing was sent.
    Waiting,
    /// On a carrier.
    Open(CarrierId),
    /// Edge: the carrier broke before the answer's head; its gateway had this instance. Not asked
    /// yet (`None`) or asked on this carrier.
    Ambiguous {
        /// Gateway's instance when the request was sent; `None` where it broke before its HELLO, so
        /// that whichever is next is asked.
        gateway: Option<u64>,
        /// Where the question went.
        asked: Option<CarrierId>,
    },
    /// Gateway: the carrier broke; the answer is kept for a while.
    Detached,
}

impl Stage {
    /// Edge: where the question about it went.
    pub(crate) fn on_question(self) -> Option<CarrierId> {
        match self {
            Self::Ambiguous { asked, .. } => asked,
            _ => None,
        }
    }

    /// Edge: the request waits for a carrier, or the question about it does.
    pub(crate) fn waits(self) -> bool {
        matches!(self, Self::Waiting | Self::Ambiguous { asked: None, .. })
    }
}

/// Whether the gateway that a request was sent to has this instance, as far as is known.
pub(crate) fn is_or_may_be(gateway: Option<u64>, instance: u64) -> bool {
    gateway.is_none_or(|gateway| gateway == instance)
}

/// What passed, for the event at the end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    pub(crate) sent_body_bytes: u64,
    pub(crate) sent_wire_bytes: u64,
    pub(crate) received_body_bytes: u64,
    pub(crate) received_wire_bytes: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) id: ExchangeId,
    pub(crate) started: Duration,
    pub(crate) stage: Stage,
    pub(crate) traits: Traits,
    /// Whose shares it takes, and of what.
    pub(crate) place: ExchangePlace,
    /// When something last passed, either way.
    pub(crate) moved: Duration,
    /// When the local side last gave or took some of a body.
    pub(crate) took: Duration,
    pub(crate) outgoing: Outgoing,
    pub(crate) incoming: Incoming,
    /// What its lengths may reveal, and to whom.
    pub(crate) guard: Guard,
    /// Edge: with whose heads its head may share anything: who asks, and of whom.
    pub(crate) owner: Option<Id>,
    /// The block that is leaving, where its length is padded.
    pub(crate) leaving: Block,
    /// This side's message has a content coding of its sender's.
    pub(crate) coded: bool,
    /// Edge: fields of the interim response that comes next.
    pub(crate) hints: bhttp::Fields,
    /// Status of the response, once known.
    pub(crate) status: u16,
    /// The answer has no end but that its client has enough.
    pub(crate) endless: bool,
    /// Gateway: the answer as sent so far.
    pub(crate) log: Log,
    pub(crate) meter: Meter,
    /// How long it may wait, and for whom it has to make room.
    pub(crate) wait: Wait,
    /// Edge: how its request has fared.
    pub(crate) attempts: Attempts,
}

/// How a request has fared with carriers so far.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// How often it went back to wait for a carrier.
    pub(crate) resends: u8,
    /// The carrier that it was sent on, and its place among those sent there, from 1.
    pub(crate) sent_as: Option<(CarrierId, u64)>,
    /// The carrier that it was on before it was asked about; it may have to go on there.
    pub(crate) moved_from: Option<CarrierId>,
    /// What came of its answer there meanwhile: no more than the credit of the flow there, in
    /// no more than so many parts ([`crate::edge`]).
    pub(crate) held_back: Vec<Part>,
    /// Its urgency is another than its gateway takes it for by its head.
    pub(crate) tells_urgency: bool,
    /// It may go another way where its gateway cannot be reached.
    pub(crate) other_way: bool,
    /// It was sent again though a gateway that is gone may have forwarded it.
    pub(crate) repeated: bool,
    /// What the gateway was asked about it.
    pub(crate) asked: Asked,
}

/// Questions about an exchange.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    /// How many went, over all carriers.
    pub(crate) times: u64,
    /// Where the last went, and the gateway's instance where it is known: that one takes the
    /// request, should it go again, nowhere else.
    pub(crate) on: Option<(CarrierId, Option<u64>)>,
}

impl Exchange {
    pub(crate) fn new(id: ExchangeId, now: Duration, stage: Stage, traits: Traits) -> Self {
        Self {
            id,
            started: now,
            stage,
            traits,
            place: ExchangePlace::default(),
            moved: now,
            took: now,
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            guard: Guard::default(),
            owner: None,
            leaving: Block::default(),
            coded: false,
            hints: bhttp::Fields::new(),
            status: 0,
            endless: false,
            log: Log::default(),
            meter: Meter::default(),
            wait: Wait::default(),
            attempts: Attempts::default(),
        }
    }

    /// A cause as it is for all sendings: that the last was not forwarded says nothing of others.
    pub(crate) fn honest(&self, cause: Cause) -> Cause {
        use CauseKind::{
            Expired, GatewayUnreachable, Limit, NotForwarded, OutcomeUnknown, ShuttingDown,
            Superseded,
        };
        let of_the_last = matches!(
            cause.kind,
            Expired | GatewayUnreachable | Limit | NotForwarded | ShuttingDown | Superseded
        );
        if !self.attempts.repeated || !of_the_last {
            return cause;
        }
        let before =
            "it may have been carried out before its carrier broke or stalled, and when repeated:";
        Cause { kind: OutcomeUnknown, reason: format!("{before} {}", cause.reason) }
    }

    /// Whether its client ends it, once its answer has begun.
    pub(crate) fn is_ended_by_client(&self) -> bool {
        self.status != 0 && (self.traits.tunnel || self.endless)
    }

    /// What passed, as events report it.
    pub(crate) fn carried(&self, codec: Duration) -> Carried {
        let Meter { sent_body_bytes, sent_wire_bytes, .. } = self.meter;
        let Meter { received_body_bytes, received_wire_bytes, .. } = self.meter;
        let headed = self.incoming.headed;
        Carried {
            sent_body_bytes,
            sent_wire_bytes,
            received_body_bytes,
            received_wire_bytes,
            codec_s: codec.as_secs_f64(),
            received_encoding: headed.then(|| self.incoming.codec_name()),
        }
    }

    /// A part of this side's message leaves: its length is to reveal less. Bodies that go as they
    /// would without the pair need no padding.
    pub(crate) fn pad(&mut self, key: u64, part: &mut Part) {
        let Part::Data(piece) = part else { return };
        let reported = self.guard.cross_site || self.coded || self.traits.tunnel;
        if self.guard.padded && !reported {
            piece.padding = self.leaving.note(key, piece);
        }
    }

    /// What its heads may have in common with others.
    pub(crate) fn sharing(&self) -> Sharing<Id> {
        Sharing {
            owner: self.owner,
            whole: self.guard.padded,
            fleeting: self.guard.marked || self.guard.cross_site,
            ..unshared()
        }
    }

    /// Where the exchange has a flow: that of the exchange or that of the question about it.
    pub(crate) fn on_carrier(&self) -> Option<CarrierId> {
        match self.stage {
            Stage::Open(carrier) | Stage::Ambiguous { asked: Some(carrier), .. } => Some(carrier),
            _ => None,
        }
    }

    /// The carrier that its body flows on.
    pub(crate) fn carrier(&self) -> Option<CarrierId> {
        match self.stage {
            Stage::Open(carrier) => Some(carrier),
            _ => None,
        }
    }

    /// Repeating the request does no harm, and all of it is still here.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.traits.idempotent && self.outgoing.can_go_again() && !self.incoming.headed
    }

    /// Whether carriers that can do no more than this may take it.
    pub(crate) fn may_go_by(&self, abilities: &Abilities) -> bool {
        let waits = self.traits.tunnel || self.traits.expects_continue;
        let length = self.outgoing.length();
        let fits =
            abilities.max_request_bytes.is_none_or(|most| length.is_some_and(|len| len <= most));
        fits && (abilities.streams || !waits)
    }

    /// It waits for a carrier, was never sent, is whole without a body, and asks for no change. Who
    /// has another way takes that rather than have it done twice.
    pub(crate) fn may_go_early(&self) -> bool {
        let Self { traits, outgoing, .. } = self;
        self.stage == Stage::Waiting
            && self.attempts.resends == 0
            && !self.attempts.repeated
            && !self.attempts.other_way
            && traits.safe
            && !traits.tunnel
            && !traits.expects_continue
            && outgoing.is_bodyless()
    }

    /// Whether it has been still for so long that another may have its place: a tunnel that idles,
    /// an answer whose client does not read. Nothing whose answer has not begun: it was forwarded.
    pub(crate) fn is_dispensable(&self, now: Duration) -> bool {
        let since = |at: Duration| now.saturating_sub(at);
        self.status != 0
            && match self.place.class {
                Class::Standing => since(self.took.max(self.moved)) >= MIN_IDLE,
                Class::Passing => self.incoming.waits() && since(self.took) >= MIN_STUCK,
            }
    }
}

/// Of a head of which nothing is known.
pub(crate) fn unshared() -> Sharing<Id> {
    Sharing { owner: None, whole: true, fleeting: true, is_secret: proves }
}
