//! Cells of a campaign: chosen, put in order, and one parameter against another.

use record::campaign::Way;
use record::figures::CellFigures;

use crate::page::{encoded, parameter};
use crate::stats::{interval, median};

/// A column of the table that rows can be put in the order of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Order of the plan.
    Plan,
    /// Name.
    Name,
    /// Median time.
    Median,
    /// Exchanges that failed or were cut off.
    Lost,
    /// Bytes on the wire.
    Bytes,
    /// Packets that were late.
    Lateness,
}

impl Column {
    /// All, with the names that addresses have for them.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Plan, "plan"),
        (Self::Name, "name"),
        (Self::Median, "median"),
        (Self::Lost, "lost"),
        (Self::Bytes, "bytes"),
        (Self::Lateness, "lateness"),
    ];
}

/// What of a campaign is shown: all that stands in the address of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Only cells of this network; all when empty, as with the others.
    pub network: String,
    /// Only this service.
    pub service: String,
    /// Only this server.
    pub server: String,
    /// Only this way.
    pub way: String,
    /// What the picture shows on its axis: a setting, `way` or `network`.
    pub parameter: String,
    /// Only cells whose name has this in it.
    pub text: String,
    /// Order of the rows.
    pub sort: Column,
    /// From the greatest on.
    pub descending: bool,
}

/// A cell with its place in the plan and what its runs come to.
#[derive(Debug)]
pub struct Row<'a> {
    /// Its place in the plan, which is its number in addresses.
    pub place: usize,
    /// The cell.
    pub of: &'a CellFigures,
    /// Median of the runs' mean times.
    pub median_s: Option<f64>,
    /// Where the median of all runs is, by 95 %.
    pub interval_s: Option<(f64, f64)>,
    /// Share of exchanges that failed or were cut off, 0 to 1.
    pub lost: Option<f64>,
    /// IP bytes of an exchange, both ways.
    pub wire_bytes: Option<f64>,
    /// The greatest p99 of its runs.
    pub lateness_us: u64,
}

impl View {
    /// Reads the query of an address; what is not known of it is left out.
    #[must_use]
    pub fn read(query: &[(String, String)]) -> Self {
        let text = |key: &str| parameter(query, key).unwrap_or_default().to_string();
        let sort = text("sort");
        let (name, descending) = match sort.strip_prefix('-') {
            Some(name) => (name, true),
            None => (sort.as_str(), false),
        };
        let found = Column::ALL.into_iter().find(|(_, known)| *known == name);
        Self {
            network: text("network"),
            service: text("service"),
            server: text("server"),
            way: text("way"),
            parameter: text("parameter"),
            text: text("text"),
            sort: found.map_or(Column::Plan, |(column, _)| column),
            descending,
        }
    }

    /// The query that is read so.
    #[must_use]
    pub fn query(&self) -> String {
        let name = Column::ALL.into_iter().find(|(column, _)| *column == self.sort);
        let sort = name.filter(|(column, _)| *column != Column::Plan).map_or("", |(_, name)| name);
        let sort = if self.descending { format!("-{sort}") } else { sort.to_string() };
        let all = [
            ("network", &self.network),
            ("service", &self.service),
            ("server", &self.server),
            ("way", &self.way),
            ("parameter", &self.parameter),
            ("text", &self.text),
            ("sort", &sort),
        ];
        let said = all.iter().filter(|(_, value)| !value.is_empty());
        said.map(|(key, value)| format!("{key}={}", encoded(value))).collect::<Vec<_>>().join("&")
    }

    /// The rows that are asked for, in the order that is.
    #[must_use]
    pub fn rows<'a>(&self, cells: &'a [CellFigures]) -> Vec<Row<'a>> {
        let all = cells.iter().enumerate().filter(|(_, of)| self.takes(of, true));
        let mut rows: Vec<Row<'_>> = all.map(|(place, of)| row(place, of)).collect();
        let number = |row: &Row<'_>| match self.sort {
            Column::Plan | Column::Name => None,
            Column::Median => row.median_s,
            Column::Lost => row.lost,
            Column::Bytes => row.wire_bytes,
            Column::Lateness => Some(row.lateness_us as f64),
        };
        match self.sort {
            Column::Plan => {}
            Column::Name => rows.sort_by(|one, other| one.of.cell.name.cmp(&other.of.cell.name)),
            // What has no value comes last, in either order.
            _ => rows.sort_by(|one, other| match (number(one), number(other)) {
                (Some(one), Some(other)) if self.descending => other.total_cmp(&one),
                (Some(one), Some(other)) => one.total_cmp(&other),
                (one, other) => other.is_some().cmp(&one.is_some()),
            }),
        }
        if self.descending && matches!(self.sort, Column::Plan | Column::Name) {
            rows.reverse();
        }
        rows
    }

    /// The cells of the picture: those that differ from the defaults in the parameter alone, each
    /// with its value of it. The parameter's own filter does not count.
    #[must_use]
    pub fn compared<'a>(&self, cells: &'a [CellFigures]) -> Vec<(String, Row<'a>)> {
        let all = cells.iter().enumerate().filter(|(_, of)| self.takes(of, false));
        all.filter_map(|(place, of)| {
            let cell = &of.cell;
            let only = |key: &str| cell.settings.iter().all(|(name, _)| name == key);
            let value = match self.parameter.as_str() {
                "way" => only("").then(|| cell.way.name().to_string())?,
                "network" => only("").then(|| cell.network.clone())?,
                key => {
                    let of_key = cell.settings.iter().find(|(name, _)| name == key);
                    let value = of_key.map_or("default", |(_, value)| value.as_str());
                    only(key).then(|| value.to_string())?
                }
            };
            Some((value, row(place, of)))
        })
        .collect()
    }

    fn takes(&self, of: &CellFigures, with_text: bool) -> bool {
        let cell = &of.cell;
        let is = |wanted: &str, is: &str| wanted.is_empty() || wanted == is;
        let (of_network, of_way) = match (with_text, self.parameter.as_str()) {
            (false, "network") => (true, is(&self.way, cell.way.name())),
            (false, "way") => (is(&self.network, &cell.network), true),
            _ => (is(&self.network, &cell.network), is(&self.way, cell.way.name())),
        };
        of_network
            && of_way
            && is(&self.service, &cell.service)
            && is(&self.server, &cell.server)
            && (!with_text || cell.name.contains(&self.text))
    }
}

/// What the runs of a cell come to.
#[must_use]
pub fn row(place: usize, of: &CellFigures) -> Row<'_> {
    let times_s = of.times_s();
    let sum =
        |count: fn(&record::figures::RunFigures) -> u64| -> u64 { of.good().map(count).sum() };
    let exchanges = sum(|run| run.exchanges);
    let share = |count: u64| (exchanges > 0).then(|| count as f64 / exchanges as f64);
    Row {
        place,
        of,
        median_s: median(&times_s),
        interval_s: interval(&times_s),
        lost: share(sum(|run| run.errors + run.censored)),
        wire_bytes: share(sum(|run| run.wire_bytes)),
        lateness_us: of.runs.iter().map(|run| run.lateness_p99_us).max().unwrap_or(0),
    }
}

/// What can be chosen: the values of all cells, each once, in the order of the plan.
#[must_use]
pub fn choices<'a>(
    cells: &'a [CellFigures],
    of: impl Fn(&'a CellFigures) -> &'a str,
) -> Vec<&'a str> {
    let mut all = Vec::new();
    for cell in cells {
        let value = of(cell);
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

/// What a picture can have on its axis.
#[must_use]
pub fn parameters(cells: &[CellFigures]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let of = |cells: &[CellFigures]| -> Vec<String> {
        let single = cells.iter().filter(|of| of.cell.settings.len() == 1);
        single.flat_map(|of| of.cell.settings.iter().map(|(name, _)| name.clone())).collect()
    };
    for name in of(cells) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all.sort();
    if Way::ALL.iter().filter(|way| cells.iter().any(|of| of.cell.way == **way)).count() > 1 {
        all.push("way".to_string());
    }
    if choices(cells, |of| &of.cell.network).len() > 1 {
        all.push("network".to_string());
    }
    all
}

#[cfg(test)]
pub(crate) mod tests {
    use record::campaign::Cell;
    use record::figures::RunFigures;

    use super::*;

    /// A cell whose runs took these times.
    pub(crate) fn cell(network: &str, way: Way, setting: &str, times_s: &[f64]) -> CellFigures {
        let settings: Vec<(String, String)> = setting
            .split_once('=')
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .into_iter()
            .collect();
        let name = format!("{network}/tracks/soap/{}/{setting}", way.name());
        let cell = Cell {
            name,
            network: network.to_string(),
            server: "tracks".to_string(),
            service: "soap".to_string(),
            way,
            settings,
            groups: Vec::new(),
            runs: Vec::new(),
        };
        let run = |time_s: &f64| RunFigures {
            mean_s: Some(*time_s),
            exchanges: 4,
            errors: u64::from(*time_s > 9.0),
            wire_bytes: 4000,
            ..RunFigures::default()
        };
        CellFigures { cell, runs: times_s.iter().map(run).collect() }
    }

    pub(crate) fn cells() -> Vec<CellFigures> {
        vec![
            cell("satcom", Way::Direct, "", &[6.0, 6.2, 6.1]),
            cell("satcom", Way::Direct, "chunking=on", &[3.0, 3.1]),
            cell("satcom", Way::Longwire, "", &[1.0, 1.5]),
            cell("los", Way::Direct, "", &[0.2]),
            cell("los", Way::Direct, "buffer=8192", &[10.0]),
            cell("cnr", Way::Direct, "", &[]),
        ]
    }

    #[test]
    fn addresses_say_all_of_a_view() {
        let query = crate::page::query("network=los&sort=-median&text=a%26b&parameter=way&x=1");
        let view = View::read(&query);
        assert_eq!((view.sort, view.descending), (Column::Median, true));
        assert_eq!(View::read(&crate::page::query(&view.query())), view);
        assert_eq!(View::read(&[]).query(), "");
    }

    #[test]
    fn rows_are_chosen_and_put_in_order() {
        let cells = cells();
        let places = |query: &str| -> Vec<usize> {
            let view = View::read(&crate::page::query(query));
            view.rows(&cells).iter().map(|row| row.place).collect()
        };
        assert_eq!(places(""), [0, 1, 2, 3, 4, 5]);
        assert_eq!(places("network=satcom&way=direct"), [0, 1]);
        assert_eq!(places("text=chunking"), [1]);
        assert_eq!(places("sort=median"), [3, 2, 1, 0, 4, 5]);
        assert_eq!(places("sort=-median"), [4, 0, 1, 2, 3, 5]);
        assert_eq!(places("sort=-lost")[0], 4);
        assert_eq!(places("network=none"), Vec::<usize>::new());
    }

    #[test]
    fn a_picture_has_cells_that_differ_in_one_thing() {
        let cells = cells();
        let compared = |query: &str| -> Vec<(String, usize)> {
            let view = View::read(&crate::page::query(query));
            view.compared(&cells).into_iter().map(|(value, row)| (value, row.place)).collect()
        };
        let pair = |value: &str, place| (value.to_string(), place);
        assert_eq!(
            compared("network=satcom&way=direct&parameter=chunking"),
            [pair("default", 0), pair("on", 1)]
        );
        assert_eq!(
            compared("network=satcom&way=direct&parameter=way"),
            [pair("direct", 0), pair("longwire", 2)]
        );
        assert_eq!(compared("way=direct&parameter=network").len(), 3);
        assert_eq!(parameters(&cells), ["buffer", "chunking", "way", "network"]);
        assert_eq!(choices(&cells, |of| &of.cell.network), ["satcom", "los", "cnr"]);
        let lost = row(4, &cells[4]);
        assert_eq!((lost.lost, lost.wire_bytes), (Some(0.25), Some(1000.0)));
    }
}
