//! Connections of bridges, and of a mesh to its members.

use std::rc::Rc;

use broker::Input;
use proxy::dial;

use crate::config::Target;
use crate::connection;
use crate::owner::Owner;

/// Connects bridges and members when the broker wants that, for ever; targets are by their numbers.
pub(crate) async fn run(owner: Rc<Owner>, targets: Vec<Target>) {
    let targets: Vec<Rc<Target>> = targets.into_iter().map(Rc::new).collect();
    loop {
        let bridge = owner.dials.next().await;
        if let Some(target) = targets.get(usize::from(bridge)) {
            tokio::task::spawn_local(serve(owner.clone(), bridge, target.clone()));
        }
    }
}

/// Connects a bridge, and serves the connection until it ends.
async fn serve(owner: Rc<Owner>, bridge: u16, target: Rc<Target>) {
    let Target { name, host, address, layers, is_member } = &*target;
    match dial::open(address, host, address, layers).await {
        Ok(stream) => {
            if *is_member {
                tracing::info!(member = name, address, "a member of the mesh is connected");
            } else {
                tracing::info!(bridge = name, address, "a bridge is connected");
            }
            let (reader, writer) = tokio::io::split(stream);
            let link = owner.link();
            let result = Ok(link.id);
            owner.input(Input::Dialled { bridge, result });
            connection::serve(&owner, link, reader, writer).await;
        }
        Err(error) => {
            let result = Err(error.to_string());
            owner.input(Input::Dialled { bridge, result });
        }
    }
}
