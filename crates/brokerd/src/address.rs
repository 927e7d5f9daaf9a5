//! Hosts and ports in text.

/// Host, and host with port, of `HOST[:PORT]`.
pub(crate) fn authority(text: &str, usual: u16) -> Option<(String, String)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (text, usual),
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = !host.is_empty() && (bare.is_some() || !host.contains([':', '/', '@']));
    is_host.then(|| (bare.unwrap_or(host).to_owned(), format!("{host}:{port}")))
}

/// Host with port of a proxy of HTTP, `http://HOST[:PORT]`.
pub(crate) fn proxy_authority(url: &str) -> Option<String> {
    let rest = url.strip_prefix("http://")?.trim_end_matches('/');
    authority(rest, 80).map(|(_, authority)| authority)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_a_port() {
        let both = |host: &str, address: &str| Some((host.to_owned(), address.to_owned()));
        assert_eq!(authority("a.example", 1883), both("a.example", "a.example:1883"));
        assert_eq!(authority("a.example:99", 1883), both("a.example", "a.example:99"));
        assert_eq!(authority("[::1]", 1883), both("::1", "[::1]:1883"));
        assert_eq!(authority("[::1]:99", 1883), both("::1", "[::1]:99"));
        for text in ["", ":1", "a:b", "a:99999", "::1", "a/b", "u@a"] {
            assert_eq!(authority(text, 1883), None, "{text}");
        }
    }
}
