//! What came of a run, as JSON and as lines.

use std::fmt::Write as _;
use std::io;

use serde_json::{Value, json};

use super::consumer::{Config, Granted, Outcome};
use super::statistics::{Sample, Series, Summary};

/// Three digits behind the point: nanoseconds.
fn rounded(value_us: f64) -> f64 {
    (value_us * 1000.0).round() / 1000.0
}

/// A summary; null where there are no samples.
#[must_use]
pub fn summary(of: Option<&Summary>) -> Value {
    of.map_or(Value::Null, |of| {
        json!({
            "samples": of.samples,
            "mean_us": rounded(of.mean_us),
            "p50_us": rounded(of.p50_us),
            "p99_us": rounded(of.p99_us),
            "p999_us": rounded(of.p999_us),
            "p9999_us": rounded(of.p9999_us),
            "max_us": rounded(of.max_us),
            "over_300_us": of.over_300_us,
        })
    })
}

fn granted(all: &[Granted]) -> Value {
    let one = |one: &Granted| {
        json!({
            "name": one.name,
            "real_time_asked": one.is_asked,
            "as": one.as_is,
            "refused": one.refused,
        })
    };
    all.iter().map(one).collect::<Vec<_>>().into()
}

/// Figures of a consumer's run; what was stored in the first `warm_up_ns` behind the first entity
/// of all is left out of the series.
#[must_use]
pub fn consumer(config: &Config, outcome: &Outcome, warm_up_ns: u64) -> Value {
    let first = outcome.classes.iter().flat_map(|class| &class.samples);
    let first_ns = first.map(|sample| sample.stored_ns).min().unwrap_or(0);
    let classes: Vec<Value> = outcome
        .classes
        .iter()
        .enumerate()
        .map(|(at, class)| {
            let series = Series::of(&class.samples, first_ns.saturating_add(warm_up_ns));
            json!({
                "class": at,
                "accepted": class.accepted,
                "processed": class.processed,
                "panicked": class.panicked,
                "refused_full": class.refused_full,
                "refused_over_share": class.refused_over_share,
                "samples_dropped": class.dropped_samples,
                "clocks_disagree": series.disagreeing,
                "uneven_seconds": series.uneven_s,
                "whole_seconds": series.whole_s,
                "t2_t1": summary(series.internal.as_ref()),
                "t1_t0": summary(series.before.as_ref()),
                "t2_t0": summary(series.whole.as_ref()),
            })
        })
        .collect();
    json!({
        "profile": config.profile.number(),
        "words": config.profile.words().join("/"),
        "as_asked": outcome.is_as_asked(),
        "core": config.core,
        "share_permille": config.share_permille,
        "granted": granted(&outcome.granted),
        "bad_requests": outcome.engine.bad_requests,
        "closed_connections": outcome.engine.closed_connections,
        "pauses": outcome.engine.pauses,
        "classes": classes,
    })
}

/// The same for people.
#[must_use]
pub fn consumer_text(figures: &Value) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "profile {} ({}){}",
        figures["profile"],
        figures["words"].as_str().unwrap_or_default(),
        if figures["as_asked"] == true { "" } else { ", NOT as asked: ran as ordinary in part" },
    );
    for class in figures["classes"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let _ = writeln!(
            out,
            "class {}: {} accepted, {} processed, {} panicked, refused {} full, {} over the share",
            class["class"],
            class["accepted"],
            class["processed"],
            class["panicked"],
            class["refused_full"],
            class["refused_over_share"],
        );
        if class["samples_dropped"].as_u64().is_some_and(|dropped| dropped > 0) {
            let _ = writeln!(
                out,
                "  latencies are of the beginning alone: {} entities came beyond --keep",
                class["samples_dropped"],
            );
        }
        for (name, key) in [("T2-T1", "t2_t1"), ("T1-T0", "t1_t0"), ("T2-T0", "t2_t0")] {
            let of = &class[key];
            if of.is_null() {
                continue;
            }
            let _ = writeln!(
                out,
                "  {name}  mean {} us, p50 {}, p99 {}, p99.9 {}, max {}; {} over 300 of {}",
                of["mean_us"],
                of["p50_us"],
                of["p99_us"],
                of["p999_us"],
                of["max_us"],
                of["over_300_us"],
                of["samples"],
            );
        }
        let _ = writeln!(
            out,
            "  {} of {} seconds with another count of entities",
            class["uneven_seconds"], class["whole_seconds"],
        );
    }
    out
}

/// Writes samples as text: class, sequence, T0, T1, T2 in nanoseconds, a line for each entity.
///
/// # Errors
/// When `out` takes no more.
pub fn write_samples(outcome: &Outcome, out: &mut impl io::Write) -> io::Result<()> {
    writeln!(out, "class,sequence,t0_ns,t1_ns,t2_ns")?;
    for (at, class) in outcome.classes.iter().enumerate() {
        for Sample { sequence, sent_ns, handed_ns, stored_ns } in &class.samples {
            writeln!(out, "{at},{sequence},{sent_ns},{handed_ns},{stored_ns}")?;
        }
    }
    out.flush()
}
