//! The threads that encode and decode, so that the actor never does.
//!
//! Blocks of one exchange and direction go in order through one context. Exchanges take turns, a
//! block each, so that a short message never waits for the whole of a long one. How much can wait
//! is the relay's to bound: at most two blocks per exchange and direction are out at once. Blocks
//! that only teach, and dictionaries that are made, have a thread of their own, to which the system
//! gives what others leave. Contexts whose coding has ended are kept for the next exchange, within
//! [`spares::SPARE_BYTES`]: the memory of a fresh one is the system's, and costs more than a short
//! message.

mod processor;
mod spares;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coding::ExchangeId;
use coding::job::{Done, Job, Prepare};
use relay::Input;

use crate::actor::{Handle, Message};
use crate::fault;
pub(crate) use processor::Processor;
use spares::{Context, Spares};

/// Blocks that go through one context, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Encode(ExchangeId),
    Decode(ExchangeId),
}

/// What waits for its turn.
enum Turn {
    /// The next block of a lane.
    Lane(Key),
    /// A job that needs no context but its own.
    Alone(Job),
}

/// One exchange and direction.
#[derive(Default)]
struct Lane {
    /// Absent while a thread has it, and before the first block.
    context: Option<Context>,
    blocks: VecDeque<Job>,
    busy: bool,
    /// While a thread has it: what comes now begins anew, behind what is under way.
    released: bool,
}

#[derive(Default)]
struct QueueState {
    lanes: BTreeMap<Key, Lane>,
    /// Lanes with blocks and no thread, and other jobs, in turn.
    ready: VecDeque<Turn>,
    /// Jobs of no urgency.
    ready_idle: VecDeque<Turn>,
    spares: Spares,
    stopping: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<QueueState>,
    changed: Condvar,
    idle_changed: Condvar,
}

/// What a thread does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Duty {
    /// What somebody waits for.
    Bodies,
    /// What is of no urgency.
    Idle,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self, duty: Duty) -> &Condvar {
        match duty {
            Duty::Bodies => &self.changed,
            Duty::Idle => &self.idle_changed,
        }
    }
}

impl QueueState {
    fn ready(&mut self, duty: Duty) -> &mut VecDeque<Turn> {
        match duty {
            Duty::Bodies => &mut self.ready,
            Duty::Idle => &mut self.ready_idle,
        }
    }

    /// A thread is through with a block. Gives the context if nobody goes on with it.
    fn put_back(&mut self, key: Key, context: Option<Context>) -> Option<Context> {
        let Some(lane) = self.lanes.get_mut(&key) else { return context };
        lane.busy = false;
        let is_released = std::mem::take(&mut lane.released);
        let (gone, stays) = if is_released { (context, None) } else { (None, context) };
        lane.context = stays;
        if !lane.blocks.is_empty() {
            self.ready.push_back(Turn::Lane(key));
        } else if is_released {
            self.lanes.remove(&key);
        }
        gone
    }
}

impl Duty {
    fn of(job: &Job) -> Self {
        match job {
            Job::Encode(_)
            | Job::Decode(_)
            | Job::Prepare(Prepare::Base { .. } | Prepare::Parcel { .. }) => Self::Bodies,
            Job::Try(_) | Job::Prepare(Prepare::Dictionary { .. } | Prepare::Schema { .. }) => {
                Self::Idle
            }
        }
    }
}

impl Key {
    /// The lane of a job, where it needs one.
    fn of(job: &Job) -> Option<Self> {
        match job {
            Job::Encode(job) => Some(Self::Encode(job.exchange)),
            Job::Decode(job) => Some(Self::Decode(job.exchange)),
            Job::Try(_) | Job::Prepare(_) => None,
        }
    }
}

/// The job begins a context, or has one of its own.
fn begins(job: &Job) -> bool {
    match job {
        Job::Encode(job) => job.first,
        Job::Decode(job) => job.first,
        Job::Try(_) | Job::Prepare(_) => true,
    }
}

/// Nothing goes through the job's context behind it.
fn ends(job: &Job) -> bool {
    match job {
        Job::Encode(job) => job.last,
        Job::Decode(job) => job.last,
        Job::Try(_) | Job::Prepare(_) => true,
    }
}

/// The pool; its threads end when it is dropped.
pub(crate) struct Workers {
    shared: Arc<Shared>,
}

impl Workers {
    pub(crate) fn start(threads: usize, handle: &Handle) -> Self {
        let (shared, processor) = (Arc::new(Shared::default()), Processor::of_environment());
        for number in 0..=threads.max(1) {
            let (shared, handle) = (Arc::clone(&shared), handle.clone());
            let duty = if number == 0 { Duty::Idle } else { Duty::Bodies };
            let name = format!("codec-{number}");
            // A system without a single thread to spare cannot run the runtime either.
            let body = move || work(&shared, duty, processor, &handle);
            if let Err(error) = std::thread::Builder::new().name(name).spawn(body) {
                tracing::error!(%error, "cannot start a codec thread");
            }
        }
        Self { shared }
    }

    pub(crate) fn push(&self, job: Job) {
        let duty = Duty::of(&job);
        let mut state = self.shared.lock();
        let turn = match Key::of(&job) {
            Some(key) => {
                let lane = state.lanes.entry(key).or_default();
                lane.blocks.push_back(job);
                if lane.busy || lane.blocks.len() > 1 {
                    return;
                }
                Turn::Lane(key)
            }
            None => Turn::Alone(job),
        };
        state.ready(duty).push_back(turn);
        self.shared.changed(duty).notify_one();
    }

    pub(crate) fn release(&self, exchange: ExchangeId) {
        let mut gone = Vec::new();
        let mut state = self.shared.lock();
        for key in [Key::Encode(exchange), Key::Decode(exchange)] {
            let Some(lane) = state.lanes.get_mut(&key) else { continue };
            lane.blocks.clear();
            lane.released = lane.busy;
            if !lane.busy {
                gone.extend(state.lanes.remove(&key));
            }
            state.ready.retain(|turn| !matches!(turn, Turn::Lane(of) if *of == key));
        }
        drop(state);
        drop(gone);
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.changed.notify_all();
        self.shared.idle_changed.notify_all();
    }
}

/// What each thread does.
fn work(shared: &Shared, duty: Duty, processor: Processor, handle: &Handle) {
    fault::mark_core_thread("codec");
    if duty == Duty::Idle {
        yield_to_others();
    }
    let mut buffer = Vec::new();
    while let Some((job, mut context)) = take(shared, duty) {
        let before = thread_time();
        let done = fault::contain(|| run(&job, &mut context, &mut buffer)).unwrap_or_else(|| {
            // What it left half done goes with it.
            context = None;
            let what = "it has a fault of ours".to_owned();
            job.failed(codec::Error::Corrupt { codec: "codec", what })
        });
        let ended = ends(&job) && done.is_ok();
        let time = thread_time().saturating_sub(before);
        processor.wait(time);
        let done = done.took(processor.time(time));
        handle.send_blocking(Message::Input(Input::Done(done)));
        // Nobody waits for it any more, nor for what it takes to be of use to others.
        let spare = context.take_if(|_| ended).and_then(Context::renewed);
        // Only now may another thread take the next block, whose result must come behind this one.
        put_back(shared, Key::of(&job), context, spare);
    }
}

/// Waits for a job; `None` when the pool stops.
fn take(shared: &Shared, duty: Duty) -> Option<(Job, Option<Context>)> {
    let mut state = shared.lock();
    loop {
        if state.stopping {
            return None;
        }
        while let Some(turn) = state.ready(duty).pop_front() {
            let (job, before) = match turn {
                Turn::Alone(job) => (job, None),
                Turn::Lane(key) => {
                    let Some(lane) = state.lanes.get_mut(&key) else { continue };
                    let Some(job) = lane.blocks.pop_front() else { continue };
                    lane.busy = true;
                    (job, lane.context.take())
                }
            };
            let (gone, context) = if begins(&job) { (before, None) } else { (None, before) };
            let context = context.or_else(|| state.spares.take(&job));
            drop(state);
            // Before a fresh one is made, so that there are never two.
            drop(gone);
            return Some((job, context));
        }
        state = shared.changed(duty).wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

fn put_back(shared: &Shared, key: Option<Key>, context: Option<Context>, spare: Option<Context>) {
    let mut state = shared.lock();
    let unused = state.spares.keep(spare);
    let gone = match key {
        Some(key) => state.put_back(key, context),
        None => context,
    };
    if let (Some(Turn::Lane(last)), Some(key)) = (state.ready.back(), key)
        && *last == key
    {
        shared.changed(Duty::Bodies).notify_one();
    }
    drop(state);
    // Only now, for nobody has to wait while memory is given back.
    drop((gone, unused));
}

fn run(job: &Job, context: &mut Option<Context>, buffer: &mut Vec<u8>) -> Done {
    let mut contexts = context.take().map(|context| context.contexts).unwrap_or_default();
    let done = match job {
        Job::Encode(job) => job.run(&mut contexts.encoder, buffer),
        Job::Decode(job) => job.run(&mut contexts.decoder, buffer),
        Job::Try(job) => job.run(&mut contexts.encoder, buffer),
        Job::Prepare(job) => return job.run(),
    };
    *context = job.setup().map(|setup| Context {
        options: setup.options,
        framing: setup.framing,
        contexts,
    });
    done
}

/// Asks the system to run the calling thread only where nobody else wants to.
fn yield_to_others() {
    const MIN_URGENT: libc::c_int = 19;
    // SAFETY: the call takes numbers only; on Linux 0 is the calling thread.
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, MIN_URGENT) };
    if result != 0 {
        tracing::debug!(error = %std::io::Error::last_os_error(), "a thread keeps its priority");
    }
}

/// Processor time of the calling thread so far.
pub(crate) fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of ours that outlives the call.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    if result != 0 {
        return Duration::ZERO;
    }
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests;
