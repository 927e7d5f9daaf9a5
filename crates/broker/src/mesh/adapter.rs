//! The mesh at work in a broker: what clients do goes into the machine, and what comes out of it is
//! done by the core.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;

use super::machine::{Input, MemberStatus, Mesh, Output, Progress, Settings};
use crate::adapter::Adapter;
use crate::core::{self, Toward};
use crate::event::Event;
use crate::ids::{ClientKey, ConnectionId, Protocol, SessionId, Ticket};
use crate::outputs::Context;
use crate::publication::Publication;
use crate::refusal::Refusal;

/// See the module.
#[derive(Debug)]
pub(crate) struct Adapted {
    mesh: Mesh,
    /// The number by which the shell knows the first member that is dialled.
    first: u16,
    is_restored: bool,
    keeps: u64,
    /// Tickets, and how many records are written with each.
    // bound: one for each batch that is collected or written, of which there are two.
    tickets: VecDeque<(Ticket, u64)>,
}

impl Adapted {
    /// A member whose others the shell numbers from a number on.
    pub(crate) fn new(settings: Settings, first: u16) -> Self {
        let mesh = Mesh::new(settings);
        Self { mesh, first, is_restored: false, keeps: 0, tickets: VecDeque::new() }
    }

    /// How it is with the members.
    pub(crate) fn members(&self) -> Vec<MemberStatus> {
        self.mesh.members()
    }

    /// Takes what the store has kept. Returns how many records are not known.
    pub(crate) fn restore(&mut self, context: &mut Context<'_>) -> usize {
        self.is_restored = true;
        let records = context.core.journal.take_kept(Protocol::Mesh);
        let topics: Vec<Arc<str>> = context.core.retained_topics().cloned().collect();
        let retained: Vec<Arc<Publication>> = topics
            .iter()
            .filter_map(|topic| context.core.retained_at(context.now, topic).cloned())
            .collect();
        let unknown = self.mesh.restore(context.now, records, retained);
        self.drain(context);
        unknown
    }

    /// Takes the answer to a dialling, if it is one of a member.
    pub(crate) fn dialled(
        &mut self,
        context: &mut Context<'_>,
        number: u16,
        result: Result<ConnectionId, String>,
    ) {
        let member = usize::from(number.saturating_sub(self.first));
        self.run(context, Input::Dialled { member, result });
    }

    /// What clients have done since the last time; whether there was anything.
    pub(crate) fn step(&mut self, context: &mut Context<'_>) -> bool {
        if !self.is_restored {
            self.restore(context);
        }
        let mut was_any = false;
        while let Some(seen) = core::seen(context.core) {
            was_any = true;
            let input = match seen {
                core::Seen::Published(publication) => Input::Published(publication),
                core::Seen::Wanted(filter) => Input::Wanted(filter),
                core::Seen::Unwanted(filter) => Input::Unwanted(filter),
            };
            self.run(context, input);
        }
        was_any
    }

    fn run(&mut self, context: &mut Context<'_>, input: Input) {
        self.mesh.handle_input(context.now, input);
        self.drain(context);
    }

    fn drain(&mut self, context: &mut Context<'_>) {
        loop {
            let before = self.keeps;
            while let Some(output) = self.mesh.poll_output() {
                self.act(context, output);
            }
            core::set_wanted(context.core, self.mesh.is_wanted());
            if self.keeps == before {
                return;
            }
            if context.core.journal.is_durable() {
                let ticket = context.core.journal.open_ticket();
                match self.tickets.back_mut() {
                    Some((last, keeps)) if *last == ticket => *keeps = self.keeps,
                    _ => self.tickets.push_back((ticket, self.keeps)),
                }
                return;
            }
            self.mesh.handle_input(context.now, Input::Persisted(self.keeps));
        }
    }

    fn act(&mut self, context: &mut Context<'_>, output: Output) {
        match output {
            Output::Dial(member) => {
                let member = u16::try_from(member).unwrap_or(u16::MAX);
                context.outputs.dial(self.first.saturating_add(member));
            }
            Output::Send(id, bytes) => {
                if let Some(out) = context.outputs.writer(id) {
                    out.extend_from_slice(&bytes);
                }
            }
            Output::Close(id) => context.outputs.close(id),
            Output::Deliver(publication) => deliver(context, *publication),
            Output::Keep(key, value) => {
                self.keeps += 1;
                context.core.journal.keep(Protocol::Mesh, key.into(), value);
            }
            Output::Refused(connection, why) => refused(context, connection, why),
            Output::Progressed(publication, member, progress) => {
                let client = ClientKey { protocol: Protocol::Mesh, name: member };
                let toward = match progress {
                    Progress::Waits => Toward::Waits,
                    Progress::Sent => Toward::Given,
                    Progress::Acknowledged => Toward::Acknowledged,
                    Progress::Dropped(why) => Toward::Dropped(why),
                };
                core::tell_toward(context.core, &publication, &client, toward);
            }
        }
    }
}

/// Where there is no room to retain it, those that have subscribed get it all the same.
fn deliver(context: &mut Context<'_>, publication: Publication) {
    let topic = publication.topic.clone();
    let fleeting = publication.retain.then(|| publication.clone());
    let Err(refusal) = core::publish_of_mesh(context.core, context.now, publication) else {
        return;
    };
    refused(context, None, format!("{topic} of another member is not taken: {refusal}"));
    let is_full = matches!(refusal, Refusal::Quota { .. });
    if let Some(mut publication) = fleeting.filter(|_| is_full) {
        publication.retain = false;
        if let Err(refusal) = core::publish_of_mesh(context.core, context.now, publication) {
            refused(context, None, format!("{topic} of another member is not given: {refusal}"));
        }
    }
}

fn refused(context: &mut Context<'_>, connection: Option<ConnectionId>, why: String) {
    context.core.tell(Event::Refused { protocol: Protocol::Mesh, connection, why });
}

impl Adapter for Adapted {
    fn connected(&mut self, context: &mut Context<'_>, id: ConnectionId, _: Option<Arc<str>>) {
        self.run(context, Input::Connected(id));
    }

    fn received(&mut self, context: &mut Context<'_>, id: ConnectionId, bytes: BytesMut) {
        self.run(context, Input::Received(id, bytes.freeze()));
    }

    fn known(&mut self, _: &mut Context<'_>, _: ConnectionId, _: Result<Option<Arc<str>>, ()>) {
        // Members know each other by their keys.
    }

    fn deliver(&mut self, _: &mut Context<'_>, _: SessionId, _: ConnectionId) {
        // Members have no sessions.
    }

    fn writable(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        self.run(context, Input::Writable(id));
    }

    fn lost(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        self.run(context, Input::Lost(id));
    }

    fn committed(&mut self, context: &mut Context<'_>) {
        let done = context.core.journal.done();
        let mut written = None;
        while let Some((ticket, keeps)) = self.tickets.front().copied() {
            if ticket > done {
                break;
            }
            self.tickets.pop_front();
            written = Some(keeps);
        }
        if let Some(keeps) = written {
            self.run(context, Input::Persisted(keeps));
        }
    }

    fn wake(&mut self, context: &mut Context<'_>) {
        self.run(context, Input::Wake);
    }

    fn wake_at(&self) -> Option<Duration> {
        self.mesh.wake_at()
    }

    fn close(&mut self, context: &mut Context<'_>) {
        self.run(context, Input::Close);
    }
}
