//! Users and their passwords: lines of a name, a colon and a hash in PHC form (argon2id).

use std::collections::{BTreeMap, VecDeque};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::{cell::RefCell, fs};

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString};
use bytes::Bytes;
use ring::digest::{Context, SHA256};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::Semaphore;

use crate::config::Config;
use crate::error::Error;

/// Largest file of users, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Passwords that are looked at at once: each takes 19 MiB and some ten milliseconds.
const MAX_CHECKS: usize = 2;
/// Logins that are remembered as good, so that many clients that come back at once get in.
const MAX_REMEMBERED: usize = 10_000;

/// Everybody who has a password.
pub(crate) struct Users {
    hashes: Option<Arc<BTreeMap<String, String>>>,
    anonymous: bool,
    good: Rc<RefCell<Good>>,
    checks: Rc<Semaphore>,
}

/// Digests of logins that were good.
#[derive(Default)]
struct Good {
    key: [u8; 32],
    digests: VecDeque<[u8; 32]>,
}

/// A login that is looked at.
pub(crate) struct Check {
    known: Option<Result<Option<Arc<str>>, ()>>,
    user: String,
    password: Bytes,
    hash: String,
    digest: [u8; 32],
    good: Rc<RefCell<Good>>,
    checks: Rc<Semaphore>,
}

impl Users {
    /// Reads the file of a configuration, if it names one.
    pub(crate) fn load(config: &Config) -> Result<Self, Error> {
        let said = &config.broker;
        let hashes = said.users.as_deref().map(read).transpose()?;
        let mut good = Good::default();
        SystemRandom::new()
            .fill(&mut good.key)
            .map_err(|_| Error::System("the system has no random numbers".to_owned()))?;
        Ok(Self {
            anonymous: said.anonymous || hashes.is_none(),
            hashes: hashes.map(Arc::new),
            good: Rc::new(RefCell::new(good)),
            checks: Rc::new(Semaphore::new(MAX_CHECKS)),
        })
    }

    /// Whether somebody is who he says.
    pub(crate) fn check(&self, user: Option<String>, password: Option<Bytes>) -> Check {
        let mut check = Check {
            known: None,
            user: String::new(),
            password: password.unwrap_or_default(),
            hash: String::new(),
            digest: [0; 32],
            good: self.good.clone(),
            checks: self.checks.clone(),
        };
        let (Some(user), Some(hashes)) = (user.clone(), &self.hashes) else {
            // Without users a name is what a client says of itself, and believed of nobody.
            check.known = Some(if self.anonymous { Ok(None) } else { Err(()) });
            return check;
        };
        check.digest = self.good.borrow().digest(&user, &check.password);
        if self.good.borrow().digests.contains(&check.digest) {
            check.known = Some(Ok(Some(user.as_str().into())));
            return check;
        }
        // Whoever is not there takes as long as whoever is.
        let any = || hashes.values().next().cloned().unwrap_or_default();
        check.hash = hashes.get(&user).cloned().unwrap_or_else(any);
        check.user = if hashes.contains_key(&user) { user } else { String::new() };
        check
    }
}

impl Check {
    /// The answer, if it is there; otherwise it takes [`Check::run`].
    pub(crate) fn at_once(self) -> Result<Result<Option<Arc<str>>, ()>, Box<Self>> {
        self.known.clone().ok_or_else(|| Box::new(self))
    }

    /// The answer.
    pub(crate) async fn run(self) -> Result<Option<Arc<str>>, ()> {
        let _permit = self.checks.acquire().await.map_err(|_| ())?;
        let (hash, password) = (self.hash, self.password);
        let verify = move || {
            let hash = PasswordHash::new(&hash).ok()?;
            Argon2::default().verify_password(&password, &hash).ok()
        };
        let is_good = tokio::task::spawn_blocking(verify).await.ok().flatten().is_some();
        if !is_good || self.user.is_empty() {
            return Err(());
        }
        let mut good = self.good.borrow_mut();
        if good.digests.len() >= MAX_REMEMBERED {
            good.digests.pop_front();
        }
        good.digests.push_back(self.digest);
        Ok(Some(self.user.as_str().into()))
    }
}

impl Good {
    fn digest(&self, user: &str, password: &[u8]) -> [u8; 32] {
        let mut context = Context::new(&SHA256);
        context.update(&self.key);
        context.update(&(user.len() as u64).to_be_bytes());
        context.update(user.as_bytes());
        context.update(password);
        let mut digest = [0; 32];
        digest.copy_from_slice(context.finish().as_ref());
        digest
    }
}

fn read(path: &Path) -> Result<BTreeMap<String, String>, Error> {
    let shown = path.display();
    let unreadable = |error| Error::Caller(format!("cannot read {shown}: {error}"));
    let len = fs::metadata(path).map_err(unreadable)?.len();
    if len > MAX_FILE_BYTES {
        let text = format!("{shown} has {len} bytes, over the limit of {MAX_FILE_BYTES}");
        return Err(Error::Caller(text));
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    let mut hashes = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what: &str| Error::Caller(format!("{shown}, line {}: {what}", number + 1));
        let (user, hash) = line.split_once(':').ok_or_else(|| wrong("no colon behind a name"))?;
        if user.is_empty() {
            return Err(wrong("no name before the colon"));
        }
        let is_hash =
            PasswordHash::new(hash).is_ok_and(|hash| hash.algorithm.as_str().starts_with("argon2"));
        if !is_hash {
            return Err(wrong("no argon2 hash behind the colon: longwire broker passwd makes one"));
        }
        hashes.insert(user.to_owned(), hash.to_owned());
    }
    if hashes.is_empty() {
        return Err(Error::Caller(format!("{shown} names nobody")));
    }
    Ok(hashes)
}

/// Puts a user with a password into a file of users, which is made where it is not there. It is
/// readable by its owner only.
///
/// # Errors
/// A name that cannot be, a file that cannot be read or written.
pub fn set_password(path: &Path, user: &str, password: &[u8]) -> Result<(), Error> {
    if user.is_empty() || user.contains([':', '\n', '\r', '#']) {
        let text = format!("'{user}' is no name: no colon, line break or # may be in it");
        return Err(Error::Caller(text));
    }
    let mut hashes = if path.exists() { read(path)? } else { BTreeMap::new() };
    hashes.insert(user.to_owned(), hash_password(password)?);
    let text: String = hashes.iter().map(|(user, hash)| format!("{user}:{hash}\n")).collect();
    let shown = path.display();
    let broken = |error| Error::Caller(format!("cannot write {shown}: {error}"));
    // Whole or not at all, and never readable for others in between.
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&name)
        .map_err(broken)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(broken)?;
    fs::rename(&name, path).map_err(broken)
}

/// The hash of a password, as a file of users has it.
fn hash_password(password: &[u8]) -> Result<String, Error> {
    let broken = |what: &str| Error::System(format!("cannot hash the password: {what}"));
    let mut salt = [0; 16];
    SystemRandom::new().fill(&mut salt).map_err(|_| broken("no random numbers"))?;
    let salt = SaltString::encode_b64(&salt).map_err(|error| broken(&error.to_string()))?;
    let hash = Argon2::default().hash_password(password, &salt);
    Ok(hash.map_err(|error| broken(&error.to_string()))?.to_string())
}
