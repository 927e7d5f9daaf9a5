//! The task that owns an endpoint's machine and its socket: datagrams, inputs and the clock go in,
//! datagrams and outputs come out.

use std::io;
use std::time::{Duration, Instant};

use proto::coap::machine::{Counts, Input, Output, Settings};
use proto::coap::transfer::Transfers;
use tokio::sync::mpsc;

use super::dtls::{Layer, Out};
use super::oscore::{Security, Stores};
use super::socket::{Peer, Socket};
use crate::Error;
use crate::rarely::Rarely;

/// Inputs that wait for the task: who has one more waits.
const MAX_COMMANDS: usize = 256;
/// How long those who are observed no more are told so, once it is to end.
const MAX_LEAVING: Duration = Duration::from_secs(3);
/// Pause after a socket could not be read.
const RECEIVE_PAUSE: Duration = Duration::from_millis(10);

/// What the task is to do.
pub(crate) enum Command {
    Input(Input<Peer>),
    /// Nothing more: it ends behind all that was given before.
    End,
}

/// Who uses an endpoint. Nothing here may wait.
pub(crate) trait Application {
    /// What came out; datagrams have been sent. Returned is what is to be done about it at once.
    /// `is_known`: of a request, who asks has shown that it has its address, or need not.
    fn take(&mut self, output: Output<Peer>, is_known: bool) -> Option<Input<Peer>>;

    /// Datagrams came.
    fn heard(&mut self) {}

    /// What the machine has counted so far.
    fn counted(&mut self, counts: Counts);

    /// A datagram of so many bytes leaves, or came.
    fn passed(&mut self, _sent: bool, _bytes: usize) {}
}

/// A way to the task.
pub(crate) fn channel() -> (mpsc::Sender<Command>, mpsc::Receiver<Command>) {
    mpsc::channel(MAX_COMMANDS)
}

/// See the module.
pub(crate) struct Endpoint {
    socket: Socket,
    transfers: Transfers<Peer>,
    began: Instant,
    wake_at: Option<Duration>,
    stores: Stores,
    failed: Rarely,
    layer: Option<Layer>,
}

impl Endpoint {
    /// One with this socket; `is_challenging` as in [`Settings`].
    pub(crate) fn new(socket: Socket, is_challenging: bool) -> Result<Self, Error> {
        let seed = [crate::random_instance()?, crate::random_instance()?];
        let settings = Settings { seed, is_challenging, rate_bps: None };
        let transfers = Transfers::new(&settings);
        Ok(Self {
            socket,
            transfers,
            began: Instant::now(),
            wake_at: None,
            stores: Stores::default(),
            failed: Rarely::default(),
            layer: None,
        })
    }

    /// The same, where who asks by RFC 9177 is answered so; to be said before all that protects.
    pub(crate) fn answering_q_block(mut self) -> Result<Self, Error> {
        let seed = [crate::random_instance()?, crate::random_instance()?];
        self.transfers = self.transfers.answering_q_block(seed);
        Ok(self)
    }

    /// The same, where long bodies of requests are given out as they come.
    pub(crate) fn taking_bodies(mut self) -> Self {
        self.transfers = self.transfers.taking_bodies();
        self
    }

    /// The same, which asks by RFC 9177; to be said before all that protects.
    pub(crate) fn offering_q_block(mut self) -> Result<Self, Error> {
        let seed = [crate::random_instance()?, crate::random_instance()?];
        self.transfers = self.transfers.offering_q_block(seed);
        Ok(self)
    }

    /// The same, with messages that OSCORE protects.
    pub(crate) fn secured(mut self, security: Security) -> Self {
        let Security { guard, stores } = security;
        self.transfers = self.transfers.with_guard(guard);
        self.stores = stores;
        self
    }

    /// The same, below which are sessions of DTLS.
    pub(crate) fn over(
        mut self,
        layer: impl FnOnce(Instant) -> Result<Layer, Error>,
    ) -> Result<Self, Error> {
        self.layer = Some(layer(self.began)?);
        Ok(self)
    }

    /// Runs until it is to end, or nobody has a way to it. The error, only of a client, is what the
    /// network says of its server.
    pub(crate) async fn run(
        mut self,
        mut commands: mpsc::Receiver<Command>,
        mut application: impl Application,
    ) -> io::Result<()> {
        self.store().await;
        // Once it is to end: by then it does.
        let mut ends_by = None;
        loop {
            if ends_by.is_some_and(|at| !self.transfers.is_leaving() || at <= self.began.elapsed())
            {
                return self.close().await;
            }
            let below = self.layer.as_ref().and_then(Layer::wakes_at);
            let due = self.wake_at.into_iter().chain(below).chain(ends_by).min();
            let due = due.map(|at| self.began + at);
            let wake = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                received = self.socket.receive() => match received {
                    Ok(all) => {
                        application.heard();
                        for one in all {
                            let (peer, bytes, is_group) = (one.peer, one.bytes, one.is_group);
                            application.passed(false, bytes.len());
                            if let Some(layer) = &mut self.layer {
                                let mut out = Out::default();
                                layer.receive(self.began.elapsed(), peer, &bytes, &mut out);
                                self.hand_on(out, &mut application).await?;
                                continue;
                            }
                            let input = Input::Datagram { peer, bytes, is_group };
                            self.handle(input, &mut application).await?;
                        }
                    }
                    Err(error) if self.socket.is_connected() => return Err(error),
                    // sleep: what is said of one peer ends nothing, nor comes at once.
                    Err(_) => tokio::time::sleep(RECEIVE_PAUSE).await,
                },
                command = commands.recv(), if ends_by.is_none() => match command {
                    Some(Command::Input(input)) => self.handle(input, &mut application).await?,
                    Some(Command::End) | None => {
                        ends_by = Some(self.began.elapsed() + MAX_LEAVING);
                    }
                },
                () = wake => {
                    self.wake_at = None;
                    if let Some(layer) = &mut self.layer {
                        let mut out = Out::default();
                        layer.wake(self.began.elapsed(), &mut out);
                        self.hand_on(out, &mut application).await?;
                    }
                    self.handle(Input::Wake, &mut application).await?;
                }
            }
            self.store().await;
            application.counted(self.transfers.counts());
        }
    }

    /// Has the numbers that messages are protected with written, where it is time. It is once for
    /// hundreds of messages, and those that come meanwhile wait.
    async fn store(&mut self) {
        while let Some((index, watermark)) = self.transfers.guard_mut().to_store() {
            if let Err(error) = self.stores.write(index, watermark).await {
                if let Some(times) = self.failed.note(Instant::now()) {
                    let what = "cannot write the state of a security context: when its numbers \
                                are used up, nothing is sent with it";
                    tracing::error!(times, %error, "{what}");
                }
                return;
            }
            self.transfers.guard_mut().note_stored(index, watermark);
        }
    }

    /// What has come out of the sessions.
    async fn hand_on(&mut self, out: Out, application: &mut impl Application) -> io::Result<()> {
        for (peer, bytes) in out.datagrams {
            self.socket.send(peer, &bytes).await?;
        }
        for (peer, bytes) in out.messages {
            let input = Input::Datagram { peer, bytes, is_group: false };
            self.handle(input, application).await?;
        }
        out.failed.map_or(Ok(()), |why| Err(io::Error::other(why)))
    }

    async fn send(&mut self, peer: Peer, bytes: &[u8]) -> io::Result<()> {
        let Some(layer) = &mut self.layer else { return self.socket.send(peer, bytes).await };
        let mut out = Out::default();
        // Nothing that was sent makes a session say what a peer has said.
        layer.send(self.began.elapsed(), peer, bytes, &mut out);
        for (peer, bytes) in out.datagrams {
            self.socket.send(peer, &bytes).await?;
        }
        out.failed.map_or(Ok(()), |why| Err(io::Error::other(why)))
    }

    async fn close(&mut self) -> io::Result<()> {
        let Some(layer) = &mut self.layer else { return Ok(()) };
        let mut out = Out::default();
        layer.close(self.began.elapsed(), &mut out);
        for (peer, bytes) in out.datagrams {
            self.socket.send(peer, &bytes).await?;
        }
        Ok(())
    }

    async fn handle(
        &mut self,
        input: Input<Peer>,
        application: &mut impl Application,
    ) -> io::Result<()> {
        // At most one for each output, of which an input makes few.
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            self.transfers.handle_input(self.began.elapsed(), input);
            while let Some(output) = self.transfers.poll_output() {
                match output {
                    Output::Datagram { peer, bytes } => {
                        application.passed(true, bytes.len());
                        self.send(peer, &bytes).await?;
                    }
                    Output::WakeAt(at) => self.wake_at = Some(at),
                    output => {
                        let is_known = match &output {
                            Output::Request { peer, .. } | Output::Opened { peer, .. } => {
                                self.transfers.is_trusted(*peer)
                            }
                            _ => true,
                        };
                        inputs.extend(application.take(output, is_known));
                    }
                }
            }
        }
        Ok(())
    }
}
