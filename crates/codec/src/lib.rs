//! Bytes to fewer bytes and back: one trait, one table of codecs.
