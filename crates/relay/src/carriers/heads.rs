//! Heads as they cross on one carrier: without what both sides know already ([`proto::heads`]).

use bytes::Bytes;
use codec::dictionary::Id;
use proto::Error;
use proto::exchange::{Head, OutcomeState, Part, Role};
use proto::heads::{Edge, Gateway, Sharing};

/// See the module.
#[derive(Debug)]
pub(crate) struct Heads {
    end: End,
    /// The exchange of the last head that came, and the bytes that it crossed in.
    came: Option<(u64, usize)>,
}

#[derive(Debug)]
enum End {
    Edge(Box<Edge<Id>>),
    Gateway(Box<Gateway>),
}

impl Heads {
    pub(crate) fn new(role: Role) -> Self {
        let end = match role {
            Role::Edge => End::Edge(Box::default()),
            Role::Gateway => End::Gateway(Box::default()),
        };
        Self { end, came: None }
    }

    /// A part as it crosses.
    pub(crate) fn pack(&mut self, part: Part, sharing: &Sharing<Id>) -> Part {
        let Part::Head(head) = part else { return part };
        let packed = match &mut self.end {
            End::Edge(end) => end.pack(head.exchange, &head.head, sharing),
            End::Gateway(end) => end.pack(head.exchange, &head.head, sharing),
        };
        Part::Head(Head { head: packed, ..head })
    }

    /// A part that crossed, as it was. Errors: what no peer sends; the head is as it came then.
    pub(crate) fn unpack(&mut self, part: &mut Part) -> Result<(), Error> {
        self.note_end(part);
        let Part::Head(Head { exchange, head, .. }) = part else { return Ok(()) };
        self.came = Some((*exchange, head.len()));
        *head = match &mut self.end {
            End::Edge(end) => end.unpack(*exchange, head)?,
            End::Gateway(end) => end.unpack(*exchange, head)?,
        };
        Ok(())
    }

    /// Bytes in which a head crossed that came just now.
    pub(crate) fn crossed_bytes(&self, exchange: u64, head: &Bytes) -> usize {
        let came = self.came.filter(|(last, _)| *last == exchange);
        came.map_or(head.len(), |(_, bytes)| bytes)
    }

    /// A part that either side sends may end its exchange on the carrier. Till then an answer may
    /// come, though the relay has the exchange on another by now.
    pub(crate) fn note_end(&mut self, part: &Part) {
        let exchange = match part {
            Part::Abort(abort) => abort.exchange,
            Part::Outcome(exchange, state) if *state != OutcomeState::Answer => *exchange,
            _ => return,
        };
        match &mut self.end {
            End::Edge(end) => end.forget(exchange),
            End::Gateway(end) => end.forget(exchange),
        }
    }
}
