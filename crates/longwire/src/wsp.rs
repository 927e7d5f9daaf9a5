//! `longwire wsp`: requests to a WAP gateway.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use proxy::wsp::{Answer, Ask, ask};

use crate::{side, terminal};

/// Most bytes of a body: one over this does not fit a datagram.
const MAX_BODY_BYTES: u64 = 65_506;

/// Ask a WAP gateway over connectionless WSP (UDP, usually port 9200), as a phone of old did.
///
/// The body of the answer goes to stdout. The exit status is 0 for an answer of 200 to 299, 1 for
/// another one or none, 2 for bad use.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire gateway --listen 127.0.0.1:4300 --allow http://127.0.0.1:8080 --wsp 127.0.0.1:9200
  longwire wsp get http://127.0.0.1:8080/rest/xml/7 --gateway localhost:9200 -v
  longwire wsp post http://127.0.0.1:8080/soap --gateway localhost:9200 --file call.xml \\
      --content-type 'text/xml; charset=utf-8' --header 'SOAPAction:\"\"' --json")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// GET a URL. It is asked for again where no answer comes.
    Get(Common),
    /// POST to a URL.
    Post(PostArgs),
}

#[derive(clap::Args)]
struct PostArgs {
    /// File of the body.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "payload",
        required_unless_present = "payload"
    )]
    file: Option<PathBuf>,
    /// The body itself.
    #[arg(long, value_name = "TEXT")]
    payload: Option<String>,
    /// Media type of the body.
    #[arg(long, value_name = "TYPE", default_value = "text/xml; charset=utf-8")]
    content_type: String,
    /// Send the request again where no answer comes: only to a gateway that carries no copy out
    /// twice, as longwire's does not.
    #[arg(long)]
    repeat: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct Common {
    /// What is asked for: http:// or https://.
    #[arg(value_name = "URL")]
    url: String,
    /// The WAP gateway, such as localhost:9200.
    #[arg(long, value_name = "HOST:PORT")]
    gateway: String,
    /// A field of the request; may be given several times. Without an Accept all media are taken.
    #[arg(long, value_name = "NAME:VALUE", value_parser = field)]
    header: Vec<(String, String)>,
    /// How long to wait for the answer.
    #[arg(long, value_name = "TIME", default_value = "60 s", value_parser = timeout)]
    timeout: Duration,
    /// Print an object: status, fields, body, bytes, copies, seconds.
    #[arg(long)]
    json: bool,
    /// Tell on stderr what was sent and what came, without the bodies.
    #[arg(short, long)]
    verbose: bool,
}

/// Runs the command to its end.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (method, common, body, repeats, media) = match args.what {
        What::Get(common) => ("GET", common, Ok(Vec::new()), false, None),
        What::Post(args) => {
            let PostArgs { file, payload, content_type, repeat, common } = args;
            let body = match (file, payload) {
                (Some(file), _) => read(&file),
                (None, payload) => Ok(payload.unwrap_or_default().into_bytes()),
            };
            ("POST", common, body, repeat, Some(content_type))
        }
    };
    let body = match body {
        Ok(body) => body,
        Err(error) => return side::finish(Err(error)),
    };
    let mut fields = common.header.clone();
    // Kannel refuses who says nothing (406); it costs two bytes.
    if !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept")) {
        fields.insert(0, ("Accept".to_owned(), "*/*".to_owned()));
    }
    if let Some(media) = media {
        fields.insert(0, ("Content-Type".to_owned(), media));
    }
    let (method, url) = (method.to_owned(), common.url.clone());
    let request = Ask { method, url, fields, body, repeats };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let answer = runtime.block_on(ask(&common.gateway, &request, common.timeout));
    // Does not wait for a name that is still being looked up.
    runtime.shutdown_background();
    let answer = match answer {
        Ok(Some(answer)) => answer,
        Ok(None) => {
            terminal::tell(&format!("no answer came from the gateway at {}", common.gateway));
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return side::finish(Err(error)),
    };
    if common.verbose {
        eprint!("{}", heads(&request, &answer));
    }
    show(&answer, common.json)?;
    let good = (200..300).contains(&answer.status);
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(file: &std::path::Path) -> Result<Vec<u8>, proxy::Error> {
    let wrong = |why: &dyn std::fmt::Display| {
        proxy::Error::Caller(format!("file '{}' cannot be sent: {why}", file.display()))
    };
    let len = std::fs::metadata(file).map_err(|error| wrong(&error))?.len();
    if len > MAX_BODY_BYTES {
        return Err(wrong(&format!("it has {len} bytes, a datagram {MAX_BODY_BYTES} at most")));
    }
    std::fs::read(file).map_err(|error| wrong(&error))
}

fn show(answer: &Answer, json: bool) -> anyhow::Result<()> {
    if !json {
        return terminal::put(&answer.body).context("cannot write the answer");
    }
    // A body that is no text is told in hexadecimal digits.
    let text = std::str::from_utf8(&answer.body).ok();
    let hex = || {
        answer.body.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    };
    let object = serde_json::json!({
        "status": answer.status,
        "fields": answer.fields,
        "body": text,
        "body_hex": text.is_none().then(hex),
        "body_bytes": answer.body.len(),
        "request_bytes": answer.request_bytes,
        "answer_bytes": answer.answer_bytes,
        "copies": answer.copies,
        "elapsed_s": answer.elapsed.as_secs_f64(),
    });
    terminal::say(&format!("{object}\n")).context("cannot write the answer")
}

/// What went and came, for a person.
fn heads(request: &Ask, answer: &Answer) -> String {
    let mut text = format!("> {} {}\n", request.method, request.url);
    for (name, value) in &request.fields {
        text += &format!("> {name}: {value}\n");
    }
    let copies = if answer.copies == 1 { "copy" } else { "copies" };
    let Answer { copies: count, request_bytes, answer_bytes, .. } = answer;
    let _ = writeln!(text, "> {request_bytes} bytes, {count} {copies}");
    let _ = writeln!(text, "< {}", answer.status);
    for (name, value) in &answer.fields {
        text += &format!("< {name}: {value}\n");
    }
    let elapsed_s = answer.elapsed.as_secs_f64();
    let _ = writeln!(text, "< {answer_bytes} bytes after {elapsed_s:.3} s");
    text
}

fn field(text: &str) -> Result<(String, String), String> {
    let wrong = || format!("'{text}' is no field; give one like 'Accept: text/xml'");
    let (name, value) = text.split_once(':').ok_or_else(wrong)?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn timeout(text: &str) -> Result<Duration, String> {
    match link::units::parse_duration(text) {
        Ok(Duration::ZERO) => Err("no time at all to wait; give one like '60 s'".into()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}
