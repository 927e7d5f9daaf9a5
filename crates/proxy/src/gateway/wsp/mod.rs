//! Clients of WAP: connectionless WSP (WAP-230, UDP port 9200), for what the gateway may reach.
//!
//! - [`server`]: a socket and the machine that knows copies of requests;
//! - `exchange`: one request, over what the gateway may reach, and its answer;
//! - `http`: what of WSP is what of HTTP, as pure functions;
//! - `wbxml`: XML for origins where clients have WBXML.

mod exchange;
mod http;
mod server;
mod wbxml;

pub(super) use exchange::Exchanges;
pub(super) use server::Listener;
