//! Messages and receipts of other nodes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::inbox::Known;
use super::reports;
use super::submitting::other_message;
use super::ways::MAX_AHEAD;
use super::{Change, Deferred, Event, Key, Machine, Progress, Stage, Which};
use crate::messaging::message::{MAX_RECIPIENTS, Message, Transfer, Wanted};
use crate::messaging::receipt::{MAX_REASON_BYTES, Outcome, Receipt, Returning};
use crate::messaging::refusal::{Reason, Refusal, shown};
use crate::messaging::signing::digest;

/// Most recipients of one message that cannot be served and are reported one by one.
const MAX_LOST: usize = 16;

/// What becomes of a message that came.
struct Plan {
    /// This node is a recipient, and had the message before or not.
    is_for_self: bool,
    was_here: bool,
    /// Those that it goes on to.
    onward: Vec<Arc<str>>,
    /// Those that it cannot go to, and why.
    lost: BTreeMap<Arc<str>, Refusal>,
}

impl Machine {
    pub(super) fn receive(&mut self, now: Duration, transfer: Transfer) -> Result<(), Refusal> {
        let Transfer { message, hops, recipients } = transfer;
        self.settings.check_way("message", &message.id, &message.originator, &hops)?;
        self.settings.keys.check_message(&message)?;
        self.settings.check_time(now, &message)?;
        let known = self.outbox.find(&Key::from(&*message));
        let is_relayed = known.is_some();
        if known.is_some_and(|known| known.message != message) {
            return Err(other_message(&message.id));
        }
        let plan = self.plan(&message, &hops, &recipients)?;
        let is_new_here = plan.is_for_self && !plan.was_here;
        let room = match is_new_here {
            true => self.make_room_in_inbox(now, &message.originator),
            false => Ok(()),
        };
        if room.is_err() && plan.onward.is_empty() {
            return room;
        }
        if !plan.onward.is_empty() && !is_relayed {
            self.make_room_in_outbox()?;
        }
        if let Err(refusal) = room {
            // The others have room perhaps: the node before comes again for this one alone.
            self.pass_on(now, &message, hops, &plan.onward);
            return Err(refusal);
        }
        if is_new_here {
            self.keep(now, &message);
        }
        // Of a node that has it from the originator itself the answer is the receipt.
        if plan.is_for_self && !hops.is_empty() && message.receipt != Wanted::Nothing {
            let node = self.settings.node.clone();
            self.report(now, &message, &node, Outcome::Delivered, None);
        }
        self.pass_on(now, &message, hops, &plan.onward);
        // With keys its way is what whoever gave it says, which is signed by nobody: by a report
        // this node would bear it out.
        let has_keys = self.settings.keys.is_needed();
        let is_reported = |refusal: &Refusal| !has_keys || refusal.reason != Reason::Loop;
        let lost = plan.lost.into_iter().filter(|(_, refusal)| is_reported(refusal));
        for (node, refusal) in lost.take(MAX_LOST) {
            self.report(now, &message, &node, Outcome::Failed, Some(refusal.line));
        }
        Ok(())
    }

    fn plan(
        &self,
        message: &Message,
        hops: &[String],
        recipients: &[String],
    ) -> Result<Plan, Refusal> {
        let node = &self.settings.node;
        let mut plan = Plan {
            is_for_self: recipients.is_empty(),
            was_here: false,
            onward: Vec::new(),
            lost: BTreeMap::new(),
        };
        if recipients.len() > MAX_RECIPIENTS {
            let line = format!("over the limit of {MAX_RECIPIENTS} recipients");
            return Err(Refusal::new(Reason::TooLarge, line));
        }
        for recipient in recipients {
            if **recipient == **node {
                plan.is_for_self = true;
                continue;
            }
            match self.settings.onward(message, hops, recipient) {
                Ok(name) => plan.onward.push(name),
                Err(refusal) => drop(plan.lost.insert(recipient.as_str().into(), refusal)),
            }
        }
        if plan.is_for_self
            && let Err(refusal) = self.settings.check_addressed(message, node)
        {
            plan.is_for_self = false;
            plan.lost.insert(node.clone(), refusal);
        }
        if !plan.is_for_self && plan.onward.is_empty() {
            // Nobody can be served: the node before says so, of all at once.
            let nobody = || Refusal::malformed("nobody is named that it is for");
            return Err(plan.lost.into_values().next().unwrap_or_else(nobody));
        }
        if plan.is_for_self {
            let is_same = match self.inbox.known(&Key::from(message)) {
                Some(Known::Here(known)) => *known.message == *message,
                Some(Known::Gone(known)) => *known == digest(message),
                None => return Ok(plan),
            };
            if !is_same {
                return Err(other_message(&message.id));
            }
            plan.was_here = true;
        }
        Ok(plan)
    }

    /// Sends a message on to recipients; those that have it are sent it again, as the originator
    /// has heard nothing of them.
    fn pass_on(
        &mut self,
        now: Duration,
        message: &Arc<Message>,
        hops: Vec<String>,
        onward: &[Arc<str>],
    ) {
        if onward.is_empty() {
            return;
        }
        let number = match self.outbox.find(&Key::from(&**message)) {
            Some(known) => known.number,
            None => {
                let number = self.number();
                self.insert_outgoing(now, number, message, hops);
                number
            }
        };
        for recipient in onward {
            let known = self.outbox.get(number).and_then(|entry| entry.recipients.get(recipient));
            if known.is_none_or(|progress| progress.stage != Stage::Waiting) {
                self.put_progress(number, recipient, Progress::new(Stage::Waiting, now));
            }
        }
        self.journal.after(Deferred::Send(number));
    }

    /// Tells the originator of a message what became of it with a recipient.
    pub(super) fn report(
        &mut self,
        now: Duration,
        message: &Message,
        recipient: &Arc<str>,
        outcome: Outcome,
        reason: Option<String>,
    ) {
        if message.originator == self.settings.node {
            return;
        }
        let mut reason = reason;
        if let Some(reason) = &mut reason {
            let end = (0..=reason.len().min(MAX_REASON_BYTES)).rev();
            reason.truncate(end.into_iter().find(|&at| reason.is_char_boundary(at)).unwrap_or(0));
        }
        let mut receipt = Receipt {
            message: message.id.clone(),
            originator: message.originator.clone(),
            addressee: recipient.clone(),
            outcome,
            time: Duration::from_millis(u64::try_from(now.as_millis()).unwrap_or(u64::MAX)),
            reporter: self.settings.node.clone(),
            reason,
            precedence: message.precedence,
            code: None,
        };
        if self.settings.keys.is_needed() {
            receipt.code = self.settings.keys.sign_receipt(&receipt);
        }
        // Without room the originator asks again.
        let _ = self.keep_report(Returning { receipt: Arc::new(receipt), hops: Vec::new() });
    }

    /// Keeps a receipt to be sent.
    fn keep_report(&mut self, returning: Returning) -> Result<(), Refusal> {
        let originator = &returning.receipt.originator;
        let is_routed = self.settings.routes.contains_key(originator);
        if !is_routed || self.reports.has(&returning.receipt) {
            return Ok(());
        }
        self.reports.check_room(&self.settings.node, originator)?;
        let number = self.number();
        self.journal.change(Change::Receipt { number, returning: returning.clone() });
        let end = self.settings.end_of(&self.inbox, &returning.receipt);
        self.reports.insert(number, returning, end);
        self.journal.after(Deferred::Report(number));
        Ok(())
    }

    pub(super) fn receive_receipt(
        &mut self,
        now: Duration,
        returning: Returning,
    ) -> Result<(), Refusal> {
        let Returning { receipt, hops } = &returning;
        self.settings.check_way(
            "the receipt of message",
            &receipt.message,
            &receipt.reporter,
            hops,
        )?;
        self.settings.keys.check_receipt(receipt)?;
        let is_over = reports::end(receipt) <= now;
        if is_over || receipt.time > now + MAX_AHEAD {
            let line = format!(
                "the receipt of message '{}' is of {}, and it is {}: too far from now",
                shown(&receipt.message),
                crate::messaging::time::format(receipt.time),
                crate::messaging::time::format(now)
            );
            // By then a clock is right again: the node before keeps it.
            let reason = if is_over { Reason::Expired } else { Reason::Early };
            return Err(Refusal::new(reason, line));
        }
        if receipt.originator == self.settings.node {
            return self.apply(now, receipt);
        }
        match self.settings.routes.get(&receipt.originator) {
            None => Err(self.settings.unknown(&receipt.originator)),
            Some(next) if self.settings.was_at(next, &receipt.reporter, hops) => {
                let line = format!("the receipt would go back to '{next}': a loop; correct via");
                Err(Refusal::new(Reason::Loop, line))
            }
            Some(_) => self.keep_report(returning),
        }
    }

    /// A receipt of one of this node's messages.
    fn apply(&mut self, now: Duration, receipt: &Receipt) -> Result<(), Refusal> {
        let (id, node) = (shown(&receipt.message), shown(&receipt.addressee));
        let Some(entry) = self.find_outgoing(&receipt.message) else {
            let line = format!("no message '{id}' of node '{}' is known", self.settings.node);
            return Err(Refusal::new(Reason::Unknown, line));
        };
        let number = entry.number;
        let Some((recipient, before)) = entry.recipients.get_key_value(&receipt.addressee) else {
            let line = format!("message '{id}' was not for '{node}'");
            return Err(Refusal::new(Reason::Unknown, line));
        };
        let recipient = recipient.clone();
        let (stage, at) = match (receipt.outcome, before.stage) {
            (Outcome::Delivered, Stage::Delivered | Stage::Read) => return Ok(()),
            (Outcome::Read, Stage::Read) => return Ok(()),
            (Outcome::Failed, stage) => {
                self.settings.check_failure(receipt)?;
                // Of what is not on its way no other node has anything to say.
                let is_by_other = receipt.reporter != recipient;
                let is_open = matches!(stage, Stage::Waiting | Stage::Forwarded);
                if !is_open || is_by_other && stage != Stage::Forwarded {
                    return Ok(());
                }
                // By this node's clock it is sent again.
                (Stage::Failed, now)
            }
            (Outcome::Delivered, _) => (Stage::Delivered, receipt.time),
            (Outcome::Read, _) => (Stage::Read, receipt.time),
        };
        self.put_progress(
            number,
            &recipient,
            Progress { stage, at, reason: receipt.reason.clone() },
        );
        self.arm(now, number);
        Ok(())
    }

    /// Notes how far a message is, on disk too, and tells clients where it is one of theirs.
    pub(super) fn put_progress(&mut self, number: u64, node: &Arc<str>, progress: Progress) {
        if !self.outbox.put(number, node, progress.clone()) {
            return;
        }
        let change = Change::Recipient { number, node: node.clone(), progress: progress.clone() };
        self.journal.change(change);
        let Some(entry) = self.outbox.get(number).filter(|entry| self.settings.is_own(entry))
        else {
            return;
        };
        let id = entry.message.id.clone();
        let event = Event::Progress { id, node: node.clone(), progress };
        self.journal.after(Deferred::Event(event));
    }

    pub(super) fn mark_read(&mut self, now: Duration, which: &Which) -> Result<(), Refusal> {
        let mut entry = self.settings.find(&self.inbox, which)?.clone();
        if entry.read.is_some() {
            return Ok(());
        }
        entry.read = Some(now);
        let message = entry.message.clone();
        let originator = &message.originator;
        let is_reported =
            message.receipt == Wanted::Read && self.settings.routes.contains_key(originator);
        if is_reported {
            // Nobody asks for it again: without room for it, it is not read yet.
            self.reports.check_room(&self.settings.node, originator)?;
        }
        self.inbox.insert(entry.clone());
        self.journal.change(Change::Inbox(entry));
        if message.receipt == Wanted::Read {
            let node = self.settings.node.clone();
            self.report(now, &message, &node, Outcome::Read, None);
            // It may be one of this node's to itself; another's may have the id of one of its own.
            let own = self.find_outgoing(&message.id).filter(|_| message.originator == node);
            if let Some(number) = own.map(|entry| entry.number) {
                self.put_progress(number, &node, Progress::new(Stage::Read, now));
            }
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, now: Duration, which: &Which) -> Result<(), Refusal> {
        let number = self.settings.find(&self.inbox, which)?.number;
        self.remove_arrived(now, number);
        Ok(())
    }
}
