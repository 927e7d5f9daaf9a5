//! Tracks of GPX 1.0 and 1.1.

use super::time::parse_instant;
use super::xml::{Part, Reader};
use super::{File, MAX_TRACK_POINTS, MAX_TRACKS, NamedTrack, Recorded};
use crate::Error;
use crate::geo::Position;

/// Reads the tracks (`trk`) and routes (`rte`) of a GPX document: each a node, its segments one
/// after another. Times count from the earliest of the file. Tracks without times are gone along
/// at `speed_mps`, in m/s.
///
/// # Errors
/// [`Error::File`] naming line and element: what is no XML, a point without a latitude or off the
/// map, a time that is none or goes back, a track with neither times nor a speed, more than
/// [`MAX_TRACKS`] tracks of [`MAX_TRACK_POINTS`] points, more than
/// [`super::MAX_TRACKS_BYTES`] bytes.
pub fn parse_gpx(name: &str, text: &str, speed_mps: Option<f64>) -> Result<Vec<NamedTrack>, Error> {
    let file = File { kind: "GPX", name };
    file.check_length(text)?;
    let mut reader = Reader::new(text);
    let mut gpx = Gpx { file: &file, tracks: Vec::new(), inside: Vec::new(), text: String::new() };
    loop {
        match reader.next().map_err(|what| file.refused(reader.line(), "", what))? {
            Some(Part::Start(name, attributes)) => gpx.start(reader.line(), name, &attributes)?,
            Some(Part::End(name)) => gpx.end(reader.line(), name)?,
            Some(Part::Text(text)) => gpx.text.push_str(&text),
            None => break,
        }
    }
    file.finish(gpx.tracks, speed_mps)
}

struct Gpx<'a, 'b> {
    file: &'a File<'a>,
    tracks: Vec<Recorded>,
    /// Elements that the reader is in.
    inside: Vec<&'b str>,
    text: String,
}

impl<'b> Gpx<'_, 'b> {
    fn start(
        &mut self,
        line: usize,
        name: &'b str,
        attributes: &[(&str, String)],
    ) -> Result<(), Error> {
        self.text.clear();
        if self.inside.is_empty() && name != "gpx" {
            return Err(self.file.refused(line, name, "is no GPX: it begins with another element"));
        }
        self.inside.push(name);
        match name {
            "trk" | "rte" => {
                if self.tracks.len() == MAX_TRACKS {
                    let what = format!("more than {MAX_TRACKS} tracks: split the file");
                    return Err(self.file.refused(line, name, what));
                }
                self.tracks.push(Recorded { name: String::new(), line, points: Vec::new() });
            }
            "trkpt" | "rtept" => {
                let coordinate = |key: &str| {
                    let value = attributes.iter().find(|(name, _)| *name == key);
                    let number = value.and_then(|(_, value)| value.trim().parse().ok());
                    let what = format!("has no {key} in degrees");
                    number.ok_or_else(|| self.file.refused(line, name, what))
                };
                let place = Position::new(coordinate("lat")?, coordinate("lon")?, 0.0)
                    .map_err(|error| self.file.refused(line, name, error.to_string()))?;
                let track = self.track(line, name)?;
                if track.points.len() == MAX_TRACK_POINTS {
                    let what = format!("more than {MAX_TRACK_POINTS} points: split the track");
                    return Err(self.file.refused(line, name, what));
                }
                track.points.push((None, place));
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, line: usize, name: &str) -> Result<(), Error> {
        self.inside.pop();
        let parent = self.inside.last().copied().unwrap_or("");
        let text = std::mem::take(&mut self.text);
        match (parent, name) {
            ("trk" | "rte", "name") => text.trim().clone_into(&mut self.track(line, name)?.name),
            ("trkpt" | "rtept", "ele") => {
                let refused = |what: String| self.file.refused(line, name, what);
                let alt_m = text.trim().parse().map_err(|_| {
                    refused(format!("{} is no height in metres", crate::error::quoted(&text)))
                })?;
                let last = self.track(line, name)?.points.last_mut();
                if let Some((_, place)) = last {
                    *place = Position::new(place.lat_deg, place.lon_deg, alt_m)
                        .map_err(|error| refused(error.to_string()))?;
                }
            }
            ("trkpt" | "rtept", "time") => {
                let instant = parse_instant(&text).ok_or_else(|| {
                    let what = format!(
                        "{} is no time: give one like 2026-11-28T07:00:00Z",
                        crate::error::quoted(&text)
                    );
                    self.file.refused(line, name, what)
                })?;
                let points = &mut self.track(line, name)?.points;
                let before = points.iter().rev().skip(1).find_map(|(at, _)| *at);
                if before.is_some_and(|before| before >= instant) {
                    let what = format!("{} is not after the time before", text.trim());
                    return Err(self.file.refused(line, name, what));
                }
                if let Some((at, _)) = points.last_mut() {
                    *at = Some(instant);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn track(&mut self, line: usize, name: &str) -> Result<&mut Recorded, Error> {
        let file = self.file;
        let last = self.tracks.last_mut();
        last.ok_or_else(|| file.refused(line, name, "is in no track or route"))
    }
}
