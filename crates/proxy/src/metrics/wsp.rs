//! What WAP clients ask for.

use super::{family, sample};

#[derive(Debug, Default)]
pub(super) struct Wsp {
    pub(super) requests: u64,
    pub(super) repeats: u64,
}

pub(super) fn render(wsp: &Wsp, text: &mut String) {
    for (name, help, value) in [
        ("wsp_requests_total", "Requests of WAP clients, each counted once.", wsp.requests),
        (
            "wsp_repeated_replies_total",
            "Replies that left again for a copy of their request.",
            wsp.repeats,
        ),
    ] {
        family(text, name, "counter", help);
        sample(text, name, &[], value);
    }
}
