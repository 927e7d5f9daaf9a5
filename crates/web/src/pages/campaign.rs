//! One campaign: a picture of a parameter, and its cells as a table.

use record::campaign::Way;
use record::figures::{CellFigures, Overview};

use crate::cells::{Column, Row, View, choices, parameters};
use crate::page::{Page, encoded, escaped, shell};
use crate::plot::Plot;

/// Most rows of a page; filters find the others.
const MAX_ROWS: usize = 1000;

/// What the page shows.
#[derive(Debug)]
pub struct Campaign<'a> {
    /// Name of its directory.
    pub name: &'a str,
    /// What it is.
    pub overview: &'a Overview,
    /// Its cells.
    pub cells: &'a [CellFigures],
    /// What of it is shown.
    pub view: &'a View,
    /// There is a report.
    pub has_report: bool,
}

/// The page.
#[must_use]
pub fn page(campaign: &Campaign<'_>) -> String {
    let Campaign { name, overview, view, has_report, .. } = campaign;
    let address = encoded(name);
    let report = if *has_report {
        format!(" · <a href=\"/results/{address}/report.html\">The report in one file</a>")
    } else {
        String::new()
    };
    let query = escaped(&view.query());
    let body = format!(
        "<p>{}: {} of {} runs done, {} flagged, {} failed; seed {}.</p>\n{}\
         <form class=\"filters\" method=\"get\">\n{}<button>Show</button></form>\n\
         <figure class=\"wide\">{}</figure>\n\
         <p><a href=\"/api/v1/results/{address}/plot.svg?{query}\">This picture as SVG</a> · \
         <a href=\"/api/v1/results/{address}/export.csv?{query}\">This table as CSV</a>{report} · \
         the address of this page is what it shows</p>\n{}{}",
        escaped(&overview.setting.title),
        overview.done,
        overview.planned,
        overview.flagged,
        overview.failed,
        overview.setting.seed,
        advice(campaign),
        filters(campaign),
        plot(campaign, false),
        table(campaign),
        links(campaign),
    );
    Page {
        title: &format!("Campaign {name}"),
        area: "/results",
        script: "common.js",
        command: &format!("longwire lab report {}", shell(&format!("results/{name}"))),
        body: &body,
    }
    .html()
}

/// The picture: alone with rules of its own, or in a page.
#[must_use]
pub fn plot(campaign: &Campaign<'_>, alone: bool) -> String {
    let view = effective(campaign);
    let mut words = vec![view.parameter.clone()];
    words.extend(
        [&view.network, &view.way, &view.server].into_iter().filter(|w| !w.is_empty()).cloned(),
    );
    let title = format!("Mean time of an exchange by {}", words.join(", "));
    let cells = view.compared(campaign.cells);
    let references = &campaign.overview.references;
    Plot { title: &title, cells: &cells, references, alone }.svg()
}

/// A picture has one network, way and server; where none is chosen, the first.
fn effective(campaign: &Campaign<'_>) -> View {
    let mut view = campaign.view.clone();
    if view.parameter.is_empty() {
        view.parameter = parameters(campaign.cells).into_iter().next().unwrap_or_default();
    }
    let first = |all: Vec<&str>| all.first().map_or(String::new(), |one| (*one).to_string());
    if view.network.is_empty() && view.parameter != "network" {
        view.network = first(choices(campaign.cells, |of| &of.cell.network));
    }
    if view.way.is_empty() && view.parameter != "way" {
        view.way = Way::Direct.name().to_string();
    }
    if view.server.is_empty() {
        view.server = first(choices(campaign.cells, |of| &of.cell.server));
    }
    view
}

fn filters(campaign: &Campaign<'_>) -> String {
    let Campaign { cells, view, .. } = campaign;
    let parameters = parameters(cells);
    let known: Vec<&str> = parameters.iter().map(String::as_str).collect();
    let ways: Vec<&str> = Way::ALL
        .into_iter()
        .filter(|way| cells.iter().any(|of| of.cell.way == *way))
        .map(Way::name)
        .collect();
    let all = [
        ("parameter", known, &view.parameter, "first"),
        ("network", choices(cells, |of| &of.cell.network), &view.network, "all"),
        ("service", choices(cells, |of| &of.cell.service), &view.service, "all"),
        ("way", ways, &view.way, "all"),
        ("server", choices(cells, |of| &of.cell.server), &view.server, "all"),
    ];
    let lists: String = all
        .iter()
        .map(|(name, values, chosen, none)| {
            let options: String = values
                .iter()
                .map(|value| {
                    let is = if value == chosen { " selected" } else { "" };
                    format!("<option{is}>{}</option>", escaped(value))
                })
                .collect();
            format!(
                "<label>{name} <select name=\"{name}\"><option value=\"\">{none}</option>{options}\
                 </select></label>\n"
            )
        })
        .collect();
    format!(
        "{lists}<label>name has <input name=\"text\" value=\"{}\"></label>\n",
        escaped(&view.text)
    )
}

fn table(campaign: &Campaign<'_>) -> String {
    let Campaign { cells, view, name, .. } = campaign;
    let rows = view.rows(cells);
    let heads: String = [
        (Column::Name, "Cell"),
        (Column::Median, "Median s"),
        (Column::Plan, "95 % of the median"),
        (Column::Lost, "Lost"),
        (Column::Bytes, "Bytes an exchange"),
        (Column::Lateness, "Late p99"),
    ]
    .into_iter()
    .map(|(column, shown)| head(view, column, shown))
    .collect();
    let shown: String = rows.iter().take(MAX_ROWS).map(|row| line(name, row)).collect();
    let more = match rows.len() {
        count if count > MAX_ROWS => {
            format!("<p>The first {MAX_ROWS} of {count} cells: filter for the others.</p>\n")
        }
        count => format!("<p>{count} of {} cells.</p>\n", cells.len()),
    };
    format!(
        "{more}<div class=\"wide\"><table id=\"cells\">\n<thead><tr>{heads}<th>Runs</th></tr>\
         </thead>\n<tbody>\n{shown}</tbody></table></div>\n"
    )
}

fn head(view: &View, column: Column, shown: &str) -> String {
    if column == Column::Plan {
        return format!("<th>{shown}</th>");
    }
    let is_sorted = view.sort == column;
    let sorted = View { sort: column, descending: is_sorted && !view.descending, ..view.clone() };
    let order = match (is_sorted, view.descending) {
        (false, _) => "",
        (true, false) => " aria-sort=\"ascending\"",
        (true, true) => " aria-sort=\"descending\"",
    };
    format!("<th{order}><a href=\"?{}\">{shown}</a></th>", escaped(&sorted.query()))
}

fn line(campaign: &str, row: &Row<'_>) -> String {
    let number = |value: Option<f64>, places: usize| {
        value.map_or("–".to_string(), |value| format!("{value:.places$}"))
    };
    let interval =
        row.interval_s.map_or("–".to_string(), |(low, high)| format!("{low:.3} to {high:.3}"));
    let lost = row.lost.map_or("–".to_string(), |share| format!("{:.1} %", 100.0 * share));
    let bad = row.of.runs.len() - row.of.good().count();
    let bad = if bad > 0 { format!(" ({bad} not used)") } else { String::new() };
    format!(
        "<tr><th scope=\"row\"><a href=\"/results/{}/cells/{}\">{}</a></th><td>{}</td>\
         <td>{interval}</td><td>{lost}</td><td>{}</td><td>{} µs</td><td>{}{bad}</td></tr>\n",
        encoded(campaign),
        row.place,
        escaped(&row.of.cell.name),
        number(row.median_s, 3),
        number(row.wire_bytes, 0),
        row.lateness_us,
        row.of.runs.len(),
    )
}

/// What others recommend, beside what was measured here.
fn advice(campaign: &Campaign<'_>) -> String {
    let about = escaped(&campaign.overview.setting.about);
    let theirs: String = campaign
        .overview
        .advice
        .iter()
        .map(|of| format!("<dt>{}</dt><dd>{}</dd>", escaped(&of.network), escaped(&of.text)))
        .collect();
    let theirs = match theirs.as_str() {
        "" => String::new(),
        all => {
            format!("<details><summary>What others recommend</summary><dl>{all}</dl></details>\n")
        }
    };
    format!("<details><summary>About</summary><p>{about}</p></details>\n{theirs}")
}

fn links(campaign: &Campaign<'_>) -> String {
    let rows: String = campaign
        .overview
        .networks
        .iter()
        .map(|network| {
            let settings: Vec<String> =
                network.settings.iter().map(|(key, value)| format!("{key} {value}")).collect();
            format!(
                "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"hint\">{}</td></tr>\n",
                escaped(&network.name),
                escaped(&network.source),
                escaped(&settings.join(", "))
            )
        })
        .collect();
    format!(
        "<details><summary>The links</summary><div class=\"wide\"><table><thead><tr><th>Network\
         </th><th>Source</th><th>Settings</th></tr></thead>\n{rows}</table></div></details>\n"
    )
}

/// The rows of the table as CSV (RFC 4180).
#[must_use]
pub fn csv(campaign: &Campaign<'_>) -> String {
    let mut text =
        "cell,network,server,service,way,settings,runs,used,median_s,low_s,high_s,lost,wire_bytes,\
         lateness_p99_us\r\n"
            .to_string();
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for row in campaign.view.rows(campaign.cells) {
        let cell = &row.of.cell;
        let (low, high) = row.interval_s.unzip();
        let fields = [
            cell.name.clone(),
            cell.network.clone(),
            cell.server.clone(),
            cell.service.clone(),
            cell.way.name().to_string(),
            cell.variant(),
            row.of.runs.len().to_string(),
            row.of.good().count().to_string(),
            number(row.median_s),
            number(low),
            number(high),
            number(row.lost),
            number(row.wire_bytes),
            row.lateness_us.to_string(),
        ];
        let line: Vec<String> = fields.into_iter().map(|field| quoted(&field)).collect();
        text += &(line.join(",") + "\r\n");
    }
    text
}

/// In quotes where it has to be. What a spreadsheet would take for a formula gets an apostrophe.
fn quoted(field: &str) -> String {
    let is_formula = field.starts_with(['=', '+', '@', '\t'])
        || (field.starts_with('-') && field.parse::<f64>().is_err());
    let field = if is_formula { format!("'{field}") } else { field.to_string() };
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field
    }
}

#[cfg(test)]
mod tests {
    use record::campaign::Setting;

    use super::*;
    use crate::cells::tests::cells;

    fn overview() -> Overview {
        Overview {
            setting: Setting { title: "T <b>".to_string(), ..Setting::default() },
            networks: Vec::new(),
            references: Vec::new(),
            advice: Vec::new(),
            cells: 6,
            planned: 12,
            done: 10,
            flagged: 0,
            failed: 1,
        }
    }

    #[test]
    fn a_page_has_the_picture_the_filters_and_the_rows() {
        let (cells, overview) = (cells(), overview());
        let view = View::read(&crate::page::query("network=satcom&sort=median"));
        let campaign = Campaign {
            name: "a b",
            overview: &overview,
            cells: &cells,
            view: &view,
            has_report: true,
        };
        let html = page(&campaign);
        assert!(html.contains("10 of 12 runs done") && html.contains("T &lt;b&gt;"));
        assert!(html.contains("<option selected>satcom</option>"));
        assert!(html.contains("href=\"/results/a%20b/cells/1\""));
        assert!(
            html.contains("aria-sort=\"ascending\"><a href=\"?network=satcom&amp;sort=-median\"")
        );
        assert!(html.contains("by buffer, satcom, direct, tracks"));
        assert!(html.contains("3 of 6 cells") && html.contains("report.html"));
    }

    #[test]
    fn a_table_is_written_as_others_read_it() {
        let (cells, overview) = (cells(), overview());
        let view = View::read(&crate::page::query("text=chunking"));
        let campaign = Campaign {
            name: "x",
            overview: &overview,
            cells: &cells,
            view: &view,
            has_report: false,
        };
        let text = csv(&campaign);
        let lines: Vec<&str> = text.split("\r\n").collect();
        assert_eq!(lines.len(), 3);
        let name = "satcom/tracks/soap/direct/chunking=on,satcom,tracks,soap,direct,chunking=on";
        assert_eq!(lines[1], format!("{name},2,2,3.05,,,0,1000,0"));
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(quoted("=1+1"), "'=1+1");
        assert_eq!(quoted("-1.5"), "-1.5");
    }
}
