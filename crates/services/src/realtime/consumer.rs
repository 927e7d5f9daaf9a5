//! The consumer as a whole: threads, what they may share, and what came of a run.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use crate::Error;

use super::admission::Admission;
use super::class::MAX_CLASSES;
use super::engine::{Engine, EngineCounts};
use super::entity::Table;
use super::lock::{Inheritance, PiMutex};
use super::profile::{Priorities, Profile};
use super::queue::Queue;
use super::rights::{self, Awake};
use super::statistics::Sample;
use super::worker::{Job, Worker};

/// Most samples that a class may keep.
pub const MAX_SAMPLES: usize = 1 << 22;
/// Samples that are kept where nothing else is said: 43 minutes of 100 entities a second.
pub const USUAL_SAMPLES: usize = 1 << 18;
/// Most processor time that a message may be made to take, in nanoseconds.
pub const MAX_WORK_NS: u64 = 1_000_000_000;
/// Stack of each thread: all of it is in memory where memory is locked.
const STACK_BYTES: usize = 512 * 1024;

/// What a consumer is to be.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Which of the five.
    pub profile: Profile,
    /// How many classes, 1 to [`MAX_CLASSES`].
    pub classes: usize,
    /// Places of each queue, 1 to [`MAX_PLACES`](super::queue::MAX_PLACES).
    pub places: usize,
    /// The core that all its threads stay on; any where none is said.
    pub core: Option<usize>,
    /// Which share of a core is promised, in thousandths; all where none is said.
    pub share_permille: Option<u64>,
    /// Priorities of what is real-time.
    pub priorities: Priorities,
    /// Whether locks lend priority.
    pub inheritance: Inheritance,
    /// Processor time that each message of a class takes besides, in nanoseconds.
    pub work_ns: [u64; MAX_CLASSES],
    /// Samples that each class keeps, up to [`MAX_SAMPLES`].
    pub samples: usize,
    /// What is done to each entity before it is stored.
    pub job: Job,
}

impl Config {
    /// A consumer with one queue.
    #[must_use]
    pub fn new(listen: SocketAddr, profile: Profile) -> Self {
        Self {
            listen,
            profile,
            classes: 1,
            places: 256,
            core: None,
            share_permille: Some(super::admission::USUAL_SHARE_PERMILLE),
            priorities: Priorities::default(),
            inheritance: Inheritance::Inherit,
            work_ns: [0; MAX_CLASSES],
            samples: USUAL_SAMPLES,
            job: |_| (),
        }
    }

    fn check(&self) -> Result<(), Error> {
        let refuse = |line: String| Err(Error::Caller(line));
        if !(1..=MAX_CLASSES).contains(&self.classes) {
            let classes = self.classes;
            return refuse(format!("{classes} queues; choose 1 to {MAX_CLASSES}"));
        }
        if !(1..=MAX_SAMPLES).contains(&self.samples) {
            let samples = self.samples;
            return refuse(format!("room for {samples} samples; choose 1 to {MAX_SAMPLES}"));
        }
        if let Some(work_ns) = self.work_ns.iter().find(|work_ns| **work_ns > MAX_WORK_NS) {
            return refuse(format!("{work_ns} ns of work; choose at most {MAX_WORK_NS}"));
        }
        if let Some(share) = self.share_permille
            && !(10..=super::admission::MAX_SHARE_PERMILLE).contains(&share)
        {
            let most = super::admission::MAX_SHARE_PERMILLE;
            return refuse(format!("a share of {share} thousandths; choose 10 to {most}"));
        }
        Ok(())
    }
}

/// How a thread or the process was set up: what was asked for, and what was granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Granted {
    /// What it is of: `memory`, `processor awake`, `engine`, `worker 0`.
    pub name: String,
    /// Real time was asked for.
    pub is_asked: bool,
    /// How it runs: as the kernel says of threads.
    pub as_is: String,
    /// Why what was asked for is not so.
    pub refused: Option<String>,
}

/// A thread; without a value where it could not be set up.
type Running<T> = JoinHandle<Option<T>>;

/// A consumer that runs.
#[derive(Debug)]
pub struct Consumer {
    address: SocketAddr,
    granted: Vec<Granted>,
    queues: Vec<Arc<Queue>>,
    stop: UnixStream,
    engine: Running<EngineCounts>,
    workers: Vec<Running<(Vec<Sample>, u64)>>,
    awake: Option<Awake>,
}

/// What came of the messages of a class.
#[derive(Clone, Debug, Default)]
pub struct ClassOutcome {
    /// Messages that were accepted.
    pub accepted: u64,
    /// Messages refused since the queue was full.
    pub refused_full: u64,
    /// Messages refused by the share of the core.
    pub refused_over_share: u64,
    /// Messages that were stored whole.
    pub processed: u64,
    /// Messages at which the worker panicked.
    pub panicked: u64,
    /// What was seen of each entity.
    pub samples: Vec<Sample>,
    /// Entities that were stored when there was no more room for samples.
    pub dropped_samples: u64,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ran.
    pub granted: Vec<Granted>,
    /// By class, the most urgent first.
    pub classes: Vec<ClassOutcome>,
    /// What the engine counted.
    pub engine: EngineCounts,
}

impl Outcome {
    /// Whether everything that was asked to be real-time was so.
    #[must_use]
    pub fn is_as_asked(&self) -> bool {
        self.granted.iter().all(|one| one.refused.is_none())
    }
}

impl Consumer {
    /// Starts it: when this returns it listens, and each thread is scheduled as it stays.
    ///
    /// Real time that is not granted is no error: it runs as ordinary then, and [`Self::granted`]
    /// says why.
    ///
    /// # Errors
    /// [`Error::Caller`] for settings out of range, an address that cannot be listened at, a core
    /// that cannot be used.
    pub fn start(config: &Config) -> Result<Self, Error> {
        config.check()?;
        let mut granted = Vec::new();
        let awake = config.profile.has_runtime().then(|| set_up_runtime(&mut granted)).flatten();
        let listen = config.listen;
        let refused = |why: std::io::Error| {
            Error::Caller(format!("cannot listen at {listen} ({why}); choose another port"))
        };
        let listener = TcpListener::bind(listen).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let (stop, end) = UnixStream::pair().map_err(refused)?;
        let queue = |_| Queue::new(config.places, config.inheritance).map(Arc::new);
        let queues: Vec<Arc<Queue>> = (0..config.classes).map(queue).collect::<Result<_, _>>()?;
        let table = Arc::new(PiMutex::new(Table::default(), config.inheritance)?);
        let mut workers = Vec::new();
        for (class, queue) in queues.iter().enumerate() {
            let worker = Worker {
                queue: Arc::clone(queue),
                table: Arc::clone(&table),
                work_ns: config.work_ns.get(class).copied().unwrap_or(0),
                job: config.job,
                samples: Vec::with_capacity(config.samples),
                dropped_samples: 0,
            };
            let priority = config.priorities.workers.get(class).copied();
            let priority = priority.filter(|_| config.profile.has_workers());
            let set_up = SetUp { name: format!("worker {class}"), priority, config };
            match set_up.spawn(&mut granted, || worker.run()) {
                Ok(thread) => workers.push(thread),
                Err(error) => {
                    queues.iter().for_each(|queue| queue.close());
                    return Err(error);
                }
            }
        }
        let share = config.share_permille;
        let admission = Admission::new(share, config.classes);
        let engine = Engine::new(listener, address, end, queues.clone(), admission);
        let priority = config.profile.has_engine().then_some(config.priorities.engine);
        let set_up = SetUp { name: "engine".to_owned(), priority, config };
        let engine = set_up.spawn(&mut granted, || engine.run()).inspect_err(|_| {
            queues.iter().for_each(|queue| queue.close());
        })?;
        Ok(Self { address, granted, queues, stop, engine, workers, awake })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How it runs.
    #[must_use]
    pub fn granted(&self) -> &[Granted] {
        &self.granted
    }

    /// Takes no more, processes what was accepted, and says what came of it all.
    ///
    /// # Errors
    /// [`Error::Peer`] where a thread of it ended before.
    pub fn stop(self) -> Result<Outcome, Error> {
        let gone = |name: &str| Error::Peer(format!("the {name} ended by a panic; report it"));
        drop(self.stop);
        let engine = self.engine.join().ok().flatten();
        // An engine that ended otherwise closed none of them.
        self.queues.iter().for_each(|queue| queue.close());
        let mut classes = Vec::new();
        for (queue, worker) in self.queues.iter().zip(self.workers) {
            let ended = worker.join().ok().flatten();
            let (samples, dropped_samples) = ended.ok_or_else(|| gone("worker"))?;
            let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
            let of = &queue.counters;
            classes.push(ClassOutcome {
                accepted: count(&of.accepted),
                refused_full: count(&of.full),
                refused_over_share: count(&of.over_share),
                processed: count(&of.processed),
                panicked: count(&of.panicked),
                samples,
                dropped_samples,
            });
        }
        drop(self.awake);
        let engine = engine.ok_or_else(|| gone("engine"))?;
        Ok(Outcome { granted: self.granted, classes, engine })
    }
}

/// Locks memory and keeps cores awake, as far as that is granted.
fn set_up_runtime(granted: &mut Vec<Granted>) -> Option<Awake> {
    let memory = rights::lock_memory();
    granted.push(Granted {
        name: "memory".to_owned(),
        is_asked: true,
        as_is: if memory.is_ok() { "locked" } else { "not locked" }.to_owned(),
        refused: memory.err().map(|error| error.to_string()),
    });
    let request = Awake::request();
    granted.push(Granted {
        name: "processor awake".to_owned(),
        is_asked: true,
        as_is: if request.is_ok() { "requested" } else { "not requested" }.to_owned(),
        refused: request.as_ref().err().map(ToString::to_string),
    });
    request.ok()
}

/// How a thread begins.
struct SetUp<'a> {
    name: String,
    priority: Option<i32>,
    config: &'a Config,
}

impl SetUp<'_> {
    /// Starts a thread, waits until it is scheduled as it stays, and then lets it run.
    fn spawn<T: Send + 'static>(
        self,
        granted: &mut Vec<Granted>,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Running<T>, Error> {
        let (core, priority) = (self.config.core, self.priority);
        let has_runtime = self.config.profile.has_runtime();
        let (ready, came) = sync_channel(1);
        let name = self.name.clone();
        let begin = move |ready: &SyncSender<Result<Granted, Error>>| -> Result<(), Error> {
            if let Some(core) = core {
                rights::pin_this_thread(core)?;
            }
            if has_runtime {
                rights::sharpen_this_thread();
                rights::touch_stack();
            }
            let refused = priority.and_then(|priority| rights::raise_this_thread(priority).err());
            let one = Granted {
                name,
                is_asked: priority.is_some(),
                as_is: rights::scheduling(),
                refused: refused.map(|error| error.to_string()),
            };
            // Who started it waits for this.
            let _ = ready.send(Ok(one));
            Ok(())
        };
        let thread = thread::Builder::new().name(self.name.replace(' ', "-"));
        let thread = thread.stack_size(STACK_BYTES).spawn(move || match begin(&ready) {
            Ok(()) => {
                drop(ready);
                Some(run())
            }
            Err(error) => {
                let _ = ready.send(Err(error));
                None
            }
        });
        let name = &self.name;
        let refused = |why| Error::Caller(format!("cannot start the {name} ({why}); free memory"));
        let thread = thread.map_err(|why| refused(why.to_string()))?;
        match came.recv() {
            Ok(Ok(one)) => granted.push(one),
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(refused("it ended".to_owned())),
        }
        Ok(thread)
    }
}
