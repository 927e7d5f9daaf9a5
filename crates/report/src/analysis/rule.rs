//! The rule that turns measurements of a setting into advice.

use super::SIGNIFICANT_P;
use super::types::{PartTest, Ruling, Verdict};
use super::words::{change, probability, setting};

/// Changes of time below this share do not matter to anybody.
pub(super) const MATTERS: f64 = 0.02;

/// The ruling and its reason in one sentence. It reads the figures of the verdict, all corrected.
pub(super) fn decide(verdict: &Verdict) -> (Ruling, String) {
    if fails_more(verdict) {
        return (Ruling::Avoid, failing(verdict));
    }
    let Some(ratio) = verdict.ratio else {
        return (Ruling::Undecided, "No pair of runs has a time on both sides.".to_string());
    };
    let Some((low, high)) = verdict.interval else {
        let why = format!("{} pairs are too few for an interval.", verdict.pairs);
        return (Ruling::Undecided, why);
    };
    let is_sure = verdict.p_adjusted.is_some_and(|p| p < SIGNIFICANT_P);
    let loses_more = verdict.lost.1 > verdict.lost.0;
    if ratio <= 1.0 - MATTERS && high < 1.0 && is_sure {
        return if loses_more { (Ruling::Undecided, losing(verdict)) } else { gaining(verdict) };
    }
    if ratio >= 1.0 + MATTERS && low > 1.0 && is_sure {
        return (Ruling::Avoid, sure(verdict));
    }
    // A bound that proves nothing counts as no difference: of that no sameness can be made.
    let is_small = 1.0 - MATTERS <= low && high <= 1.0 + MATTERS;
    if is_small && verdict.bounds == 0 && !loses_more {
        let why = format!("Whatever it does is less than {:.0} % of the time.", 100.0 * MATTERS);
        return (Ruling::Indifferent, why);
    }
    (Ruling::Undecided, doubt(verdict, ratio, (low, high), is_small))
}

/// Exchange by exchange after correction, and run by run: one unlucky run is no proof.
pub(super) fn fails_more(verdict: &Verdict) -> bool {
    let significant = |p: Option<f64>| p.is_some_and(|p| p < SIGNIFICANT_P);
    significant(verdict.errors_p_adjusted) && significant(verdict.errors_runs_p)
}

fn failing(verdict: &Verdict) -> String {
    format!(
        "Fails more often: {} of {} exchanges against {} of {} ({}).",
        verdict.errors.1,
        verdict.exchanges.1,
        verdict.errors.0,
        verdict.exchanges.0,
        probability(verdict.errors_p_adjusted),
    )
}

fn losing(verdict: &Verdict) -> String {
    let (default, lost) = verdict.lost;
    format!("{}, but {lost} of its runs failed against {default}.", trimmed(sure(verdict)))
}

/// It gains; a combination has to beat its parts besides.
fn gaining(verdict: &Verdict) -> (Ruling, String) {
    let Some(part) = &verdict.part else {
        return (Ruling::Use, sure(verdict));
    };
    let beats = part.ratio < 1.0 && part.p_adjusted < SIGNIFICANT_P;
    let ruling = if beats { Ruling::Use } else { Ruling::NoBetter };
    (ruling, format!("{}; {}.", trimmed(sure(verdict)), beside(part)))
}

fn beside(part: &PartTest) -> String {
    format!(
        "against {} alone {} ({})",
        setting(&part.setting),
        change(part.ratio),
        probability(Some(part.p_adjusted))
    )
}

fn sure(verdict: &Verdict) -> String {
    let ratio = verdict.ratio.unwrap_or(1.0);
    let mut text = change(ratio);
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let (p, pairs) = (probability(verdict.p_adjusted), verdict.pairs);
    let bounds = match verdict.bounds {
        0 => String::new(),
        bounds => format!(", {bounds} of them with a run cut off"),
    };
    format!("{text} ({p}, {pairs} pairs{bounds}).")
}

fn trimmed(mut sentence: String) -> String {
    sentence.truncate(sentence.trim_end_matches('.').len());
    sentence
}

/// What is missing for another ruling.
fn doubt(verdict: &Verdict, ratio: f64, (low, high): (f64, f64), is_small: bool) -> String {
    if is_small {
        let (cut, lost) = (verdict.bounds, verdict.lost.1);
        return format!("No difference seen, but {cut} pairs were cut off and {lost} runs failed.");
    }
    if low <= 1.0 && 1.0 <= high {
        return format!("It may be anything from {} to {}.", change(low), change(high));
    }
    if (ratio - 1.0).abs() < MATTERS {
        return format!("{}: under the {:.0} % that matter.", change(ratio), 100.0 * MATTERS);
    }
    let p = probability(verdict.p_adjusted);
    format!("{} in {} pairs is no proof among so many tests ({p}).", change(ratio), verdict.pairs)
}
