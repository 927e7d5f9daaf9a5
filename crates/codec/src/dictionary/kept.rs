//! Coders that stay between messages.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Coder, Dictionary, Id, Method};
use crate::{Error, Limits, secrets};

/// Coders kept at most: as many workers as code with one dictionary at the same time.
const MAX_CODERS: usize = 4;

/// The content of a dictionary, and the coders that have read it, for all who share them: reading
/// costs more than most messages, with [`Method::Mix`] a thousand times as much.
#[derive(Debug)]
pub struct Kept {
    content: Arc<[u8]>,
    id: Id,
    coders: Mutex<Vec<Coder>>,
}

impl Kept {
    /// Nothing is read before the first message.
    pub fn new(content: impl Into<Arc<[u8]>>) -> Self {
        let content = content.into();
        Self { id: Id::of(&content), content, coders: Mutex::default() }
    }

    /// What is kept of a message, as a base for others: it without its secrets. Errors: those of
    /// [`secrets::cut`].
    pub fn of_message(message: &[u8]) -> Result<Self, Error> {
        secrets::cut(message).map(Self::new)
    }

    /// What it is known by.
    #[must_use]
    pub fn id(&self) -> Id {
        self.id
    }

    /// The bytes of the dictionary.
    #[must_use]
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// What `work` answers with a coder of these properties. Errors: those of [`Dictionary::new`],
    /// [`Coder::new`] and of `work`.
    pub fn with<T>(
        &self,
        method: Method,
        level: Option<i8>,
        limits: &Limits,
        work: impl FnOnce(&mut Coder) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut coder = match self.take(method, level, limits) {
            Some(coder) => coder,
            None => {
                let dictionary = Dictionary::new(self.content.clone(), limits)?;
                Coder::new(&dictionary, method, level, limits)?
            }
        };
        let answer = work(&mut coder);
        let mut coders = self.coders.lock().unwrap_or_else(PoisonError::into_inner);
        if coders.len() == MAX_CODERS {
            coders.remove(0);
        }
        coders.push(coder);
        answer
    }

    fn take(&self, method: Method, level: Option<i8>, limits: &Limits) -> Option<Coder> {
        let mut coders = self.coders.lock().unwrap_or_else(PoisonError::into_inner);
        let at = coders.iter().position(|coder| coder.is(method, level, limits))?;
        Some(coders.remove(at))
    }
}
