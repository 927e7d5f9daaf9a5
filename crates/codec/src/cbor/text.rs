//! CBOR into JSON.

use proto::cbor::{
    FALSE, Head, Major, NULL, TAG_BIGNUM, TAG_DECIMAL, TAG_NEGATIVE_BIGNUM, TRUE, double_of_half,
};

use crate::{Error, Limits, Step, StreamDecoder};

use super::{item_error, malformed, number, over};

const BASE64URL: [u8; 64] = *b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The JSON text of one item with all that is nested in it, without white space. Errors: it is not
/// well-formed, is followed by anything, has a key that is not a text, or passes a limit.
pub fn to_json(cbor: &[u8], limits: &Limits) -> Result<Vec<u8>, Error> {
    let mut decoder = JsonDecoder::new(limits);
    let mut out = Vec::with_capacity(cbor.len() * 2);
    let used = decoder.run(cbor, &mut out)?;
    decoder.finish(used, cbor.len())?;
    Ok(out)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Array,
    Map,
    Text,
    Bytes,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    open: Open,
    /// Items to come, keys and values apart; `None` until a break.
    left: Option<u64>,
    /// Items that came.
    count: u64,
}

/// The JSON text of an item that comes in parts, in memory that does not grow with it but for the
/// depth.
#[derive(Debug)]
pub struct JsonDecoder {
    frames: Vec<Frame>,
    /// Bytes to come of the string that is open, and whether it is a text.
    string: Option<(u64, bool)>,
    /// Bytes that make no whole group of base64 yet.
    group: Vec<u8>,
    /// A tag came whose item has not.
    tagged: bool,
    done: bool,
    offset: u64,
    made: u64,
    limits: Limits,
}

impl JsonDecoder {
    /// Reads an item from its begin.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            frames: Vec::new(),
            string: None,
            group: Vec::new(),
            tagged: false,
            done: false,
            offset: 0,
            made: 0,
            limits: *limits,
        }
    }

    fn odd(&self, what: &str) -> Error {
        malformed(self.offset, what)
    }

    fn finish(&self, used: usize, len: usize) -> Result<(), Error> {
        if !self.done {
            return Err(self.odd("the item ends too early"));
        }
        if used < len {
            return Err(self.odd("bytes behind the item"));
        }
        Ok(())
    }

    /// Appends what whole parts of `input` say, and tells how much was used.
    fn run(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, Error> {
        let mut at = 0;
        while !self.done {
            let before = out.len();
            let rest = input.get(at..).unwrap_or_default();
            let used = match self.string {
                Some((left, text)) => self.string_part(rest, left, text, out)?,
                None => self.item(rest, out)?,
            };
            self.made += (out.len() - before) as u64;
            if self.made > self.limits.output_bytes {
                out.truncate(before);
                let most = self.limits.output_bytes;
                return Err(over(format!("more than the {most} bytes of output_bytes come out")));
            }
            let Some(used) = used else { break };
            at += used;
            self.offset += used as u64;
        }
        Ok(at)
    }

    /// One head, or a number with its tag; `None` while it is not complete.
    fn item(&mut self, rest: &[u8], out: &mut Vec<u8>) -> Result<Option<usize>, Error> {
        let head = Head::take(rest).map_err(|error| item_error(error, self.offset))?;
        let Some(head) = head else { return Ok(None) };
        let used = usize::from(head.len);
        if head.major == Major::Simple && head.is_indefinite() {
            self.end(out)?;
            return Ok(Some(used));
        }
        let chunk =
            matches!(self.frames.last(), Some(Frame { open: Open::Text | Open::Bytes, .. }));
        if !chunk && !self.tagged {
            self.check_key(head)?;
        }
        if head.major == Major::Tag {
            return self.tag(head, rest, out);
        }
        if chunk {
            return self.chunk(head).map(|()| Some(used));
        }
        self.separate(out);
        self.tagged = false;
        match head.major {
            Major::Unsigned => out.extend_from_slice(head.argument.to_string().as_bytes()),
            Major::Negative => {
                let value = -1 - i128::from(head.argument);
                out.extend_from_slice(value.to_string().as_bytes());
            }
            Major::Bytes | Major::Text => {
                out.push(b'"');
                let text = head.major == Major::Text;
                if head.is_indefinite() {
                    self.open(if text { Open::Text } else { Open::Bytes }, None)?;
                } else {
                    self.string = Some((head.argument, text));
                }
                return Ok(Some(used));
            }
            Major::Array | Major::Map => {
                self.start(head, out)?;
                return Ok(Some(used));
            }
            _ => simple(head, out),
        }
        self.close(out);
        Ok(Some(used))
    }

    /// JSON's keys are strings.
    fn check_key(&self, head: Head) -> Result<(), Error> {
        match self.frames.last() {
            Some(Frame { open: Open::Map, count, .. })
                if count % 2 == 0 && head.major != Major::Text =>
            {
                Err(self.odd("a key of JSON is a text"))
            }
            _ => Ok(()),
        }
    }

    /// Numbers have their own tags; others say nothing to JSON (RFC 8949 §6.1).
    fn tag(&mut self, head: Head, rest: &[u8], out: &mut Vec<u8>) -> Result<Option<usize>, Error> {
        if matches!(self.frames.last(), Some(Frame { open: Open::Text | Open::Bytes, .. })) {
            return Err(self.odd("a chunk of another type"));
        }
        let numbers = [TAG_BIGNUM, TAG_NEGATIVE_BIGNUM, TAG_DECIMAL, number::TAG_JSON];
        if !numbers.contains(&head.argument) {
            self.tagged = true;
            return Ok(Some(usize::from(head.len)));
        }
        let Some((text, used)) = number::decode(rest, self.offset)? else { return Ok(None) };
        self.separate(out);
        self.tagged = false;
        out.extend_from_slice(text.as_bytes());
        self.close(out);
        Ok(Some(used))
    }

    /// A chunk of a string of indefinite length (RFC 8949 §3.2.3).
    fn chunk(&mut self, head: Head) -> Result<(), Error> {
        let text = matches!(self.frames.last(), Some(Frame { open: Open::Text, .. }));
        let due = if text { Major::Text } else { Major::Bytes };
        if head.major != due || head.is_indefinite() {
            return Err(self.odd("a chunk of another type"));
        }
        self.string = (head.argument > 0).then_some((head.argument, text));
        Ok(())
    }

    fn start(&mut self, head: Head, out: &mut Vec<u8>) -> Result<(), Error> {
        let map = head.major == Major::Map;
        let left = match (head.is_indefinite(), map) {
            (true, _) => None,
            (false, false) => Some(head.argument),
            (false, true) => Some(
                head.argument.checked_mul(2).ok_or_else(|| self.odd("a map of so many pairs"))?,
            ),
        };
        out.push(if map { b'{' } else { b'[' });
        self.open(if map { Open::Map } else { Open::Array }, left)?;
        if left == Some(0) {
            self.frames.pop();
            out.push(if map { b'}' } else { b']' });
            self.close(out);
        }
        Ok(())
    }

    fn open(&mut self, open: Open, left: Option<u64>) -> Result<(), Error> {
        if self.frames.len() >= self.limits.depth {
            return Err(over(format!("nesting over {} levels", self.limits.depth)));
        }
        self.frames.push(Frame { open, left, count: 0 });
        Ok(())
    }

    /// A break (RFC 8949 §3.2.1).
    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let whole = |frame: &Frame| {
            frame.left.is_none() && (frame.open != Open::Map || frame.count.is_multiple_of(2))
        };
        let Some(frame) = self.frames.pop().filter(|frame| whole(frame) && !self.tagged) else {
            return Err(self.odd("a break where an item is due"));
        };
        if frame.open == Open::Bytes {
            self.end_group(out);
        }
        out.push(match frame.open {
            Open::Array => b']',
            Open::Map => b'}',
            Open::Text | Open::Bytes => b'"',
        });
        self.close(out);
        Ok(())
    }

    /// What stands between items.
    fn separate(&self, out: &mut Vec<u8>) {
        match self.frames.last() {
            Some(Frame { open: Open::Map, count, .. }) if count % 2 == 1 => out.push(b':'),
            Some(Frame { count: 1.., .. }) => out.push(b','),
            _ => {}
        }
    }

    /// An item has ended, and with it perhaps what it is in.
    fn close(&mut self, out: &mut Vec<u8>) {
        while let Some(frame) = self.frames.last_mut() {
            frame.count += 1;
            let Some(left) = &mut frame.left else { return };
            *left -= 1;
            if *left > 0 {
                return;
            }
            out.push(if frame.open == Open::Map { b'}' } else { b']' });
            self.frames.pop();
        }
        self.done = true;
    }

    /// Some of a string's bytes; `None` if nothing can be done before more come.
    fn string_part(
        &mut self,
        rest: &[u8],
        left: u64,
        text: bool,
        out: &mut Vec<u8>,
    ) -> Result<Option<usize>, Error> {
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        let bytes = rest.get(..most).unwrap_or(rest);
        let used = if text { self.text_part(bytes, bytes.len() < most, out)? } else { bytes.len() };
        if !text {
            self.base64(bytes, out);
        }
        if used as u64 == left {
            self.string = None;
            // A chunk is no item; its string ends with a break.
            if !matches!(self.frames.last(), Some(Frame { open: Open::Text | Open::Bytes, .. })) {
                self.end_group(out);
                out.push(b'"');
                self.close(out);
            }
            return Ok(Some(used));
        }
        self.string = Some((left - used as u64, text));
        Ok((used > 0).then_some(used))
    }

    /// Whole characters of `bytes`, escaped as RFC 8259 §7 demands and no more.
    fn text_part(&self, bytes: &[u8], more: bool, out: &mut Vec<u8>) -> Result<usize, Error> {
        let text = match str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) if more && error.error_len().is_none() => {
                str::from_utf8(bytes.get(..error.valid_up_to()).unwrap_or_default())
                    .unwrap_or_default()
            }
            Err(_) => return Err(self.odd("a text that is not UTF-8")),
        };
        let mut from = 0;
        for (at, byte) in text.bytes().enumerate() {
            let escape: &[u8] = match byte {
                b'"' => b"\\\"",
                b'\\' => b"\\\\",
                b'\n' => b"\\n",
                b'\r' => b"\\r",
                b'\t' => b"\\t",
                8 => b"\\b",
                12 => b"\\f",
                ..0x20 => &format!("\\u{byte:04x}").into_bytes(),
                _ => continue,
            };
            out.extend_from_slice(text.as_bytes().get(from..at).unwrap_or_default());
            out.extend_from_slice(escape);
            from = at + 1;
        }
        out.extend_from_slice(text.as_bytes().get(from..).unwrap_or_default());
        Ok(text.len())
    }

    /// RFC 8949 §6.1: bytes as base64url without padding.
    fn base64(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for byte in bytes {
            self.group.push(*byte);
            if self.group.len() == 3 {
                self.end_group(out);
            }
        }
    }

    fn end_group(&mut self, out: &mut Vec<u8>) {
        if self.group.is_empty() {
            return;
        }
        let byte = |at: usize| u32::from(self.group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..=self.group.len() {
            let shift = 18 - 6 * u32::try_from(digit).unwrap_or(0);
            out.push(BASE64URL[(bits >> shift & 63) as usize]);
        }
        self.group.clear();
    }
}

fn simple(head: Head, out: &mut Vec<u8>) {
    let low = |bits: u64| u32::try_from(bits).unwrap_or(0);
    let float = match head.info {
        25 => double_of_half(u16::try_from(head.argument).unwrap_or(0)),
        26 => f64::from(f32::from_bits(low(head.argument))),
        27 => f64::from_bits(head.argument),
        _ => {
            let word: &[u8] = match u8::try_from(head.argument) {
                Ok(FALSE) => b"false",
                Ok(TRUE) => b"true",
                Ok(NULL) => b"null",
                // RFC 8949 §6.1: what has no counterpart.
                _ => b"null",
            };
            out.extend_from_slice(word);
            return;
        }
    };
    out.extend_from_slice(number::show_float(float).as_bytes());
}

impl StreamDecoder for JsonDecoder {
    fn decode(&mut self, input: &[u8], last: bool, out: &mut Vec<u8>) -> Result<Step, Error> {
        let used = self.run(input, out)?;
        if last || self.done {
            self.finish(used, input.len())?;
        }
        Ok(Step { used, done: self.done && last })
    }
}
