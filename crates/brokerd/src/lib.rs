//! The shell of the broker: listeners, TLS, WebSocket, users, store.
//!
//! One thread owns the [`broker::Broker`] and all connections ([`serve`]); another writes to the
//! store. A connection's task reads, hands in what it read, and does what the broker says.

mod address;
mod bound;
mod bridges;
pub mod client;
mod config;
mod connection;
mod consumers;
mod datagrams;
mod dials;
mod error;
mod http;
mod link;
mod listen;
mod log;
mod owner;
mod senders;
mod store;
mod tls;
mod users;
mod websocket;

use std::rc::Rc;

pub use bound::Bound;
pub use config::{Config, MqttSnConfig};
pub use error::Error;
pub use users::set_password;

use owner::Owner;

/// Whether a configuration and the files that it names are good; nothing is bound or written.
///
/// # Errors
/// What is wrong.
pub fn check(config: &Config) -> Result<(), Error> {
    config.settings()?;
    users::Users::load(config)?;
    config.bridges()?;
    config.mqtt_sn()?;
    config.mqtt_udp(1)?;
    datagrams::check(config)?;
    listen::check(config)
}

/// Runs a broker until `end` is done, and then until its clients have been told. `ready` is called
/// once, when every listener is bound.
///
/// # Errors
/// What cannot be bound, read or opened.
pub fn serve(
    config: &Config,
    ready: impl FnOnce(&[Bound]),
    end: impl AsyncFnOnce(),
) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::System(format!("cannot start: {error}")))?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let owner = Rc::new(Owner::new(config)?);
        let listeners = listen::bind(config).await?;
        let sockets = datagrams::bind(config)?;
        let mut bound: Vec<Bound> = listeners.iter().map(listen::Listener::bound).collect();
        bound.extend(sockets.iter().map(datagrams::Datagrams::bound));
        owner.send_by(sockets.iter().map(datagrams::Datagrams::sender).collect());
        owner.serve_wsn(config, &bound)?;
        ready(&bound);
        owner.start();
        for socket in sockets {
            tokio::task::spawn_local(socket.run(owner.clone()));
        }
        for listener in listeners {
            tokio::task::spawn_local(listener.run(owner.clone()));
        }
        let (_, targets) = config.bridges()?;
        tokio::task::spawn_local(bridges::run(owner.clone(), targets));
        tokio::task::spawn_local(owner.clone().keep_time());
        end().await;
        owner.finish().await;
        Ok(())
    })
}
