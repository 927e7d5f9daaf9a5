//! One request of a WAP client: over what the gateway may reach, to its origin, and the reply.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use codec::wbxml::{TokenTable, number_of};
use http::header::HeaderValue;
use http::{Method, Request, Response, StatusCode, header, response};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use proto::http1::Fault;
use proto::wsp::MAX_PDU_BYTES;
use proto::wsp::headers::Rules;
use relay::{Cause, CauseKind};

use super::http::{self as mapping, Asked};
use crate::access::{self, Access, Counted, Way};
use crate::clock::{Clocks, Side, Timed};
use crate::config::GatewayConfig;
use crate::edge::Refusal;
use crate::fields;
use crate::flow::{AnyBody, BoxError, Progress, Watched};
use crate::live::Services;
use crate::metrics::Metrics;
use crate::origin::{self, Client, ClientAt, How, OriginBody, Reach};
use crate::pseudonym;
use crate::wbxml::{self, MAX_XML_BYTES, Wanted};

/// How long a request may take: behind that its client has given it up.
const MAX_WORK: Duration = Duration::from_secs(120);
/// How this hop is called in Via (RFC 9110 §7.6.3): the version of WSP is that of WAP-230.
const VIA_PROTOCOL: &str = "WSP/1.4";

/// What all exchanges share.
pub(crate) struct Exchanges {
    client: Client,
    services: Services,
    pseudonym: String,
    clocks: Clocks,
    metrics: Arc<Metrics>,
    /// Tables of tokens that clients of this gateway have besides those that all have.
    tables: Arc<[TokenTable]>,
}

/// The answer of an origin, whole.
struct Answer {
    parts: response::Parts,
    body: Bytes,
}

impl Exchanges {
    /// Of a gateway, over what it may reach.
    pub(crate) fn new(
        config: &GatewayConfig,
        services: Services,
        reach: Reach,
        metrics: &Arc<Metrics>,
    ) -> Self {
        Self {
            client: Client::new(reach, config.response_timeout),
            services,
            pseudonym: pseudonym(config.relay.instance),
            clocks: Clocks { idle: config.idle_timeout, endless: config.relay.tunnel_timeout },
            metrics: Arc::clone(metrics),
            tables: Arc::clone(&config.wsp_tokens),
        }
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Carries a request out, unless there is no place for it, and returns the PDU of its reply.
    pub(super) async fn answer(self: Arc<Self>, client: IpAddr, pdu: Bytes, place: bool) -> Bytes {
        let client = client.to_canonical().to_string();
        let asked = match Asked::new(&pdu) {
            Ok(asked) => asked,
            Err(refusal) => {
                let fault =
                    Fault { status: refusal.status.as_u16(), reason: refusal.reason.clone() };
                access::unreadable(&self.metrics, Way::Edgeless, &client, &fault);
                return fitting(Rules::DEFAULT, refused(refusal)).1;
            }
        };
        let mut line = Request::new(());
        *line.method_mut() = asked.method.clone();
        *line.uri_mut() = asked.uri();
        let access = Access::begin(&self.metrics, Way::Edgeless, &client, &mut line);
        let rules = asked.rules;
        let answer = match place {
            true => self.within(asked, &client, &access).await,
            false => Err(no_place()),
        };
        let (answer, pdu) = fitting(rules, answer.unwrap_or_else(refused));
        let Answer { parts, body } = answer;
        let counted = access.answered(Response::from_parts(parts, Full::new(body)));
        // What passes is counted; it is here already.
        let _ = counted.into_body().collect().await;
        pdu
    }

    async fn within(&self, asked: Asked, client: &str, access: &Access) -> Result<Answer, Refusal> {
        let carrying = self.carry_out(asked, client, access);
        tokio::time::timeout(MAX_WORK, carrying).await.unwrap_or_else(|_| {
            let waited = MAX_WORK.as_secs();
            let reason = format!("no whole answer came within {waited} s, which WAP clients wait");
            Err(Cause { kind: CauseKind::OriginTimeout, reason }.into())
        })
    }

    async fn carry_out(
        &self,
        mut asked: Asked,
        client: &str,
        access: &Access,
    ) -> Result<Answer, Refusal> {
        if fields::has_passed(&asked.headers, &self.pseudonym) {
            let (status, error) = (StatusCode::LOOP_DETECTED, "proxy_loop_detected");
            let reason = "the request came back to this gateway (Via): a loop".to_owned();
            return Err(Refusal { status, error, reason });
        }
        let target = asked.target()?;
        let service = self.services.find(&target).and_then(|index| self.services.get(index));
        if let Some(service) = &service {
            access.service(&service.pattern);
        }
        let wanted = Wanted::of(&asked.headers);
        let (mut document, mut number) = (None, None);
        if wanted.body && !asked.body.is_empty() {
            let wrong = |error| mapping::bad(format!("the body is no WBXML: {error}"));
            let (body, own) = (asked.body.clone(), Arc::clone(&self.tables));
            number = number_of(&body);
            document = Some(worked(move || wbxml::to_xml(&body, &own)).await?.map_err(wrong)?);
        }
        wanted.put(&mut asked.headers, document.as_deref());
        if let Some(document) = document {
            asked.body = document.into();
        }
        let max_body = service.as_ref().and_then(|service| service.max_body);
        if let Some(most) = max_body.filter(|most| asked.body.len() as u64 > *most) {
            let reason = format!("the body is over the limit of {most} bytes (max_body)");
            return Err(mapping::too_large(reason));
        }
        let answer = self.ask(&asked, client, access).await?;
        let is_xml = wanted.means(answer.headers());
        let answer = self.whole(answer, &asked.method, is_xml).await?;
        if is_xml { self.translated(answer, number).await } else { Ok(answer) }
    }

    /// Sends a request and waits for the head of its answer.
    async fn ask(
        &self,
        asked: &Asked,
        client: &str,
        access: &Access,
    ) -> Result<Response<OriginBody>, Refusal> {
        let target = asked.target()?;
        let progress = Progress::new();
        let body = Full::new(asked.body.clone()).map_err(|never| -> BoxError { match never {} });
        let body = Counted::request(body, Some(access.clone()));
        let body: AnyBody = Watched::new(body, progress.clone()).boxed_unsync();
        let mut message = Request::new(body);
        *message.method_mut() = asked.method.clone();
        let path = asked.path.parse();
        *message.uri_mut() =
            path.map_err(|_| mapping::bad(format!("'{}' is no path", asked.path)))?;
        let mut headers = asked.headers.clone();
        let host = HeaderValue::from_str(&asked.authority)
            .map_err(|_| mapping::bad(format!("'{}' is no host", asked.authority)))?;
        headers.insert(header::HOST, host);
        if let Ok(via) = HeaderValue::try_from(format!("{VIA_PROTOCOL} {}", self.pseudonym)) {
            headers.append(header::VIA, via);
        }
        *message.headers_mut() = headers;
        let repeatable = asked.body.is_empty() && asked.method.is_idempotent();
        let client = ClientAt::of(client);
        let how = How::default();
        let request = origin::Request { target, client, message, repeatable, progress, how };
        let answer = self.client.send(request).await?;
        let status = answer.status().as_u16();
        if !(200..600).contains(&status) {
            return Err(failed(format!("the origin's status {status} is not 200 to 599")));
        }
        Ok(answer)
    }

    /// Waits for the whole answer, as far as it can fit.
    async fn whole(
        &self,
        answer: Response<OriginBody>,
        method: &Method,
        is_xml: bool,
    ) -> Result<Answer, Refusal> {
        let (mut parts, body) = answer.into_parts();
        fields::remove_hop_by_hop(&mut parts.headers);
        let most = if is_xml { MAX_XML_BYTES } else { MAX_PDU_BYTES };
        let length = fields::content_length(&parts.headers).filter(|_| *method != Method::HEAD);
        if length.is_some_and(|length| length > most as u64) {
            return Err(over(most));
        }
        let patience = self.clocks.of_answer(&parts);
        let body = Limited::new(Timed::new(body, Side::Origin, patience), most);
        let body = body.collect().await.map_err(|error: BoxError| {
            match error.is::<LengthLimitError>() {
                true => over(most),
                false => failed(format!("the origin broke off amid its answer: {error}")),
            }
        })?;
        Ok(Answer { parts, body: body.to_bytes() })
    }

    /// An answer in XML, as WBXML by the table of this number. That of HEAD has the head alone.
    async fn translated(&self, answer: Answer, number: Option<u32>) -> Result<Answer, Refusal> {
        let Answer { mut parts, mut body } = answer;
        if !body.is_empty() {
            let wrong = |error| failed(format!("the answer cannot be written as WBXML: {error}"));
            let own = Arc::clone(&self.tables);
            let work = move || wbxml::answer_from_xml(&body, number, &own);
            body = worked(work).await?.map_err(wrong)?.into();
        }
        wbxml::mark(&mut parts.headers);
        Ok(Answer { parts, body })
    }
}

/// Runs what takes a processor's time beside what waits. As many run at once as requests have
/// places.
async fn worked<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, codec::Error> + Send + 'static,
) -> Result<Result<T, codec::Error>, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| failed("a fault of ours in the translation of WBXML".to_owned()))
}

/// An answer, or in its place that it does not fit, with its PDU.
fn fitting(rules: Rules, answer: Answer) -> (Answer, Bytes) {
    let Answer { parts, body } = &answer;
    match mapping::reply(rules, parts.status, &parts.headers, body) {
        Ok(pdu) => (answer, pdu),
        Err(_) => {
            let answer = refused(over(MAX_PDU_BYTES));
            let Answer { parts, body } = &answer;
            // Where that fails the machine has a reply of its own.
            let pdu = mapping::reply(rules, parts.status, &parts.headers, body);
            (answer, pdu.unwrap_or_default())
        }
    }
}

/// What the client gets in place of an answer.
fn refused(refusal: Refusal) -> Answer {
    let text = format!("longwire: {}\n", refusal.reason);
    let (mut parts, _) = refusal.into_response().into_parts();
    // The body says the same, and each byte takes the link.
    parts.headers.remove("proxy-status");
    Answer { parts, body: text.into() }
}

fn over(most: usize) -> Refusal {
    let reason = format!("the answer is over {most} bytes, the most that fits: nothing of it goes");
    mapping::too_large(reason)
}

fn no_place() -> Refusal {
    let reason = "too many requests are open at this gateway, or of this client".to_owned();
    Cause { kind: CauseKind::Limit, reason }.into()
}

fn failed(reason: String) -> Refusal {
    Cause { kind: CauseKind::OriginFailed, reason }.into()
}
