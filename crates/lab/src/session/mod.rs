//! Labs that other processes enter.
