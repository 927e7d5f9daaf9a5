//! Requests of this side, protected, and the answers to them, verified.

use std::collections::BTreeMap;

use super::{checked, to_content, to_message};
use crate::coap::machine::{Address, Input, MAX_ECHOES, Output, Reason};
use crate::coap::{Code, Content, option};
use crate::oscore::{Endpoint, SentRequest};

/// Half of the numbers that notifications are put in order by (RFC 7641 §3.4).
const HALF_OF_ALL: u32 = 1 << 23;

/// A request that is open.
#[derive(Debug)]
struct Open<P> {
    peer: P,
    /// As it was before it was protected.
    content: Content,
    is_confirmable: bool,
    sent: SentRequest,
    echoes: u8,
    /// The number of the newest notification.
    newest: Option<u32>,
}

#[derive(Debug)]
pub(super) struct Client<P> {
    /// By the endpoint's number, as many as it has.
    open: BTreeMap<u64, Open<P>>,
}

/// What follows an answer.
type Taken<P> = (Option<Output<P>>, Vec<Input<P>>);

impl<P: Address> Client<P> {
    pub(super) fn new() -> Self {
        Self { open: BTreeMap::new() }
    }

    pub(super) fn outgoing(
        &mut self,
        context: &mut Endpoint,
        input: Input<P>,
    ) -> Result<Input<P>, Output<P>> {
        match input {
            Input::Request { request, peer, content, is_confirmable } => {
                let message = to_message(&content);
                let Ok((outer, sent)) = context.protect_request(&message) else {
                    return Err(Output::Failed { request, reason: Reason::Misuse });
                };
                let open = Open { peer, content, is_confirmable, sent, echoes: 0, newest: None };
                self.open.insert(request, open);
                let content = to_content(outer);
                Ok(Input::Request { request, peer, content, is_confirmable })
            }
            Input::Cancel { request } => {
                self.open.remove(&request);
                Ok(Input::Cancel { request })
            }
            other => Ok(other),
        }
    }

    pub(super) fn answered(&mut self, context: &mut Endpoint, output: Output<P>) -> Taken<P> {
        match output {
            Output::Response { request, content, is_last } => {
                self.response(context, request, content, is_last)
            }
            // RFC 8613 §7.2: what renews an observation has a number of its own.
            Output::Failed { request, reason: Reason::Aged } => match self.open.get_mut(&request) {
                Some(open) => {
                    open.echoes = 0;
                    self.again(context, request)
                }
                None => (None, Vec::new()),
            },
            Output::Failed { request, .. } | Output::Suppressed { request } => {
                self.open.remove(&request);
                (Some(output), Vec::new())
            }
            other => (Some(other), Vec::new()),
        }
    }

    /// Sends a request once more, protected anew.
    fn again(&mut self, context: &mut Endpoint, request: u64) -> Taken<P> {
        let Some(open) = self.open.get_mut(&request) else { return (None, Vec::new()) };
        match context.protect_request(&to_message(&open.content)) {
            Ok((outer, sent)) => {
                open.sent = sent;
                open.newest = None;
                let (peer, is_confirmable) = (open.peer, open.is_confirmable);
                let content = to_content(outer);
                (None, vec![Input::Request { request, peer, content, is_confirmable }])
            }
            Err(_) => self.fail(request, Reason::Misuse, true),
        }
    }

    fn fail(&mut self, request: u64, reason: Reason, is_over: bool) -> Taken<P> {
        self.open.remove(&request);
        let cancel = (!is_over).then_some(Input::Cancel { request });
        (Some(Output::Failed { request, reason }), cancel.into_iter().collect())
    }

    fn response(
        &mut self,
        context: &mut Endpoint,
        request: u64,
        content: Content,
        is_last: bool,
    ) -> Taken<P> {
        let Some(open) = self.open.get_mut(&request) else {
            return (Some(Output::Response { request, content, is_last }), Vec::new());
        };
        if content.first(option::OSCORE).is_none() {
            // RFC 8613 §8.2: only errors come so, and anybody can say them.
            return self.fail(request, Reason::Unprotected(content.code), is_last);
        }
        let verified = context.verify_response(&mut open.sent, &to_message(&content));
        let Some(answer) = verified.ok().and_then(|message| checked(message).ok()) else {
            return match is_last {
                true => self.fail(request, Reason::Unverified, true),
                // RFC 8613 §8.4, step 8: the observation goes on.
                false => (None, Vec::new()),
            };
        };
        let echo = answer.first(option::ECHO).filter(|_| answer.code == Code::UNAUTHORIZED);
        if let Some(echo) = echo.filter(|_| is_last && open.echoes < MAX_ECHOES) {
            open.echoes += 1;
            open.content.set(option::ECHO, echo);
            return self.again(context, request);
        }
        self.deliver(request, answer, is_last)
    }

    /// RFC 8613 §4.1.3.5.2: it is a notification where it is one inside and outside.
    fn deliver(&mut self, request: u64, mut answer: Content, is_last: bool) -> Taken<P> {
        let number = answer.uint(option::OBSERVE).filter(|_| answer.code.is_success());
        let (Some(number), false, Some(open)) = (number, is_last, self.open.get_mut(&request))
        else {
            self.open.remove(&request);
            answer.remove(option::OBSERVE);
            let cancel = (!is_last).then_some(Input::Cancel { request });
            let output = Output::Response { request, content: answer, is_last: true };
            return (Some(output), cancel.into_iter().collect());
        };
        // RFC 8613 §7.4.1: the numbers of notifications are those of messages, and so in order.
        let is_newer = |newest: u32| {
            let ahead = number.wrapping_sub(newest) & (2 * HALF_OF_ALL - 1);
            ahead > 0 && ahead < HALF_OF_ALL
        };
        if !open.newest.is_none_or(is_newer) {
            return (None, Vec::new());
        }
        open.newest = Some(number);
        // The Echo has served.
        open.content.remove(option::ECHO);
        (Some(Output::Response { request, content: answer, is_last: false }), Vec::new())
    }
}
