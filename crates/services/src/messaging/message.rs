//! A military message: free text with what it takes to deliver it, as in the free-text part of the
//! CoNSIS operational message (IST-150).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::fields::{Field, Kind, Layout, Record, Value};
use super::forms::Form;
use super::refusal::Refusal;

/// Most addressees of a message, nodes and groups.
pub(crate) const MAX_ADDRESSEES: usize = 64;
/// Most nodes that groups may stand for.
pub(crate) const MAX_RECIPIENTS: usize = 512;
/// Most messages that one refers to.
const MAX_REFERENCES: usize = 16;
/// Most nodes that a message may pass.
pub(crate) const MAX_HOPS: usize = 16;
/// Longest validity: 30 days, in seconds.
pub(crate) const MAX_VALIDITY_S: u64 = 30 * 86_400;
/// Length of a code that authenticates a document, in bytes: HMAC-SHA-256 cut to 128 bits
/// (RFC 2104 §5).
pub(crate) const CODE_BYTES: usize = 16;
/// How long a message is valid that does not say it: a day.
pub(crate) const DEFAULT_VALIDITY: Duration = Duration::from_secs(86_400);

/// The words of [`Precedence`], the most urgent first.
pub(crate) const PRECEDENCES: &[&str] = &["flash", "immediate", "priority", "routine"];
/// The words of [`Delivery`].
pub(crate) const DELIVERIES: &[&str] = &["reliable", "best-effort"];
/// The words of [`Wanted`].
pub(crate) const RECEIPTS: &[&str] = &["delivered", "read", "none"];

/// The fields of a message, in their order.
pub(crate) static MESSAGE: Layout = Layout {
    name: "message",
    fields: &[
        field("id", "id", 1, Kind::Token, true),
        field("precedence", "precedence", 2, Kind::Word(PRECEDENCES), true),
        field("originator", "originator", 3, Kind::Token, true),
        field("addressees", "addressee", 4, Kind::Tokens(MAX_ADDRESSEES), true),
        field("time", "time", 5, Kind::Time, true),
        field("validity_s", "validity_s", 6, Kind::Number(MAX_VALIDITY_S), false),
        field("references", "reference", 7, Kind::Tokens(MAX_REFERENCES), false),
        field("kind", "kind", 8, Kind::Token, false),
        field("delivery", "delivery", 9, Kind::Word(DELIVERIES), false),
        field("receipt", "receipt", 10, Kind::Word(RECEIPTS), false),
        field("text", "text", 11, Kind::Text, true),
        field("extensions", "extension", 12, Kind::Pairs, false),
        field("code", "code", 13, Kind::Bytes(CODE_BYTES), false),
        field("hops", "hop", 14, Kind::Tokens(MAX_HOPS), false),
        field("recipients", "recipient", 15, Kind::Tokens(MAX_RECIPIENTS), false),
    ],
};

pub(super) const fn field(
    name: &'static str,
    element: &'static str,
    key: u64,
    kind: Kind,
    required: bool,
) -> Field {
    Field { name, element, key, kind, required }
}

/// How urgent a message is: in each queue the more urgent goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precedence {
    /// Before all others.
    Flash,
    /// Before priority.
    Immediate,
    /// Before routine.
    Priority,
    /// When nothing else waits.
    #[default]
    Routine,
}

/// How hard it is tried to deliver a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// Again and again until a receipt comes or the validity is over.
    #[default]
    Reliable,
    /// Once over each hop.
    BestEffort,
}

/// Which receipt the originator wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// When the addressee's node has the message.
    #[default]
    Delivered,
    /// That, and another when a person has read it.
    Read,
    /// None; where the addressee's node is asked itself, its answer tells all the same.
    Nothing,
}

/// The kind of a message that says none.
pub(crate) const FREE_TEXT: &str = "free-text";

/// A whole message. It does not change on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its name, of no other message anywhere.
    pub id: Arc<str>,
    /// How urgent it is.
    pub precedence: Precedence,
    /// The node that it is of.
    pub originator: Arc<str>,
    /// Nodes and groups that it is for.
    pub addressees: Vec<String>,
    /// When it was made, since 1970.
    pub time: Duration,
    /// From then on so long it is worth to deliver it.
    pub validity: Duration,
    /// Messages that it refers to.
    pub references: Vec<String>,
    /// Which kind of operational message it is; `free-text` or one of the users' own.
    pub kind: String,
    /// How hard it is tried.
    pub delivery: Delivery,
    /// Which receipt is wanted.
    pub receipt: Wanted,
    /// What it says.
    pub text: String,
    /// What messages of other kinds say beside: names with values.
    pub extensions: Vec<(String, String)>,
    /// Authenticates it, where the originator has a key.
    pub code: Option<Vec<u8>>,
}

/// A message as a client gives it to its node, which adds what is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// A name, where the client gives one so that it may give the message twice.
    pub id: Option<String>,
    /// How urgent it is.
    pub precedence: Precedence,
    /// The node, where the client names it.
    pub originator: Option<String>,
    /// Nodes and groups that it is for.
    pub addressees: Vec<String>,
    /// When it was made, if not now.
    pub time: Option<Duration>,
    /// How long it is valid, if not as long as the node says.
    pub validity: Option<Duration>,
    /// Messages that it refers to.
    pub references: Vec<String>,
    /// Its kind, if it is not free text.
    pub kind: Option<String>,
    /// How hard it is tried.
    pub delivery: Delivery,
    /// Which receipt is wanted; best effort wants none unless it says so.
    pub receipt: Option<Wanted>,
    /// What it says.
    pub text: String,
    /// Names with values.
    pub extensions: Vec<(String, String)>,
}

/// A message on its way from one node to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The message.
    pub message: Arc<Message>,
    /// The nodes that it has passed since its originator, in order.
    pub hops: Vec<String>,
    /// Whom the next node delivers it to or passes it on for; none means that node alone.
    pub recipients: Vec<String>,
}

impl Message {
    /// When its validity is over, since 1970.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.time + self.validity
    }

    /// Bytes of its content: text and extensions.
    pub(crate) fn content_bytes(&self) -> usize {
        let pairs = self.extensions.iter().map(|(name, value)| name.len() + value.len());
        self.text.len() + pairs.sum::<usize>()
    }

    /// The fields of the message and of its way, by [`MESSAGE`]. What is as it would be taken to be
    /// is left out.
    pub(crate) fn record(&self, hops: &[String], recipients: &[String]) -> Record {
        let mut record = Record::new(&MESSAGE);
        let text = |text: &str| Some(Value::Text(text.to_owned()));
        let list = |list: &[String]| (!list.is_empty()).then(|| Value::List(list.to_vec()));
        let is_best_effort = self.delivery == Delivery::BestEffort;
        let usual = if is_best_effort { Wanted::Nothing } else { Wanted::Delivered };
        let values = [
            text(&self.id),
            Some(Value::Word(self.precedence as usize)),
            text(&self.originator),
            Some(Value::List(self.addressees.clone())),
            Some(Value::Time(self.time)),
            (self.validity != DEFAULT_VALIDITY).then_some(Value::Number(self.validity.as_secs())),
            list(&self.references),
            (self.kind != FREE_TEXT).then(|| Value::Text(self.kind.clone())),
            is_best_effort.then_some(Value::Word(1)),
            (self.receipt != usual).then_some(Value::Word(self.receipt as usize)),
            text(&self.text),
            (!self.extensions.is_empty()).then(|| Value::Pairs(self.extensions.clone())),
            self.code.clone().map(Value::Bytes),
            list(hops),
            list(recipients),
        ];
        for (at, value) in values.into_iter().enumerate() {
            if let Some(value) = value {
                // Each was checked when the message was made.
                let _ = record.put(&MESSAGE, at, value);
            }
        }
        record
    }
}

impl Draft {
    /// What a client's document says.
    ///
    /// # Errors
    /// Where it has no addressee, neither text nor extension, or what only nodes write.
    pub(crate) fn of(record: Record) -> Result<Self, Refusal> {
        let mut taken = Taken(record);
        let draft = Self {
            id: taken.text(0),
            precedence: taken.precedence(1),
            originator: taken.text(2),
            addressees: taken.list(3),
            time: taken.time(4),
            validity: taken.seconds(5),
            references: taken.list(6),
            kind: taken.text(7),
            delivery: taken.delivery(8),
            receipt: taken.wanted(9),
            text: taken.text(10).unwrap_or_default(),
            extensions: taken.pairs(11),
        };
        if let Some(at) = (12..MESSAGE.fields.len()).find(|&at| taken.0.take(at).is_some()) {
            let name = MESSAGE.fields.get(at).map_or("", |field| field.name);
            let line = format!("field '{name}' is for nodes to write; leave it out");
            return Err(Refusal::malformed(line));
        }
        if draft.addressees.is_empty() {
            let line = "field 'addressees' is missing; name one node or group at least";
            return Err(Refusal::malformed(line));
        }
        if draft.text.is_empty() && draft.extensions.is_empty() {
            let line = "field 'text' is missing or empty; say something, or give extensions";
            return Err(Refusal::malformed(line));
        }
        Ok(draft)
    }

    /// The fields of what a client gives to its node.
    pub(crate) fn record(&self) -> Record {
        let mut record = Record::new(&MESSAGE);
        let text = |text: &Option<String>| text.clone().map(Value::Text);
        let list = |list: &[String]| (!list.is_empty()).then(|| Value::List(list.to_vec()));
        let values = [
            text(&self.id),
            Some(Value::Word(self.precedence as usize)),
            text(&self.originator),
            list(&self.addressees),
            self.time.map(Value::Time),
            self.validity.map(|validity| Value::Number(validity.as_secs())),
            list(&self.references),
            text(&self.kind),
            (self.delivery == Delivery::BestEffort).then_some(Value::Word(1)),
            self.receipt.map(|receipt| Value::Word(receipt as usize)),
            (!self.text.is_empty()).then(|| Value::Text(self.text.clone())),
            (!self.extensions.is_empty()).then(|| Value::Pairs(self.extensions.clone())),
        ];
        for (at, value) in values.into_iter().enumerate() {
            if let Some(value) = value {
                // What is out of its bounds the node would refuse; it is left out and missed there.
                let _ = record.put(&MESSAGE, at, value);
            }
        }
        record
    }

    /// Refuses a draft with a field out of its bounds, which [`Draft::record`] would leave out.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let mut record = Record::new(&MESSAGE);
        let mut put = |name: &str, value: Option<Value>| match (MESSAGE.find(name), value) {
            (Some(at), Some(value)) => record.put(&MESSAGE, at, value),
            _ => Ok(()),
        };
        put("id", self.id.clone().map(Value::Text))?;
        put("addressees", Some(Value::List(self.addressees.clone())))?;
        put("validity_s", self.validity.map(|of| Value::Number(of.as_secs())))?;
        put("references", Some(Value::List(self.references.clone())))?;
        put("kind", self.kind.clone().map(Value::Text))?;
        put("text", Some(Value::Text(self.text.clone())))?;
        put("extensions", Some(Value::Pairs(self.extensions.clone())))?;
        Self::of(self.record()).map(drop)
    }
}

impl Transfer {
    /// Reads a document of a form.
    ///
    /// # Errors
    /// With the field, the value and the limit.
    pub fn decode(form: Form, bytes: &[u8]) -> Result<Self, Refusal> {
        form.decode(&MESSAGE, bytes).and_then(Self::of)
    }

    /// Writes a document of a form.
    ///
    /// # Errors
    /// Where a form meets its bounds, which what was read is within.
    pub fn encode(&self, form: Form) -> Result<Vec<u8>, Refusal> {
        form.encode(&MESSAGE, &self.record())
    }

    /// What a node's document says.
    ///
    /// # Errors
    /// Where a field is missing.
    pub(crate) fn of(record: Record) -> Result<Self, Refusal> {
        record.check_required(&MESSAGE)?;
        let mut taken = Taken(record);
        let delivery = taken.delivery(8);
        let usual = match delivery {
            Delivery::Reliable => Wanted::Delivered,
            Delivery::BestEffort => Wanted::Nothing,
        };
        let message = Message {
            id: taken.text(0).unwrap_or_default().into(),
            precedence: taken.precedence(1),
            originator: taken.text(2).unwrap_or_default().into(),
            addressees: taken.list(3),
            time: taken.time(4).unwrap_or_default(),
            validity: taken.seconds(5).unwrap_or(DEFAULT_VALIDITY),
            references: taken.list(6),
            kind: taken.text(7).unwrap_or_else(|| FREE_TEXT.to_owned()),
            delivery,
            receipt: taken.wanted(9).unwrap_or(usual),
            text: taken.text(10).unwrap_or_default(),
            extensions: taken.pairs(11),
            code: taken.bytes(12),
        };
        let (hops, recipients) = (taken.list(13), taken.list(14));
        if message.addressees.is_empty() {
            return Err(Refusal::malformed("field 'addressees' is empty; name one at least"));
        }
        Ok(Self { message: Arc::new(message), hops, recipients })
    }

    /// Its fields.
    pub(crate) fn record(&self) -> Record {
        self.message.record(&self.hops, &self.recipients)
    }
}

/// Fields of a record, taken out one by one: each has the kind that its layout gives it.
pub(super) struct Taken(pub(super) Record);

impl Taken {
    pub(super) fn text(&mut self, at: usize) -> Option<String> {
        match self.0.take(at) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn list(&mut self, at: usize) -> Vec<String> {
        match self.0.take(at) {
            Some(Value::List(list)) => list,
            _ => Vec::new(),
        }
    }

    pub(super) fn time(&mut self, at: usize) -> Option<Duration> {
        match self.0.take(at) {
            Some(Value::Time(time)) => Some(time),
            _ => None,
        }
    }

    pub(super) fn bytes(&mut self, at: usize) -> Option<Vec<u8>> {
        match self.0.take(at) {
            Some(Value::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }

    pub(super) fn word(&mut self, at: usize) -> Option<usize> {
        match self.0.take(at) {
            Some(Value::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn pairs(&mut self, at: usize) -> Vec<(String, String)> {
        match self.0.take(at) {
            Some(Value::Pairs(pairs)) => pairs,
            _ => Vec::new(),
        }
    }

    fn seconds(&mut self, at: usize) -> Option<Duration> {
        match self.0.take(at) {
            Some(Value::Number(number)) => Some(Duration::from_secs(number)),
            _ => None,
        }
    }

    fn precedence(&mut self, at: usize) -> Precedence {
        self.word(at).map_or(Precedence::Routine, Precedence::of)
    }

    fn delivery(&mut self, at: usize) -> Delivery {
        match self.word(at) {
            Some(1) => Delivery::BestEffort,
            _ => Delivery::Reliable,
        }
    }

    fn wanted(&mut self, at: usize) -> Option<Wanted> {
        self.word(at).map(|word| match word {
            0 => Wanted::Delivered,
            1 => Wanted::Read,
            _ => Wanted::Nothing,
        })
    }
}

impl Precedence {
    /// By its number, from 0 for flash.
    pub(super) fn of(number: usize) -> Self {
        match number {
            0 => Self::Flash,
            1 => Self::Immediate,
            2 => Self::Priority,
            _ => Self::Routine,
        }
    }

    /// Its word.
    #[must_use]
    pub fn name(self) -> &'static str {
        PRECEDENCES.get(self as usize).copied().unwrap_or_default()
    }

    /// By its word.
    ///
    /// # Errors
    /// One line with the words that there are.
    pub fn parse(text: &str) -> Result<Self, String> {
        let found = PRECEDENCES.iter().position(|word| *word == text);
        found.map(Self::of).ok_or_else(|| format!("not one of {}", PRECEDENCES.join(", ")))
    }
}

impl Wanted {
    /// By its word.
    ///
    /// # Errors
    /// One line with the words that there are.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "delivered" => Ok(Self::Delivered),
            "read" => Ok(Self::Read),
            "none" => Ok(Self::Nothing),
            _ => Err(format!("not one of {}", RECEIPTS.join(", "))),
        }
    }
}

impl fmt::Display for Precedence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
