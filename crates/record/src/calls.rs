//! The WAP study: methods called over links and in ways, each call split into its parts.

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::result::{Calls, Lateness, Traffic};

/// A method of one size, over one link and in one way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallsCell {
    /// The method, as in [`Calls::method`].
    pub method: String,
    /// Characters of the string, or numbers of the array.
    pub size: Option<u32>,
    /// What was measured; none where `failure` says why not.
    pub calls: Option<Calls>,
    /// Why nothing was measured, in one line.
    pub failure: Option<String>,
    /// What the link carried from the client, calls that warm up counted; nothing on one host.
    pub up: Traffic,
    /// What it carried to the client.
    pub down: Traffic,
    /// Calls that this was for: one that says the size, those that warm up, those measured.
    pub made: u32,
}

/// All methods over one link and in one way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallsRun {
    /// The study's name.
    pub study: String,
    /// A number of all that the study says: runs of other settings are told apart by it.
    pub fingerprint: String,
    /// The link's name in the study.
    pub link: String,
    /// Its settings, as `lab list` has them, none on one host; and `slowdown`, how many times
    /// slower the client's processor seemed, where it did.
    pub settings: Vec<(String, String)>,
    /// The way's name.
    pub way: String,
    /// Version of longwire.
    pub version: String,
    /// What it ran on.
    pub machine: Machine,
    /// The methods, in the order of the study.
    pub cells: Vec<CallsCell>,
    /// How late packets were written, against their due time.
    pub lateness: Lateness,
}
