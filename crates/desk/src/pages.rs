//! The pages: facts for the functions of `web`.

use ::link::presets;
use lab::session;
use serde_json::Value;
use web::cells::View;
use web::page::{decoded, parameter};
use web::pages::{campaign, cell, compare, link, links, results, runs};
use web::routes::names;

use crate::answer::Answer;
use crate::asked::Asked;
use crate::children::blocking;
use crate::problem::{Problem, Result, absent};
use crate::shared::Shared;
use crate::{results as campaigns, runs as started};

/// Paths of pages; a part in braces stands for a name.
const LINK: &str = "/links/{name}";
const RUN: &str = "/runs/{name}";
const CAMPAIGN: &str = "/results/{campaign}";
const REPORT: &str = "/results/{campaign}/report.html";
const CELL: &str = "/results/{campaign}/cells/{cell}";

pub(crate) async fn page(shared: &Shared, asked: &Asked) -> Result<Answer> {
    let path = asked.path.as_str();
    let found = [LINK, RUN, CAMPAIGN, REPORT, CELL]
        .into_iter()
        .find_map(|pattern| names(pattern, path).map(|names| (pattern, names)));
    if let Some((pattern, names)) = found {
        let names: Option<Vec<String>> = names.into_iter().map(decoded).collect();
        let names = names.ok_or_else(|| Problem::missing("the path is no text"))?;
        let name = names.first().map_or("", String::as_str);
        return match pattern {
            LINK => link_page(name).await,
            RUN => run_page(shared, name).await,
            CAMPAIGN => campaign_page(shared, name, asked).await,
            REPORT => return campaigns::report(shared, name).await,
            _ => cell_page(shared, name, names.get(1).map_or("", String::as_str)).await,
        }
        .map(Answer::html);
    }
    match path {
        "/" => Ok(links_page().await),
        "/runs" => runs_page(shared, asked).await,
        "/results" => results_page(shared).await,
        "/compare" => compare_page(shared, asked).await,
        _ => Err(Problem::missing("there is no such page")),
    }
    .map(Answer::html)
}

async fn links_page() -> String {
    let listing = blocking(session::list).await;
    let saved = blocking(lab::sets::list).await.unwrap_or_default();
    let presets =
        presets().iter().map(|preset| (preset.name.to_string(), preset.source.to_string()));
    let named: Vec<(String, String)> = saved
        .into_iter()
        .filter(|saved| saved.config.is_ok())
        .map(|saved| (saved.name, "saved by you".to_string()))
        .chain(presets)
        .collect();
    let (up, killed, fault) = match listing {
        Ok(listing) => (listing.up, listing.killed, None),
        Err(problem) => (Vec::new(), Vec::new(), Some(problem.detail)),
    };
    links::page(&links::Links { up: &up, killed: &killed, named: &named, fault: fault.as_deref() })
}

async fn link_page(name: &str) -> Result<String> {
    let name = name.to_string();
    let status = blocking(move || session::status(&name)).await.map_err(absent)?;
    let saved = blocking(lab::sets::list).await.unwrap_or_default();
    let saved: Vec<String> = saved.into_iter().map(|saved| saved.name).collect();
    let presets: Vec<String> = presets().iter().map(|preset| preset.name.to_string()).collect();
    Ok(link::page(&link::Link { status: &status, presets: &presets, saved: &saved }))
}

async fn runs_page(shared: &Shared, asked: &Asked) -> Result<String> {
    // Plans are read for who looks at the whole page, not each time that the list is refreshed.
    let plans = match parameter(&asked.query, "part") {
        Some("runs") => Value::Null,
        _ => started::plans(shared).await?,
    };
    let all = started::all(shared).await?;
    let folder = shared.plans_folder().to_string_lossy();
    Ok(runs::page(&folder, list(&plans), list(&all)))
}

async fn run_page(shared: &Shared, name: &str) -> Result<String> {
    Ok(runs::one(&started::facts(shared, name).await?))
}

async fn results_page(shared: &Shared) -> Result<String> {
    Ok(results::page(&shared.results().to_string_lossy(), &campaigns::campaigns(shared).await?))
}

async fn campaign_page(shared: &Shared, name: &str, asked: &Asked) -> Result<String> {
    let figures = campaigns::campaign(shared, name).await?;
    let has_report = campaigns::folder(shared, name)?.join("report.html").exists();
    Ok(campaign::page(&campaign::Campaign {
        name,
        overview: &figures.overview,
        cells: &figures.cells,
        view: &View::read(&asked.query),
        has_report,
    }))
}

async fn cell_page(shared: &Shared, name: &str, place: &str) -> Result<String> {
    let (figures, cell) =
        (campaigns::campaign(shared, name).await?, campaigns::cell(shared, name, place).await?);
    let networks = &figures.overview.networks;
    let network = networks.iter().find(|network| network.name == cell.network);
    Ok(cell::page(&cell::Shown { campaign: name, cell: &cell, network }))
}

async fn compare_page(shared: &Shared, asked: &Asked) -> Result<String> {
    let chosen = |key: &str| {
        let name = parameter(&asked.query, key);
        name.ok_or_else(|| Problem::refused("give the names of two campaigns"))
    };
    let (first, second) = (chosen("first")?, chosen("second")?);
    Ok(compare::page(first, second, &campaigns::compared(shared, first, second).await?))
}

fn list(facts: &Value) -> &[Value] {
    facts.as_array().map_or(&[], Vec::as_slice)
}
