//! Campaigns: started, followed, stopped and gone on with.

use serde_json::Value;

use crate::page::{Page, encoded, escaped, shell};

/// The list, and what can be started.
#[must_use]
pub fn page(folder: &str, plans: &[Value], runs: &[Value]) -> String {
    let rows: String = runs.iter().map(row).collect();
    let table = match rows.as_str() {
        "" => "<p>None was started here.</p>\n".to_string(),
        rows => format!(
            "<div class=\"wide\"><table><thead><tr><th>Run</th><th>Plan</th><th>State</th>\
             <th>Done</th><th>Left</th><th>Flagged</th><th>Failed</th></tr></thead>\n<tbody>{rows}\
             </tbody></table></div>\n"
        ),
    };
    let body = format!(
        "<section aria-labelledby=\"h-all\"><h2 id=\"h-all\">Started here</h2>\n\
         <div id=\"runs\" data-refresh=\"2000\">{table}</div></section>\n\
         <section aria-labelledby=\"h-new\"><h2 id=\"h-new\">Start one</h2>\n{}</section>\n",
        form(folder, plans)
    );
    Page {
        title: "Runs",
        area: "/runs",
        script: "runs.js",
        command: "longwire lab run scenarios/ist118.toml --quick",
        body: &body,
    }
    .html()
}

/// One run, followed live.
#[must_use]
pub fn one(run: &Value) -> String {
    let name = run["name"].as_str().unwrap_or_default();
    let arguments: Vec<&str> =
        run["arguments"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let address = encoded(name);
    let body = format!(
        "<div id=\"run\" data-run=\"{}\"></div>\n\
         <p>State: <strong id=\"state\">{}</strong> <progress id=\"bar\" max=\"1\" value=\"0\" \
         aria-label=\"runs done\"></progress> <span id=\"standing\">{}</span></p>\n\
         <p><button type=\"button\" id=\"stop\">Stop</button> \
         <button type=\"button\" id=\"resume\">Go on</button> \
         <a href=\"/results/{address}\">Results so far</a></p>\n\
         <section aria-labelledby=\"h-late\"><h2 id=\"h-late\">The emulator</h2>\n\
         <p>Greatest p99 lateness of a run: <strong id=\"late\">–</strong></p></section>\n\
         <section aria-labelledby=\"h-latest\"><h2 id=\"h-latest\">The last runs that ended</h2>\n\
         <div class=\"wide\"><table><thead><tr><th>Cell</th><th>Run</th><th>Mean s</th>\
         <th>Remark</th></tr></thead><tbody id=\"latest\"></tbody></table></div></section>\n\
         <section aria-labelledby=\"h-log\"><h2 id=\"h-log\">What it printed</h2>\n\
         <pre id=\"log\" class=\"tail\" tabindex=\"0\">{}</pre></section>\n",
        escaped(name),
        escaped(run["state"].as_str().unwrap_or_default()),
        escaped(&done(&run["progress"])),
        escaped(run["log"].as_str().unwrap_or_default()),
    );
    Page {
        title: &format!("Run {name}"),
        area: "/runs",
        script: "run.js",
        command: &format!(
            "longwire lab run {} --out {}",
            arguments.iter().map(|word| shell(word)).collect::<Vec<_>>().join(" "),
            shell(&format!("results/{name}"))
        ),
        body: &body,
    }
    .html()
}

fn row(run: &Value) -> String {
    let name = run["name"].as_str().unwrap_or_default();
    let progress = &run["progress"];
    let count = |key: &str| progress[key].as_u64().map_or("–".to_string(), |n| n.to_string());
    let left = match run["state"].as_str() {
        Some("running") => progress["left_s"].as_f64().map_or("–".to_string(), time),
        _ => "–".to_string(),
    };
    format!(
        "<tr><th scope=\"row\"><a href=\"/runs/{}\">{}</a></th><td>{}</td><td>{}</td><td>{}</td>\
         <td>{left}</td><td>{}</td><td>{}</td></tr>\n",
        encoded(name),
        escaped(name),
        escaped(run["plan"].as_str().unwrap_or("–")),
        escaped(run["state"].as_str().unwrap_or("–")),
        done(progress),
        count("flagged"),
        count("failed"),
    )
}

fn done(progress: &Value) -> String {
    match (progress["done"].as_u64(), progress["runs"].as_u64()) {
        (Some(done), Some(runs)) => format!("{done} of {runs}"),
        _ => "–".to_string(),
    }
}

fn form(folder: &str, plans: &[Value]) -> String {
    if plans.is_empty() {
        return format!(
            "<p>There is no plan in {}: start longwire ui with --scenarios DIR.</p>\n",
            escaped(folder)
        );
    }
    let options: String = plans.iter().map(option).collect();
    format!(
        "<form id=\"new-run\" autocomplete=\"off\">\n\
         <p><label>Plan <select name=\"plan\">{options}</select></label></p>\n\
         <p><label><input type=\"checkbox\" name=\"quick\" checked> quick form</label> \
         <label>Cells <input name=\"cells\" placeholder=\"los/*, satcom/tracks/soap/*\"></label> \
         <label>Seed <input name=\"seed\" inputmode=\"numeric\" size=\"8\"></label> \
         <label>Repetitions <input name=\"repetitions\" inputmode=\"numeric\" size=\"4\"></label> \
         <label>Side by side <input name=\"parallel\" inputmode=\"numeric\" size=\"4\"></label> \
         <label>Name <input name=\"name\" maxlength=\"64\"></label> <button>Start</button></p>\n\
         <p class=\"hint\">What is left empty is as the plan has it. Cells are patterns, * stands \
         for anything. Runs are processes of their own: they go on when this interface ends.</p>\n\
         </form>\n"
    )
}

fn option(plan: &Value) -> String {
    let name = escaped(plan["name"].as_str().unwrap_or_default());
    let title = escaped(plan["title"].as_str().unwrap_or_default());
    let size = |of: &Value| {
        let runs = of["runs"].as_u64()?;
        Some(format!("{runs} runs, about {}", time(of["expected_s"].as_f64()?)))
    };
    let whole = size(&plan["whole"]).unwrap_or_default();
    let quick = size(&plan["quick"]).map_or(String::new(), |quick| format!("; quick {quick}"));
    format!("<option value=\"{name}\">{name}: {title} ({whole}{quick})</option>")
}

/// Seconds as people say them.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn runs_and_plans_are_listed_with_what_is_left() {
        let run = json!({"name": "a", "plan": "<p>.toml", "state": "running", "arguments": ["x"],
            "progress": {"done": 3, "runs": 9, "left_s": 130, "flagged": 1, "failed": 0},
            "log": "<l>"});
        let plan = json!({"name": "p.toml", "title": "T",
            "whole": {"runs": 900, "expected_s": 9000},
            "quick": {"runs": 12, "expected_s": 60}});
        let html = page("scenarios", &[plan], std::slice::from_ref(&run));
        assert!(
            html.contains("3 of 9") && html.contains("2 min") && html.contains("&lt;p&gt;.toml")
        );
        assert!(html.contains("900 runs, about 2.5 h; quick 12 runs, about 60 s"));
        let html = one(&run);
        assert!(html.contains("&lt;l&gt;") && html.contains("data-run=\"a\""));
        assert!(page("x", &[], &[]).contains("no plan in x"));
    }
}
