//! One request of this side: its body goes out, and the answer's comes in, block by block.

use bytes::Bytes;

use super::Medium;
use super::flowing::{Flowing, Opening};
use crate::coap::machine::{Address, Reason};
use crate::coap::{
    Assembly, BERT, Block, Code, Content, MAX_BODY_BYTES, MAX_NUM, MAX_SZX, Refusal, option,
    slice_within,
};

/// Times that a body is begun anew because the peer lost what it had, or has another by now.
pub const MAX_RESTARTS: u8 = 3;

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The request as a whole.
    Whole,
    /// The block of the request's body that begins here.
    Upload(usize),
    /// The block of the response's body that begins here.
    Download(usize),
}

/// What follows a response to one of a call's messages.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Send,
    Done(Content),
    /// A part of a body that is given out as it comes: the first has the response's options.
    Part {
        head: Option<Content>,
        bytes: Bytes,
        is_last: bool,
    },
    Fail(Reason),
}

#[derive(Debug)]
pub(super) struct Call<P> {
    pub(super) peer: P,
    medium: Medium,
    /// The request without a body that goes in blocks.
    pub(super) template: Content,
    /// The body that goes in blocks; where it is never whole, from the block on that is under way.
    body: Bytes,
    pub(super) is_confirmable: bool,
    /// Whether it leaves at once, where it goes as a whole.
    pub(super) is_unpaced: bool,
    pub(super) phase: Phase,
    /// Of the request's blocks, and of the response's.
    upload_szx: u8,
    download_szx: u8,
    /// The response without its body, while that comes.
    first: Content,
    download: Assembly,
    pub(super) restarts: u8,
    /// The endpoint's request through which notifications come.
    pub(super) observing: Option<u64>,
    /// The one whose response is next.
    pub(super) current: Option<u64>,
    /// Where bodies are never here as a whole.
    pub(super) flowing: Option<Flowing>,
}

impl<P: Address> Call<P> {
    /// A block option of the caller's says how large blocks are to be (RFC 7959 §2.3, §2.4).
    pub(super) fn new(peer: P, medium: Medium, mut content: Content, is_confirmable: bool) -> Self {
        let (most, room) = (medium.szx(&content), medium.room(&content));
        let asked_szx = |number| {
            let asked = content.first(number).and_then(|value| Block::decode(value, true).ok());
            asked.map(|block| block.szx.min(most))
        };
        let (upload, download) = (asked_szx(option::BLOCK1), asked_szx(option::BLOCK2));
        content.remove(option::BLOCK1);
        let is_large = content.payload.len() > whole_bytes(upload, room);
        let (upload_szx, download_szx) = (upload.unwrap_or(most), download.unwrap_or(most));
        let body = if is_large { std::mem::take(&mut content.payload) } else { Bytes::new() };
        Self {
            peer,
            medium,
            template: content,
            phase: if is_large { Phase::Upload(0) } else { Phase::Whole },
            body,
            is_confirmable,
            is_unpaced: false,
            upload_szx,
            download_szx,
            first: Content::new(Code::EMPTY),
            download: Assembly::new(MAX_BODY_BYTES),
            restarts: 0,
            observing: None,
            current: None,
            flowing: None,
        }
    }

    /// One whose bodies are never here as a whole.
    pub(super) fn opened(
        (peer, medium): (P, Medium),
        content: Content,
        is_confirmable: bool,
        opening: Opening,
    ) -> Self {
        let has_asked = content.first(option::BLOCK1).is_some();
        let mut call = Self::new(peer, medium, content, is_confirmable);
        // Until the end is here, nobody knows whether a body takes blocks.
        if opening.has_more && call.phase == Phase::Whole {
            call.body = std::mem::take(&mut call.template.payload);
            call.phase = Phase::Upload(0);
        }
        let asked = has_asked.then_some(call.upload_szx);
        let whole_bytes = whole_bytes(asked, medium.room(&call.template));
        call.flowing = Some(Flowing::new(opening, whole_bytes));
        call
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.body.len() + self.download.len()
    }

    /// Most bytes of the request's body in a message.
    fn message_bytes(&self) -> usize {
        let unit = Block { num: 0, more: false, szx: self.upload_szx }.size_bytes();
        match self.upload_szx {
            BERT => (self.medium.room(&self.template) / unit).max(1) * unit,
            _ => unit,
        }
    }

    /// How many bytes more of the request's body are to be asked for.
    pub(super) fn wants(&mut self) -> Option<usize> {
        let (here, message_bytes) = (self.body.len(), self.message_bytes());
        let flowing = self.flowing.as_mut().filter(|_| matches!(self.phase, Phase::Upload(_)));
        flowing.and_then(|flowing| flowing.wants(here, message_bytes))
    }

    /// Whether the next message waits for more of the request's body: what is not the last block
    /// is full, and the last is known to be.
    pub(super) fn is_lacking(&self) -> bool {
        let is_open = self.flowing.as_ref().is_some_and(|flowing| !flowing.has_all);
        is_open && matches!(self.phase, Phase::Upload(_)) && self.body.len() <= self.message_bytes()
    }

    /// More of the request's body; whether it was asked for.
    pub(super) fn give(&mut self, bytes: &Bytes, is_last: bool) -> bool {
        // An answer that came before the end of the body wants none of it.
        let Phase::Upload(offset) = self.phase else { return true };
        let Some(flowing) = &mut self.flowing else { return false };
        let was_wanted = flowing.came(bytes.len(), is_last);
        self.body = [&self.body[..], bytes].concat().into();
        if is_last
            && offset == 0
            && self.current.is_none()
            && self.body.len() <= flowing.whole_bytes
        {
            self.template.payload = std::mem::take(&mut self.body);
            self.phase = Phase::Whole;
            flowing.is_moving = false;
        }
        was_wanted
    }

    /// The block of the request's body that begins at `offset`, with its bytes.
    pub(super) fn upload(&self, offset: usize) -> Option<(Block, Bytes)> {
        let block = block_at(offset, self.upload_szx)?;
        let Some(flowing) = self.flowing.as_ref().filter(|flowing| flowing.is_moving) else {
            return slice_within(&self.body, block, self.medium.room(&self.template));
        };
        // What the peer has is kept no longer.
        let bytes = self.body.slice(..self.message_bytes().min(self.body.len()));
        let more = bytes.len() < self.body.len() || !flowing.has_all;
        (block.num <= MAX_NUM).then_some((Block { more, ..block }, bytes))
    }

    /// The next message; `None` where no block option can say which.
    pub(super) fn message(&self) -> Option<Content> {
        let mut content = self.template.clone();
        // Of a body that goes on, the caller may know how long it is.
        let size = content.uint(option::SIZE1);
        content.remove(option::SIZE1);
        match self.phase {
            Phase::Whole => {}
            Phase::Upload(offset) => {
                let (block, bytes) = self.upload(offset)?;
                content.set(option::BLOCK1, block.encode().ok()?.as_slice());
                let has_all = self.flowing.as_ref().is_none_or(|flowing| flowing.has_all);
                let size = if has_all { u32::try_from(self.body.len()).ok() } else { size };
                // RFC 7959 §4; see also the answers to a first block.
                if let Some(size) = size.filter(|_| offset == 0) {
                    content.push_uint(option::SIZE1, size);
                }
                if block.more {
                    content.remove(option::OBSERVE);
                    content.remove(option::BLOCK2);
                }
                content.payload = bytes;
            }
            Phase::Download(offset) => {
                let block = block_at(offset, self.download_szx)?;
                content.set(option::BLOCK2, block.encode().ok()?.as_slice());
                content.remove(option::OBSERVE);
                // RFC 8132 §2.1: what FETCH asks for is in its body.
                if content.code != Code::FETCH {
                    content.payload = Bytes::new();
                }
            }
        }
        Some(content)
    }

    /// Begins anew, if that does no harm and has not been done too often.
    fn restart(&mut self, otherwise: Next) -> Next {
        // What was given out is given out, and what was let go is not here any more.
        let is_gone = |it: &Flowing| it.has_given || it.is_moving;
        if self.flowing.as_ref().is_some_and(is_gone) {
            return otherwise;
        }
        let is_harmless = self.template.code.is_safe() || matches!(self.phase, Phase::Upload(_));
        if !is_harmless || self.restarts >= MAX_RESTARTS {
            return otherwise;
        }
        self.restarts += 1;
        // While it observes, only what it observes is asked for again.
        self.phase = match (self.observing, self.body.is_empty()) {
            (Some(_), _) => Phase::Download(0),
            (None, true) => Phase::Whole,
            (None, false) => Phase::Upload(0),
        };
        Next::Send
    }

    pub(super) fn take(&mut self, content: Content, is_notification: bool) -> Next {
        match self.phase {
            Phase::Upload(offset) => self.uploaded(offset, content),
            _ => self.downloaded(content, is_notification),
        }
    }

    /// A response to a block of the request's body.
    fn uploaded(&mut self, offset: usize, content: Content) -> Next {
        let Some((sent, bytes)) = self.upload(offset) else { return Next::Fail(Reason::Misuse) };
        let allows_bert = self.medium.allows_bert();
        let value = content.first(option::BLOCK1).map(|value| Block::decode(value, allows_bert));
        let szx = match value {
            Some(Ok(block)) => Some(block.szx),
            Some(Err(_)) => return Next::Fail(Reason::BadAnswer),
            None => None,
        };
        match content.code {
            // RFC 7959 §2.9.3: smaller blocks may do.
            Code::REQUEST_ENTITY_TOO_LARGE if offset == 0 && szx.is_some_and(|s| s < sent.szx) => {
                self.upload_szx = szx.unwrap_or(sent.szx);
                Next::Send
            }
            // RFC 7959 §2.9.2.
            Code::REQUEST_ENTITY_INCOMPLETE => self.restart(Next::Done(content)),
            code if code.is_success() && sent.more => {
                // A final answer to a part of the body would be to another request.
                if szx.is_none() && code != Code::CONTINUE {
                    // libcoap 4.3.1 takes a first message of BERT for the whole body where no Size1
                    // says more: what may be done twice is, with the blocks that it knows.
                    let may_repeat = offset == 0 && self.template.code.is_idempotent();
                    if may_repeat && sent.szx == BERT {
                        self.upload_szx = MAX_SZX;
                        return Next::Send;
                    }
                    return Next::Fail(Reason::BadAnswer);
                }
                // RFC 7959 §2.3: from now on in blocks as small as the peer wants them.
                self.upload_szx = szx.unwrap_or(sent.szx).min(sent.szx);
                self.phase = Phase::Upload(offset + bytes.len());
                if self.flowing.as_ref().is_some_and(|flowing| flowing.is_moving) {
                    self.body = self.body.slice(bytes.len()..);
                }
                Next::Send
            }
            Code::CONTINUE => Next::Fail(Reason::BadAnswer),
            _ => {
                self.phase = Phase::Download(0);
                self.downloaded(content, false)
            }
        }
    }

    /// A response, or a block of one.
    fn downloaded(&mut self, content: Content, is_notification: bool) -> Next {
        let expected = match self.phase {
            Phase::Download(offset) if !is_notification => offset,
            _ => 0,
        };
        let is_success = content.code.is_success();
        let has_given = self.flowing.as_ref().is_some_and(|flowing| flowing.has_given);
        if has_given && expected > 0 && !is_success {
            // What was given out has no end any more.
            return Next::Fail(Reason::Changed);
        }
        if content.code == Code::REQUEST_ENTITY_INCOMPLETE && expected > 0 {
            return self.restart(Next::Done(content));
        }
        let is_part = content.first(option::BLOCK2).filter(|_| is_success);
        let Some(value) = is_part else {
            // What was begun does not end with a body of its own.
            return match expected > 0 && is_success {
                true => self.restart(Next::Fail(Reason::BadAnswer)),
                false => Next::Done(content),
            };
        };
        let block = match Block::decode(value, self.medium.allows_bert()) {
            Ok(block) if block.offset() == expected => block,
            _ => return Next::Fail(Reason::BadAnswer),
        };
        if expected == 0 {
            self.first = content.clone().with_payload(Bytes::new());
            self.first.remove(option::BLOCK2);
            self.first.remove(option::SIZE2);
        } else if content.code != self.first.code
            || content.first(option::ETAG) != self.first.first(option::ETAG)
        {
            // RFC 7959 §2.4: blocks of another body.
            return self.restart(Next::Fail(Reason::Changed));
        }
        if has_given {
            return self.part(block, content.payload);
        }
        // What a server says of the size of what is given out as it comes is not believed: the last
        // block is the one behind which no more follow.
        let size = content.uint(option::SIZE2).filter(|_| self.flowing.is_none());
        match self.download.push(block, &content.payload, size) {
            Ok(true) => {
                let body = std::mem::replace(&mut self.download, Assembly::new(MAX_BODY_BYTES));
                let first = std::mem::replace(&mut self.first, Content::new(Code::EMPTY));
                Next::Done(first.with_payload(body.into_bytes()))
            }
            Ok(false) => {
                self.phase = Phase::Download(self.download.len());
                self.download_szx = block.szx;
                self.gathered()
            }
            Err(Refusal::TooLarge(_)) => Next::Fail(Reason::TooLarge),
            Err(_) => Next::Fail(Reason::BadAnswer),
        }
    }

    /// What follows a block behind which others come: it is kept while there is room for more and
    /// nothing was given out, so that what is short is whole, or can be asked for anew.
    fn gathered(&mut self) -> Next {
        let here = self.download.len();
        let Some(flowing) = self.flowing.as_mut().filter(|flowing| !flowing.gathers(here)) else {
            return Next::Send;
        };
        flowing.has_given = true;
        let begun = std::mem::replace(&mut self.download, Assembly::new(MAX_BODY_BYTES));
        Next::Part { head: Some(self.first.clone()), bytes: begun.into_bytes(), is_last: false }
    }

    /// The next block of a response that is given out as it comes.
    fn part(&mut self, block: Block, bytes: Bytes) -> Next {
        if !block.is_length(bytes.len()) {
            return Next::Fail(Reason::BadAnswer);
        }
        self.phase = Phase::Download(block.offset().saturating_add(bytes.len()));
        self.download_szx = block.szx;
        Next::Part { head: None, bytes, is_last: !block.more }
    }
}

/// A body of so many bytes goes in one message of which blocks have the size that was asked for,
/// or else in one with so much room.
fn whole_bytes(asked_szx: Option<u8>, room: usize) -> usize {
    let small = asked_szx.filter(|szx| *szx < BERT);
    small.map_or(room, |szx| Block { num: 0, more: false, szx }.size_bytes())
}

/// The block of this size that begins there.
fn block_at(offset: usize, szx: u8) -> Option<Block> {
    let first = Block { num: 0, more: false, szx };
    let num = u32::try_from(offset / first.size_bytes()).ok()?;
    Some(Block { num, ..first })
}
