//! Always the same arm.

use crate::arm::Arm;
use crate::network::{NetworkModel, Path, RateAware};
use crate::policy::{Candidate, Decision, Observation, Policy, Request};
use crate::state::Error;

/// Takes its arm whatever the message, and bytes as they are where that may not be taken. It
/// expects the message's own length: it weighs nothing, so it knows no better.
#[derive(Clone, Copy, Debug)]
pub struct Fixed(pub Arm);

impl Policy for Fixed {
    fn choose(&mut self, request: &Request<'_>) -> Decision {
        let taken = self.0 == Arm::IDENTITY || (request.allowed)(self.0);
        let bytes = request.subject.bytes;
        let plain = Candidate::identity(bytes, RateAware.seconds(request.path, bytes));
        let arm = if taken { self.0 } else { Arm::IDENTITY };
        let chosen = Candidate { arm, ..plain };
        let reason = if taken { "fixed" } else { "fixed to what may not be taken" };
        let objective = request.objective;
        Decision { chosen, objective, candidates: vec![chosen], probe: None, reason }
    }

    fn again(&self, _: &Decision, _: &Path, _: &[Arm], _: f64) -> Option<Arm> {
        None
    }

    fn network_s(&self, path: &Path, bytes: f64) -> f64 {
        RateAware.seconds(path, bytes)
    }

    fn observe(&mut self, _: &Observation<'_>) {}

    fn state_bytes(&self) -> usize {
        size_of::<Self>()
    }

    /// It has learned nothing.
    fn save(&self, _: &[&str], _: &mut Vec<u8>) {}

    fn restore(&mut self, _: &[&str], bytes: &[u8]) -> Result<(), Error> {
        if bytes.is_empty() { Ok(()) } else { Err(Error::Trailing(bytes.len())) }
    }
}
