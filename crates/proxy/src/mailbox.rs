//! Where one exchange's local side (a client's or an origin's connection) meets the actor.
//!
//! Both sides put things in under one lock and wake the other. Everything is bounded: pieces of
//! body by the credit that their receiver gave ([`WINDOW_BYTES`] at first), informational statuses
//! by [`MAX_INTERIMS`], all else is there once. The local side tells the actor by a [`Bell`], which
//! rings at most once per exchange until the actor has looked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use coding::ExchangeId;
use proto::bhttp::Fields;
use relay::{Cause, CauseKind, Head, Input, Known, Output};
use tokio::sync::mpsc;

use crate::access::Access;

/// Body bytes that the local side lets the relay hand over ahead of what it has passed on.
pub(crate) const WINDOW_BYTES: u64 = 64 * 1024;
/// Informational statuses of an origin kept until the actor looks; later ones are dropped.
const MAX_INTERIMS: usize = 8;

/// Tells the actor which exchanges to look at. The channel holds at most one entry per exchange.
pub(crate) type Bell = mpsc::UnboundedSender<ExchangeId>;

/// Why nothing more comes from, or may go to, the relay.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) cause: Cause,
    /// Edge: no byte of the request's body was taken.
    pub(crate) untouched: bool,
}

/// What an edge gets before the body of an answer.
#[derive(Debug)]
pub(crate) enum Arrived {
    /// An interim answer's status and fields.
    Interim(u16, Fields),
    /// The final answer's head, and whether nothing follows it.
    Head(Head, bool),
}

/// The requester, and whether its request may be served otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Requester {
    /// As [`relay::Known`] has it.
    pub(crate) client: relay::Client,
    /// The request may go directly where the gateway cannot be reached.
    pub(crate) other_way: bool,
}

/// A piece of what follows a head.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Body.
    Data(Bytes),
    /// The end, with trailers.
    End(Fields),
}

/// What became of a request's body at the gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Upload {
    /// There is none, or the origin has all of it.
    #[default]
    Whole,
    /// The origin takes it.
    Open,
    /// The origin left before its end.
    Cut,
}

#[derive(Default)]
struct MailboxState {
    id: Option<ExchangeId>,
    rung: bool,
    /// From the local side, not yet seen by the actor.
    head_out: Option<(Head, bool)>,
    /// The requester.
    client_out: Option<Requester>,
    /// Index of the service's settings.
    service_out: Option<usize>,
    interims_out: VecDeque<(u16, Fields)>,
    data_out: VecDeque<Bytes>,
    end_out: Option<Fields>,
    credit_out: u64,
    abort_out: Option<Cause>,
    /// Edge: the request's body goes on behind the answer.
    uploading: bool,
    /// The answer's head said that the request succeeded.
    succeeded: bool,
    /// Gateway: a request's body is on its way, and the origin has not left before its end.
    upload: Upload,
    /// From the relay, not yet seen by the local side.
    interims_in: VecDeque<(u16, Fields)>,
    head_in: Option<(Head, bool)>,
    data_in: VecDeque<Bytes>,
    end_in: Option<Fields>,
    credit_in: u64,
    ended: Option<Ended>,
    /// The local side has sent all that it has to send.
    out_closed: bool,
    /// The relay has sent all that it has to send.
    in_closed: bool,
    /// The local side wants no more, but that is no failure: body is taken and dropped.
    discarding: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
    watcher: Option<Waker>,
}

/// The meeting place itself.
pub(crate) struct Mailbox {
    state: Mutex<MailboxState>,
    bell: Bell,
    /// The exchange's line in the log.
    access: Option<Access>,
}

impl Mailbox {
    /// An exchange that the local side opens (edge): the actor names it later.
    pub(crate) fn opening(
        head: Head,
        end: bool,
        service: Option<usize>,
        client: Requester,
        bell: Bell,
        access: Option<Access>,
    ) -> Arc<Self> {
        let state = MailboxState {
            client_out: Some(client),
            head_out: Some((head, end)),
            service_out: service,
            credit_out: WINDOW_BYTES,
            out_closed: end,
            ..MailboxState::default()
        };
        Arc::new(Self { state: Mutex::new(state), bell, access })
    }

    /// An exchange that the relay opens (gateway); its head goes another way.
    pub(crate) fn opened(
        id: ExchangeId,
        end: bool,
        bell: Bell,
        access: Option<Access>,
    ) -> Arc<Self> {
        let state = MailboxState {
            id: Some(id),
            end_in: end.then(Fields::new),
            credit_out: if end { 0 } else { WINDOW_BYTES },
            in_closed: end,
            upload: if end { Upload::Whole } else { Upload::Open },
            ..MailboxState::default()
        };
        let mailbox = Self { state: Mutex::new(state), bell, access };
        mailbox.ring(&mut mailbox.lock());
        Arc::new(mailbox)
    }

    /// The local side's two directions; `role` says what dropping one means.
    pub(crate) fn port(self: &Arc<Self>, role: relay::Role) -> Port {
        Port {
            receiver: Receiver { mailbox: Arc::clone(self), role },
            sender: Sender { mailbox: Arc::clone(self), role },
        }
    }

    fn lock(&self) -> MutexGuard<'_, MailboxState> {
        // A panic elsewhere cannot leave the state half changed: no step in here can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self, state: &mut MailboxState) {
        if let (Some(id), false) = (state.id, state.rung) {
            state.rung = true;
            // The actor is gone only when the process ends.
            let _ = self.bell.send(id);
        }
    }

    /// The exchange's line in the log.
    pub(crate) fn access(&self) -> Option<&Access> {
        self.access.as_ref()
    }

    /// Actor: names the exchange.
    pub(crate) fn name(&self, id: ExchangeId) {
        self.lock().id = Some(id);
    }

    /// Actor: takes what the local side has put in, as inputs for the relay, in order.
    pub(crate) fn collect(&self, exchange: ExchangeId, inputs: &mut Vec<Input>) {
        let mut state = self.lock();
        state.rung = false;
        let interims = state.interims_out.drain(..);
        inputs.extend(interims.map(|(status, fields)| Input::Interim { exchange, status, fields }));
        let head = state.head_out.take();
        if let Some((Head::Request(request), end)) = head {
            let requester = state.client_out.take();
            let other_way = requester.as_ref().is_some_and(|requester| requester.other_way);
            let client = requester.map(|requester| requester.client);
            let known = Known { client, service: state.service_out.take(), other_way };
            let known = Box::new(known);
            inputs.push(Input::Request { exchange, request, end, known });
        } else {
            if let Some(service) = state.service_out.take() {
                inputs.push(Input::Service { exchange, service });
            }
            if let Some((Head::Response(response), end)) = head {
                inputs.push(Input::Response { exchange, response, end });
            }
        }
        inputs.extend(state.data_out.drain(..).map(|bytes| Input::Data { exchange, bytes }));
        if let Some(trailers) = state.end_out.take() {
            inputs.push(Input::End { exchange, trailers });
        }
        if state.credit_out > 0 {
            let bytes = std::mem::take(&mut state.credit_out);
            inputs.push(Input::Credit { exchange, bytes });
        }
        if let Some(cause) = state.abort_out.take() {
            inputs.push(Input::Abort { exchange, cause });
        }
    }

    /// Actor: hands over what the relay says about this exchange.
    pub(crate) fn deliver(&self, output: Output) {
        let mut state = self.lock();
        match output {
            Output::Interim { status, fields, .. } => {
                // Later ones are dropped, as they are on the way out.
                let has_room = state.interims_in.len() < MAX_INTERIMS;
                state.interims_in.extend(has_room.then_some((status, fields)));
            }
            Output::Head { head, end, .. } => {
                if let Head::Response(response) = &head {
                    state.succeeded = response.status < 300;
                }
                state.head_in = Some((head, end));
                if end {
                    state.in_closed = true;
                    state.end_in = Some(Fields::new());
                }
            }
            Output::Data { bytes, .. } if state.discarding => {
                state.credit_out += bytes.len() as u64;
                self.ring(&mut state);
            }
            Output::Data { bytes, .. } => state.data_in.push_back(bytes),
            Output::End { trailers, .. } => {
                state.in_closed = true;
                state.end_in = Some(trailers);
            }
            Output::Credit { bytes, .. } => state.credit_in += bytes,
            Output::Abort { cause, untouched, .. } => {
                state.ended = Some(Ended { cause, untouched });
                (state.in_closed, state.out_closed) = (true, true);
            }
            _ => {}
        }
        wake(&mut state);
    }

    /// Actor: nothing can come from either side any more.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.lock();
        let out_empty = state.head_out.is_none()
            && state.data_out.is_empty()
            && state.end_out.is_none()
            && state.abort_out.is_none();
        state.in_closed && state.out_closed && out_empty
    }

    fn abort(&self, cause: Cause) {
        let mut state = self.lock();
        if !(state.in_closed && state.out_closed) {
            self.give_up(&mut state, cause);
        }
    }

    /// Edge: the client went away; unless it has the whole response, the relay is told.
    fn abort_unless_delivered(&self) {
        let mut state = self.lock();
        if !state.discarding && state.ended.is_none() {
            state.data_in.clear();
            self.give_up(&mut state, client_gone());
        }
    }

    fn give_up(&self, state: &mut MailboxState, cause: Cause) {
        state.ended = Some(Ended { cause: cause.clone(), untouched: false });
        state.abort_out = Some(cause);
        (state.in_closed, state.out_closed) = (true, true);
        self.ring(state);
        wake(state);
    }
}

/// Wakes whoever waits for this exchange; the actor's and the other direction's changes show alike.
fn wake(state: &mut MailboxState) {
    for waker in [state.reader.take(), state.writer.take(), state.watcher.take()] {
        waker.into_iter().for_each(Waker::wake);
    }
}

/// The local side of an exchange.
pub(crate) struct Port {
    pub(crate) receiver: Receiver,
    pub(crate) sender: Sender,
}

/// What comes from the relay. Dropping it early at the edge means that the client is gone; at the
/// gateway that the origin wants no more of the request.
pub(crate) struct Receiver {
    mailbox: Arc<Mailbox>,
    role: relay::Role,
}

impl Receiver {
    /// Edge: the next interim answer, or the head of the final one and whether nothing follows it.
    pub(crate) async fn answer(&mut self) -> Result<Arrived, Ended> {
        std::future::poll_fn(|cx| {
            let mut state = self.mailbox.lock();
            if let Some((status, fields)) = state.interims_in.pop_front() {
                return Poll::Ready(Ok(Arrived::Interim(status, fields)));
            }
            if let Some((head, end)) = state.head_in.take() {
                return Poll::Ready(Ok(Arrived::Head(head, end)));
            }
            if let Some(ended) = &state.ended {
                return Poll::Ready(Err(ended.clone()));
            }
            state.reader = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// The next piece; after [`Piece::End`] the call must not be repeated.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, Ended>> {
        let mut state = self.mailbox.lock();
        if let Some(bytes) = state.data_in.pop_front() {
            state.credit_out += bytes.len() as u64;
            self.mailbox.ring(&mut state);
            return Poll::Ready(Ok(Piece::Data(bytes)));
        }
        if let Some(trailers) = state.end_in.take() {
            state.upload = Upload::Whole;
            return Poll::Ready(Ok(Piece::End(trailers)));
        }
        if let Some(ended) = &state.ended {
            return Poll::Ready(Err(ended.clone()));
        }
        state.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    pub(crate) async fn piece(&mut self) -> Result<Piece, Ended> {
        std::future::poll_fn(|cx| self.poll_piece(cx)).await
    }

    /// Gives the exchange up from this side.
    pub(crate) fn abort(&mut self, cause: Cause) {
        self.mailbox.abort(cause);
    }

    /// Gateway: all of the request that the origin wants is with it.
    pub(crate) fn has_all(&mut self) {
        self.mailbox.lock().upload = Upload::Whole;
    }

    /// Edge: the client has the whole answer, and nothing more is taken. The rest of the request is
    /// not wanted, unless the answer said that it succeeded: then it goes on.
    pub(crate) fn finish(&mut self) {
        let mut state = self.mailbox.lock();
        state.discarding = true;
        state.end_in = None;
        let goes_on = state.succeeded && state.uploading;
        if !goes_on && !state.out_closed {
            let reason = "the answer is whole".to_owned();
            let cause = Cause { kind: CauseKind::AnsweredEarly, reason };
            state.out_closed = true;
            state.ended = Some(Ended { cause, untouched: false });
            self.mailbox.ring(&mut state);
            wake(&mut state);
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        match self.role {
            relay::Role::Edge => self.mailbox.abort_unless_delivered(),
            relay::Role::Gateway => {
                let mut state = self.mailbox.lock();
                state.discarding = true;
                let dropped: usize = state.data_in.drain(..).map(|bytes| bytes.len()).sum();
                if dropped > 0 {
                    state.credit_out += dropped as u64;
                    self.mailbox.ring(&mut state);
                }
                if state.upload == Upload::Open && state.ended.is_none() {
                    state.upload = Upload::Cut;
                    if state.succeeded && state.out_closed && !state.in_closed {
                        self.mailbox.give_up(&mut state, upload_cut());
                    }
                }
            }
        }
    }
}

/// What goes to the relay. Dropping it before [`Sender::end`] aborts the exchange.
pub(crate) struct Sender {
    mailbox: Arc<Mailbox>,
    role: relay::Role,
}

impl Sender {
    /// Waits until the relay takes body; gives how much, at least 1. The task is also woken, even
    /// after `Ready`, when the exchange ends.
    pub(crate) fn poll_credit(&mut self, cx: &mut Context<'_>) -> Poll<Result<u64, Ended>> {
        let mut state = self.mailbox.lock();
        // Also with credit at hand: whoever then waits for body must hear of an abort.
        state.writer = Some(cx.waker().clone());
        match &state.ended {
            Some(ended) => Poll::Ready(Err(ended.clone())),
            None if state.credit_in > 0 => Poll::Ready(Ok(state.credit_in)),
            None => Poll::Pending,
        }
    }

    /// Whose settings count; the actor hears of it with what comes next.
    pub(crate) fn service(&self, service: usize) {
        self.mailbox.lock().service_out = Some(service);
    }

    /// The exchange's line in the log.
    pub(crate) fn access(&self) -> Option<&Access> {
        self.mailbox.access()
    }

    pub(crate) fn head(&mut self, head: Head, end: bool) {
        self.mailbox.access.iter().for_each(Access::headed);
        let mut state = self.mailbox.lock();
        if !state.out_closed {
            if let Head::Response(response) = &head {
                state.succeeded = response.status < 300;
            }
            if end && state.succeeded && state.upload == Upload::Cut {
                return self.mailbox.give_up(&mut state, upload_cut());
            }
            state.head_out = Some((head, end));
            state.out_closed = end;
            self.mailbox.ring(&mut state);
        }
    }

    /// A piece within the credit seen last.
    pub(crate) fn data(&mut self, bytes: Bytes) {
        let mut state = self.mailbox.lock();
        if !state.out_closed && !bytes.is_empty() {
            state.credit_in = state.credit_in.saturating_sub(bytes.len() as u64);
            state.data_out.push_back(bytes);
            self.mailbox.ring(&mut state);
        }
    }

    pub(crate) fn end(&mut self, trailers: Fields) {
        let mut state = self.mailbox.lock();
        if state.upload == Upload::Cut && state.succeeded && !state.out_closed {
            return self.mailbox.give_up(&mut state, upload_cut());
        }
        if !state.out_closed {
            state.out_closed = true;
            state.end_out = Some(trailers);
            self.mailbox.ring(&mut state);
        }
    }

    pub(crate) fn abort(&mut self, cause: Cause) {
        self.mailbox.abort(cause);
    }

    /// Edge: the rest of the request goes on behind an answer of success.
    pub(crate) fn insist(&mut self) {
        self.mailbox.lock().uploading = true;
    }

    /// Edge: the client sends its body though it was not asked to.
    pub(crate) fn sends_anyway(&mut self) {
        let watch = self.watch();
        watch.interim(100, Fields::new());
    }

    /// Gateway: the exchange.
    pub(crate) fn exchange(&self) -> Option<ExchangeId> {
        self.mailbox.lock().id
    }

    /// A handle for what only watches the exchange.
    pub(crate) fn watch(&self) -> Watch {
        Watch { mailbox: Arc::clone(&self.mailbox) }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if !self.mailbox.lock().out_closed {
            self.mailbox.abort(match self.role {
                relay::Role::Edge => client_gone(),
                relay::Role::Gateway => Cause {
                    kind: CauseKind::OriginFailed,
                    reason: "the origin's answer was given up".to_owned(),
                },
            });
        }
    }
}

/// Sees an exchange end, may end it, and may send informational statuses.
pub(crate) struct Watch {
    mailbox: Arc<Mailbox>,
}

impl Watch {
    /// Resolves when the exchange is aborted by either side.
    pub(crate) async fn aborted(&self) -> Ended {
        std::future::poll_fn(|cx| {
            let mut state = self.mailbox.lock();
            if let Some(ended) = &state.ended {
                return Poll::Ready(ended.clone());
            }
            state.watcher = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    pub(crate) fn abort(&self, cause: Cause) {
        self.mailbox.abort(cause);
    }

    pub(crate) fn interim(&self, status: u16, fields: Fields) {
        let mut state = self.mailbox.lock();
        if !state.out_closed && state.interims_out.len() < MAX_INTERIMS {
            state.interims_out.push_back((status, fields));
            self.mailbox.ring(&mut state);
        }
    }
}

fn upload_cut() -> Cause {
    let reason = "the origin answered and left before it had the whole request".to_owned();
    Cause { kind: CauseKind::OriginFailed, reason }
}

fn client_gone() -> Cause {
    Cause { kind: CauseKind::ClientGone, reason: "the client went away".to_owned() }
}

#[cfg(test)]
mod tests;
