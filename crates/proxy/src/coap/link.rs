//! The task that owns a connection of CoAP and the stream that it lies on (RFC 8323): bytes, inputs
//! and the clock go in, bytes and outputs come out.

use std::io;
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes, BytesMut};
use proto::coap::stream::{Connection, End, Fault, Input, Output, Settings};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use super::wire::{Came, Wire};
use crate::Error;

/// Inputs that wait for the task: who has one more waits.
const MAX_COMMANDS: usize = 64;
/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;
/// While so many bytes wait to be written, a server reads no further request and takes no further
/// answer; one of a client with so many times more is given up.
const MAX_QUEUED_BYTES: usize = 128 << 10;
const MAX_TIMES_QUEUED: usize = 256;
/// So long the peer may take none of the bytes that are to be written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// For so long what was written last may take to leave, and the peer to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes that are read and thrown away then, so that the peer sees the end and no reset.
const MAX_LATE_BYTES: usize = 1 << 20;

/// What the task is to do.
pub(crate) enum Command {
    Input(Input),
    /// The connection is to end when what is open is answered.
    End,
}

/// Who uses a connection. Nothing here may wait.
pub(crate) trait User: Send {
    /// What came out; what was to be sent is. Returned is what is to be done about it at once.
    fn take(&mut self, output: Output) -> Option<Input>;

    /// How the connection is, with so many bytes that wait to be written. Returned is what is to be
    /// done about it.
    fn observe(&mut self, connection: &Connection, queued_bytes: usize) -> Option<Input>;
}

/// A way to the task.
pub(crate) fn channel() -> (mpsc::Sender<Command>, mpsc::Receiver<Command>) {
    mpsc::channel(MAX_COMMANDS)
}

/// See the module.
pub(crate) struct Link<S> {
    stream: S,
    wire: Wire,
    connection: Connection,
    is_server: bool,
    queue: BytesMut,
    /// What was written may still be in the stream's own buffer.
    is_unflushed: bool,
    is_eof: bool,
    began: Instant,
    wake_at: Option<Duration>,
    /// Since when the peer takes nothing.
    stuck_since: Instant,
    end: Option<End>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Link<S> {
    /// One on this stream. A server ends a connection that is of no use for `idle`.
    pub(crate) fn new(
        stream: S,
        wire: Wire,
        idle: Option<Duration>,
        is_server: bool,
    ) -> Result<Self, Error> {
        let seed = [crate::random_instance()?, crate::random_instance()?];
        let settings = Settings { seed, framing: wire.framing(), idle };
        Ok(Self {
            stream,
            wire,
            connection: Connection::new(&settings),
            is_server,
            queue: BytesMut::new(),
            is_unflushed: false,
            is_eof: false,
            began: Instant::now(),
            wake_at: None,
            stuck_since: Instant::now(),
            end: None,
        })
    }

    /// The same, where long bodies of requests are given out as they come.
    pub(crate) fn taking_bodies(mut self) -> Self {
        self.connection = self.connection.taking_bodies();
        self
    }

    /// Runs until the connection ends, or nobody has a way to it. Errors: what the network says.
    pub(crate) async fn run(
        mut self,
        mut commands: mpsc::Receiver<Command>,
        user: &mut impl User,
    ) -> io::Result<Option<End>> {
        let mut room = BytesMut::with_capacity(READ_BYTES);
        self.handle(Input::Wake, user);
        while self.end.is_none() {
            let has_room = self.queue.len() < MAX_QUEUED_BYTES;
            if self.queue.len() > MAX_QUEUED_BYTES * MAX_TIMES_QUEUED {
                return Err(io::Error::other("the server asks for more than it takes"));
            }
            let may_read = !self.is_eof && (has_room || !self.is_server);
            let has_written = !self.queue.is_empty();
            let writes = has_written || self.is_unflushed;
            let stuck_at = self.stuck_since + WRITE_TIMEOUT;
            let wake_at = self.wake_at.map(|at| self.began + at);
            let (mut reader, mut writer) = tokio::io::split(&mut self.stream);
            tokio::select! {
                read = reader.read_buf(&mut room), if may_read => {
                    let count = read?;
                    let bytes = room.split().freeze();
                    room.reserve(READ_BYTES);
                    self.received(count, bytes, user)?;
                }
                written = write(&mut writer, &mut self.queue), if writes => {
                    written?;
                    // It was flushed where there was nothing to write.
                    self.is_unflushed = has_written;
                    if self.queue.is_empty() && self.queue.capacity() > MAX_QUEUED_BYTES {
                        self.queue = BytesMut::new();
                    }
                    self.stuck_since = Instant::now();
                    self.note(user);
                }
                command = commands.recv(), if has_room => match command {
                    Some(Command::Input(input)) => self.handle(input, user),
                    Some(Command::End) => self.handle(Input::Release { hold_off_s: None }, user),
                    None => return Ok(None),
                },
                () = until(wake_at) => {
                    self.wake_at = None;
                    self.handle(Input::Wake, user);
                }
                () = until(Some(stuck_at)), if writes => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
        }
        self.leave().await;
        Ok(self.end)
    }

    fn received(&mut self, count: usize, bytes: Bytes, user: &mut impl User) -> io::Result<()> {
        if count == 0 {
            self.is_eof = true;
            self.handle(Input::Eof, user);
            return Ok(());
        }
        self.wire.receive(bytes);
        while self.end.is_none() && !self.is_eof {
            match self.wire.next()? {
                Some(Came::Bytes(bytes)) => self.handle(Input::Bytes(bytes), user),
                Some(Came::Answer(frame)) => self.queue(&frame),
                Some(Came::End) => {
                    self.is_eof = true;
                    self.handle(Input::Eof, user);
                }
                None => break,
            }
        }
        Ok(())
    }

    fn handle(&mut self, input: Input, user: &mut impl User) {
        // At most one for each output, of which an input makes few.
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            self.connection.handle_input(self.began.elapsed(), input);
            while let Some(output) = self.connection.poll_output() {
                match output {
                    Output::Transmit(bytes) => match self.wire.encode(&bytes) {
                        Ok(bytes) => self.queue(&bytes),
                        Err(why) => self.end = Some(End::GivenUp(why)),
                    },
                    Output::WakeAt(at) => self.wake_at = Some(at),
                    Output::Closed(end) => self.end = Some(end),
                    output => inputs.extend(user.take(output)),
                }
            }
        }
        self.note(user);
    }

    fn note(&mut self, user: &mut impl User) {
        if self.end.is_some() {
            return;
        }
        if let Some(input) = user.observe(&self.connection, self.queue.len()) {
            self.handle(input, user);
        }
    }

    fn queue(&mut self, bytes: &[u8]) {
        if self.queue.is_empty() && !self.is_unflushed {
            self.stuck_since = Instant::now();
        }
        self.queue.extend_from_slice(bytes);
        self.is_unflushed = true;
    }

    /// Writes what is left and closes, for a bounded time.
    async fn leave(&mut self) {
        if let Some(frame) = self.wire.close() {
            self.queue(&frame);
        }
        let Self { stream, queue, .. } = self;
        let leaving = async {
            while queue.has_remaining() {
                stream.write_buf(queue).await?;
            }
            stream.shutdown().await?;
            let mut late = stream.take(MAX_LATE_BYTES as u64);
            tokio::io::copy(&mut late, &mut tokio::io::sink()).await
        };
        // Whoever does not let it end in order sees a reset.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, leaving).await;
    }
}

/// Some of what is to be written, and where nothing is left, the rest of the stream's own.
async fn write(writer: &mut (impl AsyncWrite + Unpin), queue: &mut BytesMut) -> io::Result<()> {
    if queue.is_empty() {
        return writer.flush().await;
    }
    match writer.write_buf(queue).await? {
        0 => Err(io::ErrorKind::WriteZero.into()),
        _ => Ok(()),
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

/// Why a connection ended, in words.
pub(crate) fn why(end: &End) -> String {
    match end {
        End::Eof => "the other side closed the connection".to_owned(),
        End::Released => "the other side wanted the connection closed (Release)".to_owned(),
        End::GivenUp(why) => format!("the connection was given up here: {why}"),
        End::Silent(long) => {
            let seconds = long.as_secs();
            format!("the other side said nothing for {seconds} s: the connection was given up")
        }
        End::Aborted { bad_csm_option, diagnostic } => {
            let option = bad_csm_option.map(|number| format!(" over option {number} of the CSM"));
            let joint = if diagnostic.is_empty() { "" } else { ": " };
            let diagnostic = super::text::printable(diagnostic);
            let option = option.unwrap_or_default();
            format!("the other side gave the connection up (Abort){option}{joint}{diagnostic}")
        }
        End::Broken(fault) => match fault {
            Fault::NoCsm(code) => {
                format!("the other side began with a message {code} and no CSM: is it CoAP?")
            }
            Fault::BadCsm(number) => {
                format!("option {number} of the other side's CSM cannot be met")
            }
            Fault::BadOption(code, number) => {
                format!(
                    "a signal {code} of the other side has the unknown critical option {number}"
                )
            }
            Fault::Format(error) => {
                format!("what the other side sends is no message of CoAP over TCP: {error}")
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use proto::coap::{Code, Content};

    use super::*;

    /// A server that answers each request with its own body, twice.
    struct Server;

    impl User for Server {
        fn take(&mut self, output: Output) -> Option<Input> {
            let Output::Request { exchange, content } = output else { return None };
            let body = [&content.payload[..], &content.payload[..]].concat();
            let content = Content::new(Code::CONTENT).with_payload(body);
            Some(Input::Respond { exchange, content })
        }

        fn observe(&mut self, _: &Connection, _: usize) -> Option<Input> {
            None
        }
    }

    /// A client that hands on what comes.
    struct Client(mpsc::UnboundedSender<Output>);

    impl User for Client {
        fn take(&mut self, output: Output) -> Option<Input> {
            let _ = self.0.send(output);
            None
        }

        fn observe(&mut self, _: &Connection, _: usize) -> Option<Input> {
            None
        }
    }

    const MAX_WAIT: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn bodies_cross_a_stream_that_takes_few_bytes_at_once() {
        let (one, other) = tokio::io::duplex(1000);
        let (commands, receiver) = channel();
        // bound: the three requests below.
        let (sender, mut outputs) = mpsc::unbounded_channel();
        let client = tokio::spawn(async move {
            let link = Link::new(one, Wire::stream(), None, false).unwrap();
            link.run(receiver, &mut Client(sender)).await
        });
        let (_keep, idle) = channel();
        let server = tokio::spawn(async move {
            let link = Link::new(other, Wire::stream(), Some(MAX_WAIT), true).unwrap();
            link.run(idle, &mut Server).await
        });
        for request in 0..3_u8 {
            let content = Content::new(Code::FETCH).with_payload(vec![request; 100_000]);
            let input = Input::Request { request: request.into(), content };
            assert!(commands.send(Command::Input(input)).await.is_ok());
        }
        let mut answered = Vec::new();
        while answered.len() < 3 {
            let output = tokio::time::timeout(MAX_WAIT, outputs.recv()).await.unwrap().unwrap();
            let Output::Response { request, content, is_last: true } = output else {
                panic!("{output:?}")
            };
            let byte = u8::try_from(request).unwrap();
            assert_eq!(content.payload, vec![byte; 200_000]);
            answered.push(request);
        }
        answered.sort_unstable();
        assert_eq!(answered, [0, 1, 2]);
        // A Release, upon which the other side closes.
        assert!(commands.send(Command::End).await.is_ok());
        let ended = tokio::time::timeout(MAX_WAIT, client).await.unwrap().unwrap().unwrap();
        assert!(matches!(ended, Some(End::Eof)), "{ended:?}");
        let ended = tokio::time::timeout(MAX_WAIT, server).await.unwrap().unwrap().unwrap();
        assert!(matches!(ended, Some(End::Released)), "{ended:?}");
    }

    #[tokio::test]
    async fn what_is_no_coap_ends_with_an_abort() {
        let (one, mut other) = tokio::io::duplex(1000);
        let (_keep, receiver) = channel();
        let link = Link::new(one, Wire::stream(), None, true).unwrap();
        let running = tokio::spawn(async move { link.run(receiver, &mut Server).await });
        other.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        let mut came = Vec::new();
        tokio::time::timeout(MAX_WAIT, other.read_to_end(&mut came)).await.unwrap().unwrap();
        assert!(came.contains(&Code::ABORT.0), "{came:x?}");
        drop(other);
        let end = tokio::time::timeout(MAX_WAIT, running).await.unwrap().unwrap().unwrap();
        assert!(matches!(&end, Some(End::Broken(Fault::Format(_)))), "{end:?}");
        assert!(why(&end.unwrap()).contains("no message of CoAP"));
    }
}
