//! Answers for edgeless clients: a gateway's own listener for those who have no edge beside them.
//!
//! It is a proxy as any other (forward, or reverse with an upstream), over what the gateway may
//! reach. What it adds: content goes to a client in a coding that the client takes
//! (Accept-Encoding), and which one, if any, is chosen as for the pair: by what is known of the
//! connection, of the class of answers, and of how fast the client decodes, if it has told
//! ([`proto::profile`]). A client that says nothing gets content as it is. One that keeps
//! dictionaries (RFC 9842) is offered some, and answered with them ([`dictionary`]).

mod accept;
mod body;
mod dictionary;
mod head;
mod machine;
mod outcome;
mod profiles;
mod reader;
mod soap;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use codec::dictionary::rfc9842::Form;
use coding::ExchangeId;
use coding::api::{self, Departed, Input, Message, Output};
use coding::recipient::Recipient;
use decide::estimate::{Estimate, Transport};
use decide::network::Path;
use http::header::{self, HeaderValue};
use http::{Request, Response, response};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use proto::profile::{Link as Seen, WANTED_FIELD};
use record::decision::Link;
use record::event::Fact;
use tokio::sync::Semaphore;

pub(crate) use self::accept::Accepted;
use self::body::{Content, Pipe, pipe};
use self::dictionary::{Dictionaries, Known};
use self::head::Asked;
use self::machine::{Block, Exchange};
use self::outcome::{Followed, Sending};
use self::profiles::{Profiles, Reported};
use self::reader::{Reader, in_words_of_the_pair};
use self::soap::{Heard, Overheard};
use crate::access::Access;
use crate::actor::{Handle, Message as ToActor};
use crate::edge::{ClientBody, Exchanges};
use crate::fields;
use crate::flow::{AnyBody, BoxError};
use crate::front::{Answer, Connection};
use crate::live::Live;
use crate::seats::Source;
use crate::signature;
use crate::socket;

/// What a link carries towards the client in the round trip of a handshake, at least: SYN and ACK
/// with the usual options (RFC 9293 §3.1), in bits.
const MIN_HANDSHAKE_BITS: f64 = 60.0 * 8.0;
/// Most loss that a client is believed: with more a handshake seldom comes to its end.
const MAX_LOSS: f64 = 0.2;
/// Answers whose way is followed at once; of others nobody knows what came of them.
const MAX_FOLLOWED: usize = 256;

/// See the module.
pub(crate) struct Edgeless {
    /// Who asks the origins.
    exchanges: Exchanges,
    /// Whether answers of each service may go with a dictionary, and those of none.
    services: Live<Vec<coding::Service>>,
    encoding: coding::Encoding,
    profiles: Profiles,
    dictionaries: Dictionaries,
    /// What is believed of a path that nobody has measured, and the operator's bound.
    estimate: Estimate,
    rate_cap_bps: Option<f64>,
    handle: Handle,
    following: Arc<Semaphore>,
    /// Exchanges are numbered from here on.
    instance: u64,
    count: AtomicU64,
}

/// An answer whose encoding is chosen.
struct Chosen {
    exchange: Exchange,
    /// The path to the client, as it was believed to be.
    path: Path,
    /// What comes of it is of interest.
    awaited: bool,
    /// Name of the coding and its first block, which may be the only one; none: it goes as it is.
    coded: Option<(&'static str, Block)>,
}

/// What is known of a request when its answer comes.
struct About<'a> {
    asked: &'a Asked,
    reported: &'a Reported,
    /// What it has to do with dictionaries; none where there may be none.
    known: Option<&'a Known>,
    /// Index of the service's settings.
    service: Option<usize>,
    /// Scheme and authority.
    target: &'a str,
    connection: &'a Arc<Connection>,
    access: Option<Access>,
}

impl Edgeless {
    /// Serves by `exchanges`, which go directly to the origins; chooses as `config` says.
    pub(crate) fn new(
        exchanges: Exchanges,
        config: &relay::Config,
        handle: Handle,
    ) -> Result<Self, crate::Error> {
        Ok(Self {
            exchanges,
            services: Live::new(config.services.clone()),
            encoding: config.encoding.clone(),
            profiles: Profiles::default(),
            dictionaries: Dictionaries::default(),
            estimate: config.estimate(),
            rate_cap_bps: config.rate_cap_bps,
            handle,
            following: Arc::new(Semaphore::new(MAX_FOLLOWED)),
            instance: crate::random_instance()?,
            count: AtomicU64::default(),
        })
    }

    /// Takes these services too, whose numbers follow those of the ones before.
    pub(crate) fn add_services(&self, services: &[coding::Service]) {
        self.services.set([&self.services.get()[..], services].concat());
    }

    /// Whether answers of this service may go with a dictionary.
    fn takes_dictionaries(&self, service: Option<usize>) -> bool {
        let services = self.services.get();
        let only = service.and_then(|service| services.get(service)?.encodings.as_deref());
        let arms = self.encoding.arms().iter();
        let mut allowed = arms.filter(|arm| only.is_none_or(|only| only.contains(arm)));
        allowed.any(|arm| arm.wants_base())
    }

    /// The path to a client, also as it is told: as the kernel knows it, before that as the client
    /// sees it.
    fn path(&self, connection: &Connection, reported: &Reported) -> (Path, Link) {
        let mut path = connection.path.lock().unwrap_or_else(PoisonError::into_inner);
        let transport = socket::tcp_info(&connection.socket).ok();
        let estimate = path.get_or_insert_with(|| match reported.link {
            None => self.estimate.clone(),
            Some(link) => believed(link, transport.as_ref(), self.rate_cap_bps),
        });
        if let Some(transport) = transport {
            estimate.transport(transport);
        }
        let link = coding::figures(estimate);
        let mut path = estimate.path();
        if let Some(seen) = reported.link
            && estimate.loss().weight <= 0.0
        {
            path.loss = f64::from(seen.loss).min(MAX_LOSS);
        }
        (path.bounded(), link)
    }

    async fn tell(&self, fact: Fact) {
        self.handle.send(ToActor::Fact(fact)).await;
    }

    async fn ignored(&self, what: &str, reason: &str) {
        let (what, reason) = (what.to_owned(), reason.to_owned());
        self.tell(Fact::Ignored { what, reason }).await;
    }

    /// Codes an answer, if that is expected to gain.
    async fn code(
        &self,
        mut parts: response::Parts,
        body: ClientBody,
        about: &About<'_>,
    ) -> Result<Response<AnyBody>, BoxError> {
        let mut content = Content::new(body);
        let mut chosen = self.choose(&parts, &mut content, about).await?;
        let whole = content.whole();
        if let Some(whole) = &whole
            && let Some(offer) = self.offer(&parts, whole, about, &mut chosen.exchange).await
        {
            head::offered(&mut parts.headers, offer);
        }
        let sending = self.sending(&chosen, about);
        let Chosen { exchange, coded, .. } = chosen;
        let Some((token, first)) = coded else {
            return Ok(Response::from_parts(parts, Followed::new(content, sending).boxed_unsync()));
        };
        content.let_go();
        let length = (first.end && whole.is_some()).then_some(first.bytes.len());
        head::coded(&mut parts.headers, token, length);
        if length.is_some() {
            exchange.open.tell(vec![departed(exchange.open.id, true)]).await;
            let full = Full::new(first.bytes).map_err(|never| match never {});
            return Ok(Response::from_parts(parts, Followed::new(full, sending).boxed_unsync()));
        }
        let (pipe, piped) = pipe();
        tokio::spawn(run(exchange, content, first, pipe));
        Ok(Response::from_parts(parts, Followed::new(piped, sending).boxed_unsync()))
    }

    /// Hands an answer to the machine until it is known what it goes in. Errors: those of its body.
    async fn choose(
        &self,
        parts: &response::Parts,
        content: &mut Content<ClientBody>,
        about: &About<'_>,
    ) -> Result<Chosen, BoxError> {
        // The machine is asked when there is something to see.
        let first = content.take().await?;
        let (path, link) = self.path(about.connection, about.reported);
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let id = ExchangeId { instance: self.instance, number };
        let (target, operation) = (about.target.to_owned(), about.asked.operation.clone());
        let service = about.service;
        let what = api::About { target, operation, service, ..api::About::default() };
        let message = message(parts, about, (path, link));
        let mut inputs = vec![
            Input::Open { exchange: id, about: what },
            Input::Message { exchange: id, message },
        ];
        inputs.extend(handed(id, content, first));
        let mut exchange = Exchange::new(&self.handle, id, inputs).await;
        let mut settled = None;
        let chosen = |exchange, awaited, coded| Chosen { exchange, path, awaited, coded };
        loop {
            let output = tokio::select! {
                output = exchange.next() => output,
                bytes = content.take(), if content.may_take() => {
                    exchange.open.tell(handed(id, content, bytes?)).await;
                    continue;
                }
            };
            match output {
                Some(Output::Settled { options, framing, awaited, .. }) => {
                    let name = id.to_string();
                    let label = framing.label(options);
                    about.access.iter().for_each(|access| access.coded(&name, &label));
                    settled = framing.token().filter(|_| !options.is_identity()).zip(Some(awaited));
                    if settled.is_none() {
                        return Ok(chosen(exchange, awaited, None));
                    }
                }
                Some(Output::Block { bytes, decoded_len, end, .. }) => {
                    if let Some((token, awaited)) = settled {
                        let block = Block { bytes, decoded_len, end };
                        return Ok(chosen(exchange, awaited, Some((token, block))));
                    }
                }
                Some(Output::Fault { fault, .. }) => {
                    tracing::warn!(error = fault.reason, "an answer goes as it is");
                    return Ok(chosen(exchange, false, None));
                }
                Some(_) => {}
                // The side ends: nobody chooses any more.
                None => return Ok(chosen(exchange, false, None)),
            }
        }
    }

    /// What follows an answer on its way, where that is of interest.
    fn sending(&self, chosen: &Chosen, about: &About<'_>) -> Option<Sending> {
        chosen.awaited.then_some(())?;
        Some(Sending {
            open: Arc::clone(&chosen.exchange.open),
            path: chosen.path,
            socket: about.connection.socket.clone(),
            broken: Arc::clone(&about.connection.broken),
            connection: Arc::downgrade(about.connection),
            _permit: Arc::clone(&self.following).try_acquire_owned().ok()?,
        })
    }

    /// The offer of an answer's content as a dictionary, if it may be one.
    async fn offer(
        &self,
        parts: &response::Parts,
        content: &Bytes,
        about: &About<'_>,
        exchange: &mut Exchange,
    ) -> Option<HeaderValue> {
        let wants = |known: &&Known| {
            self.takes_dictionaries(about.service)
                && self.dictionaries.wants(Instant::now(), known, parts, content)
        };
        let known = about.known.filter(wants)?;
        let (id, bytes) = (exchange.open.id, content.clone());
        exchange.open.tell(vec![Input::Screen { exchange: id, bytes }]).await;
        loop {
            if let Output::Screened { kept, .. } = exchange.next().await? {
                return self.dictionaries.offer(known, kept?);
            }
        }
    }
}

/// An answer as the machine is told of it.
fn message(parts: &response::Parts, about: &About<'_>, (path, link): (Path, Link)) -> Message {
    let headers = &parts.headers;
    let media = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let may_be_base = !relay::forbids_keeping(&fields::to_fields(headers));
    let known = about.known.filter(|known| may_be_base && known.permits(headers));
    let accepted = &about.asked.accepted;
    let forms = [Form::Dcb, Form::Dcz].into_iter().filter(|form| accepted.takes(*form));
    let recipient = Recipient {
        codings: accepted.best().collect(),
        forms: forms.collect(),
        dictionary: known.and_then(|known| known.held.clone()),
        identity: !accepted.forbids_identity(),
        decoder: about.reported.model.clone(),
        path,
        link,
        account: Source::of_text(&about.connection.client).number(),
    };
    Message {
        media: media.map(ToOwned::to_owned),
        length: fields::content_length(headers),
        recipient: Some(Arc::new(recipient)),
        ..Message::default()
    }
}

/// Some of an answer for the machine, and its end where it has ended.
fn handed(exchange: ExchangeId, content: &Content<ClientBody>, bytes: Bytes) -> Vec<Input> {
    let body = (!bytes.is_empty()).then_some(Input::Body { exchange, bytes });
    let trailers = content.has_trailers();
    let end = content.is_ended().then_some(Input::End { exchange, trailers });
    body.into_iter().chain(end).collect()
}

/// A block is with the client's connection.
fn departed(exchange: ExchangeId, end: bool) -> Input {
    let departed = Departed { body: true, block: true, more: !end, end };
    Input::Departed { exchange, departed }
}

/// Passes a coded answer on, as fast as the client takes it.
async fn run(exchange: Exchange, content: Content<ClientBody>, first: Block, pipe: Pipe) {
    let result = tokio::select! {
        result = pass(exchange, content, first, &pipe) => result,
        () = pipe.gone() => return,
    };
    match result {
        Ok(()) => pipe.end().await,
        Err(error) => pipe.fail(error).await,
    }
}

async fn pass(
    mut exchange: Exchange,
    mut content: Content<ClientBody>,
    first: Block,
    pipe: &Pipe,
) -> Result<(), BoxError> {
    let mut block = first;
    loop {
        if !block.bytes.is_empty() && !pipe.send(Frame::data(block.bytes)).await {
            return Ok(());
        }
        content.gone(block.decoded_len);
        exchange.open.tell(vec![departed(exchange.open.id, block.end)]).await;
        if block.end {
            break;
        }
        block = loop {
            let output = tokio::select! {
                output = exchange.next() => output,
                bytes = content.take(), if content.may_take() => {
                    exchange.open.tell(handed(exchange.open.id, &content, bytes?)).await;
                    continue;
                }
            };
            match output {
                Some(Output::Block { bytes, decoded_len, end, .. }) => {
                    break Block { bytes, decoded_len, end };
                }
                Some(Output::Fault { fault, .. }) => return Err(fault.reason.into()),
                Some(_) => {}
                None => return Err("what encodes the answer has stopped".into()),
            }
        };
    }
    if let Some(trailers) = content.trailers() {
        pipe.send(Frame::trailers(trailers)).await;
    }
    Ok(())
}

/// A link as its client sees it, so far as its handshake bears that out: none is slower than what
/// came and went in a round trip of it.
fn believed(link: Seen, transport: Option<&Transport>, cap_bps: Option<f64>) -> Estimate {
    let (mut rate, mut rtt) = (f64::from(link.rate_bps), Duration::from_secs_f32(link.rtt_s));
    if let Some(measured) = transport.filter(|transport| !transport.rtt.is_zero()) {
        let least = if measured.min_rtt.is_zero() { measured.rtt } else { measured.min_rtt };
        let in_handshake = MIN_HANDSHAKE_BITS / least.min(measured.rtt).as_secs_f64();
        let delivered = measured.delivered_bytes_per_s as f64 * 8.0;
        (rate, rtt) = (rate.max(in_handshake).max(delivered), measured.rtt);
    }
    Estimate::new(rate, rtt, cap_bps)
}

impl Answer for Edgeless {
    fn styles(&self) -> bool {
        self.exchanges.services.are_some_exact()
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        connection: Arc<Connection>,
    ) -> Response<ClientBody> {
        let access = Access::of(&request);
        let (mut head, body) = request.into_parts();
        let by_field = self.profiles.take(&mut head.headers);
        let mut asked = Asked::new(&head);
        asked.tells_profile = by_field.is_some();
        let (target, service) = self.exchanges.service(&head).unwrap_or_default();
        let client = self.exchanges.client(&head.headers, service, &connection);
        let request = in_words_of_the_pair(&head, &target);
        let reader = Reader::new(&head.headers, &request);
        let who = (connection.client.as_str(), &client);
        let looked_up = self.dictionaries.look_up((&head.headers, &request), who, &reader);
        let (known, ignored) = looked_up;
        asked.has_dictionary = known.as_ref().is_some_and(|known| known.held.is_some());
        if let Some(reason) = ignored {
            self.ignored("dictionary", reason).await;
        }
        let is_free = !self.exchanges.passes_accept_encoding(service)
            && !signature::covers_coding(&head.headers);
        if is_free && !reader.is_stranger() {
            asked.ask_for_identity(&mut head.headers);
        }
        let broken = Arc::clone(&connection.broken);
        let heard = (by_field.is_none() && soap::may_be_soap(&head.headers)).then(Heard::default);
        let body = match heard.clone() {
            Some(heard) => Overheard::new(body, heard).map_err(Into::into).boxed_unsync(),
            None => body.map_err(Into::into).boxed_unsync(),
        };
        let request = Request::from_parts(head, body);
        let serving = self.exchanges.serve(request, &connection);
        let (mut parts, body) = serving.await.into_parts();
        if let Some(known) = &known {
            self.dictionaries.hear(Instant::now(), known, &parts);
        }
        let by_block = || Some(self.profiles.read(heard?.profile()?));
        let reported = by_field.or_else(by_block).unwrap_or_default();
        if let Some(reason) = &reported.ignored {
            self.ignored("profile", reason).await;
        }
        if reported.wanted {
            parts.headers.insert(WANTED_FIELD, HeaderValue::from_static("?1"));
        }
        if reader.is_stranger() && parts.headers.contains_key(header::CONTENT_ENCODING) {
            // Another would have had it from the origin as it is.
            reader.decided.iter().for_each(|field| head::add_vary(&mut parts.headers, field));
        }
        let may_code = asked.negotiate(&mut parts, &reader.decided);
        if !may_code || body.is_end_stream() || !reader.permits(&parts.headers) {
            return Response::from_parts(parts, body);
        }
        let (asked, reported, known) = (&asked, &reported, known.as_ref());
        let connection = &connection;
        let about = About { asked, reported, known, service, target: &target, connection, access };
        let head = parts.clone();
        let response = match self.code(parts, body, &about).await {
            Ok(response) => response,
            // The client sees an answer that breaks off.
            Err(error) => {
                let (pipe, piped) = pipe();
                pipe.fail(error).await;
                Response::from_parts(head, piped.boxed_unsync())
            }
        };
        response.map(|body| ClientBody::new(body, broken))
    }

    async fn ended(&self, connection: &Connection) {
        self.exchanges.ended(connection).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_link_is_believed_slower_than_its_handshake() {
        let said = Seen { rate_bps: 1000.0, rtt_s: 600.0, loss: 0.9 };
        let measured = |rtt_us, bytes_per_s| Transport {
            rtt: Duration::from_micros(rtt_us),
            delivered_bytes_per_s: bytes_per_s,
            ..Transport::default()
        };
        let rate = |transport: Option<&Transport>| {
            let believed = believed(said, transport, None);
            (believed.rate_bps().value.round(), believed.rtt_s().value)
        };
        assert_eq!(rate(None), (1000.0, 600.0));
        assert_eq!(rate(Some(&measured(200, 0))), (2_400_000.0, 0.0002));
        assert_eq!(rate(Some(&measured(200, 1_000_000))), (8_000_000.0, 0.0002));
        // Who is as slow as he says is believed.
        assert_eq!(rate(Some(&measured(600_000, 0))), (1000.0, 0.6));
        assert_eq!(rate(Some(&Transport::default())), (1000.0, 600.0));
    }
}
