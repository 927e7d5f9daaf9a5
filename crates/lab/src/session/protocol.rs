//! The control socket's protocol: one request and one answer per connection, each a line of JSON.
//!
//! Requests: `{"do": "status"}`, `{"do": "enter", "host": "a"}`, `{"do": "set", "settings":
//! ["loss=1 %"]}`, `{"do": "down"}`. An answer with `error` is a refusal in one line.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::Value;

use crate::error::{Doing, Error, Result};

/// Longest request or answer.
pub(super) const MAX_LINE_BYTES: u64 = 1024 * 1024;

/// Reads one line of JSON; `None` when the other side closes without a word.
pub(super) fn receive(stream: &UnixStream, patience: Duration) -> Result<Option<Value>> {
    let doing = || "read from the lab's control socket".to_string();
    stream.set_read_timeout(Some(patience)).doing(doing)?;
    let mut line = Vec::new();
    BufReader::new(stream.take(MAX_LINE_BYTES)).read_until(b'\n', &mut line).doing(doing)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        return Err(Error::Peer(format!(
            "the control socket's line was cut or is longer than {MAX_LINE_BYTES} bytes"
        )));
    }
    serde_json::from_slice(&line)
        .map(Some)
        .map_err(|error| Error::Peer(format!("the control socket's line is no JSON: {error}")))
}

/// Writes one line of JSON.
pub(super) fn send(mut stream: &UnixStream, value: &Value, patience: Duration) -> Result<()> {
    let written = stream
        .set_write_timeout(Some(patience))
        .and_then(|()| stream.write_all(format!("{value}\n").as_bytes()));
    written.doing(|| "write to the lab's control socket".to_string())
}

/// A text in an answer.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key]
        .as_str()
        .ok_or_else(|| Error::Peer(format!("the lab's answer lacks '{key}': is it older?")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PATIENCE: Duration = Duration::from_millis(200);

    #[test]
    fn a_line_comes_through() {
        let (here, there) = UnixStream::pair().unwrap();
        let value = json!({"do": "set", "settings": ["loss=1 %"]});
        send(&here, &value, PATIENCE).unwrap();
        assert_eq!(receive(&there, PATIENCE).unwrap(), Some(value));
        drop(here);
        assert_eq!(receive(&there, PATIENCE).unwrap(), None);
    }

    #[test]
    fn cut_endless_and_wrong_lines_are_refused() {
        let refusal = |bytes: &[u8]| {
            let (mut here, there) = UnixStream::pair().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    // The other end may close before all is written.
                    let _ = here.write_all(bytes);
                });
                let error = receive(&there, PATIENCE).unwrap_err();
                drop(there);
                error.to_string()
            })
        };
        assert!(refusal(b"{\"do\"").contains("was cut"));
        assert!(refusal(b"hello\n").contains("no JSON"));
        assert!(refusal(&vec![b' '; 2 * 1024 * 1024]).contains("longer"));
    }

    #[test]
    fn who_says_nothing_is_not_waited_for_endlessly() {
        let (_here, there) = UnixStream::pair().unwrap();
        assert!(matches!(receive(&there, PATIENCE), Err(Error::System { .. })));
    }
}
