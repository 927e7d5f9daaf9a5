//! What IST-150 reports: its tables I to III (Jansen et al., NATO core services profiling for
//! hybrid tactical networks, section V).

/// Times and loss of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaperTimes {
    /// Messages sent.
    pub sent: u32,
    /// Share lost, 0 to 1.
    pub lost: f64,
    /// In seconds.
    pub min_s: f64,
    /// In seconds.
    pub median_s: f64,
    /// In seconds.
    pub max_s: f64,
}

/// A case of the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaperCase {
    /// Its name.
    pub name: &'static str,
    /// Table I: bytes of a short message with the headers of HTTP or CoAP.
    pub message_bytes: usize,
    /// Table II: all messages.
    pub all: PaperTimes,
    /// Table III: those that cross the narrowband net.
    pub crossing: PaperTimes,
}

const fn all(lost: f64, min_s: f64, median_s: f64, max_s: f64) -> PaperTimes {
    PaperTimes { sent: 97, lost, min_s, median_s, max_s }
}

const fn crossing(lost: f64, min_s: f64, median_s: f64, max_s: f64) -> PaperTimes {
    PaperTimes { sent: 17, lost, min_s, median_s, max_s }
}

/// The paper's cases in its order.
pub const PAPER: [PaperCase; 6] = [
    PaperCase {
        name: "HTTP/JSON",
        message_bytes: 418,
        all: all(0.0619, 0.33, 0.72, 17.31),
        crossing: crossing(0.3529, 1.22, 1.36, 17.31),
    },
    PaperCase {
        name: "HTTP/CBOR",
        message_bytes: 369,
        all: all(0.0722, 0.35, 0.71, 30.53),
        crossing: crossing(0.4118, 1.39, 1.56, 30.53),
    },
    PaperCase {
        name: "HTTP/EXI",
        message_bytes: 377,
        all: all(0.0619, 0.33, 0.89, 17.39),
        crossing: crossing(0.3529, 1.17, 1.46, 10.15),
    },
    PaperCase {
        name: "CoAP/UDP/JSON",
        message_bytes: 153,
        all: all(0.0, 0.07, 0.25, 20.39),
        crossing: crossing(0.0, 0.19, 0.56, 13.98),
    },
    PaperCase {
        name: "CoAP/UDP/CBOR",
        message_bytes: 105,
        all: all(0.0104, 0.07, 0.24, 25.87),
        crossing: crossing(0.0588, 0.16, 0.36, 25.87),
    },
    PaperCase {
        name: "CoAP/TCP/CBOR",
        message_bytes: 104,
        all: all(0.1031, 0.34, 0.74, 12.35),
        crossing: crossing(0.5882, 1.02, 4.36, 12.35),
    },
];
