//! Metrics and health, on a loopback address.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use crate::actor::Handle;
use crate::config::Fallback;
use crate::metrics::Metrics;

/// What the pages are made of.
#[derive(Clone)]
pub(crate) struct Admin {
    pub(crate) metrics: Arc<Metrics>,
    /// None: an edge without a gateway.
    pub(crate) handle: Option<Handle>,
    /// An edge's way while the gateway cannot be reached; none where there is no gateway.
    pub(crate) fallback: Option<Fallback>,
}

/// Serves until dropped.
pub(crate) async fn serve(listener: TcpListener, admin: Admin) -> io::Result<()> {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/health", get(health))
        .route("/health/live", get(|| async { "live\n" }))
        .route("/health/ready", get(health))
        .with_state(admin);
    axum::serve(listener, router).await
}

impl Admin {
    async fn load(&self) -> Option<relay::Load> {
        match &self.handle {
            Some(handle) => handle.load().await,
            None => Some(relay::Load::default()),
        }
    }
}

async fn metrics(State(admin): State<Admin>) -> Response {
    let load = admin.load().await.unwrap_or_default();
    let links = match &admin.handle {
        Some(handle) => handle.links().await,
        None => Vec::new(),
    };
    let text = admin.metrics.render(load, &links);
    ([("content-type", "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// 200 when a request would get through to the other side, else 503 and why not.
async fn health(State(admin): State<Admin>) -> Response {
    let standing = match &admin.handle {
        Some(handle) => handle.standing().await,
        None => Ok(()),
    };
    let load = admin.load().await.unwrap_or_default();
    let status = if standing.is_ok() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut body = serde_json::json!({
        "live": true,
        "ready": standing.is_ok(),
        "carriers": load.carriers,
        "open_exchanges": load.exchanges,
    });
    if let Err(why) = standing {
        body["why"] = why.into();
    }
    if let Some(fallback) = admin.fallback {
        body["fallback"] = fallback.name().into();
    }
    (status, Json(body)).into_response()
}
