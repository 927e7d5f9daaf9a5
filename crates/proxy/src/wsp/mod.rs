//! WAP: connectionless WSP (WAP-230, UDP port 9200) at a gateway, for clients without an edge, and
//! a client of it.
//!
//! - [`server`]: a socket and the machine that knows copies of requests;
//! - `exchange`: one request, over what the gateway may reach, and its answer;
//! - `http`: what of WSP is what of HTTP, as pure functions;
//! - `wbxml`: XML for origins where clients have WBXML;
//! - [`client`]: one request at a gateway.

pub mod client;
mod exchange;
mod http;
mod server;
mod wbxml;

pub(crate) use exchange::Exchanges;
pub(crate) use server::Listener;
