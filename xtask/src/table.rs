//! The table of crates in ARCHITECTURE.md.

use crate::finding::Report;

/// Where the table is.
pub(crate) const MAP: &str = "ARCHITECTURE.md";
const HEADER: [&str; 4] = ["crate", "holds", "in-tree dependencies", "outside world"];

/// One crate as the table has it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// Folders of the crate that the row names, without the slash.
    pub(crate) folders: Vec<String>,
    pub(crate) in_tree: Vec<String>,
    /// Touches no socket, file, clock or ambient randomness.
    pub(crate) is_pure: bool,
    /// Permitted libraries; a `*` at the end stands for any rest.
    pub(crate) outside: Vec<String>,
    pub(crate) line: usize,
}

/// The rows, in order; what does not parse goes to the report.
pub(crate) fn parse(text: &str, report: &mut Report) -> Vec<Row> {
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    if !lines.any(|(_, line)| cells(line).is_some_and(|cells| cells == HEADER)) {
        report.add(MAP, 1, format!("no table of crates; its header is | {} |", HEADER.join(" | ")));
        return Vec::new();
    }
    let body = lines.skip(1).map_while(|(at, line)| Some((at, cells(line)?)));
    let mut rows: Vec<Row> = Vec::new();
    for (line, cells) in body {
        match row(&cells, line) {
            Ok(row) if rows.iter().any(|other| other.name == row.name) => {
                report.add(MAP, line, format!("`{}` has two rows; merge them", row.name));
            }
            Ok(row) => rows.push(row),
            Err(what) => report.add(MAP, line, what),
        }
    }
    rows
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

fn row(cells: &[&str], line: usize) -> Result<Row, String> {
    let [name, holds, in_tree, outside] = cells else {
        return Err(format!("{} cells in a row of the table; it has 4", cells.len()));
    };
    let name = match quoted(name).as_slice() {
        [name] => name.clone(),
        _ => return Err(format!("`{name}` is not one crate in back-quotes")),
    };
    let in_tree = match quoted(in_tree) {
        names if !names.is_empty() || *in_tree == "none" => names,
        _ => {
            return Err(format!("{name}: `{in_tree}` is neither `none` nor crates in back-quotes"));
        }
    };
    let kind = outside.split([':', ',', ' ']).next().unwrap_or_default();
    let is_pure = match kind {
        "pure" => true,
        "shell" => false,
        _ => return Err(format!("{name}: `{kind}` is neither `pure` nor `shell`")),
    };
    let folders = quoted(holds);
    let folders = folders.iter().filter_map(|word| word.strip_suffix('/')).map(str::to_owned);
    Ok(Row { folders: folders.collect(), in_tree, is_pure, outside: quoted(outside), name, line })
}

/// The words in back-quotes; several in one pair count apart.
pub(crate) fn quoted(text: &str) -> Vec<String> {
    let spans = text.split('`').skip(1).step_by(2);
    spans.flat_map(str::split_whitespace).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
# Map

| crate | holds | in-tree dependencies | outside world |
| --- | --- | --- | --- |
| `proto` | machines: `stream/ burst/` | none | pure: `bytes` |
| `proxy` | a shell | `proto`, `codec` | shell: `tokio*` `hyper` |

| `other` | table |
";

    #[test]
    fn rows_are_read() {
        let mut report = Report::new("map");
        let rows = parse(TABLE, &mut report);
        assert_eq!(report.into_findings(), []);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].folders, ["stream", "burst"]);
        assert_eq!((rows[0].is_pure, rows[0].line), (true, 5));
        assert!(rows[0].in_tree.is_empty());
        assert_eq!(rows[1].in_tree, ["proto", "codec"]);
        assert_eq!(rows[1].outside, ["tokio*", "hyper"]);
    }

    #[test]
    fn what_does_not_parse_is_reported_with_its_line() {
        let of = |from: &str, to: &str| {
            let mut report = Report::new("map");
            parse(&TABLE.replace(from, to), &mut report);
            report.into_findings().into_iter().map(|f| (f.line, f.what)).collect::<Vec<_>>()
        };
        assert!(of("| holds |", "| contents |")[0].1.starts_with("no table of crates"));
        assert_eq!(of("pure: `bytes`", "maybe")[0].0, 5);
        assert_eq!(of("| none |", "| many |")[0].0, 5);
        assert_eq!(of("`proxy`", "`proto`")[0], (6, "`proto` has two rows; merge them".into()));
        assert_eq!(of("| a shell ", "")[0].1, "3 cells in a row of the table; it has 4");
    }
}
