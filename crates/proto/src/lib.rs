//! Wire formats and their machines: bytes and time come in as arguments, actions go out as values.
//!
//! Nothing here opens a socket, reads a clock or rolls a die.
//!
//! - [`varint`]: the variable-length integers of RFC 9000 §16 that the formats below share.
//! - [`amqp`]: types, frames and messages of AMQP 1.0.
//! - [`amqp091`]: frames, methods and connections of AMQP 0.9.1.
//! - [`bhttp`]: heads of HTTP messages in binary form (RFC 9292).
//! - [`burst`]: a carrier over datagrams that get lost, with forward error correction.
//! - [`carrier`]: what a relay and a carrier's machine say to each other.
//! - [`cbor`]: data items of CBOR (RFC 8949) on slices, without allocation.
//! - [`coap`]: messages, block-wise transfers and endpoints of CoAP (RFC 7252).
//! - [`control`]: what relays send each other besides their exchanges.
//! - [`dictionary`]: fields of HTTP by which dictionaries are named (RFC 9842).
//! - [`events`]: streams of server-sent events (WHATWG HTML §9.2).
//! - [`exchange`]: the parts of exchanges, as any carrier takes them.
//! - [`heads`]: heads of HTTP messages without what both sides know already.
//! - [`http1`]: heads and framing of HTTP/1 messages (RFC 9112).
//! - [`kinds`]: the kinds of carriers that there are.
//! - [`message`]: envelopes of messages that are no HTTP.
//! - [`mqtt`]: packets of MQTT 3.1, 3.1.1 and 5.
//! - [`mqttsn`]: messages of MQTT for sensor networks (MQTT-SN 1.2).
//! - [`mqttudp`]: datagrams of MQTT/UDP, which has no broker.
//! - [`oscore`]: messages of CoAP that are secret and authentic from end to end (RFC 8613).
//! - [`profile`]: what a client tells of its decoding and its link, for HTTP and SOAP.
//! - [`sealed`]: datagrams that are secret and known.
//! - [`stream`]: longwire's own carrier protocol over an ordered, reliable byte pipe.
//! - [`timers`]: deadlines of a machine, one for each key.
//! - [`transaction`]: carriers over requests and responses of CoAP.
//! - [`wbxml`]: tokens of binary XML (WAP-192).
//! - [`websocket`]: binary messages of a WebSocket (RFC 6455).
//! - [`wsp`]: requests of HTTP over datagrams in few bytes (WAP-230).

pub mod amqp;
pub mod amqp091;
pub mod bhttp;
pub mod burst;
pub mod carrier;
pub mod cbor;
pub mod coap;
pub mod control;
mod date;
pub mod dictionary;
mod error;
pub mod events;
pub mod exchange;
pub mod heads;
pub mod http1;
pub mod kinds;
pub mod message;
pub mod mqtt;
pub mod mqttsn;
pub mod mqttudp;
pub mod oscore;
pub mod profile;
pub mod quic;
pub mod sealed;
pub mod stream;
mod structured;
pub mod timers;
pub mod transaction;
pub mod urgency;
pub mod varint;
pub mod wbxml;
pub mod websocket;
pub mod wsp;

pub use error::Error;
