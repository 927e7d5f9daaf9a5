//! The machine: to whom each input goes, with what is lent to it.

mod known;
mod peers;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::api::{Input, Output};
use super::config::Config;
use super::core::{Core, Key};
use super::exchange::{Exchange, Stands};
use super::ids::{ExchangeId, PathId};
use super::job::{Done, Prepared};
use super::kept::pending::{Keep, Whose};
use super::path::Path;
use super::path::gone::Gone;
use super::peer::Peer;
use super::receiving::Receiver;
use super::sending::{Sender, probed};

/// See the crate.
#[derive(Debug)]
pub struct Coding {
    pub(crate) core: Core,
    pub(crate) exchanges: BTreeMap<ExchangeId, Exchange>,
    pub(crate) paths: BTreeMap<PathId, Path>,
    /// What is known of the paths to peers that are not connected.
    gone: Gone,
}

impl Coding {
    /// A machine that has learned nothing.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            core: Core::new(config),
            exchanges: BTreeMap::new(),
            paths: BTreeMap::new(),
            gone: Gone::default(),
        }
    }

    /// Takes one input; drain [`Coding::poll_output`] afterwards. `now` never goes back.
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        self.take(now, input);
        self.run_timers(now);
        self.retry_undecoded(now);
        self.core.drop_gone();
    }

    /// Every input has its arm here: one that is forgotten does not compile.
    fn take(&mut self, now: Duration, input: Input) {
        match input {
            Input::Open { exchange, about } => {
                self.exchanges.insert(exchange, Exchange::new(exchange, about));
            }
            Input::Message { exchange, message } => {
                self.send(now, exchange, |one| one.begin(message));
            }
            Input::Service { exchange, service } => {
                self.send(now, exchange, |sender| sender.one.about.service = Some(service));
            }
            Input::Body { exchange, bytes } => self.send(now, exchange, |one| one.push(&bytes)),
            Input::End { exchange, trailers } => self.send(now, exchange, |one| one.end(trailers)),
            Input::Attach { exchange, path } => self.attach(now, exchange, path),
            Input::Detach { exchange, waits } => self.send(now, exchange, |one| one.detach(waits)),
            Input::Credit { exchange, bytes } => {
                self.send(now, exchange, |sender| sender.one.credit = bytes);
            }
            Input::Led { exchange } => self.send(now, exchange, |one| one.led()),
            Input::Departed { exchange, departed } => {
                self.send(now, exchange, |one| one.departed(departed));
            }
            Input::Starved { exchange } => self.send(now, exchange, |one| one.starved()),
            Input::Rewind { exchange, body } => self.send(now, exchange, |one| one.rewind(&body)),
            Input::Anew { exchange } => self.send(now, exchange, |one| one.go_anew()),
            Input::Stop { exchange } => self.send(now, exchange, |one| one.stop()),
            Input::Answered { exchange, private } => {
                self.send(now, exchange, |one| one.answered(private));
            }
            Input::Arrived { exchange, bytes, network } => {
                self.send(now, exchange, |one| one.arrived(bytes, network));
            }
            Input::Screen { exchange, bytes } => self.screen(exchange, bytes),
            Input::Forget { exchange } => self.forget(exchange),
            Input::Expect { exchange, options, end } => {
                self.receive(now, exchange, |one| one.expect(options, end));
            }
            Input::Piece { exchange, piece, received } => {
                self.receive(now, exchange, |one| one.piece(&piece, received));
            }
            Input::PeerEnd { exchange } => self.receive(now, exchange, |one| one.end()),
            Input::Delivered { exchange, all } => {
                self.receive(now, exchange, |one| one.delivered(all));
            }
            Input::Done(done) => self.done(now, done),
            Input::Up { path, peer, kind, instance, abilities } => {
                self.up(now, path, (peer, kind, instance), abilities);
            }
            Input::Down { path } => self.down(path),
            Input::Leave { exchange, path } => {
                self.with_peer(now, path, |peer| peer.path.sent.forget(exchange.number));
            }
            Input::Wire { path, wire } => self.with_peer(now, path, |peer| peer.path.wire = wire),
            Input::Transport { path, transport } => {
                self.with_peer(now, path, |peer| peer.transport(transport));
            }
            Input::Control { path, kind, content } => self.control(now, path, kind, &content),
            Input::Leaves { path } => self.with_peer(now, path, |peer| peer.send_waiting()),
            Input::Flush { path } => self.with_peer(now, path, |peer| peer.flush()),
            Input::Speeds(all) => self.calibrated(now, &all),
            Input::Wake => {}
        }
    }

    /// What there is to do, one thing at a time; `None` until the next input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.core.outputs.pop_front()
    }

    /// When [`Input::Wake`] is due.
    #[must_use]
    pub fn wake_at(&self) -> Option<Duration> {
        self.core.timers.next()
    }

    /// Does something with an exchange that is known and the path that it goes over.
    fn send(&mut self, now: Duration, exchange: ExchangeId, act: impl FnOnce(&mut Sender<'_>)) {
        let Some(one) = self.exchanges.get_mut(&exchange) else { return };
        let path = one.path().and_then(|path| self.paths.get_mut(&path));
        let mut sender = Sender { now, core: &mut self.core, path, one };
        act(&mut sender);
        if let Sender { core, path: Some(path), .. } = sender {
            path.count_bases(&mut core.base_bytes);
        }
    }

    /// An exchange goes over a path; of one that is gone, or not there yet, nothing is known.
    fn attach(&mut self, now: Duration, exchange: ExchangeId, path: PathId) {
        let Some(one) = self.exchanges.get_mut(&exchange) else { return };
        if one.has_recipient() {
            return;
        }
        one.stands = Stands::On(path);
        self.send(now, exchange, |one| one.attached(path));
    }

    fn receive(
        &mut self,
        now: Duration,
        exchange: ExchangeId,
        act: impl FnOnce(&mut Receiver<'_>),
    ) {
        let Some(one) = self.exchanges.get_mut(&exchange) else { return };
        let path = one.path().and_then(|path| self.paths.get_mut(&path));
        let mut receiver = Receiver { now, core: &mut self.core, path, one };
        act(&mut receiver);
        if let Receiver { core, path: Some(path), .. } = receiver {
            path.count_bases(&mut core.base_bytes);
        }
    }

    /// An exchange with its path, for tests.
    #[cfg(test)]
    pub(crate) fn sender(&mut self, exchange: ExchangeId) -> Option<Sender<'_>> {
        let one = self.exchanges.get_mut(&exchange)?;
        let path = one.path().and_then(|path| self.paths.get_mut(&path));
        Some(Sender { now: Duration::ZERO, core: &mut self.core, path, one })
    }

    pub(crate) fn with_peer(
        &mut self,
        now: Duration,
        path: PathId,
        act: impl FnOnce(&mut Peer<'_>),
    ) {
        let Some(path) = self.paths.get_mut(&path) else { return };
        act(&mut Peer { now, core: &mut self.core, path });
        path.count_bases(&mut self.core.base_bytes);
    }

    fn run_timers(&mut self, now: Duration) {
        while let Some(key) = self.core.timers.pop(now) {
            match key {
                Key::Block(exchange) => self.send(now, exchange, |sender| sender.advance()),
                Key::Decoder(exchange) => self.receive(now, exchange, |one| one.patience_ended()),
                Key::Piggyback(path) => self.with_peer(now, path, |peer| peer.send_waiting()),
                Key::Offers(path) => self.with_peer(now, path, |peer| peer.tend_offers()),
            }
        }
    }

    /// Memory may have come free for bodies that wait to be decoded.
    fn retry_undecoded(&mut self, now: Duration) {
        while let Some(&exchange) = self.core.undecoded.front() {
            let mut may = true;
            self.receive(now, exchange, |receiver| may = receiver.reserve_decoder());
            if !may {
                return;
            }
            self.core.undecoded.pop_front();
            // Who goes on shows that waiting is worth while.
            let patience = Some(now + self.core.config.body_timeout);
            for &waiting in &self.core.undecoded {
                self.core.timers.set(Key::Decoder(waiting), patience);
            }
            self.receive(now, exchange, |one| one.advance());
        }
    }

    fn forget(&mut self, id: ExchangeId) {
        let Some(one) = self.exchanges.remove(&id) else { return };
        self.core.timers.set(Key::Block(id), None);
        self.core.give_encoder_back(&one, one.encoder_bytes);
        self.core.decoder_bytes -= one.decoder_bytes.unwrap_or(0);
        if one.has_contexts {
            self.core.outputs.push_back(Output::Release { exchange: id });
        }
        if self.core.timers.is_set(Key::Decoder(id)) {
            self.core.timers.set(Key::Decoder(id), None);
            self.core.undecoded.retain(|other| *other != id);
        }
    }

    fn done(&mut self, now: Duration, done: Done) {
        match done {
            Done::Encoded { exchange, block, result, cpu } => {
                self.send(now, exchange, |sender| sender.encoded(block, result, cpu));
            }
            Done::Decoded { exchange, block, result, cpu } => {
                self.receive(now, exchange, |receiver| receiver.decoded(block, result, cpu));
            }
            Done::Tried { exchange, result, cpu } => {
                let Some(probe) = self.core.probes.open.remove(&exchange) else { return };
                let one = self.exchanges.get_mut(&exchange);
                probed(&mut self.core, &probe, one, result, cpu);
            }
            Done::Prepared(prepared) => self.prepared(now, prepared),
        }
    }

    fn prepared(&mut self, now: Duration, prepared: Prepared) {
        match prepared {
            Prepared::Base { number, result } => self.kept(now, number, result),
            Prepared::Dictionary { number, result } => self.trained(now, number, result),
            Prepared::Parcel { path, result } => {
                self.with_peer(now, path, |peer| peer.unpacked(result));
            }
            Prepared::Schema { path, result } => {
                self.with_peer(now, path, |peer| peer.compiled(result));
            }
        }
    }
    /// Has content read for secrets, and hashed.
    fn screen(&mut self, exchange: ExchangeId, bytes: Bytes) {
        let whose = Whose::Screened(bytes.len());
        // It is of no path.
        let keep = Keep { path: PathId(0), exchange, whose, barred: false };
        match self.core.keeps.order(bytes, keep) {
            Some(job) => self.core.job(job),
            None => self.core.outputs.push_back(Output::Screened { exchange, kept: None }),
        }
    }
}
