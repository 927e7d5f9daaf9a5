//! What outlives a relay: dictionaries with whom they serve and schemas, as bytes that the shell
//! keeps, and the names by which edges and principals are known when they come again.
//!
//! Instances, and the numbers of principals, end with an edge. So one that has a [`Secret`] gives
//! names: hashes of its peer and of who asks, by a key that nobody else has. Whoever reads what is
//! kept finds a name where a credential was, and has nothing to try passwords against; whoever does
//! not know an edge's name gets nothing of its principals' dictionaries. A gateway knows an edge by
//! the name that it says and by that of the peer it comes as, both.
//!
//! A dictionary is of messages without what is secret in them, but it is somebody's all the same:
//! the shell keeps it so that only its owner can read it. The samples of the next one are not kept:
//! it is made of later messages only ([`crate::dictionaries`]).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use codec::dictionary::{DISTILLED_BYTES, Id, Kept};
use codec::infoset::{PARCEL_BYTES, Vocabulary};
use proto::stream::{Keeping, Role};
use proto::varint;

use crate::Relay;
use crate::api::{CarrierId, Output};
use crate::bases::Context;
use crate::config::MAX_PRINCIPALS;
use crate::dictionaries::Made;

/// Names have this bit; instances, as scopes, and numbers of principals (RFC 9000 §16) have it not.
const NAMED: u64 = 1 << 63;
/// Version of the bytes; another one is refused.
const VERSION: u8 = 1;
/// What the bytes are of: of this side's messages, of a peer's.
const MADE: u8 = 1;
const HELD: u8 = 2;
/// A schema of a peer's.
const SCHEMA: u8 = 3;
/// Dictionaries of a service with a longer name do not outlive the relay.
const MAX_SERVICE_BYTES: usize = 1024;
const SHORT: &str = "it ends early";

/// What an edge's names are made with: drawn once, and kept by the shell as a private key is.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// One that was drawn at random.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Of this edge towards a peer.
    pub(crate) fn of_edge(&self, peer: &str) -> u64 {
        self.name(b"edge", Id::of(peer.as_bytes()))
    }

    /// Of who asks.
    pub(crate) fn of_principal(&self, principal: Id) -> u64 {
        self.name(b"asks", principal)
    }

    fn name(&self, what: &[u8; 4], of: Id) -> u64 {
        // All that is hashed has one length, so a hash says nothing of a longer one.
        let hash = Id::of(&[&self.0[..], &what[..], &of.0[..]].concat());
        u64::from_be_bytes(hash.short()) | NAMED
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// On whose behalf an exchange is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Principal {
    /// Counted by the edge's instance.
    pub(crate) number: u64,
    /// Its name, or its number where it has none.
    pub(crate) known_as: u64,
}

/// A peer as what is learned of its path is kept under: by its name alone. An edge may say what it
/// likes of itself, so that counts for nothing here.
pub(crate) fn peer_id(peer: &str) -> u64 {
    u64::from_be_bytes(Id::of(peer.as_bytes()).short())
}

/// An edge that has no name is one until it ends. Who says the same instance by another key is
/// another.
pub(crate) fn of_instance(peer: &str, instance: u64) -> u64 {
    let both = Id::of(&[peer.as_bytes(), &instance.to_be_bytes()].concat());
    u64::from_be_bytes(both.short()) & !NAMED
}

/// Takes a principal's name; what it was before. Both sides drop the same one for it, and say it
/// again when it comes.
fn remember(names: &mut BTreeMap<u64, u64>, principal: u64, name: u64) -> Option<u64> {
    if names.len() >= MAX_PRINCIPALS && !names.contains_key(&principal) {
        names.pop_first();
    }
    names.insert(principal, name)
}

/// Whether what has this scope can outlive the edge's process.
pub(crate) fn lasts(scope: Option<u64>) -> bool {
    scope.is_some_and(|scope| scope & NAMED != 0)
}

impl Relay {
    /// Whose dictionaries a carrier has to do with: an edge's, as it lasts.
    pub(crate) fn scope(&self, carrier: CarrierId) -> Option<u64> {
        self.carriers.get(&carrier)?.scope
    }

    /// The peer said HELLO: an edge says who it was before.
    pub(crate) fn introduce(&mut self, now: Duration, id: CarrierId, instance: u64) {
        match self.config.role {
            Role::Edge => self.say_name(now, id),
            Role::Gateway => {
                if let Some(carrier) = self.carriers.get_mut(&id) {
                    carrier.scope = Some(of_instance(&carrier.peer, instance));
                }
            }
        }
        self.greet_shelf(now, id);
    }

    /// Edge: says who it was before, once on each carrier.
    pub(crate) fn say_name(&mut self, now: Duration, id: CarrierId) {
        let has_name = self.config.secret.is_some();
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        let goes = has_name && !carrier.named && carrier.may_know(codec::Options::DICTIONARY);
        if let Some(name) = carrier.scope.filter(|_| goes) {
            carrier.named = true;
            self.send(now, id, Keeping::Name { principal: 0, name }.frame());
        }
    }

    /// Edge: says by which name a principal is known, once on each carrier.
    pub(crate) fn introduce_principal(&mut self, now: Duration, id: CarrierId, who: Principal) {
        let Principal { number: principal, known_as: name } = who;
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        let goes = name & NAMED != 0 && carrier.may_know(codec::Options::DICTIONARY);
        if goes && remember(&mut carrier.names, principal, name) != Some(name) {
            self.send(now, id, Keeping::Name { principal, name }.frame());
        }
    }

    /// Gateway: an edge has said a name.
    pub(crate) fn named(&mut self, now: Duration, id: CarrierId, principal: u64, name: u64) {
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        let name = name | NAMED;
        if principal != 0 {
            remember(&mut carrier.names, principal, name);
            return;
        }
        if lasts(carrier.scope) {
            return self.ignore(now, id, "name", "the edge has said another before");
        }
        let both = Id::of(&[carrier.peer.as_bytes(), &name.to_be_bytes()].concat());
        carrier.scope = Some(u64::from_be_bytes(both.short()) | NAMED);
        self.greet_shelf(now, id);
    }

    /// Has a dictionary of this side's kept.
    pub(crate) fn store_made(&mut self, scope: u64, context: &Context, made: &Made) {
        if context.service.len() > MAX_SERVICE_BYTES {
            return;
        }
        let mut bytes = head(MADE, scope);
        bytes.extend_from_slice(&context.principal.to_be_bytes());
        varint::encode(u64::from(made.version), &mut bytes);
        varint::encode_bytes(context.service.as_bytes(), &mut bytes);
        varint::encode_bytes(&made.parcel, &mut bytes);
        bytes.extend_from_slice(made.kept.content());
        let name = name_of_made(scope, context);
        self.outputs.push_back(Output::Store { name, bytes: bytes.into() });
    }

    /// Has a peer's dictionary kept.
    pub(crate) fn store_held(&mut self, scope: u64, kept: &Kept) {
        let mut bytes = head(HELD, scope);
        bytes.extend_from_slice(kept.content());
        let name = name_of_held(scope, kept.id());
        self.outputs.push_back(Output::Store { name, bytes: bytes.into() });
    }

    /// Has a peer's schema kept.
    pub(crate) fn store_schema(&mut self, peer: u64, vocabulary: &Vocabulary) {
        let (Some(id), Some(parcel)) = (vocabulary.name(), vocabulary.parcel()) else { return };
        let bytes = [&head(SCHEMA, peer)[..], &id, parcel].concat().into();
        self.outputs.push_back(Output::Store { name: name_of_schema(peer, id), bytes });
    }

    /// What is not held any more need not be kept either: so no peer drives out what others sent.
    pub(crate) fn forget_dictionaries(&mut self) {
        let gone = self.dictionaries.gone.drain(..).map(|name| Output::Forget { name });
        self.outputs.extend(gone);
    }

    /// Takes a dictionary or a schema that [`Output::Store`] gave to keep under this name; of
    /// several the one that was used last comes last. It is used again once it is agreed with the
    /// peer anew.
    ///
    /// # Errors
    /// What is no such thing, or another's; nothing is taken of it.
    pub fn restore_dictionary(&mut self, name: [u8; 32], bytes: &[u8]) -> Result<(), &'static str> {
        let (&[version, kind], rest) = bytes.split_first_chunk().ok_or(SHORT)?;
        if version != VERSION {
            return Err("it is of another version of longwire");
        }
        let (scope, mut rest) = rest.split_first_chunk().ok_or(SHORT)?;
        let scope = u64::from_be_bytes(*scope);
        let context = match kind {
            MADE => Some(context(&mut rest)?),
            HELD => None,
            SCHEMA => return self.restore_schema(name, scope, rest),
            _ => return Err("it is of an unknown kind"),
        };
        if rest.is_empty() || rest.len() > DISTILLED_BYTES {
            return Err("a dictionary has no such length");
        }
        let kept = Arc::new(Kept::new(rest));
        let expected = match &context {
            Some((context, ..)) => name_of_made(scope, context),
            None => name_of_held(scope, kept.id()),
        };
        if expected != name {
            return Err("it has the name of another");
        }
        match context {
            Some((context, version, parcel)) => {
                self.dictionaries.restore(scope, &context, Made { kept, version, parcel });
            }
            None => {
                self.dictionaries.hold(scope, kept);
            }
        }
        Ok(())
    }

    fn restore_schema(
        &mut self,
        name: [u8; 32],
        peer: u64,
        bytes: &[u8],
    ) -> Result<(), &'static str> {
        let (&id, parcel) = bytes.split_first_chunk().ok_or(SHORT)?;
        if parcel.is_empty() || parcel.len() > PARCEL_BYTES {
            return Err("a schema has no such length");
        }
        if name_of_schema(peer, id) != name {
            return Err("it has the name of another");
        }
        self.schemas.hold(peer, Arc::new(Vocabulary::of_parcel(id, parcel.to_vec())));
        Ok(())
    }
}

fn head(kind: u8, scope: u64) -> Vec<u8> {
    let mut bytes = vec![VERSION, kind];
    bytes.extend_from_slice(&scope.to_be_bytes());
    bytes
}

/// Whose a dictionary of this side's is, its version and its parcel.
fn context(rest: &mut &[u8]) -> Result<(Context, u32, Bytes), &'static str> {
    let wrong = |_| SHORT;
    let (principal, behind) = rest.split_first_chunk().ok_or(SHORT)?;
    *rest = behind;
    let version = varint::decode(rest, "a version").map_err(wrong)?;
    let version = u32::try_from(version).map_err(|_| "a version is greater than any")?;
    let service = varint::decode_bytes(rest, "a service").map_err(wrong)?;
    let service = str::from_utf8(service).map_err(|_| "a name is not UTF-8")?;
    let parcel = varint::decode_bytes(rest, "a parcel").map_err(wrong)?;
    if service.len() > MAX_SERVICE_BYTES || parcel.len() as u64 > Keeping::PARCEL_BYTES {
        return Err("a part of it is longer than any");
    }
    let principal = u64::from_be_bytes(*principal);
    let context = Context { principal, service: service.to_owned() };
    Ok((context, version, Bytes::copy_from_slice(parcel)))
}

/// One for each context: the next takes the place of the one before.
pub(crate) fn name_of_made(scope: u64, context: &Context) -> [u8; 32] {
    let (principal, service) = (context.principal.to_be_bytes(), context.service.as_bytes());
    Id::of(&[&head(MADE, scope)[..], &principal, service].concat()).0
}

/// By peer ([`peer_id`]): a schema is nobody's secret, and no edge is to have many names for many.
pub(crate) fn name_of_schema(peer: u64, id: [u8; 8]) -> [u8; 32] {
    Id::of(&[&head(SCHEMA, peer)[..], &id].concat()).0
}

pub(crate) fn name_of_held(scope: u64, id: Id) -> [u8; 32] {
    Id::of(&[&head(HELD, scope)[..], &id.0].concat()).0
}
