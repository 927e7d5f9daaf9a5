//! Sealing datagrams, and opening them once.

use bytes::Bytes;
use proto::sealed::{TAG_BYTES, Window};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

/// A key seals so many datagrams, as a power of two; then another is made of it, and who gets hold
/// of that one reads nothing before it.
const EPOCH_LOG: u32 = 20;
const KEY_BYTES: usize = 32;

/// A key, and of which epoch.
struct Key {
    bytes: [u8; KEY_BYTES],
    aead: LessSafeKey,
    epoch: u64,
}

impl Key {
    fn new(bytes: [u8; KEY_BYTES], epoch: u64) -> Option<Self> {
        let unbound = UnboundKey::new(&CHACHA20_POLY1305, &bytes).ok()?;
        Some(Self { bytes, aead: LessSafeKey::new(unbound), epoch })
    }

    /// The key of the next epoch (Noise §4.2, REKEY).
    fn next(&self) -> Option<Self> {
        let mut zeros = [0; KEY_BYTES];
        self.aead
            .seal_in_place_separate_tag(nonce(u64::MAX), Aad::empty(), &mut zeros)
            .ok()
            .and_then(|_| Self::new(zeros, self.epoch + 1))
    }
}

/// Noise's nonce of ChaCha20-Poly1305 (§12.3).
fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}

fn epoch(number: u64) -> u64 {
    number >> EPOCH_LOG
}

/// Seals what one side sends.
pub(super) struct Sealer {
    key: Key,
    next: u64,
}

impl Sealer {
    pub(super) fn new(key: [u8; KEY_BYTES]) -> Option<Self> {
        Some(Self { key: Key::new(key, 0)?, next: 0 })
    }

    /// The number of the next datagram, of which the last 24 bits are sent.
    pub(super) fn number(&self) -> u32 {
        u32::try_from(self.next & 0xff_ffff).unwrap_or(0)
    }

    /// Puts a datagram behind its head, sealed. `None` where the key can seal no more.
    pub(super) fn seal(&mut self, mut head: Vec<u8>, datagram: &[u8]) -> Option<Vec<u8>> {
        if epoch(self.next) > self.key.epoch {
            self.key = self.key.next()?;
        }
        let from = head.len();
        head.extend_from_slice(datagram);
        let (aad, sealed) = head.split_at_mut(from);
        let number = nonce(self.next);
        let tag = self.key.aead.seal_in_place_separate_tag(number, Aad::from(&*aad), sealed);
        head.extend_from_slice(tag.ok()?.as_ref());
        self.next += 1;
        Some(head)
    }
}

/// Opens what the other side sealed.
pub(super) struct Opener {
    /// The key of the latest epoch of which something came, and the one before.
    key: Key,
    before: Option<Key>,
    window: Window,
}

/// A datagram that was opened.
pub(super) struct Opened {
    pub(super) datagram: Bytes,
    /// None came that left later.
    pub(super) is_latest: bool,
}

/// Why a datagram is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is none of ours: of no type that there is, or cut off.
    Unreadable,
    /// It came before, or is too old to tell.
    Repeated,
    /// The other side did not seal it.
    Forged,
}

impl Refused {
    /// As metrics and the log have it.
    pub(super) fn why(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Repeated => "repeated",
            Self::Forged => "forged",
        }
    }
}

impl Opener {
    pub(super) fn new(key: [u8; KEY_BYTES]) -> Option<Self> {
        Some(Self { key: Key::new(key, 0)?, before: None, window: Window::default() })
    }

    /// What a datagram holds behind `head` bytes, whose number ends with these bits.
    ///
    /// # Errors
    /// One that came before or is too old to tell, or that the other side did not seal.
    pub(super) fn open(
        &mut self,
        datagram: &[u8],
        head: usize,
        bits: u32,
    ) -> Result<Opened, Refused> {
        let number = self.window.number(bits);
        if self.window.is_read(number) {
            return Err(Refused::Repeated);
        }
        let opened = self.opened(datagram, head, number).ok_or(Refused::Forged)?;
        let is_latest = self.window.note(number);
        Ok(Opened { datagram: opened.into(), is_latest })
    }

    /// What it holds, and from then on the key of its epoch; `None` with no key of ours.
    fn opened(&mut self, datagram: &[u8], head: usize, number: u64) -> Option<Vec<u8>> {
        let (aad, sealed) = datagram.split_at_checked(head)?;
        let (epoch, mut next) = (epoch(number), None);
        let key = match epoch.checked_sub(self.key.epoch) {
            Some(0) => &self.key,
            Some(1) => &*next.insert(self.key.next()?),
            Some(_) => return None,
            None => self.before.as_ref().filter(|before| before.epoch == epoch)?,
        };
        let mut plain = sealed.to_vec();
        let aad = Aad::from(aad);
        key.aead.open_in_place(nonce(number), aad, &mut plain).ok()?;
        plain.truncate(sealed.len() - TAG_BYTES);
        if let Some(next) = next {
            self.before = Some(std::mem::replace(&mut self.key, next));
        }
        Some(plain)
    }
}

/// The bytes of keys are of use to nobody who finds them in memory later.
impl Drop for Key {
    fn drop(&mut self) {
        self.bytes.fill(0);
        std::hint::black_box(&self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Sealer, Opener) {
        (Sealer::new([7; 32]).unwrap(), Opener::new([7; 32]).unwrap())
    }

    #[test]
    fn what_was_sealed_is_read_once_and_nothing_else_is() {
        let (mut sealer, mut opener) = pair();
        let bits = sealer.number();
        let sealed = sealer.seal(b"head".to_vec(), b"a message").unwrap();
        assert_eq!(sealed.len(), 4 + 9 + TAG_BYTES);
        for at in 0..sealed.len() {
            let mut forged = sealed.clone();
            forged[at] ^= 1;
            assert_eq!(opener.open(&forged, 4, bits).err(), Some(Refused::Forged), "{at}");
        }
        assert!(opener.open(&sealed, 4, bits + 1).is_err());
        for cut in 0..sealed.len() {
            assert_eq!(opener.open(&sealed[..cut], 4, bits).err(), Some(Refused::Forged), "{cut}");
        }
        let opened = opener.open(&sealed, 4, bits).unwrap();
        assert_eq!(&opened.datagram[..], b"a message");
        assert!(opened.is_latest);
        assert_eq!(opener.open(&sealed, 4, bits).err(), Some(Refused::Repeated));
    }

    #[test]
    fn another_key_takes_over_and_what_is_late_is_read_with_the_one_before() {
        let (mut sealer, mut opener) = pair();
        let end = 1 << EPOCH_LOG;
        sealer.next = end - 2;
        // The window has seen what was sent so far.
        opener.window.note(end - 3);
        let mut all: Vec<_> =
            (0..4).map(|_| (sealer.number(), sealer.seal(Vec::new(), b"x").unwrap())).collect();
        assert_eq!(sealer.key.epoch, 1);
        all.swap(1, 2);
        for (bits, sealed) in &all {
            assert!(opener.open(sealed, 0, *bits).is_ok(), "{bits}");
        }
        assert!(all.iter().all(|(bits, sealed)| opener.open(sealed, 0, *bits).is_err()));
    }
}
