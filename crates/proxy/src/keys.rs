//! Keys of the two sides: Ed25519, named and pinned, no authority in between.
//!
//! A private key is PKCS#8 in PEM (RFC 8410). A public key is one line, `NAME ed25519:HEX`, and a
//! peer file is any number of such lines; `#` begins a comment.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use ring::signature::{Ed25519KeyPair, KeyPair as _};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;

use crate::Error;

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

/// Makes a key pair in `dir`, which is made too. Never overwrites: an existing file is a caller's
/// error, as is a name with white space.
pub fn generate(dir: &Path, name: &str) -> Result<Generated, Error> {
    check_name(name).map_err(Error::Caller)?;
    let random = ring::rand::SystemRandom::new();
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&random)
        .map_err(|_| Error::system("generate a key")(io::Error::other("no randomness")))?;
    let key = public_of(pkcs8.as_ref()).map_err(Error::Caller)?;
    fs::create_dir_all(dir).map_err(|error| {
        let shown = dir.display();
        let remedy = "name a directory that this user may write to";
        Error::Caller(format!("cannot make {shown}: {error}: {remedy}"))
    })?;
    let (private, public) = (dir.join(PRIVATE_FILE), dir.join(PUBLIC_FILE));
    create(&private, 0o600, &pem(pkcs8.as_ref()))?;
    create(&public, 0o644, &format!("{name} {key}\n"))?;
    Ok(Generated { private, public, key })
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

/// This side's key and those it accepts of the other side.
#[derive(Debug)]
pub struct Identity {
    pub(crate) pkcs8: PrivatePkcs8KeyDer<'static>,
    /// Our public key.
    pub key: PublicKey,
    pub(crate) peers: Peers,
}

impl Identity {
    /// Reads both files; errors name the file, the line and the remedy.
    pub fn load(key: &Path, peer: &Path) -> Result<Self, Error> {
        let mode = fs::metadata(key).map_err(|error| unreadable(key, &error))?.permissions().mode();
        if mode & 0o077 != 0 {
            let (path, mode) = (key.display(), mode & 0o777);
            return Err(Error::Caller(format!(
                "the private key {path} may be read by others (mode {mode:04o}): chmod 600 {path}"
            )));
        }
        let wrong = |what: &str| {
            Error::Caller(format!("{}: {what}: make one with 'longwire keygen DIR'", key.display()))
        };
        let pkcs8 = PrivatePkcs8KeyDer::from_pem_slice(read(key)?.as_bytes())
            .map_err(|_| wrong("no PKCS#8 private key in PEM"))?;
        let public = public_of(pkcs8.secret_pkcs8_der()).map_err(|what| wrong(&what))?;
        let peers = Peers::parse(&read(peer)?)
            .map_err(|what| Error::Caller(format!("{}: {what}", peer.display())))?;
        Ok(Self { pkcs8, key: public, peers })
    }
}

/// Keys by name.
#[derive(Debug)]
pub(crate) struct Peers(Vec<(String, PublicKey)>);

impl Peers {
    fn parse(text: &str) -> Result<Self, String> {
        let mut peers: Vec<(String, PublicKey)> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let at = number + 1;
            let wrong = |what: String| format!("line {at}: {what}");
            let (name, key) = line
                .split_once(char::is_whitespace)
                .ok_or_else(|| wrong(format!("a line is 'NAME {SCHEME}HEX'")))?;
            let key = parse_key(key.trim()).map_err(wrong)?;
            if let Some((other, _)) = peers.iter().find(|(n, k)| n == name || *k == key) {
                return Err(wrong(format!("'{name}' repeats the name or key of '{other}'")));
            }
            if peers.len() == MAX_PEERS {
                return Err(wrong(format!("more than {MAX_PEERS} keys")));
            }
            peers.push((name.to_owned(), key));
        }
        if peers.is_empty() {
            return Err(format!("no key: copy the other side's {PUBLIC_FILE} here"));
        }
        Ok(Self(peers))
    }

    pub(crate) fn name_of(&self, key: PublicKey) -> Option<&str> {
        self.0.iter().find(|(_, known)| *known == key).map(|(name, _)| name.as_str())
    }

    /// Names and fingerprints, for an error message.
    pub(crate) fn describe(&self) -> String {
        let known: Vec<String> =
            self.0.iter().map(|(name, key)| format!("{name} {}", key.fingerprint())).collect();
        known.join(", ")
    }
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

fn read(path: &Path) -> Result<String, Error> {
    let len = fs::metadata(path).map_err(|error| unreadable(path, &error))?.len();
    if len > MAX_FILE_BYTES {
        return Err(Error::Caller(format!(
            "{} is {len} bytes, over the limit of {MAX_FILE_BYTES}: is it a key file?",
            path.display()
        )));
    }
    fs::read_to_string(path).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::Caller(format!("cannot read {}: {error}", path.display()))
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
mod tests;
