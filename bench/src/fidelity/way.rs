//! Ways of running the ferry.

use lab::Device;

/// A way of running the ferry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// TAP and real-time priority: the way that has bounds.
    Root,
    /// Veth pairs with packet sockets and real-time priority.
    Veth,
    /// TAP without real-time priority.
    NoPriority,
    /// Veth pairs inside a user namespace, without real-time priority.
    Rootless,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Root, Self::Veth, Self::NoPriority, Self::Rootless];

    /// The name in results and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Veth => "veth",
            Self::NoPriority => "no-priority",
            Self::Rootless => "rootless",
        }
    }

    /// What it is.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::Root => "TAP, real-time priority",
            Self::Veth => "veth and packet sockets, real-time priority",
            Self::NoPriority => "TAP, priority taken away from the ferry's thread",
            Self::Rootless => "veth and packet sockets in a user namespace, no priority",
        }
    }

    /// What joins the hosts to the ferry.
    #[must_use]
    pub fn device(self) -> Device {
        match self {
            Self::Root | Self::NoPriority => Device::Tap,
            Self::Veth | Self::Rootless => Device::Veth,
        }
    }

    /// Whether results have bounds to keep.
    #[must_use]
    pub fn is_bounded(self) -> bool {
        self == Self::Root
    }
}
