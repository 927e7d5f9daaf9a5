//! A client that fetches a list of things one after another and times each.
//!
//! It asks as ordinary HTTP clients do: one connection kept alive and opened anew when the server
//! has closed it, or one per exchange. Nothing that happens is left out of the result.

mod connection;
mod content;
mod session;
mod target;
#[cfg(test)]
mod tests;
mod url;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use record::result::{Exchange, Fetch, Summary};
use tokio::time::Instant;

pub use target::Target;
pub use url::plan as url_plan;

use crate::{Error, processor};
use session::Session;

/// How to ask.
#[derive(Clone, Debug)]
pub struct Config {
    /// HTTP forward proxy.
    pub proxy: Option<Target>,
    /// Offer `Accept-Encoding: gzip`.
    pub gzip: bool,
    /// A connection of its own for each exchange.
    pub new_connection: bool,
    /// How many things of the plan the pass that warms up asks for: the first ones; all when none.
    pub warm_up: Option<usize>,
    /// Longest that one exchange may take.
    pub timeout: Duration,
    /// Longest that everything may take, the warm-up included; no limit when none.
    pub budget: Option<Duration>,
    /// TCP congestion control; the system's own when none.
    pub congestion: Option<String>,
}

/// What to ask for, in order.
pub struct Plan {
    /// The service, as the report names it.
    pub url: String,
    /// The kind of interface, as the report names it.
    pub api: String,
    /// The things.
    pub items: Vec<Item>,
}

/// Says in one line what is wrong with an answer, if anything is.
pub type Check = Box<dyn Fn(&Answer) -> Result<(), String> + Send + Sync>;

/// One thing to ask for.
pub struct Item {
    /// As a person would name it.
    pub name: String,
    /// HTTP method.
    pub method: Method,
    /// URL.
    pub target: Target,
    /// Fields beyond those that every request has (`Host`, `User-Agent`, `Accept-Encoding`).
    pub headers: HeaderMap,
    /// Content to send.
    pub body: Bytes,
    /// Keep the content for `check`; else it is only counted.
    pub keep: bool,
    /// What makes an answer a good one.
    pub check: Check,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// Status.
    pub status: StatusCode,
    /// Fields.
    pub headers: HeaderMap,
    /// Content without its content coding; empty when it is only counted.
    pub content: Vec<u8>,
}

/// What is being asked for, told before each exchange.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Name of the thing.
    pub name: &'a str,
    /// How many exchanges are done, of both passes.
    pub done: usize,
    /// How many there will be.
    pub total: usize,
    /// In the pass that does not count.
    pub warm_up: bool,
}

/// Fetches the first things of the plan to warm up, then everything measured.
///
/// An exchange that a limit of time cuts off is recorded as censored with the time it had; those
/// never begun because the budget was spent are recorded as censored with an elapsed time of 0.
/// Failures are recorded too: they are results.
///
/// # Errors
/// [`Error::Caller`] when the congestion control cannot be set or the warm-up be longer than the
/// plan.
pub async fn fetch(
    plan: &Plan,
    config: &Config,
    mut progress: impl FnMut(Progress<'_>),
) -> Result<Fetch, Error> {
    if let Some(name) = &config.congestion {
        connection::try_congestion(name)?;
    }
    let warm_up_count = config.warm_up.unwrap_or(plan.items.len());
    let Some(warm_up) = plan.items.get(..warm_up_count) else {
        let count = plan.items.len();
        let line = format!("a warm-up of {warm_up_count} exchanges; choose one from 0 to {count}");
        return Err(Error::Caller(line));
    };
    let (waited_before, started_monotonic_s) = (processor::wait_s(), processor::monotonic_s());
    let start = Instant::now();
    let budget_end = config.budget.map(|budget| start + budget);
    let mut session = Session::new(config, start, budget_end);
    let total = warm_up_count + plan.items.len();
    let mut passed: Vec<Exchange> = Vec::with_capacity(total);
    for item in warm_up.iter().chain(&plan.items) {
        let (name, done) = (&item.name, passed.len());
        progress(Progress { name, done, total, warm_up: done < warm_up_count });
        passed.push(session.exchange(item).await);
    }
    let measured = passed.split_off(warm_up_count);
    let seconds = |exchange: &Exchange| exchange.succeeded().then_some(exchange.elapsed_s);
    let seconds: Vec<f64> = measured.iter().filter_map(seconds).collect();
    let (congestion_control, retransmits) = session.finish();
    let waited = waited_before.zip(processor::wait_s());
    Ok(Fetch {
        url: plan.url.clone(),
        api: plan.api.clone(),
        proxy: config.proxy.as_ref().map(ToString::to_string),
        gzip: config.gzip,
        new_connection: config.new_connection,
        congestion_control,
        started_monotonic_s,
        processor_wait_s: waited.map(|(before, after)| (after - before).max(0.0)),
        retransmits,
        warm_up: passed,
        summary: Summary::of(&seconds),
        errors: measured.iter().filter(|exchange| exchange.error.is_some()).count(),
        censored: measured.iter().filter(|exchange| exchange.censored).count(),
        measured,
    })
}

/// Asks for one thing after another, each made when its turn comes.
pub struct Asking<'a>(Session<'a>);

impl<'a> Asking<'a> {
    /// Begins; of `config` the warm-up and the budget have no meaning here.
    ///
    /// # Errors
    /// [`Error::Caller`] when the congestion control cannot be set.
    pub fn new(config: &'a Config) -> Result<Self, Error> {
        if let Some(name) = &config.congestion {
            connection::try_congestion(name)?;
        }
        Ok(Self(Session::new(config, Instant::now(), None)))
    }

    /// Asks, and says what came of it: a failure is a result.
    pub async fn ask(&mut self, item: &Item) -> Exchange {
        self.0.exchange(item).await
    }
}
