//! Two relays, a virtual link and a virtual clock: the pair without sockets.
