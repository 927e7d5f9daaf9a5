//! Campaigns under way. Each is a process of its own, which writes how far it is into its
//! directory, so that it goes on when this interface ends, and is found again.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use http::StatusCode;
use lab::campaign::{Choice, MAX_PARALLEL, Plan, has_results};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::children::blocking;
use crate::hub::{RUN, unix_s};
use crate::links::text;
use crate::problem::{Problem, Result};
use crate::results::{check_name, folder as folder_of, names_in};
use crate::shared::Shared;

/// What was started, in the directory of its results.
const STARTED: &str = "run.json";
/// What the campaign says of itself.
const PROGRESS: &str = "progress.json";
/// What it prints.
const LOG: &str = "run.log";
/// Most plans and runs of a list.
const MAX_LISTED: usize = 500;
/// Longest file of ours that is read, and how much of a log's end.
const MAX_FILE_BYTES: u64 = 64 << 10;
const MAX_TAIL_LINES: usize = 30;
/// How often a run that somebody follows is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The plans that can be run, each with its size, quick and whole.
pub(crate) async fn plans(shared: &Shared) -> Result<Value> {
    let folder = shared.plans_folder().to_path_buf();
    blocking(move || {
        let names = names_in(&folder, MAX_LISTED).into_iter();
        let names = names.filter(|name| name.ends_with(".toml"));
        Ok(names.filter_map(|name| plan(&folder, &name)).collect())
    })
    .await
}

/// Starts a campaign.
pub(crate) async fn start(shared: &Shared, asked: &Value) -> Result<Value> {
    let plan = text(asked, "plan")?;
    check_name(plan)?;
    let file = std::path::absolute(shared.plans_folder().join(plan))
        .map_err(|error| Problem::refused(error.to_string()))?;
    let quick = asked["quick"] == true;
    let stem = plan.trim_end_matches(".toml");
    let usual = if quick { format!("{stem}-quick") } else { stem.to_string() };
    let name = asked["name"].as_str().filter(|name| !name.is_empty()).unwrap_or(&usual);
    let folder = folder_of(shared, name)?;
    let choice = Choice {
        quick,
        cells: cells(asked)?,
        seed: number(asked, "seed", u64::MAX)?,
        repetitions: number(asked, "repetitions", 1_000)?
            .and_then(|count| u32::try_from(count).ok()),
    };
    let parallel = number(asked, "parallel", MAX_PARALLEL as u64)?;
    let mut arguments = vec![file.to_string_lossy().into_owned()];
    arguments.extend(quick.then(|| "--quick".to_string()));
    arguments.extend(choice.cells.iter().map(|cell| format!("--cells={cell}")));
    let numbers = [
        ("seed", choice.seed),
        ("repetitions", choice.repetitions.map(u64::from)),
        ("parallel", parallel),
    ];
    let given = numbers.into_iter().filter_map(|(key, value)| Some((key, value?)));
    arguments.extend(given.map(|(key, value)| format!("--{key}={value}")));
    // What is wrong with the plan is said before anything is started.
    blocking(move || Plan::read(&file, &choice).map(drop)).await?;
    let name = name.to_string();
    let mut asked = asked.clone();
    asked["name"] = name.as_str().into();
    begin(shared, &folder, &asked, arguments)?;
    Ok(json!({"messages": [format!("'{name}' is started")], "name": name}))
}

/// Goes on with a campaign that was stopped, as it was asked for: what its directory says is read
/// as a request is, for it may be somebody else's.
pub(crate) async fn resume(shared: &Shared, name: &str) -> Result<Value> {
    let folder = folder_of(shared, name)?;
    let mut started = started(&folder, name)?;
    let mut asked = started["asked"].take();
    asked["name"] = name.into();
    start(shared, &asked).await?;
    Ok(json!({"messages": [format!("'{name}' goes on")], "name": name}))
}

/// Asks a campaign to stop; what is finished is kept.
pub(crate) fn stop(shared: &Shared, name: &str) -> Result<Value> {
    let folder = folder_of(shared, name)?;
    let started = started(&folder, name)?;
    let pid = pid(&started).filter(|_| is_under_way(&folder, &started));
    let pid = pid
        .ok_or_else(|| Problem::new(StatusCode::CONFLICT, format!("'{name}' is not under way")))?;
    kill(Pid::from_raw(pid), Signal::SIGINT).map_err(|error| {
        let detail = format!("'{name}' cannot be stopped: {error}");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    })?;
    Ok(json!({"messages": [format!("'{name}' is being stopped; what is done is kept")]}))
}

/// All campaigns that were started here, the last first.
pub(crate) async fn all(shared: &Shared) -> Result<Value> {
    let folder = shared.results().to_path_buf();
    blocking(move || {
        let names = names_in(&folder, MAX_LISTED).into_iter();
        let mut all: Vec<Value> =
            names.filter_map(|name| standing(&folder.join(&name), &name, false)).collect();
        all.sort_by(|one, other| {
            let at = |of: &Value| of["started_unix_s"].as_f64().unwrap_or(0.0);
            at(other).total_cmp(&at(one))
        });
        Ok(Value::Array(all))
    })
    .await
}

/// One of them, with the end of what it printed.
pub(crate) async fn facts(shared: &Shared, name: &str) -> Result<Value> {
    let folder = folder_of(shared, name)?;
    let known = name.to_string();
    let found = blocking(move || Ok(standing(&folder, &known, true))).await?;
    found.ok_or_else(|| unknown(name))
}

/// Looks at a run while somebody follows it.
pub(crate) fn look_at(shared: &Shared, topic: &str) {
    let (hub, topic) = (shared.hub.clone(), topic.to_string());
    let folder = shared.results().to_path_buf();
    tokio::spawn(async move {
        let name = topic.trim_start_matches("run:").to_string();
        let mut before = Value::Null;
        let mut ticks = tokio::time::interval(LOOK_INTERVAL);
        while hub.is_followed(&topic) {
            ticks.tick().await;
            let (folder, known) = (folder.clone(), name.clone());
            let look = move || {
                let found = check_name(&known).is_ok();
                Ok(found.then(|| standing(&folder.join(&known), &known, true)).flatten())
            };
            let now = blocking(look).await.ok().flatten().unwrap_or(Value::Null);
            if now != before && !now.is_null() {
                hub.push(&topic, RUN, &now);
            }
            before = now;
        }
    });
}

/// Starts the process of a campaign that was asked for, unless it is there, or what is in its
/// directory is of another.
fn begin(shared: &Shared, folder: &Path, asked: &Value, arguments: Vec<String>) -> Result<()> {
    let name = asked["name"].as_str().unwrap_or_default();
    let before = read(folder, STARTED);
    let conflict = |what: &str| Problem::new(StatusCode::CONFLICT, format!("'{name}' {what}"));
    if before.as_ref().is_some_and(|before| is_under_way(folder, before)) {
        return Err(conflict("is under way already: stop it, or give another name"));
    }
    let is_other = before.is_some_and(|before| before["arguments"] != json!(arguments));
    if is_other && has_results(folder).is_some() {
        return Err(conflict("has results of another plan or other settings: give another name"));
    }
    let failed = |error: std::io::Error| {
        let detail = format!("'{name}' cannot be started: {error}");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    };
    let folder = std::path::absolute(folder).map_err(failed)?;
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let log = File::create(folder.join(LOG)).map_err(failed)?;
    // How an earlier start ended is not how this one does.
    let _ = std::fs::remove_file(folder.join(PROGRESS));
    let mut command = Command::new(shared.program());
    command.args(["lab", "run"]).args(&arguments);
    command.arg("--out").arg(&folder).arg("--progress").arg(folder.join(PROGRESS));
    command.stdin(Stdio::null()).stdout(log.try_clone().map_err(failed)?).stderr(log);
    // Not of our group: Ctrl-C ends the interface, and not what it has started.
    command.process_group(0).kill_on_drop(false);
    let mut child = command.spawn().map_err(failed)?;
    let facts = json!({
        "plan": asked["plan"],
        "asked": asked,
        "arguments": arguments,
        "pid": child.id(),
        "started_unix_s": unix_s(),
    });
    let written = write(&folder, STARTED, &facts).map_err(failed);
    if written.is_err() {
        // Nobody would find it again.
        let _ = child.start_kill();
    }
    tokio::spawn(async move { child.wait().await.map(drop) });
    written
}

/// A plan in a line; none for files that are something else.
fn plan(folder: &Path, name: &str) -> Option<Value> {
    let size = |quick: bool| {
        let choice = Choice { quick, ..Choice::default() };
        let plan = Plan::read(&folder.join(name), &choice).ok()?;
        let expected_s = plan.expected_here(MAX_PARALLEL).total_s();
        let (cells, runs) = (plan.list().len(), plan.runs());
        Some((
            plan.title().to_string(),
            json!({"cells": cells, "runs": runs, "expected_s": expected_s}),
        ))
    };
    let (title, whole) = size(false)?;
    let quick = size(true).map(|(_, quick)| quick);
    Some(json!({"name": name, "title": title, "whole": whole, "quick": quick}))
}

/// How a campaign stands; none where none was started here.
fn standing(folder: &Path, name: &str, with_log: bool) -> Option<Value> {
    let started = read(folder, STARTED)?;
    let is_going = is_under_way(folder, &started);
    let progress = read(folder, PROGRESS).unwrap_or(Value::Null);
    let said = progress["state"].as_str();
    let state = match (is_going, said) {
        (true, Some("running")) => "running",
        // It prepares, or makes its report.
        (true, None) => "starting",
        (true, Some(_)) => "finishing",
        (false, Some("complete")) => "complete",
        (false, Some("interrupted")) => "stopped",
        // It was killed, or refused to begin: its log says why.
        (false, _) => "ended",
    };
    let mut facts = json!({
        "name": name,
        "state": state,
        "plan": started["plan"],
        "arguments": started["arguments"],
        "started_unix_s": started["started_unix_s"],
        "has_results": has_results(folder).is_some(),
        "progress": progress,
    });
    if with_log {
        facts["log"] = tail(&folder.join(LOG)).into();
    }
    Some(facts)
}

/// Whether the process that was started is still there, and not another with its number.
fn is_under_way(folder: &Path, started: &Value) -> bool {
    let Some(pid) = pid(started) else { return false };
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let folder = std::path::absolute(folder).unwrap_or_default();
    let wanted = folder.join(PROGRESS);
    line.split(|byte| *byte == 0).any(|one| one == wanted.as_os_str().as_encoded_bytes())
}

fn pid(started: &Value) -> Option<i32> {
    started["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 1)
}

fn started(folder: &Path, name: &str) -> Result<Value> {
    read(folder, STARTED).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Problem {
    Problem::missing(format!("no run '{name}' was started here: see /runs"))
}

/// A file of ours; none where it is not there or is no JSON.
fn read(folder: &Path, file: &str) -> Option<Value> {
    let path = folder.join(file);
    if path.metadata().ok()?.len() > MAX_FILE_BYTES {
        return None;
    }
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

fn write(folder: &Path, file: &str, facts: &Value) -> std::io::Result<()> {
    let aside = folder.join(format!("{file}.aside"));
    std::fs::write(&aside, facts.to_string())?;
    std::fs::rename(&aside, folder.join(file))
}

/// The last lines of a log.
fn tail(path: &Path) -> String {
    use std::io::{Read, Seek, SeekFrom};
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(MAX_FILE_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(MAX_TAIL_LINES)..].join("\n")
}

/// Patterns of cells that were asked for.
fn cells(asked: &Value) -> Result<Vec<String>> {
    /// Most patterns.
    const MAX_PATTERNS: usize = 100;
    let all = match &asked["cells"] {
        Value::Null => return Ok(Vec::new()),
        Value::Array(all) if all.len() <= MAX_PATTERNS => all,
        _ => return Err(Problem::refused(format!("cells: give at most {MAX_PATTERNS} patterns"))),
    };
    let texts: Option<Vec<String>> =
        all.iter().map(|one| one.as_str().map(str::to_string)).collect();
    texts.ok_or_else(|| Problem::refused("cells: give patterns as texts, like los/*"))
}

/// A number that may be left out.
fn number(asked: &Value, key: &str, most: u64) -> Result<Option<u64>> {
    match &asked[key] {
        Value::Null => Ok(None),
        value => value.as_u64().filter(|number| *number <= most).map(Some).ok_or_else(|| {
            Problem::refused(format!("'{key}' is refused: give a whole number up to {most}"))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_process_that_was_started_is_taken_for_it() {
        let folder = std::env::temp_dir().join(format!("lw-desk-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let own = json!({"pid": std::process::id(), "plan": "x.toml"});
        assert!(!is_under_way(&folder, &own), "another program has its number");
        assert!(!is_under_way(&folder, &json!({"pid": 1})));
        assert_eq!(standing(&folder, "x", true), None);
        write(&folder, STARTED, &own).unwrap();
        assert_eq!(standing(&folder, "x", true).unwrap()["state"], "ended");
        write(&folder, PROGRESS, &json!({"state": "interrupted"})).unwrap();
        std::fs::write(folder.join(LOG), "one\ntwo\n").unwrap();
        let now = standing(&folder, "x", true).unwrap();
        assert_eq!(
            (now["state"].as_str(), now["log"].as_str()),
            (Some("stopped"), Some("one\ntwo"))
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
