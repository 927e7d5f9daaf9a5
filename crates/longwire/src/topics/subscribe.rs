//! `longwire sub`.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use brokerd::client::{Ability, Direction, Event, Message, Taken, Wish, subscribe};
use proxy::config::Period;

use super::{Peer, Use, given};
use crate::terminal::tell;

/// For how long a lost connection is made again, unless told otherwise: until somebody ends it.
const RETRY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Print what is published, one message a line.
///
/// The exit status is 0 after Ctrl-C, after --count messages, and after --wait without a count; it
/// is 1 when these did not come or the broker refused, 2 for bad use.
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "\
Examples:
  longwire sub mqtt://broker.example -t 'unit/+/track' -v
  longwire sub wss://broker.example/mqtt -t '#' --json
  longwire sub mqtts://ann@broker.example --password-file pw -t orders -q 1 -i ann-1 -c
  longwire sub mqtt-sn://192.0.2.1 -t 'unit/#' --count 1 --wait '10 s'
  longwire sub mqtt-udp://239.1.2.3 -t '#' -v
  longwire sub amqp://broker.example -t orders -q 1 -i ann-1 -c
  longwire sub amqp091://broker.example/ships --queue work -q 1
  longwire sub wsn://broker.example:8090 -t 'unit/#' --listen 192.0.2.7:9000
  longwire sub wsn://broker.example:8090 -t 'unit/#' --pull"
)]
pub(crate) struct Args {
    #[command(flatten)]
    peer: Peer,
    /// A filter of topics; may be given several times.
    #[arg(short, long, value_name = "FILTER", required_unless_present = "queue")]
    topic: Vec<String>,
    /// Highest quality of service, 0 to 2, of which each protocol has some; without it the least.
    #[arg(short, long, value_name = "QOS", value_parser = clap::value_parser!(i8).range(0..=2))]
    qos: Option<i8>,
    /// The exchange that the queue is bound to, with AMQP 0.9.1; without it amq.topic.
    #[arg(long, value_name = "NAME")]
    exchange: Option<String>,
    /// A queue, with AMQP 0.9.1: it is made where it is not there, keeps what comes, and stays.
    /// Without it there is one for as long as the connection is there.
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// Where the broker posts messages to, with WS-Notification; without it a port of this
    /// machine's at the address by which it reaches the broker.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Messages wait at the broker, with WS-Notification, which is asked for them this often.
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "1 s",
          value_parser = Period::parse, conflicts_with = "listen")]
    pull: Option<Period>,
    /// End after so many messages.
    #[arg(short = 'C', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after so long.
    #[arg(short = 'W', long, value_name = "TIME", value_parser = Period::parse)]
    wait: Option<Period>,
    /// End as soon as the broker has accepted: a session that is kept has the subscriptions then.
    #[arg(short = 'E', long)]
    exit_subscribed: bool,
    /// Print the topic before the payload.
    #[arg(short, long)]
    verbose: bool,
    /// Print no end of line after a payload.
    #[arg(short = 'N', long)]
    no_newline: bool,
    /// Messages that were retained do not count.
    #[arg(short = 'R', long)]
    no_retained: bool,
    /// Print each message as an object.
    #[arg(long, conflicts_with_all = ["verbose", "no_newline"])]
    json: bool,
}

/// Prints what comes.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut printed = Ok(());
    let mut left = args.count;
    let mut has_subscribed = false;
    let mut take = |event: Event| match event {
        Event::Subscribed(refused) => {
            for what in refused {
                tell(&format!("the broker refuses {what}"));
            }
            has_subscribed = true;
            if args.exit_subscribed { Taken::Last } else { Taken::More }
        }
        Event::Message(message) => match args.print(&message) {
            Ok(()) => {
                left = left.map(|left| left - 1);
                if left == Some(0) { Taken::Last } else { Taken::More }
            }
            // Nobody reads any more: that is no fault.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Taken::Failed,
            Err(error) => {
                printed = Err(error);
                Taken::Failed
            }
        },
        Event::Unreadable(why) => {
            tell(&format!("a message that cannot be read: {why}"));
            Taken::More
        }
    };
    let done = super::run(async {
        let (target, settings, qos) = args.peer.read(args.asked())?;
        let wish = Wish {
            filters: args.topic.clone(),
            qos: qos.unsigned_abs(),
            no_retained: args.no_retained,
            queue: args.queue.clone(),
            listen: args.listen,
            pull: args.pull.map(|pull| pull.0),
        };
        let late = async {
            match args.wait {
                Some(wait) => tokio::time::sleep(wait.0).await,
                None => std::future::pending().await,
            }
        };
        let end = async {
            tokio::select! {
                () = late => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        };
        subscribe(&target, &settings, &wish, &mut take, end).await
    });
    if let Err(status) = done? {
        return Ok(ExitCode::from(status));
    }
    printed?;
    let is_short = left.is_some_and(|left| left > 0) || args.exit_subscribed && !has_subscribed;
    Ok(ExitCode::from(u8::from(is_short && args.wait.is_some())))
}

impl Args {
    /// What is asked of the protocol.
    fn asked(&self) -> Use<'_> {
        let given = given(&[
            (self.no_retained, Ability::NoRetained),
            (self.exchange.is_some(), Ability::Exchange),
            (self.queue.is_some(), Ability::Queue),
            (self.listen.is_some(), Ability::Listen),
            (self.pull.is_some(), Ability::Pull),
        ]);
        let exchange = self.exchange.as_ref();
        Use { direction: Direction::Subscribe, given, qos: self.qos, exchange, retry: RETRY }
    }

    /// Prints a message.
    fn print(&self, message: &Message) -> io::Result<()> {
        let mut line = Vec::new();
        if self.json {
            line.extend_from_slice(message.facts().to_string().as_bytes());
        } else {
            if self.verbose {
                line.extend_from_slice(message.topic.as_bytes());
                line.push(b' ');
            }
            line.extend_from_slice(&message.payload);
        }
        if !self.no_newline {
            line.push(b'\n');
        }
        let mut out = io::stdout().lock();
        out.write_all(&line).and_then(|()| out.flush())
    }
}
