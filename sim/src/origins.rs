//! What origins do.

use std::time::Duration;

use coding::ExchangeId;
use proto::bhttp;
use relay::{Cause, CauseKind, Head, Input, Output};

use crate::party::{Origin, Receiver, Sender, portions};
use crate::world::{NodeId, What, World};

impl World {
    /// What a gateway has for origins.
    pub(crate) fn origin_hears(&mut self, gateway: NodeId, output: Output) {
        match output {
            Output::Head { exchange, head, end } => self.origin_head(gateway, exchange, &head, end),
            Output::Data { exchange, bytes } => {
                let origin = self.parties.origin(gateway, exchange);
                origin.receiver.take(&bytes);
                let pause = origin.receiver.pause;
                self.at(self.now + pause, What::OriginSips { gateway, exchange });
            }
            Output::End { exchange, trailers } => {
                let expected = self.parties.clients[&exchange].sender.trailers;
                let origin = self.parties.origin(gateway, exchange);
                origin.receiver.end(&trailers, expected);
                let answers = self.now + origin.thinks;
                self.at(answers, What::OriginAnswers { gateway, exchange });
            }
            Output::Abort { exchange, .. } => {
                let origin = self.parties.origin(gateway, exchange);
                (origin.responded, origin.sender.ended, origin.aborted) = (true, true, true);
            }
            Output::Credit { exchange, bytes } => {
                self.parties.origin(gateway, exchange).sender.credit += bytes;
                self.origin_sends(gateway, exchange);
            }
            other => panic!("not for an origin: {other:?}"),
        }
    }

    fn origin_head(&mut self, gateway: NodeId, exchange: ExchangeId, head: &Head, end: bool) {
        *self.parties.forwarded.entry(exchange).or_default() += 1;
        let Head::Request(request) = head else { panic!("a response for an origin") };
        let client = &self.parties.clients[&exchange];
        assert_eq!(request.method, client.method);
        assert!(!end || client.sender.body.len == 0, "a body was left out");
        let tunnel = client.is_tunnel();
        let (request_body, answer) = (client.sender.body, client.receiver.body);
        let slow = self.moods.slow && self.random.once_in(3);
        let mut receiver = Receiver::new(request_body, slow, &mut self.random);
        (receiver.headed, receiver.ended) = (true, end);
        let breaks = self.moods.aborts && self.random.once_in(8);
        let early = request_body.len > 0 && self.random.once_in(10);
        let trailers = answer.len > 0 && !tunnel && client.receiver.sip.is_multiple_of(3);
        if trailers {
            self.parties.answers_with_trailers.insert(exchange);
        }
        let busy_until = self.now;
        let (sip, expects) = (receiver.sip, client.expects_continue);
        receiver.credit += sip;
        let sender = Sender { body: answer, credit: 0, at: 0, ended: false, trailers, busy_until };
        let thinks = Duration::from_millis(self.random.magnitude(14));
        let origin = Origin {
            receiver,
            sender,
            responded: false,
            aborted: false,
            breaks_at: breaks.then(|| self.random.below(answer.len + 1)),
            thinks,
        };
        self.parties.origins.insert((gateway, exchange), origin);
        let input = Input::Credit { exchange, bytes: sip };
        self.at(self.now, What::Tell { node: gateway, input });
        if expects && !early {
            let input = Input::Interim { exchange, status: 100, fields: Vec::new() };
            self.at(self.now + thinks, What::Tell { node: gateway, input });
        }
        if early || end || tunnel {
            self.at(self.now + thinks, What::OriginAnswers { gateway, exchange });
        }
    }

    pub(crate) fn origin_sips(&mut self, gateway: NodeId, exchange: ExchangeId) {
        let receiver = &mut self.parties.origin(gateway, exchange).receiver;
        if receiver.credit < receiver.sip {
            let bytes = receiver.sip - receiver.credit;
            receiver.credit += bytes;
            self.tell(gateway, Input::Credit { exchange, bytes });
        }
    }

    pub(crate) fn origin_answers(&mut self, gateway: NodeId, exchange: ExchangeId) {
        let is_tunnel = self.client(exchange).is_tunnel();
        let origin = self.parties.origin(gateway, exchange);
        if std::mem::replace(&mut origin.responded, true) {
            return;
        }
        // A success would say that the rest of the request is still wanted.
        let status = if origin.receiver.ended || is_tunnel { 200 } else { 413 };
        let end = origin.sender.body.len == 0 && origin.breaks_at.is_none();
        origin.sender.ended = end;
        let fields = vec![("content-type".into(), "text/xml".into())];
        let response = bhttp::Response { status, fields };
        self.tell(gateway, Input::Response { exchange, response, end });
        self.origin_sends(gateway, exchange);
    }

    fn origin_sends(&mut self, gateway: NodeId, exchange: ExchangeId) {
        let now = self.now;
        let origin = self.parties.origins.get_mut(&(gateway, exchange)).expect("asked");
        if !origin.responded || origin.sender.ended {
            return;
        }
        let most = origin.breaks_at.unwrap_or(u64::MAX);
        let mut inputs = portions(&mut origin.sender, exchange, most, now, &mut self.random);
        if origin.breaks_at == Some(origin.sender.at) {
            origin.sender.ended = true;
            let cause = Cause { kind: CauseKind::OriginFailed, reason: "reset".into() };
            let at = origin.sender.busy_until.max(now);
            inputs.push((at, Input::Abort { exchange, cause }));
        }
        for (at, input) in inputs {
            self.at(at, What::Tell { node: gateway, input });
        }
    }
}
