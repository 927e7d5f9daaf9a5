//! The API: from a route to what does it.

use std::time::{Duration, Instant};

use http::StatusCode;
use serde_json::{Value, json};
use web::routes::{self, Action, Found, Missing};

use crate::answer::Answer;
use crate::asked::Asked;
use crate::children::{self, blocking};
use crate::problem::{Problem, Result, absent};
use crate::sets::{all_keys, all_presets};
use crate::shared::Shared;
use crate::stream::{self, Wanted};
use crate::{links, results, runs, sets};

/// `longwire doctor` measures for a second and a half.
const DOCTOR_PATIENCE: Duration = Duration::from_secs(30);
/// How long what it found is taken for true.
const DOCTOR_LIFE: Duration = Duration::from_secs(300);

pub(crate) async fn answer(shared: &Shared, asked: &Asked) -> Result<Answer> {
    let Found { action, names } =
        routes::find(asked.method(), &asked.path).map_err(|missing| match missing {
            Missing::Path => Problem::missing("there is no such path: see /api/v1/openapi.json"),
            Missing::Method(others) => Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                format!("this path has {}", others.join(", ")),
            ),
        })?;
    let names: Option<Vec<String>> = names.into_iter().map(web::page::decoded).collect();
    let mut names = names.ok_or_else(|| Problem::refused("the path is no text"))?.into_iter();
    let (name, other) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
    match action {
        Action::Events => events(shared, Wanted::read(&asked.query, asked.last_event.as_deref())?),
        Action::Plot => results::file(shared, &name, asked, true).await,
        Action::Export => results::file(shared, &name, asked, false).await,
        _ => {
            let facts = match of_links(shared, action, &name, &asked.body).await {
                Some(facts) => facts?,
                None => of_campaigns(shared, action, &name, &other, asked).await?,
            };
            Ok(Answer::json(&facts))
        }
    }
}

/// What a route of labs and the machine says; none for other routes.
async fn of_links(
    shared: &Shared,
    action: Action,
    name: &str,
    body: &Value,
) -> Option<Result<Value>> {
    let name = name.to_string();
    Some(match action {
        Action::OpenApi => Ok(routes::open_api(shared.version())),
        Action::Doctor => doctor(shared).await,
        Action::Presets => Ok(all_presets()),
        Action::Keys => Ok(all_keys()),
        Action::Links => blocking(lab::session::list)
            .await
            .map(|listing| json!({"up": listing.up, "killed": listing.killed})),
        Action::Link => blocking(move || lab::session::status(&name)).await.map_err(absent),
        Action::LinkUp => links::up(shared, body).await,
        Action::LinkDown => links::down(name).await,
        Action::LinkSet => links::set(shared, name, body).await,
        Action::Probe => links::probe(shared, name, body).await,
        Action::Transfer => links::transfer(shared, name, body).await,
        Action::Sets => sets::all().await,
        Action::Set => sets::one(name).await.map_err(absent),
        Action::SetPut => sets::put(name, body).await,
        Action::SetForget => sets::forget(name).await,
        _ => return None,
    })
}

async fn of_campaigns(
    shared: &Shared,
    action: Action,
    name: &str,
    other: &str,
    asked: &Asked,
) -> Result<Value> {
    match action {
        Action::Plans => runs::plans(shared).await,
        Action::Runs => runs::all(shared).await,
        Action::RunStart => runs::start(shared, &asked.body).await,
        Action::Run => runs::facts(shared, name).await,
        Action::RunStop => runs::stop(shared, name),
        Action::RunResume => runs::resume(shared, name).await,
        Action::Results => results::all_facts(shared).await,
        Action::Campaign => results::facts(shared, name).await,
        Action::Cells => results::cells_facts(shared, name, asked).await,
        Action::Cell => {
            let cell = results::cell(shared, name, other).await?;
            serde_json::to_value(cell).map_err(|error| Problem::refused(error.to_string()))
        }
        Action::Compare => results::compare_facts(shared, name, other).await,
        _ => Err(Problem::missing("there is no such path")),
    }
}

/// What the machine offers: examined once for all tabs, and again after a while.
async fn doctor(shared: &Shared) -> Result<Value> {
    let mut known = shared.doctor.lock().await;
    if let Some((_, facts)) = known.as_ref().filter(|(at, _)| at.elapsed() < DOCTOR_LIFE) {
        return Ok(facts.clone());
    }
    let command = shared.command(&["doctor", "--json"]);
    let facts = children::facts(command, DOCTOR_PATIENCE).await?;
    *known = Some((Instant::now(), facts.clone()));
    Ok(facts)
}

fn events(shared: &Shared, wanted: Wanted) -> Result<Answer> {
    let seat = shared.streams.clone().try_acquire_owned().map_err(|_| stream::too_many())?;
    let content = stream::start(&shared.hub, wanted, seat, |topic| look_at(shared, topic));
    Ok(Answer::stream(content))
}

/// Begins to look at a topic.
fn look_at(shared: &Shared, topic: &str) {
    match topic.split_once(':') {
        Some(("link", _)) => links::look_at(shared, topic),
        _ => runs::look_at(shared, topic),
    }
}
