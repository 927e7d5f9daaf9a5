//! Messages of which the infoset is enough: when that may be, and what this side keeps for a peer
//! that cannot read one.
//!
//! The sender decodes what it encodes, so that it knows the text that will come out ([`made`]).
//! From then on that text is the body: its length is what the head says, it is what others are
//! encoded against, and what the peer gets if it asks.

use bytes::Bytes;
use codec::Options;
use codec::infoset::{self, made};
use decide::Arm;

use super::Sender;
use super::fits::{Fit, SHORT};
use super::known::Known;
use crate::encoding::Encoding;
use crate::path::texts::Text;

const NOT_SAME: &str = "its infoset would not come back";

/// An encoded block, and the text that comes out of it where that is another than went in.
type Coded = (Bytes, Option<Bytes>);

impl Sender<'_> {
    /// Looks whether the message's infoset is enough.
    pub(super) fn consider_infoset(&mut self) {
        if let Some(path) = self.path.as_deref_mut() {
            path.adopt_schema(self.one);
        }
        if self.known().schema_context().is_none() {
            return;
        }
        let since = self.now.saturating_sub(2 * self.core.config.body_timeout);
        if let Some(path) = self.path.as_deref_mut() {
            path.texts.expire(since);
        }
        let (body, whole) = self.one.sending.at_hand();
        let whole = whole && !self.one.sending.has_trailers();
        self.one.exact.note_body(body, whole);
    }

    /// What came of encoding the message's only block. What would not come back the same goes byte
    /// for byte, and is taken for one that gained nothing.
    pub(super) fn faithful(
        &mut self,
        plain: &Bytes,
        result: Result<Bytes, codec::Error>,
    ) -> Result<Coded, codec::Error> {
        let choice = self.one.choice.as_mut().filter(|choice| choice.options.is_infoset());
        let Some(choice) = choice else { return result.map(|coded| (coded, None)) };
        let bytes = result.unwrap_or_default();
        Ok(if let Some(found) = made(&bytes) {
            (bytes.slice_ref(found.coded), Some(bytes.slice_ref(found.text)))
        } else {
            choice.exact = true;
            choice.reason = NOT_SAME;
            (plain.clone(), None)
        })
    }

    /// The head of the message has been sent: its text is kept until it has arrived.
    pub(super) fn announce_text(&mut self) {
        // The level tells with a schema from without.
        let options = self.one.choice.as_ref().map(|choice| choice.options);
        let Some(options) = options.filter(|options| options.is_infoset()) else { return };
        let text = self.one.held.delta().cloned();
        let Some((text, service)) = text.zip(self.one.about.service) else { return };
        let (number, at) = (self.one.id.number, self.now);
        if let Some(path) = self.path.as_deref_mut() {
            path.texts.left(number, Text { text, at, service, options });
        }
    }
}

impl Known<'_> {
    /// Whether an arm that gives an infoset back may be taken, with so much memory left.
    pub(super) fn fit_infoset(&self, options: Options, left: usize) -> Fit {
        let Some((service, schema_context)) = self.one.about.service.zip(self.schema_context())
        else {
            return Fit::Refused("the service wants every byte back");
        };
        if let Some(why) = self.one.exact.reason() {
            return Fit::Refused(why);
        }
        if options == Options::WBXML && self.one.exact.comments {
            return Fit::Refused("it has comments");
        }
        if options == Options::EXI_SCHEMA && schema_context.name().is_none() {
            return Fit::Refused("the service has no schemas");
        }
        let Some(path) = self.path.as_ref().filter(|path| path.knows_bases()) else {
            return Fit::Refused("the peer cannot decode it");
        };
        if !path.texts.is_read(service, options) {
            return Fit::Refused("the peer could not read it");
        }
        if !path.texts.has_room(self.one.sending.at_hand().0.len()) {
            return Fit::Refused("too much waits for its receipt");
        }
        match infoset::MEMORY_BYTES <= left {
            true => Fit::Open { options, bytes: infoset::MEMORY_BYTES },
            false => Fit::Refused(SHORT),
        }
    }
}

/// The length that teaches of a block that nobody sends; an infoset that would not come back gains
/// nothing.
pub(super) fn probed_len(
    encoding: &Encoding,
    arm: Arm,
    plain_len: usize,
    result: Result<Bytes, codec::Error>,
) -> Result<usize, codec::Error> {
    let options = encoding.arms().get(arm.0);
    if !options.is_some_and(|options| options.is_infoset()) {
        return result.map(|coded| coded.len());
    }
    let coded = result.unwrap_or_default();
    Ok(made(&coded).map_or(plain_len, |made| made.coded.len()))
}

/// The arms that are closed to a message whose every byte has to come back.
pub(super) fn arms_of_infosets(encoding: &Encoding) -> impl Iterator<Item = Arm> {
    let arms = encoding.arms().iter().enumerate();
    arms.filter(|(_, options)| options.is_infoset()).map(|(at, _)| Arm(at))
}
