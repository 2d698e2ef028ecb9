//! Admits a request, or refuses it: who sent it, and whether that caller may call the route.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, COOKIE, ORIGIN};
use axum::http::{HeaderMap, Method};
use duly_core::access::{AccessRoles, TenantGrant};
use duly_core::key::KeyHash;
use duly_engine::key_text::KeyText;
use tokio::time::Instant;

use super::Authenticator;
use crate::access::Access;
use crate::app::App;
use crate::caller::{Credentials, ForInstallation, Identity, Validity};
use crate::error::{ApiError, Code};
use crate::peer::Peer;

/// The cookie of a browser that has signed in.
pub(crate) const COOKIE_NAME: &str = "duly_session";

/// Checks who calls and what the route requires. What was found out goes with the request.
pub(crate) async fn admit(
    app: &App,
    request: &mut Request,
    access: Access,
) -> Result<(), ApiError> {
    let peer = Peer::of(&app.config, request);
    let throttle = |caller: &str| app.throttle.check(caller, peer).map_err(ApiError::rate_limited);
    let Some(authenticator) = app.config.auth.as_ref().filter(|_| access != Access::Public) else {
        return throttle("");
    };
    let credentials =
        identify(app, authenticator, request.method(), request.headers(), peer).await?;
    throttle(&credentials.identity.actor())?;
    authorize(&credentials, access)?;
    request.extensions_mut().insert(credentials);
    if access.is_for_installation() {
        request.extensions_mut().insert(ForInstallation);
    }
    Ok(())
}

fn authorize(credentials: &Credentials, access: Access) -> Result<(), ApiError> {
    if access.allows(credentials.roles, &credentials.grant) {
        return authorize_restricted(&credentials.identity, access);
    }
    let needed = access.role().map_or("a role", |role| role.as_str());
    let whose = if access.is_for_installation() { " for the tenant `*`" } else { "" };
    let held: Vec<_> = credentials.roles.iter().map(|role| role.as_str()).collect();
    let detail = format!(
        "this needs the role {needed}{whose}; the token or key has {} for the tenant `{}`",
        held.join(", "),
        credentials.grant
    );
    Err(ApiError::new(Code::Forbidden, detail))
}

/// What operators and admins do is not told apart by queue and type, so a key that is restricted to some
/// may not do it at all.
fn authorize_restricted(identity: &Identity, access: Access) -> Result<(), ApiError> {
    let is_checked = matches!(
        access,
        Access::Public | Access::SignedIn | Access::Viewer | Access::Submitter | Access::Worker
    );
    let is_restricted =
        matches!(identity, Identity::Key(key) if !key.queues.is_empty() || !key.types.is_empty());
    if is_restricted && !is_checked {
        let detail = "the key is restricted to some queues or types, so it may only read, submit, \
                      cancel and work";
        return Err(ApiError::new(Code::Forbidden, detail));
    }
    Ok(())
}

/// Who sends these headers.
pub(crate) async fn identify(
    app: &App,
    authenticator: &Authenticator,
    method: &Method,
    headers: &HeaderMap,
    peer: Option<Peer>,
) -> Result<Credentials, ApiError> {
    let secret = match bearer(headers)? {
        Some(secret) => secret,
        None => cookie(method, headers)?.ok_or_else(ApiError::unauthenticated)?,
    };
    let key = KeyText::parse(secret);
    if let Some(wait) = peer.and_then(|peer| app.attempts.blocked(peer)) {
        let is_known = match &key {
            Some(key) => authenticator.knows_key(&key.hash()),
            None => authenticator.knows(secret),
        };
        if !is_known {
            return Err(ApiError::too_many_attempts(wait));
        }
    }
    let found = match key {
        Some(key) => by_key(app, authenticator, key.hash()).await?,
        None => by_token(app, authenticator, secret).await?,
    };
    if found.is_none()
        && let Some(peer) = peer
    {
        app.attempts.note_failure(peer);
    }
    found.ok_or_else(ApiError::unauthenticated)
}

async fn by_token(
    app: &App,
    authenticator: &Authenticator,
    token: &str,
) -> Result<Option<Credentials>, ApiError> {
    let Some(token) = authenticator.check(token).await else { return Ok(None) };
    let ends = Some(Instant::now() + token.time_left(authenticator.now()));
    // A token that a key was exchanged for is worth what the key is worth now.
    if let Some(hash) = token.key {
        let found = by_key(app, authenticator, hash).await?;
        return Ok(found.map(|it| Credentials { validity: Validity { ends, ..it.validity }, ..it }));
    }
    Ok(Some(Credentials {
        validity: Validity { ends, key: None },
        identity: Identity::Token { subject: Arc::from(token.subject.as_str()) },
        roles: token.roles,
        grant: token.grant.clone(),
    }))
}

async fn by_key(
    app: &App,
    authenticator: &Authenticator,
    hash: KeyHash,
) -> Result<Option<Credentials>, ApiError> {
    let found = app.engine.find_key(hash).await?;
    authenticator.note_key(hash, found.is_some());
    Ok(found.map(|key| Credentials {
        validity: Validity { ends: None, key: Some(hash) },
        roles: key.roles,
        grant: key.tenant.clone(),
        identity: Identity::Key(key),
    }))
}

/// The token of the header `Authorization`. Another scheme, or a second header, is no credential.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = given.next() else { return Ok(None) };
    let text = value.to_str().ok().filter(|_| given.next().is_none());
    let token = text.and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    token.filter(|token| !token.is_empty()).map(Some).ok_or_else(ApiError::unauthenticated)
}

/// The token of the cookie. A browser sends it by itself, so a write must also say which page it comes
/// from; the guard has checked that this is one of ours.
fn cookie<'a>(method: &Method, headers: &'a HeaderMap) -> Result<Option<&'a str>, ApiError> {
    let pairs = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = pairs.flat_map(|pairs| pairs.split(';')).filter_map(|it| it.trim().split_once('='));
    let mut tokens = pairs.filter(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value);
    let Some(token) = tokens.next() else { return Ok(None) };
    if tokens.next().is_some() {
        return Err(ApiError::unauthenticated());
    }
    let reads = matches!(*method, Method::GET | Method::HEAD);
    if !reads && !headers.contains_key(ORIGIN) {
        let detail = "a write with the cookie of a browser needs the header Origin; send a token \
                      as `Authorization: Bearer …` instead";
        return Err(ApiError::new(Code::CrossSite, detail));
    }
    Ok(Some(token))
}

/// What a caller may do on a server that trusts every caller.
pub(crate) fn anonymous() -> Credentials {
    Credentials {
        identity: Identity::Anonymous,
        roles: AccessRoles::all(),
        grant: TenantGrant::Installation,
        validity: Validity::default(),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(name, HeaderValue::from_str(value).unwrap());
        }
        map
    }

    #[test]
    fn one_bearer_token_is_taken_and_nothing_else() {
        let of = |values: &[&str]| {
            let pairs: Vec<_> = values.iter().map(|value| (AUTHORIZATION, *value)).collect();
            bearer(&headers(&pairs)).ok().map(|found| found.map(str::to_owned))
        };
        assert_eq!(of(&[]), Some(None));
        assert_eq!(of(&["Bearer a.b.c"]), Some(Some("a.b.c".to_owned())));
        assert_eq!(of(&["bearer a.b.c"]), Some(Some("a.b.c".to_owned())));
        for bad in
            [&["Basic a"][..], &["Bearer"], &["Bearer  "], &["a.b.c"], &["Bearer a", "Bearer b"]]
        {
            assert_eq!(of(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn s26_a_cookie_writes_only_with_an_origin() {
        let sent = headers(&[(COOKIE, "a=b; duly_session=t; c=d")]);
        assert_eq!(cookie(&Method::GET, &sent).unwrap(), Some("t"));
        assert!(cookie(&Method::POST, &sent).is_err());
        let own = headers(&[(COOKIE, "duly_session=t"), (ORIGIN, "http://localhost")]);
        assert_eq!(cookie(&Method::POST, &own).unwrap(), Some("t"));
        let twice = headers(&[(COOKIE, "duly_session=t; duly_session=u")]);
        assert!(cookie(&Method::GET, &twice).is_err());
    }
}
