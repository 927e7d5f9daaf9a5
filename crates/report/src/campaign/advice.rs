//! What to use and what to avoid, by network, beside what others recommend.

use std::fmt::Write;

use super::rows::settings_or_default;
use super::view::OWN_SERVER;
use crate::analysis::{Analysis, NetworkAdvice, Ruling, Verdict};
use crate::format;
use crate::text::escaped;

/// The table of recommendations and the table of every verdict.
pub(super) fn recommendations(analysis: &Analysis) -> String {
    let mut out = "<h2 id='advice'>Recommendations</h2>\n".to_string();
    if analysis.recommendations.is_empty() && !analysis.gains.is_empty() {
        return String::new();
    }
    if analysis.recommendations.is_empty() {
        return out + "<p class='note'>No setting was varied: nothing is recommended.</p>\n";
    }
    out += "<table class='text wrap advice'>\n<tr><th>network</th><th>ours</th><th>how sure</th>\
            <th>the paper's</th></tr>\n";
    for advice in &analysis.recommendations {
        let paper = advice.paper.as_deref().unwrap_or("–");
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td class='note'>{}</td><td>{}</td></tr>",
            escaped(&name(advice)),
            escaped(&advice.text),
            confidence(advice),
            escaped(paper),
        );
    }
    out += "</table>\n<p class='note'>A ratio is time with the setting over time with the default, \
            the services of a network pooled, each with the same weight: below 1 is faster. In \
            brackets its 95 % interval; p is adjusted (Holm) for all its settings.</p>\n";
    out += "<h3>Every verdict</h3>\n";
    for advice in &analysis.recommendations {
        out += &verdicts(advice);
    }
    out
}

/// A network, with the server unless it is our own.
pub(super) fn name(advice: &NetworkAdvice) -> String {
    match advice.server.as_str() {
        OWN_SERVER => advice.network.clone(),
        server => format!("{}, {server}", advice.network),
    }
}

/// The figures behind each thing to use or to avoid.
fn confidence(advice: &NetworkAdvice) -> String {
    let of = |ruling| advice.verdicts.iter().filter(move |one| one.verdict == ruling);
    let lines: Vec<String> = of(Ruling::Use)
        .chain(of(Ruling::Avoid))
        .map(|one| {
            let ratio = one.ratio.map_or("–".to_string(), format::ratio);
            let p = one.p_adjusted.map_or("–".to_string(), format::probability);
            let setting = setting(one);
            escaped(&format!("{setting}: × {ratio}{}, p {p}", interval(one.interval)))
        })
        .collect();
    if lines.is_empty() { "nothing surely differs".to_string() } else { lines.join("<br/>") }
}

/// The setting with the way, unless that is direct.
pub(super) fn setting(verdict: &Verdict) -> String {
    let setting = settings_or_default(&verdict.setting);
    match verdict.way {
        record::campaign::Way::Direct => setting,
        way => format!("{setting} ({})", way.name()),
    }
}

/// ` (0.95–0.98)`, or nothing.
pub(super) fn interval(interval: Option<(f64, f64)>) -> String {
    interval.map_or(String::new(), |(low, high)| {
        let [low, high] = format::ratios([low, high]);
        format!(" ({low}–{high})")
    })
}

fn verdicts(advice: &NetworkAdvice) -> String {
    let mut out = format!(
        "<details><summary>{}: {}</summary>\n<div class='wide'><table class='dense verdicts'>\n\
         <tr><th>setting</th><th class='text'>verdict</th><th>ratio</th><th>p adj.</th><th>pairs\
         </th><th>failed or cut: default</th><th>setting</th><th class='text'>why</th></tr>\n",
        escaped(&name(advice)),
        format::count(advice.verdicts.len(), "setting"),
    );
    for one in &advice.verdicts {
        let class = match one.verdict {
            Ruling::Use => "text use",
            Ruling::Avoid => "text avoid",
            _ => "text",
        };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class='{class}'>{}</td><td>{}{}</td><td>{}</td><td>{}</td>\
             <td>{}</td><td>{}</td><td class='text'>{}</td></tr>",
            escaped(&setting(one)),
            one.verdict.name(),
            one.ratio.map_or("–".to_string(), format::ratio),
            interval(one.interval),
            one.p_adjusted.map_or("–".to_string(), |p| escaped(&format::probability(p))),
            one.pairs,
            of(one.errors.0, one.exchanges.0),
            of(one.errors.1, one.exchanges.1),
            escaped(&one.why),
        );
    }
    out + "</table></div></details>\n"
}

fn of(some: usize, all: usize) -> String {
    format!("{some} of {all}")
}
