//! The requester of an exchange, by the head of its request.

use codec::dictionary::Id;
use proto::bhttp;

use super::privacy::{Client, proves, tells_who};

/// The requester: the shell's name of a client, and what the head of its request says of that
/// ([`tells_who`]). Who shows other credentials is another, and one who may be several counts as
/// several.
#[must_use]
pub fn requester(client: &Client, request: &bhttp::Request) -> Id {
    let mut all = Id::of(client.name.as_bytes()).0.to_vec();
    let fields = request.fields.iter().filter(|(name, _)| {
        let is_none = |one: &String| name.eq_ignore_ascii_case(one.as_bytes());
        tells_who(name) && !client.impersonal.iter().any(is_none)
    });
    let fields = fields.map(|(name, value)| (&name[..], &value[..]));
    let proofs = fields.chain(parameters(&request.path).filter(|(name, _)| proves(name)));
    let user = request.authority.rsplitn(2, |byte| *byte == b'@').nth(1);
    let user = user.map(|user| (&b"@"[..], user));
    for (name, value) in proofs.chain(user) {
        for part in [name, value] {
            all.extend_from_slice(&(part.len() as u64).to_be_bytes());
            all.extend_from_slice(part);
        }
    }
    Id::of(&all)
}

/// The parameters of a path's query.
fn parameters(path: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let query = path.splitn(2, |byte| *byte == b'?').nth(1).unwrap_or_default();
    query.split(|byte| matches!(byte, b'&' | b';')).map(|pair| {
        let equals = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        pair.split_at(equals)
    })
}
