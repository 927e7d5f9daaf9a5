//! The stream of events of one tab.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::StatusCode;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{Sender, channel};
use web::events::{Event, POINT, frame};

use crate::body::Content;
use crate::hub::Hub;
use crate::problem::{Problem, Result};

/// Most topics of a stream.
const MAX_TOPICS: usize = 16;
/// Frames that wait for a slow reader; what it misses then it is told of.
const FRAMES: usize = 4;
/// A line without meaning, after which a connection that is no more is found.
const ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// What a stream is asked for.
pub(crate) struct Wanted {
    pub(crate) topics: Vec<String>,
    /// At least so long from one event of a kind and topic to the next.
    pub(crate) interval: Duration,
    /// The last event that the reader has.
    pub(crate) last: Option<u64>,
}

impl Wanted {
    /// Reads the query, and what a browser says when it comes back.
    pub(crate) fn read(query: &[(String, String)], last: Option<&str>) -> Result<Self> {
        let topics = web::page::parameter(query, "topics").unwrap_or_default();
        let topics: Vec<String> = topics.split(',').map(str::to_string).collect();
        let is_known = |topic: &String| {
            topic.split_once(':').is_some_and(|(kind, name)| {
                matches!(kind, "link" | "run") && !name.is_empty() && name.len() <= 64
            })
        };
        if topics.len() > MAX_TOPICS || !topics.iter().all(is_known) {
            return Err(Problem::refused(format!(
                "topics are refused: give 1 to {MAX_TOPICS} like link:NAME, with commas"
            )));
        }
        let hz = web::page::parameter(query, "hz").map_or(Some(5.0), |text| text.parse().ok());
        let hz = hz
            .filter(|hz: &f64| (0.2..=10.0).contains(hz))
            .ok_or_else(|| Problem::refused("hz is refused: give a number from 0.2 to 10"))?;
        // A little less, since events come in steps of their own.
        let interval = Duration::from_secs_f64(0.9 / hz);
        Ok(Self { topics, interval, last: last.and_then(|id| id.parse().ok()) })
    }
}

/// Starts a stream, which gives back its seat at its end; `look` begins to look at a topic that
/// nobody follows yet.
pub(crate) fn start(
    hub: &Arc<Hub>,
    wanted: Wanted,
    seat: OwnedSemaphorePermit,
    look: impl Fn(&str),
) -> Content {
    let (sender, receiver) = channel(FRAMES);
    let followers: Vec<_> = wanted
        .topics
        .iter()
        .map(|topic| {
            let (follower, is_first) = hub.follow(topic);
            if is_first {
                look(topic);
            }
            follower
        })
        .collect();
    let hub = Arc::clone(hub);
    tokio::spawn(async move {
        // Ends when the reader is gone.
        let _ = tell(&hub, &wanted, &sender).await;
        drop((followers, seat));
    });
    Content::Stream(receiver)
}

/// The reader is gone.
struct Gone;

async fn tell(hub: &Hub, wanted: &Wanted, sender: &Sender<Bytes>) -> std::result::Result<(), Gone> {
    let mut news = hub.news();
    let mut sent_at: BTreeMap<(String, &'static str), Instant> = BTreeMap::new();
    let known = wanted.last.and_then(|last| hub.after(last, &wanted.topics).map(|_| last));
    let mut last = match known {
        Some(last) => last,
        None => snapshot(hub, wanted, sender).await?,
    };
    loop {
        let new = match hub.after(last, &wanted.topics) {
            Some((now, new)) => {
                // What was of other topics is not missed either.
                last = now;
                new
            }
            None => {
                send(sender, frame(last, "lagged", "{}")).await?;
                last = snapshot(hub, wanted, sender).await?;
                Vec::new()
            }
        };
        for event in new {
            if is_due(&event, wanted.interval, &mut sent_at) {
                send(sender, frame(event.id, event.kind, &event.data)).await?;
            }
        }
        match tokio::time::timeout(ALIVE_INTERVAL, news.changed()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(Gone),
            Err(_) => send(sender, ": still here\n\n".to_string()).await?,
        }
        if sender.is_closed() {
            return Err(Gone);
        }
    }
}

/// Points of charts are thinned; all else is told.
fn is_due(
    event: &Event,
    interval: Duration,
    sent_at: &mut BTreeMap<(String, &'static str), Instant>,
) -> bool {
    if event.kind != POINT {
        return true;
    }
    let now = Instant::now();
    let key = (event.topic.clone(), event.kind);
    let is_due = sent_at.get(&key).is_none_or(|at| now.duration_since(*at) >= interval);
    if is_due {
        sent_at.insert(key, now);
    }
    is_due
}

async fn snapshot(
    hub: &Hub,
    wanted: &Wanted,
    sender: &Sender<Bytes>,
) -> std::result::Result<u64, Gone> {
    let (last, topics) = hub.snapshot(&wanted.topics);
    for topic in topics {
        send(sender, frame(last, "snapshot", &topic.to_string())).await?;
    }
    Ok(last)
}

async fn send(sender: &Sender<Bytes>, frame: String) -> std::result::Result<(), Gone> {
    sender.send(Bytes::from(frame)).await.map_err(|_| Gone)
}

/// What a browser gets that opens too many streams.
pub(crate) fn too_many() -> Problem {
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "too many streams are open: close some tabs of this interface",
    )
}
