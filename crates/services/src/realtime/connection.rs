//! A connection's place at the engine: its buffer is there before it is.

use std::io;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::fd::AsRawFd as _;

use proto::http1::{Body, Framing};

use super::http::{
    BadHead, Chunks, Head, Length, MAX_BODY_BYTES, MAX_HEAD_BYTES, head_bytes, join_chunks,
    read_head,
};

/// Most bytes that are read of a client behind its last answer.
const MAX_LEFT_BYTES: usize = 1 << 20;

/// How the content of the request that is coming ends.
#[derive(Debug)]
enum Coming {
    /// Its head is not whole.
    Head,
    /// So many bytes of head, then so many of content.
    Known { head: usize, content: usize },
    /// So many bytes of head, then chunks, of which so many bytes were looked at.
    Chunked { head: usize, body: Body, seen: usize },
}

/// A place for a connection.
#[derive(Debug)]
pub(super) struct ConnectionPlace {
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
    filled: usize,
    coming: Coming,
    /// Whether what is in the buffer may be a whole request.
    pub(super) is_pending: bool,
    /// The class of its last message.
    pub(super) class: usize,
    /// From where it comes.
    pub(super) source: Option<IpAddr>,
    /// Whether a message of it was taken.
    pub(super) is_known: bool,
    /// When bytes last came, and when the request that is coming began.
    pub(super) active_ns: u64,
    pub(super) begun_ns: Option<u64>,
    /// Since when it has waited for its turn.
    pub(super) ready_ns: Option<u64>,
    /// It was answered for the last time; so many bytes were read and left since.
    left_bytes: Option<usize>,
}

/// What a read found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// Bytes.
    Some,
    /// Nothing now.
    Nothing,
    /// The end, or a connection that broke.
    End,
}

/// What is to be done with what has come.
pub(super) enum Next<'a> {
    /// The request is not whole.
    More {
        /// The client waits to be told to go on.
        is_asked: bool,
    },
    /// A whole request: its head, and its content.
    Request(Head<'a>, &'a [u8]),
    /// No request at all.
    Bad(BadHead),
}

impl ConnectionPlace {
    pub(super) fn new() -> Self {
        Self {
            stream: None,
            buffer: vec![0; MAX_HEAD_BYTES + MAX_BODY_BYTES],
            filled: 0,
            coming: Coming::Head,
            is_pending: false,
            class: 0,
            source: None,
            is_known: false,
            active_ns: 0,
            begun_ns: None,
            ready_ns: None,
            left_bytes: None,
        }
    }

    pub(super) fn open(
        &mut self,
        (stream, source): (TcpStream, IpAddr),
        class: usize,
        now_ns: u64,
    ) {
        self.close();
        (self.stream, self.source, self.is_known) = (Some(stream), Some(source), false);
        (self.class, self.active_ns) = (class, now_ns);
    }

    pub(super) fn close(&mut self) {
        self.stream = None;
        (self.filled, self.coming, self.is_pending) = (0, Coming::Head, false);
        (self.begun_ns, self.ready_ns, self.left_bytes) = (None, None, None);
    }

    /// Ends it behind what was sent, which a client that is still sending would not see if it were
    /// closed at once (RFC 9112 §9.6): what comes yet is left, up to a bound.
    pub(super) fn linger(&mut self, now_ns: u64) {
        let Some(stream) = &self.stream else { return };
        // Where it is closed already, the next read finds that.
        let _ = stream.shutdown(Shutdown::Write);
        (self.filled, self.coming, self.is_pending) = (0, Coming::Head, false);
        (self.left_bytes, self.begun_ns) = (Some(0), Some(now_ns));
    }

    /// Whether it was answered for the last time.
    pub(super) fn is_lingering(&self) -> bool {
        self.left_bytes.is_some()
    }

    pub(super) fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// The descriptor to poll; -1, which poll(2) passes over, where there is none.
    pub(super) fn descriptor(&self) -> i32 {
        self.stream.as_ref().map_or(-1, |stream| stream.as_raw_fd())
    }

    /// Reads what is there, once.
    pub(super) fn receive(&mut self, now_ns: u64) -> Received {
        let Some(stream) = &self.stream else { return Received::End };
        let Some(room) = self.buffer.get_mut(self.filled..).filter(|room| !room.is_empty()) else {
            return Received::Nothing;
        };
        match io::Read::read(&mut &*stream, room) {
            Ok(0) => Received::End,
            Ok(count) if self.left_bytes.is_some() => {
                let left_bytes = self.left_bytes.unwrap_or(0) + count;
                self.left_bytes = Some(left_bytes);
                if left_bytes > MAX_LEFT_BYTES { Received::End } else { Received::Nothing }
            }
            Ok(count) => {
                self.filled += count;
                self.active_ns = now_ns;
                self.begun_ns.get_or_insert(now_ns);
                Received::Some
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Received::Nothing,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Received::Nothing,
            Err(_) => Received::End,
        }
    }

    /// Sends an answer whole; false where the client does not take it, and is to be left.
    pub(super) fn send(&self, bytes: &[u8]) -> bool {
        let Some(stream) = &self.stream else { return false };
        let descriptor = stream.as_raw_fd();
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        // SAFETY: the descriptor is open while `stream` is borrowed; the kernel reads the bytes.
        let sent = unsafe { libc::send(descriptor, bytes.as_ptr().cast(), bytes.len(), flags) };
        usize::try_from(sent) == Ok(bytes.len())
    }

    /// What has come: whole requests one by one, each to be taken off by [`ConnectionPlace::take`].
    pub(super) fn next(&mut self) -> (Next<'_>, usize) {
        let mut is_new = false;
        if matches!(self.coming, Coming::Head) {
            self.skip_lines();
            let filled = self.filled;
            let come = self.buffer.get(..filled).unwrap_or_default();
            let Some(head) = head_bytes(come).filter(|head| *head <= MAX_HEAD_BYTES) else {
                let is_long = filled >= MAX_HEAD_BYTES;
                let long = BadHead { status: 431, reason: "the head is over 8192 bytes" };
                let more = Next::More { is_asked: false };
                return (if is_long { Next::Bad(long) } else { more }, 0);
            };
            match read_head(come.get(..head).unwrap_or_default()) {
                Err(bad) => return (Next::Bad(bad), 0),
                Ok(read) => self.coming = coming(&read, head),
            }
            is_new = true;
        }
        match self.whole() {
            Err(bad) => (Next::Bad(bad), 0),
            Ok(None) => {
                let is_asked = is_new && self.asks();
                (Next::More { is_asked }, 0)
            }
            Ok(Some((head, content, end))) => {
                let come = self.buffer.get(..end).unwrap_or_default();
                let (head, rest) = come.split_at_checked(head).unwrap_or_default();
                match read_head(head) {
                    Err(bad) => (Next::Bad(bad), end),
                    Ok(read) => (Next::Request(read, rest.get(..content).unwrap_or_default()), end),
                }
            }
        }
    }

    /// RFC 9112 §2.2: empty lines before a request are ignored.
    fn skip_lines(&mut self) {
        let come = self.buffer.get(..self.filled).unwrap_or_default();
        let lines = come.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        if lines > 0 {
            self.buffer.copy_within(lines..self.filled, 0);
            self.filled -= lines;
        }
    }

    /// Lengths of head and content, and where the request ends, when it is whole.
    fn whole(&mut self) -> Result<Option<(usize, usize, usize)>, BadHead> {
        let long = BadHead { status: 413, reason: "the content is over 65536 bytes" };
        match &mut self.coming {
            Coming::Head => Ok(None),
            Coming::Known { content, .. } if *content > MAX_BODY_BYTES => Err(long),
            Coming::Known { head, content } => {
                let end = *head + *content;
                Ok((self.filled >= end).then_some((*head, *content, end)))
            }
            Coming::Chunked { head, body, seen } => {
                let come = self.buffer.get_mut(*head..self.filled).unwrap_or_default();
                let bad = BadHead { status: 400, reason: "chunks that are none" };
                let new = come.get(*seen..).unwrap_or_default();
                let scan = body.scan(new).map_err(|_| bad)?;
                *seen += scan.used;
                if !scan.ended {
                    return if come.len() >= MAX_BODY_BYTES { Err(long) } else { Ok(None) };
                }
                let coded = come.get_mut(..*seen).unwrap_or_default();
                let (Chunks::Whole(taken), content) = join_chunks(coded)? else {
                    return Err(bad);
                };
                let (head, end) = (*head, *head + taken);
                // Its chunks are joined now: the same again must not look at them.
                self.coming = Coming::Known { head, content: taken };
                Ok(Some((head, content, end)))
            }
        }
    }

    fn asks(&self) -> bool {
        let head = match self.coming {
            Coming::Head => return false,
            Coming::Known { head, .. } | Coming::Chunked { head, .. } => head,
        };
        let head = self.buffer.get(..head).unwrap_or_default();
        read_head(head).is_ok_and(|head| head.expects_continue)
    }

    /// Takes a request off that ends at `end`; what is behind it is the next.
    pub(super) fn take(&mut self, end: usize, now_ns: u64) {
        let end = end.min(self.filled);
        self.buffer.copy_within(end..self.filled, 0);
        self.filled -= end;
        self.coming = Coming::Head;
        self.is_pending = self.filled > 0;
        self.begun_ns = self.is_pending.then_some(now_ns);
    }
}

fn coming(head: &Head<'_>, length: usize) -> Coming {
    match head.length {
        Length::Known(content) => Coming::Known { head: length, content },
        Length::Chunked => {
            Coming::Chunked { head: length, body: Body::new(Framing::Chunked), seen: 0 }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (TcpStream, ConnectionPlace) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut place = ConnectionPlace::new();
        let (stream, address) = listener.accept().unwrap();
        place.open((stream, address.ip()), 0, 0);
        (client, place)
    }

    /// The contents of all requests in `bytes`, which come in pieces of `piece` bytes.
    fn contents(bytes: &[u8], piece: usize) -> Vec<Vec<u8>> {
        let (mut client, mut place) = pair();
        let mut all = Vec::new();
        for piece in bytes.chunks(piece) {
            client.write_all(piece).unwrap();
            let due = place.filled + piece.len();
            while place.filled < due {
                assert_eq!(place.receive(0), Received::Some);
            }
            loop {
                let (next, end) = place.next();
                match next {
                    Next::More { .. } => break,
                    Next::Request(_, content) => all.push(content.to_vec()),
                    Next::Bad(bad) => panic!("{bad:?}"),
                }
                place.take(end, 0);
            }
        }
        assert_eq!(place.filled, 0);
        all
    }

    #[test]
    fn requests_come_out_whole_however_they_come_in() {
        let bytes = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\
            POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
            2\r\nde\r\n1\r\nf\r\n0\r\n\r\n\r\nGET /c HTTP/1.1\r\nHost: a\r\n\r\n";
        for piece in [1, 2, 7, 60, bytes.len()] {
            assert_eq!(contents(bytes, piece), [&b"abc"[..], b"def", b""], "{piece} bytes");
        }
    }

    #[test]
    fn what_is_too_long_is_refused_before_it_has_come() {
        let long_head = format!("GET /{} HTTP/1.1\r\n", "x".repeat(MAX_HEAD_BYTES));
        let content = MAX_BODY_BYTES + 1;
        let long = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {content}\r\n\r\n");
        for (bytes, status) in [(long_head, 431), (long, 413)] {
            let (mut client, mut place) = pair();
            client.write_all(bytes.as_bytes()).unwrap();
            while place.filled < bytes.len() {
                assert_eq!(place.receive(0), Received::Some);
            }
            let (Next::Bad(bad), _) = place.next() else { panic!("{status} is due") };
            assert_eq!(bad.status, status);
        }
    }
}
