//! A node as its disk has it.

use std::time::Duration;

use super::{Change, Deferred, Machine, Outgoing, Stage};

impl Machine {
    /// Takes over what the disk has, as the changes that lead to it; called once, before any input.
    /// All that waited is sent with the first input.
    pub fn restore(&mut self, now: Duration, changes: impl IntoIterator<Item = Change>) {
        for change in changes {
            self.apply_change(now, change);
        }
        self.inbox.tell(self.last_number);
        let entries: Vec<(u64, Duration)> =
            self.outbox.iter().map(|entry| (entry.number, entry.message.deadline())).collect();
        for (number, deadline) in entries {
            if deadline <= now {
                // What is over by now is seen when this is due.
                self.outbox.alarm(number, deadline);
            } else {
                self.arm(now, number);
            }
            self.journal.after(Deferred::Send(number));
        }
        let reports: Vec<u64> = self.reports.numbers().collect();
        for number in reports {
            self.journal.after(Deferred::Report(number));
        }
    }

    fn apply_change(&mut self, now: Duration, change: Change) {
        match change {
            Change::Inbox(entry) => {
                self.last_number = self.last_number.max(entry.number);
                self.inbox.insert(entry);
            }
            Change::InboxRemoved { number } => drop(self.inbox.remove(number)),
            Change::Outgoing { number, accepted, message, hops } => {
                self.last_number = self.last_number.max(number);
                let ms = u64::try_from(accepted.as_millis()).unwrap_or(0);
                // Ids made in one millisecond are ahead of it by as many as there were.
                let made = message.id.rsplit_once('-').and_then(|(_, digits)| {
                    u64::from_str_radix(digits, 36).ok().filter(|made| *made < ms + 86_400_000)
                });
                self.last_name = self.last_name.max(made.unwrap_or(ms));
                let resend = self.settings.resend;
                self.outbox.insert(Outgoing::new(number, accepted, message, hops, resend));
            }
            Change::Recipient { number, node, mut progress } => {
                if matches!(progress.stage, Stage::Forwarded | Stage::Failed) {
                    // The clock was ahead: it is not sent again later for that.
                    progress.at = progress.at.min(now);
                }
                self.outbox.put(number, &node, progress);
            }
            Change::OutgoingRemoved { number } => drop(self.outbox.remove(number)),
            Change::Receipt { number, returning } => {
                self.last_number = self.last_number.max(number);
                let end = self.settings.end_of(&self.inbox, &returning.receipt);
                self.reports.insert(number, returning, end);
            }
            Change::ReceiptRemoved { number } => drop(self.reports.remove(number)),
            Change::Seen { key, digest, until } => self.inbox.remember(key, digest, until),
            Change::SeenRemoved { key } => self.inbox.forget(&key),
            Change::Given { number, name } => {
                self.last_number = self.last_number.max(number);
                self.kept_number = self.kept_number.max(number);
                self.last_name = self.last_name.max(name);
            }
        }
    }
}
