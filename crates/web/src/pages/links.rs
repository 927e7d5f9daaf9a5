//! The labs that are up.

use link::Direction;
use serde_json::Value;

use crate::page::{Page, encoded, escaped};
use crate::sample::settings;

/// What the page shows.
#[derive(Debug)]
pub struct Links<'a> {
    /// Status of each lab that is up.
    pub up: &'a [Value],
    /// Names of labs that were killed.
    pub killed: &'a [String],
    /// Names of links, each with where its figures come from.
    pub named: &'a [(String, String)],
    /// Why the labs cannot be listed.
    pub fault: Option<&'a str>,
}

/// The page.
#[must_use]
pub fn page(links: &Links<'_>) -> String {
    let body = format!(
        "<p id=\"doctor\" class=\"doctor\" hidden></p>\n\
         <section aria-labelledby=\"up\">\n<h2 id=\"up\">Labs that are up</h2>\n\
         <div id=\"labs\" data-refresh=\"2000\">\n{}</div>\n</section>\n\
         <section aria-labelledby=\"new\">\n<h2 id=\"new\">A new lab</h2>\n{}</section>\n\
         <section aria-labelledby=\"names\">\n<h2 id=\"names\">Links that have names</h2>\n\
         <div class=\"wide\"><table id=\"presets\">\n<thead><tr><th>Name</th>\
         <th>Where the figures come from</th></tr></thead>\n<tbody>\n{}</tbody></table></div>\n\
         </section>",
        labs(links),
        form(links.named),
        links.named.iter().map(|(name, source)| named(name, source)).collect::<String>(),
    );
    Page {
        title: "Links",
        area: "/",
        script: "links.js",
        command: "longwire lab list",
        body: &body,
    }
    .html()
}

fn labs(links: &Links<'_>) -> String {
    if let Some(fault) = links.fault {
        return format!("<p class=\"fault\">{}</p>\n", escaped(fault));
    }
    let killed: String = links
        .killed
        .iter()
        .map(|name| {
            format!("<p>{} was killed; the next lab removes what it left.</p>\n", escaped(name))
        })
        .collect();
    if links.up.is_empty() {
        return format!("{killed}<p>None is up. Start one below.</p>\n");
    }
    let rows: String = links.up.iter().map(row).collect();
    format!(
        "{killed}<div class=\"wide\"><table>\n<thead><tr><th>Lab</th><th>Link</th><th>Way</th>\
         <th>Rate</th><th>Delay, each way</th><th>Loss</th><th>Packets</th><th>Dropped</th>\
         <th>Late p99</th><th>Do</th></tr></thead>\n{rows}</table></div>\n"
    )
}

/// A lab takes two lines, one for each direction.
fn row(lab: &Value) -> String {
    let name = lab["name"].as_str().unwrap_or_default();
    let link = escaped(lab["link"].as_str().unwrap_or_default());
    let changed = match lab["changed"].as_array().map_or(0, Vec::len) {
        0 => String::new(),
        _ => " (changed)".to_string(),
    };
    let [ab, ba] = Direction::BOTH.map(|direction| cells(lab, direction));
    let (shown, address) = (escaped(name), encoded(name));
    format!(
        "<tbody><tr><th scope=\"rowgroup\" rowspan=\"2\"><a href=\"/links/{address}\">{shown}</a>\
         </th><td rowspan=\"2\">{link}{changed}</td>{ab}<td rowspan=\"2\">\
         <button type=\"button\" data-down=\"{shown}\">End {shown}</button></td></tr>\n\
         <tr>{ba}</tr></tbody>\n"
    )
}

fn cells(lab: &Value, direction: Direction) -> String {
    let of = settings(lab, direction);
    let text = |key: &str| escaped(of.get(key).and_then(Value::as_str).unwrap_or("–"));
    let side = &lab[direction.name()];
    let count = |value: &Value| value.as_u64().map_or("–".to_string(), |count| count.to_string());
    let dropped = side["traffic"]["dropped"].as_object().map_or("–".to_string(), |all| {
        all.values().filter_map(Value::as_u64).sum::<u64>().to_string()
    });
    let late =
        side["lateness"]["p99_us"].as_u64().map_or("–".to_string(), |us| format!("{us} µs"));
    format!(
        "<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{dropped}</td><td>{late}</td>",
        arrow(direction),
        if of.get("trace").is_some_and(|trace| trace != "none") {
            "trace".to_string()
        } else {
            text("rate")
        },
        text("delay"),
        text("loss"),
        count(&side["traffic"]["packets_in"]),
    )
}

/// A direction as people write it.
pub(super) fn arrow(direction: Direction) -> &'static str {
    match direction {
        Direction::Ab => "a → b",
        Direction::Ba => "b → a",
    }
}

fn form(named: &[(String, String)]) -> String {
    let options: String =
        named.iter().map(|(name, _)| format!("<option>{}</option>", escaped(name))).collect();
    format!(
        "<form id=\"new-lab\">\n\
         <label>Name <input name=\"name\" required maxlength=\"32\" autocomplete=\"off\"></label>\n\
         <label>Link <select name=\"link\">{options}</select></label>\n\
         <label>Seed <input name=\"seed\" inputmode=\"numeric\" value=\"1\"></label>\n\
         <button>Start</button>\n</form>\n"
    )
}

fn named(name: &str, source: &str) -> String {
    format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escaped(name), escaped(source))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lab_is_listed_with_both_directions_and_nothing_is_executed() {
        let lab = json!({
            "name": "field", "link": "<b>", "changed": ["delay = 1 ms"],
            "ab": {"rate": "250 kbit/s", "delay": "550 ms", "loss": "0 %",
                "traffic": {"packets_in": 7, "dropped": {"queue": 2, "loss": 1}},
                "lateness": {"p99_us": 61}},
            "ba": {"trace": "lte.trace", "delay": "5 ms", "loss": "1 %"},
        });
        let named = [("los".to_string(), "IST-118".to_string())];
        let all = Links { up: &[lab], killed: &[], named: &named, fault: None };
        let html = page(&all);
        assert!(html.contains("<a href=\"/links/field\">field</a>"), "{html}");
        assert!(html.contains("&lt;b&gt; (changed)") && !html.contains("<b>"));
        assert!(
            html.contains("<td>250 kbit/s</td><td>550 ms</td><td>0 %</td><td>7</td><td>3</td>")
        );
        assert!(html.contains("<td>trace</td><td>5 ms</td>"));
        let none = page(&Links { up: &[], killed: &["old".to_string()], fault: None, named: &[] });
        assert!(none.contains("old was killed") && none.contains("None is up"));
        let fault = page(&Links { up: &[], killed: &[], fault: Some("no <disk>"), named: &[] });
        assert!(fault.contains("no &lt;disk&gt;"));
    }
}
