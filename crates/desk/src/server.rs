//! The listener and its connections.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use web::admission::Policy;

use crate::Settings;
use crate::error::{Error, Result};
use crate::requests;
use crate::shared::Shared;

/// Most connections: a browser opens six to a host, several may be open.
const MAX_CONNECTIONS: usize = 128;
/// How long a head may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest head of a request.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// After a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Bytes of chance in a token.
const TOKEN_BYTES: usize = 16;

/// The interface, listening.
pub struct Desk {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
    token: String,
}

impl Desk {
    /// Listens.
    ///
    /// # Errors
    /// [`Error`]: an address that is not a loopback one is refused.
    pub async fn bind(settings: Settings) -> Result<Self> {
        let listen = settings.listen;
        if !listen.ip().is_loopback() {
            return Err(Error::NotLoopback(listen));
        }
        let failed = |error| Error::Listen(listen, error);
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let token = token()?;
        let policy = Policy { port: address.port(), token: token.clone() };
        let shared = Arc::new(Shared::new(settings, policy));
        Ok(Self { listener, address, shared, token })
    }

    /// The address to open in a browser, with the token.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/?token={}", self.address, self.token)
    }

    /// Serves until SIGINT or SIGTERM. What was started goes on.
    ///
    /// # Errors
    /// When signals cannot be caught.
    pub async fn serve(self) -> Result<()> {
        let catch = |kind| signal(kind).map_err(|error| Error::System("catch signals", error));
        let (mut interrupted, mut ended) =
            (catch(SignalKind::interrupt())?, catch(SignalKind::terminate())?);
        let seats = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let seat = tokio::select! {
                seat = seats.clone().acquire_owned() => seat,
                _ = interrupted.recv() => return Ok(()),
                _ = ended.recv() => return Ok(()),
            };
            // The semaphore is never closed.
            let Ok(seat) = seat else { return Ok(()) };
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        tokio::spawn(converse(stream, Arc::clone(&self.shared), seat));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                _ = interrupted.recv() => return Ok(()),
                _ = ended.recv() => return Ok(()),
            }
        }
    }
}

async fn converse(stream: TcpStream, shared: Arc<Shared>, seat: OwnedSemaphorePermit) {
    let shared = &shared;
    let service = service_fn(|request| async move {
        Ok::<_, Infallible>(requests::answer(shared, request).await)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(MAX_HEAD_BYTES);
    // A browser that goes away in between is no fault.
    if let Err(error) = http.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection ended early");
    }
    drop(seat);
}

fn token() -> Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Error::NoChance)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
