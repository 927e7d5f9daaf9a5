//! Files of delivery traces.

use std::fs::File;
use std::io::Read;

/// Reads a trace's text, bounded, for [`link::LinkConfig::set_reading`].
///
/// # Errors
/// Why the file cannot be read.
pub fn read_trace(path: &str) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    // One byte more than is allowed, so that the parser sees that it is too long.
    file.take(link::MAX_TRACE_BYTES as u64 + 1)
        .read_to_string(&mut text)
        .map_err(|error| error.to_string())?;
    Ok(text)
}

/// A `trace=FILE` assignment with the file's absolute path, for a process in another directory or
/// a file that outlives this one; any other assignment as it is.
#[must_use]
pub fn with_absolute_path(assignment: &str) -> String {
    let Some((key, value)) = assignment.split_once('=') else { return assignment.to_string() };
    let (name, value) = (key.trim(), value.trim());
    let is_trace = matches!(name, "trace" | "ab.trace" | "ba.trace") && value != "none";
    match std::path::absolute(value) {
        Ok(path) if is_trace => format!("{name}={}", path.display()),
        _ => assignment.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_traces_become_absolute() {
        for same in ["loss=1 %", "trace=none", "rate", "ab.trace = /x/y"] {
            assert_eq!(with_absolute_path(same).replace(' ', ""), same.replace(' ', ""));
        }
        let here = std::env::current_dir().unwrap().join("up.trace");
        let absolute = with_absolute_path("ba.trace=up.trace");
        assert_eq!(absolute, format!("ba.trace={}", here.display()));
    }

    #[test]
    fn a_file_that_is_not_there_is_named_as_such() {
        assert!(read_trace("/no/such/trace").unwrap_err().contains("No such file"));
    }
}
