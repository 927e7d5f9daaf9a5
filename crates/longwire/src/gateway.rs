//! `longwire gateway`: the service side of the pair.

use std::path::PathBuf;
use std::process::ExitCode;

use proxy::config::{GatewayConfig, GatewaySettings, Mistakes, Period, Settings, Size};
use proxy::gateway::Gateway;

use proxy::News;

use crate::service;
use crate::side::{self, Common, Plan, Side, Signals};

/// Run the service side: edges connect to it, and it asks the services they may reach.
///
/// Prints one line, 'listening on ADDRESS', when it is ready; logs go to stderr. SIGTERM and Ctrl-C
/// end it after what is open, a second one at once.
#[derive(Clone, clap::Args)]
#[command(after_help = "\
A pattern is SCHEME://HOST[:PORT][/PATH]. The scheme may be *, the host *.domain or *, the port *;
without a port it is the scheme's own. CONNECT needs a pattern without a path. Hosts at private,
loopback or link-local addresses must be named exactly.

Examples:
  longwire gateway --listen 127.0.0.1:4300 --allow http://127.0.0.1:8080
  longwire gateway --listen 0.0.0.0:4300 --key k/longwire.key --peer edges.pub \\
      --allow 'http://tracks.example:8080/soap' --allow 'https://*.example.org'
  longwire gateway --listen 127.0.0.1:4300 --allow http://127.0.0.1:8080 \\
      --http-listen 127.0.0.1:3129 --http-upstream http://127.0.0.1:8080
  longwire gateway --config longwire.toml --encoding zstd:9 --admin 127.0.0.1:9100")]
pub(crate) struct Args {
    /// Address and port for edges; port 0 takes any free one.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// What edges may reach; may be given several times.
    #[arg(long, value_name = "PATTERN")]
    allow: Vec<String>,
    /// Address for clients that have no edge: an HTTP proxy whose answers go in a coding that the
    /// client takes; port 0 takes any free one, told in the log.
    #[arg(long, value_name = "ADDRESS")]
    http_listen: Option<String>,
    /// For those clients a reverse proxy: every request goes to this service.
    #[arg(long, value_name = "URL")]
    http_upstream: Option<String>,
    /// Let --http-listen be an address other than loopback: whoever reaches it can ask for all that
    /// is allowed.
    #[arg(long)]
    http_anywhere: bool,
    /// Address for clients of CoAP, over UDP and TCP: a forward proxy to http and https services;
    /// port 0 takes any free one, told in the log.
    #[arg(long, value_name = "ADDRESS")]
    coap: Option<String>,
    /// For their requests that name no origin: they go to this service.
    #[arg(long, value_name = "URL")]
    coap_upstream: Option<String>,
    /// Let --coap be an address other than loopback: whoever reaches it can ask for all that is
    /// allowed.
    #[arg(long)]
    coap_anywhere: bool,
    /// A file with the security context (OSCORE, RFC 8613) of a client of CoAP; without
    /// --coap-anywhere only what is protected is answered. May be given several times.
    #[arg(long, value_name = "FILE")]
    coap_oscore: Vec<PathBuf>,
    /// A group that the listener of --coap belongs to, such as 224.0.1.187 or ff05::fd, All CoAP
    /// Nodes (RFC 7252 §12.8): who asks it for links is answered. Behind % the interface that it is
    /// heard on, ff02::fd%eth0. May be given several times.
    #[arg(long, value_name = "ADDRESS")]
    coap_multicast: Vec<String>,
    /// Address for clients of CoAP over DTLS with pre-shared keys, usually at port 5684.
    #[arg(long, value_name = "ADDRESS")]
    coaps: Option<String>,
    /// A file with their identities and keys: lines of "IDENTITY" = "KEY".
    #[arg(long, value_name = "FILE")]
    coaps_psk: Option<PathBuf>,
    /// Room for answers of servers of CoAP, which are then kept while they are fresh [default:
    /// none].
    #[arg(long, value_name = "SIZE", value_parser = Size::parse)]
    coap_cache: Option<Size>,
    #[command(flatten)]
    wap: Wap,
    /// Carriers of edges at once, at most (default: 64): for one more, the edge that has most gives
    /// one up.
    #[arg(long, value_name = "N")]
    max_carriers: Option<usize>,
    /// The older name of --hello-timeout.
    #[arg(long, value_name = "TIME", value_parser = Period::parse, hide = true)]
    connect_timeout: Option<Period>,
    /// How long an answer is kept whose carrier broke [default: 120 s].
    #[arg(long, value_name = "TIME", value_parser = Period::parse)]
    retain: Option<Period>,
    /// Memory for such answers, like '4 MiB'.
    #[arg(long, value_name = "SIZE", value_parser = Size::parse)]
    retain_memory: Option<Size>,
    #[command(flatten)]
    common: Common,
}

/// Clients of WAP.
#[derive(clap::Args, Clone)]
struct Wap {
    /// Address for WAP clients: connectionless WSP over UDP, usually at port 9200, for what edges
    /// may reach; port 0 takes any free one, told in the log.
    #[arg(long, value_name = "ADDRESS")]
    wsp: Option<String>,
    /// Let --wsp be an address other than loopback: whoever reaches it can ask for all that is
    /// allowed, in anybody's name.
    #[arg(long)]
    wsp_anywhere: bool,
    /// A file with a table of tokens for WBXML that clients of --wsp have too, such as 'longwire
    /// wbxml derive' makes. May be given several times.
    #[arg(long, value_name = "FILE")]
    wsp_tokens: Vec<PathBuf>,
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
        let file = args.common.config.as_ref().map(|file| file.display().to_string());
        let (fingerprint, allow) = (config.security.fingerprint(), config.allow.len());
        let (mut signals, mut again) = (Signals::new()?, Signals::new()?);
        let gateway = match Gateway::bind_or_take(config, handed).await {
            Ok(gateway) => gateway,
            Err(error) => return side::finish(Err(error)),
        };
        let (version, commit) = (side::BUILD.version, side::BUILD.commit);
        let listen = gateway.local_addr();
        tracing::info!(version, commit, file, %listen, fingerprint, allow, "gateway starts");
        tokio::spawn(side::renew(args, plan, gateway.renewal(), hangup));
        if let Some(http) = gateway.http_addr() {
            side::warn_of_reach(http);
            tracing::info!(%http, "listener for clients without an edge");
        }
        if let Some(coap) = gateway.coap_addr() {
            side::warn_of_reach(coap);
            tracing::info!(%coap, "listener for clients of CoAP");
        }
        if let Some(coaps) = gateway.coaps_addr() {
            tracing::info!(%coaps, "listener for clients of CoAP over DTLS");
        }
        if let Some(wsp) = gateway.wsp_addr() {
            side::warn_of_reach(wsp);
            tracing::info!(%wsp, "listener for WAP clients");
        }
        side::announce(gateway.local_addr(), gateway.admin_addr(), gateway.pulse());
        let second = async {
            again.next().await;
            again.next().await;
        };
        side::finish(gateway.run(signals.stop(), second).await)
    })
}

fn configure(args: &Args) -> Result<(Plan<GatewaySettings>, GatewayConfig), proxy::Error> {
    let (plan, mut config) = side::configure(args, true)?;
    config.build = side::BUILD;
    Ok((plan, config))
}

impl Side for Args {
    const NAME: &'static str = "gateway";
    type Section = GatewaySettings;
    type Config = GatewayConfig;

    fn common(&self) -> &Common {
        &self.common
    }

    fn section(&self, file: &Settings) -> (GatewaySettings, Vec<&'static str>) {
        let args = self.clone();
        let common = args.common;
        let flags = GatewaySettings {
            listen: args.listen,
            allow: (!args.allow.is_empty()).then_some(args.allow),
            http_listen: args.http_listen,
            http_upstream: args.http_upstream,
            http_anywhere: args.http_anywhere.then_some(true),
            coap: args.coap,
            coap_upstream: args.coap_upstream,
            coap_anywhere: args.coap_anywhere.then_some(true),
            coaps: args.coaps,
            coaps_psk: args.coaps_psk,
            coap_oscore: (!args.coap_oscore.is_empty()).then_some(args.coap_oscore),
            coap_multicast: (!args.coap_multicast.is_empty()).then_some(args.coap_multicast),
            coap_cache: args.coap_cache,
            wsp: args.wap.wsp,
            wsp_anywhere: args.wap.wsp_anywhere.then_some(true),
            wsp_tokens: (!args.wap.wsp_tokens.is_empty()).then_some(args.wap.wsp_tokens),
            encoding: common.encoding,
            rate_cap: common.rate_cap,
            carrier: common.carrier,
            key: common.key,
            peer: common.peer,
            insecure_plain: common.insecure_plain.then_some(true),
            admin: common.admin,
            congestion: common.congestion,
            connect_timeout: args.connect_timeout,
            hello_timeout: common.hello_timeout,
            keepalive: common.keepalive,
            peer_timeout: common.peer_timeout,
            body_timeout: common.body_timeout,
            drain_timeout: common.drain_timeout,
            response_timeout: common.response_timeout,
            max_carriers: args.max_carriers,
            max_exchanges: common.max_exchanges,
            max_tunnels: common.max_tunnels,
            tunnel_timeout: common.tunnel_timeout,
            idle_timeout: common.idle_timeout,
            retain: args.retain,
            retain_memory: args.retain_memory,
            codec_threads: common.codec_threads,
            codec_memory: common.codec_memory,
            body_memory: common.body_memory,
            store: common.store,
            history_rows: None,
            history_size: None,
            store_age: common.store_age,
        };
        let given = flags.differing(&GatewaySettings::default());
        (flags.over(file.gateway.clone()), given)
    }

    fn resolve(plan: &Plan<GatewaySettings>) -> Result<GatewayConfig, Mistakes> {
        GatewayConfig::resolve(plan.section.clone(), &plan.link, &plan.services)
    }

    fn news(
        config: GatewayConfig,
        new: &Plan<GatewaySettings>,
        running: &Plan<GatewaySettings>,
    ) -> News {
        let allow = new.section.allow != running.section.allow;
        config.news(allow, new.services != running.services)
    }

    fn adopt(running: &mut GatewaySettings, new: GatewaySettings) -> Vec<&'static str> {
        running.allow = new.allow.clone();
        // Keys are read again where there are any; whether there are is settled at the start.
        if running.key.is_some() && new.key.is_some() {
            running.key.clone_from(&new.key);
            running.peer.clone_from(&new.peer);
        }
        new.differing(running)
    }
}
