//! What a server notifies of, as a body of events (RFC 7641, WHATWG HTML §9.2).
//!
//! Who reads slowly gets the newest state, not all that were: that is what an observation promises
//! (RFC 7641 §1.3), and it bounds what waits. Nobody reads any more when the body is dropped: then
//! the observation is forgotten, and the server learns it from a reset at its next notification
//! (RFC 7641 §3.6).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use proto::coap::{Code, Content, option};
use tokio::sync::watch;

use super::Answered;
use crate::coap::caller::{Call, Caller, Event};
use crate::coap::events;
use crate::coap::shares::SharePlace;
use crate::flow::BoxError;

/// What the server said last.
#[derive(Clone, Debug)]
enum Note {
    /// A state, and whether none follows.
    State(Content, bool),
    /// It says nothing more, and nobody knows whether there would have been more.
    Broken(String),
}

impl Note {
    fn is_last(&self) -> bool {
        !matches!(self, Self::State(_, false))
    }
}

type Notes = watch::Receiver<Note>;
/// What comes next, with the receiver for what comes then.
type Next = Pin<Box<dyn Future<Output = (Notes, Option<Note>)> + Send>>;

/// See the module.
pub(super) struct Observed {
    next: Option<Next>,
}

impl Observed {
    /// From the first answer on.
    pub(super) fn begin(answered: Answered, place: SharePlace) -> Self {
        let Answered { content, is_last, call, caller } = answered;
        let (sender, notes) = watch::channel(Note::State(content, is_last));
        if !is_last {
            tokio::spawn(follow(call, (caller, place), sender));
        }
        let next: Next = Box::pin(async move {
            let first = notes.borrow().clone();
            (notes, Some(first))
        });
        Self { next: Some(next) }
    }
}

/// Takes notifications until the last, or until nobody wants them. What is held is held so long.
async fn follow(mut call: Call, _held: (Arc<Caller>, SharePlace), notes: watch::Sender<Note>) {
    loop {
        let note = tokio::select! {
            () = notes.closed() => return,
            event = call.next() => match event {
                Some(Event::Response(content, is_last)) => Note::State(content, is_last),
                Some(Event::Failed(failure)) => Note::Broken(failure.why()),
                Some(Event::Alive | Event::Part(..) | Event::Room(_)) | None => {
                    Note::Broken("its socket is closed".to_owned())
                }
            },
        };
        let is_last = note.is_last();
        notes.send_replace(note);
        if is_last {
            return;
        }
    }
}

async fn after(mut notes: Notes) -> (Notes, Option<Note>) {
    let note = match notes.changed().await {
        Ok(()) => Some(notes.borrow_and_update().clone()),
        Err(_) => None,
    };
    (notes, note)
}

impl Body for Observed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            let Some(next) = &mut self.next else { return Poll::Ready(None) };
            let (notes, note) = ready!(next.as_mut().poll(cx));
            self.next = None;
            let broken = |why: String| {
                let error = format!("the observation broke off: {why}");
                Poll::Ready(Some(Err(error.into())))
            };
            let (content, is_last) = match note {
                Some(Note::State(content, is_last)) => (content, is_last),
                Some(Note::Broken(why)) => return broken(why),
                None => return broken("its task has ended".to_owned()),
            };
            if !is_last {
                self.next = Some(Box::pin(after(notes)));
            }
            let mut text = String::new();
            if is_last && content.code.is_success() {
                // Whoever wants the next state asks for it when this one is old.
                let age_s = content.uint(option::MAX_AGE).unwrap_or(option::DEFAULT_AGE_S);
                proto::events::write_retry(u64::from(age_s.max(1)) * 1000, &mut text);
            }
            // What the client has already is no event.
            if content.code != Code::VALID {
                events::of(&content).write(&mut text);
            } else if !text.is_empty() {
                text.push('\n');
            }
            if !text.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(text.into()))));
            }
        }
    }
}
