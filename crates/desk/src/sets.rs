//! Links with names: presets, and those that people have saved.

use lab::sets::{self, Saved};
use link::{LinkConfig, presets};
use serde_json::{Map, Value, json};

use crate::children::blocking;
use crate::links::text;
use crate::problem::Result;

pub(crate) async fn all() -> Result<Value> {
    let saved = blocking(sets::list).await?;
    let one = |saved: &Saved| match &saved.config {
        Ok(config) => json!({"name": saved.name, "settings": settings(config)}),
        Err(error) => json!({"name": saved.name, "error": error.to_string()}),
    };
    Ok(saved.iter().map(one).collect())
}

pub(crate) async fn one(name: String) -> Result<Value> {
    let shown = name.clone();
    let config = blocking(move || sets::load(&name)).await?;
    Ok(json!({"name": shown, "settings": settings(&config)}))
}

pub(crate) async fn put(name: String, asked: &Value) -> Result<Value> {
    let from = text(asked, "from")?.to_string();
    let replace = asked["replace"] == true;
    let shown = name.clone();
    let config = blocking(move || {
        let config = lab::session::config(&from)?;
        sets::save(&name, &config, replace).map_err(|error| match error {
            // What the command line calls an option is a box here.
            lab::Error::Caller(line) => {
                lab::Error::Caller(line.replace("give --replace", "tick 'replace'"))
            }
            other => other,
        })?;
        Ok(config)
    })
    .await?;
    Ok(json!({"messages": [format!("saved as '{shown}'")], "settings": settings(&config)}))
}

pub(crate) async fn forget(name: String) -> Result<Value> {
    let shown = name.clone();
    blocking(move || sets::forget(&name)).await?;
    Ok(json!({"messages": [format!("forgot '{shown}'")]}))
}

/// All presets with their sources.
pub(crate) fn all_presets() -> Value {
    let one = |preset: &link::Preset| {
        let settings = settings(&preset.config);
        json!({"name": preset.name, "source": preset.source, "settings": settings})
    };
    presets().iter().map(one).collect()
}

/// All parameters.
pub(crate) fn all_keys() -> Value {
    let one =
        |key: &link::Key| json!({"name": key.name, "expected": key.expected, "about": key.about});
    link::keys().iter().map(one).collect()
}

fn settings(config: &LinkConfig) -> Map<String, Value> {
    config.settings().into_iter().map(|(key, value)| (key, value.into())).collect()
}
