//! Clients of WAP: connectionless WSP (WAP-230, UDP port 9200), for what the gateway may reach.
//!
//! - [`server`]: a socket and the machine that knows copies of requests;
//! - `exchange`: one request, over what the gateway may reach, and its answer;
//! - `http`: what of WSP is what of HTTP, as pure functions.
//!
//! XML for origins where clients have WBXML is made beside the client (`crate::wbxml`).

mod exchange;
mod http;
mod server;

pub(super) use exchange::Exchanges;
pub(super) use server::Listener;
