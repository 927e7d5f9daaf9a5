//! One lab: its link as a picture and a table of parameters, what it does, what is measured on it.

use link::Direction;
use serde_json::Value;

use super::links::arrow;
use super::topology;
use crate::page::{Page, encoded, escaped};
use crate::sample::settings;

/// What the page shows.
#[derive(Debug)]
pub struct Link<'a> {
    /// The lab's status.
    pub status: &'a Value,
    /// Names of presets.
    pub presets: &'a [String],
    /// Names of saved links.
    pub saved: &'a [String],
}

/// The page.
#[must_use]
pub fn page(link: &Link<'_>) -> String {
    let name = link.status["name"].as_str().unwrap_or_default();
    let body = format!(
        "<div id=\"lab\" data-lab=\"{}\"></div>\n<p>{}</p>\n\
         <section aria-label=\"Picture of the link\" class=\"wide\">{}</section>\n\
         <div class=\"columns\">\n\
         <section aria-labelledby=\"h-set\"><h2 id=\"h-set\">Parameters</h2>\n{}</section>\n\
         <div>\n<section aria-labelledby=\"h-now\"><h2 id=\"h-now\">What it does now</h2>\n{}\
         </section>\n\
         <section aria-labelledby=\"h-probe\"><h2 id=\"h-probe\">Measured here</h2>\n{PROBES}\
         </section>\n\
         <section aria-labelledby=\"h-sets\"><h2 id=\"h-sets\">Named links</h2>\n{}</section>\n\
         <section aria-labelledby=\"h-log\"><h2 id=\"h-log\">Changes</h2>\n\
         <ol id=\"log\" class=\"log\" reversed></ol></section>\n</div>\n</div>",
        escaped(name),
        summary(link.status),
        topology::svg(link.status),
        parameters(link.status),
        now(),
        sets(link),
    );
    Page {
        title: &format!("Link {name}"),
        area: "/",
        script: "link.js",
        command: &format!("longwire lab set {name} 'delay=250 ms'"),
        body: &body,
    }
    .html()
}

fn summary(status: &Value) -> String {
    let text = |key: &str| escaped(status[key].as_str().unwrap_or("–"));
    let priority = match status["real_time"].as_bool() {
        Some(true) => "real-time priority",
        Some(false) => "no real-time priority: delays are true only while the machine is idle",
        None => "the kernel's own emulation",
    };
    format!(
        "Link <strong>{}</strong>, emulated by {} over {} with seed {}; {priority}.",
        text("link"),
        text("emulator"),
        text("device"),
        status["seed"].as_u64().unwrap_or_default()
    )
}

fn parameters(status: &Value) -> String {
    let sides = Direction::BOTH.map(|direction| settings(status, direction));
    let alike = if sides[0] == sides[1] { " checked" } else { "" };
    let rows: String = link::keys().iter().map(|key| row(key, &sides)).collect();
    format!(
        "<form id=\"settings\" autocomplete=\"off\">\n\
         <p><label><input type=\"checkbox\" id=\"alike\"{alike}> both directions alike</label> \
         <button>Set</button> <button type=\"reset\">Discard</button></p>\n\
         <p id=\"round-trip\" class=\"hint\"></p>\n\
         <table class=\"parameters\">\n<thead><tr><th>Parameter</th><th>a → b</th><th>b → a</th>\
         </tr></thead>\n<tbody>\n{rows}</tbody></table>\n\
         <datalist id=\"shapes\">{}</datalist>\n<button>Set</button>\n</form>\n{}",
        link::Distribution::ALL
            .iter()
            .map(|shape| format!("<option>{}</option>", shape.name()))
            .collect::<String>(),
        shapes(),
    )
}

fn row(key: &link::Key, sides: &[crate::sample::Settings; 2]) -> String {
    let name = key.name;
    let fields = Direction::BOTH.map(|direction| {
        let side = direction.name();
        let of = &sides[usize::from(direction == Direction::Ba)];
        let value = escaped(of.get(name).and_then(Value::as_str).unwrap_or_default());
        let list = if name == "distribution" { " list=\"shapes\"" } else { "" };
        format!(
            "<td><input id=\"f-{side}-{name}\" data-side=\"{side}\" data-key=\"{name}\" \
             aria-label=\"{name}, {side_shown}\" aria-describedby=\"d-{name}\" \
             value=\"{value}\"{list}></td>",
            side_shown = arrow(direction),
        )
    });
    let hint = escaped(key.expected);
    format!(
        "<tr><th scope=\"row\">{name}<span class=\"hint\">{}</span></th>{}</tr>\n\
         <tr class=\"expected\"><td colspan=\"3\" id=\"d-{name}\" class=\"hint\">{hint}</td>\
         </tr>\n",
        escaped(key.about),
        fields.concat(),
    )
}

/// The four shapes of jitter, drawn.
fn shapes() -> String {
    let curves = [
        ("uniform", "M4 36V12H76V36"),
        ("normal", "M4 36C26 36 30 8 40 8S54 36 76 36"),
        ("pareto", "M4 36H14V6C20 30 40 35 76 36"),
        ("paretonormal", "M4 36C18 36 22 8 30 8S46 33 76 36"),
    ];
    let drawn: String = curves
        .iter()
        .map(|(name, path)| {
            format!(
                "<figure><svg viewBox=\"0 0 80 40\" role=\"img\" aria-label=\"{name}\">\
                 <path class=\"curve\" d=\"{path}\"/></svg><figcaption>{name}</figcaption></figure>"
            )
        })
        .collect();
    format!(
        "<details><summary>The shapes of jitter</summary><div class=\"shapes\">{drawn}</div>\
         </details>\n"
    )
}

/// What the charts show, once more as numbers.
fn now() -> String {
    const ROWS: [(&str, &str); 6] = [
        ("in_bps", "offered"),
        ("out_bps", "delivered"),
        ("delay_ms", "delay with the queue"),
        ("loss", "lost or dropped"),
        ("queue_bytes", "queue"),
        ("late_us", "lateness p99"),
    ];
    let rows: String = ROWS
        .iter()
        .map(|(key, shown)| {
            format!(
                "<tr><th scope=\"row\">{shown}</th><td id=\"n-ab-{key}\">–</td>\
                 <td id=\"n-ba-{key}\">–</td></tr>\n"
            )
        })
        .collect();
    format!(
        "<canvas id=\"chart\" role=\"img\" aria-label=\"Rate, delay, loss, queue and lateness of \
         the last minutes; the numbers of now are in the table below\"></canvas>\n\
         <p id=\"cursor\" class=\"hint\">a → b is the full line, b → a the dashed one. Point at \
         the chart for the values of a moment.</p>\n\
         <table><thead><tr><th>Now</th><th>a → b</th><th>b → a</th></tr></thead>\n<tbody>{rows}\
         </tbody></table>\n"
    )
}

const PROBES: &str = "<p><button type=\"button\" id=\"ping\">Ping a → b</button> \
    <button type=\"button\" id=\"transfer\">Fetch 3 files</button></p>\n\
    <p id=\"pinged\" role=\"status\"></p>\n<p id=\"fetched\" role=\"status\"></p>\n";

fn sets(link: &Link<'_>) -> String {
    let options = |names: &[String]| -> String {
        names.iter().map(|name| format!("<option>{}</option>", escaped(name))).collect()
    };
    format!(
        "<form id=\"load\"><label>Link <select name=\"set\"><optgroup label=\"saved\">{}</optgroup>\
         <optgroup label=\"presets\">{}</optgroup></select></label> <button>Load</button> \
         <button type=\"button\" id=\"forget\">Forget</button></form>\n\
         <form id=\"save\"><label>Name <input name=\"name\" required maxlength=\"32\" \
         autocomplete=\"off\"></label> <label><input type=\"checkbox\" name=\"replace\"> replace\
         </label> <button>Save what is in force</button></form>\n",
        options(link.saved),
        options(link.presets),
    )
}

/// The address of a lab's page.
#[must_use]
pub fn address(name: &str) -> String {
    format!("/links/{}", encoded(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_parameter_has_a_field_each_way_with_what_it_takes() {
        let side = json!({"rate": "none", "delay": "5 ms", "queue_packets": "none"});
        let status = json!({
            "name": "field", "link": "los", "emulator": "ferry", "device": "tap", "seed": 3,
            "hosts": [{"address": "10.0.0.1"}, {"address": "10.0.0.2"}], "ab": side, "ba": side,
        });
        let saved = ["r\"<i>".to_string()];
        let html = page(&Link { status: &status, presets: &[], saved: &saved });
        for key in link::keys() {
            for side in ["ab", "ba"] {
                assert!(html.contains(&format!("id=\"f-{side}-{}\"", key.name)), "{}", key.name);
            }
            assert!(html.contains(&escaped(key.expected)), "{}", key.name);
        }
        assert!(html.contains("id=\"alike\" checked") && html.contains("value=\"5 ms\""));
        assert!(html.contains("r&quot;&lt;i&gt;") && !html.contains("<i>"));
        let other = json!({"delay": "6 ms"});
        let status = json!({"name": "x", "ab": {"delay": "5 ms"}, "ba": other});
        let html = page(&Link { status: &status, presets: &[], saved: &[] });
        assert!(!html.contains("id=\"alike\" checked"));
    }
}
