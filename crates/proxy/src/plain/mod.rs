//! Answers for foreign clients: a gateway's own listener for those who have no edge beside them.
//!
//! It is a proxy as any other (forward, or reverse with an upstream), over what the gateway may
//! reach. What it adds: content goes to a client in a coding that the client takes
//! (Accept-Encoding), and which one, if any, is chosen as for the pair: by what is known of the
//! connection, of the class of answers, and of how fast the client decodes, if it has told
//! ([`proto::profile`]). A client that says nothing gets content as it is.

mod accept;
mod body;
mod choice;
mod head;
mod profiles;
mod soap;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use codec::Encoder;
use decide::estimate::Estimate;
use decide::models::Subject;
use decide::network::Path;
use decide::triage::Message;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Request, Response, response};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use proto::profile::WANTED_FIELD;
use record::decision::Direction;
use record::event::Fact;
use tokio::sync::Semaphore;

pub(crate) use self::accept::Accepted;
use self::body::{Block, Blocks, Pipe, pipe};
use self::choice::{Choice, Chooser, Facts};
use self::head::Asked;
use self::profiles::{Profiles, Told};
use self::soap::{Heard, Overheard};
use crate::actor::{Handle, Message as ToActor};
use crate::edge::{ClientBody, Exchanges};
use crate::fields;
use crate::flow::{AnyBody, BoxError};
use crate::front::{Answer, Connection};
use crate::socket;
use crate::workers::thread_time;

/// A first block of which more than this share is left shows that coding gains nothing.
const WORTHWHILE_PER_CENT: usize = 95;

/// See the module.
pub(crate) struct Plain {
    /// Who asks the origins.
    exchanges: Exchanges,
    work: Arc<Work>,
    profiles: Profiles,
    /// What is believed of a path that nobody has measured, and the operator's bound.
    estimate: Estimate,
    rate_cap_bps: Option<f64>,
    handle: Handle,
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
    /// Absent while a thread has it.
    encoder: Option<Box<dyn Encoder>>,
    choice: Choice,
    work: Arc<Work>,
    plain_bytes: usize,
    coded_bytes: usize,
    cpu: Duration,
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
    /// Index of the service's settings.
    service: Option<usize>,
    /// Scheme and authority.
    target: &'a str,
    connection: &'a Connection,
}

impl Plain {
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
            estimate: config.estimate(),
            rate_cap_bps: config.rate_cap_bps,
            handle,
            instance: crate::random_instance()?,
            count: AtomicU64::default(),
        })
    }

    /// The path to a client: as the kernel knows it, before that as the client sees it.
    fn path(&self, connection: &Connection, told: &Told) -> Path {
        let mut path = connection.path.lock().unwrap_or_else(PoisonError::into_inner);
        let estimate = path.get_or_insert_with(|| match told.link {
            None => self.estimate.clone(),
            Some(link) => {
                let (rate, rtt) = (f64::from(link.rate_bps), Duration::from_secs_f32(link.rtt_s));
                Estimate::new(rate, rtt, self.rate_cap_bps)
            }
        });
        if let Ok(transport) = socket::tcp_info(&connection.socket) {
            estimate.transport(transport);
        }
        let mut path = estimate.path();
        if let Some(link) = told.link
            && estimate.loss().weight <= 0.0
        {
            path.loss = f64::from(link.loss);
        }
        path.bounded()
    }

    async fn tell(&self, fact: Fact) {
        self.handle.send(ToActor::Fact(fact)).await;
    }

    async fn chosen(&self, encoding: String, reason: &str) {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let exchange = format!("{:016x}{number:016x}", self.instance);
        let (direction, reason) = (Direction::Response, reason.to_owned());
        self.tell(Fact::Chosen { exchange, direction, encoding, reason, decision: None }).await;
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
        let choice = self.choose(&parts.headers, (&bytes, last), about);
        let (trying, reason) = (choice.trying && !bytes.is_empty(), choice.reason);
        let Some((coding, options)) = choice.coding else {
            self.chosen(codec::Options::IDENTITY.label(), reason).await;
            return Ok(Response::from_parts(parts, blocks.put_back(bytes).boxed_unsync()));
        };
        let mut coder = Coder::new(coding.encoder(options)?, choice, Arc::clone(&self.work));
        let coded = coder.encode(bytes.clone(), last).await?;
        if trying && coded.len() * 100 > bytes.len() * WORTHWHILE_PER_CENT {
            coder.learn();
            self.chosen(codec::Options::IDENTITY.label(), "tried, and it gained nothing").await;
            return Ok(Response::from_parts(parts, blocks.put_back(bytes).boxed_unsync()));
        }
        self.chosen(options.label(), reason).await;
        let whole = last && !blocks.has_trailers();
        head::coded(&mut parts.headers, coding, whole.then_some(coded.len()));
        if whole {
            coder.learn();
            let full = Full::new(coded).map_err(|never| match never {}).boxed_unsync();
            return Ok(Response::from_parts(parts, full));
        }
        let (pipe, piped) = pipe();
        tokio::spawn(coder.run(blocks, First { coded, last }, pipe));
        Ok(Response::from_parts(parts, piped.boxed_unsync()))
    }

    fn choose(&self, headers: &HeaderMap, first: (&Bytes, bool), about: &About<'_>) -> Choice {
        let (bytes, last) = first;
        let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let length = fields::content_length(headers);
        let body_bytes = if last { Some(bytes.len() as u64) } else { length };
        let (coded, tunnel) = (false, false);
        let path = self.path(about.connection, about.told);
        self.work.chooser.choose(&Facts {
            accepted: &about.asked.accepted,
            model: about.told.model.as_deref(),
            service: about.service,
            class: [about.target, &about.asked.operation],
            path: &path,
            message: Message { content_type, coded, tunnel, head: bytes, body_bytes },
        })
    }
}

impl Coder {
    fn new(encoder: Box<dyn Encoder>, choice: Choice, work: Arc<Work>) -> Self {
        let (plain_bytes, coded_bytes, cpu) = (0, 0, Duration::ZERO);
        Self { encoder: Some(encoder), choice, work, plain_bytes, coded_bytes, cpu }
    }

    /// A block, coded on a thread that may take its time.
    async fn encode(&mut self, block: Bytes, last: bool) -> Result<Bytes, BoxError> {
        let Some(mut encoder) = self.encoder.take() else {
            return Err("an encoder that failed is asked for more".into());
        };
        self.plain_bytes += block.len();
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
        self.cpu += cpu;
        Ok(coded)
    }

    /// What came of the coding is learned from.
    fn learn(&self) {
        let Choice { arm, subject, .. } = &self.choice;
        let subject = Subject { bytes: self.plain_bytes as f64, ..*subject };
        self.work.chooser.observe(&subject, *arm, self.coded_bytes, self.cpu.as_secs_f64());
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

impl Answer for Plain {
    async fn answer(
        &self,
        request: Request<Incoming>,
        connection: Arc<Connection>,
    ) -> Response<ClientBody> {
        let (mut head, body) = request.into_parts();
        let by_field = self.profiles.take(&mut head.headers);
        let asked = Asked::new(&head);
        let (target, service) = self.exchanges.service(&head).unwrap_or_default();
        if !self.exchanges.passes_accept_encoding(service) {
            asked.ask_for_identity(&mut head.headers);
        }
        let broken = Arc::clone(&connection.broken);
        let heard = (by_field.is_none() && soap::may_be_soap(&head.headers)).then(Heard::default);
        let body = match heard.clone() {
            Some(heard) => Overheard::new(body, heard).map_err(Into::into).boxed_unsync(),
            None => body.map_err(Into::into).boxed_unsync(),
        };
        let request = Request::from_parts(head, body);
        let serving = self.exchanges.serve(request, Arc::clone(&broken), &connection);
        let (mut parts, body) = serving.await.into_parts();
        let by_block = || Some(self.profiles.read(heard?.profile()?));
        let told = by_field.or_else(by_block).unwrap_or_default();
        if let Some(reason) = &told.ignored {
            let (what, reason) = ("profile".to_owned(), reason.clone());
            self.tell(Fact::Ignored { what, reason }).await;
        }
        if told.wanted {
            parts.headers.insert(WANTED_FIELD, HeaderValue::from_static("?1"));
        }
        if !asked.negotiate(&mut parts) || body.is_end_stream() {
            return Response::from_parts(parts, body);
        }
        let (asked, told, connection) = (&asked, &told, &*connection);
        let about = About { asked, told, service, target: &target, connection };
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
}
