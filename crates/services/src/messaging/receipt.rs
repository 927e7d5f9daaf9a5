//! What addressees' nodes tell the originator's.

use std::sync::Arc;
use std::time::Duration;

use super::fields::{Kind, Layout, Record, Value};
use super::forms::Form;
use super::message::{CODE_BYTES, MAX_HOPS, PRECEDENCES, Precedence, Taken, field};
use super::refusal::Refusal;

/// The words of [`Outcome`].
pub(crate) const OUTCOMES: &[&str] = &["delivered", "read", "failed"];
/// Longest reason of a failure that is sent, in bytes.
pub(crate) const MAX_REASON_BYTES: usize = 512;

/// The fields of a receipt, in their order.
pub(crate) static RECEIPT: Layout = Layout {
    name: "receipt",
    fields: &[
        field("message", "message", 1, Kind::Token, true),
        field("originator", "originator", 2, Kind::Token, true),
        field("addressee", "addressee", 3, Kind::Token, true),
        field("outcome", "outcome", 4, Kind::Word(OUTCOMES), true),
        field("time", "time", 5, Kind::Time, true),
        field("reporter", "reporter", 6, Kind::Token, false),
        field("reason", "reason", 7, Kind::Text, false),
        field("precedence", "precedence", 8, Kind::Word(PRECEDENCES), false),
        field("code", "code", 9, Kind::Bytes(CODE_BYTES), false),
        field("hops", "hop", 10, Kind::Tokens(MAX_HOPS), false),
    ],
};

/// What became of a message at one of its recipients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its node has it.
    Delivered,
    /// Somebody there has read it.
    Read,
    /// It cannot be delivered.
    Failed,
}

/// A receipt. It does not change on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The message's id.
    pub message: Arc<str>,
    /// Whose message it is: where the receipt goes.
    pub originator: Arc<str>,
    /// The node that was to have the message.
    pub addressee: Arc<str>,
    /// What became of it.
    pub outcome: Outcome,
    /// When, since 1970.
    pub time: Duration,
    /// The node that says so: the addressee's, or of a failure one on the way.
    pub reporter: Arc<str>,
    /// Why it failed; one line.
    pub reason: Option<String>,
    /// How urgent it is: as the message.
    pub precedence: Precedence,
    /// Authenticates it, where the reporter has a key.
    pub code: Option<Vec<u8>>,
}

/// A receipt on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returning {
    /// The receipt.
    pub receipt: Arc<Receipt>,
    /// The nodes that it has passed since its reporter, in order.
    pub hops: Vec<String>,
}

impl Receipt {
    /// The fields of the receipt and of its way, by [`RECEIPT`].
    pub(crate) fn record(&self, hops: &[String]) -> Record {
        let mut record = Record::new(&RECEIPT);
        let text = |text: &str| Some(Value::Text(text.to_owned()));
        let values = [
            text(&self.message),
            text(&self.originator),
            text(&self.addressee),
            Some(Value::Word(self.outcome as usize)),
            Some(Value::Time(self.time)),
            (self.reporter != self.addressee).then(|| Value::Text(self.reporter.to_string())),
            self.reason.clone().map(Value::Text),
            (self.precedence != Precedence::Routine)
                .then_some(Value::Word(self.precedence as usize)),
            self.code.clone().map(Value::Bytes),
            (!hops.is_empty()).then(|| Value::List(hops.to_vec())),
        ];
        for (at, value) in values.into_iter().enumerate() {
            if let Some(value) = value {
                // Each was checked when the receipt was made.
                let _ = record.put(&RECEIPT, at, value);
            }
        }
        record
    }
}

impl Returning {
    /// Reads a document of a form.
    ///
    /// # Errors
    /// With the field, the value and the limit.
    pub fn decode(form: Form, bytes: &[u8]) -> Result<Self, Refusal> {
        form.decode(&RECEIPT, bytes).and_then(Self::of)
    }

    /// Writes a document of a form.
    ///
    /// # Errors
    /// Where a form meets its bounds, which what was read is within.
    pub fn encode(&self, form: Form) -> Result<Vec<u8>, Refusal> {
        form.encode(&RECEIPT, &self.record())
    }

    /// What a node's document says.
    ///
    /// # Errors
    /// Where a field is missing.
    pub(crate) fn of(record: Record) -> Result<Self, Refusal> {
        record.check_required(&RECEIPT)?;
        let mut taken = Taken(record);
        let mut text = |at| taken.text(at).map(Arc::<str>::from);
        let (message, originator, addressee) = (text(0), text(1), text(2));
        let addressee = addressee.unwrap_or_else(|| "".into());
        let reporter = text(5).unwrap_or_else(|| addressee.clone());
        let reason = taken.text(6);
        if reason.as_ref().is_some_and(|reason| reason.len() > MAX_REASON_BYTES) {
            let line = format!("field 'reason': over the limit of {MAX_REASON_BYTES} bytes");
            return Err(Refusal::malformed(line));
        }
        let receipt = Receipt {
            message: message.unwrap_or_else(|| "".into()),
            originator: originator.unwrap_or_else(|| "".into()),
            addressee,
            outcome: match taken.word(3) {
                Some(0) => Outcome::Delivered,
                Some(1) => Outcome::Read,
                _ => Outcome::Failed,
            },
            time: taken.time(4).unwrap_or_default(),
            reporter,
            reason,
            precedence: taken.word(7).map_or(Precedence::Routine, Precedence::of),
            code: taken.bytes(8),
        };
        let hops = taken.list(9);
        if receipt.outcome != Outcome::Failed && receipt.reporter != receipt.addressee {
            let line = "field 'reporter': only the addressee's node says that it has a message";
            return Err(Refusal::malformed(line));
        }
        Ok(Self { receipt: Arc::new(receipt), hops })
    }

    /// Its fields.
    pub(crate) fn record(&self) -> Record {
        self.receipt.record(&self.hops)
    }
}
