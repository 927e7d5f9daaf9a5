//! Measurements that tests must not make: fidelity, throughput, memory.
