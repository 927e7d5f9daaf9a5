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
mod budget;
mod choice;
mod dictionary;
mod head;
mod outcome;
mod profiles;
mod reader;
mod soap;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use codec::{Encoder, Options};
use decide::Arm;
use decide::estimate::{Estimate, Transport};
use decide::models::Subject;
use decide::network::Path;
use decide::triage::Message;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Request, Response, response};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use proto::profile::{Link as Seen, WANTED_FIELD};
use record::decision::{Direction, Link};
use record::event::Fact;
use tokio::sync::Semaphore;

pub(crate) use self::accept::Accepted;
use self::body::{Block, Blocks, Pipe, pipe};
use self::budget::Budgets;
use self::choice::{Choice, Chooser, Facts, How};
use self::dictionary::{Dictionaries, Known};
use self::head::Asked;
use self::outcome::{Followed, Sending, Tally};
use self::profiles::{Profiles, Told};
use self::reader::{Reader, in_words_of_the_pair};
use self::soap::{Heard, Overheard};
use crate::access::Access;
use crate::actor::{Handle, Message as ToActor};
use crate::edge::{ClientBody, Exchanges};
use crate::fields;
use crate::flow::{AnyBody, BoxError};
use crate::front::{Answer, Connection};
use crate::seats::Source;
use crate::signature;
use crate::socket;
use crate::store::Learned;
use crate::workers::thread_time;

/// A first block of which more than this share is left shows that coding gains nothing.
const WORTHWHILE_PER_CENT: usize = 95;
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
    work: Arc<Work>,
    profiles: Profiles,
    dictionaries: Arc<Dictionaries>,
    /// What is believed of a path that nobody has measured, and the operator's bound.
    estimate: Estimate,
    rate_cap_bps: Option<f64>,
    budgets: Budgets,
    handle: Handle,
    following: Arc<Semaphore>,
    /// Exchanges are numbered from here on.
    instance: u64,
    count: AtomicU64,
}

/// What encodes.
struct Work {
    chooser: Chooser,
    /// As many encoders at once as there are threads for codecs.
    threads: Semaphore,
}

/// What an answer is to be coded with.
struct Coder {
    /// Absent while a thread has it, or when there is none to be had.
    encoder: Option<Box<dyn Encoder>>,
    choice: Choice,
    work: Arc<Work>,
    coded_bytes: usize,
    tally: Arc<Tally>,
}

/// The first block, coded.
struct First {
    coded: Bytes,
    last: bool,
}

/// What is known of a request when its answer comes.
struct About<'a> {
    asked: &'a Asked,
    told: &'a Told,
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
        threads: usize,
        handle: Handle,
    ) -> Result<Self, crate::Error> {
        let work = Work { chooser: Chooser::new(config), threads: Semaphore::new(threads) };
        Ok(Self {
            exchanges,
            work: Arc::new(work),
            profiles: Profiles::default(),
            dictionaries: Arc::default(),
            estimate: config.estimate(),
            rate_cap_bps: config.rate_cap_bps,
            budgets: Budgets::default(),
            handle,
            following: Arc::new(Semaphore::new(MAX_FOLLOWED)),
            instance: crate::random_instance()?,
            count: AtomicU64::default(),
        })
    }

    /// Takes these services too, whose numbers follow those of the ones before.
    pub(crate) fn add_services(&self, services: &[coding::Service]) {
        self.work.chooser.add_services(services);
    }

    /// Takes what an earlier process had learned of such clients.
    pub(crate) fn restore(&self, learned: &Learned) {
        let state = learned.clients.as_ref();
        if let Some(Err(error)) = state.map(|state| self.work.chooser.restore(state)) {
            tracing::warn!(%error, "what was learned of clients is not taken up");
        }
        for entry in &learned.since {
            if let (Some(decision), Some(outcome)) = (&entry.decision, &entry.outcome) {
                self.work.chooser.learn_from(decision, outcome);
            }
        }
    }

    /// What was learned of such clients.
    pub(crate) fn learned(&self) -> Vec<u8> {
        self.work.chooser.learned()
    }

    /// The path to a client, also as it is told: as the kernel knows it, before that as the client
    /// sees it.
    fn path(&self, connection: &Connection, told: &Told) -> (Path, Link) {
        let mut path = connection.path.lock().unwrap_or_else(PoisonError::into_inner);
        let transport = socket::tcp_info(&connection.socket).ok();
        let estimate = path.get_or_insert_with(|| match told.link {
            None => self.estimate.clone(),
            Some(link) => believed(link, transport.as_ref(), self.rate_cap_bps),
        });
        if let Some(transport) = transport {
            estimate.transport(transport);
        }
        let link = coding::figures(estimate);
        let mut path = estimate.path();
        if let Some(seen) = told.link
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

    /// Tells what an answer goes in; gives what follows it on its way, where models were asked.
    async fn chosen(
        &self,
        (choice, how): (&Choice, Option<&How>),
        reason: &str,
        tally: &Arc<Tally>,
        about: &About<'_>,
    ) -> Option<Sending> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let exchange = coding::ExchangeId { instance: self.instance, number }.to_string();
        let encoding = how.map_or_else(|| Options::IDENTITY.label(), How::label);
        let arm = if how.is_some() { choice.arm } else { Arm::IDENTITY };
        about.access.iter().for_each(|access| access.coded(&exchange, &encoding));
        let decision = choice.weighed.as_ref().map(|weighed| Box::new(weighed.facts(arm, how)));
        self.tell(Fact::Chosen {
            exchange: exchange.clone(),
            direction: Direction::Response,
            encoding: encoding.clone(),
            reason: reason.to_owned(),
            decision,
        })
        .await;
        let weighed = choice.weighed.as_ref()?;
        Some(Sending {
            exchange,
            encoding,
            expected: *weighed.expected(arm)?,
            path: weighed.path,
            is_coded: how.is_some(),
            tally: Arc::clone(tally),
            work: Arc::clone(&self.work),
            handle: self.handle.clone(),
            socket: about.connection.socket.clone(),
            broken: Arc::clone(&about.connection.broken),
            connection: Arc::downgrade(about.connection),
            _permit: Arc::clone(&self.following).try_acquire_owned().ok()?,
        })
    }

    /// Codes an answer, if that is expected to gain.
    async fn code(
        &self,
        mut parts: response::Parts,
        body: ClientBody,
        about: &About<'_>,
    ) -> Result<Response<AnyBody>, BoxError> {
        let mut blocks = Blocks::new(body);
        let Block { bytes, last } = blocks.first().await?;
        let mut choice = self.choose(&parts.headers, (&bytes, last), about);
        let beside = choice.beside.take().filter(|_| last);
        let whole = last && !blocks.has_trailers();
        if whole && let Some(offer) = self.offer(&parts, &bytes, about).await? {
            head::offered(&mut parts.headers, offer);
        }
        let tally = Arc::<Tally>::default();
        let Some(how) = choice.how.clone() else {
            self.look_beside(beside, &bytes);
            let sending = self.chosen((&choice, None), choice.reason, &tally, about).await;
            return Ok(as_it_is(parts, blocks, bytes, sending));
        };
        let mut coder = Coder::new(&how, choice, &self.work, &tally);
        let coded = coder.encode(bytes.clone(), last).await;
        self.look_beside(beside, &bytes);
        let choice = &coder.choice;
        let refused = match &coded {
            Err(error) => {
                tracing::warn!(%error, encoding = how.label(), "an answer goes as it is");
                Some("its encoder failed")
            }
            Ok(coded) if choice.trying && !is_worth_it(coded, &bytes) => {
                coder.learn();
                Some("tried, and it gained nothing")
            }
            Ok(_) => None,
        };
        let (Ok(coded), None) = (coded, refused) else {
            let reason = refused.unwrap_or_default();
            let sending = self.chosen((choice, None), reason, &tally, about).await;
            return Ok(as_it_is(parts, blocks, bytes, sending));
        };
        let sending = self.chosen((choice, Some(&how)), choice.reason, &tally, about).await;
        head::coded(&mut parts.headers, how.token(), whole.then_some(coded.len()));
        if whole {
            coder.learn();
            let full = Full::new(coded).map_err(|never| match never {});
            return Ok(Response::from_parts(parts, Followed::new(full, sending).boxed_unsync()));
        }
        let (pipe, piped) = pipe();
        tokio::spawn(coder.run(blocks, First { coded, last }, pipe));
        Ok(Response::from_parts(parts, Followed::new(piped, sending).boxed_unsync()))
    }

    /// Codes a whole answer in another way too, off its own way, to learn from.
    fn look_beside(&self, beside: Option<Box<Choice>>, content: &Bytes) {
        let Some(choice) = beside else { return };
        let Some(how) = choice.how.clone() else { return };
        let mut coder = Coder::new(&how, *choice, &self.work, &Arc::default());
        let content = content.clone();
        tokio::spawn(async move {
            if coder.encode(content, true).await.is_ok() {
                coder.learn();
            }
        });
    }

    /// The offer of an answer's content as a dictionary, if it may be one.
    async fn offer(
        &self,
        parts: &response::Parts,
        content: &Bytes,
        about: &About<'_>,
    ) -> Result<Option<HeaderValue>, BoxError> {
        let wants = |known: &&Known| {
            self.work.chooser.takes_dictionaries(about.service)
                && self.dictionaries.wants(Instant::now(), known, parts, content)
        };
        let Some(known) = about.known.filter(wants).cloned() else { return Ok(None) };
        let (dictionaries, content) = (Arc::clone(&self.dictionaries), content.clone());
        let permit = self.work.threads.acquire().await?;
        // It is read for secrets and hashed.
        let working = tokio::task::spawn_blocking(move || dictionaries.offer(&known, &content));
        let offer = working.await?;
        drop(permit);
        Ok(offer)
    }

    fn choose(&self, headers: &HeaderMap, first: (&Bytes, bool), about: &About<'_>) -> Choice {
        let (bytes, last) = first;
        let may_be_told = !relay::forbids_keeping(&fields::to_fields(headers));
        let known = about.known.filter(|known| last && may_be_told && known.permits(headers));
        let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let length = fields::content_length(headers);
        let body_bytes = if last { Some(bytes.len() as u64) } else { length };
        let (coded, tunnel) = (false, false);
        let (path, link) = self.path(about.connection, about.told);
        let client = Source::of_text(&about.connection.client);
        let affords = |seconds| self.budgets.take(Instant::now(), client, seconds);
        self.work.chooser.choose(&Facts {
            accepted: &about.asked.accepted,
            model: about.told.model.as_deref(),
            service: about.service,
            class: [about.target, &about.asked.operation],
            path: &path,
            usual: &self.estimate.path(),
            affords: &affords,
            link,
            message: Message { content_type, coded, tunnel, head: bytes, body_bytes },
            dictionary: known.and_then(|known| known.held.as_ref()),
        })
    }
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

fn is_worth_it(coded: &Bytes, content: &Bytes) -> bool {
    content.is_empty() || coded.len() * 100 <= content.len() * WORTHWHILE_PER_CENT
}

/// An answer of which `first` was taken and put back.
fn as_it_is(
    parts: response::Parts,
    blocks: Blocks<ClientBody>,
    first: Bytes,
    sending: Option<Sending>,
) -> Response<AnyBody> {
    let body = Followed::new(blocks.put_back(first), sending);
    Response::from_parts(parts, body.boxed_unsync())
}

impl Coder {
    fn new(how: &How, choice: Choice, work: &Arc<Work>, tally: &Arc<Tally>) -> Self {
        let (work, tally) = (Arc::clone(work), Arc::clone(tally));
        Self { encoder: how.encoder().ok(), choice, work, coded_bytes: 0, tally }
    }

    /// A block, coded on a thread that may take its time.
    async fn encode(&mut self, block: Bytes, last: bool) -> Result<Bytes, BoxError> {
        let Some(mut encoder) = self.encoder.take() else {
            return Err("there is no encoder, or it has failed".into());
        };
        let bytes = block.len();
        let permit = self.work.threads.acquire().await?;
        let working = tokio::task::spawn_blocking(move || {
            let before = thread_time();
            let mut out = Vec::new();
            let result = encoder.encode(&block, last, &mut out);
            let cpu = thread_time().saturating_sub(before);
            result.map(|()| (encoder, Bytes::from(out), cpu))
        });
        let (encoder, coded, cpu) = working.await??;
        drop(permit);
        self.encoder = Some(encoder);
        self.coded_bytes += coded.len();
        self.tally.note(bytes, cpu);
        Ok(coded)
    }

    /// What came of the coding is learned from.
    fn learn(&self) {
        let Choice { arm, subject, .. } = &self.choice;
        let (bytes, cpu) = self.tally.get();
        let subject = Subject { bytes: bytes as f64, ..*subject };
        self.work.chooser.observe(&subject, *arm, self.coded_bytes, cpu.as_secs_f64());
    }

    /// Codes what is left of an answer, as fast as the client takes it.
    async fn run(mut self, mut blocks: Blocks<ClientBody>, first: First, pipe: Pipe) {
        let coding = async {
            let First { mut coded, mut last } = first;
            loop {
                if !coded.is_empty() && !pipe.send(Frame::data(coded)).await {
                    return Ok(());
                }
                if last {
                    break;
                }
                let block = blocks.next().await?;
                coded = self.encode(block.bytes, block.last).await?;
                last = block.last;
            }
            self.learn();
            if let Some(trailers) = blocks.trailers() {
                pipe.send(Frame::trailers(trailers)).await;
            }
            Ok::<(), BoxError>(())
        };
        let result = tokio::select! {
            result = coding => result,
            () = pipe.gone() => return,
        };
        match result {
            Ok(()) => pipe.end().await,
            Err(error) => pipe.fail(error).await,
        }
    }
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
        let told = by_field.or_else(by_block).unwrap_or_default();
        if let Some(reason) = &told.ignored {
            self.ignored("profile", reason).await;
        }
        if told.wanted {
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
        let (asked, told, known) = (&asked, &told, known.as_ref());
        let connection = &connection;
        let about = About { asked, told, known, service, target: &target, connection, access };
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
