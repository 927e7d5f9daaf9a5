//! The files of a federation: profiles, lists of keys, and the key that somebody signs with.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use federation::{Key, MAX_PROFILE_BYTES, Profile, Signer, keys_of, parse};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;

use crate::error::Error;

/// Largest file with keys, in bytes.
const MAX_KEYS_BYTES: usize = 256 << 10;

/// The text of a file of at most so many bytes.
///
/// # Errors
/// It cannot be read, is longer, or is no text in UTF-8.
pub fn read_text(path: &Path, max_bytes: usize) -> Result<String, Error> {
    let shown = path.display();
    let unreadable = |error| Error::Caller(format!("cannot read {shown}: {error}"));
    let file = fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(max_bytes as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > max_bytes {
        return Err(Error::Caller(format!("{shown} has more than {max_bytes} bytes, the limit")));
    }
    String::from_utf8(bytes)
        .map_err(|_| Error::Caller(format!("{shown} is no text in UTF-8: is it the right file?")))
}

/// The text of a profile's file.
///
/// # Errors
/// As [`read_text`].
pub fn read_profile_text(path: &Path) -> Result<String, Error> {
    read_text(path, MAX_PROFILE_BYTES)
}

/// A profile that is sound.
///
/// # Errors
/// The file cannot be read, or the first of its faults.
pub fn read_profile(path: &Path) -> Result<Profile, Error> {
    let text = read_profile_text(path)?;
    let shown = path.display().to_string();
    parse(&shown, &text).map_err(|faults| {
        let mut lines = faults.lines();
        let first = lines.next().unwrap_or_default();
        let more = match lines.count() {
            0 => String::new(),
            more => format!(" ({more} more: longwire federation check {shown})"),
        };
        Error::Caller(first + &more)
    })
}

/// Keys that count no more, from a file that may be none.
///
/// # Errors
/// The file cannot be read, or a line of it names no key.
pub fn read_keys(path: Option<&Path>) -> Result<Vec<Key>, Error> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let text = read_text(path, MAX_KEYS_BYTES)?;
    keys_of(&text).map_err(|what| Error::Caller(format!("{}: {what}", path.display())))
}

/// Whether a profile has the key of `own` that its operator has in a file: signatures are checked
/// against keys that the profile itself names, so that one key is to be known from elsewhere.
/// Without a file only an unsigned profile passes; `what` names the option.
///
/// # Errors
/// There is no file, it has not one key, or the profile has another.
pub fn check_key(
    profile: &Profile,
    own: &str,
    path: Option<&Path>,
    unsigned: bool,
    what: &str,
) -> Result<(), Error> {
    let Some(path) = path else {
        if unsigned {
            return Ok(());
        }
        let text = "the own public key is needed, since a profile names its keys itself: \
                    key = \"FILE\", the longwire.pub of longwire keygen";
        return Err(Error::Caller(format!("{what}: {text}")));
    };
    let shown = path.display();
    let keys = read_keys(Some(path))?;
    let [key] = keys.as_slice() else {
        let text = format!("{what}: {shown} has {} keys: one is needed, {own}'s own", keys.len());
        return Err(Error::Caller(text));
    };
    match profile.partner(own) {
        Some(partner) if partner.key == *key => Ok(()),
        _ => {
            let Profile { name, version, .. } = profile;
            let text = format!(
                "{what}: profile {name} version {version} has another key for {own} than {shown}: \
                 somebody else has made it, or the file is an older key"
            );
            Err(Error::Caller(text))
        }
    }
}

/// The key that somebody signs with, in PKCS#8 in PEM, as `longwire keygen` writes it.
///
/// # Errors
/// The file cannot be read, others may read it too, or it has no such key.
pub fn read_signer(path: &Path) -> Result<Signer, Error> {
    let shown = path.display();
    let text = read_text(path, MAX_KEYS_BYTES)?;
    let mode = fs::metadata(path).map(|data| data.permissions().mode()).unwrap_or_default();
    if mode & 0o077 != 0 {
        let text = format!("{shown} can be read by others: chmod 600 it, or make a new key");
        return Err(Error::Caller(text));
    }
    let der = PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes()).map_err(|_| {
        let what = "has no private key in PEM: name the longwire.key of longwire keygen";
        Error::Caller(format!("{shown} {what}"))
    })?;
    let signer = Signer::of_pkcs8(der.secret_pkcs8_der());
    signer.map_err(|what| Error::Caller(format!("{shown}: {what}")))
}
