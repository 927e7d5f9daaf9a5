//! Hosts as network namespaces: made, configured, entered and removed.

mod address;
mod enter;
mod ethtool;
mod host;
mod message;
mod netem;
mod netlink;
mod netns;
mod node;
mod privilege;
pub(crate) mod processes;
mod sockets;
mod tcp;
mod wire;

pub use address::Reach;
pub(crate) use enter::{Entrance, LAB_ID};
pub use enter::{enter, enter_net};
pub use host::{CONGESTION_CONTROL, Host, INTERFACE, Side};
pub(crate) use netem::{Netem, try_netem};
pub(crate) use netlink::RouteChange;
pub(crate) use netns::on_fresh_thread;
pub use netns::{Namespace, within};
pub(crate) use node::{Interface, MAX_NODE_NAME_BYTES, Node, NodePlan};
pub(crate) use privilege::{CAP_IPC_LOCK, capabilities};
pub use privilege::{Privilege, acquire, in_user_namespace};
pub use sockets::{MAX_TCP_SOCKETS, TcpSocket};
pub use tcp::TcpSettings;
pub use wire::{Device, MAX_LINKS};
pub(crate) use wire::{Plan, Wire, Workshop, build_joined, mtus};

/// Writes a setting of the calling thread's network namespace.
fn write_setting(setting: &str, value: &str) -> std::io::Result<()> {
    std::fs::write(format!("/proc/sys/net/{setting}"), value)
}
