//! `longwire pub`.

use std::fs::File;
use std::io::{self, BufRead as _, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use brokerd::Error;
use brokerd::client::{Ability, Direction, Message, Published, publish};
use proxy::config::Period;
use tokio::sync::mpsc;

use super::{Peer, Use, given};
use crate::terminal::{say, tell};

/// Longest payload, in bytes: what a packet of MQTT holds.
const MAX_PAYLOAD_BYTES: u64 = 256 << 20;
/// Lines that are read ahead.
const AHEAD: usize = 100;
/// For how long a lost connection is made again, unless told otherwise.
const RETRY: Duration = Duration::from_secs(60);

/// Publish to a broker, or to whoever listens.
///
/// The exit status is 0 when all was published: acknowledged, where the QoS is 1 or 2; it is 1 when
/// something was not, 2 for bad use.
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "\
A topic of MQTT-SN may be #NUMBER, an id that both sides know. With AMQP 1.0 the topic is the
address of a node; with AMQP 0.9.1 it is a routing key, with / for the dots of that.

Examples:
  longwire pub mqtt://broker.example -t unit/7/track -m '{\"lat\":59.9}' -q 1
  longwire pub mqtts://ann@broker.example --password-file pw --cafile ca.pem -t a -f report.pdf
  tail -f positions | longwire pub mqtt://broker.example -t unit/7/track -l -q 1
  longwire pub mqtt-sn://192.0.2.1 -t '#7' -m 21.5 -q -1
  longwire pub mqtt-udp://255.255.255.255 -t unit/7/track -m here
  longwire pub amqps://ann@broker.example --password-file pw -t orders -m 7 -q 1
  longwire pub amqp091://broker.example --exchange logs -t app/web -m started -q 1
  longwire pub wsn://broker.example:8090 -t unit/7/track -m '<track/>'"
)]
pub(crate) struct Args {
    #[command(flatten)]
    peer: Peer,
    /// The topic.
    #[arg(short, long, value_name = "TOPIC")]
    topic: String,
    #[command(flatten)]
    source: Source,
    /// Quality of service, 0 to 2, of which each protocol has some; with MQTT-SN -1, too. Without
    /// it the least.
    #[arg(short, long, value_name = "QOS", allow_negative_numbers = true,
          value_parser = clap::value_parser!(i8).range(-1..=2))]
    qos: Option<i8>,
    /// It is kept for later subscribers.
    #[arg(short, long)]
    retain: bool,
    /// Publish it so often.
    #[arg(long, value_name = "N", default_value = "1", conflicts_with = "lines",
          value_parser = clap::value_parser!(u64).range(1..))]
    repeat: u64,
    /// Between two times.
    #[arg(long, value_name = "TIME", default_value = "0 s", value_parser = Period::parse)]
    repeat_delay: Period,
    #[command(flatten)]
    more: Properties,
    /// The exchange, with AMQP 0.9.1: one that has no queue for a message gives it back where the
    /// QoS is 1. Without it amq.topic.
    #[arg(long, value_name = "NAME")]
    exchange: Option<String>,
    /// Print an object of what became of it.
    #[arg(long)]
    json: bool,
}

/// Where the payload is.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Source {
    /// The payload, as it stands here.
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// A file with it.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Each line of stdin is one.
    #[arg(short, long)]
    lines: bool,
    /// All of stdin is one.
    #[arg(short, long)]
    stdin: bool,
    /// It is empty: with --retain that ends what is retained.
    #[arg(short, long)]
    null: bool,
}

/// What is said beside the payload, where the protocol can.
#[derive(clap::Args)]
struct Properties {
    /// Media type.
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// Where an answer is expected.
    #[arg(long, value_name = "TOPIC")]
    response_topic: Option<String>,
    /// What an answer is to carry.
    #[arg(long, value_name = "TEXT")]
    correlation_data: Option<String>,
    /// How long it is of use.
    #[arg(long, value_name = "TIME", value_parser = Period::parse)]
    expiry: Option<Period>,
    /// A name and a value; may be given several times.
    #[arg(short = 'D', long, value_name = "NAME=VALUE", value_parser = pair)]
    user_property: Vec<(String, String)>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Publishes, and says what became of it.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let done = super::run(async {
        let (target, settings, qos) = args.peer.read(args.asked())?;
        let (sender, receiver) = mpsc::channel(AHEAD);
        let message = args.message(qos);
        if args.source.lines {
            std::thread::spawn(move || lines(&message, &sender));
            return publish(&target, &settings, receiver).await;
        }
        let payload = args.source.payload()?;
        let times = (args.repeat, args.repeat_delay.0);
        let repeated = repeat(Message { payload: payload.into(), ..message }, times, sender);
        tokio::join!(publish(&target, &settings, receiver), repeated).0
    });
    match done? {
        Err(status) => Ok(ExitCode::from(status)),
        Ok(published) => {
            report(args.json, &published)?;
            Ok(ExitCode::from(u8::from(published.failed > 0)))
        }
    }
}

fn report(json: bool, published: &Published) -> anyhow::Result<()> {
    for failure in &published.failures {
        tell(failure);
    }
    let left = published.failed.saturating_sub(published.failures.len() as u64);
    if left > 0 {
        tell(&format!("{left} more failed"));
    }
    if json {
        let Published { accepted, failures, failed } = published;
        let facts =
            serde_json::json!({"accepted": accepted, "failed": failed, "failures": failures});
        say(&format!("{facts}\n"))?;
    }
    Ok(())
}

impl Args {
    /// What is asked of the protocol.
    fn asked(&self) -> Use<'_> {
        let more = &self.more;
        let given = given(&[
            (self.retain, Ability::Retain),
            (more.content_type.is_some(), Ability::ContentType),
            (more.response_topic.is_some(), Ability::ResponseTopic),
            (more.correlation_data.is_some(), Ability::CorrelationData),
            (more.expiry.is_some(), Ability::Expiry),
            (!more.user_property.is_empty(), Ability::UserProperty),
            (self.exchange.is_some(), Ability::Exchange),
        ]);
        let exchange = self.exchange.as_ref();
        Use { direction: Direction::Publish, given, qos: self.qos, exchange, retry: RETRY }
    }

    /// The message without its payload.
    fn message(&self, qos: i8) -> Message {
        let more = &self.more;
        Message {
            topic: self.topic.clone(),
            qos,
            retain: self.retain,
            content_type: more.content_type.clone(),
            reply_to: more.response_topic.clone(),
            correlation: more.correlation_data.clone().map(Into::into),
            expiry: more.expiry.map(|expiry| expiry.0),
            properties: more.user_property.clone(),
            ..Message::default()
        }
    }
}

impl Source {
    fn payload(&self) -> Result<Vec<u8>, Error> {
        match (&self.message, &self.file) {
            (Some(text), _) => Ok(text.clone().into_bytes()),
            (_, Some(file)) => of_file(file),
            _ if self.stdin => whole(io::stdin().lock(), "stdin"),
            _ => Ok(Vec::new()),
        }
    }
}

fn of_file(path: &Path) -> Result<Vec<u8>, Error> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| Error::Caller(format!("{name}: {error}")))?;
    whole(file, &name)
}

fn whole(from: impl Read, name: &str) -> Result<Vec<u8>, Error> {
    let mut payload = Vec::new();
    from.take(MAX_PAYLOAD_BYTES + 1)
        .read_to_end(&mut payload)
        .map_err(|error| Error::Caller(format!("{name}: {error}")))?;
    if payload.len() as u64 > MAX_PAYLOAD_BYTES {
        let limit = MAX_PAYLOAD_BYTES;
        return Err(Error::Caller(format!("{name} is over the limit of {limit} bytes")));
    }
    Ok(payload)
}

async fn repeat(message: Message, times: (u64, Duration), sender: mpsc::Sender<Message>) {
    let (count, pause) = times;
    for number in 0..count {
        if number > 0 && !pause.is_zero() {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = sender.closed() => return,
            }
        }
        // Where nobody takes it any more, the publisher says why.
        if sender.send(message.clone()).await.is_err() {
            return;
        }
    }
}

/// Each line of stdin as a message, until it ends, or nobody takes one any more.
fn lines(message: &Message, sender: &mpsc::Sender<Message>) {
    let mut input = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        let read = input.by_ref().take(MAX_PAYLOAD_BYTES).read_until(b'\n', &mut line);
        match read {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => return tell(&format!("stdin: {error}")),
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        let message = Message { payload: line.into(), ..message.clone() };
        if sender.blocking_send(message).is_err() {
            return;
        }
    }
}
