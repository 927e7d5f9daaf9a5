//! A force that moves: what the tracks of one file report.
//!
//! A few formations leave their assembly areas; every unit keeps to its formation's course with
//! some scatter of its own and reports its position about twice a minute. Names, systems and
//! numbers are invented; the telephone numbers are of the range that Ofcom keeps for fiction.

use super::SERVICE_NAMESPACE;
use super::element::{Element, Value};
use crate::random::Random;

/// Most units in one force; more tracks than that are later reports of the same units.
const MAX_UNITS: usize = 120;
/// Seconds from one round of reports to the next.
const ROUND_S: u32 = 30;
/// Share of reports that do not get through, in per cent.
const SILENT_PER_CENT: u32 = 20;
/// All reports are of one day, from six in the morning (seconds since midnight).
const FIRST_REPORT_S: u32 = 6 * 3600;
/// That day.
const DAY: &str = "20260314";
/// Metres in a degree of latitude; of longitude too once divided by the cosine.
const METRES_PER_DEGREE: f64 = 111_320.0;

const SYSTEMS: [(&str, &str); 6] = [
    ("NOR", "NORTRACK"),
    ("DEU", "FUEINFOSYS"),
    ("NLD", "ISIS-FFT"),
    ("GBR", "BOWTRACK"),
    ("PRT", "SIC-T"),
    ("DNK", "HEIMDALL"),
];
/// APP-6A symbol codes of friendly ground units and what they report as strength.
const SYMBOLS: [(&str, u32); 8] = [
    ("SFGPUCI----D---", 32),
    ("SFGPUCIZ---C---", 9),
    ("SFGPUCRVA--B---", 6),
    ("SFGPUCA----D---", 14),
    ("SFGPUCF----E---", 48),
    ("SFGPUCEC---D---", 27),
    ("SFGPUSMT---A---", 4),
    ("SFGPUSST---C---", 11),
];
const CALL_SIGNS: [&str; 8] =
    ["ANVIL", "BISON", "CONDOR", "DAGGER", "EMBER", "FALCON", "GRANITE", "HAMMER"];
const STATUS: [&str; 4] =
    ["OPERATIONAL", "SUBSTANTIALLY OPERATIONAL", "MARGINALLY OPERATIONAL", "NOT KNOWN"];
const RELIABILITY: [&str; 3] = ["COMPLETELY RELIABLE", "USUALLY RELIABLE", "FAIRLY RELIABLE"];
const CREDIBILITY: [&str; 3] =
    ["CONFIRMED BY OTHER SOURCES", "PROBABLY TRUE", "TRUTH CANNOT BE JUDGED"];
const TERMINALS: [&str; 4] = ["VHF50", "UHFSAT3", "HFW7", "MANET2"];
const ROUTES: [&str; 5] = ["BLUE", "AMBER", "SILVER", "OAK", "RIVER"];
const EVENTS: [&str; 10] = [
    "Bridge passable for wheeled vehicles only, one at a time",
    "Halted at checkpoint for refuelling",
    "Civilian traffic dense, progress slow",
    "Radio contact with the lead element intermittent since the ridge",
    "One vehicle under tow with a damaged track",
    "Visibility below two hundred metres in the valley",
    "Observation post occupied, nothing to report",
    "Medical evacuation requested and acknowledged",
    "Route reconnoitred and clear of obstacles",
    "Waiting for engineers to clear fallen trees",
];

/// The units of one file.
pub(crate) struct Force {
    country: &'static str,
    system: &'static str,
    subsystem: String,
    units: Vec<Unit>,
}

/// One reporting vehicle or troop.
struct Unit {
    transponder: String,
    name: String,
    symbol: &'static str,
    strength: u32,
    terminal: Option<Terminal>,
    latitude: f64,
    longitude: f64,
    altitude_m: f64,
    bearing_deg: f64,
    speed_kmh: f64,
    accuracy_m: u32,
    status: &'static str,
}

/// The radio that some units tell of.
struct Terminal {
    kind: &'static str,
    serial: String,
    phone: String,
}

impl Force {
    /// A force in its assembly areas, of a size fit to send `tracks` reports.
    pub(crate) fn deploy(random: &mut Random, tracks: usize) -> Self {
        let (country, system) = random.pick(&SYSTEMS).unwrap_or(("NOR", "NORTRACK"));
        let subsystem = format!("{}BDE-{}BN", 1 + random.below(9), 1 + random.below(4));
        let count = tracks.div_ceil(2).clamp(1, MAX_UNITS);
        let mut units: Vec<Unit> = Vec::with_capacity(count);
        let mut serial = 1000 + random.below(8000);
        while units.len() < count {
            let formation = Unit::leader(random, country, serial);
            let size = (3 + random.below(5) as usize).min(count - units.len());
            for index in 0..size {
                serial += 1 + random.below(3);
                units.push(formation.member(random, country, serial, index));
            }
        }
        Self { country, system, subsystem, units }
    }

    /// The next `tracks` reports, round by round, as `track` elements. Units move between rounds.
    pub(crate) fn report(&mut self, random: &mut Random, tracks: usize) -> Vec<Element> {
        let mut elements = Vec::with_capacity(tracks);
        let mut round_s = FIRST_REPORT_S + random.below(9 * 3600);
        while elements.len() < tracks {
            for unit in &mut self.units {
                unit.advance(random);
                if random.chance(SILENT_PER_CENT) {
                    continue;
                }
                let time_s = round_s + random.below(ROUND_S);
                let source = Source {
                    country: self.country,
                    system: self.system,
                    subsystem: &self.subsystem,
                };
                elements.push(unit.track(random, &source, time_s));
                if elements.len() == tracks {
                    break;
                }
            }
            round_s += ROUND_S;
        }
        elements
    }
}

/// Who releases a force's tracks.
struct Source<'a> {
    country: &'a str,
    system: &'a str,
    subsystem: &'a str,
}

impl Unit {
    fn leader(random: &mut Random, country: &str, serial: u32) -> Self {
        let (symbol, strength) = random.pick(&SYMBOLS).unwrap_or(("SFGPUCI----D---", 32));
        let call_sign = random.pick(&CALL_SIGNS).unwrap_or("ANVIL");
        Self {
            transponder: transponder(country, serial),
            name: format!("{call_sign}-{}", 1 + random.below(9)),
            symbol,
            strength,
            terminal: None,
            latitude: random.between(60.2, 61.8),
            longitude: random.between(9.1, 11.9),
            altitude_m: random.between(40.0, 900.0),
            bearing_deg: random.between(0.0, 359.0),
            speed_kmh: random.between(5.0, 60.0),
            accuracy_m: 4 + random.below(9),
            status: random.pick(&STATUS).unwrap_or("NOT KNOWN"),
        }
    }

    /// A unit of the formation that `self` leads.
    fn member(&self, random: &mut Random, country: &str, serial: u32, index: usize) -> Self {
        let terminal = random.chance(35).then(|| Terminal {
            kind: random.pick(&TERMINALS).unwrap_or("VHF50"),
            serial: format!("{:06X}", random.below(0x100_0000)),
            phone: format!("+447700900{:03}", random.below(1000)),
        });
        Self {
            transponder: transponder(country, serial),
            name: format!("{}-{}", self.name, index + 1),
            symbol: self.symbol,
            strength: self.strength.saturating_sub(random.below(4)),
            terminal,
            latitude: self.latitude + random.between(-0.01, 0.01),
            longitude: self.longitude + random.between(-0.02, 0.02),
            altitude_m: self.altitude_m + random.between(-20.0, 20.0),
            bearing_deg: self.bearing_deg,
            speed_kmh: self.speed_kmh,
            accuracy_m: self.accuracy_m,
            status: self.status,
        }
    }

    /// Moves for one round.
    fn advance(&mut self, random: &mut Random) {
        self.bearing_deg = (self.bearing_deg + random.between(-6.0, 6.0)).rem_euclid(360.0);
        self.speed_kmh = (self.speed_kmh + random.between(-4.0, 4.0)).clamp(5.0, 80.0);
        self.accuracy_m = 4 + random.below(9);
        self.altitude_m = (self.altitude_m + random.between(-5.0, 5.0)).max(0.0);
        let degrees = self.speed_kmh / 3.6 * f64::from(ROUND_S) / METRES_PER_DEGREE;
        let course = self.bearing_deg.to_radians();
        self.latitude += degrees * course.cos();
        self.longitude += degrees * course.sin() / self.latitude.to_radians().cos();
    }

    fn track(&self, random: &mut Random, source: &Source<'_>, time_s: u32) -> Element {
        let mut sections = vec![self.positional(random, source, time_s), self.identification()];
        sections.push(self.operational());
        if let Some(terminal) = &self.terminal {
            sections.push(self.device(random, terminal));
        }
        if random.chance(8) {
            sections.push(note(random));
        }
        Element::parent("track", sections)
    }

    fn positional(&self, random: &mut Random, source: &Source<'_>, time_s: u32) -> Element {
        let (hours, minutes, seconds) = (time_s / 3600 % 24, time_s / 60 % 60, time_s % 60);
        let system = Element::parent(
            "sourceSystem",
            vec![
                Element::leaf("country", source.country),
                Element::leaf("system", source.system),
                Element::leaf("subsystem", source.subsystem),
            ],
        );
        let transponder = Element::leaf("transponderId", self.transponder.as_str());
        // 359.96 would round to 360.0, which the schema excludes.
        let bearing = if self.bearing_deg < 359.9 { self.bearing_deg } else { 0.0 };
        let mut children = vec![
            Element::parent("trackSource", vec![system, transponder]),
            Element::leaf("dateTime", format!("{DAY}{hours:02}{minutes:02}{seconds:02}")),
            self.coordinates(),
            Element::leaf("bearing", Value::decimal(bearing, 1)).with("accuracy", Value::whole(2)),
            Element::leaf("speed", Value::decimal(self.speed_kmh, 1))
                .with("accuracy", Value::whole(1)),
        ];
        if random.chance(8) {
            children.push(Element::leaf("reliability", random.pick(&RELIABILITY).unwrap_or("")));
            children.push(Element::leaf("credibility", random.pick(&CREDIBILITY).unwrap_or("")));
        }
        Element::parent("positionalData", children).with("secClassification", "UNCLASSIFIED")
    }

    fn coordinates(&self) -> Element {
        let accuracy = || Value::whole(self.accuracy_m);
        Element::parent(
            "coordinates",
            vec![
                Element::leaf("latitude", Value::decimal(self.latitude, 6))
                    .with("accuracy", accuracy()),
                Element::leaf("longitude", Value::decimal(self.longitude, 6))
                    .with("accuracy", accuracy()),
                Element::leaf("altitude", Value::decimal(self.altitude_m, 0)),
            ],
        )
    }

    fn identification(&self) -> Element {
        let symbol = Element::leaf("unitSymbol", self.symbol);
        let name = Element::leaf("unitShortName", self.name.as_str());
        Element::parent("identificationData", vec![symbol, name])
    }

    fn operational(&self) -> Element {
        let strength = Element::leaf("strength", Value::whole(self.strength));
        let status = Element::leaf("statusCode", self.status);
        Element::parent("operStatusData", vec![strength, status])
    }

    fn device(&self, random: &mut Random, terminal: &Terminal) -> Element {
        let mut children = vec![
            Element::leaf("phoneNumber", terminal.phone.as_str()),
            Element::leaf("serialNumber", terminal.serial.as_str()),
            Element::leaf("terminalType", terminal.kind),
        ];
        if random.chance(20) {
            children.push(Element::leaf("alert", Value::Boolean(random.chance(25))));
        }
        for _ in 0..random.below(3) {
            let route = random.pick(&ROUTES).unwrap_or("BLUE");
            let remark = format!("ROUTE-{route}:CP{}", 1 + random.below(24));
            children.push(Element::leaf("remarks", remark));
        }
        Element::parent("deviceSpecificData", children)
    }
}

/// Free text, which NFFI has room for only among its extensions (`detailData`).
fn note(random: &mut Random) -> Element {
    let event = random.pick(&EVENTS).unwrap_or("Nothing to report");
    let minutes = 5 * (1 + random.below(12));
    let text = format!("{event}; expect {minutes} min.");
    Element::parent("detailData", vec![Element::leaf("note", text).within(SERVICE_NAMESPACE)])
}

fn transponder(country: &str, serial: u32) -> String {
    format!("{country}-FFT-{serial:06}")
}
