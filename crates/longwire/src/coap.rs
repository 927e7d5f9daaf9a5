//! `longwire coap`: a client of CoAP servers.

mod flowing;

use std::io::{self, IsTerminal as _, Read as _, Write as _, stdin, stdout};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use proxy::coap::Code;
use proxy::coap::client::{Ask, Call, Client, Event, Gathering, Response, links_url};
use proxy::coap::text;
use proxy::config::Period;

use crate::terminal::{BAD_USE, say, tell};

/// How long an answer is waited for, unless told otherwise: as long as a request is repeated.
const ANSWER_TIMEOUT: &str = "93 s";
/// How long answers of a group are gathered, unless told otherwise: they are spread over 5 s
/// (RFC 7252 §8.2), and come over a link.
const GATHER_TIME: &str = "8 s";
/// Most bytes that are read of a file or stdin, to be sent, where they are needed as a whole.
const MAX_PAYLOAD_BYTES: u64 = 16 << 20;

/// Ask CoAP servers over UDP (RFC 7252), TCP, TLS or a WebSocket (RFC 8323), directly or over a
/// proxy.
///
/// What comes is printed as it is. The exit status is 0 when the answer is a success (2.xx), 1 when
/// it is none or none came, 2 for bad use. Bodies go in blocks (RFC 7959) and are never here as a
/// whole, but with --json, --q-block and for observe and discover: then up to 1 MiB are taken.
#[derive(clap::Args)]
#[command(after_help = "\
A format is a number, a media type or its last part: 50, application/json, json, text.
The scheme says the transport: coap is UDP, coap+tcp TCP, coaps+tcp TLS, coap+ws and coaps+ws a
WebSocket. With TLS the authorities of this system are trusted, or those of a file in SSL_CERT_FILE.

Examples:
  longwire coap get coap://192.0.2.1/temperature -v
  longwire coap put coap://[2001:db8::1]/light --payload on --content-format text
  longwire coap post coap://192.0.2.1/log --file report.cbor --content-format cbor
  longwire coap put coap://192.0.2.1/map --file map.png --q-block
  longwire coap get coap://192.0.2.1/image -o image.tar
  longwire coap observe coap://192.0.2.1/time --count 5 --json
  longwire coap discover coap://192.0.2.1
  longwire coap discover coap://224.0.1.187 --gather '10 s'
  longwire coap put coap+tcp://192.0.2.1/map --file map.png --content-format png
  longwire coap get coap://192.0.2.1/temperature --oscore context.toml
  longwire coap get coaps://192.0.2.1/temperature -u device-01 -k 0x8e1c...
  longwire coap get http://tracks.example/rest/json/1 --proxy coap://gateway.example")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Read something (GET).
    Get(GetArgs),
    /// Read a part of something, which the body names (FETCH, RFC 8132).
    Fetch(WithBody),
    /// Have something processed (POST).
    Post(WithBody),
    /// Put something there (PUT).
    Put(WithBody),
    /// Change a part of something (PATCH, RFC 8132).
    Patch(WithBody),
    /// The same, which may be repeated (iPATCH, RFC 8132).
    Ipatch(WithBody),
    /// Remove something (DELETE).
    Delete(Bare),
    /// Read something and each change of it (RFC 7641), until Ctrl-C.
    Observe(ObserveArgs),
    /// List what a server has (RFC 6690), one link a line.
    Discover(Bare),
    /// Ask whether a server is there (RFC 7252 §4.3, RFC 8323 §5.4).
    Ping(Bare),
}

#[derive(clap::Args)]
struct Bare {
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct GetArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    to: To,
}

#[derive(clap::Args)]
struct To {
    /// Write the body to this file, where it is once it is whole; without it, to stdout.
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["json", "q_block"])]
    output: Option<PathBuf>,
}

#[derive(clap::Args)]
struct WithBody {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    to: To,
    /// The body, as it stands here.
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    payload: Option<String>,
    /// A file with the body; - is stdin. It is read as it is sent.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// What the body is: a format.
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    content_format: Option<u16>,
}

#[derive(clap::Args)]
struct ObserveArgs {
    #[command(flatten)]
    common: Common,
    /// End after so many, the first included.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after so long.
    #[arg(long, value_name = "TIME", value_parser = Period::parse)]
    duration: Option<Period>,
}

#[derive(clap::Args)]
struct Common {
    /// `coap://HOST[:PORT]/PATH[?QUERY]`, or the same with coaps, coap+tcp, coaps+tcp, coap+ws or
    /// coaps+ws; with --proxy what the proxy knows, http and https too.
    url: String,
    /// The only format to answer in.
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    accept: Option<u16>,
    /// A tag, in hex, of what is here already: 2.03 says that it is still the same. May be given
    /// several times.
    #[arg(long, value_name = "HEX", value_parser = tag)]
    etag: Vec<Tag>,
    /// Only if what is there has this tag, in hex; with '' if there is anything. May be given
    /// several times.
    #[arg(long, value_name = "HEX", value_parser = tag)]
    if_match: Vec<Tag>,
    /// Only if there is nothing yet.
    #[arg(long)]
    if_none_match: bool,
    /// Send the request once, without acknowledgement (only over UDP).
    #[arg(long)]
    non: bool,
    /// Bytes of a block, both ways: 16, 32 … 1024. Over TCP, TLS and WebSocket, without it, as much
    /// goes in a message as the server takes.
    #[arg(long, value_name = "BYTES")]
    block_size: Option<usize>,
    /// Bodies over a block go in sets that are not confirmed block by block (RFC 9177), where the
    /// server knows these: it is asked first. Over UDP and DTLS; what is lost is asked for, and a
    /// set takes a round trip.
    #[arg(long)]
    q_block: bool,
    /// The proxy to ask, `coap://HOST[:PORT]` or one of the other schemes.
    #[arg(long, value_name = "URL")]
    proxy: Option<String>,
    /// Protect all from end to end by OSCORE (RFC 8613), with the security context in this file;
    /// its sequence number is kept beside it, in FILE.state.
    #[arg(long, value_name = "FILE")]
    oscore: Option<PathBuf>,
    /// For `coaps`, DTLS: the identity that the server knows this side by.
    #[arg(short = 'u', long, value_name = "IDENTITY", requires = "psk")]
    psk_identity: Option<String>,
    /// Its key: text, or bytes in hex behind 0x. Other users of this machine see it while it runs.
    #[arg(short = 'k', long, value_name = "KEY", requires = "psk_identity")]
    psk: Option<String>,
    /// How long an answer is waited for; of a body, for how long nothing may move.
    #[arg(long, value_name = "TIME", default_value = ANSWER_TIMEOUT, value_parser = Period::parse)]
    timeout: Period,
    /// Where the URL names a group, such as 224.0.1.187, All CoAP Nodes: how long answers are
    /// gathered. It is asked once, without acknowledgement, and only to be read.
    #[arg(long, value_name = "TIME", default_value = GATHER_TIME, value_parser = Period::parse)]
    gather: Period,
    /// The same: an address of this machine, on whose interface the group is asked.
    #[arg(long, value_name = "ADDRESS")]
    interface: Option<IpAddr>,
    /// Print an object a line: code, name, options, payload, elapsed_s.
    #[arg(long)]
    json: bool,
    /// Print code and options to stderr.
    #[arg(short, long)]
    verbose: bool,
}

/// An entity tag (a type of its own: clap takes a bare `Vec` for a repeated option).
#[derive(Clone, Debug)]
struct Tag(Vec<u8>);

fn tag(hex: &str) -> Result<Tag, String> {
    text::bytes_of(hex).map(Tag).ok_or_else(|| "no bytes in hex, like 5f3a".to_owned())
}

fn format(name: &str) -> Result<u16, String> {
    text::format_of(name).ok_or_else(|| "no format that is known: give its number".to_owned())
}

/// How what comes is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Body,
    Links,
    Json,
}

/// What is to be done.
struct Plan {
    ask: Ask,
    /// The file that the body is read of as it is sent.
    source: Option<PathBuf>,
    /// And where that of the answer goes; without, to stdout.
    target: Option<PathBuf>,
    form: Form,
    verbose: bool,
    timeout: Duration,
    /// On which interface a group is asked, and for how long answers of it are gathered.
    group: (Option<IpAddr>, Duration),
    count: Option<u64>,
    duration: Option<Duration>,
}

/// Runs the command to its end.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let plan = args.what.plan()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let outcome = runtime.block_on(carry_out(&plan));
    // Does not wait for a name that is still being looked up.
    runtime.shutdown_background();
    outcome
}

impl What {
    fn plan(self) -> anyhow::Result<Plan> {
        let (method, with_body) = match self {
            Self::Get(GetArgs { common, to }) => {
                return Ok(Plan { target: to.output, ..common.plan(Code::GET) });
            }
            Self::Delete(Bare { common }) => return Ok(common.plan(Code::DELETE)),
            Self::Ping(Bare { common }) => return Ok(common.plan(Code::EMPTY)),
            Self::Observe(ObserveArgs { common, count, duration }) => {
                let mut plan = common.plan(Code::GET);
                plan.ask.observe = true;
                (plan.count, plan.duration) = (count, duration.map(|period| period.0));
                return Ok(plan);
            }
            Self::Discover(Bare { mut common }) => {
                common.url = links_url(&common.url);
                common.accept = common.accept.or_else(|| text::format_of("link-format"));
                let mut plan = common.plan(Code::GET);
                if plan.form == Form::Body {
                    plan.form = Form::Links;
                }
                return Ok(plan);
            }
            Self::Fetch(with_body) => (Code::FETCH, with_body),
            Self::Post(with_body) => (Code::POST, with_body),
            Self::Put(with_body) => (Code::PUT, with_body),
            Self::Patch(with_body) => (Code::PATCH, with_body),
            Self::Ipatch(with_body) => (Code::IPATCH, with_body),
        };
        let WithBody { common, to, payload, file, content_format } = with_body;
        let mut plan = Plan { target: to.output, ..common.plan(method) };
        plan.ask.content_format = content_format;
        match (payload, file) {
            (Some(text), _) => plan.ask.payload = text.into_bytes(),
            // What FETCH asks for may go to a group, in one message.
            (None, Some(file)) if plan.is_flowing() && method != Code::FETCH => {
                plan.source = Some(file);
            }
            (None, Some(file)) => plan.ask.payload = read(&file)?,
            (None, None) => {}
        }
        Ok(plan)
    }
}

impl Common {
    fn plan(self, method: Code) -> Plan {
        let tags = |all: Vec<Tag>| all.into_iter().map(|tag| tag.0).collect();
        let ask = Ask {
            method,
            url: self.url,
            proxy: self.proxy,
            accept: self.accept,
            etags: tags(self.etag),
            if_match: tags(self.if_match),
            if_none_match: self.if_none_match,
            is_confirmable: !self.non,
            block_bytes: self.block_size,
            q_block: self.q_block,
            oscore: self.oscore,
            psk: self.psk_identity.zip(self.psk),
            ..Ask::default()
        };
        let form = if self.json { Form::Json } else { Form::Body };
        let group = (self.interface, self.gather.0);
        let timeout = self.timeout.0;
        Plan {
            ask,
            source: None,
            target: None,
            form,
            verbose: self.verbose,
            timeout,
            group,
            count: None,
            duration: None,
        }
    }
}

impl Plan {
    /// Whether bodies go as they come: what is shown otherwise than as it is, is whole, and so is
    /// what is observed and what goes by RFC 9177.
    fn is_flowing(&self) -> bool {
        let Ask { method, observe, q_block, .. } = &self.ask;
        self.form == Form::Body && *method != Code::EMPTY && !observe && !q_block
    }
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let is_stdin = file.as_os_str() == "-";
    let input: Box<dyn io::Read> = match is_stdin {
        true => Box::new(stdin().lock()),
        false => {
            let opened = std::fs::File::open(file);
            Box::new(opened.with_context(|| format!("cannot read '{}'", file.display()))?)
        }
    };
    let read = input.take(MAX_PAYLOAD_BYTES + 1).read_to_end(&mut bytes);
    read.with_context(|| format!("cannot read '{}'", file.display()))?;
    if bytes.len() as u64 > MAX_PAYLOAD_BYTES {
        anyhow::bail!("'{}' is over the limit of {MAX_PAYLOAD_BYTES} bytes", file.display());
    }
    Ok(bytes)
}

async fn carry_out(plan: &Plan) -> anyhow::Result<ExitCode> {
    let (on, gathers) = plan.group;
    match Gathering::begin(&plan.ask, on).await {
        Ok(Some(_)) if plan.target.is_some() => {
            tell("a group has many answers, and --output takes one: leave it out");
            return Ok(ExitCode::from(BAD_USE));
        }
        Ok(Some(gathering)) => return gather(plan, gathering, gathers).await,
        Ok(None) => {}
        Err(proxy::Error::Caller(what)) => {
            tell(&what);
            return Ok(ExitCode::from(BAD_USE));
        }
        Err(error) => return Err(error.into()),
    }
    let client = match Client::connect(&plan.ask).await {
        Ok(client) => client,
        Err(proxy::Error::Caller(what)) => {
            tell(&what);
            return Ok(ExitCode::from(BAD_USE));
        }
        Err(error) => return Err(error.into()),
    };
    let outcome = match plan.is_flowing() {
        true => flowing::converse(plan, &client).await,
        false => converse(plan, &client).await,
    };
    client.close().await;
    outcome
}

/// Shows what a group answers within a time.
async fn gather(plan: &Plan, mut gathering: Gathering, time: Duration) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let mut count = 0_u32;
    while let Ok(next) = tokio::time::timeout_at((began + time).into(), gathering.next()).await {
        let (from, response) = next.context("cannot hear answers")?;
        count += u32::from(response.code.is_success());
        show_one(plan, from, &response, began.elapsed())?;
    }
    if count == 0 {
        tell(&format!("nobody in the group answered within {time:?}"));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows what one of a group has answered.
fn show_one(
    plan: &Plan,
    from: SocketAddr,
    response: &Response,
    elapsed: Duration,
) -> io::Result<()> {
    let document = std::str::from_utf8(&response.payload);
    match document {
        _ if plan.form == Form::Json => {
            let mut object = object(response, elapsed);
            object["from"] = from.to_string().into();
            say(&format!("{object}\n"))
        }
        Ok(document) if plan.form == Form::Links && response.code.is_success() => {
            let links = text::links(document);
            let lines = links.iter().map(|link| format!("{from} {}\n", text::printable(link)));
            say(&lines.collect::<String>())
        }
        _ => {
            tell(&format!("{from} answers:"));
            show(plan, response, elapsed)
        }
    }
}

/// Asks, and shows what comes.
async fn converse(plan: &Plan, client: &Client) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let mut call = client.ask().await;
    let Some(first) = within(&mut call, Some(began + plan.timeout)).await else {
        tell(&format!("no answer of {} within {:?}", client.server(), plan.timeout));
        return Ok(ExitCode::FAILURE);
    };
    let mut next = first;
    let mut left = plan.count.unwrap_or(u64::MAX);
    loop {
        let response = match next {
            Event::Response(response) => response,
            Event::Alive => {
                show_alive(plan, client, began.elapsed())?;
                return Ok(ExitCode::SUCCESS);
            }
            Event::Failed(why) => {
                tell(&format!("{}: {why}", client.server()));
                return Ok(ExitCode::FAILURE);
            }
            // Bodies are whole here.
            Event::Part(..) | Event::Room(_) => return Ok(ExitCode::FAILURE),
        };
        show(plan, &response, began.elapsed())?;
        left -= 1;
        if !response.code.is_success() {
            return Ok(ExitCode::FAILURE);
        }
        if response.is_last && plan.ask.observe {
            tell("the server tells of no changes of this");
        }
        if response.is_last || left == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        let until = plan.duration.map(|duration| began + duration);
        next = tokio::select! {
            event = within(&mut call, until) => match event {
                Some(event) => event,
                None => return Ok(ExitCode::SUCCESS),
            },
            _ = tokio::signal::ctrl_c() => return Ok(ExitCode::SUCCESS),
        };
    }
}

/// What comes next; `None`: nothing by then.
async fn within(call: &mut Call, until: Option<Instant>) -> Option<Event> {
    match until {
        None => call.next().await,
        Some(until) => tokio::time::timeout_at(until.into(), call.next()).await.ok().flatten(),
    }
}

fn seconds(elapsed: Duration) -> f64 {
    (elapsed.as_secs_f64() * 1e4).round() / 1e4
}

fn show_alive(plan: &Plan, client: &Client, elapsed: Duration) -> io::Result<()> {
    let (server, elapsed_s) = (client.server().to_string(), seconds(elapsed));
    match plan.form {
        Form::Json => {
            let object = serde_json::json!({ "alive": server, "elapsed_s": elapsed_s });
            say(&format!("{object}\n"))
        }
        _ => say(&format!("{server} is there: {elapsed_s} s\n")),
    }
}

fn show(plan: &Plan, response: &Response, elapsed: Duration) -> io::Result<()> {
    let Response { code, payload, .. } = response;
    show_head(plan, response);
    if plan.form == Form::Json {
        return say(&format!("{}\n", object(response, elapsed)));
    }
    if !code.is_success() {
        tell_refusal(response);
        return Ok(());
    }
    match std::str::from_utf8(payload) {
        Ok(document) if plan.form == Form::Links => {
            let lines: String = text::links(document)
                .iter()
                .map(|link| format!("{}\n", text::printable(link)))
                .collect();
            say(&lines)
        }
        _ => pour(payload, plan.ask.observe),
    }
}

fn show_head(plan: &Plan, response: &Response) {
    if !plan.verbose {
        return;
    }
    let Response { code, options, .. } = response;
    let mut head = format!("{code} {}\n", code.name().unwrap_or("unknown"));
    for (option, value) in options {
        head.push_str(&format!("{option}: {value}\n"));
    }
    // Whoever closed stderr wants none of it.
    let _ = io::stderr().lock().write_all(head.as_bytes());
}

fn tell_refusal(response: &Response) {
    let Response { code, payload, .. } = response;
    let (name, why) = (code.name().unwrap_or("unknown"), String::from_utf8_lossy(payload));
    let joint = if why.is_empty() { "" } else { ": " };
    tell(&format!("{code} {name}{joint}{}", text::printable(why.trim_end())));
}

/// The bytes, on a line of their own where one has to be told from the next.
fn pour(payload: &[u8], is_one_of_many: bool) -> io::Result<()> {
    let mut out = stdout().lock();
    let is_open = !payload.is_empty() && !payload.ends_with(b"\n");
    let end: &[u8] = if is_open && (is_one_of_many || out.is_terminal()) { b"\n" } else { b"" };
    match out.write_all(payload).and_then(|()| out.write_all(end)).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

fn object(response: &Response, elapsed: Duration) -> serde_json::Value {
    let Response { code, options, payload, .. } = response;
    let options: Vec<_> = options
        .iter()
        .map(|(name, value)| serde_json::json!({ "name": name, "value": value }))
        .collect();
    let mut object = serde_json::json!({
        "code": code.to_string(),
        "name": code.name(),
        "options": options,
        "elapsed_s": seconds(elapsed),
    });
    // What is no text is told by its bytes.
    match std::str::from_utf8(payload) {
        Ok(text) => object["payload"] = text.into(),
        Err(_) => {
            let hex: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
            object["payload_hex"] = hex.into();
        }
    }
    object
}
