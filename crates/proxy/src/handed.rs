//! Sockets that were bound before this process began: socket activation by a service manager.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;

use socket2::{Socket, Type};

use crate::Error;

/// Most sockets that are taken: more than any side has addresses.
const MAX_SOCKETS: usize = 64;

/// Sockets that were handed over, until those take them whose addresses they have.
#[derive(Debug, Default)]
pub struct Handed {
    sockets: Vec<One>,
    /// What was asked for so far, as it is said to people.
    wanted: Vec<String>,
}

#[derive(Debug)]
struct One {
    name: String,
    socket: Socket,
    address: SocketAddr,
    is_stream: bool,
}

/// How messages call what a socket is for.
fn kind(is_stream: bool) -> &'static str {
    if is_stream { "tcp" } else { "udp" }
}

impl One {
    fn new(name: String, socket: OwnedFd) -> Result<Self, Error> {
        let socket = Socket::from(socket);
        let wrong = |what: &str| {
            let text = format!(
                "the service manager hands over '{name}', which is {what}: only listeners of TCP \
                 and sockets of UDP are taken (ListenStream, ListenDatagram with an address)"
            );
            Error::Caller(text)
        };
        let address = socket.local_addr().map_err(|_| wrong("no socket"))?;
        let address = address.as_socket().ok_or_else(|| wrong("no socket of IP"))?;
        let is_stream = match socket.r#type() {
            Ok(Type::STREAM) => true,
            Ok(Type::DGRAM) => false,
            _ => return Err(wrong("of another type")),
        };
        if is_stream && !socket.is_listener().unwrap_or(false) {
            return Err(wrong("a connection and no listener (Accept=yes)"));
        }
        let doing = format!("prepare the socket '{name}' that was handed over");
        socket.set_nonblocking(true).map_err(Error::system(doing))?;
        Ok(Self { name, socket, address, is_stream })
    }

    fn shown(&self) -> String {
        format!("{} {} ('{}')", kind(self.is_stream), self.address, self.name)
    }
}

impl Handed {
    /// Takes sockets, each with the name that the service manager has for it.
    ///
    /// # Errors
    /// One that is neither a listener of TCP nor a socket of UDP; more than 64.
    pub fn new(sockets: Vec<(String, OwnedFd)>) -> Result<Self, Error> {
        if sockets.len() > MAX_SOCKETS {
            let count = sockets.len();
            return Err(Error::Caller(format!(
                "the service manager hands over {count} sockets, over the limit of {MAX_SOCKETS}: \
                 name fewer addresses in the socket unit"
            )));
        }
        let one = |(name, socket)| One::new(name, socket);
        let sockets = sockets.into_iter().map(one).collect::<Result<_, _>>()?;
        Ok(Self { sockets, wanted: Vec::new() })
    }

    fn take(&mut self, setting: &str, address: SocketAddr, is_stream: bool) -> Option<Socket> {
        self.wanted.push(format!("{setting} {} {address}", kind(is_stream)));
        let fits = |one: &One| one.address == address && one.is_stream == is_stream;
        let at = self.sockets.iter().position(fits)?;
        let One { name, socket, .. } = self.sockets.swap_remove(at);
        tracing::info!(setting, %address, name, "a socket of the service manager is taken");
        Some(socket)
    }

    /// The listener that has this address, where one was handed over; `setting` is what wants it.
    pub fn listener(&mut self, setting: &str, address: SocketAddr) -> Option<TcpListener> {
        self.take(setting, address, true).map(Into::into)
    }

    /// The socket for datagrams that has this address, where one was handed over.
    pub fn datagrams(&mut self, setting: &str, address: SocketAddr) -> Option<UdpSocket> {
        self.take(setting, address, false).map(Into::into)
    }

    /// Once all that is configured was asked for.
    ///
    /// # Errors
    /// Sockets that nothing has taken: whoever connects to one would wait for ever.
    pub fn finish(&mut self) -> Result<(), Error> {
        if self.sockets.is_empty() {
            return Ok(());
        }
        let left: Vec<_> = self.sockets.iter().map(One::shown).collect();
        Err(Error::Caller(format!(
            "the service manager hands over {}, which no setting has; addresses that are taken: \
             {}: write the same ones in the socket unit and in the configuration",
            left.join(", "),
            self.wanted.join(", ")
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, socket: impl Into<OwnedFd>) -> (String, OwnedFd) {
        (name.to_owned(), socket.into())
    }

    #[test]
    fn a_socket_goes_to_the_setting_with_its_address() {
        let stream = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = stream.local_addr().unwrap();
        let datagrams = UdpSocket::bind(address).unwrap();
        let sockets = vec![named("a.socket", datagrams), named("a.socket", stream)];
        let mut handed = Handed::new(sockets).unwrap();
        let other = "127.0.0.1:1".parse().unwrap();
        assert!(handed.listener("admin", other).is_none());
        let taken = handed.listener("listen", address).unwrap();
        assert_eq!(taken.local_addr().unwrap(), address);
        assert!(handed.listener("listen", address).is_none());
        assert!(handed.datagrams("listen", address).is_some());
        handed.finish().unwrap();
    }

    #[test]
    fn what_nothing_has_asked_for_is_refused_with_both_addresses() {
        let stream = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = stream.local_addr().unwrap();
        let mut handed = Handed::new(vec![named("edge.socket", stream)]).unwrap();
        assert!(handed.listener("listen", "127.0.0.1:1".parse().unwrap()).is_none());
        // A port of the same number for datagrams is another.
        assert!(handed.datagrams("wsp", address).is_none());
        let error = handed.finish().unwrap_err().to_string();
        let handed = format!("tcp {address} ('edge.socket')");
        for part in [&handed[..], "listen tcp 127.0.0.1:1", "wsp udp"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn what_is_no_listener_is_refused() {
        let stream = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(stream.local_addr().unwrap()).unwrap();
        let (unix, _other) = std::os::unix::net::UnixDatagram::pair().unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        for (socket, what) in [
            (named("c", client), "a connection"),
            (named("u", unix), "no socket of IP"),
            (named("f", file), "no socket"),
        ] {
            let error = Handed::new(vec![socket]).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }
}
