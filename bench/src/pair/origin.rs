//! The service behind the pair: makes bodies, and checks those that it is sent.

use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;

use anyhow::{Context, Result, bail};

use super::PATIENCE;
use super::content::{send, verify};
use super::http::Head;
use crate::machine::pin_this_thread;

/// Serves until the process ends.
pub(super) struct Origin {
    pub(super) address: SocketAddr,
}

impl Origin {
    /// Starts to serve, on one core where that is given: `GET /N` answers with N bytes, `POST /N`
    /// checks that it gets N bytes.
    pub(super) fn start(core: Option<usize>) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("open a service")?;
        let address = listener.local_addr()?;
        let accept = move || {
            if let Some(core) = core {
                pin_this_thread(core);
            }
            // One thread for each connection; there are as many as the benchmark opens.
            for stream in listener.incoming().map_while(Result::ok) {
                thread::spawn(move || serve(stream));
            }
        };
        thread::Builder::new().name("origin".to_string()).spawn(accept)?;
        Ok(Self { address })
    }
}

/// Whoever asked sees a failure as a connection that breaks, and tells of it.
fn serve(stream: TcpStream) {
    let _ = serve_requests(stream);
}

fn serve_requests(stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut to = stream.try_clone()?;
    let mut from = BufReader::with_capacity(64 * 1024, stream);
    while let Some(head) = Head::read(&mut from)? {
        let mut words = head.start_line.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let length: u64 = path.trim_start_matches('/').parse().context("a path like /500")?;
        let mut body = head.body(&mut from)?;
        match method {
            "GET" => answer(&mut to, "200 OK", length)?,
            "POST" => match verify(&mut body, length) {
                Ok(()) => answer(&mut to, "200 OK", 0)?,
                Err(error) => {
                    to.write_all(&refusal(&error.to_string()))?;
                    bail!(error);
                }
            },
            _ => bail!("method {method}"),
        }
    }
    Ok(())
}

fn refusal(reason: &str) -> Vec<u8> {
    let length = reason.len();
    format!("HTTP/1.1 400 Bad Request\r\nContent-Length: {length}\r\n\r\n{reason}").into_bytes()
}

fn answer(to: &mut TcpStream, status: &str, length: u64) -> Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n"
    );
    let mut message = head.into_bytes();
    if length < 64 * 1024 {
        // Small answers leave in one segment train, as a real service's do.
        send(&mut message, length)?;
        to.write_all(&message)?;
    } else {
        to.write_all(&message)?;
        send(to, length)?;
    }
    Ok(())
}
