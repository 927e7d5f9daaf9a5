//! Faults of ours: a panic in what nobody can be served without ends the process, with a status of
//! its own, so that whoever supervises it starts it again. Half of a side would go on to accept and
//! never answer. A panic elsewhere costs the one exchange, or the one connection, that it was in.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::task::JoinHandle;

/// Exit status of a process that ends over a fault of its own (`EX_SOFTWARE` of sysexits.h).
pub const STATUS: i32 = 70;

thread_local! {
    /// What this thread does, where nobody can be served without it.
    static CORE: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// From here on a panic is told in the log, and ends the process if it is in something that nobody
/// can be served without. `last` is called before the end: it waits for the log.
pub fn end_whole(last: fn()) {
    std::panic::set_hook(Box::new(move |panic| {
        let core = CORE.get();
        tell(panic, core);
        if core.is_some() {
            last();
            std::process::exit(STATUS);
        }
    }));
}

fn tell(panic: &PanicHookInfo<'_>, core: Option<&str>) {
    let why = panic.payload_as_str().unwrap_or("for no reason given").to_owned();
    let place = panic.location().map_or_else(String::new, ToString::to_string);
    match core {
        Some(task) => {
            let left = "a fault of ours ends the process: please report it";
            tracing::error!(task, place, why, status = STATUS, "{left}");
        }
        None => {
            let left = "a fault of ours, contained: please report it";
            tracing::error!(place, why, "{left}");
        }
    }
    // Only where the environment asks for it (RUST_BACKTRACE).
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        tracing::error!("{trace}");
    }
}

/// A task that nobody can be served without.
struct Core<F> {
    name: &'static str,
    task: Pin<Box<F>>,
}

impl<F: Future> Future for Core<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let before = CORE.replace(Some(self.name));
        let polled = self.task.as_mut().poll(cx);
        CORE.set(before);
        polled
    }
}

/// Starts a task that nobody can be served without.
pub(crate) fn spawn_core<F>(name: &'static str, task: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    tokio::spawn(Core { name, task: Box::pin(task) })
}

/// The calling thread is one that nobody can be served without.
pub(crate) fn mark_core_thread(name: &'static str) {
    CORE.set(Some(name));
}

/// Runs what is for one exchange alone; `None` if it panicked.
pub(crate) fn contain<T>(work: impl FnOnce() -> T) -> Option<T> {
    let before = CORE.replace(None);
    let result = catch_unwind(AssertUnwindSafe(work));
    CORE.set(before);
    result.ok()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, ExitStatus};

    use super::*;

    const CASE: &str = "LONGWIRE_TEST_OF_A_FAULT";

    /// Runs `name`, a test of this module, in a process of its own as `case`.
    fn run(name: &str, case: &str) -> ExitStatus {
        let name = format!("fault::tests::{name}");
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &name, "--nocapture"]).env(CASE, case);
        command.output().unwrap().status
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().build().unwrap()
    }

    #[test]
    fn a_panic_in_a_core_task_ends_the_process_and_elsewhere_it_does_not() {
        let Ok(case) = std::env::var(CASE) else {
            let name = "a_panic_in_a_core_task_ends_the_process_and_elsewhere_it_does_not";
            for case in ["task", "thread"] {
                assert_eq!(run(name, case).code(), Some(STATUS), "{case}");
            }
            for case in ["exchange", "contained"] {
                assert_eq!(run(name, case).code(), Some(0), "{case}");
            }
            return;
        };
        end_whole(|| {});
        let broken = || -> u32 { panic!("as if") };
        match &case[..] {
            "task" => {
                let core = async move { spawn_core("relay", async move { broken() }).await };
                drop(runtime().block_on(core));
            }
            "thread" => {
                let thread = std::thread::spawn(move || {
                    mark_core_thread("codec");
                    broken()
                });
                drop(thread.join());
            }
            "exchange" => {
                let inner = async move { tokio::spawn(async move { broken() }).await.is_err() };
                let core = async move { spawn_core("relay", inner).await };
                assert!(runtime().block_on(core).unwrap());
            }
            _ => {
                mark_core_thread("codec");
                assert_eq!(contain(broken), None);
                assert_eq!(contain(|| 1), Some(1));
                CORE.set(None);
            }
        }
    }
}
