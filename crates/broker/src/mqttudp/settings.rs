//! What an operator sets for MQTT/UDP.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use proto::mqttudp::{Signature, Signer};

/// Which datagrams are believed. A signature says who made one, not when, nor who sends it: the
/// protocol has no name for senders, so a copy that comes from another address, or after a long
/// silence, is believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// All but those with a signature that the key did not make.
    #[default]
    None,
    /// Those that the key signed, by either way.
    Any,
    /// Those that the key signed by HMAC-SHA-256.
    Sha256,
}

/// What leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The topics: a filter of MQTT.
    pub filter: String,
    /// How often each is sent again under its number.
    pub repeats: u32,
    /// How long after the one before.
    pub repeat_after: Duration,
}

impl Exit {
    /// The topics of a filter, each once.
    #[must_use]
    pub fn new(filter: impl Into<String>) -> Self {
        Self { filter: filter.into(), repeats: 0, repeat_after: Duration::from_millis(200) }
    }
}

/// One of the shell's sockets.
#[derive(Clone)]
pub struct Listener {
    /// The topics that are taken: filters of MQTT.
    pub entry: Vec<String>,
    /// The topics that leave.
    pub exit: Vec<Exit>,
    /// To where: addresses of networks, groups or hosts. Answers go there too.
    pub targets: Vec<SocketAddr>,
    /// Nothing is ever sent (radio silence).
    pub one_way: bool,
    /// The key that senders share.
    pub key: Option<Bytes>,
    /// Which datagrams are believed; without a key all.
    pub verification: Verification,
    /// What leaves is signed by HMAC-MD5, as others check it.
    pub sign_md5: bool,
    /// What leaves is signed by HMAC-SHA-256.
    pub sign_sha256: bool,
    /// Publications whose senders want a PUBACK are taken at least once, and get one.
    pub acknowledges: bool,
    /// Publications say from which address they came, also where nothing shows that it is true.
    pub tells_source: bool,
    /// Longest datagram that leaves, in bytes.
    pub max_datagram_bytes: usize,
    /// The number of the first datagram: unforeseeable, and another one for each run, so that what
    /// comes back of what was sent is known as that.
    pub first_number: u32,
}

impl Default for Listener {
    fn default() -> Self {
        Self {
            entry: vec!["#".to_owned()],
            exit: Vec::new(),
            targets: Vec::new(),
            one_way: false,
            key: None,
            verification: Verification::None,
            sign_md5: false,
            sign_sha256: false,
            acknowledges: false,
            tells_source: false,
            max_datagram_bytes: 1200,
            first_number: 1,
        }
    }
}

impl fmt::Debug for Listener {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("entry", &self.entry)
            .field("exit", &self.exit)
            .field("targets", &self.targets)
            .field("one_way", &self.one_way)
            .field("verification", &self.verification)
            .finish_non_exhaustive()
    }
}

impl Listener {
    /// Whether a datagram with this signature is believed.
    pub(super) fn believes(&self, signature: Signature) -> bool {
        let least = match self.verification {
            _ if self.key.is_none() => return true,
            Verification::None => return signature != Signature::Wrong,
            Verification::Any => Signature::Md5,
            Verification::Sha256 => Signature::Sha256,
        };
        signature >= least
    }

    /// Whether only signed datagrams are believed, so that copies of old ones are no good.
    pub(super) fn is_strict(&self) -> bool {
        self.key.is_some() && self.verification != Verification::None
    }

    /// What leaves is signed with.
    pub(super) fn signer(&self) -> Signer<'_> {
        match &self.key {
            Some(key) => Signer { key, sha256: self.sign_sha256, md5: self.sign_md5 },
            None => Signer::NONE,
        }
    }
}

/// What an operator sets for MQTT/UDP.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The sockets, by the numbers that the shell has for them.
    pub listeners: BTreeMap<u16, Listener>,
    /// A sender that was not heard for so long may begin its numbers anew.
    pub forget_after: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { listeners: BTreeMap::new(), forget_after: Duration::from_secs(60) }
    }
}
