//! Signals (RFC 8323 §5): what the peer says of itself and of the connection, and what is said to
//! it.

use std::time::Duration;

use super::messages::{Custody, Messages};
use super::settings::*;
use super::wire;
use crate::coap::framed::{Capabilities, signal};
use crate::coap::{Code, Content, Message, Token, option};

/// Text of a diagnostic payload or an address, cut to its bound.
fn text(bytes: &[u8]) -> String {
    let bytes = bytes.get(..MAX_DIAGNOSTIC_BYTES).unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}

impl Messages {
    pub(super) fn signal(&mut self, token: Token, content: &Content) {
        let bytes = wire::signal(self.framing, token, content);
        self.transmit(bytes);
    }

    pub(super) fn send_csm(&mut self) {
        let csm = Content::new(Code::CSM)
            .with_uint(signal::MAX_MESSAGE_SIZE, MAX_MESSAGE_BYTES)
            .with(signal::BLOCK_WISE_TRANSFER, b"");
        self.signal(Token::EMPTY, &csm);
    }

    pub(super) fn signalled(&mut self, message: &Message<'_>) {
        let code = message.code;
        let known = signal::known(code);
        let is_bad = |number: &u16| option::is_critical(*number) && !known.contains(number);
        let bad = message.options.map(|(number, _)| number).find(is_bad);
        match (code, bad) {
            (Code::CSM, _) => self.announced(message),
            // RFC 8323 §5.2: the connection cannot go on.
            (_, Some(number)) => self.fail(Fault::BadOption(code, number)),
            (Code::PING, None) => self.pinged(message),
            (Code::PONG, None) => self.ponged(message.token),
            (Code::RELEASE, None) => self.was_released(message),
            (Code::ABORT, None) => {
                let bad_csm_option = message.options.uint(signal::BAD_CSM_OPTION);
                let diagnostic = text(message.payload);
                self.close(End::Aborted { bad_csm_option, diagnostic });
            }
            _ => self.counts.unsupported += 1,
        }
    }

    /// RFC 8323 §5.3: each CSM changes what it says.
    fn announced(&mut self, csm: &Message<'_>) {
        let known = signal::known(Code::CSM);
        let is_bad = |number: &u16| option::is_critical(*number) && !known.contains(number);
        if let Some(number) = csm.options.map(|(number, _)| number).find(is_bad) {
            return self.fail(Fault::BadCsm(number));
        }
        let size = csm.options.first(signal::MAX_MESSAGE_SIZE);
        let bytes = size.map(|value| option::uint(value).unwrap_or(u32::MAX));
        if bytes.is_some_and(|bytes| bytes < MIN_MESSAGE_BYTES) {
            return self.fail(Fault::BadCsm(signal::MAX_MESSAGE_SIZE));
        }
        let mut peer: Capabilities = self.peer.unwrap_or_default();
        // What it refuses is refused above.
        let _ = peer.observe(csm);
        self.peer = Some(peer);
        self.timers.set(super::messages::Timer::Csm, None);
    }

    /// RFC 8323 §5.4.
    fn pinged(&mut self, ping: &Message<'_>) {
        let token = ping.token;
        let wants_custody = ping.options.first(signal::CUSTODY).is_some();
        if wants_custody && self.custodies.len() < MAX_PINGS {
            return self.custodies.push_back(Custody { token, up_to: self.last_exchange });
        }
        let mut pong = Content::new(Code::PONG);
        if self.exchanges.is_empty() {
            pong.push(signal::CUSTODY, b"");
        }
        self.signal(token, &pong);
    }

    /// Answers pings before which everything is processed.
    pub(super) fn confirm_custody(&mut self) {
        let oldest = self.exchanges.keys().next().copied().unwrap_or(u64::MAX);
        while let Some(custody) = self.custodies.front()
            && oldest > custody.up_to
        {
            let token = custody.token;
            self.custodies.pop_front();
            self.signal(token, &Content::new(Code::PONG).with(signal::CUSTODY, b""));
        }
    }

    /// Asks whether the peer is there. What it answers is a sign of life; else nothing of it.
    pub(super) fn ask_whether_there(&mut self) {
        self.signal(Token::EMPTY, &Content::new(Code::PING));
    }

    fn was_released(&mut self, release: &Message<'_>) {
        if std::mem::replace(&mut self.progress.was_released, true) {
            return;
        }
        let addresses = release.options.all(signal::ALTERNATIVE_ADDRESS);
        let alternatives = addresses.take(MAX_ALTERNATIVES).map(text).collect();
        let hold_off_s = release.options.uint(signal::HOLD_OFF);
        self.outputs.push_back(Output::Released { alternatives, hold_off_s });
    }

    /// RFC 8323 §5.5.
    pub(super) fn release(&mut self, hold_off_s: Option<u32>) {
        if self.progress.is_closed || self.progress.has_released {
            return;
        }
        self.progress.has_released = true;
        let mut release = Content::new(Code::RELEASE);
        if let Some(seconds) = hold_off_s {
            release.push_uint(signal::HOLD_OFF, seconds);
        }
        self.signal(Token::EMPTY, &release);
    }

    fn abort(&mut self, content: Content, why: &str) {
        let content = content.with_payload(why.to_owned());
        self.signal(Token::EMPTY, &content);
    }

    /// The peer broke the protocol (RFC 8323 §5.6).
    pub(super) fn fail(&mut self, fault: Fault) {
        let abort = Content::new(Code::ABORT);
        let (abort, why) = match &fault {
            Fault::NoCsm(code) => (abort, format!("a message {code} came before the CSM")),
            Fault::BadCsm(number) => {
                let abort = abort.with_uint(signal::BAD_CSM_OPTION, (*number).into());
                (abort, format!("option {number} of the CSM cannot be met"))
            }
            Fault::BadOption(code, number) => {
                (abort, format!("a signal {code} has the critical option {number}"))
            }
            Fault::Format(error) => (abort, error.to_string()),
        };
        self.abort(abort, &why);
        self.close(End::Broken(fault));
    }

    /// This side has its own reason.
    pub(super) fn leave(&mut self, why: &'static str) {
        self.abort(Content::new(Code::ABORT), why);
        self.close(End::GivenUp(why));
    }

    /// The peer said nothing for too long.
    pub(super) fn give_up(&mut self, after: Duration) {
        let seconds = after.as_secs();
        self.abort(Content::new(Code::ABORT), &format!("nothing came for {seconds} s"));
        self.close(End::Silent(after));
    }
}
