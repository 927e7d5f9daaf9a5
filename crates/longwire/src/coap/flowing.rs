//! A request whose bodies are never here as a whole: a file is read as its blocks are sent, and an
//! answer is written as its blocks come.

use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Read, Write, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use proxy::coap::client::{Call, Client, Event, Response};
use tokio::task::JoinHandle;

use super::{Plan, show_head, tell_refusal};
use crate::terminal::tell;

/// Bytes that are read of a file at once.
const READ_BYTES: usize = 64 << 10;
/// Names of a file that is not whole that are tried.
const MAX_NAMES: u32 = 64;

/// Asks, and writes what comes.
pub(super) async fn converse(plan: &Plan, client: &Client) -> anyhow::Result<ExitCode> {
    let mut source = plan.source.as_deref().map(Source::open).transpose()?;
    let size_bytes = source.as_ref().and_then(|source| source.size_bytes);
    let mut call = client.open(source.is_some(), size_bytes).await;
    let first = match until_answered(plan.timeout, &mut call, source.as_mut()).await? {
        Some(Event::Response(response)) => response,
        Some(Event::Failed(why)) => {
            tell(&format!("{}: {why}", client.server()));
            return Ok(ExitCode::FAILURE);
        }
        _ => {
            tell(&format!("no answer of {} within {:?}", client.server(), plan.timeout));
            return Ok(ExitCode::FAILURE);
        }
    };
    show_head(plan, &first);
    if !first.code.is_success() {
        tell_refusal(&first);
        return Ok(ExitCode::FAILURE);
    }
    match receive(plan, &mut call, first).await? {
        None => Ok(ExitCode::SUCCESS),
        Some(why) => {
            tell(&format!("{}: {why}", client.server()));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// The first that is no room for the request's body, which goes on meanwhile; `None`: nothing has
/// moved for so long, or nothing follows.
async fn until_answered(
    timeout: Duration,
    call: &mut Call,
    mut source: Option<&mut Source>,
) -> anyhow::Result<Option<Event>> {
    let mut room = 0;
    loop {
        let wanted = source.as_mut().filter(|source| room > 0 && !source.has_ended);
        let is_reading = wanted.is_some();
        let most = room;
        let reading = async move {
            match wanted {
                Some(source) => source.next(most).await,
                None => std::future::pending().await,
            }
        };
        // The user has said how long nothing may move; what is read here has its time.
        let silence = call.silence(timeout);
        let (bytes, is_last) = tokio::select! {
            event = call.next() => match event {
                Some(Event::Room(bytes)) => {
                    room += bytes;
                    continue;
                }
                event => return Ok(event),
            },
            read = reading => read?,
            () = silence, if !is_reading => return Ok(None),
        };
        room -= bytes.len();
        call.give(bytes, is_last).await;
    }
}

/// Writes an answer to its end; why that did not come.
async fn receive(plan: &Plan, call: &mut Call, first: Response) -> anyhow::Result<Option<String>> {
    let mut target = Target::open(plan.target.as_deref())?;
    let mut count = first.payload.len();
    let (mut bytes, mut is_last) = (first.payload, first.is_last);
    loop {
        if !target.write(&bytes)? {
            // Whoever closed stdout wants no more.
            return Ok(None);
        }
        if is_last {
            target.finish()?;
            return Ok(None);
        }
        let next = tokio::time::timeout(plan.timeout, call.next()).await;
        (bytes, is_last) = match next {
            Ok(Some(Event::Part(bytes, is_last))) => (bytes, is_last),
            Ok(Some(Event::Failed(why))) => {
                return Ok(Some(format!("the answer broke off behind {count} bytes: {why}")));
            }
            Ok(_) => {
                return Ok(Some(format!("the answer broke off behind {count} bytes")));
            }
            Err(_) => {
                let what = format!("nothing came within {:?}", plan.timeout);
                return Ok(Some(format!("{what} behind {count} bytes of the answer")));
            }
        };
        count += bytes.len();
    }
}

type Reader = Box<dyn Read + Send>;
type Reading = JoinHandle<(Reader, io::Result<Vec<u8>>)>;

/// A file that is read as it is sent.
struct Source {
    path: PathBuf,
    /// How long it is, if it is a file.
    size_bytes: Option<u32>,
    /// Here, or where it is being read.
    reader: Option<Reader>,
    reading: Option<Reading>,
    /// What was read, and how much of it is sent.
    left: Vec<u8>,
    sent: usize,
    has_ended: bool,
}

impl Source {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let mut size_bytes = None;
        let reader: Reader = match path.as_os_str() == "-" {
            true => Box::new(stdin()),
            false => {
                let cannot = || format!("cannot read '{}'", path.display());
                let file = File::open(path).with_context(cannot)?;
                // Of what is no file, such as a pipe, the length says nothing, nor does 0 of what
                // the kernel makes up as it is read (proc(5)).
                let about = file.metadata().ok().filter(fs::Metadata::is_file);
                let len = about.and_then(|about| u32::try_from(about.len()).ok());
                size_bytes = len.filter(|len| *len > 0);
                Box::new(file)
            }
        };
        let (path, reader) = (path.to_owned(), Some(reader));
        let (left, sent) = (Vec::new(), 0);
        Ok(Self { path, size_bytes, reader, reading: None, left, sent, has_ended: false })
    }

    /// At most so many bytes, and whether the file ends behind them. Dropped before it is ready,
    /// it has lost nothing.
    async fn next(&mut self, most: usize) -> anyhow::Result<(Vec<u8>, bool)> {
        if self.sent == self.left.len() {
            if let Some(reader) = self.reader.take() {
                // A pipe may have nothing for long.
                self.reading = Some(tokio::task::spawn_blocking(move || read(reader)));
            }
            let read = match &mut self.reading {
                Some(reading) => {
                    let (reader, read) = reading.await?;
                    (self.reader, self.reading) = (Some(reader), None);
                    read
                }
                None => Ok(Vec::new()),
            };
            let cannot = || format!("cannot read '{}'", self.path.display());
            (self.left, self.sent) = (read.with_context(cannot)?, 0);
            self.has_ended = self.left.is_empty();
        }
        let rest = self.left.get(self.sent..).unwrap_or_default();
        let next = rest.get(..most.min(rest.len())).unwrap_or_default().to_vec();
        self.sent += next.len();
        Ok((next, self.has_ended))
    }
}

/// The next bytes; none at the end.
fn read(mut reader: Reader) -> (Reader, io::Result<Vec<u8>>) {
    let mut bytes = vec![0; READ_BYTES];
    let read = loop {
        match reader.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => break read,
        }
    };
    let read = read.map(|len| {
        bytes.truncate(len);
        bytes
    });
    (reader, read)
}

/// Where an answer goes.
enum Target {
    Stdout {
        /// Whether a line is begun there.
        is_open: bool,
    },
    /// A device, or something else that is no file.
    Open(File, PathBuf),
    /// A file beside the one that it becomes once it is whole.
    Part { file: File, part: PathBuf, path: PathBuf },
}

impl Target {
    fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else { return Ok(Self::Stdout { is_open: false }) };
        let cannot = || format!("cannot write '{}'", path.display());
        let path = path.to_owned();
        if fs::metadata(&path).is_ok_and(|it| !it.is_file()) {
            let file = File::options().write(true).open(&path).with_context(cannot)?;
            return Ok(Self::Open(file, path));
        }
        let (file, part) = new_beside(&path).with_context(cannot)?;
        Ok(Self::Part { file, part, path })
    }

    /// Whether it takes more.
    fn write(&mut self, bytes: &[u8]) -> anyhow::Result<bool> {
        match self {
            Self::Stdout { is_open } => {
                *is_open = bytes.last().map_or(*is_open, |last| *last != b'\n');
                let mut out = stdout().lock();
                match out.write_all(bytes).and_then(|()| out.flush()) {
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
                    other => Ok(other.map(|()| true)?),
                }
            }
            Self::Open(file, path) | Self::Part { file, path, .. } => {
                let written = file.write_all(bytes);
                written.with_context(|| format!("cannot write '{}'", path.display()))?;
                Ok(true)
            }
        }
    }

    /// All is there.
    fn finish(self) -> anyhow::Result<()> {
        match &self {
            Self::Stdout { is_open } if *is_open && stdout().is_terminal() => {
                stdout().lock().write_all(b"\n").context("cannot write")
            }
            Self::Stdout { .. } | Self::Open(..) => Ok(()),
            Self::Part { part, path, .. } => {
                let renamed = fs::rename(part, path);
                renamed.with_context(|| format!("cannot write '{}'", path.display()))
            }
        }
    }
}

/// A file that nobody else has, beside the one that it becomes.
fn new_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    let pid = std::process::id();
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    // A process that was killed, or another in a namespace of its own, may have had this number.
    for number in 0..MAX_NAMES {
        let mut part = path.as_os_str().to_owned();
        part.push(format!(".{pid}-{number}.part"));
        let part = PathBuf::from(part);
        match File::options().write(true).create_new(true).open(&part) {
            Ok(file) => return Ok((file, part)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

impl Drop for Target {
    /// What is not whole is not left behind; what is has another name by now.
    fn drop(&mut self) {
        if let Self::Part { part, .. } = self {
            let _ = fs::remove_file(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let names = fs::read_dir(folder).unwrap().map(name);
        let mut names: Vec<_> = names.map(|it| it.into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Whatever else is there is left as it is, and two at once do not write into one.
    #[test]
    fn a_file_becomes_whole_beside_others() {
        let folder = std::env::temp_dir().join(format!("longwire-part-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let (path, other) = (folder.join("a"), folder.join("a.part"));
        fs::write(&other, "the user's").unwrap();
        let mut targets: Vec<_> = (0..2).map(|_| Target::open(Some(&path)).unwrap()).collect();
        for (target, byte) in targets.iter_mut().zip([b"1", b"2"]) {
            assert!(target.write(byte).unwrap());
        }
        let second = targets.pop().unwrap();
        second.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"2");
        // One that breaks off leaves nothing.
        drop(targets);
        assert_eq!(fs::read(&path).unwrap(), b"2");
        assert_eq!(fs::read(&other).unwrap(), b"the user's");
        assert_eq!(names(&folder), ["a", "a.part"]);
        fs::remove_dir_all(&folder).unwrap();
    }
}
