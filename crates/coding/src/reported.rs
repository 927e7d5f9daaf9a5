//! What is decided and what came of it, as events report it.

use std::time::Duration;

use decide::outcome::{Parts, Split};
use decide::policy::{Candidate, Objective};
use record::decision as facts;

/// What is wanted of a service, as it is reported.
pub(crate) fn wanted(objective: Objective) -> String {
    match objective {
        Objective::Time => "time".to_owned(),
        Objective::Bytes => "bytes".to_owned(),
        Objective::Deadline(seconds) => format!("deadline {seconds} s"),
    }
}

/// What is expected of an arm, as it is reported.
pub(crate) fn parts(candidate: &Candidate) -> facts::Parts {
    reported_parts(&expected_parts(candidate))
}

/// What is expected of an arm.
pub(crate) fn expected_parts(candidate: &Candidate) -> Parts {
    Parts {
        encode_s: candidate.expected.encode_s,
        network_s: candidate.network_s,
        decode_s: candidate.expected.decode_s,
        wait_s: candidate.wait_s,
        bytes: candidate.expected.bytes,
    }
}

/// What was expected of a message, or came of it, as it is reported.
pub(crate) fn reported_parts(parts: &Parts) -> facts::Parts {
    facts::Parts {
        bytes: whole(parts.bytes),
        encode_s: rounded(parts.encode_s),
        network_s: rounded(parts.network_s),
        decode_s: rounded(parts.decode_s),
        wait_s: rounded(parts.wait_s),
    }
}

/// Whose the difference is, as it is reported: not rounded, so that it adds up.
pub(crate) fn reported_split(split: &Split) -> facts::Split {
    facts::Split {
        encode_s: split.encode_s,
        decode_s: split.decode_s,
        network_s: split.network_s,
        size_s: split.size_s,
    }
}

/// A length as it is reported; it comes from a model and may be anything.
pub(crate) fn whole(bytes: f64) -> u64 {
    Duration::try_from_secs_f64(bytes.max(0.0)).map_or(u64::MAX, |bytes| bytes.as_secs())
}

/// Six digits are more than anybody measures; what is no number is reported as zero.
pub(crate) fn rounded(value: f64) -> f64 {
    if !value.is_finite() || value == 0.0 {
        return 0.0;
    }
    let unit = 10_f64.powf(value.abs().log10().floor() - 5.0);
    let rounded = (value / unit).round() * unit;
    if rounded.is_finite() { rounded } else { 0.0 }
}
