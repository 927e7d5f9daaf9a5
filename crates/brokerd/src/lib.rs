//! The shell of the broker: listeners, TLS, WebSocket, users, store.
//!
//! One thread owns the [`broker::Broker`] and all connections ([`serve`]); another writes to the
//! store. A connection's task reads, hands in what it read, and does what the broker says.

mod address;
mod admin;
mod applied;
mod bound;
mod bridges;
pub mod client;
mod config;
mod connection;
mod consumers;
mod datagrams;
mod dials;
mod error;
mod explaining;
pub mod federation;
mod http;
mod link;
mod listen;
mod local;
mod log;
mod moving;
mod owner;
mod password;
mod senders;
mod store;
mod tls;
mod users;
mod websocket;

use std::rc::Rc;

pub use bound::Bound;
pub use broker::ExplainQuery;
pub use config::{Config, MqttSnConfig};
pub use error::Error;
pub use explaining::explain;
pub use local::{Local, LocalConfig};
pub use password::read_password;
pub use proxy::Handed;
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
    config.mesh()?;
    config.mqtt_sn()?;
    config.mqtt_udp(1)?;
    datagrams::check(config)?;
    admin::address(config)?;
    listen::check(config)
}

/// What an operator says to a broker that runs.
#[derive(Clone, Debug)]
pub enum Order {
    /// End, once clients have been told.
    End,
    /// Take this configuration, or say what is wrong with the one that was to be read.
    Reload(Box<Result<Config, Error>>),
}

/// Runs a broker until it is ordered to end, and then until its clients have been told. What was
/// bound before is taken where its address is one of the configuration. `ready` is called once,
/// when every listener is bound; `order` is asked for the next order, also when one was carried
/// out.
///
/// # Errors
/// What cannot be bound, read or opened.
pub fn serve(
    config: &Config,
    mut handed: Handed,
    ready: impl FnOnce(&[Bound]),
    mut order: impl AsyncFnMut() -> Order,
) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::System(format!("cannot start: {error}")))?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let owner = Rc::new(Owner::new(config)?);
        let listeners = listen::bind(config, &mut handed).await?;
        let sockets = datagrams::bind(config, &mut handed)?;
        let mut bound: Vec<Bound> = listeners.iter().map(listen::Listener::bound).collect();
        bound.extend(sockets.iter().map(datagrams::Datagrams::bound));
        let admin = admin::Admin::bind(config, &mut handed).await?;
        handed.finish().map_err(|error| Error::Caller(error.to_string()))?;
        bound.extend(admin.as_ref().map(admin::Admin::bound));
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
        let (_, mut targets) = config.bridges()?;
        targets.extend(config.mesh()?.into_iter().flat_map(|(_, members)| members));
        tokio::task::spawn_local(bridges::run(owner.clone(), targets));
        tokio::task::spawn_local(owner.clone().keep_time());
        if let Some(admin) = admin {
            tokio::task::spawn_local(admin.run(owner.clone()));
        }
        let started = config;
        while let Order::Reload(config) = order().await {
            let taken = (*config).and_then(|config| {
                // A profile that is not good is looked at apart: the rest is taken without it.
                check(&config.without_profile())?;
                // The listeners stay those of the start, whatever addresses stand there now.
                check(&started.with_access_of(&config).without_profile())?;
                owner.reload(&config, &started.needs_restart(&config))
            });
            if let Err(error) = taken {
                tracing::error!(%error, "nothing was read again: all stays as it was");
            }
        }
        owner.finish().await;
        Ok(())
    })
}
