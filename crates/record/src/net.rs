//! Results of a run of a scenario of radio nets: what became of its messages, and what was in the
//! air.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::result::Lateness;

/// One run of a scenario in one case with one seed. A directory of them is a study.
// table: one field a fact of a run
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetRun {
    /// What the scenario calls itself.
    pub scenario: String,
    /// Fingerprint of the scenario with its path losses, 16 hexadecimal digits: runs of others are
    /// of another scenario.
    pub fingerprint: String,
    /// The case's name, as `HTTP/JSON`.
    pub case: String,
    /// What carried messages: `http`, `coap-udp`, `pair` and others.
    pub transport: String,
    /// How they were written: `json`, `xml`, `cbor`, `exi`.
    pub format: String,
    /// Decides contention and reception on the channels.
    pub seed: u64,
    /// Version of longwire.
    pub version: String,
    /// Where, and the command that repeats it.
    #[serde(default)]
    pub machine: Machine,
    /// Start, in seconds since 1970 (UTC).
    pub started_unix_s: u64,
    /// How long it took.
    pub elapsed_s: f64,
    /// How late the ferry was.
    pub lateness: Option<Lateness>,
    /// Names of the channels, in the scenario's order.
    pub media: Vec<String>,
    /// Nodes, in the scenario's order.
    pub nodes: Vec<NetNode>,
    /// Messages, each once for each receiver, in the order of the script.
    pub messages: Vec<NetMessage>,
    /// What was in the air, summed.
    pub airtime: Vec<NetAirtime>,
    /// Each transmission, as far as they were recorded.
    #[serde(default)]
    pub transmissions: Vec<NetTransmission>,
    /// Transmissions beyond the bound, only summed.
    #[serde(default)]
    pub unrecorded: u64,
    /// Packets that got nowhere, by reason: those of channels, `unknown` for a neighbour that there
    /// is not, `refused` by an interface.
    #[serde(default)]
    pub dropped: BTreeMap<String, u64>,
    /// How the machine bore it.
    #[serde(default)]
    pub effort: NetEffort,
    /// What must be true of the run, and whether it is.
    #[serde(default)]
    pub checks: Vec<NetCheck>,
}

/// What a run asked of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetEffort {
    /// The ferry had real-time priority.
    pub real_time: bool,
    /// Runs side by side when it began.
    pub parallel: u32,
    /// Memory of the laboratory and of the programs on all nodes at the end, in bytes; of what
    /// several share each has its part.
    pub memory_bytes: u64,
    /// Share of the machine's processors that worked meanwhile, for whomever, 0 to 1.
    pub processors_busy: Option<f64>,
    /// Share of one processor that the ferry took, 0 to 1.
    pub ferry_busy: f64,
    /// Packets that the ferry wrote to nodes.
    pub packets: u64,
    /// Routes that were changed after the beginning.
    pub routes_changed: u64,
    /// Steps at which some route changed.
    pub route_steps: u32,
    /// How late the latest step was: path losses and routes were in force so long after their
    /// time.
    pub step_late_s: f64,
}

/// Something that must be true of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetCheck {
    /// What.
    pub name: String,
    /// Whether it is.
    pub holds: bool,
    /// What was found.
    pub found: String,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetNode {
    /// Its name.
    pub name: String,
    /// The group under which results are counted: the first of the scenario that it is in; empty
    /// for none.
    pub group: String,
}

/// A message for one receiver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetMessage {
    /// Its place in the script, from 1.
    pub number: u32,
    /// The sender's name.
    pub from: String,
    /// The receiver's name.
    pub to: String,
    /// `flash`, `immediate`, `priority`, `routine`.
    pub precedence: String,
    /// Bytes of its text.
    pub text_bytes: u32,
    /// When it was given to the sender's service, since the scenario's start.
    pub sent_s: f64,
    /// When the receiver's service had it, since the scenario's start; none for one that it did not
    /// have before the end.
    pub delivered_s: Option<f64>,
    /// Why it was not delivered, in the service's word (`expired`, `failed`, `refused`) or `late`
    /// for one that was still under way at the end; none for one that was.
    #[serde(default)]
    pub lost: Option<String>,
    /// How often the receiver had it: more than once is an error.
    #[serde(default)]
    pub copies: u32,
    /// Places of the channels that its route crossed when it was sent, each once, in the order of
    /// [`NetRun::media`]; empty where there was no route.
    pub crossed: Vec<usize>,
    /// Hops of that route; 0 where there was none.
    pub hops: u32,
}

/// What one node sent over one channel for one protocol.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetAirtime {
    /// Place of the channel in [`NetRun::media`].
    pub medium: usize,
    /// Place of the node in [`NetRun::nodes`].
    pub node: usize,
    /// `tcp`, `udp`, `icmp`, `routing`, `ack` for acknowledgements of the channel itself, `other`.
    pub protocol: String,
    /// How often it was sent.
    pub transmissions: u64,
    /// Bytes in the air, headers of the channel counted.
    pub bytes: u64,
    /// How long that took.
    pub airtime_s: f64,
    /// Receptions that were meant and failed.
    #[serde(default)]
    pub missed: u64,
}

/// A transmission in the air.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetTransmission {
    /// Place of the channel in [`NetRun::media`].
    pub medium: usize,
    /// Place of the sender in [`NetRun::nodes`].
    pub node: usize,
    /// As in [`NetAirtime`].
    pub protocol: String,
    /// When it began, since the scenario's start.
    pub start_s: f64,
    /// How long it took.
    pub airtime_s: f64,
    /// Bytes in the air, headers of the channel counted.
    pub bytes: u32,
    /// Their rate.
    pub rate_bps: u64,
    /// How often the packet was sent before, this time counted: from 1.
    pub attempt: u32,
    /// Whom it was for: `one`, `group` or `all`; empty where that is not known.
    #[serde(default)]
    pub cast: String,
    /// Places of the nodes that received it, of those that it was for.
    pub received: Vec<usize>,
    /// How many did not.
    pub missed: u32,
}

/// Most transmissions that a run records; of others there are the sums.
pub const MAX_TRANSMISSIONS: usize = 200_000;

impl NetRun {
    /// Counts a transmission, and records it as long as there is room.
    pub fn transmitted(&mut self, transmission: NetTransmission) {
        let NetTransmission { medium, node, bytes, airtime_s, missed, .. } = transmission;
        let protocol = transmission.protocol.as_str();
        let is_of = |sum: &&mut NetAirtime| {
            (sum.medium, sum.node, sum.protocol.as_str()) == (medium, node, protocol)
        };
        let sum = match self.airtime.iter_mut().find(is_of) {
            Some(sum) => sum,
            None => {
                let protocol = protocol.to_owned();
                self.airtime.push(NetAirtime { medium, node, protocol, ..NetAirtime::default() });
                let Some(last) = self.airtime.last_mut() else { return };
                last
            }
        };
        sum.transmissions += 1;
        sum.bytes += u64::from(bytes);
        sum.airtime_s += airtime_s;
        sum.missed += u64::from(missed);
        if self.transmissions.len() < MAX_TRANSMISSIONS {
            self.transmissions.push(transmission);
        } else {
            self.unrecorded += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transmissions_are_summed_by_channel_node_and_protocol() {
        let mut run = NetRun::default();
        for (medium, protocol) in [(0, "tcp"), (0, "tcp"), (1, "tcp"), (0, "ack")] {
            let protocol = protocol.to_owned();
            let (bytes, airtime_s, missed) = (100, 0.25, 1);
            let one = NetTransmission {
                medium,
                protocol,
                bytes,
                airtime_s,
                missed,
                ..Default::default()
            };
            run.transmitted(one);
        }
        let sums: Vec<_> = run
            .airtime
            .iter()
            .map(|sum| {
                (sum.medium, sum.protocol.as_str(), sum.transmissions, sum.bytes, sum.airtime_s)
            })
            .collect();
        assert_eq!(
            sums,
            [(0, "tcp", 2, 200, 0.5), (1, "tcp", 1, 100, 0.25), (0, "ack", 1, 100, 0.25)]
        );
        assert_eq!((run.transmissions.len(), run.unrecorded), (4, 0));
    }
}
