//! What all requests share.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use ring::rand::{SecureRandom, SystemRandom};
use serde_json::Value;
use tokio::process::Command;
use tokio::sync::Semaphore;
use web::admission::Policy;

use crate::Settings;
use crate::children;
use crate::hub::Hub;
use crate::kept::Kept;

/// Most streams of events: several browsers with all the tabs that they can fill.
const MAX_STREAMS: usize = 64;

/// The settings, who may ask, and what was found out already.
pub(crate) struct Shared {
    settings: Settings,
    pub(crate) policy: Policy,
    pub(crate) hub: Arc<Hub>,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) kept: Kept,
    /// What the machine offers, and when it was asked.
    pub(crate) doctor: tokio::sync::Mutex<Option<(Instant, Value)>>,
}

impl Shared {
    pub(crate) fn new(settings: Settings, policy: Policy) -> Self {
        let streams = Arc::new(Semaphore::new(MAX_STREAMS));
        Self {
            settings,
            policy,
            hub: Hub::new(),
            streams,
            kept: Kept::default(),
            doctor: Default::default(),
        }
    }

    /// Where campaigns and their results are.
    pub(crate) fn results(&self) -> &Path {
        &self.settings.results
    }

    /// Where plans and scenarios are.
    pub(crate) fn plans_folder(&self) -> &Path {
        &self.settings.scenarios
    }

    pub(crate) fn program(&self) -> &Path {
        &self.settings.program
    }

    pub(crate) fn version(&self) -> &str {
        &self.settings.version
    }

    /// This program with other arguments.
    pub(crate) fn command<S: AsRef<std::ffi::OsStr>>(&self, arguments: &[S]) -> Command {
        children::command(self.program(), arguments)
    }

    /// A port that hardly anybody has.
    pub(crate) fn random_port(&self) -> u16 {
        let mut bytes = [0; 2];
        // Where there is no chance any port does.
        let _ = SystemRandom::new().fill(&mut bytes);
        20_000 + u16::from_be_bytes(bytes) % 40_000
    }
}
