//! The campaigns that there are.

use record::figures::Overview;

use crate::page::{Page, encoded, escaped};

/// A campaign, or why it cannot be read.
pub type Listed = (String, Result<Overview, String>);

/// The page.
#[must_use]
pub fn page(folder: &str, campaigns: &[Listed]) -> String {
    let rows: String = campaigns.iter().map(|(name, found)| row(name, found)).collect();
    let table = if campaigns.is_empty() {
        format!(
            "<p>There are none in {}. Start one under <a href=\"/runs\">Runs</a>.</p>\n",
            escaped(folder)
        )
    } else {
        format!(
            "<div class=\"wide\"><table id=\"campaigns\">\n<thead><tr><th>Campaign</th>\
             <th>Title</th><th>Runs</th><th>Cells</th><th>Flagged</th><th>Failed</th><th>Seed</th>\
             <th>Date</th><th>Revision</th></tr></thead>\n<tbody>{rows}</tbody></table></div>\n"
        )
    };
    let options: String =
        campaigns.iter().map(|(name, _)| format!("<option>{}</option>", escaped(name))).collect();
    let body = format!(
        "<p class=\"hint\">Campaigns of <code>longwire lab run</code> in {}.</p>\n{table}\
         <section aria-labelledby=\"h-compare\"><h2 id=\"h-compare\">Compare two</h2>\n\
         <form action=\"/compare\" method=\"get\"><label>First <select name=\"first\">{options}\
         </select></label> <label>Second <select name=\"second\">{options}</select></label> \
         <button>Compare</button></form></section>\n",
        escaped(folder)
    );
    Page {
        title: "Results",
        area: "/results",
        script: "common.js",
        command: "longwire lab report results/NAME",
        body: &body,
    }
    .html()
}

fn row(name: &str, found: &Result<Overview, String>) -> String {
    let (shown, address) = (escaped(name), encoded(name));
    match found {
        Ok(of) => {
            let machine = &of.setting.machine;
            format!(
                "<tr><th scope=\"row\"><a href=\"/results/{address}\">{shown}</a></th><td>{}</td>\
                 <td>{} of {}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
                 <td>{}</td></tr>\n",
                escaped(&of.setting.title),
                of.done,
                of.planned,
                of.cells,
                of.flagged,
                of.failed,
                of.setting.seed,
                escaped(&machine.date),
                escaped(machine.revision.as_deref().unwrap_or("–")),
            )
        }
        Err(why) => format!(
            "<tr><th scope=\"row\">{shown}</th><td colspan=\"8\" class=\"fault\">{}</td></tr>\n",
            escaped(why)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_of_another_version_is_said_where_it_is() {
        let html = page("results", &[("old".to_string(), Err("schema <9>".to_string()))]);
        assert!(html.contains("schema &lt;9&gt;") && !html.contains("href=\"/results/old\""));
        assert!(page("results", &[]).contains("There are none in results"));
    }
}
