//! Clients that are asked for their wills before they are connected (MQTT-SN 1.2 §6.2).

use std::collections::BTreeMap;
use std::time::Duration;

use super::client::Connect;
use super::source::Source;
use super::will::Will;

/// Dialogues at once; of more the oldest is forgotten.
const MAX_DIALOGUES: usize = 256;
/// How long a client may take for one.
const MAX_DIALOGUE_TIME: Duration = Duration::from_secs(60);

/// How far a client is.
#[derive(Debug)]
pub(super) struct Dialogue {
    pub(super) connect: Connect,
    /// Its topic was said.
    pub(super) will: Option<Will>,
    until: Duration,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Dialogues {
    open: BTreeMap<Source, Dialogue>,
}

impl Dialogues {
    /// One begins, also where there was one.
    pub(super) fn begin(&mut self, now: Duration, source: Source, connect: Connect) {
        if self.open.len() >= MAX_DIALOGUES && !self.open.contains_key(&source) {
            let oldest = self.open.iter().min_by_key(|(_, dialogue)| dialogue.until);
            if let Some(oldest) = oldest.map(|(source, _)| source.clone()) {
                self.open.remove(&oldest);
            }
        }
        let until = now.saturating_add(MAX_DIALOGUE_TIME);
        self.open.insert(source, Dialogue { connect, will: None, until });
    }

    /// That of a client.
    pub(super) fn get_mut(&mut self, now: Duration, source: &Source) -> Option<&mut Dialogue> {
        self.open.get_mut(source).filter(|dialogue| dialogue.until > now)
    }

    /// That of a client has ended.
    pub(super) fn end(&mut self, now: Duration, source: &Source) -> Option<Dialogue> {
        self.open.remove(source).filter(|dialogue| dialogue.until > now)
    }
}
