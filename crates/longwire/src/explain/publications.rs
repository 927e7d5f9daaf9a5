//! What became of publications at a broker.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;

use brokerd::{Error, ExplainQuery};
use record::calendar;
use record::publication::{Ended, Progress, Publication, Receiver, Sent};

use super::Args;
use crate::history::{printable, seconds, whole};
use crate::{BAD_USE, say, tell};

/// Publications that are asked for where nobody says how many.
const LAST: usize = 10;

/// Asks a broker and prints the answer.
pub(super) fn run(address: SocketAddr, args: &Args) -> anyhow::Result<ExitCode> {
    let found = query(args).and_then(|query| brokerd::explain(address, &query));
    let found = match found {
        Ok(found) => found,
        Err(Error::Caller(what)) => {
            tell(&what);
            return Ok(ExitCode::from(BAD_USE));
        }
        Err(error) => return Err(error.into()),
    };
    if args.json {
        say(&(serde_json::to_string_pretty(&found)? + "\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        tell("no such publication is remembered: see 'explain' in docs/broker.md for how many are");
        return Ok(ExitCode::FAILURE);
    }
    let mut text = String::new();
    found.iter().try_for_each(|publication| explain(publication, &mut text))?;
    say(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// What the arguments ask for: a number, or, as it has a colon, where something came in.
fn query(args: &Args) -> Result<ExplainQuery, Error> {
    let (mut id, mut origin) = (None, None);
    match args.id.as_deref() {
        Some(hop) if hop.contains(':') => origin = Some(hop.to_owned()),
        Some(number) => {
            let what = "a publication has a number, or where it came in, NODE:BEGUN.NUMBER";
            let wrong = |_| Error::Caller(format!("'{number}': {what}"));
            id = Some(number.parse().map_err(wrong)?);
        }
        None => {}
    }
    let topic = args.topic.clone();
    Ok(ExplainQuery { id, origin, topic, last: args.last.unwrap_or(LAST) })
}

fn explain(publication: &Publication, text: &mut String) -> std::fmt::Result {
    let Publication { id, protocol, bytes, urgency, .. } = publication;
    let when = calendar::utc(whole(publication.unix_s));
    let by = publication.publisher.as_ref().unwrap_or(protocol);
    writeln!(text, "publication {id} of {}, {when} UTC", printable(by))?;
    writeln!(text, "  topic {}", printable(&publication.topic))?;
    if let Some(topic) = &publication.published_to {
        writeln!(text, "  published to {}", printable(topic))?;
    }
    if let Some(rule) = &publication.rule {
        writeln!(text, "  by the rule of {}", printable(rule))?;
    }
    let kind = publication.content_type.as_deref().unwrap_or("no content type");
    write!(text, "  {bytes} bytes, {}, QoS {}", printable(kind), publication.qos)?;
    if let Some(qos) = publication.published_qos {
        write!(text, " instead of {qos}")?;
    }
    let retain = if publication.retain { ", retained" } else { "" };
    write!(text, "{retain}, urgency {urgency}")?;
    match publication.expiry_s {
        Some(expiry_s) => writeln!(text, ", of use for {}", seconds(expiry_s))?,
        None => writeln!(text)?,
    }
    came_by(&publication.hops, text)?;
    if let Some(ended) = &publication.ended {
        writeln!(text, "  went to nobody: {}", reason(ended))?;
    }
    let widest = |receiver: &Receiver| printable(&receiver.client).chars().count();
    let widest = publication.receivers.iter().map(widest).max().unwrap_or(0).min(40);
    publication.receivers.iter().try_for_each(|one| explain_receiver(one, widest, text))?;
    if publication.unlisted > 0 {
        writeln!(text, "  and {} other receivers", publication.unlisted)?;
    }
    if publication.passed_over > 0 {
        writeln!(text, "  and not for {} other subscribers", publication.passed_over)?;
    }
    writeln!(text)
}

/// The nodes before this one.
fn came_by(hops: &[String], text: &mut String) -> std::fmt::Result {
    let Some((first, others)) = hops.split_first() else { return Ok(()) };
    let number =
        first.rsplit_once('.').and_then(|(_, number)| u64::from_str_radix(number, 16).ok());
    let node = first.split(':').next().unwrap_or(first);
    write!(text, "  came in at node {}", printable(node))?;
    if let Some(number) = number {
        write!(text, " as publication {number} ({})", printable(first))?;
    }
    if !others.is_empty() {
        write!(text, ", then passed {}", printable(&others.join(", ")))?;
    }
    writeln!(text)
}

fn explain_receiver(receiver: &Receiver, widest: usize, text: &mut String) -> std::fmt::Result {
    let (client, progress) = (printable(&receiver.client), receiver.progress.name());
    write!(text, "    {client:<widest$}  {progress:<12} {:>9}", seconds(receiver.after_s))?;
    write!(text, "  QoS {}", receiver.qos)?;
    if receiver.retain {
        write!(text, ", retained")?;
    }
    if receiver.times > 1 {
        write!(text, ", sent {} times", receiver.times)?;
    }
    let is_dropped = receiver.progress == Progress::Dropped;
    if let Some(ended) = receiver.ended.as_ref().filter(|_| is_dropped) {
        write!(text, ": {}", reason(ended))?;
    }
    writeln!(text)?;
    match &receiver.sent {
        Some(sent) => explain_form(sent, widest, text),
        None => Ok(()),
    }
}

fn explain_form(sent: &Sent, widest: usize, text: &mut String) -> std::fmt::Result {
    let indent = widest + 6;
    write!(text, "{:indent$}{}, ", "", printable(&sent.protocol))?;
    match sent.message_bytes {
        Some(bytes) => write!(text, "{bytes} bytes, of which the payload has ")?,
        None => write!(text, "payload of ")?,
    }
    write!(text, "{} bytes", sent.payload_bytes)?;
    if let Some(form) = &sent.form {
        write!(text, " as {}", printable(form))?;
    }
    if let Some(kind) = &sent.content_type {
        write!(text, ", {}", printable(kind))?;
    }
    if let Some(to) = &sent.to {
        write!(text, ", to {}", printable(to))?;
    }
    writeln!(text)?;
    if let Some(why) = &sent.unchanged {
        writeln!(text, "{:indent$}as it came: {}", "", printable(why))?;
    }
    if !sent.hops.is_empty() {
        writeln!(text, "{:indent$}has passed {}", "", printable(&sent.hops.join(", ")))?;
    }
    Ok(())
}

/// The reason, and what there is to say of it.
fn reason(ended: &Ended) -> String {
    match &ended.detail {
        Some(detail) => format!("{} ({})", printable(&ended.why), printable(detail)),
        None => printable(&ended.why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publication_is_reported_with_all_that_is_known_of_it() {
        let ended =
            Ended { why: "queue-full".to_owned(), detail: Some("max_queued = 2".to_owned()) };
        let sent = Sent {
            protocol: "MQTT 5".to_owned(),
            to: Some("nato/7".to_owned()),
            payload_bytes: 34,
            message_bytes: Some(60),
            content_type: Some("application/cbor".to_owned()),
            form: Some("cbor".to_owned()),
            unchanged: None,
            hops: vec!["a:10.ff".to_owned(), "b".to_owned()],
        };
        let publication = Publication {
            id: 7,
            topic: "unit/7".to_owned(),
            protocol: "mqtt".to_owned(),
            bytes: 48,
            hops: vec!["a:10.ff".to_owned()],
            receivers: vec![
                Receiver {
                    client: "bridge:hq".to_owned(),
                    progress: Progress::Acknowledged,
                    qos: 1,
                    after_s: 0.25,
                    times: 2,
                    sent: Some(sent),
                    ..Receiver::default()
                },
                Receiver {
                    client: "mqtt:slow\u{7}".to_owned(),
                    progress: Progress::Dropped,
                    ended: Some(ended),
                    ..Receiver::default()
                },
            ],
            unlisted: 3,
            ..Publication::default()
        };
        let mut text = String::new();
        explain(&publication, &mut text).unwrap();
        for line in [
            "publication 7 of mqtt, 1970-01-01 00:00:00 UTC",
            "  topic unit/7",
            "  48 bytes, no content type, QoS 0, urgency 0",
            "  came in at node a as publication 255 (a:10.ff)",
            "    bridge:hq   acknowledged    250 ms  QoS 1, sent 2 times",
            "MQTT 5, 60 bytes, of which the payload has 34 bytes as cbor, application/cbor, \
             to nato/7",
            "has passed a:10.ff, b",
            "    mqtt:slow?  dropped        0.00 us  QoS 0: queue-full (max_queued = 2)",
            "  and 3 other receivers",
        ] {
            let is_there = text.lines().any(|facts| facts == line || facts.trim_start() == line);
            assert!(is_there, "no '{line}' in:\n{text}");
        }
    }
}
