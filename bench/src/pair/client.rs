//! The client: one connection, one request after another.

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, bail};

use super::PATIENCE;
use super::content::{send, verify};
use super::http::Head;

/// A connection to the service or to a proxy before it.
pub(super) struct Connection {
    to: TcpStream,
    from: BufReader<TcpStream>,
    /// What stands before the path in a request: nothing, or where a proxy shall go.
    prefix: String,
    host: SocketAddr,
}

impl Connection {
    /// Connects to `proxy`, where there is one, else to `service`.
    pub(super) fn open(service: SocketAddr, proxy: Option<SocketAddr>) -> Result<Self> {
        let stream = TcpStream::connect(proxy.unwrap_or(service))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let prefix = if proxy.is_some() { format!("http://{service}") } else { String::new() };
        let from = BufReader::with_capacity(64 * 1024, stream.try_clone()?);
        Ok(Self { to: stream, from, prefix, host: service })
    }

    /// Asks for a body and checks every byte of it.
    pub(super) fn get(&mut self, length: u64) -> Result<()> {
        let Self { prefix, host, .. } = self;
        write!(self.to, "GET {prefix}/{length} HTTP/1.1\r\nHost: {host}\r\n\r\n")?;
        let head = self.read_head()?;
        verify(&mut head.body(&mut self.from)?, length)
    }

    /// Sends a body; the service checks every byte of it.
    pub(super) fn post(&mut self, length: u64) -> Result<()> {
        let Self { prefix, host, .. } = self;
        write!(
            self.to,
            "POST {prefix}/{length} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n"
        )?;
        send(&mut self.to, length)?;
        let head = self.read_head()?;
        verify(&mut head.body(&mut self.from)?, 0)
    }

    fn read_head(&mut self) -> Result<Head> {
        let head = Head::read(&mut self.from)?.context("the connection ends before an answer")?;
        if head.start_line.split(' ').nth(1) != Some("200") {
            let mut reason = String::new();
            head.body(&mut self.from)?.take(1000).read_to_string(&mut reason)?;
            bail!("{}: {}", head.start_line, reason.trim());
        }
        Ok(head)
    }
}
