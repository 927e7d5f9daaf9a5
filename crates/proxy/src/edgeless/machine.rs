//! An answer as an exchange of the machine that chooses and encodes ([`coding`]): what goes in,
//! what comes out, and its end. The one task that owns the machine has it ([`crate::actor`]).

use std::sync::Arc;

use bytes::Bytes;
use coding::ExchangeId;
use coding::api::{Input, Output};
use tokio::sync::mpsc;

use crate::actor::{Handle, Message};

/// What waits for an answer's task at most: the encoding, two blocks, trailers or a fault, and what
/// came of a look for secrets.
const MAX_OUTPUTS: usize = 8;

/// An exchange that is open: over once nobody has this any more.
pub(crate) struct Open {
    pub(crate) id: ExchangeId,
    handle: Handle,
}

impl Open {
    /// What happens in it, in order.
    pub(crate) async fn tell(&self, inputs: Vec<Input>) {
        self.handle.send(Message::Client(self.id, inputs)).await;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.handle.client_gone(self.id);
    }
}

/// An exchange, for whoever gets what comes out.
pub(crate) struct Exchange {
    // Dropped first: by that an opening is known that comes behind its end.
    outputs: mpsc::Receiver<Output>,
    pub(crate) open: Arc<Open>,
}

impl Exchange {
    /// Opens one, with what happens first.
    pub(crate) async fn new(handle: &Handle, id: ExchangeId, inputs: Vec<Input>) -> Self {
        let (sender, outputs) = mpsc::channel(MAX_OUTPUTS);
        let open = Arc::new(Open { id, handle: handle.clone() });
        handle.send(Message::ClientOpens(id, sender, inputs)).await;
        Self { outputs, open }
    }

    /// What comes next; none where the machine has ended.
    pub(crate) async fn next(&mut self) -> Option<Output> {
        self.outputs.recv().await
    }
}

/// A block as it came out.
pub(crate) struct Block {
    pub(crate) bytes: Bytes,
    /// Bytes of the body that it was.
    pub(crate) decoded_len: usize,
    /// The coding ends with it.
    pub(crate) end: bool,
}
