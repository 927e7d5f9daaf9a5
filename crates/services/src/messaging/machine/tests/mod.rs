mod boxes;
mod cases;
mod keys;
mod network;
mod node;
mod peers;

use std::time::Duration;

use super::{Retry, Settings};
use crate::messaging::Draft;

const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);

fn settings(node: &str) -> Settings {
    Settings {
        retry: Retry { first: S, longest: 8 * S, window: 4 },
        attempt_timeout: 3 * S,
        resend: 60 * S,
        retention: 3600 * S,
        validity: 3600 * S,
        max_messages: 1000,
        seed: 1,
        ..Settings::new(node, &[])
    }
}

fn draft(addressees: &[&str]) -> Draft {
    Draft {
        addressees: addressees.iter().map(|name| (*name).to_owned()).collect(),
        text: "Contact".to_owned(),
        ..Draft::default()
    }
}
