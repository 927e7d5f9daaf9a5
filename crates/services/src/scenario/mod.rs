//! The file of a scenario of radio nets: which nodes move where, over which channels they are
//! joined, and which messages they send when. It is TOML, as docs/scenarios.md has it.
//!
//! All that is wrong with a file is found at once, each with its line and field.

mod ground;
mod medium;
mod node;
mod script;
mod table;
#[cfg(test)]
mod tests;

use std::time::Duration;

use link::eel::{Eel, MAX_EEL_BYTES};
use link::net::{Group, MAX_GROUPS, Problems, Scenario};
use link::prediction::MAX_LENGTH;
use toml::de::DeTable;

use node::Places;
use table::{Source, Table};

/// Largest file of a scenario, in bytes.
pub const MAX_SCENARIO_BYTES: usize = 4 << 20;
/// Longest title, in bytes.
const MAX_TITLE_BYTES: usize = 200;
/// Longest text about a scenario, in bytes.
const MAX_ABOUT_BYTES: usize = 10_000;
/// Most steps of a scenario: each second of seven days.
const MAX_STEPS: u128 = 7 * 86_400;

const KEYS: [&str; 15] = [
    "title",
    "about",
    "duration",
    "step",
    "seed",
    "antenna_m",
    "ground",
    "eel",
    "medium",
    "node",
    "convoy",
    "groups",
    "message",
    "case",
    "service",
];

/// Reads a file that the scenario names: its name as it stands there, and how many bytes it may
/// have; on failure one line.
pub type ReadFile<'f> = &'f dyn Fn(&str, usize) -> Result<Vec<u8>, String>;

/// Reads a scenario; `name` stands for its file in messages.
///
/// # Errors
/// All that is wrong, by line.
pub fn parse(name: &str, text: &str, read: ReadFile<'_>) -> Result<Scenario, Problems> {
    let source = Source::new(name, text);
    if text.len() > MAX_SCENARIO_BYTES {
        let limit = format!("at most {MAX_SCENARIO_BYTES}; put places into files of tracks");
        source.note(1, "", format!("has {} bytes", text.len()), limit);
        return Err(source.into_problems());
    }
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let line = error.span().map_or(1, |span| source.line(span.start));
        let what = error.message().lines().next().unwrap_or("is no TOML").to_owned();
        source.note(line, "", what, "");
    }
    let scenario =
        if errors.is_empty() { scenario(&source.root(root.get_ref(), &KEYS), read) } else { None };
    match scenario {
        Some(scenario) if source.is_sound() => Ok(scenario),
        _ => Err(source.into_problems()),
    }
}

fn scenario(root: &Table<'_, '_>, read: ReadFile<'_>) -> Option<Scenario> {
    let title = root.need("title").and_then(|item| item.short(MAX_TITLE_BYTES));
    let about = root.get("about").and_then(|item| item.short(MAX_ABOUT_BYTES));
    let times = Duration::from_millis(1)..=MAX_LENGTH;
    let duration = root.need("duration").and_then(|item| item.duration(times.clone()));
    let step = root.get("step").and_then(|item| item.duration(times));
    let (duration, step) = (duration.unwrap_or(MAX_LENGTH), step.unwrap_or(Duration::from_secs(1)));
    if duration.as_nanos() / step.as_nanos().max(1) > MAX_STEPS {
        root.refuse(
            "the duration has too many steps",
            format!("at most {MAX_STEPS}; give a longer 'step'"),
        );
    }
    let seed = root.get("seed").and_then(|item| item.whole(0..=u64::from(u32::MAX)));
    let ground = root.get("ground").and_then(|item| ground::ground(&item, read));
    let eel = root.get("eel").and_then(|item| read_eel(&item, read));
    let mut places = Places::new(ground.as_ref(), eel.as_ref(), read);
    let names = medium::names(root);
    let (nodes, mut groups) = node::nodes(root, &names, &mut places);
    let media = medium::media(root, &nodes, ground.is_some(), eel.as_ref());
    let nodes = node::without_nem(nodes, &media);
    groups.extend(named_groups(root, &nodes, &groups));
    let mut scenario = Scenario {
        title: title.unwrap_or_default(),
        about: about.unwrap_or_default().trim().to_owned(),
        duration,
        step,
        seed: seed.unwrap_or(1),
        ground,
        media,
        nodes,
        groups,
        messages: Vec::new(),
        cases: Vec::new(),
        service: script::service(root),
    };
    scenario.cases = script::cases(root, &scenario);
    scenario.messages = script::messages(root, &scenario);
    Some(scenario)
}

/// `[eel]`: places and path losses by EMANE.
fn read_eel(item: &table::Item<'_, '_>, read: ReadFile<'_>) -> Option<Eel> {
    let table = item.table(&["file", "step"])?;
    let file = table.need("file")?;
    let name = file.text()?;
    let text = ground::read_text(&file, name, read, MAX_EEL_BYTES)?;
    let step = table.get("step").and_then(|step| step.duration(Duration::ZERO..=MAX_LENGTH));
    let checked = Eel::parse(name, &text).and_then(|eel| {
        step.map_or(Ok(()), |step| eel.check_steps(step))?;
        Ok(eel)
    });
    checked.map_err(|error| file.source().note_file(&file, &error)).ok()
}

/// `[groups]`; convoys are groups already.
fn named_groups(root: &Table<'_, '_>, nodes: &[link::net::Node], convoys: &[Group]) -> Vec<Group> {
    let Some(table) = root.get("groups").and_then(|item| item.any_table()) else {
        return Vec::new();
    };
    let entries = table.entries();
    if entries.len() + convoys.len() > MAX_GROUPS {
        let what = format!("{} groups, convoys counted", entries.len() + convoys.len());
        table.refuse(what, format!("at most {MAX_GROUPS}"));
    }
    let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    let mut groups: Vec<Group> = Vec::new();
    for (name, item) in entries.into_iter().take(MAX_GROUPS) {
        if !node::is_name(name) {
            item.refuse("the group's name is none", node::NAME_RULE);
        }
        let is_taken = names.contains(&name) || convoys.iter().any(|group| group.name == name);
        if is_taken {
            item.refuse("a node or convoy has this name too", "give the group another name");
        }
        let mut members = Vec::new();
        for member in item.list(link::net::MAX_NODES) {
            let Some(text) = member.text() else { continue };
            match nodes.iter().find(|node| node.name == text) {
                Some(node) if members.contains(&node.id) => {
                    member.refuse(format!("node {text} is named twice"), "leave one");
                }
                Some(node) => members.push(node.id),
                None => member.refuse(node::unknown("node", text, &names), ""),
            }
        }
        if members.is_empty() {
            item.refuse("has no nodes", "name one at least");
        }
        members.sort_unstable();
        groups.push(Group { name: name.to_owned(), nodes: members });
    }
    groups
}
