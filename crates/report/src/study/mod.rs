//! The chapter of a study of policies: which encodings were chosen, what for, and how far from the
//! best that was.

mod choices;
mod codecs;
mod data;
mod gains;
mod models;
mod plot;
mod predicted;
mod regret;
mod table;
#[cfg(test)]
mod tests;

use record::campaign::Campaign;

use data::Study;

/// The chapter; empty where a campaign names no policy.
pub(crate) fn chapter(campaign: &Campaign) -> String {
    let Some(study) = Study::of(campaign) else { return String::new() };
    let parts = [
        table::regrets(&study),
        gains::figure_7(&study),
        predicted::predicted(&study),
        choices::choices(&study),
        models::figure_3(&study),
        codecs::table_3(&study),
        codecs::figure_5(&study),
    ];
    format!("<h2 id='study'>Policies</h2>\n{}", parts.concat())
}
