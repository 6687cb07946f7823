//! Hosts: one form for the host of a URL and the host of a rule.

use std::net::IpAddr;

use loon_api::network::{is_local_name, is_public_address, plain_address};
use url::{Host, Url};

/// The host of a URL, in the form that rules are compared in.
pub(crate) fn of_url(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    match url.host()? {
        // A scheme that the standard does not know keeps its host as written.
        Host::Domain(domain) => of_rule(domain),
        Host::Ipv4(address) => Some(form(address.into())),
        Host::Ipv6(address) => Some(form(address.into())),
    }
}

/// The host that a rule names. A whole URL or a port in a rule is forgiven, so that a deny rule
/// written so still holds.
pub(crate) fn of_rule(text: &str) -> Option<String> {
    let text = text.trim();
    if text.contains("://") {
        return of_url(text);
    }
    let bare_ipv6 = text.parse::<std::net::Ipv6Addr>().ok();
    if let Some(address) = bare_ipv6 {
        return Some(form(address.into()));
    }
    let text = match text.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.chars().all(|c| c.is_ascii_digit()) => host,
        _ => text,
    };
    match Host::parse(text).ok()? {
        Host::Domain(domain) => {
            let domain = domain.trim_end_matches('.').to_ascii_lowercase();
            (!domain.is_empty()).then_some(domain)
        }
        Host::Ipv4(address) => Some(form(address.into())),
        Host::Ipv6(address) => Some(form(address.into())),
    }
}

/// An IPv4 address has one form, also where it was written as an IPv6 one.
fn form(address: IpAddr) -> String {
    plain_address(address).to_string()
}

/// True if the host, in its one form, is not one of the public network.
pub(crate) fn is_private(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(address) => !is_public_address(address),
        Err(_) => is_local_name(host),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_private, of_rule, of_url};

    #[test]
    fn one_host_has_one_form() {
        for url in [
            "https://private.example/",
            "https://PRIVATE.example:8443/x",
            "https://private.example./",
            "https://friendly.example@private.example/",
            "https://friendly.example%2F:x@private.example/",
            "http://private.example\\@friendly.example/",
        ] {
            assert_eq!(of_url(url).as_deref(), Some("private.example"), "{url}");
        }
        assert_eq!(
            of_url("https://private.example.friendly.example/").as_deref(),
            Some("private.example.friendly.example")
        );
        assert_eq!(
            of_url("https://b\u{fc}cher.example/").as_deref(),
            Some("xn--bcher-kva.example")
        );
        assert_eq!(of_rule("B\u{fc}cher.example.").as_deref(), Some("xn--bcher-kva.example"));
        assert_eq!(of_url("http://0x7f.1/").as_deref(), Some("127.0.0.1"));
        assert_eq!(of_url("http://[::1]:80/").as_deref(), Some("::1"));
        assert_eq!(of_url("http://[::ffff:7f00:1]/").as_deref(), Some("127.0.0.1"));
        assert_eq!(of_rule("::ffff:10.0.0.1").as_deref(), Some("10.0.0.1"));
        assert_eq!(of_rule("[0:0::1]:80").as_deref(), Some("::1"));
        assert_eq!(of_rule("https://Private.example:443/x").as_deref(), Some("private.example"));
        assert_eq!(of_url("file:///etc/passwd"), None);
        assert_eq!(of_url("not a url"), None);
    }
    #[test]
    fn hosts_that_are_not_public_are_known_in_every_spelling() {
        for url in [
            "http://127.0.0.1:8080/",
            "http://0x7f.1/",
            "http://2130706433/",
            "http://0177.0.0.1/",
            "http://127.1./",
            "http://0/",
            "http://[::1]/",
            "http://[::ffff:a9fe:a9fe]/",
            "http://[fd00:ec2::254]/",
            "http://169.254.169.254/latest/meta-data/",
            "http://100.100.100.200/",
            "http://192.168.0.1/",
            "http://LOCALHOST/",
            "http://localhost./",
            "http://x.localhost:3000/",
            "http://metadata.google.internal/",
            "http://intranet/",
            "http://\u{ff11}27.0.0.1/",
        ] {
            assert!(is_private(&of_url(url).unwrap()), "{url}");
        }
        for url in [
            "https://docs.example/",
            "https://1.1.1.1/",
            "https://[2606:4700::1111]/",
            "https://127.0.0.1.example/",
            "https://localhost.example/",
        ] {
            assert!(!is_private(&of_url(url).unwrap()), "{url}");
        }
    }
}
