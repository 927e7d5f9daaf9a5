//! Server-sent events, the media type `text/event-stream` (WHATWG HTML §9.2): written, and read
//! from pieces of any size in bounded memory.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::Error;

/// Most bytes of an event's data, and of a line, whatever a reader is told.
pub const MAX_EVENT_BYTES: usize = 1 << 20;
/// Most bytes of an event's name, and of its id.
pub const MAX_NAME_BYTES: usize = 1024;

/// The name of an event whose data is in base64, as events are text.
pub const BINARY: &str = "base64";

/// What precedes a stream in UTF-8, or not.
const BOM: [u8; 3] = [0xef, 0xbb, 0xbf];

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// What the client says it has when it comes back; as of the last event that had one.
    pub id: String,
    /// Its name; empty for `message`.
    pub name: String,
    /// Lines, with a line feed between two.
    pub data: String,
}

/// Whether text comes out of an event as it went in: a carriage return would be a line feed.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    !text.contains('\r')
}

impl Event {
    /// One whose data is no text: in base64 (RFC 4648 §4), with the name [`BINARY`].
    #[must_use]
    pub fn of_binary(id: String, data: &[u8]) -> Self {
        Self { id, name: BINARY.to_owned(), data: STANDARD.encode(data) }
    }

    /// What an event by [`Event::of_binary`] has; `None` where it is none.
    #[must_use]
    pub fn binary(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.data).ok().filter(|_| self.name == BINARY)
    }

    /// Writes the event. A line break in the id or the name, which would end the field, and what
    /// follows it is left out, and so is an id with what no id has in it.
    pub fn write(&self, out: &mut String) {
        let id = Some(&self.id).filter(|id| !id.contains('\0'));
        for (field, value) in [("id", id), ("event", Some(&self.name))] {
            let line = value.and_then(|value| value.split(['\r', '\n']).next());
            if let Some(line) = line.filter(|line| !line.is_empty()) {
                out.extend([field, ": ", line, "\n"]);
            }
        }
        for line in self.data.split('\n') {
            out.extend(["data: ", line, "\n"]);
        }
        out.push('\n');
    }
}

/// Writes how long a client that has lost the stream waits before it asks again.
pub fn write_retry(milliseconds: u64, out: &mut String) {
    out.extend(["retry: ", &milliseconds.to_string(), "\n"]);
}

/// Reads events from a stream as it comes.
#[derive(Debug)]
pub struct Reader {
    max_bytes: usize,
    line: Vec<u8>,
    event: Event,
    /// The data that came, each line with its end.
    data: String,
    /// Whether the last byte was a carriage return, whose line feed is none of its own.
    after_return: bool,
    /// Whether a line has ended, so that no byte order mark follows.
    has_begun: bool,
}

impl Reader {
    /// One at the beginning of a stream, that takes events of up to so many bytes, and never of
    /// more than [`MAX_EVENT_BYTES`].
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes: max_bytes.min(MAX_EVENT_BYTES),
            line: Vec::new(),
            event: Event::default(),
            data: String::new(),
            after_return: false,
            has_begun: false,
        }
    }

    /// Takes bytes from the front of `bytes` until an event is whole, or all of them. An event that
    /// the stream's end cuts off is none (WHATWG HTML §9.2.6).
    ///
    /// Refuses a line or an event over the reader's bound, an id or a name over
    /// [`MAX_NAME_BYTES`].
    pub fn take(&mut self, bytes: &mut &[u8]) -> Result<Option<Event>, Error> {
        loop {
            if self.after_return && bytes.first() == Some(&b'\n') {
                *bytes = bytes.get(1..).unwrap_or_default();
            }
            self.after_return &= bytes.is_empty();
            let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            let len = self.line.len() + line.len();
            check("line of an event stream in bytes", len, self.max_bytes)?;
            self.line.extend_from_slice(line);
            *bytes = rest;
            let Some((break_byte, rest)) = rest.split_first() else { return Ok(None) };
            *bytes = rest;
            self.after_return = *break_byte == b'\r';
            if let Some(event) = self.end_line()? {
                return Ok(Some(event));
            }
        }
    }

    /// What the line that has ended says.
    fn end_line(&mut self) -> Result<Option<Event>, Error> {
        let line = std::mem::take(&mut self.line);
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let line = line.strip_prefix(&BOM[..]).filter(|_| is_first).unwrap_or(&line);
        let line = String::from_utf8_lossy(line);
        if line.is_empty() {
            return Ok(self.dispatch());
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                let len = self.data.len() + value.len() + 1;
                check("event in bytes", len, self.max_bytes)?;
                self.data.push_str(value);
                self.data.push('\n');
            }
            "event" => {
                check("name of an event in bytes", value.len(), MAX_NAME_BYTES)?;
                value.clone_into(&mut self.event.name);
            }
            "id" if !value.contains('\0') => {
                check("id of an event in bytes", value.len(), MAX_NAME_BYTES)?;
                value.clone_into(&mut self.event.id);
            }
            // Comments, what only a client that loses the stream needs, and what nobody knows.
            _ => {}
        }
        Ok(None)
    }

    fn dispatch(&mut self) -> Option<Event> {
        let name = std::mem::take(&mut self.event.name);
        let mut data = std::mem::take(&mut self.data);
        data.pop().map(|_| Event { id: self.event.id.clone(), name, data })
    }
}

fn check(what: &'static str, len: usize, limit: usize) -> Result<(), Error> {
    match len <= limit {
        true => Ok(()),
        false => Err(Error::Limit { what, value: len as u64, limit: limit as u64 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Id, name and data.
    type Fields = (String, String, String);

    fn read(mut bytes: &[u8], step: usize) -> Vec<Fields> {
        let (mut reader, mut events) = (Reader::new(1000), Vec::new());
        while !bytes.is_empty() {
            let (mut piece, rest) = bytes.split_at(step.min(bytes.len()));
            bytes = rest;
            while let Some(event) = reader.take(&mut piece).unwrap() {
                events.push((event.id, event.name, event.data));
            }
            assert!(piece.is_empty());
        }
        events
    }

    /// The examples of WHATWG HTML §9.2.6, and its rules beside them.
    #[test]
    fn a_stream_is_read_whatever_its_pieces() {
        let event =
            |id: &str, name: &str, data: &str| (id.to_owned(), name.to_owned(), data.into());
        let cases: [(&str, Vec<Fields>); 8] = [
            ("data: YHOO\ndata: +2\ndata: 10\n\n", vec![event("", "", "YHOO\n+2\n10")]),
            (
                ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n\
                 data:  third\n\n",
                vec![
                    event("1", "", "first event"),
                    event("", "", "second event"),
                    event("", "", " third"),
                ],
            ),
            ("data\n\ndata\ndata\n\ndata:", vec![event("", "", ""), event("", "", "\n")]),
            ("data:test\n\ndata: test\n\n", vec![event("", "", "test"), event("", "", "test")]),
            ("event: add\r\ndata: 7\r\n\r\nid: x\n\n", vec![event("", "add", "7")]),
            (
                "data: a\rdata: b\r\rdata: c\r\n\r\n",
                vec![event("", "", "a\nb"), event("", "", "c")],
            ),
            ("\u{feff}data: a\n\n\u{feff}data: b\n\n", vec![event("", "", "a")]),
            (
                "id: 5\ndata: a\n\nid: a\0b\nretry: 3\nother: x\ndata: b\n\n",
                vec![event("5", "", "a"), event("5", "", "b")],
            ),
        ];
        for (stream, expected) in cases {
            for step in [1, 2, 3, 1000] {
                assert_eq!(read(stream.as_bytes(), step), expected, "{stream:?} by {step}");
            }
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for data in ["", "a", "a\n", "\n\n", " a\n b", "data: x", "é\u{2028}"] {
            let event = Event { id: "7-0a".into(), name: "base64".into(), data: data.into() };
            let mut text = String::new();
            write_retry(500, &mut text);
            event.write(&mut text);
            let events = read(text.as_bytes(), 1000);
            assert_eq!(events, [("7-0a".to_owned(), "base64".to_owned(), data.to_owned())]);
        }
        let mut text = String::new();
        Event { id: "1\ndata: x".into(), name: "\rx".into(), data: String::new() }.write(&mut text);
        assert_eq!(text, "id: 1\ndata: \n\n");
        let binary = Event::of_binary(String::new(), &[0xff, 0]);
        assert_eq!((&*binary.data, binary.binary()), ("/wA=", Some(vec![0xff, 0])));
        assert_eq!(Event { name: String::new(), ..binary }.binary(), None);
        assert!(is_plain("a\nb") && !is_plain("a\r\nb"));
    }

    #[test]
    fn what_does_not_end_is_refused() {
        let refused = |stream: Vec<u8>| {
            let mut reader = Reader::new(usize::MAX);
            let mut bytes = &stream[..];
            matches!(reader.take(&mut bytes), Err(Error::Limit { .. }))
        };
        assert!(refused(vec![b'x'; MAX_EVENT_BYTES + 1]));
        assert!(refused(b"data: 0123456789\n".repeat(MAX_EVENT_BYTES / 11 + 1)));
        assert!(refused([b"id: ", &[b'x'; MAX_NAME_BYTES + 1][..], b"\n"].concat()));
        assert!(refused([b"event: ", &[b'x'; MAX_NAME_BYTES + 1][..], b"\n"].concat()));
        assert!(!refused(b"data: 0123456789\n".repeat(MAX_EVENT_BYTES / 11)));
    }
}
