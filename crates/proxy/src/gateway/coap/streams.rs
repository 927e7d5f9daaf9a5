//! Clients of CoAP over TCP (RFC 8323) at the port of those over UDP: the same requests, from the
//! same places, for which a handshake has shown that the client has its address.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proto::coap::stream::{Connection, Counts, Input, Output};
use proto::coap::{Code, Content, option};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::flows::{Flows, Way};
use super::{Answer, FULL, FULL_OF_BYTES, MAX_ANSWER_TIME, MAX_OPEN, RETRY_AFTER_S, Server};
use crate::coap::link::{self, Command, Link, User};
use crate::coap::shares::{SharePlace, Shares};
use crate::coap::wire::Wire;
use crate::descriptors;
use crate::metrics::Metrics;
use crate::parting::Parting;
use crate::rarely::Rarely;
use crate::run;
use crate::seats::{Doing, Seat, Seats, Source};

/// Connections at once; who comes when all are taken gets the place of one that is idle.
pub(super) const MAX_CONNECTIONS: usize = 256;
/// Each connection may hold so many bytes; more takes places of what all have.
const UNIT_BYTES: usize = 64 << 10;
/// As many places: 32 MiB, of which one client gets most only while nobody else wants some.
const MAX_UNITS: usize = 512;

/// What all connections share.
#[derive(Clone)]
pub(super) struct Streams {
    server: Arc<Server>,
    /// Places for requests, also of those over UDP.
    shares: Arc<Shares>,
    /// And for long answers.
    places: Arc<Shares>,
    parting: Parting,
    /// The gateway's end waits for whoever has one.
    alive: Option<mpsc::Sender<()>>,
    idle_timeout: Duration,
    bytes: Arc<Shares>,
    /// What strangers can do is reported now and then.
    full: Arc<Rarely>,
    ended: Arc<Rarely>,
}

impl Streams {
    pub(super) fn new(
        server: Arc<Server>,
        (shares, places): (Arc<Shares>, Arc<Shares>),
        (parting, alive): (Parting, mpsc::Sender<()>),
        idle_timeout: Duration,
    ) -> Self {
        let bytes = Shares::new(MAX_UNITS);
        let (full, ended) = (Arc::default(), Arc::default());
        let alive = Some(alive);
        Self { server, shares, places, parting, alive, idle_timeout, bytes, full, ended }
    }

    fn metrics(&self) -> &Arc<Metrics> {
        &self.server.metrics
    }

    /// Accepts for ever.
    pub(super) async fn accept(self, listener: TcpListener) {
        let seats = Seats::new(MAX_CONNECTIONS);
        loop {
            descriptors::wait_for_room(&listener, self.metrics(), || seats.drop_one()).await;
            match listener.accept().await {
                Ok((stream, address)) => {
                    let (seat, _) = seats.take(&Source::of(address.ip())).await;
                    let from = address.ip().to_canonical();
                    tokio::spawn(self.clone().serve(stream, from, seat));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a client of CoAP");
                    // Where descriptors have run out, this gives some back.
                    seats.drop_one();
                    // sleep: nobody is told when there are descriptors again.
                    tokio::time::sleep(run::ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Serves a connection until it ends or its place goes to another.
    async fn serve(self, stream: TcpStream, from: IpAddr, seat: Seat<Source>) {
        let _ = stream.set_nodelay(true);
        let link = Link::new(stream, Wire::stream(), Some(self.idle_timeout), true);
        let Ok(link) = link.map(Link::taking_bodies) else { return };
        let (commands, receiver) = link::channel();
        let mut parting = self.parting.clone();
        let ended = Arc::clone(&self.ended);
        let mut client = Client {
            from,
            seat: &seat,
            commands: commands.clone(),
            flows: Flows::new(Arc::clone(&self.places)),
            held: Vec::new(),
            counts: Counts::default(),
            streams: self,
        };
        let farewell = async {
            parting.said().await;
            let _ = commands.send(Command::End).await;
            std::future::pending::<()>().await;
        };
        let why = tokio::select! {
            result = link.run(receiver, &mut client) => match result {
                Ok(end) => end.as_ref().map(link::why).unwrap_or_default(),
                Err(error) => error.to_string(),
            },
            () = seat.lost() => "its place went to a new one".to_owned(),
            () = farewell => return,
        };
        if let Some(times) = ended.note(Instant::now()) {
            tracing::debug!(%from, why, times, "a connection of CoAP over TCP ended");
        }
    }
}

/// One connection's client.
struct Client<'a> {
    streams: Streams,
    from: IpAddr,
    seat: &'a Seat<Source>,
    commands: mpsc::Sender<Command>,
    flows: Flows,
    /// Places for bytes beyond the first [`UNIT_BYTES`].
    held: Vec<SharePlace>,
    counts: Counts,
}

impl User for Client<'_> {
    fn take(&mut self, output: Output) -> Option<Input> {
        if let Output::Flow(flow) = output {
            self.flows.take(flow);
            return None;
        }
        let (exchange, content, has_more) = match output {
            Output::Request { exchange, content } => (exchange, content, false),
            Output::Opened { exchange, content } => (exchange, content, true),
            // Nothing is observed here, and nothing asked.
            _ => return None,
        };
        let Some(place) = self.streams.shares.take(self.from) else {
            self.streams.metrics().count_limit(FULL);
            if let Some(times) = self.streams.full.note(Instant::now()) {
                let what = "refused requests of CoAP over TCP: too many are open";
                tracing::warn!(times, most = MAX_OPEN, newest = %self.from, "{what}");
            }
            let content = Content::new(Code::SERVICE_UNAVAILABLE);
            let content = content.with_uint(option::MAX_AGE, RETRY_AFTER_S);
            return Some(Input::Respond { exchange, content });
        };
        let server = Arc::clone(&self.streams.server);
        let (from, commands, flows) = (self.from, self.commands.clone(), self.flows.clone());
        tokio::spawn(async move {
            let (first, back) = (content.payload.clone(), Way::Stream(commands.clone()));
            let body = || has_more.then(|| flows.body(exchange, back.clone(), first));
            let content = match server.answer(from, content, body).await {
                Answer::Whole(content) => content,
                Answer::Flowing(flowing) => match flows.place(from) {
                    Some(_lasts) => {
                        drop(place);
                        return flows.follow(exchange, back, *flowing).await;
                    }
                    None => server.full(),
                },
                // Nothing is observed over a connection.
                Answer::Events(_) => Content::new(Code::INTERNAL_SERVER_ERROR),
            };
            let _place = place;
            let answer = Command::Input(Input::Respond { exchange, content });
            // Who reads too slowly for it keeps no place: the connection has answered by then.
            let _ = tokio::time::timeout(MAX_ANSWER_TIME, commands.send(answer)).await;
        });
        None
    }

    fn observe(&mut self, connection: &Connection, queued_bytes: usize) -> Option<Input> {
        self.count(connection.counts());
        let is_open = connection.is_open() || queued_bytes > 0;
        let bytes = connection.held_bytes() + queued_bytes;
        self.seat.note(match () {
            () if !connection.is_established() => Doing::Silent,
            () if connection.is_open() => Doing::Busy,
            () if bytes > 0 => Doing::Speaking,
            () => Doing::Idle,
        });
        if !is_open && self.streams.parting.is_said() {
            self.streams.alive = None;
        }
        self.hold(bytes)
    }
}

impl Drop for Client<'_> {
    /// The connection has ended.
    fn drop(&mut self) {
        self.flows.end();
    }
}

impl Client<'_> {
    /// Takes or gives back places for bytes; what is to be done where there are none.
    fn hold(&mut self, bytes: usize) -> Option<Input> {
        let units = bytes.div_ceil(UNIT_BYTES).saturating_sub(1);
        self.held.truncate(units);
        while self.held.len() < units {
            let Some(place) = self.streams.bytes.take(self.from) else {
                self.streams.metrics().count_limit(FULL_OF_BYTES);
                return Some(Input::Abort { why: "no room for more bytes of this client" });
            };
            self.held.push(place);
        }
        None
    }

    fn count(&mut self, counts: Counts) {
        if counts != self.counts {
            self.streams.metrics().count_coap_stream(self.counts, counts);
            self.counts = counts;
        }
    }
}
