//! Deltas against messages that both ends hold: whose they are, and which are kept.
//!
//! A message leaves as ever, and says that it may be kept. The peer cuts out what is secret, keeps
//! the rest, and says by which name; this side does the same. From then on the next message of the
//! same service and principal can be encoded against it. Who cannot read a delta gets the body as
//! it is, for that is kept until the receipt is here.

use codec::dictionary::Id;
use codec::{Options, secrets};
use decide::triage::SHORTEST_BYTES;
use proto::control::Keeping;
use proto::exchange::MAX_BLOCK_BYTES;

use super::Sender;
use crate::api::Output;
use crate::bounds::MAX_BASE_BYTES;
use crate::exchange::Stands;
use crate::ids::PathId;
use crate::kept::bases::{By, Context};
use crate::kept::dictionaries::MAX_SAMPLE_BYTES;
use crate::kept::lasting::Principal;
use crate::kept::pending::{Keep, Whose};

impl Sender<'_> {
    /// Looks what the message may be encoded against, and whether others may be against it.
    pub(super) fn consider_bases(&mut self) {
        self.one.held.rewind();
        let knows = self.path.as_ref().is_some_and(|path| path.knows_bases());
        let has_arm = self.core.config.encoding.arms().iter().any(|arm| arm.wants_base());
        let forbidden = self.one.about.cross_site || self.one.about.private;
        if !knows || self.one.about.tunnel || !has_arm || forbidden {
            return;
        }
        let (body, whole) = self.one.sending.at_hand();
        let media = self.one.sending.media().unwrap_or_default();
        let readable = whole && !self.one.sending.is_coded() && secrets::is_readable(media);
        if self.core.config.asks() {
            let named = match whole && body.is_empty() {
                true => Some(Vec::new()),
                false => readable.then(|| secrets::claims(body).ok()).flatten(),
            };
            let principal = self.one.held.requester.zip(named);
            let id = principal.map(|(asks, named)| Id::of(&[&asks.0[..], &named].concat()));
            let (core, secret) = (&mut self.core.principals, &self.core.config.secret);
            self.one.held.principal = id.map(|id| {
                let number = core.number(id);
                let known_as = secret.as_ref().map_or(number, |secret| secret.of_principal(id));
                Principal { number, known_as }
            });
        }
        let bytes = self.one.sending.at_hand().0.len();
        let fits = (SHORTEST_BYTES..=MAX_BLOCK_BYTES as u64).contains(&(bytes as u64));
        let alone = readable && fits && !self.one.sending.has_trailers();
        if let Some(principal) = self.one.held.principal.filter(|_| alone) {
            self.find_bases(principal, bytes);
        }
    }

    /// The same of a message that is whole and may be kept.
    fn find_bases(&mut self, principal: Principal, bytes: usize) {
        let (class, service) = (self.known().class(), self.known().service_name().to_owned());
        let deltas = self.known().may_go_in(Options::DELTA);
        let dictionaries = self.known().may_go_in(Options::DICTIONARY);
        let context = Context { principal: principal.known_as, service };
        let has_room = self.core.base_bytes + bytes <= MAX_BASE_BYTES;
        let since = self.now.saturating_sub(2 * self.core.config.body_timeout);
        let Some(path) = self.path.as_deref_mut() else { return };
        let dictionaries = dictionaries && path.knows_dictionaries();
        let sent = &mut path.sent;
        let barren = sent.is_barren(&context, class);
        let is_sample = dictionaries && bytes <= MAX_SAMPLE_BYTES && !barren;
        sent.expire(since);
        let may_send = sent.may_send(bytes);
        let base = sent.base(&context, class).filter(|_| may_send && deltas);
        let may_keep = has_room && deltas;
        let number = self.one.id.number;
        let slot = may_keep.then(|| sent.give(number, context.clone(), class)).flatten();
        let made = path.scope.and_then(|scope| self.core.dictionaries.of(scope, &context));
        let made = made.filter(|made| path.offers.is_held(made.kept.id().short()));
        let dictionary = made.filter(|_| may_send && dictionaries).cloned();
        let is_alike = base.as_ref().is_some_and(|base| base.alike);
        if let Some(scope) = path.scope.filter(|_| is_sample && !is_alike) {
            self.core.dictionaries.missed(scope, &context);
        }
        let held = &mut self.one.held;
        (held.path, held.base, held.slot) = (Some(path.id), base, slot);
        (held.dictionary, held.context) = (dictionary, Some(context).filter(|_| is_sample));
    }

    /// The exchange goes over this path from here on: what was encoded by what another one's ends
    /// hold goes without.
    pub(crate) fn attached(&mut self, path: PathId) {
        self.one.stands = Stands::On(path);
        if self.one.held.path.is_some_and(|of| of != path) {
            self.go_anew();
        }
        self.advance();
    }

    /// The message goes as it is, if it has gone by what its path's ends hold.
    pub(crate) fn go_anew(&mut self) {
        if let Some(body) = self.one.held.delta().cloned() {
            self.one.sending.anew();
            (self.one.choice, self.one.departure) = (None, None);
            self.output(Output::Anew { exchange: self.one.id, body });
        }
        self.one.held.rewind();
    }

    /// The head of the message has been sent: what is to be said of its keeping.
    pub(super) fn announce_bases(&mut self) {
        let (exchange, slot) = (self.one.id.number, self.one.held.slot);
        let principal = self.one.held.principal.filter(|_| self.core.config.asks());
        let delta = self.one.held.delta().cloned().zip(self.one.held.by);
        let now = self.now;
        let Some(mut peer) = self.peer() else { return };
        if let Some((body, by)) = delta {
            peer.path.sent.delta(now, exchange, by, body);
            if let By::Dictionary(name) = by {
                peer.note_use(name, true);
            }
        }
        if let Some(who) = principal {
            peer.introduce_principal(who);
            peer.send(Keeping::Principal { exchange, principal: who.number }.part());
        }
        if let Some(slot) = slot {
            peer.send(Keeping::Keep { exchange, slot }.part());
        }
    }

    /// The answer's head is known. Where nobody may keep the answer, nobody keeps its request
    /// either (RFC 9111 §5.2.2.5), nor others of its kind.
    pub(crate) fn answered(&mut self, private: bool) {
        self.one.about.private |= private;
        let sample = self.one.held.sample.take();
        let slot = self.one.held.kept_in.take();
        let marked = self.one.about.private;
        let number = self.one.id.number;
        let Some(mut peer) = self.peer() else { return };
        if !marked {
            if let Some((context, kept)) = sample {
                peer.sample(&context, &kept);
            }
            return;
        }
        peer.core.keeps.bar(peer.path.id, number);
        peer.path.piggyback.forget_kept(number);
        peer.path.sent.disown(number);
        slot.into_iter().for_each(|slot| peer.path.kept.disown(slot, number));
        self.one.receiving.keeps = false;
        self.one.held.incoming = None;
    }

    /// All of the message has been sent: what is kept of it is made.
    pub(super) fn keep_sent(&mut self) {
        let (slot, context) = (self.one.held.slot.take(), self.one.held.context.take());
        let Some(body) = self.one.held.plain.clone() else { return };
        let Some(path) = self.path.as_deref_mut() else { return };
        match slot {
            Some(slot) => path.sent.left(slot),
            None if context.is_none() => return,
            None => {}
        }
        let (exchange, whose) = (self.one.id, Whose::Sent(context));
        let keep = Keep { path: path.id, exchange, whose, barred: false };
        match self.core.keeps.order(body, keep) {
            Some(job) => self.core.job(job),
            None => path.sent.give_up(exchange.number),
        }
    }
}
