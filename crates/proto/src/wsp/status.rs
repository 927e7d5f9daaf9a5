//! Status codes of replies and those of HTTP (WAP-230 table 36).

/// The greatest last digits that an octet has a place for, in each class of HTTP's.
const MAX_OF_CLASS: u16 = 15;
/// Statuses 416 and 417 have no place behind 415, and go on in the next row.
const BEHIND_415: u8 = 0x50;

/// The octet for a status of HTTP; `None` where table 36 has none.
///
/// The table has those of RFC 2616; [`nearest`] finds one for any other.
#[must_use]
pub const fn of_http(status: u16) -> Option<u8> {
    match status {
        100..=101 | 200..=206 | 300..=305 | 307 | 400..=415 | 500..=505 => Some(place(status)),
        416 | 417 => Some(BEHIND_415 + status.to_le_bytes()[0] - 416_u16.to_le_bytes()[0]),
        _ => None,
    }
}

/// The octet of a status of three digits whose last two are at most 15.
const fn place(status: u16) -> u8 {
    let (class, last) = (status / 100, status % 100);
    let class = if class == 5 { 6 } else { class };
    let last = if last > MAX_OF_CLASS { MAX_OF_CLASS } else { last };
    (class << 4 | last).to_le_bytes()[0]
}

/// The octet for any status of HTTP: of one that table 36 lacks that of its class, which a client
/// is to treat it as (RFC 9110 §15). What is of no class is 500.
#[must_use]
pub const fn nearest(status: u16) -> u8 {
    match of_http(status) {
        Some(octet) => octet,
        None => match status {
            100..=499 => place(status / 100 * 100),
            _ => place(500),
        },
    }
}

/// The status of HTTP that an octet stands for; `None` where table 36 has none.
#[must_use]
pub const fn to_http(octet: u8) -> Option<u16> {
    let status = match (octet >> 4, octet & 0x0f) {
        (5, last @ 0..=1) => 416 + last as u16,
        (6, last) => 500 + last as u16,
        (class @ 1..=4, last) => class as u16 * 100 + last as u16,
        _ => return None,
    };
    match of_http(status) {
        Some(_) => Some(status),
        None => None,
    }
}
