//! Who may ask, and what answers may do in a browser.
//!
//! A page of somebody else's that a browser of this machine shows must not read or change anything: its requests carry its
//! origin, or a name that is not ours (a name can be made to point at this machine), and are refused. Who is served over a
//! network shows a token once, and a cookie from then on.

use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State as Shared};
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::State;
use crate::fault::Fault;

/// An answer has to be there after this.
const PATIENCE: Duration = Duration::from_mins(1);
const COOKIE: &str = "msprobe_view";

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; \
    frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// A page of a command has no origin here: it can draw, and do nothing else.
const SANDBOX: &str = "sandbox allow-scripts allow-downloads; default-src 'none'; style-src 'unsafe-inline'; \
    script-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/// What is asked of every request.
#[derive(Debug)]
pub(crate) struct Guard {
    address: SocketAddr,
    /// For others than this machine: what the link holds, and what the cookie holds.
    secrets: Option<[String; 2]>,
}

fn random_text() -> Result<String, Fault> {
    let mut bytes = [0; 24];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether two texts are the same, in a time that tells nothing about where they differ.
fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    one.len() == other.len()
        && one.iter().zip(other).fold(0, |differ, (one, other)| differ | (one ^ other)) == 0
}

impl Guard {
    pub(super) fn new(address: SocketAddr, is_remote: bool) -> Result<Guard, Fault> {
        let secrets = if is_remote { Some([random_text()?, random_text()?]) } else { None };
        Ok(Guard { address, secrets })
    }

    /// Where to look.
    pub(super) fn url(&self) -> String {
        let host = match self.address.ip() {
            ip if ip.is_unspecified() => host_name().unwrap_or_else(|| "localhost".to_owned()),
            IpAddr::V6(ip) => format!("[{ip}]"),
            IpAddr::V4(ip) => ip.to_string(),
        };
        let token = self.secrets.as_ref().map_or_else(String::new, |[token, _]| format!("?token={token}"));
        format!("http://{host}:{}/{token}", self.address.port())
    }

    /// Whether a name of a request is one of ours.
    fn is_own_host(&self, host: &str) -> bool {
        let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, rest)) => (name, rest.strip_prefix(':').unwrap_or("80")),
            None => host.rsplit_once(':').unwrap_or((host, "80")),
        };
        if port != self.address.port().to_string() {
            return false;
        }
        let is_address = name.parse::<IpAddr>();
        if self.secrets.is_none() {
            return name.eq_ignore_ascii_case("localhost") || is_address.is_ok_and(|ip| ip.is_loopback());
        }
        // An address cannot be made to point somewhere else. Of names, this machine's own.
        let is_own_name = || host_name().is_some_and(|own| own.eq_ignore_ascii_case(name));
        is_address.is_ok() || name.eq_ignore_ascii_case("localhost") || is_own_name()
    }

    fn check(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Fault> {
        let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let refused = |what: &str| Err(Fault::new(StatusCode::FORBIDDEN, what));
        let Some(host) = text(header::HOST) else { return refused("the request names no host") };
        if headers.get_all(header::HOST).iter().count() != 1 || !self.is_own_host(host) {
            return refused("the request is for another host");
        }
        if uri.authority().is_some_and(|authority| authority.as_str() != host) {
            return refused("the request is for another host");
        }
        let is_reading = matches!(*method, Method::GET | Method::HEAD);
        let origin = headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
        match origin {
            Some(origin) if origin != format!("http://{host}") => {
                return refused("the request comes from another page");
            }
            None if !is_reading => return refused("the request does not say where it comes from"),
            _ => {}
        }
        let site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
        let is_page = uri.path() == "/";
        if matches!(site, Some("cross-site" | "same-site")) && !is_page {
            return refused("the request comes from another page");
        }
        Ok(())
    }

    /// What to do about who is not known yet: nothing, an answer, or a refusal.
    fn greet(&self, uri: &Uri, headers: &HeaderMap) -> Result<Option<Response>, Fault> {
        let Some([token, cookie]) = &self.secrets else { return Ok(None) };
        let given = uri.query().into_iter().flat_map(|query| query.split('&'));
        let mut given = given.filter_map(|part| part.strip_prefix("token="));
        if uri.path() == "/" && given.any(|given| is_same(given, token)) {
            let cookie = format!("{COOKIE}={cookie}; HttpOnly; SameSite=Strict; Path=/");
            let page = [(header::SET_COOKIE, cookie), (header::LOCATION, "/".to_owned())];
            return Ok(Some((StatusCode::SEE_OTHER, page).into_response()));
        }
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut cookies = cookies.flat_map(|cookies| cookies.split(';'));
        let is_known = cookies.any(|pair| {
            pair.trim()
                .strip_prefix(COOKIE)
                .and_then(|rest| rest.strip_prefix('='))
                .is_some_and(|given| is_same(given, cookie))
        });
        if is_known {
            return Ok(None);
        }
        Err(Fault::new(StatusCode::UNAUTHORIZED, "open the link that msprobe view printed: it holds a token"))
    }
}

/// The name of this machine.
fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| std::fs::read_to_string("/etc/hostname"))
        .ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// An answer, or that there was none in time.
async fn in_time(patience: Duration, answer: impl Future<Output = Response>) -> Response {
    match tokio::time::timeout(patience, answer).await {
        Ok(response) => response,
        Err(_) => Fault::new(StatusCode::REQUEST_TIMEOUT, "the request took too long").into_response(),
    }
}

/// Looks at a request before anything else does, and at the answer after everything else.
pub(super) async fn guard(Shared(state): Shared<Arc<State>>, request: Request, next: Next) -> Response {
    let is_report = request.uri().path().starts_with("/report/");
    let guard = &state.guard;
    let checked = guard
        .check(request.method(), request.uri(), request.headers())
        .and_then(|()| guard.greet(request.uri(), request.headers()));
    let mut response = match checked {
        Err(fault) => fault.into_response(),
        Ok(Some(response)) => response,
        Ok(None) => in_time(PATIENCE, next.run(request)).await,
    };
    let headers = response.headers_mut();
    let is_page = is_report
        && headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    let policy = if is_page { SANDBOX } else { POLICY };
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(is_remote: bool) -> Guard {
        let secrets = is_remote.then(|| ["t".to_owned(), "c".to_owned()]);
        Guard { address: "127.0.0.1:4000".parse().unwrap(), secrets }
    }

    #[test]
    fn hosts_are_ours_or_refused() {
        for host in ["127.0.0.1:4000", "localhost:4000", "LocalHost:4000", "[::1]:4000", "127.0.0.2:4000"] {
            assert!(guard(false).is_own_host(host), "{host}");
        }
        for host in [
            "evil.example:4000",
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost.evil.example:4000",
            "",
            ":4000",
            "10.0.0.1:4000",
        ] {
            assert!(!guard(false).is_own_host(host), "{host}");
        }
        assert!(guard(true).is_own_host("10.0.0.1:4000") && !guard(true).is_own_host("evil.example:4000"));
    }

    #[test]
    fn a_request_that_takes_too_long_is_given_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let short = Duration::from_millis(20);
            let never = in_time(short, std::future::pending()).await;
            assert_eq!(never.status(), StatusCode::REQUEST_TIMEOUT);
            let soon = in_time(Duration::from_mins(1), async { StatusCode::OK.into_response() }).await;
            assert_eq!(soon.status(), StatusCode::OK);
        });
        assert_eq!(PATIENCE.as_secs(), 60, "what users are told");
    }

    #[test]
    fn texts_are_compared_as_a_whole() {
        assert!(is_same("abc", "abc") && !is_same("abc", "abd") && !is_same("abc", "ab") && is_same("", ""));
    }
}
