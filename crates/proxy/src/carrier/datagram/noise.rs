//! The handshake by which two pinned keys make a session's: Noise_IK_25519_ChaChaPoly_BLAKE2s.
//!
//! The pinned keys are Ed25519's, in the form that X25519 has ([`PublicKey::to_x25519`]).

use proto::sealed::{
    CONNECTION_BYTES, FIRST_MESSAGE_BYTES, Granted, RESET_BYTES, SECOND_MESSAGE_BYTES, Said,
    TOKEN_BYTES,
};
use ring::hmac;
use snow::{Builder, HandshakeState};

use super::seal::{Opener, Sealer};
use crate::keys::{Identity, PublicKey};

const PATTERN: &str = "Noise_IK_25519_ChaChaPoly_BLAKE2s";
/// What both sides mean to speak; a token follows where one was given out.
const PROLOGUE: &[u8] = b"longwire datagrams 1";

fn builder<'a>(prologue: &'a [u8], private: &'a [u8; 32]) -> Option<Builder<'a>> {
    let builder = Builder::new(PATTERN.parse().ok()?);
    builder.prologue(prologue).ok()?.local_private_key(private).ok()
}

fn prologue(token: Option<&[u8; TOKEN_BYTES]>) -> Vec<u8> {
    [PROLOGUE, token.map_or(&[], |token| &token[..])].concat()
}

/// Who dials, after its first message.
pub(super) struct Dialling {
    state: HandshakeState,
    pub(super) message: [u8; FIRST_MESSAGE_BYTES],
    /// Seals until the answer is here.
    pub(super) early: Sealer,
}

impl Dialling {
    /// Begins a handshake with whoever has this key.
    pub(super) fn new(
        identity: &Identity,
        to: PublicKey,
        said: Said,
        token: Option<&[u8; TOKEN_BYTES]>,
    ) -> Option<Self> {
        let (private, prologue) = (identity.to_x25519()?, prologue(token));
        let to = to.to_x25519()?;
        let builder = builder(&prologue, &private)?;
        let mut state = builder.remote_public_key(&to).ok()?.build_initiator().ok()?;
        let mut message = [0; FIRST_MESSAGE_BYTES];
        let written = state.write_message(&said.encode(), &mut message).ok()?;
        let (early, _) = state.dangerously_get_raw_split();
        let early = Sealer::new(early).filter(|_| written == FIRST_MESSAGE_BYTES)?;
        Some(Self { state, message, early })
    }

    /// The answer came: what it grants, and both ways of the session. `None` where it is not of the
    /// one that was dialled, or not to this: another may come.
    pub(super) fn finish(
        &mut self,
        answer: &[u8; SECOND_MESSAGE_BYTES],
    ) -> Option<(Granted, Sealer, Opener)> {
        let mut granted = [0; SECOND_MESSAGE_BYTES];
        let read = self.state.read_message(answer, &mut granted).ok()?;
        let granted = Granted::decode(granted.get(..read)?).ok()?;
        let (ours, theirs) = self.state.dangerously_get_raw_split();
        Some((granted, Sealer::new(ours)?, Opener::new(theirs)?))
    }
}

/// A first message that was read.
pub(super) struct Dialled {
    state: HandshakeState,
    /// Who dials: the key that it has proved to have.
    pub(super) point: [u8; 32],
    pub(super) said: Said,
    /// Opens what is sealed until the answer is there.
    pub(super) early: Opener,
}

impl Dialled {
    /// Reads a first message. `None` for one that is not to this side's key.
    pub(super) fn new(
        identity: &Identity,
        message: &[u8; FIRST_MESSAGE_BYTES],
        token: Option<&[u8; TOKEN_BYTES]>,
    ) -> Option<Self> {
        let (private, prologue) = (identity.to_x25519()?, prologue(token));
        let mut state = builder(&prologue, &private)?.build_responder().ok()?;
        let mut said = [0; FIRST_MESSAGE_BYTES];
        let read = state.read_message(message, &mut said).ok()?;
        let said = Said::decode(said.get(..read)?).ok()?;
        let point = state.get_remote_static()?.try_into().ok()?;
        let (early, _) = state.dangerously_get_raw_split();
        Some(Self { state, point, said, early: Opener::new(early)? })
    }

    /// The answer, which grants this, and both ways of the session; behind them that of before.
    pub(super) fn answer(
        mut self,
        granted: Granted,
    ) -> Option<([u8; SECOND_MESSAGE_BYTES], Sealer, Opener, Opener)> {
        let mut answer = [0; SECOND_MESSAGE_BYTES];
        let written = self.state.write_message(&granted.encode(), &mut answer).ok()?;
        let (theirs, ours) = self.state.dangerously_get_raw_split();
        let ways = (answer, Sealer::new(ours)?, Opener::new(theirs)?, self.early);
        (written == SECOND_MESSAGE_BYTES).then_some(ways)
    }
}

/// Makes reset tokens: the same for a connection as long as this side has its key, whatever it has
/// forgotten.
pub(super) struct Resets(hmac::Key);

impl Resets {
    pub(super) fn new(identity: &Identity) -> Option<Self> {
        let secret = identity.to_x25519()?;
        let root = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let key = hmac::sign(&root, b"longwire reset tokens");
        Some(Self(hmac::Key::new(hmac::HMAC_SHA256, key.as_ref())))
    }

    pub(super) fn token(&self, connection: [u8; CONNECTION_BYTES]) -> [u8; RESET_BYTES] {
        let mut token = [0; RESET_BYTES];
        token.copy_from_slice(&hmac::sign(&self.0, &connection).as_ref()[..RESET_BYTES]);
        token
    }
}
