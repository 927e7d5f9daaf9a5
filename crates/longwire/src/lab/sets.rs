//! `longwire lab save`, `sets` and `forget`: links saved by name.

use std::process::ExitCode;

use lab::{Error, session, sets};
use link::{ChannelConfig, Direction, LinkConfig};
use serde_json::{Map, Value, json};

use super::{figures, key_lines, say};

/// Save a link under a name, which `--link` then takes as it takes a preset's.
///
/// Starts from a preset, a saved link or what a lab has in force, and changes what --set says. A
/// link saved before is kept unless --replace is given; presets cannot be replaced. The files are
/// in $LONGWIRE_HOME/links, or in longwire/links under $XDG_CONFIG_HOME or ~/.config.
#[derive(clap::Args)]
#[command(after_help = save_help())]
pub(super) struct SaveArgs {
    /// The name: letters, digits, '-' and '_'.
    name: String,
    /// Start from a preset or a saved link.
    #[arg(long, value_name = "NAME", required_unless_present = "from", conflicts_with = "from")]
    link: Option<String>,
    /// Start from what the link of a running lab is like now.
    #[arg(long, value_name = "LAB")]
    from: Option<String>,
    /// Change a setting, for both directions or with the prefix ab. or ba. for one.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Take the place of a link that was saved under this name.
    #[arg(long)]
    replace: bool,
    /// Print {name, path, settings}.
    #[arg(long)]
    json: bool,
}

/// Show the links that were saved, and which of their files cannot be used.
#[derive(clap::Args)]
pub(super) struct SetsArgs {
    /// Print an array of {name, path, settings}, with error in place of settings where a file
    /// cannot be used.
    #[arg(long)]
    json: bool,
}

/// Remove a saved link.
#[derive(clap::Args)]
pub(super) struct ForgetArgs {
    /// The saved link.
    name: String,
}

/// Runs `lab save`.
pub(super) fn save(args: &SaveArgs) -> anyhow::Result<ExitCode> {
    let mut config = match (&args.link, &args.from) {
        (_, Some(lab)) => session::config(lab)?,
        (Some(link), None) => sets::load(link)?,
        (None, None) => LinkConfig::default(),
    };
    let assignments: Vec<String> =
        args.set.iter().map(|one| session::with_absolute_path(one)).collect();
    config
        .apply(&assignments, session::read_trace)
        .map_err(|error| Error::Caller(error.to_string()))?;
    let path = sets::save(&args.name, &config, args.replace)?;
    if args.json {
        let settings = settings_json(&config);
        say(&json!({"name": args.name, "path": path, "settings": settings}).to_string())?;
    } else {
        assignments.iter().try_for_each(|one| say(&confirmation(&config, one)))?;
        say(&format!("saved {} in {}", args.name, path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `lab sets`.
pub(super) fn list(args: &SetsArgs) -> anyhow::Result<ExitCode> {
    let all = sets::list()?;
    if args.json {
        let one = |saved: &sets::Saved| match &saved.config {
            Ok(config) => {
                let settings = settings_json(config);
                json!({"name": saved.name, "path": saved.path, "settings": settings})
            }
            Err(error) => {
                json!({"name": saved.name, "path": saved.path, "error": error.to_string()})
            }
        };
        say(&serde_json::to_string_pretty(&all.iter().map(one).collect::<Vec<_>>())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    for saved in all {
        match saved.config {
            Ok(config) => say(&format!("{:<18} {}", saved.name, figures(&config)))?,
            Err(error) => eprintln!("longwire: {}: {error}", saved.name),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `lab forget`.
pub(super) fn forget(args: &ForgetArgs) -> anyhow::Result<ExitCode> {
    sets::forget(&args.name)?;
    say(&format!("forgot {}", args.name))?;
    Ok(ExitCode::SUCCESS)
}

/// What an assignment has come to: `loss set to 5 %`.
fn confirmation(config: &LinkConfig, assignment: &str) -> String {
    let key = assignment.split_once('=').map_or(assignment, |(key, _)| key).trim();
    let (channel, name): (&ChannelConfig, &str) = match key.split_once('.') {
        Some(("ba", name)) => (config.direction(Direction::Ba), name),
        Some((_, name)) => (config.direction(Direction::Ab), name),
        None => (config.direction(Direction::Ab), key),
    };
    let value = channel.settings().into_iter().find(|(known, _)| *known == name);
    format!("{key} set to {}", value.map_or_else(String::new, |(_, value)| value))
}

fn settings_json(config: &LinkConfig) -> Map<String, Value> {
    config.settings().into_iter().map(|(key, value)| (key, value.into())).collect()
}

fn save_help() -> String {
    format!(
        "Settings:\n{}\nExamples:\n  \
         longwire lab save ridge --link wifi3 --set 'loss=5 %' --set 'ba.rate=1 Mbit/s'\n  \
         longwire lab save as-measured --from field\n  \
         longwire lab up field --link ridge",
        key_lines()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirmation_says_what_is_in_force() {
        let mut config = LinkConfig::default();
        for (assignment, expected) in [
            ("loss=5.0 %", "loss set to 5 %"),
            ("ab.delay = 250000 us", "ab.delay set to 250 ms"),
            ("ba.rate=none", "ba.rate set to none"),
        ] {
            config.apply(&[assignment], |_| Err(String::new())).unwrap();
            assert_eq!(confirmation(&config, assignment), expected);
        }
    }
}
