//! A map of a scenario at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use link::losses::NodeId;
use link::net::{Link, Resolved, Routes};
use link::units::format_rate;

use super::view::View;
use super::{WIDTH, ground};
use crate::svg::{Anchor, Svg};

/// Left of the map, and above it.
const LEFT: f64 = 14.0;
const TOP: f64 = 52.0;
/// What stands on the right of the map.
const KEY: f64 = 208.0;
/// From as many links on they are drawn thin.
const MANY_LINKS: usize = 120;
/// From as many nodes on only the first of each group has its name.
const MANY_NODES: usize = 30;
/// Radius of a node.
const RADIUS: f64 = 5.0;
/// Classes of quality: rates from the fastest down.
const QUALITIES: usize = 4;
/// Colours of groups.
const COLOURS: usize = 8;
/// Most lines of the key that tell groups.
const MAX_KEY_GROUPS: usize = 12;
/// Most lines of the key that tell channels.
const MAX_KEY_MEDIA: usize = 6;

/// What is drawn.
pub(super) struct Map<'a> {
    resolved: &'a Resolved,
    at: Duration,
    root: Option<NodeId>,
    view: View,
    /// The worse way of each pair and channel.
    links: Vec<Link>,
    routes: Routes,
}

impl<'a> Map<'a> {
    pub(super) fn new(resolved: &'a Resolved, at: Duration, root: Option<NodeId>) -> Self {
        let view = View::new(&resolved.scenario, (LEFT, TOP), WIDTH - LEFT - KEY);
        let all = resolved.links(at);
        let routes = Routes::over(&resolved.scenario, &all);
        let mut pairs: BTreeMap<(usize, NodeId, NodeId), (Link, u32)> = BTreeMap::new();
        for link in all {
            let key = (link.medium, link.from.min(link.to), link.from.max(link.to));
            let entry = pairs.entry(key).or_insert((link, 0));
            entry.1 += 1;
            if link.snr_db < entry.0.snr_db {
                entry.0 = link;
            }
        }
        let both = pairs.into_values().filter(|(_, ways)| *ways == 2).map(|(link, _)| link);
        Self { resolved, at, root, view, links: both.collect(), routes }
    }

    pub(super) fn height(&self) -> f64 {
        TOP + self.view.height + 24.0
    }

    pub(super) fn draw(&self, svg: &mut Svg) {
        let View { left, top, width, height, .. } = self.view;
        let scenario = &self.resolved.scenario;
        let title = format!("{} at {} s", scenario.title, self.at.as_secs_f64());
        svg.text(left, 22.0, "title", Anchor::Start, &title);
        svg.text(left, 40.0, "soft", Anchor::Start, &self.summary());
        svg.bar("sea", (left, top), (width, height), "");
        let grid = scenario.ground.as_ref();
        let contours_m = grid.and_then(|grid| ground::draw(svg, &self.view, grid));
        let places = self.view.nodes(scenario, self.at);
        self.draw_links(svg, &places);
        self.draw_routes(svg, &places);
        self.draw_nodes(svg, &places);
        svg.bar("frame", (left, top), (width, height), "");
        self.draw_scale(svg, contours_m);
        self.draw_key(svg);
    }

    fn summary(&self) -> String {
        let scenario = &self.resolved.scenario;
        let counts = self.routes.hop_counts();
        let connected = counts.connected() as f64 / (counts.pairs.max(1)) as f64 * 100.0;
        format!(
            "{} nodes, {} links; {connected:.0} % of pairs connected, {:.2} hops on average, {} at \
             most",
            scenario.nodes.len(),
            self.links.len(),
            counts.mean(),
            counts.max()
        )
    }

    fn is_narrow(&self, medium: usize) -> bool {
        self.resolved.scenario.media.get(medium).is_some_and(|net| net.kind == "narrowband")
    }

    fn draw_links(&self, svg: &mut Svg, places: &[Option<(f64, f64)>]) {
        let many = if self.links.len() >= MANY_LINKS { " many" } else { "" };
        // Good ones on top of bad ones, narrow ones on top of all.
        let mut links: Vec<&Link> = self.links.iter().collect();
        let rank = |link: &&Link| (self.is_narrow(link.medium), std::cmp::Reverse(link.rate_place));
        links.sort_by_key(rank);
        for link in links {
            let (Some(from), Some(to)) = (at(places, link.from), at(places, link.to)) else {
                continue;
            };
            let quality = link.rate_place.min(QUALITIES - 1);
            let is_narrow = self.is_narrow(link.medium);
            let narrow = if is_narrow { " narrow" } else { many };
            let class = format!("link q{quality}{narrow}");
            let title = format!(
                "{} – {} over {}: {:.1} dB, {}",
                self.name(link.from),
                self.name(link.to),
                self.resolved.scenario.media.get(link.medium).map_or("", |net| net.name.as_str()),
                link.snr_db,
                format_rate(link.rate_bps)
            );
            let steps = format!("M{:.1} {:.1}L{:.1} {:.1}", from.0, from.1, to.0, to.1);
            svg.path(&class, &steps, &title);
        }
    }

    /// The first hops of all nodes towards the root.
    fn draw_routes(&self, svg: &mut Svg, places: &[Option<(f64, f64)>]) {
        let Some(root) = self.root else { return };
        for node in &self.resolved.scenario.nodes {
            let Some(hop) = self.routes.next(node.id, root) else { continue };
            if let (Some(from), Some(to)) = (at(places, node.id), at(places, hop.next)) {
                let steps = format!("M{:.1} {:.1}L{:.1} {:.1}", from.0, from.1, to.0, to.1);
                let hops = self.routes.hops(node.id, root).unwrap_or(0);
                let title = format!("{} to {}: {hops} hops", self.name(node.id), self.name(root));
                svg.path("route", &steps, &title);
            }
        }
    }

    fn draw_nodes(&self, svg: &mut Svg, places: &[Option<(f64, f64)>]) {
        let scenario = &self.resolved.scenario;
        let is_linked = |id: NodeId| self.links.iter().any(|link| link.from == id || link.to == id);
        let mut labels = Labels::new(&self.view, places);
        for node in &scenario.nodes {
            let Some((x, y)) = at(places, node.id) else { continue };
            let mut class = format!("node g{}", self.colour(node.id));
            if self.root == Some(node.id) {
                class.push_str(" root");
            } else if !is_linked(node.id) {
                class.push_str(" alone");
            }
            svg.circle(&class, (x, y), RADIUS, &self.about(node.id));
        }
        // Names on top of all nodes, those of leaders first: they find room.
        let is_first =
            |id: NodeId| scenario.groups.iter().any(|group| group.nodes.first() == Some(&id));
        let mut named: Vec<NodeId> = scenario.nodes.iter().map(|node| node.id).collect();
        named.sort_by_key(|id| (self.root != Some(*id), !is_first(*id), *id));
        let is_shown = |id: &NodeId| {
            scenario.nodes.len() < MANY_NODES || is_first(*id) || self.root == Some(*id)
        };
        for id in named.into_iter().filter(is_shown) {
            let Some(place) = at(places, id) else { continue };
            let name = self.name(id);
            if let Some((point, anchor)) = labels.room(place, name) {
                svg.text(point.0, point.1, "halo", anchor, name);
                svg.text(point.0, point.1, "name", anchor, name);
            }
        }
    }

    fn about(&self, id: NodeId) -> String {
        let scenario = &self.resolved.scenario;
        let Some(node) = scenario.node(id) else { return String::new() };
        let media = node.radios.iter().filter_map(|radio| scenario.media.get(radio.medium));
        let media: Vec<&str> = media.map(|net| net.name.as_str()).collect();
        let place = node.track.as_ref().map(|track| track.at(self.at));
        let place = place.map_or(String::new(), |place| {
            format!(" at {:.5},{:.5}", place.lat_deg, place.lon_deg)
        });
        format!("{}{place}, on {}", node.name, media.join(", "))
    }

    fn name(&self, id: NodeId) -> &str {
        self.resolved.scenario.node(id).map_or("", |node| node.name.as_str())
    }

    fn colour(&self, id: NodeId) -> usize {
        let groups = &self.resolved.scenario.groups;
        groups.iter().position(|group| group.nodes.contains(&id)).unwrap_or(5) % COLOURS
    }

    /// A length that is round, and what contours are apart.
    fn draw_scale(&self, svg: &mut Svg, contours_m: Option<f64>) {
        let View { left, top, height, .. } = self.view;
        let y = top + height + 16.0;
        let contours = contours_m.map(|metres| format!("contours every {metres} m"));
        let Some(per_pixel) = self.view.metres(1.0) else {
            svg.text(left, y, "soft", Anchor::Start, "no node has a place");
            return;
        };
        let most = 160.0 * per_pixel;
        let power = 10_f64.powf(most.log10().floor());
        let round = [5.0, 2.0, 1.0].map(|digit| digit * power);
        let length_m = round.into_iter().find(|length| *length <= most).unwrap_or(power);
        let pixels = length_m / per_pixel;
        svg.line("scale", (left, y - 4.0), (left + pixels, y - 4.0));
        let text = match length_m {
            metres if metres >= 1_000.0 => format!("{} km", metres / 1_000.0),
            metres => format!("{metres} m"),
        };
        svg.text(left + pixels + 8.0, y, "soft", Anchor::Start, &text);
        if let Some(contours) = contours {
            svg.text(left + self.view.width, y, "soft", Anchor::End, &contours);
        }
    }

    fn draw_key(&self, svg: &mut Svg) {
        let scenario = &self.resolved.scenario;
        let x = WIDTH - KEY + 14.0;
        let mut y = TOP + 10.0;
        for (index, net) in scenario.media.iter().take(MAX_KEY_MEDIA).enumerate() {
            let count = self.links.iter().filter(|link| link.medium == index).count();
            let name = format!("{} ({})", net.name, crate::format::count(count, "link"));
            svg.text(x, y, "key", Anchor::Start, &name);
            y += 16.0;
        }
        y += more(svg, (x, y), scenario.media.len(), MAX_KEY_MEDIA) + 6.0;
        let mut shown: Vec<(bool, Vec<u64>)> = Vec::new();
        for net in &scenario.media {
            let rates = net.config.radio.rates.iter().map(|rate| rate.rate_bps).collect();
            let entry = (net.kind == "narrowband", rates);
            if !shown.contains(&entry) {
                shown.push(entry);
            }
        }
        for (is_narrow, rates) in shown.iter().take(2) {
            for (rate, rate_bps) in rates.iter().enumerate().take(QUALITIES) {
                let narrow = if *is_narrow { " narrow" } else { "" };
                let steps = format!("M{x:.1} {:.1}h30", y - 4.0);
                svg.path(&format!("link q{rate}{narrow}"), &steps, "");
                svg.text(x + 38.0, y, "key", Anchor::Start, &format_rate(*rate_bps));
                y += 16.0;
            }
        }
        y += 6.0;
        for (index, group) in scenario.groups.iter().take(MAX_KEY_GROUPS).enumerate() {
            svg.circle(&format!("node g{}", index % COLOURS), (x + 6.0, y - 4.0), RADIUS, "");
            let text = format!("{} ({})", group.name, group.nodes.len());
            svg.text(x + 18.0, y, "key", Anchor::Start, &text);
            y += 16.0;
        }
        y += more(svg, (x, y), scenario.groups.len(), MAX_KEY_GROUPS) + 6.0;
        svg.circle("node alone", (x + 6.0, y - 4.0), RADIUS, "");
        svg.text(x + 18.0, y, "key", Anchor::Start, "hears nobody");
        if let Some(root) = self.root {
            y += 18.0;
            svg.path("route", &format!("M{x:.1} {:.1}h30", y - 4.0), "");
            let text = format!("routes to {}", self.name(root));
            svg.text(x + 38.0, y, "key", Anchor::Start, &text);
        }
    }
}

/// Says how many are left out; returns the height of that line.
fn more(svg: &mut Svg, (x, y): (f64, f64), all: usize, shown: usize) -> f64 {
    if all <= shown {
        return 0.0;
    }
    svg.text(x, y, "soft", Anchor::Start, &format!("and {} more", all - shown));
    16.0
}

fn at(places: &[Option<(f64, f64)>], id: NodeId) -> Option<(f64, f64)> {
    places.get(usize::from(id).checked_sub(1)?).copied().flatten()
}

/// Names on a map, none of which covers a node or another.
struct Labels {
    bounds: [f64; 4],
    /// Left, top, right, bottom.
    taken: Vec<[f64; 4]>,
}

impl Labels {
    fn new(view: &View, places: &[Option<(f64, f64)>]) -> Self {
        let around = |(x, y): &(f64, f64)| [x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS];
        let View { left, top, width, height, .. } = *view;
        Self {
            bounds: [left, top, left + width, top + height],
            taken: places.iter().flatten().map(around).collect(),
        }
    }

    /// Where a node's name has room, if anywhere; it is taken then.
    fn room(&mut self, (x, y): (f64, f64), name: &str) -> Option<((f64, f64), Anchor)> {
        let width = 6.8 * name.chars().count() as f64;
        let off = RADIUS + 4.0;
        let tries = [
            (x + off, y + 4.0, Anchor::Start),
            (x - off, y + 4.0, Anchor::End),
            (x, y - off, Anchor::Middle),
            (x, y + off + 8.0, Anchor::Middle),
            (x + off, y - 8.0, Anchor::Start),
            (x + off, y + 16.0, Anchor::Start),
            (x - off, y - 8.0, Anchor::End),
            (x - off, y + 16.0, Anchor::End),
        ];
        let [left, top, right, bottom] = self.bounds;
        for (x, y, anchor) in tries {
            let start = match anchor {
                Anchor::Start => x,
                Anchor::Middle => x - width / 2.0,
                Anchor::End => x - width,
            };
            let area = [start, y - 10.0, start + width, y + 2.0];
            let is_inside =
                area[0] >= left && area[1] >= top && area[2] <= right && area[3] <= bottom;
            let meets = |other: &[f64; 4]| {
                area[0] < other[2] && other[0] < area[2] && area[1] < other[3] && other[1] < area[3]
            };
            if is_inside && !self.taken.iter().any(meets) {
                self.taken.push(area);
                return Some(((x, y), anchor));
            }
        }
        None
    }
}
