//! `longwire lab pathloss`: what a radio signal loses between two places, and why.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use lab::Error;
use link::eel::{Eel, MAX_EEL_BYTES};
use link::geo::Position;
use link::medium::{Access, Csma, MediumConfig, Radio};
use link::prediction::Prediction;
use link::propagation::{self, Diffraction, Model, delta_bullington, free_space_db};
use link::terrain::{
    HeightGrid, MAX_GRID_HEADER_BYTES, MAX_GRID_POSTS, MAX_PROFILE_BYTES, Profile,
};
use link::units::format_rate;
use serde_json::{Value, json};

use super::say;

/// Rows of the profile that people see; JSON has all points.
const SHOWN_POINTS: usize = 16;

/// Print what a radio signal loses between two places, and the ground between them.
///
/// The places are given by coordinates, by a profile of the ground, or as nodes of an EMANE eel
/// file, whose own path loss is then printed beside that of the model.
#[derive(clap::Args)]
#[command(after_help = help())]
pub(super) struct PathlossArgs {
    /// The transmitter: LATITUDE,LONGITUDE in degrees, or with --eel a node's number.
    #[arg(long, value_name = "PLACE", allow_hyphen_values = true)]
    from: Option<String>,
    /// The receiver.
    #[arg(long, value_name = "PLACE", allow_hyphen_values = true)]
    to: Option<String>,
    /// The antennas of both above ground, in metres.
    #[arg(long, value_name = "M,M", default_value = "2,2")]
    heights: String,
    /// The frequency in MHz.
    #[arg(long, value_name = "MHZ", default_value_t = 300.0)]
    frequency: f64,
    /// The model; without it delta-bullington where the ground is known, else free-space.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// The ground: the text that describes a height grid. Its heights are in the file of the same
    /// name that ends in .i16le.
    #[arg(long, value_name = "FILE", conflicts_with = "profile")]
    grid: Option<PathBuf>,
    /// The ground: lines 'kilometres,metres' from the transmitter to the receiver.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "to", "eel"])]
    profile: Option<PathBuf>,
    /// A scenario of EMANE: locations and path losses over time.
    #[arg(long, value_name = "FILE")]
    eel: Option<PathBuf>,
    /// The time in the scenario, in seconds.
    #[arg(long, value_name = "S", default_value_t = 0.0, requires = "eel")]
    at: f64,
    /// Print one object, with every point of the profile.
    #[arg(long)]
    json: bool,
}

fn help() -> String {
    format!(
        "\
Models: {}

Examples:
  longwire lab pathloss --from 50.0,7.0 --to 50.1,7.1 --frequency 60 --model two-ray
  longwire lab pathloss --grid hills.txt --from 36.5,-84.3 --to 36.6,-84.2 --heights 3,10
  longwire lab pathloss --profile path.csv --heights 30,30 --frequency 1000
  longwire lab pathloss --eel scenario.eel --from 1 --to 5 --at 120 --frequency 2400",
        Model::NAMES.join(", ")
    )
}

/// What is known of a pair.
#[derive(Default)]
struct Found {
    /// What the scenario says; the inner one is missing where the two are not connected.
    stored_db: Option<Option<f64>>,
    predicted: Option<Predicted>,
}

/// What a model says.
struct Predicted {
    model: Model,
    distance_m: f64,
    loss_db: f64,
    diffraction: Option<Diffraction>,
    profile: Option<Profile>,
}

pub(super) fn run(args: &PathlossArgs) -> anyhow::Result<ExitCode> {
    let found = find(args)?;
    if args.json {
        say(&serde_json::to_string_pretty(&as_json(args, &found))?)?;
    } else {
        say(as_text(args, &found).trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn find(args: &PathlossArgs) -> Result<Found, Error> {
    let heights_m = heights(&args.heights)?;
    if let Some(path) = &args.profile {
        let profile = Profile::parse(&path.to_string_lossy(), &read_text(path, MAX_PROFILE_BYTES)?);
        let predicted = over_profile(args, profile.map_err(bad_use)?, heights_m)?;
        return Ok(Found { predicted: Some(predicted), ..Found::default() });
    }
    let (Some(from), Some(to)) = (&args.from, &args.to) else {
        return Err(Error::Caller("give --from and --to, or --profile".to_owned()));
    };
    let grid = args.grid.as_deref().map(read_grid).transpose()?;
    let Some(path) = &args.eel else {
        let predicted = between(args, [place(from)?, place(to)?], heights_m, grid.as_ref())?;
        return Ok(Found { predicted: Some(predicted), ..Found::default() });
    };
    let eel = Eel::parse(&path.to_string_lossy(), &read_text(path, MAX_EEL_BYTES)?);
    let eel = eel.map_err(bad_use)?;
    let [from, to] = [node(&eel, from)?, node(&eel, to)?];
    let at = Duration::try_from_secs_f64(args.at)
        .map_err(|_| Error::Caller(format!("--at {}: give seconds from 0", args.at)))?;
    let stored_db = Some(eel.losses.loss_db(at, from, to));
    let predicted = match (eel.tracks.get(&from), eel.tracks.get(&to)) {
        (Some(from), Some(to)) => {
            Some(between(args, [from.at(at), to.at(at)], heights_m, grid.as_ref())?)
        }
        _ => None,
    };
    Ok(Found { stored_db, predicted })
}

/// The model over the way between two places.
fn between(
    args: &PathlossArgs,
    places: [Position; 2],
    heights_m: [f64; 2],
    grid: Option<&HeightGrid>,
) -> Result<Predicted, Error> {
    let model = model(args, grid.is_some())?;
    let frequency_hz = args.frequency * 1e6;
    let prediction = Prediction { model, frequency_hz, grid, seed: 0 };
    let [from, to] = [(places[0], heights_m[0]), (places[1], heights_m[1])];
    let found = prediction.pair(from, to).map_err(bad_use)?;
    let diffraction = diffraction(&model, found.profile.as_ref(), heights_m, frequency_hz)?;
    let (distance_m, loss_db, profile) = (found.distance_m, found.loss_db, found.profile);
    Ok(Predicted { model, distance_m, loss_db, diffraction, profile })
}

/// The model over a profile.
fn over_profile(
    args: &PathlossArgs,
    profile: Profile,
    heights_m: [f64; 2],
) -> Result<Predicted, Error> {
    let model = model(args, true)?;
    let frequency_hz = args.frequency * 1e6;
    let [start_m, end_m] = profile.ends_m();
    let climb_m = end_m + heights_m[1] - start_m - heights_m[0];
    let distance_m = profile.length_m().hypot(climb_m);
    let path = propagation::Path { distance_m, frequency_hz, heights_m, profile: Some(&profile) };
    let loss_db = model.loss_db(&path).map_err(bad_use)?;
    let diffraction = diffraction(&model, Some(&profile), heights_m, frequency_hz)?;
    Ok(Predicted { model, distance_m, loss_db, diffraction, profile: Some(profile) })
}

fn diffraction(
    model: &Model,
    profile: Option<&Profile>,
    heights_m: [f64; 2],
    frequency_hz: f64,
) -> Result<Option<Diffraction>, Error> {
    let (Model::DeltaBullington(ground), Some(profile)) = (model, profile) else {
        return Ok(None);
    };
    delta_bullington(profile, heights_m, frequency_hz, ground).map(Some).map_err(bad_use)
}

fn model(args: &PathlossArgs, is_ground_known: bool) -> Result<Model, Error> {
    let default = if is_ground_known { "delta-bullington" } else { "free-space" };
    Model::named(args.model.as_deref().unwrap_or(default)).map_err(bad_use)
}

fn heights(text: &str) -> Result<[f64; 2], Error> {
    let numbers: Vec<f64> = text.split(',').filter_map(|one| one.trim().parse().ok()).collect();
    let refused = |_| Error::Caller(format!("--heights {text}: give two heights in metres, 2,2"));
    numbers.try_into().map_err(refused)
}

fn place(text: &str) -> Result<Position, Error> {
    let numbers: Vec<f64> = text.split(',').filter_map(|one| one.trim().parse().ok()).collect();
    match numbers.as_slice() {
        [lat_deg, lon_deg] => Position::new(*lat_deg, *lon_deg, 0.0).map_err(bad_use),
        _ => Err(Error::Caller(format!(
            "{text} is no place: give LATITUDE,LONGITUDE in degrees, as 50.0,7.0"
        ))),
    }
}

fn node(eel: &Eel, text: &str) -> Result<u16, Error> {
    let number = text.trim_start_matches("nem:").parse().ok();
    number.filter(|node| eel.nodes().contains(node)).ok_or_else(|| {
        let nodes: Vec<String> = eel.nodes().iter().map(u16::to_string).collect();
        Error::Caller(format!("{text} is no node of the scenario: it has {}", nodes.join(", ")))
    })
}

fn read_grid(header: &Path) -> Result<HeightGrid, Error> {
    let text = read_text(header, MAX_GRID_HEADER_BYTES)?;
    let heights = read(&header.with_extension("i16le"), MAX_GRID_POSTS * 2)?;
    HeightGrid::parse(&header.to_string_lossy(), &text, &heights).map_err(bad_use)
}

fn read_text(path: &Path, limit_bytes: usize) -> Result<String, Error> {
    String::from_utf8(read(path, limit_bytes)?)
        .map_err(|_| Error::Caller(format!("{} is no UTF-8 text", path.display())))
}

/// Reads a file, but no more than a byte beyond its limit, of which the reader then complains.
fn read(path: &Path, limit_bytes: usize) -> Result<Vec<u8>, Error> {
    let refused = |error| Error::Caller(format!("cannot read {}: {error}", path.display()));
    let file = File::open(path).map_err(refused)?;
    let mut bytes = Vec::new();
    file.take(limit_bytes as u64 + 1).read_to_end(&mut bytes).map_err(refused)?;
    Ok(bytes)
}

fn bad_use(error: link::Error) -> Error {
    Error::Caller(error.to_string())
}

/// What the two radios of the presets make of a loss: name, signal over noise, rate.
fn radios(loss_db: f64) -> [(&'static str, f64, Option<u64>); 2] {
    let csma = || Access::Csma(Csma::bianchi());
    let make = |name, radio: Radio| {
        let snr_db = radio.power_dbm - loss_db - radio.noise_dbm();
        let rate = &radio.rates[radio.rate_for(snr_db)];
        (name, snr_db, (rate.from_db <= snr_db).then_some(rate.rate_bps))
    };
    [
        make("wideband", MediumConfig::wideband(csma()).radio),
        make("narrowband", MediumConfig::narrowband(csma()).radio),
    ]
}

impl Found {
    /// The loss that counts: the scenario's own, else the model's.
    fn loss_db(&self) -> Option<f64> {
        match self.stored_db {
            Some(stored_db) => stored_db,
            None => self.predicted.as_ref().map(|predicted| predicted.loss_db),
        }
    }
}

fn as_json(args: &PathlossArgs, found: &Found) -> Value {
    let mut value = json!({"frequency_hz": args.frequency * 1e6});
    if let Some(stored_db) = found.stored_db {
        value["scenario"] = json!({"at_s": args.at, "loss_db": stored_db});
    }
    if let Some(predicted) = &found.predicted {
        let points = predicted.profile.as_ref().map(|profile| {
            profile.points().map(|(m, height_m)| json!([m, height_m])).collect::<Vec<_>>()
        });
        value["model"] = json!({
            "name": predicted.model.name(),
            "distance_m": predicted.distance_m,
            "free_space_db": free_space_db(predicted.distance_m, args.frequency * 1e6),
            "diffraction": predicted.diffraction.map(|parts| json!({
                "bullington_db": parts.bullington_db,
                "smooth_db": parts.smooth_db,
                "spherical_db": parts.spherical_db,
                "total_db": parts.total_db,
            })),
            "loss_db": predicted.loss_db,
            "profile_m": points,
        });
    }
    if let Some(loss_db) = found.loss_db() {
        let radios = radios(loss_db).map(|(name, snr_db, rate_bps)| {
            (name.to_owned(), json!({"snr_db": snr_db, "rate_bps": rate_bps}))
        });
        value["radios"] = Value::Object(radios.into_iter().collect());
    }
    value
}

fn as_text(args: &PathlossArgs, found: &Found) -> String {
    let mut lines = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(lines, "{name:<12} {value}");
    };
    line("frequency", format!("{} MHz", args.frequency));
    match found.stored_db {
        Some(Some(loss_db)) => line("scenario", format!("{loss_db:.1} dB at {} s", args.at)),
        Some(None) => line("scenario", format!("not connected at {} s", args.at)),
        None => {}
    }
    if let Some(predicted) = &found.predicted {
        let free_db = free_space_db(predicted.distance_m, args.frequency * 1e6);
        line("distance", format!("{:.3} km", predicted.distance_m / 1_000.0));
        line("free space", format!("{free_db:.1} dB"));
        if let Some(parts) = predicted.diffraction {
            let value = format!(
                "{:.1} dB (over the ground {:.1}, if it were smooth {:.1}, over the sphere {:.1})",
                parts.total_db, parts.bullington_db, parts.smooth_db, parts.spherical_db
            );
            line("diffraction", value);
        }
        line("path loss", format!("{:.1} dB by {}", predicted.loss_db, predicted.model.name()));
    }
    for (name, snr_db, rate_bps) in found.loss_db().map(radios).into_iter().flatten() {
        let rate = rate_bps.map_or("too weak".to_owned(), format_rate);
        line(name, format!("{snr_db:.1} dB over noise at 5 W: {rate}"));
    }
    if let Some(profile) = found.predicted.as_ref().and_then(|one| one.profile.as_ref()) {
        lines.push_str(&profile_lines(profile));
    }
    lines
}

/// Some points of a profile, with a bar for the height.
fn profile_lines(profile: &Profile) -> String {
    const BAR: f64 = 40.0;
    let points: Vec<(f64, f64)> = profile.points().collect();
    let heights = || points.iter().map(|(_, height_m)| *height_m);
    let (least, greatest) =
        (heights().fold(f64::INFINITY, f64::min), heights().fold(f64::NEG_INFINITY, f64::max));
    let range_m = (greatest - least).max(1.0);
    let mut lines =
        format!("ground       {least:.0} to {greatest:.0} m, {} points\n", points.len());
    let rows = SHOWN_POINTS.min(points.len());
    for row in 0..rows {
        let (m, height_m) = points[row * (points.len() - 1) / (rows - 1).max(1)];
        #[allow(clippy::cast_possible_truncation, reason = "0 to 40")]
        let bar = "#".repeat(((height_m - least) / range_m * BAR).round() as usize);
        let _ = writeln!(lines, "{:>9.2} km {height_m:>6.0} m  {bar}", m / 1_000.0);
    }
    lines
}
