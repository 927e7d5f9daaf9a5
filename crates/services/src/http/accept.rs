//! Proactive negotiation (RFC 9110 §12).

use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderMap, HeaderName};

/// Most members of a list that are looked at; the rest is as if it were not there.
const MAX_MEMBERS: usize = 64;

/// A content coding of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// The content as it is.
    Identity,
    /// One gzip member (RFC 9110 §8.4.1.3).
    Gzip,
}

/// The coding to answer with; `None` when the client excludes both (RFC 9110 §12.5.3).
///
/// Without the field the content goes as it is, though any coding would be allowed: gzip is used
/// where the client says that it likes it at least as well.
#[must_use]
pub fn choose_coding(headers: &HeaderMap) -> Option<Coding> {
    if !headers.contains_key(ACCEPT_ENCODING) {
        return Some(Coding::Identity);
    }
    let members = members(headers, &ACCEPT_ENCODING);
    let weight = |names: &[&str]| {
        let named = members.iter().find(|member| names.contains(&member.name.as_str()));
        named.map(|member| member.weight)
    };
    let rest = weight(&["*"]);
    let gzip = weight(&["gzip", "x-gzip"]).or(rest).unwrap_or(0);
    // Identity is acceptable unless excluded by name or by '*'; unnamed it is the least liked.
    let identity = weight(&["identity"]).or(rest.filter(|&weight| weight == 0));
    match (gzip, identity) {
        (0, Some(0)) => None,
        (0, _) => Some(Coding::Identity),
        (gzip, Some(identity)) if identity > gzip => Some(Coding::Identity),
        _ => Some(Coding::Gzip),
    }
}

/// Whether `Accept` allows the media type `kind/subtype` (RFC 9110 §12.5.1). The most specific
/// range decides.
#[must_use]
pub fn accepts_media(headers: &HeaderMap, media_type: &str) -> bool {
    let any_subtype = media_type.split_once('/').map(|(kind, _)| format!("{kind}/*"));
    let members = members(headers, &ACCEPT);
    if members.is_empty() {
        return true;
    }
    let weight = |range: &str| {
        let weights = members.iter().filter(|member| member.name == range);
        weights.map(|member| member.weight).max()
    };
    weight(media_type)
        .or_else(|| weight(any_subtype.as_deref()?))
        .or_else(|| weight("*/*"))
        .is_some_and(|weight| weight > 0)
}

/// A member of a list with its weight in thousandths.
struct Member {
    name: String,
    weight: u32,
}

/// The members of a list-valued field over all its lines. A member whose weight is malformed counts
/// as excluded; parameters other than the weight are passed over.
fn members(headers: &HeaderMap, field: &HeaderName) -> Vec<Member> {
    let lines = headers.get_all(field).iter().filter_map(|line| line.to_str().ok());
    let members = lines.flat_map(|line| line.split(',')).map(str::trim);
    members.filter(|member| !member.is_empty()).take(MAX_MEMBERS).map(member).collect()
}

fn member(text: &str) -> Member {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default().to_ascii_lowercase();
    let weight = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
    Member { name, weight: weight.map_or(1000, |value| thousandths(value).unwrap_or(0)) }
}

/// RFC 9110 §12.4.2: `0` or `1` with at most three decimals, at most 1.
fn thousandths(value: &str) -> Option<u32> {
    let (whole, decimals) = value.split_once('.').unwrap_or((value, ""));
    if !matches!(whole, "0" | "1") || decimals.len() > 3 {
        return None;
    }
    if !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths: u32 = format!("{whole}{decimals:0<3}").parse().ok()?;
    (thousandths <= 1000).then_some(thousandths)
}
