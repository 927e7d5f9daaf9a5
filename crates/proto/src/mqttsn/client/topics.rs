//! Topics and their ids, as client and gateway have agreed.

use std::collections::BTreeMap;

use super::super::{Code, MAX_TOPIC_ID, MIN_TOPIC_ID, Topic};
use super::settings::{MAX_TOPICS, Name};

/// Ids of names; at most [`MAX_TOPICS`].
#[derive(Debug, Default)]
pub(super) struct Topics {
    ids: BTreeMap<String, u16>,
    names: BTreeMap<u16, String>,
}

impl Topics {
    pub(super) fn id(&self, name: &str) -> Option<u16> {
        self.ids.get(name).copied()
    }

    /// What a publication is about, or how it is refused.
    pub(super) fn name(&self, topic: Topic) -> Result<Name, Code> {
        match topic {
            Topic::Predefined(id) => Ok(Name::Predefined(id)),
            Topic::Id(id) => {
                self.names.get(&id).cloned().map(Name::Text).ok_or(Code::INVALID_TOPIC_ID)
            }
            Topic::Short(name) => {
                std::str::from_utf8(&name).map(Name::from).map_err(|_| Code::NOT_SUPPORTED)
            }
        }
    }

    /// A name has this id from now on, and no other name has it.
    pub(super) fn set(&mut self, name: &str, id: u16) -> Code {
        if !(MIN_TOPIC_ID..=MAX_TOPIC_ID).contains(&id) {
            return Code::INVALID_TOPIC_ID;
        }
        if self.names.len() >= MAX_TOPICS && !self.names.contains_key(&id) {
            return Code::CONGESTION;
        }
        if let Some(before) = self.ids.insert(name.to_owned(), id) {
            self.names.remove(&before);
        }
        if let Some(before) = self.names.insert(id, name.to_owned()).filter(|before| before != name)
        {
            self.ids.remove(&before);
        }
        Code::ACCEPTED
    }

    pub(super) fn forget(&mut self, id: u16) {
        if let Some(name) = self.names.remove(&id) {
            self.ids.remove(&name);
        }
    }
}
