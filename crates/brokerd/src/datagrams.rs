//! Sockets of MQTT-SN and MQTT/UDP.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;

use broker::Input;
use bytes::Bytes;
use proxy::Handed;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;

use crate::bound::Bound;
use crate::config::Config;
use crate::error::Error;
use crate::owner::Owner;

/// Longest datagram of UDP over IPv4.
const MAX_DATAGRAM_BYTES: usize = 65_507;

/// A bound socket.
pub(crate) struct Datagrams {
    name: &'static str,
    number: u16,
    socket: Rc<UdpSocket>,
    address: SocketAddr,
}

/// A socket that is wanted.
struct Wanted<'a> {
    name: &'static str,
    number: u16,
    listen: &'a str,
    groups: &'a [IpAddr],
    is_known: bool,
}

fn wanted(config: &Config) -> impl Iterator<Item = Wanted<'_>> {
    let sn = config.mqtt_sn.iter().enumerate().map(|(at, said)| Wanted {
        name: "mqtt-sn",
        number: config.sn_number(at),
        listen: &said.listen,
        groups: &said.groups,
        is_known: false,
    });
    let udp = config.mqtt_udp.iter().enumerate().map(|(at, said)| Wanted {
        name: "mqtt-udp",
        number: config.udp_number(at),
        listen: &said.listen,
        groups: &said.groups,
        is_known: said.is_strict(),
    });
    sn.chain(udp)
}

/// Whether the sockets of a configuration could be.
pub(crate) fn check(config: &Config) -> Result<(), Error> {
    wanted(config).try_for_each(|wanted| address(config, &wanted).map(drop))
}

/// Binds all sockets of a configuration, or takes those that were handed over.
pub(crate) fn bind(config: &Config, handed: &mut Handed) -> Result<Vec<Datagrams>, Error> {
    let mut all = Vec::new();
    for wanted in wanted(config) {
        let address = address(config, &wanted)?;
        let socket = match handed.datagrams(wanted.name, address) {
            Some(socket) => prepare(socket.into(), wanted.groups),
            None => open(address, wanted.groups),
        };
        let socket = socket.map_err(|error| {
            Error::Caller(format!("cannot listen on {address} ({}): {error}", wanted.name))
        })?;
        let address = socket.local_addr().unwrap_or(address);
        let Wanted { name, number, .. } = wanted;
        all.push(Datagrams { name, number, socket: Rc::new(socket), address });
    }
    Ok(all)
}

fn address(config: &Config, wanted: &Wanted<'_>) -> Result<SocketAddr, Error> {
    let Wanted { name, listen, is_known, .. } = wanted;
    let address: SocketAddr = listen
        .parse()
        .map_err(|_| Error::Caller(format!("{name} = \"{listen}\" is no address and port")))?;
    if address.ip().is_loopback() || *is_known || config.broker.anonymous {
        return Ok(address);
    }
    Err(Error::Caller(format!(
        "{name} = \"{address}\" takes datagrams of whoever reaches it: allow that (--anonymous)"
    )))
}

/// A socket that may send to broadcast addresses, and is in these groups.
pub(crate) fn open(address: SocketAddr, groups: &[IpAddr]) -> io::Result<UdpSocket> {
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    // Several programs of a host listen to one group or broadcast address.
    socket.set_reuse_address(!groups.is_empty() || address.ip().is_unspecified())?;
    socket.bind(&address.into())?;
    prepare(socket, groups)
}

fn prepare(socket: Socket, groups: &[IpAddr]) -> io::Result<UdpSocket> {
    socket.set_nonblocking(true)?;
    if socket.domain()? == Domain::IPV4 {
        socket.set_broadcast(true)?;
    }
    for group in groups {
        match group {
            IpAddr::V4(group) => socket.join_multicast_v4(group, &Ipv4Addr::UNSPECIFIED)?,
            IpAddr::V6(group) => socket.join_multicast_v6(group, 0)?,
        }
    }
    UdpSocket::from_std(socket.into())
}

impl Datagrams {
    /// Where it is.
    pub(crate) fn bound(&self) -> Bound {
        Bound { name: self.name, address: self.address }
    }

    /// Its number and the socket, for what is sent.
    pub(crate) fn sender(&self) -> (u16, Rc<UdpSocket>) {
        (self.number, self.socket.clone())
    }

    /// Takes what comes, for ever.
    pub(crate) async fn run(self, owner: Rc<Owner>) {
        let mut buffer = vec![0; MAX_DATAGRAM_BYTES];
        loop {
            match self.socket.recv_from(&mut buffer).await {
                Ok((len, from)) => {
                    let bytes = Bytes::copy_from_slice(buffer.get(..len).unwrap_or_default());
                    owner.input(Input::Datagram { listener: self.number, from, bytes });
                }
                // What was sent before has met nobody: that is the next one's matter.
                Err(error) => tracing::debug!(listener = self.name, %error, "nothing came"),
            }
        }
    }
}
