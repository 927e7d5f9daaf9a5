//! Labs: brought up, changed, measured and ended.

use std::time::{Duration, Instant};

use lab::session;
use link::{Direction, LinkConfig};
use serde_json::{Map, Value, json};

use crate::children::{self, blocking};
use crate::hub::{Hub, LOOK_INTERVAL, unix_s};
use crate::problem::{Problem, Result};
use crate::shared::Shared;

/// How long a lab may take to come up: removing what killed ones left is part of it.
const UP_PATIENCE: Duration = Duration::from_secs(60);
/// How long echoes and files may take: a person waits for them.
const PROBE_PATIENCE: Duration = Duration::from_secs(120);
/// Most echoes and files of one request.
const MAX_ECHOES: u64 = 100;
const MAX_FILES: u64 = 22;
/// A lab that does not answer is asked again so much later.
const GONE_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) async fn up(shared: &Shared, asked: &Value) -> Result<Value> {
    let name = text(asked, "name")?;
    let link = text(asked, "link")?;
    let seed = asked.get("seed").map_or(Some(1), Value::as_u64);
    let seed = seed.ok_or_else(|| Problem::refused("seed is refused: give a whole number"))?;
    let device = asked.get("device").map_or(Some("auto"), Value::as_str).unwrap_or_default();
    let arguments = [
        "lab".to_string(),
        "up".to_string(),
        "--detach".to_string(),
        "--json".to_string(),
        format!("--link={link}"),
        format!("--seed={seed}"),
        format!("--device={device}"),
        "--".to_string(),
        name.to_string(),
    ];
    let mut status = children::facts(shared.command(&arguments), UP_PATIENCE).await?;
    status["messages"] = json!([format!("lab {name} is up")]);
    Ok(status)
}

pub(crate) async fn down(name: String) -> Result<Value> {
    let shown = name.clone();
    let ended = blocking(move || session::down(&name)).await?;
    Ok(json!({"messages": [format!("lab {shown} is down")], "ended_processes": ended}))
}

/// Changes a link by settings, or to a named one, and says of each what is in force then.
pub(crate) async fn set(shared: &Shared, name: String, asked: &Value) -> Result<Value> {
    let assignments = match asked.get("set") {
        Some(set) => {
            let set = set.as_str().unwrap_or_default().to_string();
            blocking(move || lab::sets::load(&set)).await?.settings()
        }
        None => settings(asked)?,
    };
    let lab = name.clone();
    let (before, now) = blocking(move || {
        let before = session::config(&lab)?;
        // A rate takes the place of a trace and the reverse: what is not there comes first.
        let mut texts: Vec<String> =
            assignments.iter().map(|(key, value)| format!("{key}={value}")).collect();
        texts.sort_by_key(|text| !text.ends_with("=none"));
        session::set(&lab, &texts)?;
        Ok((before, session::config(&lab)?))
    })
    .await?;
    let sides = |config: &LinkConfig| Direction::BOTH.map(|side| in_force(config, side));
    let messages = differences(&sides(&before), &sides(&now));
    let topic = format!("link:{name}");
    // Who looks at it tells of it otherwise, as of what others change.
    if !messages.is_empty() && !shared.hub.has_followers(&topic) {
        announced(&shared.hub, &topic, &messages);
    }
    let messages = if messages.is_empty() {
        vec!["nothing was changed: it is so already".to_string()]
    } else {
        messages
    };
    let [ab, ba] = Direction::BOTH.map(|direction| in_force(&now, direction));
    Ok(json!({"messages": messages, "ab": ab, "ba": ba}))
}

pub(crate) async fn probe(shared: &Shared, name: String, asked: &Value) -> Result<Value> {
    let count = bounded(asked, "count", 5, MAX_ECHOES)?;
    let from = asked.get("from").map_or(Some("a"), Value::as_str);
    let from = from.filter(|host| ["a", "b"].contains(host));
    let from = from.ok_or_else(|| Problem::refused("from is refused: give a or b"))?;
    let arguments = [
        "lab",
        "ping",
        "--json",
        &format!("--from={from}"),
        &format!("--count={count}"),
        "--interval=200 ms",
        "--",
        &name,
    ];
    children::facts(shared.command(&arguments), PROBE_PATIENCE).await
}

/// A server on host b and a client on host a, both for this once.
pub(crate) async fn transfer(shared: &Shared, name: String, asked: &Value) -> Result<Value> {
    let files = bounded(asked, "files", 3, MAX_FILES)?;
    let known = name.clone();
    blocking(move || session::status(&known)).await?;
    let port = shared.random_port();
    let program = shared.program().to_string_lossy().into_owned();
    let place = format!("0.0.0.0:{port}");
    let serve = ["lab", "exec", &name, "b", "--", &program, "serve", "tracks", "--listen", &place];
    let server = shared.command(&serve).spawn();
    let _server = server.map_err(|error| Problem::refused(error.to_string()))?;
    let fetch = [
        "lab",
        "exec",
        &format!("--await=b:{port}"),
        &name,
        "a",
        "--",
        &program,
        "fetch",
        "tracks",
        "--api=rest-json",
        "--cold",
        "--json",
        &format!("--url=http://b:{port}"),
        &format!("--tracks=1-{files}"),
    ];
    let facts = children::facts(shared.command(&fetch), PROBE_PATIENCE).await?;
    let measured = facts["measured"].as_array().cloned().unwrap_or_default();
    let times: Vec<&Value> = measured.iter().map(|one| &one["elapsed_s"]).collect();
    Ok(json!({
        "mean_s": facts["summary"]["mean_s"],
        "failed": facts["errors"],
        "times_s": times,
    }))
}

/// Looks at a lab while somebody follows it.
pub(crate) fn look_at(shared: &Shared, topic: &str) {
    let (hub, topic) = (shared.hub.clone(), topic.to_string());
    tokio::spawn(async move {
        let name = topic.trim_start_matches("link:").to_string();
        let mut before: Option<(Instant, Value)> = None;
        let mut gone = String::new();
        let mut ticks = tokio::time::interval(LOOK_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while hub.is_followed(&topic) {
            ticks.tick().await;
            let lab = name.clone();
            match blocking(move || session::status(&lab)).await {
                Ok(status) => {
                    let now = Instant::now();
                    gone.clear();
                    let point = before.as_ref().and_then(|(at, earlier)| {
                        let seconds = now.duration_since(*at).as_secs_f64();
                        web::sample::sample(earlier, &status, seconds, unix_s())
                    });
                    if let Some(point) = point {
                        hub.push(&topic, "link", &point);
                    }
                    let changed = before
                        .as_ref()
                        .map(|(_, earlier)| differences(&said(earlier), &said(&status)));
                    if let Some(messages) = changed.filter(|messages| !messages.is_empty()) {
                        announced(&hub, &topic, &messages);
                    }
                    before = Some((now, status));
                }
                Err(problem) => {
                    // While it ends it may say something else than when it has ended.
                    if gone != problem.detail {
                        hub.push(&topic, "gone", &json!({"t": unix_s(), "detail": problem.detail}));
                    }
                    (gone, before) = (problem.detail, None);
                    tokio::time::sleep(GONE_INTERVAL).await;
                }
            }
        }
    });
}

/// All settings of one direction.
pub(crate) fn in_force(config: &LinkConfig, direction: Direction) -> Map<String, Value> {
    let all = config.direction(direction).settings().into_iter();
    all.map(|(key, value)| (key.to_string(), value.into())).collect()
}

/// What was asked to be set. Files are not named from here: whoever has the token would read them.
fn settings(asked: &Value) -> Result<Vec<(String, String)>> {
    let all = asked["settings"].as_object().filter(|all| !all.is_empty());
    let all = all.ok_or_else(|| {
        Problem::refused("settings are missing: give an object like {\"delay\": \"250 ms\"}")
    })?;
    let one = |(key, value): (&String, &Value)| {
        let value = value.as_str().ok_or_else(|| {
            Problem::refused(format!("'{key}' is refused: give its value as a text"))
        })?;
        if key.contains('=') {
            return Err(Problem::refused(format!("'{key}' is refused: no parameter has a '='")));
        }
        let name = key.trim().trim_start_matches("ab.").trim_start_matches("ba.");
        if name == "trace" && value.trim() != "none" {
            return Err(Problem::refused(format!(
                "{key} = '{value}' is refused: files are named on the command line only (longwire \
                 lab set NAME trace=FILE); here give none, or load a saved link"
            )));
        }
        Ok((key.clone(), value.to_string()))
    };
    all.iter().map(one).collect()
}

/// Tells who looks at a link that it was changed.
fn announced(hub: &Hub, topic: &str, messages: &[String]) {
    hub.push(topic, "changed", &json!({"t": unix_s(), "messages": messages}));
}

/// The settings of both directions that a lab says are in force.
fn said(status: &Value) -> [Map<String, Value>; 2] {
    Direction::BOTH.map(|side| web::sample::settings(status, side))
}

/// `'delay' set to '250 ms'` for each parameter of a → b and b → a that is not as it was.
fn differences(before: &[Map<String, Value>; 2], now: &[Map<String, Value>; 2]) -> Vec<String> {
    let ([ab_before, ba_before], [ab, ba]) = (before, now);
    let mut messages = Vec::new();
    for key in link::keys() {
        let name = key.name;
        let [is_ab, is_ba] =
            [ab.get(name) != ab_before.get(name), ba.get(name) != ba_before.get(name)];
        let mut say = |prefix: &str, of: &Map<String, Value>| {
            let value = of.get(name).and_then(Value::as_str).unwrap_or_default();
            messages.push(format!("'{prefix}{name}' set to '{value}'"));
        };
        match (is_ab, is_ba) {
            (true, true) if ab.get(name) == ba.get(name) => say("", ab),
            _ => {
                if is_ab {
                    say("ab.", ab);
                }
                if is_ba {
                    say("ba.", ba);
                }
            }
        }
    }
    messages
}

/// A text of what was sent.
pub(crate) fn text<'a>(asked: &'a Value, key: &str) -> Result<&'a str> {
    let found = asked[key].as_str().filter(|text| !text.is_empty());
    found.ok_or_else(|| Problem::refused(format!("'{key}' is missing: give it as a text")))
}

/// A number of what was sent, from 1 to a bound.
fn bounded(asked: &Value, key: &str, otherwise: u64, most: u64) -> Result<u64> {
    let found = asked.get(key).map_or(Some(otherwise), Value::as_u64);
    found.filter(|number| (1..=most).contains(number)).ok_or_else(|| {
        Problem::refused(format!("'{key}' is refused: give a whole number from 1 to {most}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_changed_is_said_once_where_both_directions_agree() {
        let sides = |config: &LinkConfig| Direction::BOTH.map(|side| in_force(config, side));
        let satcom = LinkConfig::preset("satcom").unwrap();
        let (before, mut now) = (sides(&satcom), satcom);
        assert!(differences(&before, &sides(&now)).is_empty());
        now.set("delay", "251 ms").unwrap();
        now.set("ba.rate", "64 kbit/s").unwrap();
        let expected = ["'ba.rate' set to '64 kbit/s'", "'delay' set to '251 ms'"];
        assert_eq!(differences(&before, &sides(&now)), expected);
        now.set("ab.delay", "1 ms").unwrap();
        let status = json!({"ab": sides(&now)[0], "ba": sides(&now)[1], "name": "x"});
        assert_eq!(said(&status), sides(&now), "a lab says the same");
        assert!(
            differences(&before, &sides(&now)).contains(&"'ab.delay' set to '1 ms'".to_string())
        );
    }

    #[test]
    fn files_are_not_named_over_the_network() {
        for key in ["trace", "ab.trace", " ba.trace"] {
            let problem = settings(&json!({"settings": {key: "/etc/passwd"}})).unwrap_err();
            assert!(problem.detail.contains("command line only"), "{}", problem.detail);
            assert!(settings(&json!({"settings": {key: "none"}})).is_ok());
        }
        for asked in [json!({}), json!({"settings": {}}), json!({"settings": {"delay": 3}})] {
            assert!(settings(&asked).is_err(), "{asked}");
        }
    }
}
