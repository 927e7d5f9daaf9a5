//! Who has signed a profile.

use std::fmt;
use std::sync::Arc;

use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

use super::{Partner, Profile, Signature};
use crate::key::{Key, to_hex};

/// What stands before the canonical form in what is signed: a signature of a profile is one of
/// nothing else.
const CONTEXT: &str = "longwire federation profile 1\n";

/// How a partner stands to a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has signed this profile.
    Signed,
    /// It has not.
    Missing,
    /// There is a signature, of another text.
    Wrong,
    /// There is a signature by a key that is not the partner's here.
    OtherKey,
    /// Its key is revoked.
    Revoked,
}

impl Standing {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Signed => "signed",
            Self::Missing => "not signed",
            Self::Wrong => "signed another text",
            Self::OtherKey => "signed by another key",
            Self::Revoked => "key revoked",
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A private key.
pub struct Signer(Ed25519KeyPair);

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Signer").field(&self.key()).finish()
    }
}

impl Signer {
    /// Reads a key in PKCS#8 (RFC 8410), as DER.
    ///
    /// # Errors
    /// It is none of Ed25519.
    pub fn of_pkcs8(der: &[u8]) -> Result<Self, String> {
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der);
        pair.map(Self).map_err(|error| format!("not an Ed25519 key ({error})"))
    }

    /// Its public key.
    #[must_use]
    pub fn key(&self) -> Key {
        let mut key = [0; 32];
        key.iter_mut().zip(self.0.public_key().as_ref()).for_each(|(to, from)| *to = *from);
        Key(key)
    }
}

impl Profile {
    fn signed_bytes(&self) -> Vec<u8> {
        [CONTEXT.as_bytes(), self.canonical().as_bytes()].concat()
    }

    /// How each partner stands to it; `revoked` are keys that count no more besides those that the
    /// profile names.
    #[must_use]
    pub fn standing(&self, revoked: &[Key]) -> Vec<(&Partner, Standing)> {
        let bytes = self.signed_bytes();
        let of = |partner: &Partner| {
            let has_gone = |key: &Key| {
                revoked.contains(key) || self.revoked.iter().any(|revoked| revoked.key == *key)
            };
            if has_gone(&partner.key) {
                return Standing::Revoked;
            }
            let found = self.signatures.iter().find(|it| *it.partner == *partner.name);
            let Some(signature) = found else { return Standing::Missing };
            if signature.key != partner.key {
                let is_gone = has_gone(&signature.key);
                return if is_gone { Standing::Revoked } else { Standing::OtherKey };
            }
            let key = UnparsedPublicKey::new(&ED25519, partner.key.0);
            match key.verify(&bytes, &signature.value) {
                Ok(()) => Standing::Signed,
                Err(_) => Standing::Wrong,
            }
        };
        self.partners.iter().map(|partner| (partner, of(partner))).collect()
    }

    /// Nothing, if all partners have signed; else who has not, in words.
    ///
    /// # Errors
    /// Each partner that has not, and why.
    pub fn is_signed_by_all(&self, revoked: &[Key]) -> Result<(), String> {
        let missing: Vec<String> = self
            .standing(revoked)
            .into_iter()
            .filter(|(_, standing)| *standing != Standing::Signed)
            .map(|(partner, standing)| format!("{} ({standing})", partner.name))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let Self { name, version, .. } = self;
        Err(format!("profile {name} version {version} is not signed by {}", missing.join(", ")))
    }
}

/// Signs the profile in a file's text, as the partner whose key it is: the same text with a
/// `[[signature]]` behind it, in place of one that the partner had there. Who has signed, too.
///
/// # Errors
/// The key is no partner's, or revoked; an older signature does not stand where it can be replaced.
pub fn sign(profile: &Profile, text: &str, signer: &Signer) -> Result<(String, Arc<str>), String> {
    let key = signer.key();
    if profile.revoked.iter().any(|revoked| revoked.key == key) {
        return Err(format!("{key} is revoked: sign with another key"));
    }
    let Some(partner) = profile.partners.iter().find(|partner| partner.key == key) else {
        let names: Vec<&str> = profile.partners.iter().map(|partner| &*partner.name).collect();
        let names = names.join(", ");
        return Err(format!("{key} is the key of no partner: they are {names}"));
    };
    let value = signer.0.sign(&profile.signed_bytes()).as_ref().to_vec();
    let signature = Signature { partner: partner.name.to_string(), key, value };
    let mut text = without(text, profile, &partner.name)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&block(&signature));
    Ok((text, partner.name.clone()))
}

fn block(signature: &Signature) -> String {
    let Signature { partner, key, value } = signature;
    let value = to_hex(value);
    format!("\n[[signature]]\npartner = \"{partner}\"\nkey = \"{key}\"\nvalue = \"{value}\"\n")
}

/// A text without a partner's signature, which has to stand as [`block`] writes it.
fn without(text: &str, profile: &Profile, partner: &str) -> Result<String, String> {
    let Some(old) = profile.signatures.iter().find(|it| it.partner == partner) else {
        return Ok(text.to_owned());
    };
    let old = block(old);
    if !text.contains(&old) {
        return Err(format!(
            "{partner} has signed before, not as 'longwire federation sign' writes it: take that \
             [[signature]] away first"
        ));
    }
    Ok(text.replacen(&old, "", 1))
}
