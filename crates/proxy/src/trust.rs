//! What carriers are checked by, and what becomes of them when the files of the keys change: a peer
//! that is in them no longer is cut off, one that came to them is let in.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use tokio::sync::watch;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::carrier::Security;
use crate::keys::{Files, Identity, PublicKey};
use crate::{Error, tls};

/// How often the peer file is looked at: a key that was taken off it must be cut off in
/// seconds, and a look costs some microseconds.
const LOOK_PAUSE: Duration = Duration::from_millis(500);

/// What carriers are checked by at one time.
pub(crate) struct Trust {
    pub(crate) security: Security,
    pub(crate) client: Option<TlsConnector>,
    pub(crate) server: Option<TlsAcceptor>,
    pub(crate) quic_client: Option<Arc<QuicClientConfig>>,
    pub(crate) quic_server: Option<Arc<QuicServerConfig>>,
}

impl Trust {
    fn new(security: Security) -> Result<Self, Error> {
        let (mut client, mut server) = (None, None);
        let (mut quic_client, mut quic_server) = (None, None);
        if let Security::Keys(identity) = &security {
            client = Some(TlsConnector::from(Arc::new(tls::client_config(identity)?)));
            server = Some(TlsAcceptor::from(Arc::new(tls::server_config(identity)?)));
            quic_client = Some(tls::quic_client_config(identity)?);
            quic_server = Some(tls::quic_server_config(identity)?);
        }
        Ok(Self { security, client, server, quic_client, quic_server })
    }

    pub(crate) fn identity(&self) -> Option<&Identity> {
        match &self.security {
            Security::Insecure { .. } => None,
            Security::Keys(identity) => Some(identity),
        }
    }
}

/// Whoever asks what holds now.
#[derive(Clone)]
pub(crate) struct Trusting(watch::Receiver<Arc<Trust>>);

impl Trusting {
    pub(crate) fn now(&self) -> Arc<Trust> {
        Arc::clone(&self.0.borrow())
    }

    /// Ends once this key of a peer is let in no longer, with why.
    pub(crate) async fn lost(&self, key: Option<PublicKey>) -> String {
        let mut trust = self.0.clone();
        loop {
            if trust.changed().await.is_err() {
                return std::future::pending().await;
            }
            let now = Arc::clone(&trust.borrow_and_update());
            if let Some(identity) = now.identity()
                && let Err(why) = identity.admit(key)
            {
                return why;
            }
        }
    }
}

/// Who replaces what holds.
#[derive(Clone)]
pub(crate) struct Keeper(Arc<watch::Sender<Arc<Trust>>>);

impl Keeper {
    pub(crate) fn new(security: Security) -> Result<Self, Error> {
        Ok(Self(Arc::new(watch::Sender::new(Arc::new(Trust::new(security)?)))))
    }

    pub(crate) fn trusting(&self) -> Trusting {
        Trusting(self.0.subscribe())
    }

    fn now(&self) -> Arc<Trust> {
        Arc::clone(&self.0.borrow())
    }

    /// Takes other keys; what that changes, or nothing. Keys do not come or go while a side runs:
    /// that is what the second error is about.
    pub(crate) fn renew(&self, security: Security) -> Result<Option<String>, Error> {
        let old = self.now();
        let (Security::Keys(before), Security::Keys(after)) = (&old.security, &security) else {
            return Ok(None);
        };
        let Some(what) = before.changes(after) else { return Ok(None) };
        let trust = Trust::new(security)?;
        self.0.send_replace(Arc::new(trust));
        Ok(Some(what))
    }

    /// Looks at the peer file for ever, and takes what it says.
    pub(crate) async fn watch(self) {
        let Some(mut files) = self.files() else { return };
        let mut seen = Mark::of(&files.peer);
        loop {
            tokio::time::sleep(LOOK_PAUSE).await;
            let Some(now) = self.files() else { return };
            let mark = Mark::of(&now.peer);
            // Another file since the configuration was read again: that one was read then.
            if now != files || mark == seen {
                (files, seen) = (now, mark);
                continue;
            }
            seen = mark;
            self.read_peers(&files);
        }
    }

    fn read_peers(&self, files: &Files) {
        let old = self.now();
        let Security::Keys(before) = &old.security else { return };
        let renewed = before
            .with_peers(&files.peer)
            .and_then(|after| self.renew(Security::Keys(Arc::new(after))));
        match renewed {
            Ok(Some(what)) => tracing::info!("the peer file has changed: {what}"),
            Ok(None) => {}
            Err(error) => {
                tracing::error!("the peer file has changed and is not taken: {error}");
            }
        }
    }

    fn files(&self) -> Option<Files> {
        self.now().identity().map(|identity| identity.files.clone())
    }
}

/// By what a file that changed is told from what it was.
#[derive(PartialEq, Eq)]
struct Mark(Option<[i64; 5]>);

impl Mark {
    fn of(path: &Path) -> Self {
        let metadata = std::fs::metadata(path).ok();
        Self(metadata.map(|data| {
            let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
            [number(data.ino()), number(data.len()), data.mtime(), data.mtime_nsec(), data.ctime()]
        }))
    }
}
