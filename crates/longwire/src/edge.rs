//! `longwire edge`: the client side of the pair.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use proxy::config::{EdgeConfig, EdgeGateway, EdgeSettings, Mistakes, Period, Settings};
use proxy::edge::Edge;

use proxy::News;

use crate::service;
use crate::side::{self, Common, Plan, Side, Signals};

/// Run the client side: an HTTP proxy whose requests cross the bad link in one carrier.
///
/// As a forward proxy it serves any client that honours http_proxy, CONNECT and WebSockets
/// included; with --upstream it is a reverse proxy for one service. Without --gateway every request
/// goes directly. Prints one line, 'listening on ADDRESS', when it is ready; logs go to stderr.
/// SIGTERM and Ctrl-C end it after what is open, a second one at once.
#[derive(Clone, clap::Args)]
#[command(after_help = "\
Examples:
  longwire edge --listen 127.0.0.1:3128 --gateway 127.0.0.1:4300
  curl -x http://127.0.0.1:3128 http://127.0.0.1:8080/rest/xml/7
  longwire edge --listen 127.0.0.1:8000 --gateway 127.0.0.1:4300 --upstream http://127.0.0.1:8080
  longwire edge --listen 127.0.0.1:3128 --gateway gw.example:4300 --key k/longwire.key --peer gw.pub
  longwire edge --listen 127.0.0.1:3128 --gateway wsp://127.0.0.1
  longwire edge --config longwire.toml --fallback direct --log-format json")]
pub(crate) struct Args {
    /// Address and port for clients; port 0 takes any free one.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Host and port of the gateway; or of a WAP gateway, as `wsp://HOST`, or of a forward proxy of
    /// CoAP, as `coap://HOST`, of whatever make (see docs/foreign.md).
    #[arg(long, value_name = "ADDRESS")]
    gateway: Option<String>,
    /// With a WAP gateway: it carries no copy of a request out twice, as longwire's own, so that
    /// any request may be sent again where no answer comes.
    #[arg(long)]
    wsp_repeat: bool,
    /// With a WAP gateway: send XML as WBXML and take it so; longwire's own translates.
    #[arg(long)]
    wsp_wbxml: bool,
    /// Be a reverse proxy: send every request to this service.
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// With --upstream: name the client to the service by x-forwarded or forwarded fields [default:
    /// none].
    #[arg(long, value_name = "FIELDS")]
    forwarded: Option<String>,
    /// With --upstream: lead addresses of the service back here, in location or wsdl; may repeat.
    #[arg(long, value_name = "WHAT")]
    rewrite: Vec<String>,
    /// While the gateway cannot be reached: none (504) or direct.
    #[arg(long, value_name = "WAY")]
    fallback: Option<String>,
    /// What clients may not reach, a pattern as of the gateway's --allow; may be given several
    /// times.
    #[arg(long, value_name = "PATTERN")]
    deny: Vec<String>,
    /// What clients may reach directly, a pattern as of the gateway's --allow; may be given several
    /// times [default: what they could reach without an edge].
    #[arg(long, value_name = "PATTERN")]
    direct_allow: Vec<String>,
    /// How long a request waits for the gateway (504 then, or direct) [default: 30 s].
    #[arg(long, value_name = "TIME", value_parser = Period::parse)]
    connect_timeout: Option<Period>,
    /// How long an attempt to reach the gateway may take, and then its handshake; another follows
    /// [default: 10 s].
    #[arg(long, value_name = "TIME", value_parser = Period::parse)]
    dial_timeout: Option<Period>,
    /// How long a request whose carrier broke waits for word of what became of it [default: 30 s].
    #[arg(long, value_name = "TIME", value_parser = Period::parse)]
    outcome_timeout: Option<Period>,
    /// Let a request's field Priority put it before others, and not only behind them.
    #[arg(long)]
    urgent_clients: bool,
    /// Client connections at once, at most; more wait [default: 1024].
    #[arg(long, value_name = "N")]
    max_connections: Option<usize>,
    /// Most requests of each urgency of which nothing has left.
    #[arg(long, value_name = "N")]
    max_waiting: Option<usize>,
    #[command(flatten)]
    common: Common,
}

/// Runs the command until it is told to stop.
pub(crate) fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    if args.common.check {
        return side::check(&args);
    }
    let handed = match service::handed() {
        Ok(handed) => handed,
        Err(error) => return side::finish(Err(error)),
    };
    args.common.config = args.common.config.take().or_else(service::default_file);
    side::runtime()?.block_on(async {
        let hangup = side::hangup()?;
        let (plan, config) = match configure(&args) {
            Ok(configured) => configured,
            Err(error) => return side::finish(Err(error)),
        };
        let start = Start {
            file: args.common.config.clone(),
            gateway: config.gateway.as_ref().map(EdgeGateway::shown),
            fingerprint: config.security.fingerprint(),
        };
        let (mut signals, mut again) = (Signals::new()?, Signals::new()?);
        let edge = match Edge::bind_or_take(config, handed).await {
            Ok(edge) => edge,
            Err(error) => return side::finish(Err(error)),
        };
        start.tell(edge.local_addr());
        tokio::spawn(side::renew(args, plan, edge.renewal(), hangup));
        side::announce(edge.local_addr(), edge.admin_addr(), edge.pulse());
        let second = async {
            again.next().await;
            again.next().await;
        };
        side::finish(edge.run(signals.stop(), second).await)
    })
}

/// What an operator is told first.
struct Start {
    file: Option<PathBuf>,
    gateway: Option<String>,
    fingerprint: Option<String>,
}

impl Start {
    fn tell(&self, listen: SocketAddr) {
        let (version, commit) = (side::BUILD.version, side::BUILD.commit);
        let file = self.file.as_ref().map(|file| file.display().to_string());
        let (gateway, fingerprint) = (&self.gateway, &self.fingerprint);
        tracing::info!(version, commit, file, %listen, gateway, fingerprint, "edge starts");
        if gateway.is_none() {
            let what = "no gateway is named: every request goes directly to its origin, not over \
                        the link (--gateway HOST:PORT)";
            tracing::warn!("{what}");
        }
        side::warn_of_reach(listen);
    }
}

fn configure(args: &Args) -> Result<(Plan<EdgeSettings>, EdgeConfig), proxy::Error> {
    let (plan, mut config) = side::configure(args, true)?;
    config.build = side::BUILD;
    Ok((plan, config))
}

impl Side for Args {
    const NAME: &'static str = "edge";
    type Section = EdgeSettings;
    type Config = EdgeConfig;

    fn common(&self) -> &Common {
        &self.common
    }

    fn section(&self, file: &Settings) -> (EdgeSettings, Vec<&'static str>) {
        let args = self.clone();
        let common = args.common;
        let flags = EdgeSettings {
            listen: args.listen,
            gateway: args.gateway,
            wsp_repeat: args.wsp_repeat.then_some(true),
            wsp_wbxml: args.wsp_wbxml.then_some(true),
            upstream: args.upstream,
            forwarded: args.forwarded,
            rewrite: Some(args.rewrite).filter(|what| !what.is_empty()),
            fallback: args.fallback,
            urgent_clients: args.urgent_clients.then_some(true),
            encoding: common.encoding,
            rate_cap: common.rate_cap,
            carrier: common.carrier,
            key: common.key,
            peer: common.peer,
            insecure_plain: common.insecure_plain.then_some(true),
            admin: common.admin,
            congestion: common.congestion,
            connect_timeout: args.connect_timeout,
            dial_timeout: args.dial_timeout,
            hello_timeout: common.hello_timeout,
            outcome_timeout: args.outcome_timeout,
            keepalive: common.keepalive,
            peer_timeout: common.peer_timeout,
            body_timeout: common.body_timeout,
            drain_timeout: common.drain_timeout,
            response_timeout: common.response_timeout,
            max_connections: args.max_connections,
            max_exchanges: common.max_exchanges,
            max_waiting: args.max_waiting,
            max_tunnels: common.max_tunnels,
            tunnel_timeout: common.tunnel_timeout,
            idle_timeout: common.idle_timeout,
            deny: (!args.deny.is_empty()).then_some(args.deny),
            direct_allow: (!args.direct_allow.is_empty()).then_some(args.direct_allow),
            codec_threads: common.codec_threads,
            codec_memory: common.codec_memory,
            body_memory: common.body_memory,
            store: common.store,
            history_rows: None,
            history_size: None,
            store_age: common.store_age,
        };
        let given = flags.differing(&EdgeSettings::default());
        (flags.over(file.edge.clone()), given)
    }

    fn resolve(plan: &Plan<EdgeSettings>) -> Result<EdgeConfig, Mistakes> {
        EdgeConfig::resolve(plan.section.clone(), &plan.link, &plan.services)
    }

    fn news(config: EdgeConfig, new: &Plan<EdgeSettings>, running: &Plan<EdgeSettings>) -> News {
        config.news(new.services != running.services)
    }

    fn adopt(running: &mut EdgeSettings, new: EdgeSettings) -> Vec<&'static str> {
        running.deny.clone_from(&new.deny);
        running.direct_allow.clone_from(&new.direct_allow);
        // Keys are read again where there are any; whether there are is settled at the start.
        if running.key.is_some() && new.key.is_some() {
            running.key.clone_from(&new.key);
            running.peer.clone_from(&new.peer);
        }
        new.differing(running)
    }
}
