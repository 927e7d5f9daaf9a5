//! Who may publish: users with passwords, and the tokens that they are given for a while.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordVerifier as _};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::Semaphore;

use super::refusal::{Reason, Refusal};
use crate::Error;

/// Largest file of users, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Passwords that are looked at at once: each takes 19 MiB and some ten milliseconds.
const MAX_CHECKS: usize = 2;
/// Passwords that wait to be looked at.
const MAX_WAITING: usize = 64;
/// Tokens at once; beyond it the one that ends first goes.
const MAX_TOKENS: usize = 10_000;
/// Tokens of one user at once.
const MAX_TOKENS_OF_USER: usize = 100;
/// Longest password, in bytes.
const MAX_PASSWORD_BYTES: usize = 1024;
/// How long a token that is over is told apart from one that never was.
const MEMORY: Duration = Duration::from_secs(3600);

/// Everybody who may publish. Without a file that is nobody.
#[derive(Debug)]
pub(crate) struct Users {
    hashes: BTreeMap<String, String>,
    checks: Semaphore,
    waiting: Semaphore,
    tokens: Mutex<Tokens>,
    life: Duration,
}

impl Users {
    /// Reads the file of a configuration, if it names one: lines of a name, a colon and a hash in
    /// PHC form (argon2), as `longwire broker passwd` writes them.
    ///
    /// # Errors
    /// [`Error::Caller`] with the file and the line.
    pub(crate) fn load(path: Option<&Path>, life: Duration) -> Result<Self, Error> {
        let hashes = path.map(read).transpose()?.unwrap_or_default();
        Ok(Self::of(hashes, life))
    }

    pub(crate) fn of(hashes: BTreeMap<String, String>, life: Duration) -> Self {
        Self {
            hashes,
            checks: Semaphore::new(MAX_CHECKS),
            waiting: Semaphore::new(MAX_WAITING),
            tokens: Mutex::default(),
            life,
        }
    }

    /// Whether there is such a user.
    pub(crate) fn has(&self, user: &str) -> bool {
        self.hashes.contains_key(user)
    }

    /// How long a token is good.
    pub(crate) fn life(&self) -> Duration {
        self.life
    }

    /// Gives a token to a user with his password.
    ///
    /// # Errors
    /// [`Reason::UnknownUser`] for another password or no such user, which take as long;
    /// [`Reason::Busy`] while too many ask.
    pub(crate) async fn log_in(
        &self,
        now: Duration,
        user: &str,
        password: &str,
    ) -> Result<String, Refusal> {
        let unknown = || Refusal::new(Reason::UnknownUser, "no such user, or another password");
        if password.len() > MAX_PASSWORD_BYTES {
            return Err(unknown());
        }
        let any = self.hashes.values().next();
        let Some(hash) = self.hashes.get(user).or(any).cloned() else {
            let line = "nobody may publish here: the registry has no file of users";
            return Err(Refusal::new(Reason::UnknownUser, line));
        };
        let busy = |_| Refusal::new(Reason::Busy, "too many log in at once; try again");
        let _place = self.waiting.try_acquire().map_err(busy)?;
        let _permit = self.checks.acquire().await.map_err(|_| unknown())?;
        let password = password.to_owned();
        let verify = move || {
            let hash = PasswordHash::new(&hash).ok()?;
            Argon2::default().verify_password(password.as_bytes(), &hash).ok()
        };
        let is_good = tokio::task::spawn_blocking(verify).await.ok().flatten().is_some();
        if !is_good || !self.has(user) {
            return Err(unknown());
        }
        self.give(now, user)
    }

    fn give(&self, now: Duration, user: &str) -> Result<String, Refusal> {
        let mut bytes = [0; 24];
        let no_chance = |_| Refusal::new(Reason::Fatal, "the system has no random numbers");
        SystemRandom::new().fill(&mut bytes).map_err(no_chance)?;
        let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let until = now + self.life;
        self.tokens().add(now, hashed(&token), user, until);
        Ok(token)
    }

    /// The user of a token.
    ///
    /// # Errors
    /// [`Reason::AuthTokenRequired`] for none that was given out, [`Reason::AuthTokenExpired`] for
    /// one that is over.
    pub(crate) fn of_token(&self, now: Duration, token: &str) -> Result<Arc<str>, Refusal> {
        self.tokens().find(now, &hashed(token))
    }

    /// A token is good no more.
    ///
    /// # Errors
    /// As [`Users::of_token`].
    pub(crate) fn discard(&self, now: Duration, token: &str) -> Result<(), Refusal> {
        let hash = hashed(token);
        let mut tokens = self.tokens();
        tokens.find(now, &hash)?;
        tokens.by_hash.remove(&hash);
        Ok(())
    }

    fn tokens(&self) -> std::sync::MutexGuard<'_, Tokens> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is kept of a token: nobody who reads the memory has one that can be used.
fn hashed(token: &str) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    out
}

/// Tokens that were given out, by their hashes.
#[derive(Debug, Default)]
struct Tokens {
    // bound: MAX_TOKENS.
    by_hash: BTreeMap<[u8; 32], (Arc<str>, Duration)>,
}

impl Tokens {
    fn add(&mut self, now: Duration, hash: [u8; 32], user: &str, until: Duration) {
        self.by_hash.retain(|_, (_, until)| *until + MEMORY > now);
        let of_user = self.by_hash.values().filter(|(of, _)| &**of == user).count();
        let is_of = |of: &str| of_user < MAX_TOKENS_OF_USER || of == user;
        if of_user >= MAX_TOKENS_OF_USER || self.by_hash.len() >= MAX_TOKENS {
            let first = self.by_hash.iter().filter(|(_, (of, _))| is_of(of));
            let first = first.min_by_key(|(_, (_, until))| *until).map(|(hash, _)| *hash);
            first.map(|hash| self.by_hash.remove(&hash));
        }
        self.by_hash.insert(hash, (user.into(), until));
    }

    fn find(&self, now: Duration, hash: &[u8; 32]) -> Result<Arc<str>, Refusal> {
        match self.by_hash.get(hash) {
            None => {
                let line = "a token is needed, and this is none that was given out; get one first";
                Err(Refusal::new(Reason::AuthTokenRequired, line))
            }
            Some((_, until)) if *until <= now => {
                let line = "the token is over; get another one";
                Err(Refusal::new(Reason::AuthTokenExpired, line))
            }
            Some((user, _)) => Ok(user.clone()),
        }
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
    let hashes = parse(&text).map_err(|what| Error::Caller(format!("{shown}, {what}")))?;
    if hashes.is_empty() {
        return Err(Error::Caller(format!("{shown} names nobody")));
    }
    Ok(hashes)
}

fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut hashes = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what: &str| format!("line {}: {what}", number + 1);
        let (user, hash) = line.split_once(':').ok_or_else(|| wrong("no colon behind a name"))?;
        // A business has the name, and owners of the registry's own begin with a star.
        if user.trim() != user
            || user.is_empty()
            || user.chars().count() > 255
            || user.starts_with('*')
        {
            return Err(wrong("a name has 1 to 255 characters, the first no star"));
        }
        let is_hash =
            PasswordHash::new(hash).is_ok_and(|hash| hash.algorithm.as_str().starts_with("argon2"));
        if !is_hash {
            return Err(wrong("no argon2 hash behind the colon: longwire broker passwd makes one"));
        }
        hashes.insert(user.to_owned(), hash.to_owned());
    }
    Ok(hashes)
}

#[cfg(test)]
pub(crate) fn testing(names: &[&str], life: Duration) -> Users {
    use argon2::password_hash::{PasswordHasher as _, SaltString};
    // As weak as it may be: tests log in often.
    let params = argon2::Params::new(8, 1, 1, None).unwrap();
    let weak = Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
    let salt = SaltString::encode_b64(&[7; 16]).unwrap();
    let hash = |name: &&str| {
        let hash = weak.hash_password(format!("{name}-password").as_bytes(), &salt).unwrap();
        ((*name).to_owned(), hash.to_string())
    };
    Users::of(names.iter().map(hash).collect(), life)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[tokio::test]
    async fn a_password_gets_a_token_that_is_over_some_time() {
        let users = testing(&["alice"], LIFE);
        let token = users.log_in(at(100), "alice", "alice-password").await.unwrap();
        assert_eq!(&*users.of_token(at(159), &token).unwrap(), "alice");
        let reason = |now| users.of_token(at(now), &token).unwrap_err().reason;
        assert_eq!(reason(160), Reason::AuthTokenExpired);
        // Long behind that it is as if it had never been.
        users.log_in(at(160 + 3601), "alice", "alice-password").await.unwrap();
        assert_eq!(reason(160 + 3601), Reason::AuthTokenRequired);
    }

    #[tokio::test]
    async fn nobody_gets_a_token_with_another_password_or_name() {
        let users = testing(&["alice"], LIFE);
        for (user, password) in [
            ("alice", "x"),
            ("alice", ""),
            ("bob", "alice-password"),
            ("", ""),
            ("alice", &"x".repeat(2000)),
        ] {
            let refusal = users.log_in(at(0), user, password).await.unwrap_err();
            assert_eq!(refusal.reason, Reason::UnknownUser, "{user} {password}");
        }
        let nobody = Users::of(BTreeMap::new(), LIFE);
        let refusal = nobody.log_in(at(0), "alice", "x").await.unwrap_err();
        assert!(refusal.line.contains("no file of users"), "{refusal}");
    }

    #[tokio::test]
    async fn a_token_that_was_discarded_is_none() {
        let users = testing(&["alice"], LIFE);
        let token = users.log_in(at(0), "alice", "alice-password").await.unwrap();
        assert_eq!(users.discard(at(1), &token), Ok(()));
        assert_eq!(users.discard(at(1), &token).unwrap_err().reason, Reason::AuthTokenRequired);
    }

    #[test]
    fn tokens_of_one_user_do_not_take_those_of_others() {
        let users = testing(&["alice", "bob"], LIFE);
        let kept = users.give(at(0), "bob").unwrap();
        let first = users.give(at(1), "alice").unwrap();
        let tokens: Vec<String> =
            (0..MAX_TOKENS_OF_USER).map(|_| users.give(at(2), "alice").unwrap()).collect();
        assert!(users.of_token(at(3), &kept).is_ok());
        assert!(users.of_token(at(3), &first).is_err(), "the oldest of hers went");
        assert!(tokens.iter().all(|token| users.of_token(at(3), token).is_ok()));
    }

    #[test]
    fn files_are_read_or_refused_by_line() {
        let hash = testing(&["a"], LIFE).hashes["a"].clone();
        assert_eq!(parse(&format!("# x\n\nbob:{hash}\n")).unwrap().len(), 1);
        for text in ["bob".to_owned(), format!(":{hash}"), "bob:x".to_owned(), format!("*b:{hash}")]
        {
            assert!(parse(&text).unwrap_err().starts_with("line 1: "), "{text}");
        }
    }
}
