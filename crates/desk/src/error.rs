//! What keeps the interface from being served.

use std::fmt;
use std::io;
use std::net::SocketAddr;

/// A failure to serve; one line that says what would help.
#[derive(Debug)]
pub enum Error {
    /// The address is not one of this machine alone.
    NotLoopback(SocketAddr),
    /// The address cannot be listened on.
    Listen(SocketAddr, io::Error),
    /// The operating system refused something else.
    System(&'static str, io::Error),
    /// There is no chance to make a token from.
    NoChance,
}

/// Result with that error.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLoopback(address) => write!(
                f,
                "{address} can be reached from other machines, and the interface changes this one: \
                 give a loopback address such as 127.0.0.1:{port}, and from afar use \
                 ssh -L {port}:127.0.0.1:{port}",
                port = address.port()
            ),
            Self::Listen(address, error) => {
                write!(f, "cannot listen on {address}: {error}; give another with --listen")
            }
            Self::System(doing, error) => write!(f, "cannot {doing}: {error}"),
            Self::NoChance => f.write_str("the system gives no random numbers for a token"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Listen(_, error) | Self::System(_, error) => Some(error),
            Self::NotLoopback(_) | Self::NoChance => None,
        }
    }
}
