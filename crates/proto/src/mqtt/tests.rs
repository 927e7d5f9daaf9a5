//! What the standards say of single packets, clause by clause.

mod packets;
