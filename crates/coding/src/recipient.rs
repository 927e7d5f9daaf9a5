//! Who gets a message that is no peer but a client as any other: it takes content codings (RFC 9110
//! §8.4.1), perhaps with a dictionary that it holds (RFC 9842), and says nothing of what came of
//! them.

use std::sync::Arc;

use codec::content::Coding;
use codec::dictionary::Kept;
use codec::dictionary::rfc9842::Form;
use codec::{Encoder, Error, Options, Settings};
use decide::network::Path;
use proto::profile::Model;
use record::decision as facts;

/// Level of each coding with a dictionary.
const DCB_LEVEL: i8 = 10;
/// See [`DCB_LEVEL`].
const DCZ_LEVEL: i8 = 19;

/// What is known of a recipient when its message begins: it may say something else with the next.
#[derive(Clone, Debug)]
pub struct Recipient {
    /// Content codings that it takes and likes best, all alike. Of one codec the first is made.
    pub codings: Vec<Coding>,
    /// Codings with a dictionary that it takes.
    pub forms: Vec<Form>,
    /// A dictionary that it holds, where that may be used.
    pub dictionary: Option<Arc<Kept>>,
    /// It takes a message in no coding.
    pub identity: bool,
    /// How fast it decodes, as it says.
    pub decoder: Option<Arc<Model>>,
    /// The path to it, as its transport tells.
    pub path: Path,
    /// The same for events.
    pub link: facts::Link,
    /// Out of whose share of the processor comes what it costs beyond others.
    pub account: u64,
}

/// How what comes out of an encoder is framed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// In the blocks of the pair.
    #[default]
    Blocks,
    /// As a content coding.
    Content(Coding),
    /// As one with a dictionary.
    Dictionary(Form),
}

impl Framing {
    /// Its name in Content-Encoding; none for blocks of the pair.
    #[must_use]
    pub fn token(self) -> Option<&'static str> {
        match self {
            Self::Blocks => None,
            Self::Content(coding) => Some(coding.token()),
            Self::Dictionary(form) => Some(form.name()),
        }
    }

    /// What an encoding in this framing is called in events.
    #[must_use]
    pub fn label(self, options: Options) -> String {
        match self {
            Self::Blocks | Self::Content(_) => options.label(),
            Self::Dictionary(form) => format!("{}:{}", form.name(), level(form)),
        }
    }

    /// A context to encode with.
    ///
    /// # Errors
    /// Those of the codec; a framing of another codec's.
    pub fn encoder(
        self,
        options: Options,
        base: Option<&Arc<Kept>>,
    ) -> Result<Box<dyn Encoder>, Error> {
        match self {
            Self::Blocks => options.encoder_on(base),
            Self::Content(coding) => coding.encoder(options),
            Self::Dictionary(form) => {
                let (level, dictionary) = (Some(level(form)), base.cloned());
                Settings { level, dictionary, ..Settings::default() }.encoder(form.name())
            }
        }
    }
}

impl Recipient {
    /// How an encoding would be framed for it; none where it takes no such thing.
    pub(crate) fn framing(&self, options: Options) -> Option<Framing> {
        if let Some(form) = form_of(options) {
            return self.forms.contains(&form).then_some(Framing::Dictionary(form));
        }
        let coding = self.codings.iter().find(|coding| coding.codec() == options.codec);
        coding.map(|coding| Framing::Content(*coding))
    }

    /// What an encoding is made against.
    pub(crate) fn base_of(&self, options: Options) -> Option<Arc<Kept>> {
        self.dictionary.clone().filter(|_| form_of(options).is_some())
    }

    /// What [`Recipient::base_of`] is called where decisions are told.
    pub(crate) fn fact_of(&self, options: Options) -> Option<facts::Base> {
        let kept = self.base_of(options)?;
        Some(facts::Base::Message { sha256: kept.id().to_string() })
    }

    /// Memory of the encoder of a coding with its dictionary, for so many bytes of content; `None`
    /// for other encodings.
    pub(crate) fn form_bytes(&self, options: Options, bytes: f64) -> Option<usize> {
        let held = self.dictionary.as_ref().map_or(0, |kept| kept.content().len());
        Some(form_bytes(form_of(options)?, bytes + held as f64))
    }

    /// Seconds that it takes to decode so many bytes of an encoding, where it has told.
    pub(crate) fn decode_s(&self, options: Options, bytes: f64) -> Option<f64> {
        let form = form_of(options).and_then(|form| codec::find(form.name()).ok());
        let codec = form.unwrap_or(options.codec).number();
        let reported = self.decoder.as_ref()?.of(codec)?;
        Some(f64::from(reported.fixed_s) + f64::from(reported.per_byte_s) * bytes)
    }
}

/// What HTTP has in place of the pair's encodings against what both ends hold.
pub(crate) fn form_of(options: Options) -> Option<Form> {
    match options.codec {
        codec if codec == Options::DELTA.codec => Some(Form::Dcb),
        codec if codec == Options::DICTIONARY.codec => Some(Form::Dcz),
        _ => None,
    }
}

/// What an arm is called in events where it is for recipients.
pub(crate) fn label(options: Options) -> String {
    let framing = form_of(options).map_or(Framing::Blocks, Framing::Dictionary);
    framing.label(options)
}

fn level(form: Form) -> i8 {
    match form {
        Form::Dcb => DCB_LEVEL,
        Form::Dcz => DCZ_LEVEL,
    }
}

/// Memory of an encoder with a dictionary: that of the codec within, whose window holds so many
/// bytes of dictionary and content.
fn form_bytes(form: Form, bytes: f64) -> usize {
    let codec = match form {
        Form::Dcb => Coding::Brotli.codec(),
        Form::Dcz => Coding::Zstd.codec(),
    };
    let window_log = (codec::MIN_WINDOW_LOG..codec::MAX_WINDOW_LOG)
        .find(|log| bytes <= f64::from(1_u32 << log))
        .unwrap_or(codec::MAX_WINDOW_LOG);
    let options = Options { codec, level: level(form), window_log };
    codec.encoder_bytes(options)
}
