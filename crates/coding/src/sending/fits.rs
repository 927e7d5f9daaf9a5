//! Which encodings may be taken, with what window and memory.

use codec::Options;
use decide::models::Subject;
use proto::exchange::MAX_BLOCK_BYTES;

use super::Sender;
use super::known::Known;
use crate::encoding::ANY;
use crate::recipient::Recipient;
use crate::reported::whole;

/// Memory that a single body's codec may take of what is left, so that others find room.
const MEMORY_SHARE: usize = 4;
const NOT_TAKEN: &str = "the client does not take it";
const NO_DICTIONARY: &str = "the client has no dictionary of ours";
const LONG: &str = "longer than a block, or not whole yet";
const NO_BASE: &str = "the peer holds nothing that it could be told by";
/// Not worth a word with each decision: it is so whatever else goes on.
pub(super) const NEVER: &str = "wants more than a quarter of codec_memory";
pub(super) const SHORT: &str = "wants more than a quarter of what is left of codec_memory";

/// Whether an encoding may be taken, and with what window and memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fit {
    Open { options: Options, bytes: usize },
    Refused(&'static str),
}

impl Sender<'_> {
    /// What of the codec memory the encoder takes from now on. It keeps what it had: the context
    /// before lives until the next begins, and while others are tried it may be gone back to.
    pub(crate) fn reserve_encoder(&mut self, bytes: usize) {
        let more = bytes.saturating_sub(self.one.encoder_bytes);
        self.one.encoder_bytes += more;
        self.core.take_encoder(self.one, more);
    }

    /// Nothing else will be tried: the encoder keeps only what it takes.
    pub(super) fn trim_encoder(&mut self) {
        let Some(choice) = &self.one.choice else { return };
        let (options, bytes) = (choice.options, choice.subject.bytes);
        let takes = match (options.is_infoset(), self.known().form_bytes(options, bytes)) {
            (true, _) => codec::infoset::MEMORY_BYTES,
            (false, Some(bytes)) => bytes,
            (false, None) => options.codec().map_or(0, |codec| codec.encoder_bytes(options)),
        };
        let spare = self.one.encoder_bytes.saturating_sub(takes);
        self.one.encoder_bytes -= spare;
        self.core.give_encoder_back(self.one, spare);
    }
}

impl Known<'_> {
    /// Memory that the encoder may take, in bytes: a share of what other bodies leave. Probes make
    /// it no less while there is so much.
    fn encoder_bytes_left(&self) -> usize {
        let all = self.core.config.codec_bytes + self.one.encoder_bytes;
        let left = all.saturating_sub(self.core.encoder_bytes);
        let left_to_it = (left / MEMORY_SHARE).min(left.saturating_sub(self.core.probes.bytes()));
        match self.one.has_recipient() {
            true => left_to_it.min(self.core.clients.bytes_left(self.core.config.codec_bytes)),
            false => left_to_it,
        }
    }

    /// Memory that the encoder of a probe may take, in bytes: a share of what everybody leaves.
    pub(super) fn probe_bytes_left(&self) -> usize {
        let taken = self.core.encoder_bytes + self.core.probes.bytes();
        self.core.config.codec_bytes.saturating_sub(taken) / MEMORY_SHARE
    }

    /// Whether each arm may be taken; with `named`, for what goes on behind a head that has named
    /// this window.
    pub(crate) fn fits(&self, subject: &Subject, named: Option<u8>) -> Vec<Fit> {
        let left = self.encoder_bytes_left();
        let arms = self.core.config.encoding.arms().iter();
        arms.map(|options| self.fit(*options, subject, named, left)).collect()
    }

    fn fit(&self, options: Options, subject: &Subject, named: Option<u8>, left: usize) -> Fit {
        let Ok(codec) = options.codec() else { return Fit::Refused("unknown") };
        if options.codec == 0 {
            return Fit::Open { options, bytes: 0 };
        }
        let only = self.service().and_then(|service| service.encodings.as_deref());
        if only.is_some_and(|only| !only.contains(&options)) {
            return Fit::Refused("not among the service's encodings");
        }
        if let Some(recipient) = self.recipient() {
            if recipient.framing(options).is_none() {
                return Fit::Refused(NOT_TAKEN);
            }
            if let Some(bytes) = self.form_bytes(options, subject.bytes) {
                return self.fit_form(recipient, (options, bytes), left);
            }
        }
        let peer = self.path.as_ref().map(|path| &path.abilities);
        if peer.is_some_and(|peer| !peer.codecs.contains(&options.codec)) {
            return Fit::Refused("the peer cannot decode it");
        }
        let media = self.one.sending.media_type().unwrap_or(ANY);
        if !self.core.config.encoding.is_fixed() && !codec.properties().applies_to(media) {
            return Fit::Refused("not for this media type");
        }
        if options.is_infoset() {
            return self.fit_infoset(options, left);
        }
        if options.wants_base() {
            return self.fit_base(options, subject, left);
        }
        let most = peer.map_or(codec::MAX_WINDOW_LOG, |peer| peer.max_window_log);
        let most = options.window_log.min(most);
        if most < codec::MIN_WINDOW_LOG {
            return Fit::Refused("the peer's window is too small");
        }
        // A smaller one need not take less: brotli's strong levels want most for small ones.
        let wanted =
            || (codec::MIN_WINDOW_LOG..most).find(|log| subject.bytes <= f64::from(1_u32 << log));
        let most = named.or_else(wanted).unwrap_or(most).min(most);
        let sizes = (codec::MIN_WINDOW_LOG..=most).rev().map(|window_log| {
            let options = Options { window_log, ..options };
            (options, codec.encoder_bytes(options))
        });
        let share = self.core.config.codec_bytes / MEMORY_SHARE;
        let why = match sizes.clone().any(|(_, bytes)| bytes <= share) {
            true => SHORT,
            false => NEVER,
        };
        let fitting = sizes.into_iter().find(|(_, bytes)| *bytes <= left);
        fitting.map_or(Fit::Refused(why), |(options, bytes)| Fit::Open { options, bytes })
    }

    /// The same of an encoding against what the peer holds.
    fn fit_base(&self, options: Options, subject: &Subject, left: usize) -> Fit {
        let Some(base) = self.one.held.base_of(options) else {
            return Fit::Refused(NO_BASE);
        };
        let both = whole(subject.bytes).saturating_add(base.content().len() as u64);
        let log = (codec::MIN_WINDOW_LOG..codec::MAX_WINDOW_LOG)
            .find(|log| both <= 1 << log)
            .unwrap_or(codec::MAX_WINDOW_LOG);
        let options = Options { window_log: log, ..options };
        let bytes = options.codec().map_or(0, |codec| codec.encoder_bytes(options));
        match bytes <= left {
            true => Fit::Open { options, bytes },
            false => Fit::Refused(SHORT),
        }
    }

    /// The same of a coding with a dictionary that a recipient holds: of content that is one block.
    fn fit_form(&self, to: &Recipient, (options, bytes): (Options, usize), left: usize) -> Fit {
        let (body, whole) = self.one.sending.at_hand();
        let is_one = whole && !self.one.sending.has_trailers() && body.len() <= MAX_BLOCK_BYTES;
        match to.dictionary {
            None => Fit::Refused(NO_DICTIONARY),
            Some(_) if !is_one => Fit::Refused(LONG),
            Some(_) if bytes > left => Fit::Refused(SHORT),
            Some(_) => Fit::Open { options, bytes },
        }
    }
}
