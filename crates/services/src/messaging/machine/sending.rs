//! What goes to other nodes, what comes of it, and what is over.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::attempts::Attempt;
use super::peers::Item;
use super::{Change, Machine, Output, Parcel, Progress, Sent, Stage};
use crate::messaging::message::{Delivery, Wanted};
use crate::messaging::receipt::{Outcome, Receipt, Returning};

/// Shortest time that a request is given.
const MIN_ATTEMPT: Duration = Duration::from_millis(100);
/// Bytes of content in a second of the time that a request is given beyond the usual: what a link
/// of 4.8 kbit/s gives to a request that shares it with some others.
const SLOWEST_BYTES_PER_S: u64 = 128;

impl Machine {
    /// Puts a message into the queues of the nodes that its waiting recipients are reached by.
    pub(super) fn enqueue(&mut self, number: u64) {
        let Some(entry) = self.outbox.get(number) else { return };
        let is_waiting = |progress: &Progress| progress.stage == Stage::Waiting;
        let waiting = entry.recipients.iter().filter(|(_, progress)| is_waiting(progress));
        let next = waiting.filter_map(|(node, _)| self.settings.routes.get(node).cloned());
        let next: BTreeSet<Arc<str>> = next.collect();
        for peer in next {
            self.enqueue_to(number, &peer);
        }
    }

    /// The same of one node.
    fn enqueue_to(&mut self, number: u64, peer: &Arc<str>) {
        let Some(entry) = self.outbox.get(number) else { return };
        // A recipient that is being sent to already comes back into the queue if that fails.
        let is_under_way = self.attempts.is_under_way(number, peer);
        if !is_under_way && self.settings.is_awaited_by(entry, peer) {
            self.peers.push(peer, entry.item());
        }
    }

    pub(super) fn enqueue_report(&mut self, number: u64) {
        let Some(returning) = self.reports.get(number) else { return };
        if let Some(peer) = self.settings.routes.get(&returning.receipt.originator) {
            self.peers.push(peer, item_of(&returning.receipt, number));
        }
    }

    /// Makes requests to all nodes that may get some now.
    pub(super) fn send_ready(&mut self, now: Duration) {
        for peer in self.peers.ready(now) {
            while let Some(item) = self.peers.next(now, &peer) {
                if !self.send(now, &peer, item) {
                    self.peers.release(&peer, &item);
                }
            }
        }
    }

    /// Makes a request; false if there is nothing to send after all.
    fn send(&mut self, now: Duration, peer: &Arc<str>, item: Item) -> bool {
        let number = item.number;
        let (parcel, recipients, deadline) = match self.outbox.get(number) {
            Some(entry) => {
                let round = self.peers.round(peer, number);
                let recipients = part(self.settings.waiting_by(entry, peer), peer, round);
                if recipients.is_empty() {
                    return false;
                }
                let deadline = entry.message.deadline();
                (
                    Parcel::Message(self.settings.transfer(entry, peer, &recipients)),
                    recipients,
                    deadline,
                )
            }
            None => match self.reports.get(number) {
                Some(returning) => {
                    let mut returning = returning.clone();
                    if returning.receipt.reporter != self.settings.node {
                        returning.hops.push(self.settings.node.to_string());
                    }
                    (Parcel::Receipt(returning), Vec::new(), Duration::MAX)
                }
                None => return false,
            },
        };
        let left = deadline.saturating_sub(now).max(MIN_ATTEMPT);
        let within = self.settings.attempt_timeout.saturating_add(extra_time(&parcel)).min(left);
        let attempt = self.attempts.insert(Attempt { peer: peer.clone(), item, recipients });
        self.outputs.push_back(Output::Send { attempt, peer: peer.clone(), parcel, within });
        true
    }

    /// A request has ended.
    pub(super) fn sent(&mut self, now: Duration, attempt: u64, outcome: Sent) {
        let Some(attempt) = self.attempts.remove(attempt) else { return };
        let Attempt { peer, item, .. } = &attempt;
        let number = item.number;
        let is_kept = self.outbox.get(number).is_some() || self.reports.get(number).is_some();
        match outcome {
            Sent::Failed(_) => self.peers.failed(now, peer, item),
            // Nothing is remembered of what is over.
            Sent::NotNow(_) if !is_kept => self.peers.release(peer, item),
            Sent::NotNow(_) => self.peers.missed(now, peer, item),
            Sent::Taken | Sent::Refused(_) | Sent::Loop(_) => self.peers.answered(peer, item),
        }
        if self.reports.get(number).is_some() {
            return match outcome {
                Sent::Failed(_) | Sent::NotNow(_) => self.enqueue_report(number),
                // Who refuses a receipt has no use for it.
                Sent::Taken | Sent::Refused(_) | Sent::Loop(_) => self.remove_report(number),
            };
        }
        let Some(entry) = self.outbox.get(number) else { return };
        let is_reliable = entry.message.delivery == Delivery::Reliable;
        match outcome {
            Sent::Taken => self.taken(now, &attempt),
            Sent::Refused(reason) => self.lost(now, &attempt, &reason, true),
            // Whoever gave it to this node may have invented its way.
            Sent::Loop(reason) => {
                let is_known = !self.settings.keys.is_needed();
                self.lost(now, &attempt, &reason, is_known);
            }
            Sent::Failed(_) | Sent::NotNow(_) if is_reliable => {}
            Sent::Failed(reason) | Sent::NotNow(reason) => {
                let reason = format!("best effort, tried once: {reason}");
                self.lost(now, &attempt, &reason, true);
            }
        }
        // Recipients that still wait, and those that came to it in the meantime.
        self.enqueue_to(number, &attempt.peer);
        self.settle(number);
    }

    fn taken(&mut self, now: Duration, attempt: &Attempt) {
        for recipient in &attempt.recipients {
            let is_there = *recipient == attempt.peer;
            let stage = if is_there { Stage::Delivered } else { Stage::Forwarded };
            let before = self.stage(attempt.item.number, recipient);
            // A receipt may have come by another way in the meantime.
            let is_news = match before {
                Some(Stage::Waiting | Stage::Forwarded) => true,
                Some(Stage::Expired | Stage::Failed) => is_there,
                _ => false,
            };
            if is_news {
                self.put_progress(attempt.item.number, recipient, Progress::new(stage, now));
            }
        }
        self.arm(now, attempt.item.number);
    }

    /// Recipients that a message cannot be delivered to; whether that is reported.
    fn lost(&mut self, now: Duration, attempt: &Attempt, reason: &str, is_reported: bool) {
        let Some(entry) = self.outbox.get(attempt.item.number) else { return };
        let (message, is_own) = (entry.message.clone(), self.settings.is_own(entry));
        for recipient in &attempt.recipients {
            if self.stage(attempt.item.number, recipient) != Some(Stage::Waiting) {
                continue;
            }
            let reason = Some(reason.to_owned());
            let progress = Progress { stage: Stage::Failed, at: now, reason: reason.clone() };
            self.put_progress(attempt.item.number, recipient, progress);
            if is_reported && !is_own && message.receipt != Wanted::Nothing {
                self.report(now, &message, recipient, Outcome::Failed, reason);
            }
        }
        self.arm(now, attempt.item.number);
    }

    fn stage(&self, number: u64, recipient: &Arc<str>) -> Option<Stage> {
        let entry = self.outbox.get(number)?;
        entry.recipients.get(recipient).map(|progress| progress.stage)
    }

    /// Forgets a message of another node once nothing of it waits: should it come again, it is sent
    /// on again, and the recipient has it only once.
    fn settle(&mut self, number: u64) {
        let Some(entry) = self.outbox.get(number) else { return };
        let is_under_way = || self.attempts.is_any_under_way(number);
        if !self.settings.is_own(entry) && !entry.has_waiting() && !is_under_way() {
            self.remove_outgoing(number);
        }
    }

    pub(super) fn remove_outgoing(&mut self, number: u64) {
        if let Some(entry) = self.outbox.remove(number) {
            self.peers.drop_item(entry.item());
            self.journal.change(Change::OutgoingRemoved { number });
        }
    }

    fn remove_report(&mut self, number: u64) {
        if let Some(Returning { receipt, .. }) = self.reports.remove(number) {
            self.peers.drop_item(item_of(&receipt, number));
            self.journal.change(Change::ReceiptRemoved { number });
        }
    }

    /// Sets when something is due about a message of this node: that it is sent again where no
    /// receipt comes or a node on the way has failed, that its validity ends, that it is forgotten.
    pub(super) fn arm(&mut self, now: Duration, number: u64) {
        let Some(entry) = self.outbox.get(number) else { return };
        let deadline = entry.message.deadline();
        let again = entry
            .recipients
            .iter()
            .filter(|(node, progress)| self.settings.is_tried_again(entry, node, progress.stage));
        let at = match again.map(|(_, progress)| progress.at).min() {
            _ if deadline <= now => deadline + self.settings.retention,
            Some(since) => (since + entry.resend).min(deadline),
            None => deadline,
        };
        self.outbox.alarm(number, at);
    }

    /// Does what is due.
    pub(super) fn expire(&mut self, now: Duration) {
        while let Some(number) = self.outbox.next_due(now) {
            self.due(now, number);
        }
        while let Some(number) = self.reports.next_over(now) {
            self.remove_report(number);
        }
        while let Some(key) = self.inbox.next_over(now) {
            self.journal.change(Change::SeenRemoved { key });
        }
    }

    fn due(&mut self, now: Duration, number: u64) {
        let Some(entry) = self.outbox.get(number) else { return };
        let (item, is_own) = (entry.item(), self.settings.is_own(entry));
        let deadline = entry.message.deadline();
        if !is_own && deadline <= now || deadline + self.settings.retention <= now {
            return self.remove_outgoing(number);
        }
        let is_over = deadline <= now;
        let resend = entry.resend;
        let due: Vec<Arc<str>> = entry
            .recipients
            .iter()
            .filter(|(node, progress)| match is_over {
                true => entry.is_open(progress.stage),
                false => {
                    progress.at + resend <= now
                        && self.settings.is_tried_again(entry, node, progress.stage)
                }
            })
            .map(|(node, _)| node.clone())
            .collect();
        for recipient in &due {
            let stage = if is_over { Stage::Expired } else { Stage::Waiting };
            self.put_progress(number, recipient, Progress::new(stage, now));
        }
        if is_over {
            self.peers.drop_item(item);
        } else if !due.is_empty() {
            self.outbox.lengthen(number);
            self.enqueue(number);
        }
        self.arm(now, number);
    }
}

/// Those of the recipients that a request is for. A node that did not take a message for itself and
/// others is given it for the others and for itself in turn: one may be possible without the other.
fn part(mut recipients: Vec<Arc<str>>, peer: &Arc<str>, round: u32) -> Vec<Arc<str>> {
    let is_for_peer = |recipient: &Arc<str>| recipient == peer;
    if round > 0 && recipients.len() > 1 && recipients.iter().any(is_for_peer) {
        recipients.retain(|recipient| is_for_peer(recipient) == round.is_multiple_of(2));
    }
    recipients
}

/// A receipt as something that goes to nodes.
fn item_of(receipt: &Receipt, number: u64) -> Item {
    Item { precedence: receipt.precedence, number, is_once: false }
}

/// What a request is given beyond the usual time, for its content.
fn extra_time(parcel: &Parcel) -> Duration {
    let Parcel::Message(transfer) = parcel else { return Duration::ZERO };
    let bytes = transfer.message.content_bytes();
    Duration::from_secs(u64::try_from(bytes).unwrap_or(u64::MAX) / SLOWEST_BYTES_PER_S)
}
