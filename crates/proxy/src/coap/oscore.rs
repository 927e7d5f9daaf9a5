//! Security contexts of OSCORE (RFC 8613 §3) as files: what both ends have agreed on, in TOML, and
//! beside it the sequence numbers that may have been used, so that none is used twice after a
//! restart (RFC 8613 appendix B.1.1).
//!
//! One process has a context at a time: two would use the same numbers, and so the same nonces.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proto::coap::guard::{Guard, MAX_CONTEXTS};
use proto::oscore::{
    Algorithm, Context, DEFAULT_WINDOW, ECHO_BYTES, Endpoint, MAX_PARTIAL_IV, MAX_WINDOW,
    Parameters, Replay, SenderSequence,
};
use toml::{Table, Value};

use super::socket::Peer;
use super::text;
use crate::{Error, strict};

/// Largest file of a context or of its state, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 10;
/// The shortest Master Secret, in bytes: as long as the keys that are derived from it (RFC 8613
/// §3.2 asks for as much as the algorithm's strength).
const MIN_SECRET_BYTES: usize = 16;
/// Sequence numbers for which a client's store is written once: each run skips as many at most.
const CLIENT_STEP: u64 = 64;
/// The same of a server, whose runs are longer.
const SERVER_STEP: u64 = 1024;
/// What the state's file begins with; the number follows.
const STATE_HEAD: &str = "next_sequence_number = ";

/// A file of a context. Values are in hexadecimal; the names are those of RFC 8613 §3.
#[derive(Default)]
struct Text {
    master_secret: String,
    master_salt: String,
    sender_id: String,
    recipient_id: String,
    id_context: Option<String>,
    algorithm: Option<String>,
    replay_window: Option<u32>,
    sends_id_context: bool,
}

impl Text {
    /// The keys of a table. The error names the key, and not what it has.
    fn of(table: Table) -> Result<Self, String> {
        let mut text = Self::default();
        for key in ["master_secret", "sender_id", "recipient_id"] {
            if !table.contains_key(key) {
                return Err(format!("{key} is missing"));
            }
        }
        for (key, value) in table {
            let string = |value| match value {
                Value::String(text) => Ok(text),
                _ => Err(format!("{key} is no text in quotes")),
            };
            match key.as_str() {
                "master_secret" => text.master_secret = string(value)?,
                "master_salt" => text.master_salt = string(value)?,
                "sender_id" => text.sender_id = string(value)?,
                "recipient_id" => text.recipient_id = string(value)?,
                "id_context" => text.id_context = Some(string(value)?),
                "algorithm" => text.algorithm = Some(string(value)?),
                "replay_window" => {
                    let number = value.as_integer().and_then(|number| number.try_into().ok());
                    text.replay_window = Some(number.ok_or("replay_window is no number")?);
                }
                "sends_id_context" => {
                    let is_so = value.as_bool().ok_or("sends_id_context is not true or false")?;
                    text.sends_id_context = is_so;
                }
                _ => {
                    let shown = text::printable(&key);
                    return Err(format!("'{shown}' is no key of a security context"));
                }
            }
        }
        Ok(text)
    }
}

/// A context that was read and is not yet in use.
#[derive(Clone, Debug)]
pub struct ContextFile {
    path: PathBuf,
    context: Context,
    window: u32,
    sends_id_context: bool,
}

/// The names of the algorithms (RFC 9053 tables 5 to 7).
const ALGORITHMS: [(&str, Algorithm); 4] = [
    ("AES-CCM-16-64-128", Algorithm::AesCcm16_64_128),
    ("AES-CCM-16-128-128", Algorithm::AesCcm16_128_128),
    ("A128GCM", Algorithm::AesGcm128),
    ("ChaCha20/Poly1305", Algorithm::ChaCha20Poly1305),
];

impl ContextFile {
    /// Reads one. It may be read by its owner alone.
    ///
    /// # Errors
    /// [`Error::Caller`] with the key that is wrong, the limit and the remedy.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let shown = path.display();
        let mut file = strict::open(path, "the security context")?;
        file.check_private()?;
        let bytes = file.read(MAX_FILE_BYTES)?;
        let wrong = |what: String| Error::Caller(format!("security context {shown}: {what}"));
        let toml = str::from_utf8(&bytes).map_err(|_| wrong("it is no text".to_owned()))?;
        // The whole error would show the line, and the secret in it.
        let table: Table =
            toml::from_str(toml).map_err(|error| wrong(error.message().to_owned()))?;
        let text = Text::of(table).map_err(&wrong)?;
        Self::of(path, &text).map_err(wrong)
    }

    fn of(path: &Path, text: &Text) -> Result<Self, String> {
        let hex = |key: &str, value: &str| {
            let meant = "an even number of digits in hex, like '0102'";
            text::bytes_of(value).ok_or_else(|| format!("{key} is no bytes: give {meant}"))
        };
        let secret = hex("master_secret", &text.master_secret)?;
        if secret.len() < MIN_SECRET_BYTES {
            let (has, least) = (secret.len(), MIN_SECRET_BYTES);
            return Err(format!("master_secret has {has} bytes: give {least} or more of chance"));
        }
        let salt = hex("master_salt", &text.master_salt)?;
        let sender_id = hex("sender_id", &text.sender_id)?;
        let recipient_id = hex("recipient_id", &text.recipient_id)?;
        let id_context =
            text.id_context.as_deref().map(|value| hex("id_context", value)).transpose()?;
        let algorithm = match &text.algorithm {
            None => Algorithm::default(),
            Some(name) => {
                let known = ALGORITHMS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
                let names = ALGORITHMS.map(|(name, _)| name).join(", ");
                known.ok_or(format!("algorithm is none of {names}"))?.1
            }
        };
        let window = text.replay_window.unwrap_or(DEFAULT_WINDOW);
        if window == 0 || window > MAX_WINDOW {
            return Err(format!("replay_window is {window}: a number from 1 to {MAX_WINDOW}"));
        }
        let context = Context::derive(&Parameters {
            algorithm,
            master_secret: &secret,
            master_salt: &salt,
            sender_id: &sender_id,
            recipient_id: &recipient_id,
            id_context: id_context.as_deref(),
        });
        let context = context.map_err(|error| error.to_string())?;
        let sends_id_context = text.sends_id_context;
        Ok(Self { path: path.to_owned(), context, window, sends_id_context })
    }

    /// Whether requests cannot be told apart from those of the other (RFC 8613 §3.3).
    #[must_use]
    pub fn is_named_like(&self, other: &Self) -> bool {
        let names = |file: &Self| {
            let id_context = file.context.id_context().map(<[u8]>::to_vec);
            (file.context.recipient_id().to_vec(), id_context)
        };
        names(self) == names(other)
    }

    /// The end of a context that is in use from now on, and its store.
    fn take(self, step: u64, replay: Replay) -> Result<(Endpoint, Store), Error> {
        let (store, next) = Store::open(&self.path)?;
        let sequence = SenderSequence::restored(next, step);
        let sequence = sequence.map_err(|error| Error::Caller(error.to_string()))?;
        let mut endpoint = Endpoint::new(self.context, sequence, replay);
        endpoint.set_sends_id_context(self.sends_id_context);
        Ok((endpoint, store))
    }
}

/// Where the numbers of a context are kept, and what keeps other processes off it.
#[derive(Debug)]
struct Store {
    path: PathBuf,
    _lock: File,
}

impl Store {
    /// The store of a context's file, and the first number that may be used.
    fn open(context: &Path) -> Result<(Self, u64), Error> {
        let shown = context.display();
        let lock = File::open(context).map_err(|error| strict::unreadable(context, &error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let what = "is in use by another process: make a context for each";
                return Err(Error::Caller(format!("the security context {shown} {what}")));
            }
            Err(TryLockError::Error(error)) => {
                return Err(Error::system(format!("lock {shown}"))(error));
            }
        }
        let mut name = context.file_name().unwrap_or_default().to_owned();
        name.push(".state");
        let path = context.with_file_name(name);
        let next = read_state(&path)?;
        Ok((Self { path, _lock: lock }, next))
    }

    /// All of it is there under its name, on the disk, or nothing.
    fn write(&self, next: u64) -> io::Result<()> {
        let mut name = self.path.clone().into_os_string();
        name.push(".new");
        let aside = PathBuf::from(name);
        // What a process that was killed left.
        if let Err(error) = fs::remove_file(&aside)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
        file.write_all(format!("{STATE_HEAD}{next}\n").as_bytes())?;
        file.sync_all()?;
        fs::rename(&aside, &self.path)?;
        let directory = self.path.parent().filter(|path| !path.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    }
}

fn read_state(path: &Path) -> Result<u64, Error> {
    // Also a link that leads nowhere is refused, not taken for a state that is yet to be written.
    if path.symlink_metadata().is_err() {
        return Ok(0);
    }
    let mut file = strict::open(path, "the state of a security context")?;
    file.check()?;
    let bytes = file.read(MAX_FILE_BYTES)?;
    let text = str::from_utf8(&bytes).unwrap_or_default();
    let number = text.strip_prefix(STATE_HEAD).and_then(|rest| rest.trim_end().parse().ok());
    number.filter(|number| *number <= MAX_PARTIAL_IV + 1).ok_or_else(|| {
        let shown = path.display();
        Error::Caller(format!(
            "{shown} does not say which sequence numbers are free: agree on a new master_secret, \
             and then remove it"
        ))
    })
}

/// What protects the messages of an endpoint, and where it keeps its numbers.
#[derive(Debug)]
pub(crate) struct Security {
    pub(super) guard: Guard<Peer>,
    pub(super) stores: Stores,
}

/// The stores of all contexts, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Stores(Arc<Vec<Store>>);

impl Stores {
    /// Writes a context's number; whoever awaits it does nothing else meanwhile.
    pub(super) async fn write(&self, index: usize, next: u64) -> io::Result<()> {
        let all = Arc::clone(&self.0);
        let write = move || match all.get(index) {
            Some(store) => store.write(next),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        tokio::task::spawn_blocking(write).await.map_err(io::Error::other)?
    }
}

impl Security {
    /// For the requests of a client, all to one server.
    pub(crate) fn client(file: ContextFile) -> Result<Self, Error> {
        let replay =
            Replay::fresh(file.window).map_err(|error| Error::Caller(error.to_string()))?;
        let (endpoint, store) = file.take(CLIENT_STEP, replay)?;
        Ok(Self { guard: Guard::client(endpoint), stores: Stores(Arc::new(vec![store])) })
    }

    /// For a server. Which requests came before it started nobody knows, so that each client is
    /// asked once for an Echo (RFC 8613 appendix B.1.2). `is_required` as in [`Guard::server`].
    pub(crate) fn server(files: Vec<ContextFile>, is_required: bool) -> Result<Self, Error> {
        let (mut endpoints, mut stores) = (Vec::new(), Vec::new());
        for file in files {
            // The guard puts a value for each peer in its place.
            let replay = Replay::lost(file.window, [0; ECHO_BYTES]);
            let replay = replay.map_err(|error| Error::Caller(error.to_string()))?;
            let (endpoint, store) = file.take(SERVER_STEP, replay)?;
            endpoints.push(endpoint);
            stores.push(store);
        }
        let seed = [crate::random_instance()?, crate::random_instance()?];
        let guard = Guard::server(endpoints, is_required, seed);
        let guard = guard.map_err(|error| Error::Caller(error.to_string()))?;
        Ok(Self { guard, stores: Stores(Arc::new(stores)) })
    }
}

/// The contexts of a server, each of another name.
///
/// # Errors
/// What is wrong with one, in one line.
pub(crate) fn read_all(paths: &[PathBuf]) -> Result<Vec<ContextFile>, Error> {
    if paths.len() > MAX_CONTEXTS {
        let has = paths.len();
        let what = format!("{has} security contexts are over the limit of {MAX_CONTEXTS}");
        return Err(Error::Caller(what));
    }
    let mut all: Vec<ContextFile> = Vec::new();
    for path in paths {
        let file = ContextFile::read(path)?;
        if let Some(other) = all.iter().find(|other| other.is_named_like(&file)) {
            let (one, other) = (path.display(), other.path.display());
            let what = "have the same recipient_id and id_context: give each client its own";
            return Err(Error::Caller(format!("{other} and {one} {what}")));
        }
        all.push(file);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of its own, removed in the end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let name = format!("longwire-oscore-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn put(&self, name: &str, text: &str) -> PathBuf {
            let path = self.0.join(name);
            let mut options = OpenOptions::new();
            let options = options.write(true).create(true).truncate(true).mode(0o600);
            options.open(&path).unwrap().write_all(text.as_bytes()).unwrap();
            path
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const GOOD: &str = "master_secret = '0102030405060708090a0b0c0d0e0f10'\n\
                        sender_id = ''\nrecipient_id = '01'\n";

    #[test]
    fn a_file_says_what_is_wrong_with_it_and_not_its_secret() {
        let scratch = Scratch::new("file");
        let read = |text: &str| ContextFile::read(&scratch.put("c", text));
        let file = read(GOOD).unwrap();
        assert_eq!((file.context.recipient_id(), file.window), (&[1][..], 32));
        let more = "master_salt = '9e7c'\nid_context = ''\nalgorithm = 'aes-ccm-16-128-128'\n\
                    replay_window = 64\nsends_id_context = true\n";
        let file = read(&format!("{GOOD}{more}")).unwrap();
        assert_eq!(file.context.algorithm(), Algorithm::AesCcm16_128_128);
        assert_eq!((file.context.id_context(), file.window), (Some(&[][..]), 64));
        let secret = "ffeeddccbbaa99887766554433221100";
        for (text, why) in [
            (String::new(), "master_secret is missing"),
            (format!("{GOOD}key = 1"), "'key' is no key"),
            (format!("{GOOD}id_context = 1"), "no text in quotes"),
            (GOOD.replace("'01'", "'1'"), "recipient_id is no bytes"),
            (GOOD.replace("'01'", "''"), "Recipient ID"),
            (GOOD.replace("'01'", "'0102030405060708'"), "limit"),
            (GOOD.replace("0102030405060708090a0b0c0d0e0f10", "0102"), "16 or more"),
            (GOOD.replace("'0102030405060708090a0b0c0d0e0f10'", &format!("[{secret}]")), ""),
            (format!("{GOOD}algorithm = 'ROT13'"), "AES-CCM-16-64-128"),
            (format!("{GOOD}replay_window = 129"), "from 1 to 128"),
            (format!("{GOOD}x = \"{}\"", "y".repeat(20_000)), "over the limit"),
        ] {
            let error = read(&text).unwrap_err();
            let line = error.to_string();
            assert!(matches!(error, Error::Caller(_)) && line.contains(why), "{line}");
            assert!(line.lines().count() == 1 && !line.contains(secret), "{line}");
        }
        let path = scratch.put("c", GOOD);
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        let line = ContextFile::read(&path).unwrap_err().to_string();
        assert!(line.contains("chmod 600"), "{line}");
    }

    #[test]
    fn a_context_is_for_one_process_and_goes_on_where_it_was() {
        let scratch = Scratch::new("state");
        let path = scratch.put("c", GOOD);
        let (store, next) = Store::open(&path).unwrap();
        assert_eq!(next, 0);
        let line = Store::open(&path).unwrap_err().to_string();
        assert!(line.contains("in use by another process"), "{line}");
        store.write(64).unwrap();
        store.write(128).unwrap();
        drop(store);
        let (store, next) = Store::open(&path).unwrap();
        assert_eq!(next, 128);
        drop(store);
        for text in ["", "next_sequence_number = x", "next_sequence_number = 1099511627777"] {
            scratch.put("c.state", text);
            let line = Store::open(&path).unwrap_err().to_string();
            assert!(line.contains("agree on a new master_secret"), "{line}");
        }
        scratch.put("c.state", "next_sequence_number = 1099511627776");
        assert_eq!(Store::open(&path).unwrap().1, 1 << 40);
    }

    #[test]
    fn contexts_of_a_server_have_names_of_their_own() {
        let scratch = Scratch::new("names");
        let one = scratch.put("one", GOOD);
        let other = scratch.put("other", &GOOD.replace("'01'", "'02'"));
        assert_eq!(read_all(&[one.clone(), other.clone()]).unwrap().len(), 2);
        let line = read_all(&[one.clone(), other, one]).unwrap_err().to_string();
        assert!(line.contains("give each client its own"), "{line}");
    }
}
