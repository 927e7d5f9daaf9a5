//! What outlives a process: dictionaries with whom they serve and schemas, as bytes that the shell
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
//! it is made of later messages only ([`super::dictionaries`]).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use codec::dictionary::{DISTILLED_BYTES, Id, Kept};
use codec::infoset::{PARCEL_BYTES, SchemaContext};
use proto::control::Keeping;
use proto::varint;

use super::bases::Context;
use super::dictionaries::Made;
use crate::bounds::MAX_PRINCIPALS;

/// Names have this bit; instances, as scopes, and numbers of principals (RFC 9000 §16) have it not.
pub(crate) const NAMED: u64 = 1 << 63;
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

/// A peer as it is reached by a kind of carrier. A stream has the peer's own number, by which what
/// was learned before there were other kinds is kept.
pub(crate) fn carrier_id(peer: &str, kind: &str) -> u64 {
    match kind {
        "stream" => peer_id(peer),
        kind => {
            u64::from_be_bytes(Id::of(&[peer.as_bytes(), &[0], kind.as_bytes()].concat()).short())
        }
    }
}

/// An edge that has no name is one until it ends. Who says the same instance by another key is
/// another.
pub(crate) fn of_instance(peer: &str, instance: u64) -> u64 {
    let both = Id::of(&[peer.as_bytes(), &instance.to_be_bytes()].concat());
    u64::from_be_bytes(both.short()) & !NAMED
}

/// Takes a principal's name; what it was before. Both sides drop the same one for it, and say it
/// again when it comes.
pub(crate) fn remember(names: &mut BTreeMap<u64, u64>, principal: u64, name: u64) -> Option<u64> {
    if names.len() >= MAX_PRINCIPALS && !names.contains_key(&principal) {
        names.pop_first();
    }
    names.insert(principal, name)
}

/// Whether what has this scope can outlive the edge's process.
pub(crate) fn lasts(scope: Option<u64>) -> bool {
    scope.is_some_and(|scope| scope & NAMED != 0)
}

/// Something that an earlier process kept.
#[derive(Debug)]
pub(crate) enum Restored {
    /// A dictionary of this side's, of whose and for what.
    Made(u64, Context, Made),
    /// A peer's dictionary.
    Held(u64, Arc<Kept>),
    /// A peer's schema.
    Schema(u64, Arc<SchemaContext>),
}

/// Name and bytes of a dictionary of this side's, where it can be kept.
pub(crate) fn made(scope: u64, context: &Context, made: &Made) -> Option<([u8; 32], Bytes)> {
    if context.service.len() > MAX_SERVICE_BYTES {
        return None;
    }
    let mut bytes = head(MADE, scope);
    bytes.extend_from_slice(&context.principal.to_be_bytes());
    varint::encode(u64::from(made.version), &mut bytes);
    varint::encode_bytes(context.service.as_bytes(), &mut bytes);
    varint::encode_bytes(&made.parcel, &mut bytes);
    bytes.extend_from_slice(made.kept.content());
    Some((name_of_made(scope, context), bytes.into()))
}

/// Name and bytes of a peer's dictionary.
pub(crate) fn held(scope: u64, kept: &Kept) -> ([u8; 32], Bytes) {
    let mut bytes = head(HELD, scope);
    bytes.extend_from_slice(kept.content());
    (name_of_held(scope, kept.id()), bytes.into())
}

/// Name and bytes of a peer's schema.
pub(crate) fn schema(peer: u64, schema_context: &SchemaContext) -> Option<([u8; 32], Bytes)> {
    let (id, parcel) = schema_context.name().zip(schema_context.parcel())?;
    let bytes = [&head(SCHEMA, peer)[..], &id, parcel].concat().into();
    Some((name_of_schema(peer, id), bytes))
}

/// Reads what was kept under this name.
///
/// # Errors
/// What is no such thing, or another's.
pub(crate) fn restored(name: [u8; 32], bytes: &[u8]) -> Result<Restored, &'static str> {
    let (&[version, kind], rest) = bytes.split_first_chunk().ok_or(SHORT)?;
    if version != VERSION {
        return Err("it is of another version of longwire");
    }
    let (scope, mut rest) = rest.split_first_chunk().ok_or(SHORT)?;
    let scope = u64::from_be_bytes(*scope);
    let context = match kind {
        MADE => Some(context(&mut rest)?),
        HELD => None,
        SCHEMA => return restored_schema(name, scope, rest),
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
    Ok(match context {
        Some((context, version, parcel)) => {
            Restored::Made(scope, context, Made { kept, version, parcel })
        }
        None => Restored::Held(scope, kept),
    })
}

fn restored_schema(name: [u8; 32], peer: u64, bytes: &[u8]) -> Result<Restored, &'static str> {
    let (&id, parcel) = bytes.split_first_chunk().ok_or(SHORT)?;
    if parcel.is_empty() || parcel.len() > PARCEL_BYTES {
        return Err("a schema has no such length");
    }
    if name_of_schema(peer, id) != name {
        return Err("it has the name of another");
    }
    Ok(Restored::Schema(peer, Arc::new(SchemaContext::of_parcel(id, parcel.to_vec()))))
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
