//! A connection of the producer: one request at a time, never waited for.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd as _;

use proto::http1::{Body, ResponseHead, end_of_head};
use socket2::{Domain, Protocol, Socket, Type};

/// Longest answer that is read, in bytes.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// Shortest time between two tries to connect.
pub(super) const RETRY_NS: u64 = 100_000_000;

/// What a connection brought.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// Nothing that is whole.
    Nothing,
    /// The answer to its request.
    Answer {
        /// The status.
        status: u16,
        /// The content.
        text: String,
    },
    /// Its end, and why.
    End(String),
}

#[derive(Debug, Default)]
pub(super) struct Connection {
    stream: Option<TcpStream>,
    /// The other end has answered.
    is_connected: bool,
    out: Vec<u8>,
    sent: usize,
    answer: Vec<u8>,
    since_ns: Option<u64>,
    /// When it was last begun to connect.
    tried_ns: u64,
}

impl Connection {
    /// Begins to connect.
    pub(super) fn open(&mut self, address: SocketAddr, now_ns: u64) {
        self.close();
        self.tried_ns = now_ns;
        self.stream = connect(address).ok();
    }

    /// Begins to connect again where there is no connection, not too often.
    pub(super) fn reopen(&mut self, address: SocketAddr, now_ns: u64) {
        if self.stream.is_none() && now_ns.saturating_sub(self.tried_ns) >= RETRY_NS {
            self.open(address, now_ns);
        }
    }

    /// Ends the connection, and what was under way on it.
    pub(super) fn close(&mut self) {
        self.out.clear();
        self.answer.clear();
        (self.stream, self.is_connected, self.sent, self.since_ns) = (None, false, 0, None);
    }

    /// Whether there is a connection, or one that is being made.
    pub(super) fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// Whether a request may begin: one is not lost with a connection that never comes about.
    pub(super) fn is_free(&self) -> bool {
        self.is_connected && self.since_ns.is_none()
    }

    /// Since when it waits for an answer.
    pub(super) fn waits_since_ns(&self) -> Option<u64> {
        self.since_ns
    }

    /// Sends what `write` makes, as far as it goes at once.
    pub(super) fn begin(&mut self, now_ns: u64, write: impl FnOnce(&mut Vec<u8>)) {
        self.out.clear();
        self.answer.clear();
        self.sent = 0;
        self.since_ns = Some(now_ns);
        write(&mut self.out);
        // What is wrong with the connection is found when it is read.
        let _ = self.flush();
    }

    /// What poll(2) is to look for.
    pub(super) fn polled(&self) -> libc::pollfd {
        let fd = self.stream.as_ref().map_or(-1, |stream| stream.as_raw_fd());
        let has_more = self.sent < self.out.len() || !self.is_connected;
        let events = if has_more { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN };
        libc::pollfd { fd, events, revents: 0 }
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        while let Some(rest) = self.out.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match stream.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if is_later(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Finds out whether the other end has answered.
    fn connected(&mut self) -> io::Result<()> {
        let Some(stream) = self.stream.as_ref().filter(|_| !self.is_connected) else {
            return Ok(());
        };
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        match stream.peer_addr() {
            Ok(_) => self.is_connected = true,
            Err(error) if error.kind() == io::ErrorKind::NotConnected => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Sends and reads what there is.
    pub(super) fn go_on(&mut self) -> Came {
        if let Err(error) = self.connected().and_then(|()| self.flush()) {
            return Came::End(error.to_string());
        }
        let Some(stream) = &mut self.stream else { return Came::Nothing };
        let mut piece = [0; 4096];
        loop {
            match stream.read(&mut piece) {
                Ok(0) => return self.end(),
                Ok(count) => self.answer.extend_from_slice(piece.get(..count).unwrap_or_default()),
                Err(error) if is_later(&error) => break,
                Err(error) => return Came::End(error.to_string()),
            }
            if self.since_ns.is_none() {
                return Came::End("an answer that nobody asked for".to_owned());
            }
            if self.answer.len() > MAX_ANSWER_BYTES {
                return Came::End(format!("an answer over {MAX_ANSWER_BYTES} bytes"));
            }
        }
        self.whole(false)
    }

    /// The connection ended: behind an answer that lasts so long, or in between.
    fn end(&mut self) -> Came {
        match self.whole(true) {
            Came::Nothing => Came::End("the connection was closed".to_owned()),
            other => other,
        }
    }

    /// The answer if it is whole.
    fn whole(&mut self, has_ended: bool) -> Came {
        loop {
            let Some(end) = end_of_head(&self.answer, 0) else { return Came::Nothing };
            let (head, rest) = self.answer.split_at(end);
            let head = match ResponseHead::parse(head, b"POST") {
                Ok(head) => head,
                Err(fault) => return Came::End(format!("no answer of HTTP: {fault}")),
            };
            if head.is_interim() {
                self.answer.drain(..end);
                continue;
            }
            let mut body = Body::new(head.framing);
            let scan = match body.scan(rest) {
                Ok(scan) => scan,
                Err(fault) => return Came::End(format!("no answer of HTTP: {fault}")),
            };
            let is_whole = body.has_ended() || (has_ended && body.lasts_until_close());
            if !is_whole {
                return Came::Nothing;
            }
            let content = rest.get(..scan.used).unwrap_or_default();
            let text = String::from_utf8_lossy(content).into_owned();
            // What stands behind it would be taken for the answer to the next request.
            if head.close || has_ended || rest.len() > scan.used {
                self.close();
            }
            self.answer.clear();
            self.since_ns = None;
            return Came::Answer { status: head.status, text };
        }
    }
}

fn is_later(error: &io::Error) -> bool {
    // A connection that is being made is not connected yet.
    let kinds =
        [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted, io::ErrorKind::NotConnected];
    kinds.contains(&error.kind())
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    match socket.connect(&address.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        Err(error) => return Err(error),
    }
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Goes on until something came, which the other end has sent already.
    fn come(connection: &mut Connection) -> Came {
        loop {
            let mut polled = connection.polled();
            // SAFETY: one place, which lives behind the call.
            let ready = unsafe { libc::poll(&raw mut polled, 1, 10_000) };
            assert!(ready > 0, "nothing within 10 s");
            match connection.go_on() {
                Came::Nothing => {}
                came => return came,
            }
        }
    }

    fn connected() -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut connection = Connection::default();
        connection.open(listener.local_addr().unwrap(), 0);
        let (peer, _) = listener.accept().unwrap();
        assert_eq!(connection.go_on(), Came::Nothing);
        assert!(connection.is_free());
        (connection, peer)
    }

    #[test]
    fn a_request_begins_only_where_the_other_end_has_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let mut connection = Connection::default();
        connection.open(address, 0);
        assert!(!connection.is_free());
        if connection.is_open() {
            assert!(matches!(come(&mut connection), Came::End(_)));
            connection.close();
        }
        connection.reopen(address, RETRY_NS - 1);
        assert!(!connection.is_open(), "it is tried too often");
    }

    #[test]
    fn an_answer_to_nothing_ends_the_connection() {
        let (mut connection, mut peer) = connected();
        peer.write_all(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n").unwrap();
        assert!(matches!(come(&mut connection), Came::End(why) if why.contains("nobody asked")));
    }

    #[test]
    fn what_stands_behind_an_answer_is_not_the_next_ones() {
        let (mut connection, mut peer) = connected();
        connection.begin(1, |out| out.extend_from_slice(b"POST / HTTP/1.1\r\n\r\n"));
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        peer.write_all(&[&answer[..], &answer[..]].concat()).unwrap();
        assert_eq!(come(&mut connection), Came::Answer { status: 200, text: "ok".to_owned() });
        assert!(!connection.is_open() && !connection.is_free());
    }
}
