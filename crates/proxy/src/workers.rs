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

use bytes::Bytes;
use coding::{ExchangeId, Work, WorkDirection};
use relay::Input;

use crate::actor::{Handle, Message};
use crate::fault;
pub(crate) use processor::Processor;
use spares::{Coder, Context, Spares};

type Key = (ExchangeId, WorkDirection);

/// One exchange and direction.
#[derive(Default)]
struct Lane {
    /// Absent while a thread has it, and before the first block.
    context: Option<Context>,
    blocks: VecDeque<Work>,
    busy: bool,
    /// While a thread has it: what comes now begins anew, behind what is under way.
    released: bool,
}

#[derive(Default)]
struct State {
    lanes: BTreeMap<Key, Lane>,
    /// Lanes with blocks and no thread, in turn.
    ready: VecDeque<Key>,
    /// The same of blocks that only teach.
    ready_shadows: VecDeque<Key>,
    spares: Spares,
    stopping: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    shadows_changed: Condvar,
}

/// What a thread does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Duty {
    Bodies,
    Shadows,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self, duty: Duty) -> &Condvar {
        match duty {
            Duty::Bodies => &self.changed,
            Duty::Shadows => &self.shadows_changed,
        }
    }
}

impl State {
    fn ready(&mut self, duty: Duty) -> &mut VecDeque<Key> {
        match duty {
            Duty::Bodies => &mut self.ready,
            Duty::Shadows => &mut self.ready_shadows,
        }
    }

    /// A thread is through with a block. Gives the context if nobody goes on with it.
    fn put_back(&mut self, key: Key, context: Option<Context>) -> Option<Context> {
        let Some(lane) = self.lanes.get_mut(&key) else { return context };
        lane.busy = false;
        let kept = matches!(key.1, WorkDirection::Encode | WorkDirection::Decode);
        let alone = std::mem::take(&mut lane.released) || !kept;
        let (gone, stays) = if alone { (context, None) } else { (None, context) };
        lane.context = stays;
        if !lane.blocks.is_empty() {
            self.ready(Duty::of(key.1)).push_back(key);
        } else if alone {
            self.lanes.remove(&key);
        }
        gone
    }
}

impl Duty {
    fn of(direction: WorkDirection) -> Self {
        match direction {
            WorkDirection::Encode
            | WorkDirection::Decode
            | WorkDirection::Keep
            | WorkDirection::Unpack => Self::Bodies,
            WorkDirection::Shadow | WorkDirection::Distil | WorkDirection::Compile => Self::Shadows,
        }
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
            let duty = if number == 0 { Duty::Shadows } else { Duty::Bodies };
            let name = format!("codec-{number}");
            // A system without a single thread to spare cannot run the runtime either.
            let body = move || work(&shared, duty, processor, &handle);
            if let Err(error) = std::thread::Builder::new().name(name).spawn(body) {
                tracing::error!(%error, "cannot start a codec thread");
            }
        }
        Self { shared }
    }

    pub(crate) fn push(&self, work: Work) {
        let mut state = self.shared.lock();
        let key = (work.exchange, work.direction);
        let lane = state.lanes.entry(key).or_default();
        lane.blocks.push_back(work);
        if !lane.busy && lane.blocks.len() == 1 {
            let duty = Duty::of(key.1);
            state.ready(duty).push_back(key);
            self.shared.changed(duty).notify_one();
        }
    }

    pub(crate) fn release(&self, exchange: ExchangeId) {
        let mut gone = Vec::new();
        let mut state = self.shared.lock();
        for direction in [WorkDirection::Encode, WorkDirection::Decode] {
            let key = (exchange, direction);
            let Some(lane) = state.lanes.get_mut(&key) else { continue };
            lane.blocks.clear();
            lane.released = lane.busy;
            if !lane.busy {
                gone.extend(state.lanes.remove(&key));
            }
            state.ready.retain(|ready| *ready != key);
        }
        drop(state);
        drop(gone);
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.changed.notify_all();
        self.shared.shadows_changed.notify_all();
    }
}

/// What each thread does.
fn work(shared: &Shared, duty: Duty, processor: Processor, handle: &Handle) {
    fault::mark_core_thread("codec");
    if duty == Duty::Shadows {
        yield_to_others();
    }
    let mut buffer = Vec::new();
    while let Some((work, mut context)) = take(shared, duty) {
        let before = thread_time();
        let result =
            fault::contain(|| run(&work, &mut context, &mut buffer)).unwrap_or_else(|| {
                // What it left half done goes with it.
                context = None;
                Err(codec::Error::Corrupt {
                    codec: "codec",
                    what: "it has a fault of ours".to_owned(),
                })
            });
        let ended = work.last && result.is_ok();
        let time = thread_time().saturating_sub(before);
        processor.wait(time);
        let cpu = processor.time(time);
        let Work { exchange, direction, block, .. } = work;
        let done = Input::Done { exchange, direction, block, result, cpu };
        handle.send_blocking(Message::Input(done));
        // Nobody waits for it any more, nor for what it takes to be of use to others.
        let spare = context.take_if(|_| ended).and_then(Context::renewed);
        // Only now may another thread take the next block, whose result must come behind this one.
        put_back(shared, (exchange, direction), context, spare);
    }
}

/// Waits for a block; `None` when the pool stops.
fn take(shared: &Shared, duty: Duty) -> Option<(Work, Option<Context>)> {
    let mut state = shared.lock();
    loop {
        if state.stopping {
            return None;
        }
        while let Some(key) = state.ready(duty).pop_front() {
            let Some(lane) = state.lanes.get_mut(&key) else { continue };
            let Some(work) = lane.blocks.pop_front() else { continue };
            lane.busy = true;
            let before = lane.context.take();
            let (gone, context) = if work.first { (before, None) } else { (None, before) };
            let context = context.or_else(|| state.spares.take(&work));
            drop(state);
            // Before a fresh one is made, so that there are never two.
            drop(gone);
            return Some((work, context));
        }
        state = shared.changed(duty).wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

fn put_back(shared: &Shared, key: Key, context: Option<Context>, spare: Option<Context>) {
    let (duty, mut state) = (Duty::of(key.1), shared.lock());
    let gone = (state.spares.keep(spare), state.put_back(key, context));
    if state.ready(duty).back() == Some(&key) {
        shared.changed(duty).notify_one();
    }
    drop(state);
    // Only now, for nobody has to wait while memory is given back.
    drop(gone);
}

fn run(
    work: &Work,
    context: &mut Option<Context>,
    buffer: &mut Vec<u8>,
) -> Result<Bytes, codec::Error> {
    buffer.clear();
    if context.is_none() {
        *context = match work.direction {
            WorkDirection::Keep
            | WorkDirection::Distil
            | WorkDirection::Unpack
            | WorkDirection::Compile => return work.alone(),
            WorkDirection::Encode | WorkDirection::Shadow | WorkDirection::Decode => {
                Some(Context::of(work)?)
            }
        };
    }
    match context.as_mut().map(|context| &mut context.coder) {
        Some(Coder::Encoder(encoder)) => encoder.encode(&work.bytes, work.last, buffer)?,
        Some(Coder::Decoder(decoder)) => {
            decoder.decode(&work.bytes, work.decoded_len, work.last, buffer)?;
        }
        None => {}
    }
    Ok(Bytes::copy_from_slice(buffer))
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
