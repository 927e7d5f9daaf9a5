//! The WAP study: what calls took by link, way and method, the paper's figures beside ours.

use std::fmt::Write as _;

use record::calls::{CallsCell, CallsRun};
use record::result::Calls;

use crate::text::wrap;

/// The way that others are compared with: the paper's client had a connection for each call.
const COMPARED: &str = "HTTP";

/// A figure of the paper for a link, and for a way where it says which.
struct Paper {
    link: &'static str,
    way: Option<&'static str>,
    text: &'static str,
}

/// Gehlen and Bergs, sections on latency and on size.
const PAPER: [Paper; 5] = [
    Paper { link: "same host", way: Some("HTTP"), text: "t_call 250 ms" },
    Paper { link: "same host", way: Some("WSP"), text: "t_call 160 ms" },
    Paper { link: "gprs", way: None, text: "a call took 6 to 8 s, from a phone" },
    Paper { link: "adsl", way: None, text: "a call took 0.6 to 0.8 s, from an emulator" },
    Paper { link: "", way: Some("WSP+WBXML"), text: "508 B of a call become 326 B, 35 % less" },
];

/// The figures of a cell whose calls succeeded.
struct Row<'a> {
    way: &'a str,
    cell: &'a CallsCell,
    calls: &'a Calls,
}

impl Row<'_> {
    /// What a body of the request and one of the answer had.
    fn bytes(&self) -> Option<(u64, u64)> {
        let good = self.calls.measured.iter().find(|call| call.error.is_none())?;
        Some((good.request_bytes, good.answer_bytes))
    }

    /// What the link carried of a call, both ways; none on one host.
    fn carried(&self) -> Option<f64> {
        let bytes = self.cell.up.bytes_in + self.cell.down.bytes_in;
        (bytes > 0 && self.cell.made > 0).then(|| bytes as f64 / f64::from(self.cell.made))
    }
}

/// The tables, within 100 columns.
#[must_use]
pub fn calls_text(runs: &[CallsRun]) -> String {
    let mut text = String::new();
    let Some(first) = runs.first() else { return text };
    let of = &first.machine;
    let line = format!(
        "{}: longwire {} ({}), {}, {} cores, {}",
        first.study, first.version, of.profile, of.processor, of.cores, of.date
    );
    wrap(&line, &mut text);
    let lines = [
        "t_SOAP is the mean of writing the request and parsing the answer; t_call is what the call \
         takes, with a mean, a median and the value that 99 in 100 do not exceed. 'body' has the \
         bytes of the request and of the answer, 'link' the IP bytes of a call both ways.",
        "'against HTTP' is the mean of t_call by that of HTTP with a connection for each call.",
    ];
    lines.iter().for_each(|line| wrap(line, &mut text));
    let mut links: Vec<&str> = Vec::new();
    for run in runs {
        if !links.contains(&&*run.link) {
            links.push(&run.link);
        }
    }
    for link in links {
        let of_link: Vec<&CallsRun> = runs.iter().filter(|run| run.link == link).collect();
        link_text(link, &of_link, &mut text);
    }
    saved_text(runs, &mut text);
    text
}

fn link_text(link: &str, runs: &[&CallsRun], text: &mut String) {
    let settings = runs.first().map_or(&[][..], |run| &run.settings);
    let settings: Vec<String> =
        settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    text.push('\n');
    wrap(format!("{link}  {}", settings.join(", ")).trim_end(), text);
    for paper in PAPER.iter().filter(|paper| paper.link == link) {
        let way = paper.way.map_or(String::new(), |way| format!("{way}: "));
        wrap(&format!("  the paper: {way}{}", paper.text), text);
    }
    let cells = runs.first().map_or(&[][..], |run| &run.cells);
    for at in cells {
        let size = at.size.map_or(String::new(), |size| format!(", {size}"));
        let title = format!("{}{size}", at.method);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {title:<20}{:>8}{:>10}{:>10}{:>10}{:>8}{:>14}{:>8}{:>8}",
            "t_SOAP", "t_call ms", "median", "p99", "by HTTP", "body", "link", "errors"
        );
        let is_same = |cell: &&CallsCell| (&cell.method, cell.size) == (&at.method, at.size);
        let cell_of = |run: &'_ &CallsRun| run.cells.iter().position(|cell| is_same(&cell));
        let mean_of = |cell: &CallsCell| Some(cell.calls.as_ref()?.t_call.as_ref()?.mean_s);
        let compared = runs.iter().find(|run| run.way == COMPARED);
        let compared = compared.and_then(|run| mean_of(&run.cells[cell_of(run)?]));
        for run in runs {
            let Some(cell) = cell_of(run).map(|place| &run.cells[place]) else { continue };
            match (&cell.calls, &cell.failure) {
                (Some(calls), _) => row(&Row { way: &run.way, cell, calls }, compared, text),
                (None, why) => {
                    let why = why.as_deref().unwrap_or("not measured");
                    wrap(&format!("    {}: {why}", run.way), text);
                }
            }
        }
    }
}

fn row(row: &Row<'_>, compared: Option<f64>, text: &mut String) {
    let ms = |seconds: f64| format!("{:.3}", seconds * 1000.0);
    let way = row.way;
    let errors = match row.calls.not_made {
        0 => row.calls.errors.to_string(),
        more => format!("{}+{more}", row.calls.errors),
    };
    let (Some(soap), Some(call)) = (&row.calls.t_soap, &row.calls.t_call) else {
        let why = row.calls.measured.iter().find_map(|call| call.error.as_deref());
        let calls = match row.calls.not_made {
            0 => "no call succeeded".to_owned(),
            more => format!("no call succeeded, and {more} more were not made"),
        };
        wrap(&format!("    {way}: {calls}: {}", why.unwrap_or_default()), text);
        return;
    };
    let by = compared
        .filter(|mean| *mean > 0.0)
        .map_or(String::new(), |mean| format!("{:.2}", call.mean_s / mean));
    let body = row.bytes().map_or(String::new(), |(up, down)| format!("{up}+{down}"));
    let carried = row.carried().map_or(String::new(), |bytes| format!("{bytes:.0}"));
    let _ = writeln!(
        text,
        "    {way:<18}{:>8}{:>10}{:>10}{:>10}{by:>8}{body:>14}{carried:>8}{errors:>8}",
        ms(soap.mean_s),
        ms(call.mean_s),
        ms(call.median_s),
        ms(call.p99_s)
    );
}

/// What forms save of bodies in XML.
fn saved_text(runs: &[CallsRun], text: &mut String) {
    let Some(xml) = runs.iter().find(|run| run.way == COMPARED) else { return };
    text.push_str("\nbytes of bodies, and what they are less than in XML\n");
    for paper in PAPER.iter().filter(|paper| paper.link.is_empty()) {
        let way = paper.way.unwrap_or_default();
        wrap(&format!("  the paper: {way}: {}", paper.text), text);
    }
    let bytes = |run: &CallsRun, at: usize| {
        let cell = run.cells.get(at)?;
        Row { way: &run.way, cell, calls: cell.calls.as_ref()? }.bytes()
    };
    for (at, cell) in xml.cells.iter().enumerate() {
        let Some((up, down)) = bytes(xml, at) else { continue };
        let size = cell.size.map_or(String::new(), |size| format!(", {size}"));
        let _ = writeln!(text, "  {}{size}: {up} and {down} in XML", cell.method);
        for run in runs.iter().filter(|run| run.link == xml.link && run.way != xml.way) {
            let Some((less_up, less_down)) = bytes(run, at) else { continue };
            if (less_up, less_down) == (up, down) {
                continue;
            }
            let less = |less: u64, of: u64| 100.0 - 100.0 * less as f64 / (of as f64).max(1.0);
            let _ = writeln!(
                text,
                "    {:<18}{less_up:>8} ({:>4.1} % less){less_down:>10} ({:>4.1} % less)",
                run.way,
                less(less_up, up),
                less(less_down, down)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use record::result::{Call, Summary};

    use super::*;

    fn run(link: &str, way: &str, call_s: f64, request_bytes: u64) -> CallsRun {
        let call = Call {
            write_s: 0.001,
            call_s,
            parse_s: 0.002,
            request_bytes,
            answer_bytes: 300,
            sent: 1,
            error: None,
        };
        let calls = Calls {
            t_soap: Summary::of(&[0.003]),
            t_call: Summary::of(&[call_s]),
            measured: vec![call],
            ..Calls::default()
        };
        let mut cell = CallsCell {
            method: "nop".to_owned(),
            calls: Some(calls),
            made: 10,
            ..CallsCell::default()
        };
        cell.up.bytes_in = if link == "gprs" { 4000 } else { 0 };
        let (link, way) = (link.to_owned(), way.to_owned());
        CallsRun { link, way, cells: vec![cell], ..CallsRun::default() }
    }

    #[test]
    fn our_figures_stand_beside_the_papers() {
        let mut failed = run("gprs", "CoAP", 1.0, 300);
        failed.cells[0].calls = None;
        failed.cells[0].failure = Some("port 5683 is in use".to_owned());
        let runs = [
            run("same host", "HTTP", 0.004, 500),
            run("same host", "WSP+WBXML", 0.001, 200),
            run("gprs", "HTTP", 2.0, 500),
            run("gprs", "WSP", 1.0, 500),
            failed,
        ];
        let text = calls_text(&runs);
        for part in [
            "the paper: HTTP: t_call 250 ms",
            "the paper: a call took 6 to 8 s",
            "508 B of a call become 326 B",
            "CoAP: port 5683 is in use",
            "200 (60.0 % less)",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let wsp = text.lines().find(|line| line.starts_with("    WSP  ")).unwrap();
        let words: Vec<&str> = wsp.split_whitespace().collect();
        assert_eq!(
            words[1..],
            ["3.000", "1000.000", "1000.000", "1000.000", "0.50", "500+300", "400", "0"]
        );
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert_eq!(calls_text(&[]), "");
    }
}
