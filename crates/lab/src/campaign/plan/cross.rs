//! From networks, servers, services, ways and settings to cells.

use std::collections::{BTreeMap, BTreeSet};

use record::campaign::{Figure, Reference, Way};

use super::file::{self, File, Vary};
use super::{
    CellPlan, Choice, ClientPlan, CommandPlan, MAX_CELLS, MAX_SLOWDOWN, NetworkPlan, PAIR_SETTINGS,
    ServerPlan,
};
use crate::experiment::pair;

/// Result with one line.
type Result<T> = std::result::Result<T, String>;
/// Settings that differ from the defaults.
type Settings = BTreeMap<String, String>;

/// What there is to be crossed.
pub(super) struct Crossing<'a> {
    pub(super) networks: &'a [NetworkPlan],
    pub(super) servers: &'a [ServerPlan],
    pub(super) commands: &'a [CommandPlan],
}

/// Leaves of a plan what its quick form keeps.
pub(super) fn restrict(file: &mut File) -> Result<()> {
    let Some(quick) = &file.quick else {
        return Err("the plan has no [quick] section: run it without --quick".to_string());
    };
    if let Some(names) = &quick.networks {
        known("quick.networks", names, file.networks.iter().map(|network| network.name.as_str()))?;
        file.networks.retain(|network| names.contains(&network.name));
        for group in &mut file.groups {
            if let Some(networks) = &mut group.networks {
                networks.retain(|network| names.contains(network));
            }
        }
        file.references.retain(|reference| names.contains(&reference.network));
        file.figures.retain(|figure| names.contains(&figure.network));
        file.advice.retain(|network, _| names.contains(network));
        file.groups.retain(|group| group.networks.as_ref().is_none_or(|some| !some.is_empty()));
    }
    if let Some(names) = &quick.groups {
        known("quick.groups", names, file.groups.iter().map(|group| group.name.as_str()))?;
        file.groups.retain(|group| names.contains(&group.name));
        for figure in &mut file.figures {
            figure.groups.retain(|group| names.contains(group));
        }
        file.figures.retain(|figure| !figure.groups.is_empty());
    }
    if let Some(names) = &quick.services {
        for group in &mut file.groups {
            match &mut group.services {
                Some(services) => services.retain(|service| names.contains(service)),
                None => group.services = Some(names.clone()),
            }
        }
        file.groups.retain(|group| group.services.as_ref().is_none_or(|some| !some.is_empty()));
    }
    // Its word counts more than a group's too.
    for group in &mut file.groups {
        group.client = quick.client.over(&group.client);
    }
    if let Some(repetitions) = quick.repetitions {
        file.repetitions = repetitions;
        file.networks.iter_mut().for_each(|network| network.repetitions = None);
        file.groups.iter_mut().for_each(|group| group.repetitions = None);
    }
    Ok(())
}

impl Crossing<'_> {
    /// All cells, each once, in the order of networks.
    pub(super) fn cells(&self, file: &File, choice: &Choice) -> Result<Vec<CellPlan>> {
        if file.groups.is_empty() {
            return Err("no [[group]]: say what is varied".to_string());
        }
        super::unique("group", file.groups.iter().map(|group| group.name.as_str()))?;
        let (mut cells, mut places): (Vec<CellPlan>, BTreeMap<String, usize>) = Default::default();
        for group in &file.groups {
            for cell in self.group(group)? {
                match places.get(&cell.name) {
                    Some(&place) => cells[place].join(cell),
                    None if cells.len() == MAX_CELLS => {
                        return Err(format!("over {MAX_CELLS} cells: vary less at once"));
                    }
                    None => {
                        places.insert(cell.name.clone(), cells.len());
                        cells.push(cell);
                    }
                }
            }
        }
        if let Some(repetitions) = choice.repetitions {
            cells.iter_mut().for_each(|cell| cell.repetitions = repetitions);
        }
        cells.retain(|cell| {
            choice.cells.is_empty()
                || choice.cells.iter().any(|pattern| matches(pattern, &cell.name))
        });
        if cells.is_empty() {
            let what = match choice.cells.as_slice() {
                [] => "no cells at all: give each group networks, services and values".to_string(),
                patterns => format!("no cell matches '{}': see --list", patterns.join("', '")),
            };
            return Err(what);
        }
        cells.sort_by_key(|cell| cell.network);
        Ok(cells)
    }

    fn group(&self, group: &file::Group) -> Result<Vec<CellPlan>> {
        let at = |what: String| format!("group '{}': {what}", group.name);
        let server = self.servers.iter().position(|server| server.name == group.server);
        let server = server.ok_or_else(|| at(format!("no server '{}'", group.server)))?;
        let offered = &self.servers[server].services;
        let services = group.services.as_ref().unwrap_or(offered);
        let own = self.commands.iter().map(|command| command.name.as_str());
        known("services", services, offered.iter().map(String::as_str).chain(own)).map_err(at)?;
        let ways = group.ways.clone().unwrap_or_else(|| vec![Way::Direct.name().to_string()]);
        known("ways", &ways, Way::ALL.map(Way::name).into_iter()).map_err(at)?;
        check_pair(&group.settings, &ways).map_err(at)?;
        let all: Vec<String> = self.networks.iter().map(|of| of.network.name.clone()).collect();
        let networks = group.networks.as_ref().unwrap_or(&all);
        known("networks", networks, all.iter().map(String::as_str)).map_err(at)?;
        let variants = self.variants(group, server).map_err(at)?;
        let mut cells = Vec::new();
        for (network, of) in self.networks.iter().enumerate() {
            if !networks.contains(&of.network.name) {
                continue;
            }
            let client = super::client(&group.client.over(&of.client)).map_err(at)?;
            for service in services {
                for way in ways.iter().filter_map(|way| Way::parse(way)) {
                    for settings in &variants {
                        let place = CellPosition { network, server, service, way };
                        let mut cell = self.cell(&place, settings, &group.name, &client);
                        cell.repetitions = group.repetitions.unwrap_or(of.repetitions);
                        cells.push(cell);
                    }
                }
            }
        }
        if cells.is_empty() {
            return Err(at("an empty cross product: give networks, services, ways".to_string()));
        }
        Ok(cells)
    }

    /// Combinations of settings, each without those that are at their default.
    fn variants(&self, group: &file::Group, server: usize) -> Result<Vec<Settings>> {
        if let Some((name, _)) = group.settings.iter().find(|(_, values)| values.is_empty()) {
            return Err(format!("an empty cross product: '{name}' has no values"));
        }
        let defaults: BTreeMap<_, _> = self.servers[server].defaults.iter().cloned().collect();
        let one = |name: &String, value: &String| match defaults.get(name) {
            Some(default) if default == value => Settings::new(),
            _ => Settings::from([(name.clone(), value.clone())]),
        };
        let mut variants = vec![Settings::new()];
        match group.vary {
            Vary::One => {
                for (name, values) in &group.settings {
                    variants.extend(values.iter().map(|value| one(name, value)));
                }
            }
            Vary::All => {
                for (name, values) in &group.settings {
                    let with = |settings: &Settings| {
                        let of =
                            |value| settings.clone().into_iter().chain(one(name, value)).collect();
                        values.iter().map(of).collect::<Vec<Settings>>()
                    };
                    variants = variants.iter().flat_map(with).collect();
                    if variants.len() > MAX_CELLS {
                        return Err(format!("over {MAX_CELLS} combinations: vary less at once"));
                    }
                }
            }
        }
        let mut seen = BTreeSet::new();
        variants.retain(|settings| seen.insert(settings.clone()));
        Ok(variants)
    }

    fn cell(
        &self,
        at: &CellPosition<'_>,
        settings: &Settings,
        group: &str,
        client: &ClientPlan,
    ) -> CellPlan {
        let settings: Vec<(String, String)> = settings.clone().into_iter().collect();
        CellPlan {
            name: self.name(at, &settings),
            network: at.network,
            server: at.server,
            service: at.service.to_string(),
            way: at.way,
            settings,
            groups: vec![group.to_string()],
            repetitions: 1,
            client: client.clone(),
        }
    }

    fn name(&self, at: &CellPosition<'_>, settings: &[(String, String)]) -> String {
        let settings: Vec<String> =
            settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let variant = if settings.is_empty() { "default".to_string() } else { settings.join(",") };
        let (network, server) = (&self.networks[at.network].network.name, &self.servers[at.server]);
        format!("{network}/{}/{}/{}/{variant}", server.name, at.service, at.way.name())
    }

    /// What others have published, by the name of the cell.
    pub(super) fn references(&self, file: &File) -> Result<Vec<Reference>> {
        let reference = |of: &file::Reference| {
            let at = |what: String| format!("reference of '{}': {what}", of.network);
            let network = self.networks.iter().position(|one| one.network.name == of.network);
            let network = network.ok_or_else(|| at("no such network".to_string()))?;
            let server = self.servers.iter().position(|one| one.name == of.server);
            let server = server.ok_or_else(|| at(format!("no server '{}'", of.server)))?;
            let place = CellPosition { network, server, service: &of.service, way: Way::Direct };
            let settings: Vec<_> = of.settings.clone().into_iter().collect();
            let seconds = of.time.0.as_secs_f64();
            Ok(Reference { cell: self.name(&place, &settings), seconds, note: of.note.clone() })
        };
        file.references.iter().map(reference).collect()
    }

    /// Pictures of groups that exist.
    pub(super) fn figures(&self, file: &File, cells: &[CellPlan]) -> Result<Vec<Figure>> {
        let groups: BTreeSet<&str> = file.groups.iter().map(|group| group.name.as_str()).collect();
        for figure in &file.figures {
            let at = |what: String| format!("figure '{}': {what}", figure.title);
            let networks = self.networks.iter().map(|of| of.network.name.as_str());
            known("network", std::slice::from_ref(&figure.network), networks).map_err(at)?;
            known("groups", &figure.groups, groups.iter().copied()).map_err(at)?;
        }
        let is_shown = |figure: &&file::Figure| {
            cells.iter().any(|cell| {
                self.networks[cell.network].network.name == figure.network
                    && cell.groups.iter().any(|group| figure.groups.contains(group))
            })
        };
        let figures = file.figures.iter().filter(is_shown).map(|figure| Figure {
            title: figure.title.clone(),
            network: figure.network.clone(),
            groups: figure.groups.clone(),
        });
        Ok(figures.collect())
    }
}

/// Settings of the pair need the pair, and a processor a number.
fn check_pair(settings: &BTreeMap<String, Vec<String>>, ways: &[String]) -> Result<()> {
    let [_, processor, _, carrier] = PAIR_SETTINGS;
    let of_pair = PAIR_SETTINGS.iter().find(|name| settings.contains_key(**name));
    if let Some(name) = of_pair
        && ways.iter().any(|way| way != Way::Longwire.name())
    {
        let way = Way::Longwire.name();
        return Err(format!("'{name}' is a setting of the pair: give ways = [\"{way}\"]"));
    }
    for value in settings.get(processor).into_iter().flatten() {
        let factor = value.parse::<f64>().ok().filter(|of| (1.0..=MAX_SLOWDOWN).contains(of));
        if factor.is_none() {
            return Err(format!(
                "{processor} '{value}': how many times slower, from 1 to {MAX_SLOWDOWN}"
            ));
        }
    }
    let carriers = settings.get(carrier).map_or(&[][..], Vec::as_slice);
    known(carrier, carriers, pair::CARRIERS.into_iter())
}

/// Where a cell stands, its settings apart.
struct CellPosition<'a> {
    network: usize,
    server: usize,
    service: &'a str,
    way: Way,
}

impl CellPlan {
    /// Takes in what another group wants of the same cell.
    fn join(&mut self, other: Self) {
        for group in other.groups {
            if !self.groups.contains(&group) {
                self.groups.push(group);
            }
        }
        self.repetitions = self.repetitions.max(other.repetitions);
    }
}

/// Refuses names that are not there.
pub(super) fn known<'a>(
    what: &str,
    names: &[String],
    known: impl Iterator<Item = &'a str> + Clone,
) -> Result<()> {
    let Some(name) = names.iter().find(|name| !known.clone().any(|known| known == *name)) else {
        return Ok(());
    };
    let all: Vec<&str> = known.collect();
    Err(match link::nearest(name, &all) {
        Some(nearest) => format!("{what}: no '{name}': did you mean '{nearest}'?"),
        None => format!("{what}: no '{name}': one of {}", all.join(", ")),
    })
}

/// Whether a name fits a pattern in which `*` stands for anything.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}
