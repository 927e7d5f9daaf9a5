//! Bodies of peers' requests that are given out as they come: the next block is asked for when the
//! application has taken the last.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::Queues;
use super::pending::Pending;
use crate::coap::kept::Bounds;
use crate::coap::machine::{Address, Flow, Input, Of, Output};
use crate::coap::{Block, Code, Content, Refusal, option};

/// A body that is longer is given out as it comes, where the application takes it so.
pub const MAX_WHOLE_BYTES: usize = 64 << 10;
/// After so many seconds there may be room for one more.
const RETRY_AFTER_S: u32 = 5;

/// An answer that came before its request has ended.
#[derive(Debug)]
pub(super) enum Early {
    /// It is whole.
    Whole(Content),
    /// Its body goes on.
    Begun(Content),
}

impl Early {
    /// Whether the rest of the request has to come first: a success behind a part of it would be
    /// one of that part alone (RFC 7959 §2.3), and a refusal ends it.
    fn waits(&self) -> bool {
        let (Self::Whole(content) | Self::Begun(content)) = self;
        content.code.is_success()
    }
}

/// What becomes of a request with a block.
pub(super) enum Came<P> {
    /// It is answered, or will be.
    Taken,
    /// The request with this number of its application's is answered, in this message, with what
    /// came before it had ended.
    Answered(u64, (u64, Pending<P>), Early),
    /// It is of no body that is given out.
    Other,
}

#[derive(Debug)]
struct Upload<P> {
    peer: P,
    key: Vec<u8>,
    /// Where the next block begins, and where the last one did.
    next: usize,
    last: usize,
    has_ended: bool,
    /// Bytes that the application takes.
    room: usize,
    /// The message that the last block came with, until it is answered.
    current: Option<(u64, Block)>,
    block2: Option<Block>,
    early: Option<Early>,
    used_at: Duration,
}

/// All of them, by the number that the application knows them by: that of the message with which
/// they were given out first.
#[derive(Debug)]
pub(super) struct Incoming<P> {
    all: BTreeMap<u64, Upload<P>>,
    bounds: Bounds,
}

impl<P: Address> Incoming<P> {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { all: BTreeMap::new(), bounds }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn has(&self, id: u64) -> bool {
        self.all.contains_key(&id)
    }

    /// From now on this body is given out, of which so many bytes are with its application.
    pub(super) fn begin(
        &mut self,
        now: Duration,
        id: u64,
        (pending, len): (Pending<P>, usize),
    ) -> Result<(), Content> {
        let Pending { peer, key, block1, block2 } = pending;
        let of_peer = self.all.values().filter(|upload| upload.peer == peer).count();
        let is_full = self.all.len() >= self.bounds.entries;
        let Some(block) = block1.filter(|_| !is_full && of_peer < self.bounds.entries_per_peer)
        else {
            let full = Content::new(Code::SERVICE_UNAVAILABLE);
            return Err(full.with_uint(option::MAX_AGE, RETRY_AFTER_S));
        };
        self.all.insert(
            id,
            Upload {
                peer,
                key,
                next: len,
                last: block.offset(),
                has_ended: false,
                room: 0,
                current: Some((id, block)),
                block2,
                early: None,
                used_at: now,
            },
        );
        Ok(())
    }

    fn find(&mut self, peer: P, key: &[u8]) -> Option<(u64, &mut Upload<P>)> {
        let of_it = |(_, it): &(&u64, &mut Upload<P>)| it.peer == peer && it.key == key;
        self.all.iter_mut().find(of_it).map(|(id, upload)| (*id, upload))
    }

    /// A request with a block of a body.
    pub(super) fn came(
        &mut self,
        now: Duration,
        (peer, key): (P, &[u8]),
        (exchange, block): (u64, Block),
        payload: &Bytes,
        queues: &mut Queues<P>,
    ) -> Came<P> {
        let Some((id, upload)) = self.find(peer, key) else { return Came::Other };
        if block.num == 0 {
            // RFC 7959 §2.5: it begins anew.
            self.drop_one(id, queues);
            return Came::Other;
        }
        upload.used_at = now;
        let offset = block.offset();
        let refusal = match () {
            () if !block.is_length(payload.len()) => Some(Refusal::Malformed),
            () if offset == upload.next && !upload.has_ended => None,
            // It cannot know that it has come.
            () if offset == upload.last => return upload.again(exchange, block, queues),
            () => Some(Refusal::Incomplete),
        };
        if let Some(refusal) = refusal {
            let content = with_block(refusal.response(), block);
            queues.inputs.push_back(Input::Respond { exchange, content });
            return Came::Taken;
        }
        upload.last = offset;
        upload.next = offset.saturating_add(payload.len());
        upload.has_ended = !block.more;
        upload.room = upload.room.saturating_sub(payload.len());
        upload.current = Some((exchange, block));
        let has_ended = upload.has_ended;
        if let Some(early) = upload.early.take_if(|early| has_ended || !early.waits())
            && let Some(pending) = self.taken(id)
        {
            return Came::Answered(id, (exchange, pending), early);
        }
        let Some(upload) = self.all.get_mut(&id) else { return Came::Taken };
        if upload.early.is_some() {
            // Nobody has a use for it.
            upload.go_on(queues);
            return Came::Taken;
        }
        let (of, bytes, is_last) = (Of::Exchange(id), payload.clone(), !block.more);
        queues.outputs.push_back(Output::Flow(Flow::Part { of, bytes, is_last }));
        upload.go_on(queues);
        Came::Taken
    }

    /// There is room for so many bytes more.
    pub(super) fn grew(&mut self, id: u64, bytes: usize, queues: &mut Queues<P>) {
        if let Some(upload) = self.all.get_mut(&id) {
            upload.room = upload.room.saturating_add(bytes);
            upload.go_on(queues);
        }
    }

    /// The application has an answer: the message that it goes with, and what is known of that;
    /// nothing where it waits for one.
    pub(super) fn answered(
        &mut self,
        id: u64,
        early: Early,
        queues: &mut Queues<P>,
    ) -> Option<(u64, Pending<P>, Early)> {
        let upload = self.all.get_mut(&id)?;
        let is_due = upload.has_ended || !early.waits();
        match upload.current.filter(|_| is_due) {
            Some((exchange, _)) => self.taken(id).map(|pending| (exchange, pending, early)),
            None => {
                upload.early = Some(early);
                upload.room = usize::MAX;
                upload.go_on(queues);
                None
            }
        }
    }

    /// A body that has an answer.
    fn taken(&mut self, id: u64) -> Option<Pending<P>> {
        let Upload { peer, key, current, block2, .. } = self.all.remove(&id)?;
        Some(Pending { peer, key, block1: current.map(|(_, block)| block), block2 })
    }

    fn drop_one(&mut self, id: u64, queues: &mut Queues<P>) {
        let Some(upload) = self.all.remove(&id) else { return };
        if let Some((exchange, block)) = upload.current {
            let content = with_block(Refusal::Incomplete.response(), block);
            queues.inputs.push_back(Input::Respond { exchange, content });
        }
        // What was given out whole is not broken.
        if !upload.has_ended {
            let broken = Flow::Broken { of: Of::Exchange(id) };
            queues.outputs.push_back(Output::Flow(broken));
        }
    }

    /// Nobody wants this body any more, or it cannot be told.
    pub(super) fn forget(&mut self, id: u64) {
        self.all.remove(&id);
    }

    /// Gives up what has not gone on for too long. What has come whole waits for its answer, which
    /// the endpoint gives in the end.
    pub(super) fn expire(&mut self, now: Duration, queues: &mut Queues<P>) {
        let lifetime = self.bounds.lifetime;
        let over = self.all.iter().filter(|(_, it)| it.used_at + lifetime <= now);
        let over: Vec<_> = over.map(|(id, _)| *id).collect();
        over.into_iter().for_each(|id| self.drop_one(id, queues));
    }

    pub(super) fn expires_at(&self) -> Option<Duration> {
        let lifetime = self.bounds.lifetime;
        self.all.values().map(|upload| upload.used_at + lifetime).min()
    }
}

impl<P: Address> Upload<P> {
    /// Asks for the next block, if there is room for one.
    fn go_on(&mut self, queues: &mut Queues<P>) {
        let goes_on = |(_, block): &mut (u64, Block)| block.more;
        if self.room > 0
            && let Some((exchange, block)) = self.current.take_if(goes_on)
        {
            let content = with_block(Content::new(Code::CONTINUE), block);
            queues.inputs.push_back(Input::Respond { exchange, content });
        }
    }

    /// The last block came once more, in another message.
    fn again(&mut self, exchange: u64, block: Block, queues: &mut Queues<P>) -> Came<P> {
        if let Some((before, _)) = self.current.replace((exchange, block)) {
            queues.inputs.push_back(Input::Drop { exchange: before });
        } else if block.more {
            // It was answered when there was room.
            self.current = None;
            let content = with_block(Content::new(Code::CONTINUE), block);
            queues.inputs.push_back(Input::Respond { exchange, content });
        }
        Came::Taken
    }
}

fn with_block(mut content: Content, block: Block) -> Content {
    if let Ok(value) = block.encode() {
        content.set(option::BLOCK1, value.as_slice());
    }
    content
}
