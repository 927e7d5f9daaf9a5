//! Keys of the two sides: Ed25519, named and pinned, no authority in between.
//!
//! A private key is PKCS#8 in PEM (RFC 8410). A public key is one line, `NAME ed25519:HEX [ROLE]`,
//! and a peer file is any number of such lines; `#` begins a comment. The role, `edge` or
//! `gateway`, says what the key may be used as; without one it may be either.

use std::fmt;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use curve25519_dalek::edwards::CompressedEdwardsY;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;

use crate::{Error, strict};

/// Name of the private key's file in the directory given to [`generate`].
pub const PRIVATE_FILE: &str = "longwire.key";
/// Name of the public key's file.
pub const PUBLIC_FILE: &str = "longwire.pub";
/// Most lines with a key in a peer file.
const MAX_PEERS: usize = 1024;
/// Largest key or peer file read, in bytes.
const MAX_FILE_BYTES: u64 = 256 * 1024;
/// SubjectPublicKeyInfo of Ed25519 (RFC 8410 §4) before the key's 32 bytes.
const SPKI_PREFIX: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const SCHEME: &str = "ed25519:";

/// What private keys begin with (RFC 7468 §10).
const PEM_BEGIN: &str = "-----BEGIN";

/// What a key is used as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// That of a client side, which dials.
    Edge,
    /// That of a service side, which is dialled.
    Gateway,
}

impl Role {
    /// Reads its name.
    ///
    /// # Errors
    /// Another word, with what is allowed.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "edge" => Ok(Self::Edge),
            "gateway" => Ok(Self::Gateway),
            _ => Err(format!("'{text}' is no role: one of edge, gateway")),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Edge => "edge",
            Self::Gateway => "gateway",
        })
    }
}

/// A public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// First half of the key's SHA-256, in hexadecimal: short enough to compare by eye.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let digest = ring::digest::digest(&ring::digest::SHA256, &self.0);
        let hex = to_hex(&digest.as_ref()[..16]);
        let groups: Vec<&str> = (0..8).map(|group| &hex[group * 4..group * 4 + 4]).collect();
        groups.join(":")
    }

    /// The point of X25519 that is the same on the other form of the curve (RFC 7748 §4.1); `None`
    /// for bytes that are no point of it.
    pub(crate) fn to_x25519(self) -> Option<[u8; 32]> {
        Some(CompressedEdwardsY(self.0).decompress()?.to_montgomery().to_bytes())
    }

    /// As SubjectPublicKeyInfo.
    pub(crate) fn to_spki(self) -> Vec<u8> {
        [&SPKI_PREFIX[..], &self.0[..]].concat()
    }

    /// From SubjectPublicKeyInfo; `None` for any other kind of key.
    pub(crate) fn from_spki(spki: &[u8]) -> Option<Self> {
        let key = spki.strip_prefix(&SPKI_PREFIX)?;
        key.try_into().ok().map(Self)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", to_hex(&self.0))
    }
}

/// What [`generate`] made.
#[derive(Debug)]
pub struct Generated {
    /// File of the private key, readable by its owner only.
    pub private: PathBuf,
    /// File of the public key.
    pub public: PathBuf,
    /// The public key.
    pub key: PublicKey,
}

/// Makes a key pair in `dir`, which is made too, for one role or for either. Never overwrites: an
/// existing file is a caller's error, as is a name with white space.
pub fn generate(dir: &Path, name: &str, role: Option<Role>) -> Result<Generated, Error> {
    check_name(name).map_err(Error::Caller)?;
    let random = ring::rand::SystemRandom::new();
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&random)
        .map_err(|_| Error::system("generate a key")(io::Error::other("no randomness")))?;
    let key = public_of(pkcs8.as_ref()).map_err(Error::Caller)?;
    DirBuilder::new().recursive(true).mode(0o755).create(dir).map_err(|error| {
        let shown = dir.display();
        let remedy = match error.kind() {
            io::ErrorKind::AlreadyExists => "it is a file: name a directory for the two files",
            _ => "name a directory that this user may write to",
        };
        Error::Caller(format!("cannot make {shown}: {error}: {remedy}"))
    })?;
    // Where others may write, nothing would use them.
    strict::check_place(dir)?;
    let (private, public) = (dir.join(PRIVATE_FILE), dir.join(PUBLIC_FILE));
    create(&private, 0o600, &pem(pkcs8.as_ref()))?;
    create(&public, 0o644, &format!("{}\n", Peer::new(name, key, role)))?;
    Ok(Generated { private, public, key })
}

/// What is in a key file, to be shown: of a private key its public one, of a peer file each line.
///
/// # Errors
/// A file that cannot be read, or has neither.
pub fn show(path: &Path) -> Result<Vec<Shown>, Error> {
    let len = fs::metadata(path).map_err(|error| strict::unreadable(path, &error))?.len();
    if len > MAX_FILE_BYTES {
        let path = path.display();
        return Err(Error::Caller(format!("{path} is {len} bytes: is it a key file?")));
    }
    let text = fs::read_to_string(path).map_err(|error| strict::unreadable(path, &error))?;
    let wrong = |what: String| Error::Caller(format!("{}: {what}", path.display()));
    if text.trim_start().starts_with(PEM_BEGIN) {
        let (_, key) = private_of(&text).map_err(wrong)?;
        return Ok(vec![Shown { name: None, key, role: None }]);
    }
    let peers = Peers::parse(&text).map_err(wrong)?.0;
    let shown = |peer: Peer| Shown { name: Some(peer.name), key: peer.key, role: peer.role };
    Ok(peers.into_iter().map(shown).collect())
}

/// A public key as [`show`] found it.
#[derive(Debug)]
pub struct Shown {
    /// Its name, which a private key does not have.
    pub name: Option<String>,
    /// The key.
    pub key: PublicKey,
    /// What it may be used as, where that is said.
    pub role: Option<Role>,
}

fn create(path: &Path, mode: u32, text: &str) -> Result<(), Error> {
    let doing = format!("write {}", path.display());
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(mode).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let path = path.display();
            return Err(Error::Caller(format!(
                "{path} exists and is not overwritten: name another directory or remove it"
            )));
        }
        result => result.map_err(Error::system(doing.clone()))?,
    };
    file.write_all(text.as_bytes()).map_err(Error::system(doing))
}

/// What the files are in messages.
const PRIVATE: &str = "the private key";
const PEER_FILE: &str = "the peer file";

/// This side's key and those it accepts of the other side.
#[derive(Debug)]
pub struct Identity {
    pub(crate) pkcs8: PrivatePkcs8KeyDer<'static>,
    /// Our public key.
    pub key: PublicKey,
    pub(crate) peers: Peers,
    /// What the other side is.
    pub(crate) other: Role,
    pub(crate) files: Files,
}

/// Where an identity was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) key: PathBuf,
    pub(crate) peer: PathBuf,
}

impl Identity {
    /// Reads both files, which nobody else may have written, for a side whose other side is
    /// `other`; errors name the file, the line and the remedy.
    pub fn load(key: &Path, peer: &Path, other: Role) -> Result<Self, Error> {
        Ok(Self::of((key, load_private(key)?), (peer, load_peers(peer, other)?), other))
    }

    /// What the two files hold.
    pub(crate) fn of(key: (&Path, Private), peer: (&Path, Peers), other: Role) -> Self {
        let files = Files { key: key.0.to_owned(), peer: peer.0.to_owned() };
        let Private { pkcs8, public } = key.1;
        Self { pkcs8, key: public, peers: peer.1, other, files }
    }

    /// The same with the peers that a file has now.
    pub(crate) fn with_peers(&self, peer: &Path) -> Result<Self, Error> {
        let (peers, other, key) = (Peers::load(peer, self.other)?, self.other, self.key);
        Ok(Self { pkcs8: self.pkcs8.clone_key(), key, peers, other, files: self.files.clone() })
    }

    /// What is different in another, in words.
    pub(crate) fn changes(&self, other: &Self) -> Option<String> {
        let without =
            |all: &Peers, few: &Peers| all.0.iter().filter(|peer| !few.0.contains(peer)).count();
        let (added, removed) =
            (without(&other.peers, &self.peers), without(&self.peers, &other.peers));
        let mut what = Vec::new();
        if added + removed > 0 {
            what.push(format!("{added} peers added, {removed} removed"));
        }
        if self.key != other.key {
            what.push(format!("our key is {}", other.key.fingerprint()));
        }
        if self.files != other.files && what.is_empty() {
            what.push("the same keys in other files".to_owned());
        }
        (!what.is_empty()).then(|| what.join(", "))
    }

    /// The private scalar of X25519 that belongs to [`PublicKey::to_x25519`] of our key: the one
    /// that signs (RFC 8032 §5.1.5), which X25519 itself clamps.
    pub(crate) fn to_x25519(&self) -> Option<[u8; 32]> {
        // The seed is an octet string in the octet string of the private key (RFC 8410 §7).
        const BEFORE: [u8; 4] = [0x04, 0x22, 0x04, 0x20];
        let der = self.pkcs8.secret_pkcs8_der();
        let at = der.windows(BEFORE.len()).position(|window| window == BEFORE)? + BEFORE.len();
        let seed = der.get(at..at + 32)?;
        let digest = ring::digest::digest(&ring::digest::SHA512, seed);
        digest.as_ref().first_chunk().copied()
    }

    /// The keys of the other side that are let in, and their names.
    pub(crate) fn admitted(&self) -> impl Iterator<Item = (&str, PublicKey)> {
        let fits = |peer: &&Peer| peer.role.is_none_or(|role| role == self.other);
        self.peers.0.iter().filter(fits).map(|peer| (&*peer.name, peer.key))
    }

    /// The key of the other side with this point of X25519, and its name, if it is let in; else
    /// why it is not.
    pub(crate) fn admit_x25519(&self, point: &[u8; 32]) -> Result<(&str, PublicKey), String> {
        let peer = self.peers.0.iter().find(|peer| peer.x25519.as_ref() == Some(point));
        let Some(peer) = peer else {
            return Err(format!(
                "the other side's key is not among the {} in our --peer file; our own is {}",
                self.peers.0.len(),
                self.key.fingerprint()
            ));
        };
        self.admit(Some(peer.key)).map(|name| (name, peer.key))
    }

    /// The name of the other side's key, if it is let in; else why it is not.
    pub(crate) fn admit(&self, key: Option<PublicKey>) -> Result<&str, String> {
        let (ours, other) = (self.key.fingerprint(), self.other);
        let Some(key) = key else {
            return Err(format!("the other side's key is no Ed25519 key; our own is {ours}"));
        };
        let theirs = key.fingerprint();
        match self.peers.0.iter().find(|peer| peer.key == key) {
            Some(peer) if peer.role.is_none_or(|role| role == other) => Ok(&peer.name),
            Some(Peer { name, role: Some(role), .. }) => Err(format!(
                "the other side's key {theirs} is that of '{name}', in our --peer file as {role} \
                 and not as {other}; our own is {ours}"
            )),
            _ => Err(format!(
                "the other side's key {theirs} is not among the {} in our --peer file; our own is \
                 {ours}",
                self.peers.0.len()
            )),
        }
    }
}

/// A private key, with its public one.
pub(crate) struct Private {
    pkcs8: PrivatePkcs8KeyDer<'static>,
    public: PublicKey,
}

/// Reads this side's key.
pub(crate) fn load_private(key: &Path) -> Result<Private, Error> {
    let mut file = strict::open(key, PRIVATE)?;
    let text = text(key, file.read(MAX_FILE_BYTES)?)?;
    // Before its mode: a public key may be read by others.
    if Peers::parse(&text).is_ok() {
        return Err(Error::Caller(format!(
            "the private key {} is a public key: were key and peer swapped? key is our \
             {PRIVATE_FILE}, peer the other side's {PUBLIC_FILE}",
            key.display()
        )));
    }
    file.check_private()?;
    let (pkcs8, public) = private_of(&text).map_err(|what| {
        Error::Caller(format!("{}: {what}: make one with 'longwire keygen DIR'", key.display()))
    })?;
    Ok(Private { pkcs8, public })
}

/// Reads the other side's keys, for a side whose other side is `other`.
pub(crate) fn load_peers(path: &Path, other: Role) -> Result<Peers, Error> {
    Peers::load(path, other)
}

/// A line of a peer file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    name: String,
    key: PublicKey,
    /// The same, as [`PublicKey::to_x25519`] has it.
    x25519: Option<[u8; 32]>,
    role: Option<Role>,
}

impl Peer {
    fn new(name: &str, key: PublicKey, role: Option<Role>) -> Self {
        Self { name: name.to_owned(), key, x25519: key.to_x25519(), role }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.key)?;
        self.role.map_or(Ok(()), |role| write!(f, " {role}"))
    }
}

/// The keys of a peer file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Peers(Vec<Peer>);

impl Peers {
    /// Reads a peer file for a side whose other side is `other`.
    fn load(path: &Path, other: Role) -> Result<Self, Error> {
        let mut file = strict::open(path, PEER_FILE)?;
        let text = text(path, file.read(MAX_FILE_BYTES)?)?;
        let shown = path.display();
        if text.trim_start().starts_with(PEM_BEGIN) {
            return Err(Error::Caller(format!(
                "the peer file {shown} is a private key: were key and peer swapped? key is our \
                 {PRIVATE_FILE}, peer the other side's {PUBLIC_FILE}"
            )));
        }
        file.check()?;
        let peers = Self::parse(&text).map_err(|what| Error::Caller(format!("{shown}: {what}")))?;
        let fit = |peer: &&Peer| peer.role.is_none_or(|role| role == other);
        if !peers.0.iter().any(|peer| fit(&peer)) {
            return Err(Error::Caller(format!(
                "{shown}: no key of {other} role: copy the {other}'s {PUBLIC_FILE} here"
            )));
        }
        let open = peers.0.iter().filter(|peer| peer.role.is_none()).count();
        if other == Role::Gateway && open > 1 {
            tracing::warn!(
                "{shown} has {open} keys without a role, and who has one of them can pose as the \
                 gateway: write 'gateway' or 'edge' behind each"
            );
        }
        Ok(peers)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut peers: Vec<Peer> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let at = number + 1;
            let wrong = |what: String| format!("line {at}: {what}");
            let words: Vec<&str> = line.split_whitespace().collect();
            let (name, key, role) = match words[..] {
                [name, key] => (name, key, None),
                [name, key, role] => (name, key, Some(role)),
                _ => return Err(wrong(format!("a line is 'NAME {SCHEME}HEX [edge|gateway]'"))),
            };
            let key = parse_key(key).map_err(wrong)?;
            let role = role.map(Role::parse).transpose().map_err(wrong)?;
            if let Some(other) = peers.iter().find(|peer| peer.name == name || peer.key == key) {
                let other = &other.name;
                return Err(wrong(format!("'{name}' repeats the name or key of '{other}'")));
            }
            if peers.len() == MAX_PEERS {
                return Err(wrong(format!("more than {MAX_PEERS} keys")));
            }
            peers.push(Peer::new(name, key, role));
        }
        if peers.is_empty() {
            return Err(format!("no key: copy the other side's {PUBLIC_FILE} here"));
        }
        Ok(Self(peers))
    }
}

/// The private key in a file's text, and its public one.
fn private_of(text: &str) -> Result<(PrivatePkcs8KeyDer<'static>, PublicKey), String> {
    let pkcs8 = PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes())
        .map_err(|_| "no PKCS#8 private key in PEM".to_owned())?;
    let public = public_of(pkcs8.secret_pkcs8_der())?;
    Ok((pkcs8, public))
}

fn parse_key(text: &str) -> Result<PublicKey, String> {
    let bytes = text.strip_prefix(SCHEME).and_then(from_hex).and_then(|b| b.try_into().ok());
    bytes
        .map(PublicKey)
        .ok_or_else(|| format!("'{text}' is no key: {SCHEME} and 64 hexadecimal digits"))
}

fn check_name(name: &str) -> Result<(), String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(fine) {
        return Err(format!("'{name}' is no name: up to 64 letters, digits and - _ . @"));
    }
    Ok(())
}

fn public_of(pkcs8: &[u8]) -> Result<PublicKey, String> {
    let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8)
        .map_err(|error| format!("not an Ed25519 key ({error})"))?;
    let key: Result<[u8; 32], _> = pair.public_key().as_ref().try_into();
    key.map(PublicKey).map_err(|_| "not an Ed25519 key".to_owned())
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, Error> {
    let wrong = |_| Error::Caller(format!("{} is no text: is it a key file?", path.display()));
    String::from_utf8(bytes).map_err(wrong)
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

/// PEM (RFC 7468): base64 in lines of 64.
fn pem(der: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in der.chunks(3) {
        let at = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4_usize {
            let index = (bits >> (18 - 6 * place)) & 63;
            let padding = place > group.len();
            text.push(if padding { '=' } else { char::from(ALPHABET[index as usize]) });
        }
    }
    let mut pem = "-----BEGIN PRIVATE KEY-----\n".to_owned();
    for line in text.as_bytes().chunks(64) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem + "-----END PRIVATE KEY-----\n"
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
