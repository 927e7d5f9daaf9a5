//! Where places of a scenario lie in a picture.

use std::f64::consts::TAU;
use std::time::Duration;

use link::geo::Position;
use link::net::Scenario;

/// Metres of a degree of latitude.
const METRES_PER_DEGREE: f64 = 111_195.0;
/// Share of the map's width and height that is left free around the nodes.
const MARGIN: f64 = 0.09;
/// Least width and height of the ground on a map, in metres.
const MIN_SPAN_M: f64 = 400.0;
/// Heights of a map, in pixels.
const HEIGHTS: std::ops::RangeInclusive<f64> = 380.0..=640.0;

/// The piece of the Earth that a map shows: the same at all times of a scenario.
pub(super) struct View {
    /// Of the map's corner, in pixels.
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    /// The south-west, and pixels per degree of longitude and latitude; none where no node has a
    /// place.
    earth: Option<(Position, [f64; 2])>,
}

impl View {
    /// Fits all places of all nodes at all times into a map of a width.
    pub(super) fn new(scenario: &Scenario, corner: (f64, f64), width: f64) -> Self {
        let (left, top) = corner;
        let tracks = scenario.nodes.iter().filter_map(|node| node.track.as_ref());
        let during = |(at, _): &&(Duration, Position)| *at <= scenario.duration;
        let places = tracks.flat_map(|track| {
            let points = track.points().iter().filter(during).map(|(_, place)| *place);
            points.chain([track.at(Duration::ZERO), track.at(scenario.duration)])
        });
        let mut bounds: Option<[f64; 4]> = None;
        for Position { lat_deg, lon_deg, .. } in places {
            let [south, north, west, east] = bounds.unwrap_or([lat_deg, lat_deg, lon_deg, lon_deg]);
            bounds = Some([
                south.min(lat_deg),
                north.max(lat_deg),
                west.min(lon_deg),
                east.max(lon_deg),
            ]);
        }
        let Some([south, north, west, east]) = bounds else {
            return Self { left, top, width, height: *HEIGHTS.end(), earth: None };
        };
        let middle = ((south + north) / 2.0, (west + east) / 2.0);
        let narrowing = middle.0.to_radians().cos().max(0.01);
        let inside = 1.0 - 2.0 * MARGIN;
        let wide_m = ((east - west) * METRES_PER_DEGREE * narrowing).max(MIN_SPAN_M) / inside;
        let high_m = ((north - south) * METRES_PER_DEGREE).max(MIN_SPAN_M) / inside;
        let height = (width * high_m / wide_m).clamp(*HEIGHTS.start(), *HEIGHTS.end());
        // The same scale both ways: as many pixels a metre as both ways allow.
        let pixels_per_m = (width / wide_m).min(height / high_m);
        let per_degree =
            [pixels_per_m * METRES_PER_DEGREE * narrowing, pixels_per_m * METRES_PER_DEGREE];
        let south_west = Position {
            lat_deg: middle.0 - height / 2.0 / per_degree[1],
            lon_deg: middle.1 - width / 2.0 / per_degree[0],
            alt_m: 0.0,
        };
        let south_west = on_ground(scenario, south_west, [width, height], per_degree);
        Self { left, top, width, height, earth: Some((south_west, per_degree)) }
    }

    /// Where a place lies.
    fn xy(&self, place: &Position) -> Option<(f64, f64)> {
        let (south_west, [per_lon, per_lat]) = self.earth.as_ref()?;
        let x = self.left + (place.lon_deg - south_west.lon_deg) * per_lon;
        let y = self.top + self.height - (place.lat_deg - south_west.lat_deg) * per_lat;
        Some((x, y))
    }

    /// The place that lies at a point.
    pub(super) fn place(&self, x: f64, y: f64) -> Option<Position> {
        let (south_west, [per_lon, per_lat]) = self.earth.as_ref()?;
        let lat_deg = south_west.lat_deg + (self.top + self.height - y) / per_lat;
        let lon_deg = south_west.lon_deg + (x - self.left) / per_lon;
        Position::new(lat_deg, lon_deg, 0.0).ok()
    }

    /// Metres that so many pixels are.
    pub(super) fn metres(&self, pixels: f64) -> Option<f64> {
        self.earth.as_ref().map(|(_, [_, per_lat])| pixels / per_lat * METRES_PER_DEGREE)
    }

    /// Where all nodes lie at a time; without any place on a circle.
    pub(super) fn nodes(&self, scenario: &Scenario, at: Duration) -> Vec<Option<(f64, f64)>> {
        let count = scenario.nodes.len().max(1) as f64;
        let node = |(index, node): (usize, &link::net::Node)| match (&self.earth, &node.track) {
            (None, _) => {
                let angle = TAU * index as f64 / count;
                let radius = 0.4 * self.height.min(self.width);
                let middle = (self.left + self.width / 2.0, self.top + self.height / 2.0);
                Some((middle.0 + radius * angle.sin(), middle.1 - radius * angle.cos()))
            }
            (Some(_), track) => track.as_ref().and_then(|track| self.xy(&track.at(at))),
        };
        scenario.nodes.iter().enumerate().map(node).collect()
    }
}

/// Moves a view's south-west so that as much of the ground is seen as there is.
fn on_ground(
    scenario: &Scenario,
    south_west: Position,
    [width, height]: [f64; 2],
    [per_lon, per_lat]: [f64; 2],
) -> Position {
    let Some(ground) = &scenario.ground else { return south_west };
    let [least, most] = ground.corners();
    let moved = |start: f64, span: f64, least: f64, most: f64| {
        let last = most - span;
        // A view that is larger than the ground stays around the nodes.
        if last > least { start.clamp(least, last) } else { start }
    };
    Position {
        lat_deg: moved(south_west.lat_deg, height / per_lat, least.lat_deg, most.lat_deg),
        lon_deg: moved(south_west.lon_deg, width / per_lon, least.lon_deg, most.lon_deg),
        alt_m: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(places: &[(f64, f64)]) -> Scenario {
        let mut text = "title = 't'\nduration = '1 s'\n[[medium]]\nname = 'w'\n\
                        frequency = '300 MHz'\n"
            .to_owned();
        // A scenario has two nodes at least.
        for (index, (lat, lon)) in places.iter().chain(places.first()).enumerate() {
            text += &format!("[[node]]\nname = 'n{index}'\nradios = ['w']\nat = [{lat}, {lon}]\n");
        }
        let no_file = |name: &str, _: usize| Err(format!("no {name}"));
        services::scenario::parse("test", &text, &no_file).unwrap()
    }

    #[test]
    fn all_nodes_lie_inside_at_one_scale() {
        for places in [
            &[(50.0, 7.0), (50.1, 7.0), (50.0, 7.3)][..],
            &[(50.0, 7.0), (50.4, 7.01)],
            &[(50.0, 7.0), (50.0, 7.2)],
            &[(-33.0, 151.0)],
        ] {
            let scenario = scenario(places);
            let view = View::new(&scenario, (10.0, 20.0), 600.0);
            let nodes = view.nodes(&scenario, Duration::ZERO);
            for ((lat, lon), at) in places.iter().zip(&nodes) {
                let (x, y) = at.unwrap();
                assert!((10.0..=610.0).contains(&x) && (20.0..=20.0 + view.height).contains(&y));
                let back = view.place(x, y).unwrap();
                assert!((back.lat_deg - lat).abs() < 1e-9 && (back.lon_deg - lon).abs() < 1e-9);
            }
            if let ([Some(a), Some(b), ..], true) = (&nodes[..], places.len() > 1) {
                let at = |place: (f64, f64)| Position::new(place.0, place.1, 0.0).unwrap();
                let metres = at(places[0]).ground_distance_m(&at(places[1]));
                let drawn = view.metres((a.0 - b.0).hypot(a.1 - b.1)).unwrap();
                assert!((drawn / metres - 1.0).abs() < 0.01, "{drawn} {metres}");
            }
        }
    }

    #[test]
    fn nodes_without_any_place_lie_apart_on_a_circle() {
        let mut scenario = scenario(&[(50.0, 7.0); 5]);
        scenario.nodes.iter_mut().for_each(|node| node.track = None);
        let view = View::new(&scenario, (0.0, 0.0), 600.0);
        let nodes = view.nodes(&scenario, Duration::ZERO);
        let apart = |a: Option<(f64, f64)>, b: Option<(f64, f64)>| {
            let (a, b) = (a.unwrap(), b.unwrap());
            (a.0 - b.0).hypot(a.1 - b.1)
        };
        assert!((0..4).all(|index| apart(nodes[index], nodes[index + 1]) > 100.0));
        assert_eq!(view.place(1.0, 1.0), None);
    }
}
