//! What a demonstration fetches, over which links.

use std::path::PathBuf;
use std::time::Duration;

use link::{ChannelConfig, LinkConfig, presets};
use record::demo::{Item, Network, Service};
use services::client::Target;

use crate::error::{Error, Result};
use crate::namespace::Privilege;

/// Networks unless others are asked for.
pub const NETWORKS: [&str; 6] = ["satcom", "los", "wifi1", "wifi2", "wifi3", "cnr"];
/// Where this network is among them, its first service is fetched over links with other losses too.
const CURVE_NETWORK: &str = "wifi2";
/// Which losses, in each direction.
const CURVE_LOSSES: [f64; 5] = [0.0, 0.01, 0.05, 0.1, 0.3];
/// Where this network is among them, messages are sent beside others that fill its link.
const URGENT_NETWORK: &str = "cnr";
/// What fills it, and with how many clients.
pub(super) const BULK_SERVICE: &str = "soap";
pub(super) const BULK_CLIENTS: usize = 4;
/// The messages: the shortest track of its service, of 713 bytes, so many times.
pub(super) const URGENT_SERVICE: &str = "rest-json";
pub(super) const URGENT_PATH: &str = "/rest/json/1";
pub(super) const URGENT_MESSAGES: usize = 12;
/// Most cells at once, each a pair of hosts with three to five processes.
const MAX_CELLS: usize = 150;
/// Links slower than this get the short list, cold.
const SLOW_BPS: u64 = 64_000;
/// The short list by number: the smallest files and those around the median and the mean. SOAP
/// over 9.6 kbit/s takes about two minutes and a quarter for it. An odd number, so that the median
/// is one in the middle.
const SHORT_TRACKS: [usize; 9] = [1, 2, 3, 5, 7, 8, 11, 12, 14];
/// How often a service of the user's own is asked in each pass.
const URL_FETCHES: usize = 10;
/// The same on slow links.
const URL_FETCHES_SLOW: usize = 3;

/// A demonstration to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The binary that is started on the hosts.
    pub program: PathBuf,
    /// Names of presets.
    pub networks: Vec<String>,
    /// What is fetched; see [`track_name`] and [`url_items`] for the names of items.
    pub services: Vec<Service>,
    /// A service outside, instead of the tracks.
    pub url: Option<Target>,
    /// Decides every chance on the links.
    pub seed: u64,
    /// Longest that one cell's fetches may take.
    pub budget: Duration,
    /// Where the right to make hosts comes from: what [`acquire`](crate::acquire) gave.
    pub privilege: Privilege,
    /// What is run, for the report.
    pub about: About,
}

/// What is run.
#[derive(Clone, Debug)]
pub struct About {
    /// Version of longwire.
    pub version: String,
    /// Revision of the sources, where known.
    pub revision: Option<String>,
    /// `release` or `debug`.
    pub profile: String,
    /// The command that repeats it.
    pub command: String,
    /// The encoding that [`Item::encoded_body_bytes`] was counted with.
    pub bound_encoding: String,
}

/// The name of a track in results.
#[must_use]
pub fn track_name(number: usize) -> String {
    format!("track {number}")
}

/// The number of a track by that name.
pub(super) fn track_number(name: &str) -> Option<usize> {
    name.strip_prefix("track ")?.parse().ok()
}

/// The things fetched from a service of the user's own, all alike.
#[must_use]
pub fn url_items(like: &Item) -> Vec<Item> {
    let item = |number| Item { name: format!("GET {number}"), ..like.clone() };
    (1..=URL_FETCHES).map(item).collect()
}

/// A network with what the ferry needs to emulate it.
pub(super) struct Link {
    pub(super) network: Network,
    pub(super) config: LinkConfig,
}

/// A network's link with other losses.
pub(super) struct CurveLinks {
    /// The place of the network.
    pub(super) at: usize,
    /// What is lost in each direction, 0 to 1, and the link that loses it.
    pub(super) by_loss: Vec<(f64, Link)>,
}

impl Plan {
    /// Refuses what cannot be run.
    ///
    /// # Errors
    /// [`Error::Caller`] for a network that is unknown or named twice, for no or too many cells.
    pub fn check(&self) -> Result<()> {
        self.links().map(drop)
    }

    /// The networks, checked.
    pub(super) fn links(&self) -> Result<Vec<Link>> {
        let cells = self.networks.len() * self.services.len() * record::demo::Mode::ALL.len();
        if cells == 0 || cells > MAX_CELLS {
            return Err(Error::Caller(format!(
                "{cells} cells (networks × services × 3 ways): give 1 to {MAX_CELLS}"
            )));
        }
        let mut links: Vec<Link> = Vec::new();
        for name in &self.networks {
            if links.iter().any(|link| link.network.name == *name) {
                return Err(Error::Caller(format!(
                    "network '{name}' is named twice: once is enough"
                )));
            }
            links.push(self.link(name)?);
        }
        Ok(links)
    }

    /// The links of the curve, where its network is among `links`.
    pub(super) fn curve(&self, links: &[Link]) -> Result<Option<CurveLinks>> {
        let is_it = |link: &Link| link.network.name == CURVE_NETWORK && self.url.is_none();
        let Some(at) = links.iter().position(is_it) else { return Ok(None) };
        let with = |loss: f64| {
            let mut config = links[at].config.clone();
            (config.ab.loss, config.ba.loss) = (loss, loss);
            let mut link = self.link_of(CURVE_NETWORK, config)?;
            link.network.name = format!("{CURVE_NETWORK} at {} %", loss * 100.0);
            Ok((loss, link))
        };
        let by_loss = CURVE_LOSSES.into_iter().map(with).collect::<Result<_>>()?;
        Ok(Some(CurveLinks { at, by_loss }))
    }

    /// The place of the network where messages are sent beside others, if it is among `links`.
    pub(super) fn urgent(&self, links: &[Link]) -> Option<usize> {
        let is_it = |link: &Link| link.network.name == URGENT_NETWORK && self.url.is_none();
        links.iter().position(is_it)
    }

    fn link(&self, name: &str) -> Result<Link> {
        self.link_of(name, crate::sets::load(name)?)
    }

    fn link_of(&self, name: &str, config: LinkConfig) -> Result<Link> {
        let source = presets().iter().find(|preset| preset.name == name);
        let ChannelConfig { rate_bps, loss, .. } = config.ba;
        let cold = is_slow(&config);
        let items = match (&self.url, cold) {
            (None, false) => numbered(1..=services::tracks::FILE_COUNT),
            (None, true) => numbered(SHORT_TRACKS),
            (Some(_), false) => (1..=URL_FETCHES).map(|n| format!("GET {n}")).collect(),
            (Some(_), true) => (1..=URL_FETCHES_SLOW).map(|n| format!("GET {n}")).collect(),
        };
        let network = Network {
            name: name.to_string(),
            source: source.map_or("saved by name", |preset| preset.source).to_string(),
            settings: config.settings(),
            rate_bps,
            delay_s: config.ab.delay.max(config.ba.delay).as_secs_f64(),
            loss,
            cold,
            items,
        };
        Ok(Link { network, config })
    }
}

fn numbered(numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    numbers.into_iter().map(track_name).collect()
}

fn is_slow(config: &LinkConfig) -> bool {
    let rates = [config.ab.rate_bps, config.ba.rate_bps];
    rates.into_iter().flatten().any(|rate_bps| rate_bps < SLOW_BPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(networks: &[&str]) -> Plan {
        Plan {
            program: PathBuf::new(),
            networks: networks.iter().map(ToString::to_string).collect(),
            services: vec![Service { name: "soap".to_string(), items: Vec::new() }],
            url: None,
            seed: 1,
            budget: Duration::from_secs(1),
            privilege: Privilege::Root,
            about: About {
                version: String::new(),
                revision: None,
                profile: String::new(),
                command: String::new(),
                bound_encoding: String::new(),
            },
        }
    }

    #[test]
    fn slow_links_get_the_short_list_cold() {
        let links = plan(&["los", "cnr"]).links().unwrap();
        let seen = links.iter().map(|link| (link.network.cold, link.network.items.len()));
        assert_eq!(seen.collect::<Vec<_>>(), [(false, 22), (true, SHORT_TRACKS.len())]);
        assert_eq!(links[1].network.items[0], "track 1");
        assert!(links[1].network.settings.iter().any(|(key, _)| key == "queue_packets"));
    }

    #[test]
    fn what_cannot_be_run_is_refused_in_one_line() {
        for (networks, why) in
            [(&["moon"][..], "moon"), (&["los", "los"], "twice"), (&[], "0 cells")]
        {
            let message = plan(networks).links().err().unwrap().to_string();
            assert!(message.contains(why) && !message.contains('\n'), "{message}");
        }
    }
}
