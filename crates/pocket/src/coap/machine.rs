//! One call: a request, perhaps in blocks, and its answer, perhaps in blocks.

use core::time::Duration;

use crate::exchange::{Address, Arrived, Input, Machine, Output, Patience};
use crate::{Content, Error, Request};

use super::packet::{Kind, Message, Writer, option, uint};
use super::{ACK_TIMEOUT, content_of, format_of};

/// The code of POST.
const POST: u8 = 2;
/// Codes of responses (RFC 7252 §5.9, RFC 7959 §2.9).
const CONTINUE: u8 = 2 << 5 | 31;
const UNAUTHORIZED: u8 = 4 << 5 | 1;
const TOO_LARGE: u8 = 4 << 5 | 13;
/// Longest value of an Echo option (RFC 9175 §2.2.1) and of an entity tag (RFC 7252 §5.10).
const MAX_ECHO_BYTES: usize = 40;
const MAX_ETAG_BYTES: usize = 8;
/// Greatest exponent of a block's size, of 1024 bytes (RFC 7959 §2.2).
const MAX_SZX: u8 = 6;
/// Room around a block: header, token, options of an answer.
const AROUND_BLOCK_BYTES: usize = 64;

/// A value that is kept of a message.
#[derive(Clone, Copy)]
struct Kept<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Kept<N> {
    const NONE: Self = Self { bytes: [0; N], len: 0 };

    fn of(value: &[u8]) -> Option<Self> {
        let mut kept = Self { bytes: [0; N], len: value.len() };
        kept.bytes.get_mut(..value.len())?.copy_from_slice(value);
        Some(kept)
    }

    fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// What of a response's options matters here.
struct Response {
    format: u32,
    /// The value of Block2 and of Block1.
    block2: Option<u32>,
    block1: Option<u32>,
    etag: Kept<MAX_ETAG_BYTES>,
    echo: Kept<MAX_ECHO_BYTES>,
}

/// Copies of the message that is under way, and when the next one is due.
struct Copies {
    sent: u8,
    max: u8,
    first: Duration,
    timeout: Duration,
    due_at: Duration,
    end_at: Duration,
}

impl Copies {
    /// One leaves; the next one in twice the time. Behind the last one there is time for an answer
    /// in any case.
    fn count(&mut self, now: Duration) {
        self.sent += 1;
        let is_last = self.sent >= self.max;
        let wait = if is_last { self.timeout.max(ACK_TIMEOUT) } else { self.timeout };
        self.due_at = now.saturating_add(wait);
        self.timeout = self.timeout.saturating_add(self.timeout);
    }
}

/// A request and what became of it.
pub(super) struct Call<'a> {
    server: Address,
    request: &'a Request<'a>,
    /// Three bytes of the call, and one of the message that is under way: what answers an earlier
    /// one came twice.
    token: [u8; 4],
    mid: u16,
    /// Bytes of the body that the server has, and the exponent of the blocks that they go in.
    body_at: usize,
    szx1: u8,
    /// Bytes of the answer, which stand at the begin of the room, and the exponent of its blocks.
    gathered: usize,
    szx2: u8,
    /// A block of the answer is asked for; of a whole that has this tag.
    wants_more: bool,
    etag: Kept<MAX_ETAG_BYTES>,
    echo: Kept<MAX_ECHO_BYTES>,
    copies: Copies,
    now: Duration,
    /// The request was acknowledged: no more copies.
    acknowledged: bool,
    reply: Option<[u8; 4]>,
    sent: u16,
    otherwise: Error,
    done: Option<Result<Arrived, Error>>,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        server: Address,
        request: &'a Request<'a>,
        patience: &Patience,
        now: Duration,
        (token, mid): (u32, u16),
    ) -> Self {
        // RFC 7252 §4.8: up to half of the timeout is added by chance.
        let first = patience.spread(token, 2);
        Self {
            server,
            request,
            token: token.to_be_bytes(),
            mid,
            body_at: 0,
            szx1: MAX_SZX,
            gathered: 0,
            szx2: MAX_SZX,
            wants_more: false,
            etag: Kept::NONE,
            echo: Kept::NONE,
            copies: Copies {
                sent: 0,
                max: patience.copies.max(1),
                first,
                timeout: first,
                due_at: now,
                end_at: now.saturating_add(patience.limit),
            },
            now,
            acknowledged: false,
            reply: None,
            sent: 0,
            otherwise: Error::Unanswered,
            done: None,
        }
    }

    /// The message id that the next call begins with.
    pub(super) fn next_mid(&self) -> u16 {
        self.mid.wrapping_add(1)
    }

    /// What happened; a datagram that answers something else, or nothing, is left out.
    pub(super) fn handle_input(&mut self, now: Duration, input: Input<'_>) {
        self.now = now;
        let Input::Datagram { from, room, at, len } = input else { return };
        if from != self.server {
            self.otherwise = Error::OtherAddress;
            return;
        }
        let end = at.saturating_add(len);
        let Some(datagram) = room.get(at..end) else {
            // Of what does not fit the header tells whether it is the answer.
            if room.get(at.saturating_add(4)..at.saturating_add(8)) == Some(&self.token) {
                self.done = Some(Err(Error::NoRoom));
            }
            return;
        };
        let Ok(message) = Message::decode(datagram) else {
            self.otherwise = Error::BadAnswer;
            return;
        };
        let is_answer = self.is_answer(&message);
        if !is_answer {
            return;
        }
        let len = message.payload.len();
        match self.answer(&message) {
            Ok(false) => {}
            // What came goes behind what came before.
            Ok(true) => {
                let to = self.gathered;
                self.gathered = to.saturating_add(len);
                room.copy_within(end - len..end, to);
            }
            Err(error) => self.done = Some(Err(error)),
        }
    }

    /// Whether a message answers the request; what else it says is noted.
    fn is_answer(&mut self, message: &Message<'_>) -> bool {
        // RFC 7252 §4.5: a copy of what was taken is acknowledged again, and that is all.
        let [call @ .., _] = &self.token;
        let of_call = message.code >> 5 >= 2
            && message.token.len() == self.token.len()
            && message.token.starts_with(call);
        let has_token = of_call && message.token == self.token;
        let of_mine = message.mid == self.mid && self.copies.sent > 0;
        match message.kind {
            Kind::Reset if of_mine => self.done = Some(Err(Error::Reset)),
            Kind::Acknowledgement if of_mine && message.code == 0 => self.acknowledged = true,
            Kind::Acknowledgement if of_mine && has_token => return true,
            Kind::Confirmable if of_call => {
                self.reply = Some(control(Kind::Acknowledgement, message.mid));
                return has_token;
            }
            Kind::NonConfirmable if has_token => return true,
            // RFC 7252 §4.2: what cannot be processed is rejected.
            Kind::Confirmable => {
                self.reply = Some(control(Kind::Reset, message.mid));
                self.otherwise = Error::OtherTransaction;
            }
            _ => self.otherwise = Error::OtherTransaction,
        }
        false
    }

    /// Acts on a response, and says whether its payload is to be kept.
    fn answer(&mut self, message: &Message<'_>) -> Result<bool, Error> {
        let options = Response::of(message)?;
        if message.code == UNAUTHORIZED && options.echo.len > 0 {
            if self.echo.len > 0 {
                return Err(Error::Challenged);
            }
            self.echo = options.echo;
            self.body_at = 0;
            self.again();
            return Ok(false);
        }
        // A smaller block than the one that was sent is what the server wants from now on.
        let block1 = options.block1.map(Block::of);
        let is_smaller = block1.is_some_and(|block| block.szx < self.szx1);
        if message.code == CONTINUE || (message.code == TOO_LARGE && is_smaller) {
            let block = block1.ok_or(Error::BadBlock)?;
            return self.go_on(message.code, block).map(|()| false);
        }
        let status = u16::from(message.code >> 5) * 100 + u16::from(message.code & 0x1f);
        let is_part = options.block2.is_some() && message.code >> 5 == 2;
        if !is_part {
            let (content, at) = (content_of(options.format), self.gathered);
            let (len, sent) = (message.payload.len(), self.sent);
            self.done = Some(Ok(Arrived { status, content, at, len, sent }));
            return Ok(true);
        }
        let block = Block::of(options.block2.unwrap_or_default());
        let at = block.offset();
        if block.szx > MAX_SZX {
            return Err(Error::Unsupported);
        }
        let is_other = self.wants_more && options.etag.as_slice() != self.etag.as_slice();
        let len = message.payload.len();
        let size = block.size();
        if at != self.gathered || is_other || len > size || (block.more && len != size) {
            return Err(Error::BadBlock);
        }
        self.etag = options.etag;
        self.szx2 = block.szx;
        if block.more {
            self.wants_more = true;
            self.again();
        } else {
            let (content, len, sent) =
                (content_of(options.format), at.saturating_add(len), self.sent);
            self.done = Some(Ok(Arrived { status, content, at: 0, len, sent }));
        }
        Ok(true)
    }

    /// Sends the next block of the body, or the first ones again in smaller blocks.
    fn go_on(&mut self, code: u8, block: Block) -> Result<(), Error> {
        if block.szx > MAX_SZX {
            return Err(Error::Unsupported);
        }
        if code == CONTINUE {
            // RFC 7959 §2.3: the number is that of the block that was sent, whichever size is asked
            // for from now on.
            let sent = u32::try_from(self.body_at >> (self.szx1 + 4)).ok();
            if sent != Some(block.num) {
                return Err(Error::BadBlock);
            }
            let next = self.body_at.saturating_add(size_of(self.szx1));
            if next >= self.request.body.len() {
                return Err(Error::BadBlock);
            }
            self.body_at = next;
        }
        self.szx1 = self.szx1.min(block.szx);
        self.again();
        Ok(())
    }

    /// Makes ready for a request with a message id and a token of its own.
    fn again(&mut self) {
        self.mid = self.mid.wrapping_add(1);
        let [.., count] = &mut self.token;
        *count = count.wrapping_add(1);
        self.copies.sent = 0;
        self.copies.timeout = self.copies.first;
        self.copies.due_at = self.now;
        self.acknowledged = false;
    }

    /// What is to be done next; what is sent is written into `room` each time.
    pub(super) fn poll_output(&mut self, room: &mut [u8]) -> Output {
        if let Some(reply) = self.reply.take() {
            return Output::Control(reply);
        }
        if let Some(done) = self.done {
            return Output::Done(done);
        }
        if self.now >= self.copies.end_at {
            return Output::Done(Err(self.otherwise));
        }
        if self.acknowledged {
            return Output::WaitUntil(self.copies.end_at, self.gathered);
        }
        if self.now < self.copies.due_at {
            return Output::WaitUntil(self.copies.due_at.min(self.copies.end_at), self.gathered);
        }
        if self.copies.sent >= self.copies.max {
            return Output::Done(Err(self.otherwise));
        }
        self.copies.count(self.now);
        self.sent = self.sent.saturating_add(1);
        let at = self.gathered;
        match self.encode(room.get_mut(at..).unwrap_or_default()) {
            Ok(len) => Output::Transmit { at, len },
            Err(error) => Output::Done(Err(error)),
        }
    }

    /// Writes the request, or its next block, and returns its length.
    fn encode(&self, room: &mut [u8]) -> Result<usize, Error> {
        let Request { uri, content, body, .. } = *self.request;
        let fits = szx_within(room.len())?;
        let mut writer = Writer::new(room, Kind::Confirmable, POST, self.mid, &self.token)?;
        let is_path = uri.as_bytes().first() == Some(&b'/');
        if is_path {
            let segments = uri.as_bytes().split(|byte| *byte == b'/');
            for segment in segments.filter(|segment| !segment.is_empty()) {
                writer.option(option::URI_PATH, segment)?;
            }
        }
        let format = format_of(content);
        if content != Content::Other {
            writer.uint(option::CONTENT_FORMAT, format)?;
            writer.uint(option::ACCEPT, format)?;
        }
        let szx2 = self.szx2.min(fits);
        if self.wants_more || szx2 < MAX_SZX {
            let num = u32::try_from(self.gathered >> (szx2 + 4)).map_err(|_| Error::NoRoom)?;
            writer.uint(option::BLOCK2, num << 4 | u32::from(szx2))?;
        }
        let mut payload = if self.wants_more { &[] } else { body };
        if payload.len() > size_of(self.szx1) || self.body_at > 0 {
            let end = self.body_at.saturating_add(size_of(self.szx1)).min(body.len());
            payload = payload.get(self.body_at..end).unwrap_or_default();
            if !self.wants_more {
                let num =
                    u32::try_from(self.body_at >> (self.szx1 + 4)).map_err(|_| Error::Misuse)?;
                let more = u32::from(end < body.len());
                writer.uint(option::BLOCK1, num << 4 | more << 3 | u32::from(self.szx1))?;
            }
        }
        if !is_path {
            writer.option(option::PROXY_URI, uri.as_bytes())?;
        }
        if self.echo.len > 0 {
            writer.option(option::ECHO, self.echo.as_slice())?;
        }
        writer.payload(payload)
    }
}

/// A message without options and payload.
fn control(kind: Kind, mid: u16) -> [u8; 4] {
    let [high, low] = mid.to_be_bytes();
    [1 << 6 | (kind as u8) << 4, 0, high, low]
}

/// The value of a block option (RFC 7959 §2.2).
#[derive(Clone, Copy)]
struct Block {
    num: u32,
    more: bool,
    szx: u8,
}

impl Block {
    fn of(value: u32) -> Self {
        let [low, ..] = value.to_le_bytes();
        Self { num: value >> 4, more: low & 8 != 0, szx: low & 7 }
    }

    fn size(self) -> usize {
        size_of(self.szx)
    }

    fn offset(self) -> usize {
        usize::try_from(u64::from(self.num) << (self.szx + 4)).unwrap_or(usize::MAX)
    }
}

/// Bytes of a block.
fn size_of(szx: u8) -> usize {
    1 << (szx.min(MAX_SZX) + 4)
}

/// The greatest exponent whose blocks have room.
fn szx_within(room_len: usize) -> Result<u8, Error> {
    let mut szx = MAX_SZX;
    while size_of(szx) + AROUND_BLOCK_BYTES > room_len {
        szx = szx.checked_sub(1).ok_or(Error::NoRoom)?;
    }
    Ok(szx)
}

impl Response {
    /// Reads a response's options; one that must be understood and is not is an error.
    fn of(message: &Message<'_>) -> Result<Self, Error> {
        let mut options =
            Self { format: 0, block2: None, block1: None, etag: Kept::NONE, echo: Kept::NONE };
        for (number, value) in message.options {
            let block = || uint(value).filter(|_| value.len() <= 3).ok_or(Error::Unsupported);
            match number {
                option::ETAG => options.etag = Kept::of(value).ok_or(Error::Unsupported)?,
                option::CONTENT_FORMAT => options.format = uint(value).unwrap_or(u32::MAX),
                option::BLOCK2 => options.block2 = Some(block()?),
                option::BLOCK1 => options.block1 = Some(block()?),
                option::ECHO => options.echo = Kept::of(value).ok_or(Error::Unsupported)?,
                // RFC 7252 §5.4.1: odd numbers are critical.
                _ if number & 1 == 1 => return Err(Error::Unsupported),
                _ => {}
            }
        }
        Ok(options)
    }
}

impl Machine for Call<'_> {
    fn take(&mut self, now: Duration, input: Input<'_>) {
        self.handle_input(now, input);
    }

    fn give(&mut self, room: &mut [u8]) -> Output {
        self.poll_output(room)
    }
}
