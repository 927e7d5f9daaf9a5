//! How a campaign was measured: conditions, machine, lateness, and what it does not show.

use std::fmt::Write;

use record::campaign::Campaign;
use record::result::Lateness;

use crate::demo::plot_lateness;
use crate::format;
use crate::text::escaped;

/// All sections on it.
pub(super) fn setting(campaign: &Campaign) -> String {
    let lateness = Lateness::merged(runs(campaign).map(|run| &run.lateness));
    let mut out = "<h2 id='setting'>How late the emulator was</h2>\n<figure>".to_string();
    out += &plot_lateness::plot(&lateness);
    let caption = escaped(&lateness_caption(campaign, &lateness));
    let _ = writeln!(out, "<figcaption>{caption}</figcaption></figure>");
    out += &how(campaign);
    out += &machine(campaign);
    out + &limits(campaign)
}

fn limits(campaign: &Campaign) -> String {
    let has_paper = !campaign.references.is_empty() || !campaign.advice.is_empty();
    let paper = if has_paper {
        "<li>The server's settings are those of longwire's own tracks service and, where named, of \
         other servers; the paper's figures are of a server of 2014 on machines of its \
         time.</li>\n"
    } else {
        ""
    };
    format!(
        "<h2>What this does not show</h2>\n<ul>\n\
         <li>Emulated links with the kernel's TCP in real time, not radios: no link layer that \
         sends again, no contention, no weather.</li>\n{paper}\
         <li>One client fetches one thing after another; nothing is said of many clients.</li>\n\
         <li>Runs share the machine with other runs; lateness and waiting are recorded for each, \
         and one that was disturbed beyond the limits does not count.</li>\n</ul>\n"
    )
}

fn runs(campaign: &Campaign) -> impl Iterator<Item = &record::campaign::Run> {
    campaign.cells.iter().flat_map(|cell| &cell.runs)
}

fn lateness_caption(campaign: &Campaign, lateness: &Lateness) -> String {
    let ms = |us: u64| format!("{:.3} ms", us as f64 / 1000.0);
    format!(
        "{} packets of all runs: half were late by at most {}, 99 % by at most {}, 99.9 % by at \
         most {}, the latest by {}, against the instant at which the emulated link delivers them. \
         A run is repeated when its own 99 % is above {}.",
        lateness.count,
        ms(lateness.p50_us),
        ms(lateness.p99_us),
        ms(lateness.p999_us),
        ms(lateness.max_us),
        ms(campaign.setting.lateness_limit_us),
    )
}

fn how(campaign: &Campaign) -> String {
    let setting = &campaign.setting;
    let waited_s: f64 = runs(campaign).map(|run| run.processor_wait_s).sum();
    let count = runs(campaign).count();
    let alone_s: f64 = runs(campaign).map(|run| run.elapsed_s).sum();
    let mean_ms = if count > 0 { 1000.0 * waited_s / count as f64 } else { 0.0 };
    let text = format!(
        "Each run has a pair of hosts (network namespaces) of its own, joined by an emulated link, \
         and a seed that decides every chance on the link; run k of every cell of a network has \
         the same, so that cells are compared pair by pair. Up to {} runs were side by side; \
         together their clients were under way for {} s, the campaign for {} s. Client, server and \
         pair waited for a processor for {mean_ms:.1} ms a run on average; a run in which it was \
         over {} of the time was done again. An exchange may take {} s; one \
         that is cut off counts as at least that.",
        setting.parallel_peak,
        format::seconds(alone_s),
        format::seconds(setting.elapsed_s),
        format::per_cent(setting.wait_share_limit),
        setting.timeout_s,
    );
    format!("<h2>How it was measured</h2>\n<p>{}</p>\n", escaped(&text))
}

fn machine(campaign: &Campaign) -> String {
    let setting = &campaign.setting;
    let machine = &setting.machine;
    let yes_no = |yes: bool| if yes { "yes" } else { "no" }.to_string();
    let unknown = || "unknown".to_string();
    let defaults = setting.defaults.iter();
    let defaults = defaults.map(|(server, name, value)| format!("{server} {name} = {value}"));
    let rows = [
        ("longwire", format!("{}, {} build", setting.version, machine.profile)),
        ("built from commit", machine.revision.clone().unwrap_or_else(unknown)),
        ("command", machine.command.clone()),
        ("begun (UTC)", record::calendar::utc(setting.started_unix_s)),
        ("took", format!("{:.0} s in {}", setting.elapsed_s, sessions(setting.sessions))),
        ("kernel", machine.kernel.clone()),
        ("processor", machine.processor.clone()),
        ("cores", machine.cores.to_string()),
        ("time taken by other guests", setting.stolen.map_or_else(unknown, format::per_cent)),
        ("hosts joined by", setting.device.clone()),
        ("user namespace (not root)", yes_no(setting.rootless)),
        ("emulator with real-time priority", yes_no(setting.real_time)),
        ("runs side by side, at most", setting.parallel_peak.to_string()),
        ("seed", setting.seed.to_string()),
        ("default settings", defaults.collect::<Vec<_>>().join("; ")),
    ];
    let mut out = "<h2>Versions and settings</h2>\n<table class='text'>\n".to_string();
    for (name, value) in rows.into_iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(out, "<tr><td>{name}</td><td>{}</td></tr>", escaped(&value));
    }
    out + "</table>\n"
}

fn sessions(count: u32) -> String {
    if count == 1 { "one session".to_string() } else { format!("{count} sessions") }
}
