//! What other processes ask of a lab that is up.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use link::{Direction, LinkConfig};
use serde_json::{Value, json};

use super::directory::Directory;
use super::protocol::{receive, send, text};
use super::trace::{read_trace, with_absolute_path};
use crate::error::{Doing, Error, Result};
use crate::lab::check_name;
use crate::namespace::{Entrance, LAB_ID, Reach};

/// How long a lab that has begun to come up may take: removing what killed ones left is part of it.
const COMING_UP_PATIENCE: Duration = Duration::from_secs(30);
/// How long a lab may take to begin, whose `lab up` a shell has just put in the background.
const BEGINNING_PATIENCE: Duration = Duration::from_secs(3);
/// How long a program may take until it listens.
const LISTENING_PATIENCE: Duration = Duration::from_secs(30);
/// How often a condition is looked at.
const QUESTION_INTERVAL: Duration = Duration::from_millis(50);
/// A lab answers at once; ending one takes a few seconds when its processes do not end willingly.
const PATIENCE: Duration = Duration::from_secs(20);

/// The labs of this user.
#[derive(Debug)]
pub struct Listing {
    /// Those that are up, as [`Session::status`](super::Session::status) describes them.
    pub up: Vec<Value>,
    /// Those that were killed; the next `up` removes what they left.
    pub killed: Vec<String>,
}

/// The labs of this user; one that is just coming up or going down is left out.
///
/// # Errors
/// When the directory of labs cannot be read.
pub fn list() -> Result<Listing> {
    let directory = Directory::open()?;
    let mut listing = Listing { up: Vec::new(), killed: Vec::new() };
    for name in directory.names()? {
        let status = UnixStream::connect(directory.socket(&name))
            .doing(|| format!("reach lab '{name}'"))
            .and_then(|stream| ask(&stream, &json!({"do": "status"})));
        match status {
            Ok(status) => listing.up.push(status),
            Err(error) => {
                let _guard = directory.guard()?;
                if directory.is_abandoned(&name) {
                    listing.killed.push(name);
                } else {
                    tracing::debug!(name, %error, "a lab does not answer");
                }
            }
        }
    }
    Ok(listing)
}

/// Changes the link of a lab by `key=value` texts, all of them or none; returns the settings then
/// in force.
///
/// # Errors
/// [`Error::Caller`] when no such lab is up or it refuses a setting.
pub fn set(lab: &str, assignments: &[String]) -> Result<Value> {
    let settings: Vec<_> = assignments.iter().map(|one| with_absolute_path(one)).collect();
    let answer = ask(&connect(lab)?, &json!({"do": "set", "settings": settings}))?;
    Ok(answer["settings"].clone())
}

/// A lab as [`list`] describes those that are up.
///
/// # Errors
/// [`Error::Caller`] when no such lab is up.
pub fn status(lab: &str) -> Result<Value> {
    ask(&connect(lab)?, &json!({"do": "status"}))
}

/// What the link of a lab is like now.
///
/// # Errors
/// [`Error::Caller`] when no such lab is up, [`Error::Peer`] when its settings are not understood.
pub fn config(lab: &str) -> Result<LinkConfig> {
    let status = status(lab)?;
    let mut config = LinkConfig::default();
    for side in Direction::BOTH.map(Direction::name) {
        for key in link::keys() {
            // A lab begun by an older program lacks what it could not have set.
            let Some(value) = status[side][key.name].as_str() else { continue };
            config
                .set_reading(&format!("{side}.{}", key.name), value, read_trace)
                .map_err(|error| Error::Peer(format!("lab '{lab}' says: {error}")))?;
        }
    }
    Ok(config)
}

/// Ends a lab and waits until it is gone; one that was killed is cleaned up. Returns how many
/// processes were still running in it.
///
/// # Errors
/// [`Error::Caller`] when no such lab is up.
pub fn down(lab: &str) -> Result<u64> {
    check_name(lab)?;
    let directory = Directory::open()?;
    let Ok(stream) = UnixStream::connect(directory.socket(lab)) else {
        let _guard = directory.guard()?;
        let is_known = directory.names()?.iter().any(|name| name == lab);
        let Some(lock) = is_known.then(|| directory.lock(lab)).transpose()?.flatten() else {
            return Err(unknown(&directory, lab)?);
        };
        return Ok(directory.remove(lock)? as u64);
    };
    let answer = ask(&stream, &json!({"do": "down"}))?;
    Ok(answer["ended_processes"].as_u64().unwrap_or(0))
}

/// Moves the calling process, which must have but one thread, to a host of a lab; one that is just
/// coming up is waited for. There the names `a` and `b` resolve. Returns a program to be executed
/// there, which the end of the lab will end.
///
/// # Errors
/// [`Error::Caller`] when there is no such lab or host.
pub fn enter(lab: &str, host: &str, program: &OsStr) -> Result<Command> {
    let answer = ask(&await_lab(lab)?, &json!({"do": "enter", "host": host}))?;
    let doing = || format!("enter host {host} of lab '{lab}'");
    let open = |path: &str| File::open(path).doing(doing);
    let user = answer["user"].as_str().map(open).transpose()?;
    let network = open(text(&answer, "network")?)?;
    let address = |name| -> Result<Reach> {
        text(&answer, name)?.parse().map_err(|error| Error::Peer(format!("the lab says: {error}")))
    };
    let (a, b) = (address("a")?, address("b")?);
    Entrance::new(user.map(Into::into), network.into(), a, b).enter().doing(doing)?;
    let mut command = Command::new(program);
    command.env(LAB_ID, text(&answer, "id")?);
    Ok(command)
}

/// Waits until a program listens for TCP connections on a port of a lab's host. Nothing is sent
/// over the link for it.
///
/// # Errors
/// [`Error::Caller`] when there is no such lab or host, [`Error::Peer`] when none does in time.
pub fn await_listener(lab: &str, host: &str, port: u16) -> Result<()> {
    let deadline = Instant::now() + LISTENING_PATIENCE;
    let question = json!({"do": "listens", "host": host, "port": port});
    drop(await_lab(lab)?);
    while ask(&connect(lab)?, &question)?["listens"] != true {
        if Instant::now() >= deadline {
            return Err(Error::Peer(format!(
                "nothing listens on {host}:{port} after {} s: see what the program there printed",
                LISTENING_PATIENCE.as_secs()
            )));
        }
        thread::sleep(QUESTION_INTERVAL);
    }
    Ok(())
}

/// Reaches a lab, which may be just coming up.
fn await_lab(lab: &str) -> Result<UnixStream> {
    check_name(lab)?;
    let directory = Directory::open()?;
    let begun = Instant::now();
    loop {
        if let Ok(stream) = UnixStream::connect(directory.socket(lab)) {
            return Ok(stream);
        }
        let patience = match directory.is_held(lab)? {
            true => COMING_UP_PATIENCE,
            false => BEGINNING_PATIENCE,
        };
        if begun.elapsed() >= patience {
            return Err(unknown(&directory, lab)?);
        }
        thread::sleep(QUESTION_INTERVAL);
    }
}

fn connect(lab: &str) -> Result<UnixStream> {
    check_name(lab)?;
    let directory = Directory::open()?;
    match UnixStream::connect(directory.socket(lab)) {
        Ok(stream) => Ok(stream),
        Err(_) => Err(unknown(&directory, lab)?),
    }
}

/// What to say of a lab that does not answer.
fn unknown(directory: &Directory, lab: &str) -> Result<Error> {
    let mut names = directory.names()?;
    names.retain(|name| UnixStream::connect(directory.socket(name)).is_ok());
    let others = match names.as_slice() {
        [] => "none is".to_string(),
        names => format!("up are {}", names.join(", ")),
    };
    Ok(Error::Caller(format!(
        "no lab '{lab}' is up ({others}); bring it up with: longwire lab up {lab} --link PRESET"
    )))
}

fn ask(stream: &UnixStream, request: &Value) -> Result<Value> {
    send(stream, request, PATIENCE)?;
    let answer = receive(stream, PATIENCE)?
        .ok_or_else(|| Error::Peer("the lab ended without an answer".to_string()))?;
    match answer["error"].as_str() {
        Some(message) if answer["bad_use"] == true => Err(Error::Caller(message.to_string())),
        Some(message) => Err(Error::Peer(message.to_string())),
        None => Ok(answer),
    }
}
