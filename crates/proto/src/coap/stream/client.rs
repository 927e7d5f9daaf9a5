//! Requests of this side, their answers, and what it observes.

use super::messages::{Messages, Timer};
use super::settings::*;
use crate::coap::framed::signal;
use crate::coap::machine::{Reason, UNDERSTOOD};
use crate::coap::{Code, Content, Message, Token, option};

/// A request of ours that has no last answer yet, or a ping.
#[derive(Debug)]
pub(super) struct Call {
    content: Content,
    token: Token,
    echoes: u8,
    /// Whether it observes and the peer has agreed.
    is_notified: bool,
}

impl Call {
    /// Whether nothing but notifications is still to come.
    pub(super) fn is_notified(&self) -> bool {
        self.is_notified
    }

    fn is_ping(&self) -> bool {
        self.content.code == Code::PING
    }

    /// Whether it asks to observe (RFC 7641 §2).
    fn observes(&self) -> bool {
        self.content.uint(option::OBSERVE) == Some(0)
    }

    /// Whether it asks for no answer of any class (RFC 7967 §2.1).
    fn wants_none(&self) -> bool {
        use option::{NO_CLIENT_ERROR, NO_SERVER_ERROR, NO_SUCCESS};
        let all = NO_SUCCESS | NO_CLIENT_ERROR | NO_SERVER_ERROR;
        self.content.uint(option::NO_RESPONSE).is_some_and(|not| not & all == all)
    }
}

impl Messages {
    /// A token that was never used here. The connection sees to it that answers are the peer's, so
    /// that it need not be unforeseeable (RFC 7252 §5.3.1), only short.
    fn new_token(&mut self) -> Token {
        self.last_token += 1;
        let bytes = self.last_token.to_be_bytes();
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        Token::new(bytes.get(zeros..).unwrap_or_default()).unwrap_or_default()
    }

    /// A request or, with its code, a ping.
    pub(super) fn call(&mut self, request: u64, content: Content) {
        if self.calls.contains_key(&request) {
            self.counts.misused += 1;
            return;
        }
        let is_ping = content.code == Code::PING;
        let reason = match () {
            () if self.progress.is_eof => Reason::Closed,
            () if !is_ping && !content.code.is_request() => Reason::Misuse,
            () if self.calls.len() >= MAX_REQUESTS => Reason::Full,
            () => {
                let token = self.new_token();
                let call = Call { content, token, echoes: 0, is_notified: false };
                match self.send(token, &call.content) {
                    Ok(()) => return self.sent(request, call),
                    Err(_) => Reason::Misuse,
                }
            }
        };
        self.outputs.push_back(Output::Failed { request, reason });
    }

    fn sent(&mut self, request: u64, call: Call) {
        // The transport sees to it that it arrives.
        if call.wants_none() {
            return self.outputs.push_back(Output::Suppressed { request });
        }
        self.timers.set(Timer::Answer(request), Some(self.now + MAX_ANSWER_WAIT));
        self.tokens.insert(call.token, request);
        self.calls.insert(request, call);
    }

    pub(super) fn ping(&mut self, request: u64) {
        // RFC 8323 §5.4.1.
        self.call(request, Content::new(Code::PING).with(signal::CUSTODY, b""));
    }

    pub(super) fn unanswered(&mut self, request: u64) {
        self.finish(request, Output::Failed { request, reason: Reason::NoAnswer });
    }

    fn finish(&mut self, request: u64, output: Output) {
        if self.drop_call(request).is_some() {
            self.outputs.push_back(output);
        }
    }

    fn drop_call(&mut self, request: u64) -> Option<Call> {
        let call = self.calls.remove(&request)?;
        self.tokens.remove(&call.token);
        self.timers.set(Timer::Answer(request), None);
        Some(call)
    }

    /// RFC 7641 §3.6: where nothing can be reset, a request says that nothing is observed any more.
    pub(super) fn cancel(&mut self, request: u64) {
        let Some(mut call) = self.drop_call(request) else {
            self.counts.misused += 1;
            return;
        };
        if call.observes() && !self.progress.is_eof {
            call.content.set(option::OBSERVE, &[1]);
            // The request that it takes back was no shorter.
            let _ = self.send(call.token, &call.content);
        }
    }

    pub(super) fn ponged(&mut self, token: Token) {
        match self.tokens.get(&token).copied() {
            Some(request) if self.calls.get(&request).is_some_and(Call::is_ping) => {
                self.finish(request, Output::Alive { request });
            }
            // Of a peer that leaves the token out, or to what was only to be a sign of life.
            _ if token == Token::EMPTY => {
                let mut pings = self.calls.iter().filter(|(_, call)| call.is_ping());
                if let Some(request) = pings.next().map(|(request, _)| *request) {
                    self.finish(request, Output::Alive { request });
                }
            }
            _ => self.counts.unmatched += 1,
        }
    }

    pub(super) fn answered(&mut self, message: &Message<'_>) {
        let request = self.tokens.get(&message.token).copied();
        let call = request.and_then(|request| self.calls.get_mut(&request));
        let Some((request, call)) = request.zip(call).filter(|(_, call)| !call.is_ping()) else {
            self.counts.unmatched += 1;
            return;
        };
        let is_bad = option::find_bad_critical(message.options, &UNDERSTOOD).is_some();
        let content = match Content::of(message) {
            Ok(content) if !is_bad => content,
            // RFC 7252 §5.4.1.
            _ => {
                let failed = Output::Failed { request, reason: Reason::BadAnswer };
                return self.finish(request, failed);
            }
        };
        if let Some(echo) = content.first(option::ECHO)
            && content.code == Code::UNAUTHORIZED
            && call.echoes < MAX_ECHOES
        {
            // RFC 9175 §2.3: the server wants to see that the request is fresh.
            call.content.set(option::ECHO, echo);
            call.echoes += 1;
            return self.repeat(request);
        }
        let is_notification = content.code.is_success() && content.first(option::OBSERVE).is_some();
        if !is_notification || !call.observes() {
            let response = Output::Response { request, content, is_last: true };
            return self.finish(request, response);
        }
        // RFC 8323 §7: what comes last is newest, and goes on for as long as the connection.
        call.is_notified = true;
        self.timers.set(Timer::Answer(request), None);
        self.outputs.push_back(Output::Response { request, content, is_last: false });
    }

    fn repeat(&mut self, request: u64) {
        let token = self.new_token();
        let Some(call) = self.calls.get_mut(&request) else { return };
        let before = std::mem::replace(&mut call.token, token);
        let content = call.content.clone();
        self.tokens.remove(&before);
        self.tokens.insert(token, request);
        self.timers.set(Timer::Answer(request), Some(self.now + MAX_ANSWER_WAIT));
        if self.send(token, &content).is_err() {
            self.finish(request, Output::Failed { request, reason: Reason::Misuse });
        }
    }
}
