//! Keeps web pages away from a server that trusts whoever reaches it: a page can make a browser
//! call loopback, directly or by a name it re-points there (DNS rebinding).

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, Uri};

use crate::error::{ApiError, Code};

/// Which `Host` headers are answered, whatever the port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPolicy {
    /// All: the server has names that it cannot know.
    Any,
    /// `localhost`, the addresses of loopback, and these hosts.
    Local {
        /// Names or addresses without a port.
        also: Vec<String>,
    },
}

impl HostPolicy {
    /// Loopback and the address a server is bound to.
    pub fn local(bound: SocketAddr) -> Self {
        Self::Local { also: vec![bound.ip().to_string()] }
    }

    fn allows(&self, host: &str) -> bool {
        let Self::Local { also } = self else { return true };
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        host.eq_ignore_ascii_case("localhost")
            || literal.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
            || also.iter().any(|name| name.eq_ignore_ascii_case(literal))
    }
}

/// Refuses requests for a foreign host and requests that another site had a browser send.
pub(crate) fn check(
    policy: &HostPolicy,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), ApiError> {
    let own = own_host(uri, headers)?;
    if !policy.allows(own.host()) {
        return Err(ApiError::new(
            Code::ForeignHost,
            "the Host header names a host that is not served here; call the server by localhost \
             or by the address it listens on",
        ));
    }
    let cross_site = || {
        let detail = "a browser sent this for another site; call the API from a program, or from \
                      a page of this server";
        Err(ApiError::new(Code::CrossSite, detail))
    };
    // Every one of them counts: a proxy on the way may have added another.
    if !headers.get_all(ORIGIN).iter().all(|origin| is_own(origin.as_bytes(), own.as_str())) {
        return cross_site();
    }
    let reads = matches!(*method, Method::GET | Method::HEAD);
    let is_foreign = |site: &HeaderValue| matches!(site.as_bytes(), b"cross-site" | b"same-site");
    if !reads && headers.get_all("sec-fetch-site").iter().any(is_foreign) {
        return cross_site();
    }
    Ok(())
}

/// The host the caller means: of the request line (HTTP/2 and absolute form), else of `Host`.
fn own_host(uri: &Uri, headers: &HeaderMap) -> Result<Authority, ApiError> {
    let missing = || {
        let detail = "send exactly one Host header with a host and, if need be, a port";
        ApiError::new(Code::MissingHost, detail)
    };
    let mut hosts = headers.get_all(HOST).iter();
    let given = match (hosts.next(), hosts.next()) {
        (Some(host), None) => {
            let host = Authority::try_from(host.as_bytes()).map_err(|_| missing())?;
            (!host.as_str().contains('@')).then_some(Some(host)).ok_or_else(missing)?
        }
        (None, _) => None,
        (Some(_), Some(_)) => return Err(missing()),
    };
    match (uri.authority(), given) {
        (None, None) => Err(missing()),
        (None, Some(host)) => Ok(host),
        (Some(authority), None) => Ok(authority.clone()),
        (Some(authority), Some(host)) if *authority == host => Ok(host),
        (Some(_), Some(_)) => Err(missing()),
    }
}

fn is_own(origin: &[u8], own: &str) -> bool {
    let authority = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(own.as_bytes()))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn code(method: Method, uri: &'static str, headers: &[(&str, &str)]) -> Option<Code> {
        let headers = headers.iter().map(|(name, value)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        });
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, value);
        }
        let policy = HostPolicy::local("192.0.2.7:80".parse().unwrap());
        check(&policy, &method, &Uri::from_static(uri), &map).err().map(|error| error.code())
    }

    #[test]
    fn only_local_hosts_are_answered() {
        for host in ["localhost", "LOCALHOST:1", "127.0.0.1:8080", "127.9.9.9", "[::1]:80"] {
            assert_eq!(code(Method::GET, "/", &[("host", host)]), None, "{host}");
        }
        assert_eq!(code(Method::GET, "/", &[("host", "192.0.2.7:9")]), None);
        for host in ["evil.example", "localhost.evil.example", "10.0.0.1", "0177.0.0.1", "[::2]"] {
            let refused = code(Method::GET, "/", &[("host", host)]);
            assert_eq!(refused, Some(Code::ForeignHost), "{host}");
        }
    }

    #[test]
    fn exactly_one_host_is_named() {
        let missing = Some(Code::MissingHost);
        assert_eq!(code(Method::GET, "/", &[]), missing);
        assert_eq!(code(Method::GET, "/", &[("host", "")]), missing);
        assert_eq!(code(Method::GET, "/", &[("host", "localhost@evil.example")]), missing);
        assert_eq!(code(Method::GET, "/", &[("host", "evil.example@localhost")]), missing);
        assert_eq!(code(Method::GET, "/", &[("host", "localhost"), ("host", "x")]), missing);
        assert_eq!(code(Method::GET, "http://localhost/", &[("host", "x")]), missing);
        assert_eq!(code(Method::GET, "http://localhost/", &[]), None);
        assert_eq!(code(Method::GET, "http://x/", &[]), Some(Code::ForeignHost));
    }

    #[test]
    fn pages_of_other_sites_cannot_write() {
        let with =
            |method, name, value| code(method, "/", &[("host", "localhost:8080"), (name, value)]);
        let refused = Some(Code::CrossSite);
        for site in ["cross-site", "same-site"] {
            assert_eq!(with(Method::POST, "sec-fetch-site", site), refused, "{site}");
            assert_eq!(with(Method::DELETE, "sec-fetch-site", site), refused, "{site}");
            assert_eq!(with(Method::GET, "sec-fetch-site", site), None, "{site}");
        }
        for site in ["same-origin", "none"] {
            assert_eq!(with(Method::POST, "sec-fetch-site", site), None, "{site}");
        }
        for origin in ["null", "", "http://evil.example", "http://localhost", "file://"] {
            assert_eq!(with(Method::POST, "origin", origin), refused, "{origin}");
            assert_eq!(with(Method::GET, "origin", origin), refused, "{origin}");
        }
        assert_eq!(with(Method::POST, "origin", "http://localhost:8080"), None);
        let own = ("origin", "http://localhost:8080");
        for foreign in [("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")] {
            for headers in [[own, foreign], [foreign, own]] {
                let host = ("host", "localhost:8080");
                let found = code(Method::POST, "/", &[host, headers[0], headers[1]]);
                assert_eq!(found, refused, "{headers:?}");
            }
        }
        let sites = [("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")];
        let found = code(Method::POST, "/", &[("host", "localhost:8080"), sites[0], sites[1]]);
        assert_eq!(found, refused);
    }
}
