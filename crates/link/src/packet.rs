//! What a channel carries.

/// What a channel carries: the emulator never looks inside but for its length and to flip a bit.
pub trait Packet {
    /// Length in IP bytes: what occupies the link and counts in queues.
    fn len_bytes(&self) -> usize;

    /// Inverts bit `bit` of the IP packet, counted from the first byte's most significant bit.
    /// The channel asks for bits below `8 * len_bytes()` only.
    fn flip_bit(&mut self, bit: usize);

    /// Another packet of the same content.
    #[must_use]
    fn duplicate(&self) -> Self;
}

impl Packet for Vec<u8> {
    fn len_bytes(&self) -> usize {
        self.len()
    }

    fn flip_bit(&mut self, bit: usize) {
        if let Some(byte) = self.get_mut(bit / 8) {
            *byte ^= 0x80 >> (bit % 8);
        }
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
}
