//! How TCP behaves on a host, set on its route over the link: no program has to take part.

use super::host::CONGESTION_CONTROL;
use crate::error::{Error, Result};

/// Longest name of a congestion control, the kernel's TCP_CA_NAME_MAX without the zero byte.
const MAX_NAME_BYTES: usize = 15;
/// Most segments of an initial window: 1.4 MB, beyond any that is in use.
const MAX_INITIAL_WINDOW: u32 = 1000;

/// How TCP connections of a host over the link behave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSettings {
    /// The kernel's name of the congestion control: `cubic`, `reno`, `bbr`.
    pub congestion_control: String,
    /// Segments sent before the first acknowledgement, 1 to 1000; none leaves the kernel's own, 10.
    pub initial_window: Option<u32>,
}

impl Default for TcpSettings {
    fn default() -> Self {
        Self { congestion_control: CONGESTION_CONTROL.to_string(), initial_window: None }
    }
}

impl TcpSettings {
    /// Whether the kernel could know this.
    ///
    /// # Errors
    /// [`Error::Caller`] for what is no name, and a window out of range.
    pub fn check(&self) -> Result<()> {
        let name = &self.congestion_control;
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(allowed) {
            let shown: String =
                name.chars().take(MAX_NAME_BYTES + 1).flat_map(char::escape_debug).collect();
            return Err(Error::Caller(format!(
                "'{shown}' is no congestion control: give a name of 1 to {MAX_NAME_BYTES} letters, \
                 digits, '-' or '_', as cubic"
            )));
        }
        match self.initial_window {
            Some(segments) if !(1..=MAX_INITIAL_WINDOW).contains(&segments) => Err(Error::Caller(
                format!("an initial window of {segments} segments: give 1 to {MAX_INITIAL_WINDOW}"),
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_kernel_knows_is_refused_in_one_line() {
        let check = |name: &str, initial_window| {
            TcpSettings { congestion_control: name.to_string(), initial_window }.check()
        };
        for name in ["cubic", "bbr", "x-y_2"] {
            assert!(check(name, None).is_ok());
        }
        assert!(check("reno", Some(1)).is_ok() && check("reno", Some(1000)).is_ok());
        for (name, window) in
            [("", None), ("a\nb", None), ("a-name-too-long1", None), ("cubic", Some(0))]
        {
            let message = check(name, window).unwrap_err().to_string();
            assert!(message.contains("give ") && !message.contains('\n'), "{message}");
        }
        assert!(check("cubic", Some(1001)).is_err());
    }
}
