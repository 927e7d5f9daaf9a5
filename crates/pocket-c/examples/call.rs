//! A SOAP call over UDP from Rust: `call GATEWAY:PORT URI NAMESPACE OPERATION`, over WSP in WBXML.
//! Prints the elements of the answer's body that have text alone.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use pocket::document::{Event, Name, Reader, WBXML, Writer};
use pocket::{Address, Content, Error, Received, Request, Socket, Tokens, soap, wsp};

struct Udp {
    socket: UdpSocket,
    peer: SocketAddr,
    epoch: Instant,
}

fn address(of: SocketAddr) -> Address {
    let ip = match of.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let mut bytes = [0; 18];
    bytes[..16].copy_from_slice(&ip.octets());
    bytes[16..].copy_from_slice(&of.port().to_be_bytes());
    Address(bytes)
}

impl Socket for Udp {
    fn send(&mut self, datagram: &[u8]) -> Result<(), Error> {
        self.socket.send_to(datagram, self.peer).map(|_| ()).map_err(|_| Error::Socket)
    }

    fn receive(&mut self, room: &mut [u8], limit: Duration) -> Result<Received, Error> {
        let limit = limit.max(Duration::from_millis(1));
        self.socket.set_read_timeout(Some(limit)).map_err(|_| Error::Socket)?;
        let datagram = match self.socket.recv_from(room) {
            // What fills the room may have been cut, which this socket does not tell: then it is
            // one byte more at least. A room has one to spare.
            Ok((len, from)) => Some((address(from), len + usize::from(len == room.len()))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(_) => return Err(Error::Socket),
        };
        Ok(Received { now: self.epoch.elapsed(), datagram })
    }
}

fn call(words: &[String]) -> Result<(), Error> {
    let [gateway, uri, space, operation] = words else { return Err(Error::Misuse) };
    let peer: SocketAddr = gateway.parse().map_err(|_| Error::Misuse)?;
    let local = if peer.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(local).map_err(|_| Error::Socket)?;
    let mut udp = Udp { socket, peer, epoch: Instant::now() };

    let (mut body, mut room) = ([0; 1024], [0; 16_384]);
    let mut writer = Writer::new(&mut body, &WBXML, Tokens::SOAP);
    soap::begin(&mut writer)?;
    writer.begin(Name { space, local: operation })?;
    writer.end()?;
    let len = soap::end(writer)?;

    let body = body.get(..len).unwrap_or_default();
    let action = format!("{space}#{operation}");
    let request = Request { uri, action: &action, content: Content::Wbxml, body };
    let settings = wsp::Settings { repeats: true, ..wsp::Settings::DEFAULT };
    let mut client = wsp::Client::new(address(peer), std::process::id());
    let answer = client.call(&mut udp, Duration::ZERO, &request, &settings, &mut room)?;

    let mut reader = Reader::new(answer.body, &WBXML, Tokens::SOAP);
    let mut line = soap::open(&mut reader)?.local.to_owned();
    loop {
        match reader.next()? {
            Event::Start(found) => line = found.local.to_owned() + ": ",
            Event::Text(text) => line += text,
            Event::Char(char) => line.push(char),
            Event::End => {
                eprintln!("{line}");
                line.clear();
            }
            Event::Over => return Ok(()),
        }
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match call(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("call: {error}");
            ExitCode::FAILURE
        }
    }
}
