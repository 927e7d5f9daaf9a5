//! What takes its time for a request: programs, with what they print, and calls that wait.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use http::StatusCode;
use serde_json::Value;
use tokio::process::Command;

use crate::problem::{Problem, Result};

/// Bad use, as all commands of longwire say it.
const BAD_USE: i32 = 2;
/// Longest line of a child that is passed on.
const MAX_LINE_CHARS: usize = 1000;

/// This program with other arguments, which ends with whoever awaits it.
pub(crate) fn command<S: AsRef<OsStr>>(program: &Path, arguments: &[S]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true);
    command
}

/// Runs a command to its end and reads the JSON that it prints; a command that prints none was
/// refused, and says why in its last line.
pub(crate) async fn facts(mut command: Command, patience: Duration) -> Result<Value> {
    let output = tokio::time::timeout(patience, command.output()).await;
    let output = output
        .map_err(|_| {
            let time = patience.as_secs();
            Problem::new(StatusCode::GATEWAY_TIMEOUT, format!("it was not done after {time} s"))
        })?
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    if let Ok(facts) = serde_json::from_slice(&output.stdout) {
        return Ok(facts);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    let line: String = last.trim_start_matches("longwire: ").chars().take(MAX_LINE_CHARS).collect();
    Err(match output.status.code() {
        Some(BAD_USE) => Problem::refused(line),
        _ => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, line),
    })
}

/// Runs what waits for a file or a socket beside the tasks.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> lab::Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(Problem::from),
        Err(error) => Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
    }
}
