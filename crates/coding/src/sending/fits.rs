//! Which encodings may be taken, with what window and memory.

use codec::Options;
use decide::models::Subject;
use proto::exchange::MAX_BLOCK_BYTES;

use super::Sender;
use super::known::Known;
use crate::api::Abilities;
use crate::encoding::ANY;
use crate::exchange::Exchange;
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
        let recipient = self.known().recipient();
        let form_bytes = recipient.and_then(|recipient| recipient.form_bytes(options, bytes));
        let takes = match (options.is_infoset(), form_bytes) {
            (true, _) => codec::infoset::MEMORY_BYTES,
            (false, Some(bytes)) => bytes,
            (false, None) => options.codec.encoder_bytes(options),
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
        let config = &self.core.config;
        let terms = Terms {
            one: self.one,
            recipient: self.recipient(),
            peer: self.path.as_ref().map(|path| &path.abilities),
            only: self.service().and_then(|service| service.encodings.as_deref()),
            media: match config.encoding.is_fixed() {
                true => None,
                false => Some(self.one.sending.media_type().unwrap_or(ANY)),
            },
            most_window_log: named,
            bytes: subject.bytes,
            share: config.codec_bytes / MEMORY_SHARE,
            left: self.encoder_bytes_left(),
        };
        config.encoding.arms().iter().map(|options| self.fit(&terms, *options)).collect()
    }

    fn fit(&self, terms: &Terms<'_>, options: Options) -> Fit {
        match terms.fit(options) {
            // What both ends have agreed on of the schema context decides besides.
            None => self.fit_infoset(options, terms.left),
            Some(fit) => fit,
        }
    }
}

/// What is the same for all encodings of a message.
#[derive(Debug)]
struct Terms<'a> {
    one: &'a Exchange,
    recipient: Option<&'a Recipient>,
    peer: Option<&'a Abilities>,
    /// The encodings of its service, where that has its own.
    only: Option<&'a [Options]>,
    /// Its media type, where the encoding is chosen.
    media: Option<&'a str>,
    /// The window that its head has named.
    most_window_log: Option<u8>,
    /// Length of its body, as far as is known.
    bytes: f64,
    /// Memory that a body's encoder may ever take, and may take now, in bytes.
    share: usize,
    left: usize,
}

impl Terms<'_> {
    /// Whether an encoding may be taken, and with what window and memory; `None` where the infoset
    /// is enough, which is decided elsewhere.
    fn fit(&self, options: Options) -> Option<Fit> {
        let codec = options.codec;
        if options.is_identity() {
            return Some(Fit::Open { options, bytes: 0 });
        }
        if self.only.is_some_and(|only| !only.contains(&options)) {
            return Some(Fit::Refused("not among the service's encodings"));
        }
        if let Some(recipient) = self.recipient {
            if recipient.framing(options).is_none() {
                return Some(Fit::Refused(NOT_TAKEN));
            }
            if let Some(bytes) = recipient.form_bytes(options, self.bytes) {
                return Some(self.fit_form(recipient, options, bytes));
            }
        }
        if self.peer.is_some_and(|peer| !peer.codecs.contains(&codec.number())) {
            return Some(Fit::Refused("the peer cannot decode it"));
        }
        if self.media.is_some_and(|media| !codec.properties().applies_to(media)) {
            return Some(Fit::Refused("not for this media type"));
        }
        if options.is_infoset() {
            return None;
        }
        if options.wants_base() {
            return Some(self.fit_base(options));
        }
        Some(self.fit_window(options))
    }

    /// The same by the greatest window that the memory left allows.
    fn fit_window(&self, options: Options) -> Fit {
        let most = self.peer.map_or(codec::MAX_WINDOW_LOG, |peer| peer.max_window_log);
        let most = options.window_log.min(most);
        if most < codec::MIN_WINDOW_LOG {
            return Fit::Refused("the peer's window is too small");
        }
        // A smaller one need not take less: brotli's strong levels want most for small ones.
        let wanted =
            || (codec::MIN_WINDOW_LOG..most).find(|log| self.bytes <= f64::from(1_u32 << log));
        let most = self.most_window_log.or_else(wanted).unwrap_or(most).min(most);
        let sizes = (codec::MIN_WINDOW_LOG..=most).rev().map(|window_log| {
            let options = Options { window_log, ..options };
            (options, options.codec.encoder_bytes(options))
        });
        if let Some((options, bytes)) = sizes.clone().find(|(_, bytes)| *bytes <= self.left) {
            return Fit::Open { options, bytes };
        }
        let mut sizes = sizes;
        match sizes.any(|(_, bytes)| bytes <= self.share) {
            true => Fit::Refused(SHORT),
            false => Fit::Refused(NEVER),
        }
    }

    /// The same of an encoding against what the peer holds.
    fn fit_base(&self, options: Options) -> Fit {
        let Some(base) = self.one.held.base_of(options) else {
            return Fit::Refused(NO_BASE);
        };
        let both = whole(self.bytes).saturating_add(base.content().len() as u64);
        let log = (codec::MIN_WINDOW_LOG..codec::MAX_WINDOW_LOG)
            .find(|log| both <= 1 << log)
            .unwrap_or(codec::MAX_WINDOW_LOG);
        let options = Options { window_log: log, ..options };
        let bytes = options.codec.encoder_bytes(options);
        match bytes <= self.left {
            true => Fit::Open { options, bytes },
            false => Fit::Refused(SHORT),
        }
    }

    /// The same of a coding with a dictionary that a recipient holds: of content that is one block.
    fn fit_form(&self, to: &Recipient, options: Options, bytes: usize) -> Fit {
        let (body, whole) = self.one.sending.at_hand();
        let is_one = whole && !self.one.sending.has_trailers() && body.len() <= MAX_BLOCK_BYTES;
        match to.dictionary {
            None => Fit::Refused(NO_DICTIONARY),
            Some(_) if !is_one => Fit::Refused(LONG),
            Some(_) if bytes > self.left => Fit::Refused(SHORT),
            Some(_) => Fit::Open { options, bytes },
        }
    }
}
