//! The transactions that an edge has open.

use std::collections::BTreeMap;

use bytes::Bytes;

/// A request of the transport that has no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// The exchange that it is about; `None` for HELLO and PING.
    pub(super) exchange: Option<u64>,
    /// Of its payload.
    pub(super) bytes: usize,
    /// Whether an answer may come with the response.
    pub(super) asks: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Calls {
    last: u64,
    open: BTreeMap<u64, Call>,
    /// What waits, by exchange, for transactions of one of the same number that was given up.
    held: BTreeMap<u64, Vec<u8>>,
}

impl Calls {
    /// A transaction begins: its number.
    pub(super) fn begin(&mut self, call: Call) -> u64 {
        self.last += 1;
        self.open.insert(self.last, call);
        self.last
    }

    /// A transaction that is open.
    pub(super) fn get(&self, number: u64) -> Option<Call> {
        self.open.get(&number).copied()
    }

    /// It is over.
    pub(super) fn end(&mut self, number: u64) {
        self.open.remove(&number);
    }

    /// Whether a transaction about the exchange is open.
    pub(super) fn is_busy(&self, exchange: u64) -> bool {
        self.open.values().any(|call| call.exchange == Some(exchange))
    }

    /// Whether one is that an answer may come with.
    pub(super) fn is_asking(&self, exchange: u64) -> bool {
        self.open.values().any(|call| call.exchange == Some(exchange) && call.asks)
    }

    /// Whether what opens an exchange waits.
    pub(super) fn is_held(&self, exchange: u64) -> bool {
        self.held.contains_key(&exchange)
    }

    /// What opens an exchange waits, and what is said of it behind that.
    pub(super) fn hold(&mut self, exchange: u64, payload: &[u8]) {
        self.held.entry(exchange).or_default().extend_from_slice(payload);
    }

    /// It waits no longer.
    pub(super) fn release(&mut self, exchange: u64) -> Option<Bytes> {
        self.held.remove(&exchange).map(Bytes::from)
    }

    /// Bytes of what waits, and of those open of which `counts` says so.
    pub(super) fn bytes(&self, counts: impl Fn(u64) -> bool) -> usize {
        let held: usize = self.held.values().map(Vec::len).sum();
        let open = self.open.iter().filter(|(number, _)| counts(**number));
        held + open.map(|(_, call)| call.bytes).sum::<usize>()
    }
}
