//! Packets as the ferry saw them: what a time-of-flight picture is drawn from.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Everything recorded of one link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PacketRecord {
    /// In the order in which they were offered.
    pub packets: Vec<PacketEvent>,
    /// Packets beyond the bound, only counted.
    pub unrecorded: u64,
}

/// The way of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Toward {
    /// From client to service: a to b.
    Service,
    /// From service to client: b to a.
    Client,
}

/// One packet. Times are on CLOCK_MONOTONIC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PacketEvent {
    /// Which way it went.
    pub toward: Toward,
    /// When the sender offered it to the link.
    pub offered: Duration,
    /// When it was written to the receiver; none for one that was dropped or has not arrived.
    pub delivered: Option<Duration>,
    /// When it was due there: what it is later is the ferry's lateness.
    #[serde(default)]
    pub due: Option<Duration>,
    /// Why it was dropped: a reason of the link, or `refused` by the receiver's interface.
    pub dropped: Option<String>,
    /// A second one that the link made of a packet; it is offered when that was.
    #[serde(default)]
    pub duplicate: bool,
    /// IP bytes.
    pub bytes: u32,
    /// What its TCP header says; none for other packets.
    pub tcp: Option<TcpHeader>,
}

/// Of a TCP header (RFC 9293 §3.1) what a picture needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpHeader {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Bytes of content.
    pub payload: u16,
    /// FIN 1, SYN 2, RST 4, PSH 8, ACK 16.
    pub flags: u8,
    /// Receive window as in the header, unscaled.
    pub window: u16,
}
