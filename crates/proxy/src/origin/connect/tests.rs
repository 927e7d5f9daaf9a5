use std::sync::Mutex;

use proptest::prelude::*;

use super::*;

/// Every name has these addresses.
#[derive(Debug)]
struct Fixed(Vec<IpAddr>);

impl Resolve for Fixed {
    fn resolve<'a>(
        &'a self,
        _: &'a str,
        port: u16,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>> {
        let addresses = self.0.iter().map(|ip| SocketAddr::new(*ip, port)).collect();
        Box::pin(async move { Ok(addresses) })
    }
}

fn reach(addresses: &[&str], allow: &[&str]) -> Reach {
    let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
    let allow = allow.iter().map(|text| Pattern::parse(text).unwrap()).collect();
    Reach::new(Arc::new(Fixed(addresses)), Rule::Direct(Live::new(allow)))
}

fn target(host: &str) -> Target<'_> {
    Target { scheme: Some("http"), host, port: 80, path: Some("/") }
}

/// The addresses that a client's request may go to.
async fn found(reach: &Reach, host: &str, client: ClientAt) -> Result<Vec<IpAddr>, Cause> {
    let target = target(host);
    let addresses = reach.addresses(&target, reach.check(&target, client)?).await?;
    Ok(addresses.into_iter().map(|address| address.ip()).collect())
}

/// Gives one address after another.
#[derive(Debug)]
struct Flipping(Mutex<Vec<IpAddr>>);

impl Resolve for Flipping {
    fn resolve<'a>(
        &'a self,
        _: &'a str,
        port: u16,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>> {
        let address = self.0.lock().unwrap().pop().unwrap();
        Box::pin(async move { Ok(vec![SocketAddr::new(address, port)]) })
    }
}

/// A name is believed once for each connection, and the addresses that were looked at are those
/// that are connected to.
#[tokio::test]
async fn a_name_that_changes_its_addresses_is_looked_at_each_time() {
    let near =
        ["127.0.0.1", "10.0.0.1", "::1", "0.0.0.0", "::", "64:ff9b::7f00:1", "2002:7f00:1::"];
    let mut answers = Vec::new();
    for text in near {
        answers.extend([text, "192.88.99.1"].map(|text| text.parse::<IpAddr>().unwrap()));
    }
    let resolver = Arc::new(Flipping(Mutex::new(answers)));
    let allow = vec![Pattern::parse("http://*.example").unwrap()];
    let reach = Reach::new(resolver, Rule::Allowed(Live::new(allow)));
    for text in near {
        let public = found(&reach, "rebound.example", ClientAt::Elsewhere).await.unwrap();
        assert_eq!(public, ["192.88.99.1".parse::<IpAddr>().unwrap()]);
        let refused = found(&reach, "rebound.example", ClientAt::Elsewhere).await;
        assert_eq!(refused.expect_err(text).kind, CauseKind::Forbidden, "{text}");
    }
    let all = near.iter().chain(&["192.88.99.1"]).map(|text| text.parse().unwrap()).collect();
    let allow = vec![Pattern::parse("http://*.example").unwrap()];
    let mixed = Reach::new(Arc::new(Fixed(all)), Rule::Allowed(Live::new(allow)));
    let public = found(&mixed, "mixed.example", ClientAt::Elsewhere).await.unwrap();
    assert_eq!(public.len(), 1, "{public:?}");
}

#[test]
fn a_client_is_here_only_by_a_loopback_address() {
    for text in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
        assert_eq!(ClientAt::of(text), ClientAt::Here, "{text}");
    }
    for text in ["192.0.2.2", "10.0.0.1", "fe80::1", "0.0.0.0", "::", "", "localhost"] {
        assert_eq!(ClientAt::of(text), ClientAt::Elsewhere, "{text}");
    }
}

#[tokio::test]
async fn a_client_elsewhere_gets_only_the_addresses_it_could_reach_itself() {
    let mixed = reach(&["127.0.0.1", "10.0.0.7", "::1", "fe80::1", "0.0.0.0"], &[]);
    let remote = found(&mixed, "rebound.example", ClientAt::Elsewhere).await.unwrap();
    assert_eq!(remote, ["10.0.0.7".parse::<IpAddr>().unwrap()]);
    let local = found(&mixed, "rebound.example", ClientAt::Here).await.unwrap();
    assert_eq!(local.len(), 5);
    for near in ["127.0.0.1", "::1", "169.254.169.254", "0.0.0.0", "::ffff:127.0.0.1"] {
        let refused = found(&reach(&[near], &[]), "a.example", ClientAt::Elsewhere).await;
        let cause = refused.expect_err(near);
        assert_eq!(cause.kind, CauseKind::Forbidden, "{near}");
        assert!(cause.reason.contains("direct_allow"), "{}", cause.reason);
    }
}

#[tokio::test]
async fn a_list_restricts_everybody_and_an_exact_host_lets_through() {
    let list = ["http://*.example", "http://printer"];
    let near = reach(&["127.0.0.1"], &list);
    // A wildcard names no machine.
    assert!(found(&near, "a.example", ClientAt::Elsewhere).await.is_err());
    assert_eq!(found(&near, "a.example", ClientAt::Here).await.unwrap().len(), 1);
    assert_eq!(found(&near, "printer", ClientAt::Elsewhere).await.unwrap().len(), 1);
    for client in [ClientAt::Here, ClientAt::Elsewhere] {
        let cause = found(&near, "other.test", client).await.expect_err("not listed");
        assert_eq!(cause.kind, CauseKind::Forbidden);
    }
    let tunnel = Target { scheme: None, path: None, port: 443, ..target("printer") };
    assert!(near.check(&tunnel, ClientAt::Here).is_err(), "another port than is listed");
}

#[tokio::test]
async fn an_upstream_is_reached_wherever_it_is() {
    let resolver = Arc::new(Fixed(vec!["127.0.0.1".parse().unwrap()]));
    let reach = Reach::new(resolver, Rule::Upstream);
    assert_eq!(found(&reach, "backend", ClientAt::Elsewhere).await.unwrap().len(), 1);
}

/// An address of this machine that is not loopback; none where there is no network.
fn own_address() -> Option<IpAddr> {
    let socket = std::net::UdpSocket::bind(("0.0.0.0", 0)).unwrap();
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|ip| !ip.is_unspecified())
}

#[tokio::test]
async fn the_machines_own_addresses_are_not_reached_from_elsewhere() {
    let Some(own) = own_address() else {
        return eprintln!("left out: this machine has no address but loopback");
    };
    assert!(socket::is_own(own));
    assert!(!socket::is_own("192.0.2.1".parse().unwrap()));
    let text = own.to_string();
    let reach = reach(&[&text], &[]);
    assert!(found(&reach, "a.example", ClientAt::Elsewhere).await.is_err());
    assert_eq!(found(&reach, "a.example", ClientAt::Here).await.unwrap(), [own]);
}

proptest! {
    /// What a client elsewhere gets is never loopback, link-local or unspecified, in any disguise.
    #[test]
    fn no_address_of_four_bytes_gets_through_disguised(bytes: [u8; 4], near in 0_usize..4) {
        let four = match near {
            0 => [127, bytes[1], bytes[2], bytes[3]],
            1 => [169, 254, bytes[2], bytes[3]],
            2 => [0, bytes[1], bytes[2], bytes[3]],
            _ => bytes,
        };
        let plain = std::net::Ipv4Addr::from(four);
        let [a, b, c, d] = four.map(u16::from);
        let (high, low) = (a << 8 | b, c << 8 | d);
        let disguises = [
            IpAddr::V6(plain.to_ipv6_mapped()),
            IpAddr::V6(std::net::Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low)),
            IpAddr::V6(std::net::Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1)),
        ];
        for disguise in disguises {
            prop_assert_eq!(is_near(disguise), is_near(IpAddr::V4(plain)), "{}", disguise);
        }
        if near < 3 {
            prop_assert!(is_near(IpAddr::V4(plain)));
        }
    }
}
