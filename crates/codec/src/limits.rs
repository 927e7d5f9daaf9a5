//! What hostile input may take.

/// Bounds of one message or stream; reaching one is a typed error that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that come out.
    pub output_bytes: u64,
    /// Open elements, arrays, maps, tags or groups.
    pub depth: usize,
    /// Bytes of tables that the message itself fills: names, strings, grammars, channels.
    pub table_bytes: usize,
    /// Bytes of a message that has to be held whole.
    pub message_bytes: usize,
}

impl Default for Limits {
    /// A gibibyte out, 256 levels, 64 MiB of tables, 256 MiB held.
    fn default() -> Self {
        Self { output_bytes: 1 << 30, depth: 256, table_bytes: 64 << 20, message_bytes: 256 << 20 }
    }
}
