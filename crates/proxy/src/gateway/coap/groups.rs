//! Groups that a listener belongs to (RFC 7252 §8): who asks all that hear one what they have gets
//! an answer, and nothing else does: no error, nothing of an origin, nothing that is to be changed.

use std::ffi::CString;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket as StdUdpSocket};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use bytes::Bytes;
use proto::coap::machine::{Endpoint, Input, Output, Settings};
use proto::coap::{Code, Content};
use socket2::{Domain, InterfaceIndexOrAddress, Socket, Type};
use tokio::net::UdpSocket;

use crate::coap::http::{self as mapping, Wanted};
use crate::coap::tags::Tags;
use crate::config::MulticastGroup;
use crate::{Error, random_instance};

/// Longest datagram that is read: what asks for links is short.
const MAX_BYTES: usize = 1500;
/// Pause after a socket could not be read.
const RECEIVE_PAUSE: Duration = Duration::from_millis(10);

/// A listener's place in one group.
pub(super) struct Group {
    hears: UdpSocket,
    /// The listener's own: answers leave from its address (RFC 7252 §8.2).
    answers: StdUdpSocket,
    local: SocketAddr,
    endpoint: Endpoint<SocketAddr>,
    began: Instant,
}

impl Group {
    /// Joins a group at the listener's port: on the interface that is named, or else on the one
    /// that has the listener's address, or where that is of none on the kernel's choice.
    pub(super) fn join(
        group: &MulticastGroup,
        listener: &UdpSocket,
        is_challenging: bool,
    ) -> Result<Self, Error> {
        let MulticastGroup { address, interface } = group;
        let failed = || match interface {
            Some(name) => Error::system(format!("cannot join the group {address} on '{name}'")),
            None => Error::system(format!("cannot join the group {address}")),
        };
        let local = listener.local_addr().map_err(failed())?;
        let index = interface.as_deref().map(index_of).transpose().map_err(failed())?;
        let hears = join(*address, index, local).map_err(failed())?;
        let answers = listener.as_fd().try_clone_to_owned().map_err(failed())?;
        let seed = [random_instance()?, random_instance()?];
        let endpoint = Endpoint::new(&Settings { seed, is_challenging, rate_bps: None });
        Ok(Self { hears, answers: answers.into(), local, endpoint, began: Instant::now() })
    }

    /// Answers for ever.
    pub(super) async fn serve(mut self) {
        let mut room = [0; MAX_BYTES];
        let mut wake_at: Option<Duration> = None;
        loop {
            let due = wake_at.map(|at| self.began + at);
            let wake = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            let input = tokio::select! {
                came = self.hears.recv_from(&mut room) => match came {
                    Ok((bytes, peer)) => {
                        let bytes = Bytes::copy_from_slice(&room[..bytes]);
                        Input::Datagram { peer, bytes, is_group: true }
                    }
                    Err(_) => {
                        // sleep: what is said of one peer ends nothing, nor comes at once.
                        tokio::time::sleep(RECEIVE_PAUSE).await;
                        continue;
                    }
                },
                () = wake => {
                    wake_at = None;
                    Input::Wake
                }
            };
            wake_at = self.handle(input).or(wake_at);
        }
    }

    /// When to wake, if that is news.
    fn handle(&mut self, input: Input<SocketAddr>) -> Option<Duration> {
        let (mut inputs, mut wake_at) = (vec![input], None);
        while let Some(input) = inputs.pop() {
            self.endpoint.handle_input(self.began.elapsed(), input);
            while let Some(output) = self.endpoint.poll_output() {
                match output {
                    Output::Request { exchange, content, .. } => {
                        let content = answer(&content);
                        inputs.push(Input::Respond { exchange, content });
                    }
                    // What cannot be sent at once is as good as lost.
                    Output::Datagram { peer, bytes } => {
                        let _ = self.answers.send_to(&bytes, self.like_local(peer));
                    }
                    Output::WakeAt(at) => wake_at = Some(at),
                    _ => {}
                }
            }
        }
        wake_at
    }

    /// Of a socket for both versions of IP, addresses of the older are sent to mapped.
    fn like_local(&self, mut peer: SocketAddr) -> SocketAddr {
        if let (true, IpAddr::V4(ip)) = (self.local.is_ipv6(), peer.ip()) {
            peer.set_ip(ip.to_ipv6_mapped().into());
        }
        peer
    }
}

/// The answer to a group's request. What is an error, the endpoint says to nobody (RFC 7252 §8.2).
fn answer(content: &Content) -> Content {
    // Without an upstream: nothing is asked of an origin because all that hear a group were.
    match mapping::ask(content, None, &Tags::default()) {
        Ok(Wanted::Links(links)) => links,
        _ => Content::new(Code::NOT_FOUND),
    }
}

/// The number of an interface.
fn index_of(name: &str) -> io::Result<u32> {
    let name = CString::new(name)?;
    // SAFETY: the pointer is to a string of ours that ends with 0 and outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// A socket that hears nothing but the group.
fn join(group: IpAddr, on: Option<u32>, local: SocketAddr) -> io::Result<UdpSocket> {
    let at = SocketAddr::new(group, local.port());
    let socket = Socket::new(Domain::for_address(at), Type::DGRAM.nonblocking(), None)?;
    // Others on this host may belong to it too.
    socket.set_reuse_address(true)?;
    socket.bind(&at.into())?;
    let or = |own| on.map_or(InterfaceIndexOrAddress::Address(own), InterfaceIndexOrAddress::Index);
    match (group, local.ip().to_canonical()) {
        (IpAddr::V4(group), IpAddr::V4(own)) => socket.join_multicast_v4_n(&group, &or(own))?,
        (IpAddr::V4(group), IpAddr::V6(own)) if own.is_unspecified() => {
            socket.join_multicast_v4_n(&group, &or(Ipv4Addr::UNSPECIFIED))?;
        }
        (IpAddr::V6(group), IpAddr::V6(_)) => {
            socket.join_multicast_v6(&group, on.unwrap_or(0))?;
        }
        _ => {
            let what = "the listener has an address of the other version of IP";
            return Err(io::Error::new(ErrorKind::InvalidInput, what));
        }
    }
    UdpSocket::from_std(socket.into())
}

#[cfg(test)]
mod tests {
    use proto::coap::option;

    use super::*;

    #[test]
    fn a_group_gets_links_and_nothing_else() {
        let get = |path: &[&str]| {
            let put = |content: Content, one: &&str| content.with(option::URI_PATH, one.as_bytes());
            path.iter().fold(Content::new(Code::GET), put)
        };
        let links = get(&[".well-known", "core"]);
        assert_eq!(answer(&links).code, Code::CONTENT);
        for other in [
            get(&["elsewhere"]),
            links.clone().with(option::PROXY_URI, b"http://127.0.0.1/x"),
            links.with(option::PROXY_SCHEME, b"http").with(option::URI_HOST, b"127.0.0.1"),
            Content::new(Code::POST).with(option::URI_PATH, b"x"),
        ] {
            assert!(!answer(&other).code.is_success(), "{other:?}");
        }
    }
}
