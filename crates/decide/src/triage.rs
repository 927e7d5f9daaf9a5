//! What is decided before any model is asked, the same for every policy that weighs: what cannot
//! gain is left alone at nearly no cost.

use crate::head::share_left;

/// A body shorter than this is left alone: codecs add about as much as they save.
pub const SHORTEST_BYTES: u64 = 64;
/// A head of which more than this share would be left does not compress: coded or encrypted inside.
pub const INCOMPRESSIBLE_SHARE: f64 = 0.97;

/// What is known of a message when its first block closes, or when its head can wait no longer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Message<'a> {
    /// Value of Content-Type.
    pub content_type: Option<&'a str>,
    /// The origin or client coded the content already (Content-Encoding).
    pub coded: bool,
    /// Bytes of a tunnel (CONNECT, Upgrade): mostly encrypted, always in a hurry.
    pub tunnel: bool,
    /// Bytes at hand.
    pub head: &'a [u8],
    /// Length of the whole body, where it is known.
    pub body_bytes: Option<u64>,
}

/// What comes of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Triage {
    /// The message goes as it is, and why, in a few words for a person.
    Alone(&'static str),
    /// A policy chooses.
    Open {
        /// Of [`share_left`], for [`crate::models::Subject`].
        head_share: f64,
    },
}

/// Sorts out what no policy need be asked about.
#[must_use]
pub fn triage(message: &Message<'_>) -> Triage {
    if message.tunnel {
        return Triage::Alone("a tunnel");
    }
    if message.coded {
        return Triage::Alone("coded by its sender");
    }
    if message.content_type.is_some_and(is_compressed_type) {
        return Triage::Alone("a compressed media type");
    }
    match message.body_bytes {
        Some(0) => return Triage::Alone("no body"),
        Some(..SHORTEST_BYTES) => return Triage::Alone("a few bytes"),
        _ => {}
    }
    let head_share = share_left(message.head);
    if !message.head.is_empty() && head_share > INCOMPRESSIBLE_SHARE {
        return Triage::Alone("its head does not compress");
    }
    Triage::Open { head_share }
}

/// Media types whose formats compress inside.
fn is_compressed_type(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let (top, sub) = essence.split_once('/').unwrap_or((&essence, ""));
    match top {
        "audio" | "video" => true,
        "image" => !matches!(sub, "svg+xml" | "bmp" | "x-ms-bmp" | "tiff" | "x-icon"),
        "font" => matches!(sub, "woff" | "woff2"),
        "application" => matches!(
            sub,
            "zip" | "gzip" | "zstd" | "x-7z-compressed" | "x-bzip2" | "x-xz" | "x-rar-compressed"
        ),
        _ => false,
    }
}
