//! The API as one table, of which both the router and the description in OpenAPI are made.

use serde_json::{Map, Value, json};

/// What a route does; the shell has a function for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// This table, as OpenAPI.
    OpenApi,
    /// What the machine offers.
    Doctor,
    /// Links with names.
    Presets,
    /// Parameters of a link.
    Keys,
    /// Labs that are up.
    Links,
    /// Brings a lab up.
    LinkUp,
    /// One lab.
    Link,
    /// Ends a lab.
    LinkDown,
    /// Changes a link.
    LinkSet,
    /// Round trips over a link.
    Probe,
    /// Files over a link.
    Transfer,
    /// Saved links.
    Sets,
    /// One saved link.
    Set,
    /// Saves a link.
    SetPut,
    /// Removes a saved link.
    SetForget,
    /// Plans that can be run.
    Plans,
    /// Campaigns that were started here.
    Runs,
    /// Starts one.
    RunStart,
    /// One of them.
    Run,
    /// Stops one.
    RunStop,
    /// Goes on with one.
    RunResume,
    /// Campaigns.
    Results,
    /// One campaign.
    Campaign,
    /// Cells of a campaign.
    Cells,
    /// One cell.
    Cell,
    /// The picture of a parameter.
    Plot,
    /// Cells as a table.
    Export,
    /// Two campaigns.
    Compare,
    /// What happens, as it happens.
    Events,
}

/// One route.
#[derive(Debug)]
pub struct Route {
    /// The method.
    pub method: &'static str,
    /// The path; a part in braces stands for a name.
    pub path: &'static str,
    /// What it does.
    pub action: Action,
    /// The same in a line.
    pub summary: &'static str,
    /// Parameters of the query, each with what it says.
    pub query: &'static [(&'static str, &'static str)],
    /// An example of what is sent, in JSON; empty where nothing is.
    pub request: &'static str,
    /// An example of the answer; in JSON unless `kind` says otherwise.
    pub answer: &'static str,
    /// The media type of the answer.
    pub kind: &'static str,
}

/// Where all routes begin.
pub const BASE: &str = "/api/v1";

const JSON: &str = "application/json";
const SVG: &str = "image/svg+xml";
const CSV: &str = "text/csv; charset=utf-8";
const STREAM: &str = "text/event-stream";

macro_rules! route {
    ($method:literal $path:literal $action:ident $summary:literal
        $(?[$($key:literal $about:literal),*])? $(<$request:literal)? >$answer:literal
        $(as $kind:expr)?) => {
        Route {
            method: $method,
            path: concat!("/api/v1", $path),
            action: Action::$action,
            summary: $summary,
            query: first!($(&[$(($key, $about)),*];)? &[]),
            request: first!($($request;)? ""),
            answer: $answer,
            kind: first!($($kind;)? JSON),
        }
    };
}

/// The first of one or two.
macro_rules! first {
    ($only:expr) => {
        $only
    };
    ($one:expr; $other:expr) => {
        $one
    };
}

/// All routes.
#[rustfmt::skip]
pub static ROUTES: &[Route] = &[
    route!("GET" "/openapi.json" OpenApi "This description" >r#"{"openapi": "3.1.0"}"#),
    route!("GET" "/doctor" Doctor "What this machine offers for emulated links, with remedies"
        >r#"[{"name": "timers", "verdict": "good", "found": "late by 9 µs", "remedy": null}]"#),
    route!("GET" "/presets" Presets "Links that have names, and where their figures come from"
        >r#"[{"name": "los", "source": "IST-118", "settings": {"delay": "5 ms"}}]"#),
    route!("GET" "/link-keys" Keys "The parameters of a link: what is understood, what it does"
        >r#"[{"name": "delay", "expected": "a duration from 0 ns to 1 h", "about": "time"}]"#),
    route!("GET" "/links" Links "The labs that are up"
        >r#"{"up": [{"name": "field", "link": "los"}], "killed": []}"#),
    route!("POST" "/links" LinkUp "Bring a lab up: two hosts joined by an emulated link"
        <r#"{"name": "field", "link": "satcom", "seed": 1, "device": "auto"}"#
        >r#"{"name": "field", "link": "satcom"}"#),
    route!("GET" "/links/{name}" Link "One lab: what is in force, what it has carried"
        >r#"{"name": "field", "link": "los", "ab": {"delay": "5 ms"}, "ba": {"delay": "5 ms"}}"#),
    route!("DELETE" "/links/{name}" LinkDown "End a lab and everything that runs in it"
        >r#"{"messages": ["lab field is down"], "ended_processes": 0}"#),
    route!("POST" "/links/{name}/settings" LinkSet
        "Change a link, all settings or none; or make it a named one"
        <r#"{"settings": {"delay": "250 ms", "ba.rate": "64 kbit/s"}}"#
        >r#"{"messages": ["'delay' set to '250 ms'"], "ab": {"delay": "250 ms"}, "ba": {}}"#),
    route!("POST" "/links/{name}/probe" Probe "Measure the round trip by ICMP echo"
        <r#"{"count": 5, "from": "a"}"#
        >r#"{"sent": 5, "received": 5, "min_s": 0.5, "median_s": 0.5, "max_s": 0.51}"#),
    route!("POST" "/links/{name}/transfer" Transfer "Fetch files from host b to host a, timed"
        <r#"{"files": 3}"# >r#"{"mean_s": 1.2, "failed": 0, "times_s": [1.1, 1.2, 1.3]}"#),
    route!("GET" "/sets" Sets "Links that were saved by name"
        >r#"[{"name": "ridge", "settings": {"delay": "5 ms"}}]"#),
    route!("GET" "/sets/{name}" Set "One saved link or preset"
        >r#"{"name": "ridge", "settings": {"delay": "5 ms"}}"#),
    route!("PUT" "/sets/{name}" SetPut "Save what a lab's link is like; presets stay as they are"
        <r#"{"from": "field", "replace": false}"#
        >r#"{"messages": ["saved as 'ridge'"], "settings": {"delay": "5 ms"}}"#),
    route!("DELETE" "/sets/{name}" SetForget "Remove a saved link"
        >r#"{"messages": ["forgot 'ridge'"]}"#),
    route!("GET" "/plans" Plans "Plans that can be run, with their sizes"
        >r#"[{"name": "ist118.toml", "title": "IST-118", "quick": {"runs": 100}}]"#),
    route!("GET" "/runs" Runs "Campaigns that were started here, the last first"
        >r#"[{"name": "ist118-quick", "state": "running", "progress": {"done": 3, "runs": 9}}]"#),
    route!("POST" "/runs" RunStart "Start a campaign, as a process of its own"
        <r#"{"plan": "ist118.toml", "quick": true, "cells": ["los/*"], "seed": 7, "parallel": 4}"#
        >r#"{"messages": ["'ist118-quick' is started"], "name": "ist118-quick"}"#),
    route!("GET" "/runs/{run}" Run "One of them, with the end of what it printed"
        >r#"{"name": "ist118-quick", "state": "running", "log": "…"}"#),
    route!("POST" "/runs/{run}/stop" RunStop "Stop it; what is done is kept"
        <"{}" >r#"{"messages": ["'ist118-quick' is being stopped"]}"#),
    route!("POST" "/runs/{run}/resume" RunResume "Go on with it as it was started"
        <"{}" >r#"{"messages": ["'ist118-quick' goes on"], "name": "ist118-quick"}"#),
    route!("GET" "/results" Results "The campaigns that there are"
        >r#"[{"name": "ist118", "done": 20, "planned": 20}]"#),
    route!("GET" "/results/{campaign}" Campaign "One campaign: what it is and how far"
        >r#"{"name": "ist118", "title": "IST-118", "done": 20, "planned": 20}"#),
    route!("GET" "/results/{campaign}/cells" Cells "Cells with the figures of their runs"
        ?["network" "only this one", "service" "only this one", "server" "only this one",
          "way" "only this one", "text" "only names with it",
          "sort" "plan, name, median, lost, bytes or lateness; with - from the greatest on"]
        >r#"[{"cell": 0, "name": "los/tracks/soap/direct/default", "median_s": 0.26}]"#),
    route!("GET" "/results/{campaign}/cells/{cell}" Cell "One cell with its runs and exchanges"
        >r#"{"name": "los/tracks/soap/direct/default", "runs": []}"#),
    route!("GET" "/results/{campaign}/plot.svg" Plot "Mean times by one parameter"
        ?["parameter" "a setting, way or network", "network" "the network"]
        >"<svg/>" as SVG),
    route!("GET" "/results/{campaign}/export.csv" Export "Cells as CSV, chosen as in cells"
        >"cell,network" as CSV),
    route!("GET" "/results/{campaign}/compare/{other}" Compare "Two campaigns cell by cell"
        >r#"{"share": 0.97, "cells": []}"#),
    route!("GET" "/events" Events "What happens, as server-sent events: snapshot, then the rest"
        ?["topics" "link:NAME or run:NAME, several with commas", "hz" "at most so many a second"]
        >"event: link" as STREAM),
];

/// A route that was found, with the names that stand in its path.
#[derive(Debug)]
pub struct Found<'a> {
    /// What to do.
    pub action: Action,
    /// The parts in braces, in their order, not decoded.
    pub names: Vec<&'a str>,
}

/// Why no route was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// There is no such path.
    Path,
    /// The path has other methods.
    Method(Vec<&'static str>),
}

/// The route of a method and path.
///
/// # Errors
/// [`Missing`].
pub fn find<'a>(method: &str, path: &'a str) -> Result<Found<'a>, Missing> {
    let mut others = Vec::new();
    for route in ROUTES {
        let Some(names) = names(route.path, path) else { continue };
        if route.method == method {
            return Ok(Found { action: route.action, names });
        }
        others.push(route.method);
    }
    Err(if others.is_empty() { Missing::Path } else { Missing::Method(others) })
}

/// What stands for the parts in braces of `pattern`; `None` when the path is another.
#[must_use]
pub fn names<'a>(pattern: &str, path: &'a str) -> Option<Vec<&'a str>> {
    let (mut expected, mut given) = (pattern.split('/'), path.split('/'));
    let mut found = Vec::new();
    loop {
        match (expected.next(), given.next()) {
            (None, None) => return Some(found),
            (Some(part), Some(name)) if part.starts_with('{') && !name.is_empty() => {
                found.push(name);
            }
            (Some(part), Some(same)) if part == same => {}
            _ => return None,
        }
    }
}

/// The table as OpenAPI 3.1.
#[must_use]
pub fn open_api(version: &str) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let methods = paths.entry(route.path).or_insert_with(|| json!({}));
        methods[route.method.to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "longwire ui",
            "version": version,
            "description": "Refusals are application/problem+json (RFC 9457) whose detail is the \
                line that the command line prints.",
        },
        "security": [{"token": []}],
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "paths": paths,
    })
}

fn operation(route: &Route) -> Value {
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{'));
    let in_path = in_path.map(|part| {
        let name = part.trim_end_matches('}');
        json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})
    });
    let in_query = route.query.iter().map(|(name, about)| {
        json!({"name": name, "in": "query", "description": about, "schema": {"type": "string"}})
    });
    let parameters: Vec<Value> = in_path.chain(in_query).collect();
    let mut operation = json!({
        "operationId": format!("{:?}", route.action),
        "summary": route.summary,
        "parameters": parameters,
        "responses": {
            "200": {"description": "done", "content": content(route.kind, route.answer)},
            "default": {"description": "refused",
                "content": {"application/problem+json": {"schema": {"type": "object"}}}},
        },
    });
    if !route.request.is_empty() {
        operation["requestBody"] =
            json!({"required": true, "content": content(JSON, route.request)});
    }
    operation
}

fn content(kind: &str, example: &str) -> Value {
    let example = serde_json::from_str(example).unwrap_or_else(|_| Value::from(example));
    json!({kind: {"example": example}})
}

#[cfg(test)]
mod tests;
