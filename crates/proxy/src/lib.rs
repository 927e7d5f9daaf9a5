//! The shell of the pair: listeners, carriers, TLS, worker pool, admin, metrics.
