//! Vehicles that follow each other along a way.

use super::MAX_NODES;
use crate::Error;
use crate::geo::Position;
use crate::tracks::Track;
use std::time::Duration;

/// Vehicles that follow each other: the first leads, each other one is a gap behind the one before
/// it. At the start the last stands at the way's first point; at the way's end the first stops, and
/// the others behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Convoy {
    /// The way, from point to point.
    pub way: Vec<Position>,
    /// How many vehicles.
    pub count: usize,
    /// Metres from one to the next along the way.
    pub gap_m: f64,
    /// Their speed in m/s.
    pub speed_mps: f64,
    /// When they set off.
    pub start: Duration,
}

impl Convoy {
    /// Where each vehicle is, the first one's track first.
    ///
    /// # Errors
    /// [`Error::Path`] for a way of fewer than two places, one that is shorter than the convoy, no
    /// vehicle or more than [`MAX_NODES`], a speed or gap out of range.
    pub fn tracks(&self) -> Result<Vec<Track>, Error> {
        let refused = |what: String| Err(Error::Path { what });
        if self.count == 0 || self.count > MAX_NODES {
            return refused(format!("{} vehicles: give 1 to {MAX_NODES}", self.count));
        }
        if !(0.01..=1_000.0).contains(&self.speed_mps) {
            return refused(format!("a speed of {} m/s: give 0.01 to 1000", self.speed_mps));
        }
        if !(1.0..=100_000.0).contains(&self.gap_m) {
            return refused(format!("a gap of {} m: give 1 to 100000", self.gap_m));
        }
        let mut along_m = vec![0.0];
        for pair in self.way.windows(2) {
            let before_m = along_m.last().copied().unwrap_or(0.0);
            along_m.push(before_m + pair[0].ground_distance_m(&pair[1]));
        }
        let length_m = along_m.last().copied().unwrap_or(0.0);
        let tail_m = (self.count - 1) as f64 * self.gap_m;
        if self.way.len() < 2 || length_m <= tail_m {
            return refused(format!(
                "a way of {} points and {length_m:.0} m for a convoy of {tail_m:.0} m: give a \
                 longer way, a smaller gap or fewer vehicles",
                self.way.len()
            ));
        }
        let run_m = length_m - tail_m;
        (0..self.count)
            .map(|place| self.track(&along_m, tail_m - place as f64 * self.gap_m, run_m))
            .collect()
    }

    /// The track of a vehicle that begins `from_m` along the way and goes `run_m`.
    fn track(&self, along_m: &[f64], from_m: f64, run_m: f64) -> Result<Track, Error> {
        let until_m = from_m + run_m;
        let corners = along_m.iter().copied().filter(|at_m| from_m < *at_m && *at_m < until_m);
        let mut points: Vec<(Duration, Position)> = Vec::new();
        for at_m in [from_m].into_iter().chain(corners).chain([until_m]) {
            let time = Duration::from_secs_f64((at_m - from_m) / self.speed_mps);
            let time = self.start.saturating_add(time);
            // Two corners at one place are one.
            if points.last().is_none_or(|(last, _)| *last < time) {
                points.push((time, self.place(along_m, at_m)));
            }
        }
        Track::moving(points)
    }

    fn place(&self, along_m: &[f64], at_m: f64) -> Position {
        let after = along_m.partition_point(|other_m| *other_m <= at_m).min(along_m.len() - 1);
        let before = after.saturating_sub(1);
        let (start_m, end_m) = (along_m[before], along_m[after]);
        let share = if end_m > start_m { (at_m - start_m) / (end_m - start_m) } else { 0.0 };
        self.way[before].towards(&self.way[after], share.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convoy() -> Convoy {
        let at = |lat, lon| Position::new(lat, lon, 0.0).unwrap();
        Convoy {
            way: vec![at(50.0, 7.0), at(50.01, 7.0), at(50.01, 7.02)],
            count: 3,
            gap_m: 100.0,
            speed_mps: 10.0,
            start: Duration::from_secs(5),
        }
    }

    #[test]
    fn each_is_a_gap_behind_the_one_before_on_straights() {
        let tracks = convoy().tracks().unwrap();
        for second in [0, 5, 20, 60] {
            let at = |place: usize| tracks[place].at(Duration::from_secs(second));
            for place in [0, 1] {
                let gap_m = at(place).ground_distance_m(&at(place + 1));
                assert!((gap_m - 100.0).abs() < 0.1, "{second} s: {gap_m} m");
            }
        }
        let first = |second| tracks[0].at(Duration::from_secs(second));
        assert!((first(15).ground_distance_m(&first(25)) - 100.0).abs() < 0.1);
        assert_eq!(first(0), first(5));
        let last = tracks[2].at(Duration::ZERO);
        assert!(last.ground_distance_m(&convoy().way[0]) < 0.01);
        let end = tracks[0].at(Duration::from_secs(100_000));
        assert!(end.ground_distance_m(&convoy().way[2]) < 0.01);
    }

    #[test]
    fn what_is_no_convoy_is_refused() {
        let change = |change: &dyn Fn(&mut Convoy)| {
            let mut convoy = convoy();
            change(&mut convoy);
            convoy.tracks().unwrap_err().to_string()
        };
        for (error, expected) in [
            (change(&|convoy| convoy.count = 0), "0 vehicles"),
            (change(&|convoy| convoy.count = 300), "longer way"),
            (change(&|convoy| convoy.way.truncate(1)), "1 points"),
            (change(&|convoy| convoy.way.clear()), "0 points"),
            (change(&|convoy| convoy.speed_mps = f64::NAN), "NaN m/s"),
            (change(&|convoy| convoy.gap_m = 0.0), "gap of 0 m"),
        ] {
            assert!(error.contains(expected), "{error}");
        }
    }
}
