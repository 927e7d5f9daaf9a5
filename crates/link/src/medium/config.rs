//! What a shared radio channel is like.

use super::reception::Curve;
use super::{MAX_PORTS, PortId};
use crate::{Error, MAX_QUEUE_BYTES};
use std::time::Duration;

/// Most slots of a frame.
pub const MAX_SLOTS: usize = 65_536;

/// Most rates of a radio.
pub const MAX_RATES: usize = 32;

/// Most jamming windows.
pub const MAX_JAMMING_WINDOWS: usize = 1_000;

/// Longest slot, gap or preamble.
pub const MAX_PART: Duration = Duration::from_secs(60);

/// Greatest contention window, in slots.
pub const MAX_WINDOW_SLOTS: u32 = 65_536;

/// Longest header or acknowledgement, in bytes.
pub const MAX_HEADER_BYTES: u32 = 10_000;

/// Thermal noise of 1 Hz at 290 K, in dBm.
const THERMAL_NOISE_DBM: f64 = -174.0;

/// A shared channel: one frequency that all its radios send and hear on.
#[derive(Clone, Debug, PartialEq)]
pub struct MediumConfig {
    /// What all radios are like.
    pub radio: Radio,
    /// Who sends when.
    pub access: Access,
    /// Most packets waiting at each port.
    pub queue_packets: u32,
    /// Most bytes waiting at each port.
    pub queue_bytes: u64,
    /// Largest packet in IP bytes; none for no limit.
    pub mtu: Option<u32>,
    /// When and how strongly a jammer is heard.
    pub jamming: Vec<Jamming>,
}

/// A radio.
#[derive(Clone, Debug, PartialEq)]
pub struct Radio {
    /// Hz.
    pub bandwidth_hz: f64,
    /// dB that the receiver adds to thermal noise.
    pub noise_figure_db: f64,
    /// Output power in dBm, until [`super::Input::Power`] says another.
    pub power_dbm: f64,
    /// A carrier is sensed from this many dB above the noise floor.
    pub sense_db: f64,
    /// Rates, the fastest first.
    pub rates: Vec<Rate>,
    /// What precedes each transmission.
    pub preamble: Duration,
    /// Bytes that each transmission has besides its IP packet or fragment.
    pub header_bytes: u32,
}

/// A rate at which a radio can send.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// bit/s, header and packet alike.
    pub rate_bps: u64,
    /// Chosen for one receiver from this signal over noise on, in dB.
    pub from_db: f64,
    /// How well it is received.
    pub curve: Curve,
}

/// Who sends when.
#[derive(Clone, Debug, PartialEq)]
pub enum Access {
    /// By a schedule.
    Tdma(Tdma),
    /// Who finds the channel free.
    Csma(Csma),
}

/// Time division: frames of slots, repeated from the epoch on. Nothing is acknowledged.
#[derive(Clone, Debug, PartialEq)]
pub struct Tdma {
    /// Length of a slot.
    pub slot: Duration,
    /// What of its end is left free.
    pub guard: Duration,
    /// For each slot of a frame, who may send in it; several where they do not hear each other.
    pub owners: Vec<Vec<PortId>>,
    /// Whether a packet that does not fit into a slot is cut, and sent in several.
    pub fragments: bool,
    /// Whether several packets are sent in a slot, as long as they fit.
    pub aggregates: bool,
}

/// Carrier sense with binary exponential backoff, as the distributed coordination function of
/// IEEE 802.11 without request and clear to send, and without virtual carrier sense. A missing
/// acknowledgement is noticed within `difs`, as in Bianchi's model.
#[derive(Clone, Debug, PartialEq)]
pub struct Csma {
    /// A slot of the backoff.
    pub slot: Duration,
    /// Between a transmission and its acknowledgement.
    pub sifs: Duration,
    /// How long the channel must be free before the backoff goes on.
    pub difs: Duration,
    /// Slots that the first backoff is drawn from; each retry doubles them.
    pub window_min: u32,
    /// The most that they get.
    pub window_max: u32,
    /// How often a packet for one receiver is sent before it is given up.
    pub attempts: u32,
    /// Bytes of an acknowledgement, its header counted.
    pub ack_bytes: u32,
}

/// A time in which a jammer is heard.
#[derive(Clone, Debug, PartialEq)]
pub struct Jamming {
    /// Since the epoch.
    pub from: Duration,
    /// Its end, which it does not include.
    pub until: Duration,
    /// The power that arrives, in dBm.
    pub level_dbm: f64,
    /// Who hears it; none for all.
    pub ports: Option<Vec<PortId>>,
}

impl Radio {
    /// Noise floor in dBm: -174 + 10 log of the bandwidth + noise figure.
    #[must_use]
    pub fn noise_dbm(&self) -> f64 {
        THERMAL_NOISE_DBM + 10.0 * self.bandwidth_hz.log10() + self.noise_figure_db
    }

    /// Place in `rates` for one receiver at a signal over noise: the fastest that the signal is
    /// good for, else the slowest.
    #[must_use]
    pub fn rate_for(&self, snr_db: f64) -> usize {
        let fitting = self.rates.iter().position(|rate| rate.from_db <= snr_db);
        fitting.unwrap_or(self.rates.len().saturating_sub(1))
    }

    /// Time that `bytes` take at a rate, the preamble counted.
    #[must_use]
    pub fn airtime(&self, rate_bps: u64, bytes: u64) -> Duration {
        let nanos = (u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(rate_bps.max(1)));
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        self.preamble.saturating_add(Duration::from_nanos(nanos))
    }
}

impl MediumConfig {
    /// A wideband net of 1 MHz: 1000, 500 and 380 kbit/s by signal, 5 W. The rates are those of
    /// IST-150; the signals from which they are chosen (12, 8 and 5 dB) are an assumption.
    #[must_use]
    pub fn wideband(access: Access) -> Self {
        let rate = |rate_bps, from_db| Rate { rate_bps, from_db, curve: Curve::emane(from_db) };
        let radio = Radio {
            bandwidth_hz: 1e6,
            noise_figure_db: 4.0,
            power_dbm: 37.0,
            sense_db: 3.0,
            rates: vec![rate(1_000_000, 12.0), rate(500_000, 8.0), rate(380_000, 5.0)],
            preamble: Duration::from_micros(128),
            header_bytes: 34,
        };
        Self::of(radio, access)
    }

    /// A narrowband net of 25 kHz: 15 kbit/s from a signal of 8 dB (an assumption), 5 W.
    #[must_use]
    pub fn narrowband(access: Access) -> Self {
        let radio = Radio {
            bandwidth_hz: 25e3,
            noise_figure_db: 4.0,
            power_dbm: 37.0,
            sense_db: 3.0,
            rates: vec![Rate { rate_bps: 15_000, from_db: 8.0, curve: Curve::emane(8.0) }],
            preamble: Duration::from_millis(20),
            header_bytes: 12,
        };
        Self::of(radio, access)
    }

    fn of(radio: Radio, access: Access) -> Self {
        Self {
            radio,
            access,
            queue_packets: 1_000,
            queue_bytes: MAX_QUEUE_BYTES,
            mtu: None,
            jamming: Vec::new(),
        }
    }

    /// Checks a channel of so many ports.
    ///
    /// # Errors
    /// [`Error::Medium`] naming the field: a value out of range, a port without a slot, a slot of
    /// a port that there is not, a slot too short to send anything in it.
    pub fn check(&self, ports: PortId) -> Result<(), Error> {
        if ports == 0 || ports > MAX_PORTS {
            let what = format!("{ports} ports: give 1 to {MAX_PORTS}");
            return Err(refused("ports", what));
        }
        self.radio.check()?;
        match &self.access {
            Access::Tdma(tdma) => tdma.check(ports, &self.radio)?,
            Access::Csma(csma) => csma.check()?,
        }
        if self.jamming.len() > MAX_JAMMING_WINDOWS {
            let what = format!("{} windows: at most {MAX_JAMMING_WINDOWS}", self.jamming.len());
            return Err(refused("jamming", what));
        }
        for window in &self.jamming {
            if window.from >= window.until {
                let what = "a window must end after it begins".to_owned();
                return Err(refused("jamming.until", what));
            }
            within("jamming.level_dbm", window.level_dbm, -200.0, 100.0)?;
            let missing = window.ports.iter().flatten().find(|port| **port >= ports);
            if let Some(port) = missing {
                return Err(no_port("jamming.ports", *port, ports));
            }
        }
        Ok(())
    }
}

impl Radio {
    fn check(&self) -> Result<(), Error> {
        within("radio.bandwidth_hz", self.bandwidth_hz, 1.0, 1e11)?;
        within("radio.noise_figure_db", self.noise_figure_db, 0.0, 100.0)?;
        within("radio.power_dbm", self.power_dbm, -100.0, 100.0)?;
        within("radio.sense_db", self.sense_db, -100.0, 200.0)?;
        short("radio.preamble", self.preamble)?;
        count("radio.header_bytes", self.header_bytes, 0, MAX_HEADER_BYTES)?;
        if self.rates.is_empty() || self.rates.len() > MAX_RATES {
            let what = format!("{} rates: give 1 to {MAX_RATES}", self.rates.len());
            return Err(refused("radio.rates", what));
        }
        for rate in &self.rates {
            within("radio.rates.rate_bps", rate.rate_bps as f64, 1.0, 1e12)?;
            within("radio.rates.from_db", rate.from_db, -100.0, 100.0)?;
        }
        let sinks = |pair: &[Rate]| pair[0].rate_bps > pair[1].rate_bps;
        if !self.rates.windows(2).all(sinks) {
            return Err(refused("radio.rates", "must sink: give the fastest first".to_owned()));
        }
        Ok(())
    }
}

impl Tdma {
    fn check(&self, ports: PortId, radio: &Radio) -> Result<(), Error> {
        short("tdma.slot", self.slot)?;
        let slowest_bps = radio.rates.last().map_or(1, |rate| rate.rate_bps);
        let least = radio.airtime(slowest_bps, u64::from(radio.header_bytes) + 1);
        if self.slot < self.guard.saturating_add(least) {
            let what = format!(
                "{} s without a guard of {} s is too short for a header and a byte at the lowest \
                 rate, {} s: make it longer",
                self.slot.as_secs_f64(),
                self.guard.as_secs_f64(),
                least.as_secs_f64()
            );
            return Err(refused("tdma.slot", what));
        }
        if self.owners.is_empty() || self.owners.len() > MAX_SLOTS {
            let what = format!("{} slots: give 1 to {MAX_SLOTS}", self.owners.len());
            return Err(refused("tdma.owners", what));
        }
        let owned = || self.owners.iter().flatten();
        if let Some(port) = owned().find(|port| **port >= ports) {
            return Err(no_port("tdma.owners", *port, ports));
        }
        match (0..ports).find(|port| !owned().any(|owner| owner == port)) {
            Some(port) => {
                let what = format!("port {port} owns no slot, so that it could never send");
                Err(refused("tdma.owners", what))
            }
            None => Ok(()),
        }
    }
}

impl Csma {
    /// The parameters of Bianchi's paper (2000, table II): slots of 50 µs, windows of 32 to 256.
    #[must_use]
    pub fn bianchi() -> Self {
        Self {
            slot: Duration::from_micros(50),
            sifs: Duration::from_micros(28),
            difs: Duration::from_micros(128),
            window_min: 32,
            window_max: 256,
            attempts: 7,
            ack_bytes: 14,
        }
    }

    /// Timing for 25 kHz, whose radios take milliseconds to begin: an assumption.
    #[must_use]
    pub fn narrowband() -> Self {
        Self {
            slot: Duration::from_millis(5),
            sifs: Duration::from_millis(5),
            difs: Duration::from_millis(20),
            window_min: 16,
            window_max: 128,
            attempts: 5,
            ack_bytes: 8,
        }
    }

    fn check(&self) -> Result<(), Error> {
        for (field, part) in
            [("csma.slot", self.slot), ("csma.sifs", self.sifs), ("csma.difs", self.difs)]
        {
            short(field, part)?;
        }
        if self.slot.is_zero() || self.sifs >= self.difs {
            let what = "slot must be above 0, and difs longer than sifs".to_owned();
            return Err(refused("csma.difs", what));
        }
        count("csma.window_min", self.window_min, 1, self.window_max)?;
        count("csma.window_max", self.window_max, 1, MAX_WINDOW_SLOTS)?;
        count("csma.attempts", self.attempts, 1, 1_000_000)?;
        count("csma.ack_bytes", self.ack_bytes, 1, MAX_HEADER_BYTES)
    }
}

fn within(field: &str, value: f64, least: f64, greatest: f64) -> Result<(), Error> {
    if (least..=greatest).contains(&value) {
        return Ok(());
    }
    Err(refused(field, format!("{value} is out of range: give {least} to {greatest}")))
}

fn count(field: &str, value: u32, least: u32, greatest: u32) -> Result<(), Error> {
    if (least..=greatest).contains(&value) {
        return Ok(());
    }
    Err(refused(field, format!("{value} is out of range: give {least} to {greatest}")))
}

fn short(field: &str, part: Duration) -> Result<(), Error> {
    within(field, part.as_secs_f64(), 0.0, MAX_PART.as_secs_f64())
}

fn no_port(field: &str, port: PortId, ports: PortId) -> Error {
    refused(field, format!("there is no port {port}: they are 0 to {}", ports - 1))
}

fn refused(field: &str, what: String) -> Error {
    Error::Medium { field: field.to_owned(), what }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_floors_are_those_of_the_bandwidths() {
        let csma = || Access::Csma(Csma::bianchi());
        let wide = MediumConfig::wideband(csma()).radio;
        assert!((wide.noise_dbm() - -110.0).abs() < 1e-9);
        let narrow = MediumConfig::narrowband(csma()).radio;
        assert!((narrow.noise_dbm() - -126.02).abs() < 0.005);
        let rates: Vec<u64> = [20.0, 12.0, 11.9, 8.0, 5.0, -3.0]
            .map(|snr_db| wide.rates[wide.rate_for(snr_db)].rate_bps)
            .to_vec();
        assert_eq!(rates, [1_000_000, 1_000_000, 500_000, 500_000, 380_000, 380_000]);
        let airtime = narrow.airtime(15_000, 150);
        assert_eq!(airtime, Duration::from_millis(20 + 80));
    }

    #[test]
    fn what_cannot_be_is_refused_by_field() {
        let tdma = Tdma {
            slot: Duration::from_millis(10),
            guard: Duration::from_millis(1),
            owners: vec![vec![0], vec![1]],
            fragments: true,
            aggregates: true,
        };
        let check = |change: &dyn Fn(&mut MediumConfig, &mut Tdma)| {
            let mut tdma = tdma.clone();
            let mut config = MediumConfig::wideband(Access::Csma(Csma::bianchi()));
            change(&mut config, &mut tdma);
            config.access = Access::Tdma(tdma);
            config.check(2).map_err(|error| error.to_string())
        };
        assert_eq!(check(&|_, _| {}), Ok(()));
        type Edit<'a> = &'a dyn Fn(&mut MediumConfig, &mut Tdma);
        let cases: [(Edit<'_>, &str); 9] = [
            (&|_, tdma| tdma.owners = vec![vec![0]], "tdma.owners: port 1 owns no slot"),
            (&|_, tdma| tdma.owners[0] = vec![2], "tdma.owners: there is no port 2"),
            (&|_, tdma| tdma.slot = Duration::from_millis(1), "tdma.slot: 0.001 s without"),
            (&|_, tdma| tdma.owners.clear(), "tdma.owners: 0 slots"),
            (&|config, _| config.radio.rates.clear(), "radio.rates: 0 rates"),
            (&|config, _| config.radio.rates.reverse(), "radio.rates: must sink"),
            (&|config, _| config.radio.power_dbm = f64::NAN, "radio.power_dbm: NaN"),
            (&|config, _| config.radio.bandwidth_hz = 0.0, "radio.bandwidth_hz: 0"),
            (
                &|config, _| {
                    config.jamming = vec![Jamming {
                        from: Duration::ZERO,
                        until: Duration::ZERO,
                        level_dbm: 0.0,
                        ports: None,
                    }];
                },
                "jamming.until",
            ),
        ];
        for (change, expected) in cases {
            let error = check(change).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
        let csma = Csma { sifs: Duration::from_millis(1), ..Csma::bianchi() };
        let config = MediumConfig::wideband(Access::Csma(csma));
        assert!(config.check(2).unwrap_err().to_string().starts_with("csma.difs"));
        assert!(config.check(0).unwrap_err().to_string().starts_with("ports: 0 ports"));
    }
}
