//! What clients do and how they take it.

use std::time::Duration;

use bytes::Bytes;
use coding::ExchangeId;
use proto::bhttp;
use relay::{Cause, CauseKind, Head, Input, Known, Output};

use crate::party::{Body, Client, Fate, Receiver, Sender, portions};
use crate::world::{NodeId, What, World};

impl World {
    pub(crate) fn client(&mut self, exchange: ExchangeId) -> &mut Client {
        self.parties.clients.get_mut(&exchange).expect("a client that asked")
    }

    fn tell_edge_of(&mut self, exchange: ExchangeId, input: Input) {
        let edge = self.client(exchange).edge;
        self.tell(edge, input);
    }

    pub(crate) fn client_starts(&mut self, edge: NodeId) {
        self.to_start -= 1;
        let exchange = self.nodes[edge].relay.next_exchange();
        let slow = self.moods.slow && self.random.once_in(3);
        let methods = ["GET", "GET", "GET", "POST", "POST", "POST", "PUT", "CONNECT"];
        let method = methods[usize::try_from(self.random.below(8)).expect("small")];
        let tunnel = method == "CONNECT";
        let mut body = Body::new(&mut self.random);
        if method == "GET" {
            body.len = 0;
        }
        let expects_continue = body.len > 0 && !tunnel && self.random.once_in(5);
        let trailers = body.len > 0 && !tunnel && self.random.once_in(6);
        let late = self.moods.slow && self.random.once_in(4);
        let pause = if late { self.random.below(8000) } else { 0 };
        let begins = self.now + Duration::from_millis(pause);
        let end = body.len == 0 && !tunnel && !late;
        let sender = Sender { body, credit: 0, at: 0, ended: end, trailers, busy_until: begins };
        let receiver = Receiver::new(Body::new(&mut self.random), slow, &mut self.random);
        let credit = receiver.sip;
        let fate = None;
        let client =
            Client { edge, method, sender, receiver, expects_continue, fate, early: false };
        self.parties.clients.insert(exchange, client);
        if self.moods.aborts && self.random.once_in(6) {
            let leaves = self.some_time(20_000);
            self.at(leaves, What::ClientLeaves(exchange));
        }
        let mut fields = vec![("content-type".into(), "text/xml".into())];
        if expects_continue {
            fields.push(("expect".into(), "100-continue".into()));
        }
        if body.len > 0 && !tunnel && self.random.once_in(2) {
            fields.push(("content-length".into(), body.len.to_string().into()));
        }
        let request = bhttp::Request {
            method: method.into(),
            scheme: "http".into(),
            authority: "origin".into(),
            path: "/".into(),
            fields,
        };
        if !end {
            self.at(begins, What::ClientBegins(exchange));
        }
        let client = format!("client {}", exchange.number % 2).into();
        let known = Box::new(Known { client: Some(client), ..Known::default() });
        self.tell(edge, Input::Request { exchange, request, end, known });
        if self.client(exchange).fate.is_none() {
            self.client_may_take(exchange, credit);
        }
    }

    /// Without a body there is still an end to tell.
    pub(crate) fn client_begins(&mut self, exchange: ExchangeId) {
        self.client_sends(exchange);
    }

    fn client_may_take(&mut self, exchange: ExchangeId, bytes: u64) {
        self.client(exchange).receiver.credit += bytes;
        self.tell_edge_of(exchange, Input::Credit { exchange, bytes });
    }

    fn client_sends(&mut self, exchange: ExchangeId) {
        let now = self.now;
        let client = self.parties.clients.get_mut(&exchange).expect("a client that asked");
        let over = client
            .fate
            .as_ref()
            .is_some_and(|fate| !(client.is_tunnel() && *fate == Fate::Answered));
        if over || client.expects_continue || now < client.sender.begins() {
            return;
        }
        let (edge, sender) = (client.edge, &mut client.sender);
        for (at, input) in portions(sender, exchange, u64::MAX, now, &mut self.random) {
            self.at(at, What::Tell { node: edge, input });
        }
    }

    /// What the edge has for its clients.
    pub(crate) fn client_hears(&mut self, output: Output) {
        match output {
            Output::Head { exchange, head, end } => self.client_head(exchange, &head, end),
            Output::Data { exchange, bytes } => self.client_data(exchange, &bytes),
            Output::End { exchange, trailers } => {
                let expected = self.parties.answers_with_trailers.contains(&exchange);
                let client = self.client(exchange);
                assert!(client.fate.is_none(), "told twice: {:?}", client.fate);
                client.receiver.end(&trailers, expected);
                client.answered();
            }
            Output::Abort { exchange, cause, untouched } => {
                self.client_aborted(exchange, cause, untouched);
            }
            Output::Credit { exchange, bytes } => {
                let client = self.client(exchange);
                assert!(!client.expects_continue, "body asked for before the origin's 100");
                client.sender.credit += bytes;
                self.client_sends(exchange);
            }
            Output::Interim { exchange, .. } => {
                let client = self.client(exchange);
                assert!(!client.receiver.headed, "an informational response behind the final");
                client.expects_continue = false;
            }
            other => panic!("not for a client: {other:?}"),
        }
    }

    fn client_head(&mut self, exchange: ExchangeId, head: &Head, end: bool) {
        let client = self.client(exchange);
        assert!(client.fate.is_none(), "told twice: {:?}", client.fate);
        assert!(matches!(head, Head::Response(response) if matches!(response.status, 200 | 413)));
        assert!(!std::mem::replace(&mut client.receiver.headed, true), "a second head");
        assert!(!end || client.receiver.body.len == 0, "the head says that no body comes");
        if end {
            client.receiver.ended = true;
            client.answered();
        }
    }

    fn client_data(&mut self, exchange: ExchangeId, bytes: &Bytes) {
        let client = self.client(exchange);
        assert!(client.fate.is_none(), "told twice: {:?}", client.fate);
        client.receiver.take(bytes);
        let pause = client.receiver.pause;
        self.at(self.now + pause, What::ClientSips(exchange));
    }

    pub(crate) fn client_sips(&mut self, exchange: ExchangeId) {
        let client = self.client(exchange);
        if client.fate.is_none() && client.receiver.credit < client.receiver.sip {
            let room = client.receiver.sip - client.receiver.credit;
            self.client_may_take(exchange, room);
        }
    }

    pub(crate) fn client_leaves(&mut self, exchange: ExchangeId) {
        let client = self.client(exchange);
        if client.fate.is_none() {
            client.fate = Some(Fate::LeftByClient);
            let cause = Cause { kind: CauseKind::ClientGone, reason: "left".into() };
            self.tell_edge_of(exchange, Input::Abort { exchange, cause });
        }
    }

    fn client_aborted(&mut self, exchange: ExchangeId, cause: Cause, untouched: bool) {
        let client = self.client(exchange);
        if client.is_tunnel() && client.fate == Some(Fate::Answered) {
            // Only its own direction was still open.
            return;
        }
        assert!(client.fate.is_none(), "told twice: {:?}", client.fate);
        assert!(!untouched || client.sender.at == 0, "untouched, yet body was taken");
        let headed = client.receiver.headed;
        client.fate = Some(Fate::Failed { cause, headed });
    }
}
