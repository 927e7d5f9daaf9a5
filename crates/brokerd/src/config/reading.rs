//! A configuration's text.

use serde::Deserialize as _;
use toml::de::{DeTable, Deserializer, Error as Wrong};

use super::Config;
use crate::error::Error;

/// Sections of the pair, which may stand in the same file; an edge or a gateway checks them.
const PAIR: [&str; 5] = ["edge", "gateway", "link", "log", "service"];

fn read(text: &str) -> Result<Config, Wrong> {
    let mut table = DeTable::parse(text)?;
    for section in PAIR {
        table.get_mut().remove(section);
    }
    Config::deserialize(Deserializer::from(table))
}

impl Config {
    /// Reads a text; `shown` stands for its file in messages.
    ///
    /// # Errors
    /// What is wrong with it, with the line.
    pub fn parse(shown: &str, text: &str) -> Result<Self, Error> {
        read(text).map_err(|error| {
            let line = error.span().map_or(1, |span| {
                1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count()
            });
            let what = error.message().replace('\n', " ");
            Error::Caller(format!("{shown}, line {line}: {what}"))
        })
    }
}
