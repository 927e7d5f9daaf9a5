//! Two campaigns cell by cell.

use report::analysis::Repeatability;

use crate::page::{Page, escaped, shell};

/// The page: what `longwire lab compare` finds.
#[must_use]
pub fn page(first: &str, second: &str, found: &Repeatability) -> String {
    let holding = found.cells.iter().filter(|cell| cell.holds).count();
    let share = found.share.map_or("–".to_string(), |share| format!("{:.1} %", 100.0 * share));
    let mut cells: Vec<_> = found.cells.iter().collect();
    cells.sort_by_key(|cell| cell.holds);
    let rows: String = cells
        .into_iter()
        .map(|cell| {
            let verdict = if cell.holds { "same" } else { "✗ differs" };
            let ((one, other), (low, high)) = (cell.median_s, cell.interval_s);
            format!(
                "<tr><th scope=\"row\">{}</th><td>{one:.4}</td><td>{other:.4}</td>\
                 <td>{low:+.4} to {high:+.4}</td><td>{} and {}</td><td>{verdict}</td></tr>\n",
                escaped(&cell.name),
                cell.runs.0,
                cell.runs.1,
            )
        })
        .collect();
    let left_out = |names: &[String], why: &str| match names.len() {
        0 => String::new(),
        count => format!("<p>Not counted, {why}: {count} cells.</p>\n"),
    };
    let body = format!(
        "<p id=\"verdict\">{holding} of {} cells ({share}): the 95 % interval of the difference of \
         medians contains 0.</p>\n{}{}<div class=\"wide\"><table id=\"compared\"><thead><tr>\
         <th>Cell</th><th>{}, s</th><th>{}, s</th><th>Difference, 95 %</th><th>Runs</th><th></th>\
         </tr></thead>\n{rows}</table></div>\n",
        found.cells.len(),
        left_out(&found.too_few, "fewer than six runs"),
        left_out(&found.only_one, "in one only"),
        escaped(first),
        escaped(second),
    );
    Page {
        title: &format!("{first} and {second}"),
        area: "/results",
        script: "common.js",
        command: &format!(
            "longwire lab compare {} {}",
            shell(&format!("results/{first}")),
            shell(&format!("results/{second}"))
        ),
        body: &body,
    }
    .html()
}
