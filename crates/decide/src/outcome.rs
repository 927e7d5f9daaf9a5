//! What came of a decision, and whose fault it was that it came otherwise than expected.

/// Parts of a message's time, in seconds, and its encoded length.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    /// Encoding.
    pub encode_s: f64,
    /// The network.
    pub network_s: f64,
    /// Decoding.
    pub decode_s: f64,
    /// Waiting for an encoder.
    pub wait_s: f64,
    /// Encoded bytes.
    pub bytes: f64,
}

impl Parts {
    /// All of it, in seconds.
    #[must_use]
    pub fn total_s(&self) -> f64 {
        self.wait_s + self.encode_s + self.network_s + self.decode_s
    }
}

/// Where the difference between what was measured and what was expected comes from, in seconds. The
/// four add up to it exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Split {
    /// Encoding, with the waiting for it, took longer.
    pub encode_s: f64,
    /// Decoding took longer.
    pub decode_s: f64,
    /// The network took longer for the bytes that there were.
    pub network_s: f64,
    /// There were more bytes.
    pub size_s: f64,
}

impl Split {
    /// Splits the error of a prediction. `network_of_actual_s` is what the model of the network,
    /// as it was, says for the bytes that there were.
    #[must_use]
    pub fn new(expected: &Parts, actual: &Parts, network_of_actual_s: f64) -> Self {
        Self {
            encode_s: actual.wait_s + actual.encode_s - expected.wait_s - expected.encode_s,
            decode_s: actual.decode_s - expected.decode_s,
            network_s: actual.network_s - network_of_actual_s,
            size_s: network_of_actual_s - expected.network_s,
        }
    }

    /// All of it.
    #[must_use]
    pub fn total_s(&self) -> f64 {
        self.encode_s + self.decode_s + self.network_s + self.size_s
    }
}
