//! The workload `command`: any commands on hosts, at their times.

use std::ffi::OsString;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use record::net::NetCheck;

use super::{Begun, Ground, Outcome, Program, Workload};

/// A command on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCommand {
    /// The host, by its place.
    pub host: usize,
    /// When it starts, since the beginning.
    pub at: Duration,
    /// The program and its arguments.
    pub command: Vec<OsString>,
}

/// See the module.
pub(in crate::net) struct Commands<'a> {
    commands: &'a [HostCommand],
    /// How each that has ended ended: its exit status, none for a signal.
    statuses: Mutex<Vec<Option<i32>>>,
}

impl<'a> Commands<'a> {
    /// Commands in order of time, with the input and output of this program.
    pub(in crate::net) fn new(commands: &'a [HostCommand]) -> Self {
        Self { commands, statuses: Mutex::new(vec![None; commands.len()]) }
    }

    /// The first exit status that is not 0; 0 where all are.
    pub(in crate::net) fn status(&self) -> i32 {
        let statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        statuses.iter().map(|status| status.unwrap_or(-1)).find(|one| *one != 0).unwrap_or(0)
    }
}

impl Workload for Commands<'_> {
    fn programs(&self, _ground: &Ground<'_>) -> Result<Vec<Program>, String> {
        Ok(Vec::new())
    }

    fn times(&self) -> Vec<Duration> {
        self.commands.iter().map(|command| command.at).collect()
    }

    fn ends_with_its_acts(&self) -> bool {
        true
    }

    fn act(&self, ground: &Ground<'_>, number: usize) -> Result<(), String> {
        let HostCommand { host, command, .. } =
            self.commands.get(number).ok_or("no such command")?;
        let (program, arguments) = command.split_first().ok_or("an empty command")?;
        let entered = ground.topology.command(*host, ground.program, program);
        let mut entered = entered.map_err(|error| error.to_string())?;
        let status = entered.args(arguments).stdin(Stdio::null()).status();
        let status = status.map_err(|error| format!("cannot start it: {error}"))?;
        let mut statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = statuses.get_mut(number) {
            *slot = status.code();
        }
        match status.success() {
            true => Ok(()),
            false => Err(format!("it ends with {status}")),
        }
    }

    fn collect(
        &self,
        _ground: &Ground<'_>,
        _begun: &Begun,
        failed: &[(usize, String)],
    ) -> Result<Outcome, String> {
        let check = |(number, one): (usize, &HostCommand)| {
            let why = failed.iter().find(|(at, _)| *at == number).map(|(_, why)| why.clone());
            NetCheck {
                name: format!("command {} ends well", one.command[0].to_string_lossy()),
                holds: why.is_none(),
                found: why.unwrap_or_else(|| "exit status 0".to_owned()),
            }
        };
        let checks = self.commands.iter().enumerate().map(check).collect();
        Ok(Outcome { messages: Vec::new(), checks })
    }
}
