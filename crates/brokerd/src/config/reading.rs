//! A configuration's text.

use super::Config;
use crate::error::Error;

impl Config {
    /// Reads a text; `shown` stands for its file in messages.
    ///
    /// # Errors
    /// What is wrong with it, with the line.
    pub fn parse(shown: &str, text: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| {
                1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count()
            });
            let what = error.message().replace('\n', " ");
            Error::Caller(format!("{shown}, line {line}: {what}"))
        })
    }
}
