//! The pair itself as a pure machine: request, decide, codec, proto, output.
