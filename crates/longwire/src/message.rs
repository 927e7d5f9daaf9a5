//! `longwire message`: a client of a node of the messaging service.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::Value;
use services::Error;
use services::client::Target;
use services::messaging::client::Client;
use services::messaging::{Delivery, Draft, Form, Precedence, Size, Wanted};

use crate::terminal::{BAD_USE, offer, say, tell};

/// Most bytes that are read of a file or stdin: more than a message takes, so that it is refused.
const MAX_TEXT_BYTES: u64 = 64 * 1024;
/// Pause between two looks at what became of a message.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Pause before a node that went away is asked again for what comes.
const RETURN_PAUSE: Duration = Duration::from_secs(1);

/// Give messages to a node of the messaging service, read its inbox, ask what became of a message.
///
/// The exit status is 0 when it was done, 1 when the node refuses it, cannot be reached or a
/// message is not delivered, 2 for bad use.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire message send --to b1 --text 'Contact north'
  longwire message send --to platoon-b --precedence flash --validity '10 min' --wait '30 s' \\
      --text 'Contact north' --receipt read
  longwire message inbox --unread --mark-read
  longwire message inbox --follow --json
  longwire message status a1-mqs8d2k4
  longwire message status --json")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Give a message to the node, which has it on its disk when this ends.
    Send(Box<SendArgs>),
    /// Show messages that came to the node.
    Inbox(InboxArgs),
    /// Show what became of a message, or of all that the node's clients have sent.
    Status(StatusArgs),
    /// Say that a message was read; the originator learns of it where he asked.
    Read(OneArgs),
    /// Take a message out of the inbox.
    Remove(OneArgs),
    /// Show how many bytes a short message takes to the next node, by protocol and form.
    Sizes(SizesArgs),
}

#[derive(clap::Args)]
struct SizesArgs {
    /// Print an array of {case, message_bytes, ip_bytes}.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Common {
    /// The node.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8090", value_parser = url)]
    node: Target,
    /// How long an answer may take.
    #[arg(long, value_name = "TIME", default_value = "30 s", value_parser = duration)]
    timeout: Duration,
    /// Print objects of JSON, one a line.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct SendArgs {
    /// A node or group that it is for. May be given several times.
    #[arg(long, value_name = "NAME", required = true)]
    to: Vec<String>,
    /// What it says (default: what stdin has).
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    text: Option<String>,
    /// A file with what it says; - is stdin.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// How urgent it is: flash, immediate, priority or routine.
    #[arg(long, value_name = "WORD", default_value = "routine", value_parser = Precedence::parse)]
    precedence: Precedence,
    /// How long it is worth to deliver it (default: as the node is configured).
    #[arg(long, value_name = "TIME", value_parser = duration)]
    validity: Option<Duration>,
    /// Which receipt is wanted: delivered, read or none (default: delivered; none of best effort).
    #[arg(long, value_name = "WORD", value_parser = Wanted::parse)]
    receipt: Option<Wanted>,
    /// Try it once over each hop, and no more.
    #[arg(long)]
    best_effort: bool,
    /// The id of a message that it refers to. May be given several times.
    #[arg(long, value_name = "ID")]
    reference: Vec<String>,
    /// Which kind of operational message it is (default: free-text).
    #[arg(long, value_name = "NAME")]
    kind: Option<String>,
    /// Something that the kind has beside the text. May be given several times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    extension: Vec<(String, String)>,
    /// Its id, so that it may be given twice and is sent once (default: the node makes one).
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// The form in which the node gets it: json, xml, cbor or exi.
    #[arg(long, value_name = "FORM", default_value = "json", value_parser = Form::parse)]
    form: Form,
    /// Wait so long until it is delivered to each addressee; the status is 1 if it is not, or
    /// nothing is heard of it as no receipt is wanted.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    wait: Option<Duration>,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct InboxArgs {
    /// Only messages with greater numbers.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    after: u64,
    /// Only messages that nobody has read.
    #[arg(long)]
    unread: bool,
    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 100,
        value_parser = clap::value_parser!(u64).range(1..=1000))]
    limit: u64,
    /// Say that they were read.
    #[arg(long)]
    mark_read: bool,
    /// Go on with messages as they come, until Ctrl-C.
    #[arg(long, conflicts_with_all = ["unread", "mark_read", "limit"])]
    follow: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct StatusArgs {
    /// The message (default: all).
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Only messages with greater numbers.
    #[arg(long, value_name = "NUMBER", default_value_t = 0, conflicts_with = "id")]
    after: u64,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct OneArgs {
    /// The message.
    #[arg(value_name = "ID")]
    id: String,
    /// Who wrote it; needed where several have given the same id.
    #[arg(long, value_name = "NAME")]
    originator: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.context("cannot start the runtime")?.block_on(act(args.what));
    match done {
        Ok(code) => Ok(code),
        Err(error) => match error.downcast::<Error>() {
            Ok(Error::Caller(line)) => {
                tell(&line);
                Ok(ExitCode::from(BAD_USE))
            }
            Ok(other) => Err(other.into()),
            Err(other) => Err(other),
        },
    }
}

async fn act(what: What) -> anyhow::Result<ExitCode> {
    match what {
        What::Send(args) => send(*args).await,
        What::Inbox(args) => inbox(args).await,
        What::Status(args) => status(args).await,
        What::Read(args) => {
            client(&args.common).mark_read(&args.id, args.originator.as_deref()).await?;
            done(&args, "read")
        }
        What::Remove(args) => {
            client(&args.common).remove(&args.id, args.originator.as_deref()).await?;
            done(&args, "removed")
        }
        What::Sizes(args) => sizes(&args).await,
    }
}

/// Says what was done with a message to who reads JSON.
fn done(args: &OneArgs, what: &str) -> anyhow::Result<ExitCode> {
    if args.common.json {
        say(&format!("{}\n", serde_json::json!({ "id": args.id, what: true })))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn sizes(args: &SizesArgs) -> anyhow::Result<ExitCode> {
    let sizes = services::messaging::sizes().await?;
    if args.json {
        let one = |size: &Size| {
            serde_json::json!({
                "case": size.case,
                "message_bytes": size.message_bytes,
                "ip_bytes": size.ip_bytes,
            })
        };
        let all: Vec<Value> = sizes.iter().map(one).collect();
        say(&format!("{}\n", serde_json::to_string_pretty(&all)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("{:<16}{:>10}{:>10}\n", "case", "message B", "in IP B");
    for Size { case, message_bytes, ip_bytes } in &sizes {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{case:<16}{message_bytes:>10}{ip_bytes:>10}");
    }
    say(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn client(common: &Common) -> Client {
    Client { url: common.node.clone(), timeout: common.timeout }
}

async fn send(args: SendArgs) -> anyhow::Result<ExitCode> {
    let (client, is_json) = (client(&args.common), args.common.json);
    let (form, wait) = (args.form, args.wait);
    let draft = draft(args)?;
    let accepted = client.send(&draft, form).await?;
    let Some(wait) = wait else {
        let line = match is_json {
            true => serde_json::json!({ "id": accepted.id, "new": accepted.is_new }).to_string(),
            false => accepted.id,
        };
        say(&format!("{line}\n"))?;
        return Ok(ExitCode::SUCCESS);
    };
    let end = Instant::now() + wait;
    loop {
        let status = client.status(&accepted.id).await?;
        let stages = stages(&status);
        // Without a receipt nothing is heard of what another node passes on.
        let is_reported = wants_receipt(&status);
        let is_open = |stage: &&str| *stage == "waiting" || is_reported && *stage == "forwarded";
        if !stages.iter().any(is_open) || Instant::now() >= end {
            let good = stages.iter().all(|stage| matches!(*stage, "delivered" | "read"));
            say(&if is_json { format!("{status}\n") } else { shown_status(&status) })?;
            return Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

fn draft(args: SendArgs) -> anyhow::Result<Draft> {
    let text = match (args.text, args.file) {
        (Some(text), _) => text,
        (None, Some(file)) if file.as_os_str() != "-" => {
            let opened = std::fs::File::open(&file);
            let unreadable = |error| Error::Caller(format!("{}: {error}", file.display()));
            read(opened.map_err(unreadable)?, &file.display().to_string())?
        }
        (None, None) if !args.extension.is_empty() => String::new(),
        (None, _) => read(std::io::stdin().lock(), "stdin")?,
    };
    if args.validity.is_some_and(|validity| validity.subsec_nanos() > 0) {
        let line = "--validity is said in whole seconds; give a number of them";
        return Err(Error::Caller(line.to_owned()).into());
    }
    Ok(Draft {
        id: args.id,
        precedence: args.precedence,
        originator: None,
        addressees: args.to,
        time: None,
        validity: args.validity,
        references: args.reference,
        kind: args.kind,
        delivery: if args.best_effort { Delivery::BestEffort } else { Delivery::Reliable },
        receipt: args.receipt,
        text,
        extensions: args.extension,
    })
}

/// Text of a file, without the end of its last line.
fn read(from: impl std::io::Read, name: &str) -> Result<String, Error> {
    let mut text = String::new();
    let read = from.take(MAX_TEXT_BYTES).read_to_string(&mut text);
    read.map_err(|error| {
        Error::Caller(format!("cannot read {name}: {error}; give text in UTF-8"))
    })?;
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    Ok(text)
}

async fn inbox(args: InboxArgs) -> anyhow::Result<ExitCode> {
    let (client, is_json) = (client(&args.common), args.common.json);
    let shown = |entry: &Value| if is_json { format!("{entry}\n") } else { shown_entry(entry) };
    if args.follow {
        return follow(&client, args.after, shown).await;
    }
    let (after, limit, unread) = (args.after, args.limit, args.unread);
    let path = format!("/inbox?after={after}&limit={limit}&unread={unread}");
    let list = client.get(&path).await?;
    for entry in list["messages"].as_array().into_iter().flatten() {
        if !offer(shown(entry).as_bytes())? {
            // Nobody reads any further.
            return Ok(ExitCode::SUCCESS);
        }
        let (id, originator) = (&entry["message"]["id"], &entry["message"]["originator"]);
        if let (true, true, Some(id)) = (args.mark_read, entry["read"].is_null(), id.as_str()) {
            // Somebody else may have taken it out in the meantime.
            client.mark_read_if_there(id, originator.as_str()).await?;
        }
    }
    if list["more"] == true && !is_json {
        tell("there are more; go on with --after and the last number");
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows messages as they come, until stdout is closed. A node that goes away is waited for once it
/// was there.
async fn follow(
    client: &Client,
    mut last: u64,
    shown: impl Fn(&Value) -> String,
) -> anyhow::Result<ExitCode> {
    client.get("/node").await?;
    let mut is_reported = false;
    loop {
        let (after, mut offered, mut has_come) = (last, Ok(true), false);
        let each = |entry: Value| {
            (is_reported, has_come) = (false, true);
            last = entry["number"].as_u64().unwrap_or(last);
            offered = offer(shown(&entry).as_bytes());
            matches!(offered, Ok(true))
        };
        let followed = client.follow(after, each).await;
        if !offered? {
            return Ok(ExitCode::SUCCESS);
        }
        match followed {
            // There may be more already.
            Ok(()) if has_come => continue,
            Ok(()) => {}
            Err(Error::Peer(_)) if is_reported => {}
            Err(Error::Peer(line)) => {
                tell(&format!("{line}; waiting for it"));
                is_reported = true;
            }
            Err(other) => return Err(other.into()),
        }
        // sleep: nobody says when a node is there again.
        tokio::time::sleep(RETURN_PAUSE).await;
    }
}

async fn status(args: StatusArgs) -> anyhow::Result<ExitCode> {
    let (client, is_json) = (client(&args.common), args.common.json);
    let shown = |status: &Value| if is_json { format!("{status}\n") } else { shown_status(status) };
    if let Some(id) = &args.id {
        say(&shown(&client.status(id).await?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut after = args.after;
    loop {
        let list = client.get(&format!("/outbox?after={after}&limit=1000")).await?;
        for status in list["messages"].as_array().into_iter().flatten() {
            say(&shown(status))?;
            after = status["number"].as_u64().unwrap_or(after).max(after);
        }
        if list["more"] != true {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// The stages of a message with each recipient.
fn stages(status: &Value) -> Vec<&str> {
    let recipients = status["recipients"].as_object();
    recipients.into_iter().flatten().filter_map(|(_, of)| of["stage"].as_str()).collect()
}

/// Whether a receipt was asked for.
fn wants_receipt(status: &Value) -> bool {
    let message = &status["message"];
    match message["receipt"].as_str() {
        Some(word) => word != "none",
        None => message["delivery"] != "best-effort",
    }
}

/// A message of the inbox for people.
fn shown_entry(entry: &Value) -> String {
    let message = &entry["message"];
    let text = |value: &Value| clean(value.as_str().unwrap_or_default());
    let addressees: Vec<String> =
        message["addressees"].as_array().into_iter().flatten().map(text).collect();
    let mut out = format!(
        "{}  {}  {}  {} > {}  {}{}\n",
        entry["number"],
        text(&message["time"]),
        text(&message["precedence"]).to_uppercase(),
        text(&message["originator"]),
        addressees.join(", "),
        text(&message["id"]),
        if entry["read"].is_null() { "" } else { "  (read)" },
    );
    for line in text(&message["text"]).lines() {
        let _ = writeln!(out, "    {line}");
    }
    for (name, value) in message["extensions"].as_object().into_iter().flatten() {
        let _ = writeln!(out, "    {}: {}", clean(name), text(value).replace('\n', " "));
    }
    out
}

/// What became of a message, for people.
fn shown_status(status: &Value) -> String {
    let text = |value: &Value| clean(value.as_str().unwrap_or_default());
    let mut out = format!(
        "{}  {}  valid until {}\n",
        text(&status["id"]),
        text(&status["precedence"]).to_uppercase(),
        text(&status["valid_until"]),
    );
    for (node, of) in status["recipients"].as_object().into_iter().flatten() {
        let (stage, since) = (text(&of["stage"]), text(&of["since"]));
        let _ = write!(out, "    {}  {stage}  {since}", clean(node));
        if !of["reason"].is_null() {
            let _ = write!(out, "  {}", text(&of["reason"]));
        }
        out.push('\n');
    }
    out
}

/// Text of others for a terminal: nothing in it is obeyed.
fn clean(text: &str) -> String {
    let is_bad = |one: char| one.is_control() && !matches!(one, '\n' | '\t');
    text.replace("\r\n", "\n").replace(is_bad, "\u{fffd}")
}

fn url(text: &str) -> Result<Target, Error> {
    Target::parse(text)
}

fn duration(text: &str) -> Result<Duration, link::Error> {
    link::units::parse_duration(text)
}

/// `NAME=VALUE`.
fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("give a name, '=' and a value")?;
    Ok((name.to_owned(), value.to_owned()))
}
