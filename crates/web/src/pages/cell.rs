//! One cell: its runs, their exchanges over time, and the packets of one.

use record::campaign::{Cell, Network, Run};
use report::svg::{Anchor, LinearScale, Mark, Scale, Svg};

use crate::page::{Page, encoded, escaped, shell};

/// Most exchanges of the table: those of the first runs.
const MAX_EXCHANGES: usize = 500;

/// What the page shows.
#[derive(Debug)]
pub struct Shown<'a> {
    /// Name of the campaign's directory.
    pub campaign: &'a str,
    /// The cell with its runs.
    pub cell: &'a Cell,
    /// Its link.
    pub network: Option<&'a Network>,
}

/// The page.
#[must_use]
pub fn page(shown: &Shown<'_>) -> String {
    let Shown { campaign, cell, network } = shown;
    let flight = network.and_then(|network| report::campaign::drawing(cell, network)).map_or(
        "<p>No packets were kept of this cell.</p>\n".to_string(),
        |svg| {
            format!(
                "<p class=\"hint\">Above the client, below the service, time to the right. Thick: \
                 content; thin: acknowledgements; long dashes: what goes again; a cross: lost.\
                 </p>\n\
                 <figure class=\"wide flight\">{svg}</figure>\n"
            )
        },
    );
    let runs: String = cell.runs.iter().map(run).collect();
    let exchanges: Vec<(u32, &record::campaign::Measured)> = cell
        .runs
        .iter()
        .flat_map(|run| run.measured.iter().map(|one| (run.repetition, one)))
        .collect();
    let rows: String =
        exchanges.iter().take(MAX_EXCHANGES).map(|(number, one)| exchange(*number, one)).collect();
    let body = format!(
        "<p><a href=\"/results/{}\">Back to the campaign</a></p>\n\
         <h2>Exchanges over time</h2>\n<figure class=\"wide\">{}</figure>\n\
         <h2>Packets of one exchange</h2>\n{flight}\
         <h2>Runs</h2>\n<div class=\"wide\"><table id=\"runs\"><thead><tr><th>Run</th><th>Seed</th>\
         <th>Mean s</th><th>Failed</th><th>Cut off</th><th>Packets up</th><th>down</th>\
         <th>Dropped</th><th>Late p99</th><th>Remark</th></tr></thead>\n{runs}</table></div>\n\
         <h2>Exchanges</h2>\n<p>{} of {}.</p>\n<div class=\"wide\"><table id=\"exchanges\"><thead>\
         <tr><th>Run</th><th>Exchange</th><th>Start s</th><th>Took s</th><th>Body B</th>\
         <th>Wire B</th><th>Again</th><th>Outcome</th></tr></thead>\n{rows}</table></div>\n",
        encoded(campaign),
        over_time(&cell.runs),
        exchanges.len().min(MAX_EXCHANGES),
        exchanges.len(),
    );
    Page {
        title: &cell.name,
        area: "/results",
        script: "common.js",
        command: &format!("longwire lab export {}", shell(&format!("results/{campaign}"))),
        body: &body,
    }
    .html()
}

fn run(run: &Run) -> String {
    let mean = run.mean_s().map_or("–".to_string(), |mean| format!("{mean:.3}"));
    let dropped: u64 = run.up.dropped.values().chain(run.down.dropped.values()).sum();
    let remark = run.failure.as_deref().or(run.flagged.as_deref()).unwrap_or_default();
    format!(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td>{mean}</td><td>{}</td><td>{}</td><td>{}</td>\
         <td>{}</td><td>{dropped}</td><td>{} µs</td><td>{}</td></tr>\n",
        run.repetition,
        run.seed,
        run.errors(),
        run.censored(),
        run.up.packets_in,
        run.down.packets_in,
        run.lateness.p99_us,
        escaped(remark),
    )
}

fn exchange(run: u32, measured: &record::campaign::Measured) -> String {
    let of = &measured.exchange;
    let outcome = match (&of.error, of.censored, of.status) {
        (Some(error), ..) => escaped(error),
        (None, true, _) => "cut off".to_string(),
        (None, false, Some(status)) => status.to_string(),
        (None, false, None) => "–".to_string(),
    };
    format!(
        "<tr><td>{run}</td><th scope=\"row\">{}</th><td>{:.3}</td><td>{:.3}</td><td>{}</td>\
         <td>{}</td><td>{}</td><td>{outcome}</td></tr>\n",
        escaped(&of.name),
        of.start_s,
        of.elapsed_s,
        of.body_bytes,
        measured.up.bytes + measured.down.bytes,
        measured.up.retransmitted + measured.down.retransmitted,
    )
}

/// A mark for each exchange at its start, as high as it took, in the colour of its run.
fn over_time(runs: &[Run]) -> String {
    const WIDTH: f64 = 860.0;
    const HEIGHT: f64 = 260.0;
    const LEFT: f64 = 60.0;
    const TOP: f64 = 28.0;
    const BOTTOM: f64 = HEIGHT - 34.0;
    let mut svg = Svg::new(WIDTH, HEIGHT);
    let all = || runs.iter().flat_map(|run| &run.measured).map(|of| &of.exchange);
    let latest_s = all().map(|of| of.start_s).fold(0.0, f64::max);
    let times: Vec<f64> = all().map(|of| of.elapsed_s).collect();
    let (x, y) = (
        LinearScale::up_to(latest_s, LEFT, WIDTH - 12.0),
        Scale::fitting(&times, 20.0, BOTTOM, TOP),
    );
    for tick in y.ticks() {
        svg.line("grid", (LEFT, y.at(tick)), (WIDTH - 12.0, y.at(tick)));
        svg.text(LEFT - 6.0, y.at(tick) + 4.0, "tick", Anchor::End, &short(tick));
    }
    for tick in x.ticks() {
        svg.text(x.at(tick), BOTTOM + 16.0, "tick", Anchor::Middle, &short(tick));
    }
    svg.text(WIDTH - 12.0, HEIGHT - 4.0, "tick", Anchor::End, "start of the exchange, seconds");
    svg.text(8.0, 12.0, "tick", Anchor::Start, "seconds");
    for (place, run) in runs.iter().enumerate() {
        let (class, mark) =
            (format!("s{}", place % 6), [Mark::Circle, Mark::Square][place / 6 % 2]);
        for of in run.measured.iter().map(|measured| &measured.exchange) {
            let at = (x.at(of.start_s), y.at(of.elapsed_s));
            let title = format!("run {}, {}: {:.3} s", run.repetition, of.name, of.elapsed_s);
            if of.error.is_some() {
                svg.cross("lost", at);
            } else if of.censored {
                svg.arrow(&class, at, &title);
            } else {
                svg.mark(mark, &class, at, &title);
            }
        }
    }
    svg.finish("Time of each exchange over the run; the same in the table below")
}

fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use record::campaign::{Measured, Share};
    use record::result::Exchange;

    use super::*;
    use crate::cells::tests::cell;

    #[test]
    fn runs_and_exchanges_are_listed_and_drawn() {
        let mut shown = cell("los", record::campaign::Way::Direct, "", &[]).cell;
        let exchange = |error: Option<&str>| Measured {
            exchange: Exchange {
                name: "track 1".to_string(),
                start_s: 0.5,
                elapsed_s: 1.5,
                body_bytes: 10,
                status: None,
                error: error.map(str::to_string),
                censored: false,
                connections: 1,
            },
            up: Share { packets: 1, bytes: 2, retransmitted: 3 },
            down: Share { packets: 1, bytes: 5, retransmitted: 0 },
            flights: 1,
        };
        shown.runs.push(Run {
            repetition: 1,
            measured: vec![exchange(None), exchange(Some("reset <by> peer"))],
            flagged: Some("late".to_string()),
            ..Run::default()
        });
        let html = page(&Shown { campaign: "x", cell: &shown, network: None });
        assert!(html.contains("reset &lt;by&gt; peer") && html.contains("<td>late</td>"));
        assert!(html.contains("run 1, track 1: 1.500 s") && html.contains("class=\"lost\""));
        assert!(html.contains("2 of 2.") && html.contains("No packets were kept"));
    }
}
