//! What the command line says to people, and the status by which it ends.

use std::io::{self, Write as _, stderr, stdout};

/// Exit status for bad use.
pub(crate) const BAD_USE: u8 = 2;

/// Says in one line on stderr why the process ends. Where nobody can be told, its status still says
/// it: a macro that panics would change that too.
pub(crate) fn tell(why: &str) {
    let _ = writeln!(stderr().lock(), "longwire: {why}");
}

/// Prints facts.
pub(crate) fn say(text: &str) -> io::Result<()> {
    put(text.as_bytes())
}

/// Prints bytes as they are. Who has closed stdout has seen what they wanted, as `head` has: that
/// is no fault.
pub(crate) fn put(bytes: &[u8]) -> io::Result<()> {
    offer(bytes).map(drop)
}

/// Prints bytes as they are; false where stdout is closed, and nobody sees these or others.
pub(crate) fn offer(bytes: &[u8]) -> io::Result<bool> {
    let mut out = stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// This command, as a person would type it again.
pub(crate) fn command_line() -> String {
    let quoted = |argument: String| match argument.contains(char::is_whitespace) {
        true => format!("'{argument}'"),
        false => argument,
    };
    let arguments = std::env::args().skip(1).map(quoted);
    std::iter::once("longwire".to_string()).chain(arguments).collect::<Vec<_>>().join(" ")
}
