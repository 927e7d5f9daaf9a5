//! One emulated link or radio channel: rate, delay, loss, queue, outage, trace.
