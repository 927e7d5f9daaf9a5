//! The laboratory: namespaces, the ferry, demonstrations, reports.
