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
use crate::metrics::Metrics;

/// What the pages are made of.
#[derive(Clone)]
pub(crate) struct Admin {
    pub(crate) metrics: Arc<Metrics>,
    /// None: an edge without a gateway.
    pub(crate) handle: Option<Handle>,
    /// Ready means that a carrier is up (edge); a gateway waits for edges.
    pub(crate) needs_carrier: bool,
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

/// 200 when requests can be served, else 503.
async fn health(State(admin): State<Admin>) -> Response {
    let load = admin.load().await;
    let ready = load.is_some_and(|load| !admin.needs_carrier || load.carriers > 0);
    let load = load.unwrap_or_default();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = serde_json::json!({
        "live": true,
        "ready": ready,
        "carriers": load.carriers,
        "open_exchanges": load.exchanges,
    });
    (status, Json(body)).into_response()
}
