//! Which addresses and names belong to the public network. Everything else (this machine, the
//! networks around it, the metadata services of a cloud) takes a decision of its own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Endings of names that no public name server answers for.
const LOCAL_ENDINGS: [&str; 7] =
    ["localhost", "localdomain", "local", "internal", "lan", "home.arpa", "onion"];

/// The address as the kernel would reach it: an IPv4 address that was written inside an IPv6 one
/// comes out.
pub fn plain_address(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// True if the address belongs to a host of the public network.
pub fn is_public_address(address: IpAddr) -> bool {
    match plain_address(address) {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

/// True if the name can only mean this machine or one of a network around it. A name that is not
/// local can still resolve to an address that is not public.
pub fn is_local_name(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let ends = |ending: &&str| {
        host.strip_suffix(ending).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    !host.contains('.') || LOCAL_ENDINGS.iter().any(ends)
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        // "This network", and the range kept for a future that did not come.
        || first == 0
        || first >= 240
        // Carrier-grade NAT, where some clouds keep their metadata service.
        || (first == 100 && second & 0xc0 == 64)
        // Protocol assignments and benchmarks.
        || (first == 192 && second == 0 && third == 0)
        || (first == 198 && second & 0xfe == 18);
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, third, fourth, fifth, sixth, high, low] = address.segments();
    let inner = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match (first, second) {
        // Translators that pass a packet on to the IPv4 address inside.
        (0x64, 0xff9b) => [third, fourth, fifth, sixth] == [0; 4] && inner(high, low),
        (0x2002, _) => inner(second, third),
        // Tunnels, benchmarks, overlays and documentation.
        (0x2001, 0..0x200 | 0xdb8) | (0x3fff, 0..0x1000) => false,
        // Global unicast is all that is left of the public network.
        _ => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_of_the_public_network_are_public() {
        for public in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "198.17.255.255",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450:4001::200e",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
            "2002:101:101::1",
        ] {
            assert!(is_public_address(public.parse().unwrap()), "{public}");
        }
        for special in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.1.1",
            "198.18.0.1",
            "203.0.113.7",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1.1.1.1",
            "2002:7f00:1::1",
            "2001::1",
            "2001:db8::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public_address(special.parse().unwrap()), "{special}");
        }
    }

    #[test]
    fn local_names_are_known_in_every_spelling() {
        for local in [
            "localhost",
            "LOCALHOST",
            "localhost.",
            "app.localhost",
            "intranet",
            "printer.local",
            "metadata.google.internal.",
            "nas.lan",
            "router.home.arpa",
        ] {
            assert!(is_local_name(local), "{local}");
        }
        for public in
            ["docs.example", "localhost.example", "mylocal.example", "notlan.dev", "lan.dev"]
        {
            assert!(!is_local_name(public), "{public}");
        }
    }
}
