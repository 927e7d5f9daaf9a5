//! The friendly-force tracks service of IST-118: one of 22 NFFI 1.3 messages (STANAG 5527) per
//! request, as SOAP 1.1 and 1.2, as REST with XML and as REST with JSON.

mod catalogue;
pub mod client;
mod element;
mod force;
mod generate;
pub mod server;
pub mod soap;
#[cfg(test)]
mod tests;

pub use catalogue::Catalogue;
pub use generate::{FILE_COUNT, file_tracks, generate};

/// Namespace of NFFI 1.3 messages (STANAG 5527).
pub const NFFI_NAMESPACE: &str = "urn:nato:fft:protocols:nffi13";

/// Namespace of what this service adds: its operations, and the notes in `detailData`.
pub const SERVICE_NAMESPACE: &str = "urn:longwire:tracks:1";

/// Seed of the files when none is asked for.
pub const DEFAULT_SEED: u64 = 118;
