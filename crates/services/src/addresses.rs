//! Shares of addresses in the connections that a listener takes.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// Most connections from one address of another machine; more are closed.
pub(crate) const MAX_OF_ADDRESS: usize = 128;

/// How many connections each address of another machine has.
#[derive(Debug, Default)]
pub(crate) struct Addresses(BTreeMap<IpAddr, usize>);

impl Addresses {
    /// Counts one more; false where it has as many as it may.
    pub(crate) fn take(&mut self, address: IpAddr) -> bool {
        if address.is_loopback() {
            return true;
        }
        // bound: connections.
        let count = self.0.entry(address).or_default();
        let may = *count < MAX_OF_ADDRESS;
        *count += usize::from(may);
        may
    }

    /// Counts one less.
    pub(crate) fn give_back(&mut self, address: IpAddr) {
        match self.0.get_mut(&address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.0.remove(&address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_so_many_connections() {
        let mut addresses = Addresses::default();
        let [one, other] = [[192_u8, 0, 2, 1], [192, 0, 2, 2]].map(IpAddr::from);
        for _ in 0..MAX_OF_ADDRESS {
            assert!(addresses.take(one));
        }
        assert!(!addresses.take(one) && addresses.take(other));
        addresses.give_back(one);
        assert!(addresses.take(one) && !addresses.take(one));
        addresses.give_back(other);
        assert_eq!(addresses.0.len(), 1, "nothing is kept of who has none");
    }
}
