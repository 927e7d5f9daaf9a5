//! Observations to a choice of an encoding and a carrier.
