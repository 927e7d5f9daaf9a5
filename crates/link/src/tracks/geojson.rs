//! Tracks of GeoJSON (RFC 7946).

use super::json::{Json, Value};
use super::time::parse_instant;
use super::{File, MAX_TRACK_POINTS, MAX_TRACKS, NamedTrack, Recorded};
use crate::Error;
use crate::geo::Position;
use std::time::Duration;

/// Latest time in seconds: ten thousand years, more than any instant that is written.
const MAX_TIME_S: f64 = 3.2e11;

/// Members of a feature's properties that have one time for each coordinate, as converters from
/// GPX write them.
const TIMES: [&str; 2] = ["coordTimes", "times"];

/// Reads the features of a `GeoJSON` document: a `LineString` is a node that moves, a `Point` one
/// that stays. `properties.name` is its name; `properties.coordTimes` (or `times`, also in
/// `coordinateProperties`) has a time for each coordinate: an instant as RFC 3339 writes it, or
/// seconds. Times count from the earliest of the file. Lines without times are gone along at
/// `speed_mps`, in m/s.
///
/// # Errors
/// [`Error::File`] naming line and member: what is no JSON, a geometry of another type, a
/// coordinate that is none, as many times as coordinates or none, times that go back, a line with
/// neither times nor a speed, more than [`MAX_TRACKS`] features of [`MAX_TRACK_POINTS`] points,
/// more than [`super::MAX_TRACKS_BYTES`] bytes.
pub fn parse_geojson(
    name: &str,
    text: &str,
    speed_mps: Option<f64>,
) -> Result<Vec<NamedTrack>, Error> {
    let file = File { kind: "GeoJSON", name };
    file.check_length(text)?;
    let document = Json::parse(text).map_err(|(line, what)| file.refused(line, "", what))?;
    let recorded = match document.get("type").and_then(Json::text) {
        Some("Feature") => vec![feature(&file, &document)?],
        Some("FeatureCollection") => {
            let features = document
                .get("features")
                .and_then(Json::list)
                .ok_or_else(|| file.refused(document.line, "features", "is missing or no list"))?;
            if features.len() > MAX_TRACKS {
                let what = format!("more than {MAX_TRACKS} features: split the file");
                return Err(file.refused(document.line, "features", what));
            }
            features.iter().map(|one| feature(&file, one)).collect::<Result<_, _>>()?
        }
        _ => {
            let what = "is neither Feature nor FeatureCollection";
            return Err(file.refused(document.line, "type", what));
        }
    };
    file.finish(recorded, speed_mps)
}

fn feature(file: &File<'_>, feature: &Json) -> Result<Recorded, Error> {
    let geometry = feature.get("geometry");
    let geometry = geometry.ok_or_else(|| file.refused(feature.line, "geometry", "is missing"))?;
    let coordinates = geometry
        .get("coordinates")
        .ok_or_else(|| file.refused(geometry.line, "geometry.coordinates", "is missing"))?;
    let places = match geometry.get("type").and_then(Json::text) {
        Some("Point") => vec![place(file, coordinates)?],
        Some("LineString") => {
            let list = coordinates.list().unwrap_or_default();
            if list.is_empty() || list.len() > MAX_TRACK_POINTS {
                let what = format!("{} coordinates: give 1 to {MAX_TRACK_POINTS}", list.len());
                return Err(file.refused(coordinates.line, "geometry.coordinates", what));
            }
            list.iter().map(|one| place(file, one)).collect::<Result<_, _>>()?
        }
        _ => {
            let what = "is neither Point nor LineString";
            return Err(file.refused(geometry.line, "geometry.type", what));
        }
    };
    let properties = feature.get("properties");
    let name = properties.and_then(|properties| properties.get("name")?.text());
    let times = properties.and_then(times).map_or(Ok(vec![None; places.len()]), |list| {
        let read = list.list().unwrap_or_default();
        if read.len() != places.len() {
            let what = format!("{} times for {} coordinates", read.len(), places.len());
            return Err(file.refused(list.line, "properties.coordTimes", what));
        }
        read.iter().map(|one| time(file, one).map(Some)).collect()
    })?;
    Ok(Recorded {
        name: name.unwrap_or_default().to_owned(),
        line: feature.line,
        points: times.into_iter().zip(places).collect(),
    })
}

fn times(properties: &Json) -> Option<&Json> {
    let within = |object: &'_ Json| TIMES.iter().find_map(|key| object.get(key)).is_some();
    let nested = properties.get("coordinateProperties");
    let holder = if within(properties) { Some(properties) } else { nested };
    holder.and_then(|holder| TIMES.iter().find_map(|key| holder.get(key)))
}

/// RFC 7946 §3.1.1: longitude, latitude and perhaps altitude.
fn place(file: &File<'_>, json: &Json) -> Result<Position, Error> {
    let refused = |what: String| file.refused(json.line, "geometry.coordinates", what);
    let numbers: Option<Vec<f64>> =
        json.list().and_then(|list| list.iter().map(Json::number).collect());
    match numbers.as_deref() {
        Some([lon_deg, lat_deg, rest @ ..]) if rest.len() <= 1 => {
            let alt_m = rest.first().copied().unwrap_or(0.0);
            Position::new(*lat_deg, *lon_deg, alt_m).map_err(|error| refused(error.to_string()))
        }
        _ => Err(refused("has a position that is no [longitude, latitude, metres]".to_owned())),
    }
}

fn time(file: &File<'_>, json: &Json) -> Result<Duration, Error> {
    let read = match &json.value {
        Value::Number(seconds) if (0.0..=MAX_TIME_S).contains(seconds) => {
            Some(Duration::from_secs_f64(*seconds))
        }
        Value::Text(text) => parse_instant(text),
        _ => None,
    };
    read.ok_or_else(|| {
        let what = "has what is no time: give seconds or one like 2026-11-28T07:00:00Z";
        file.refused(json.line, "properties.coordTimes", what)
    })
}
