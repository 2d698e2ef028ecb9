//! How callers sign in, and what each operation requires of them.

use serde_json::{Value, json};
use utoipa::Modify;
use utoipa::openapi::OpenApi;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};

use super::{Common, add_problems};
use crate::access::Access;
use crate::auth::admit::COOKIE_NAME;

const BEARER: &str = "bearer";
const COOKIE: &str = "cookie";
const UNAUTHENTICATED: Common = ("401", "`UNAUTHENTICATED`");
const TOO_MANY: Common = ("429", "`RATE_LIMITED`, `TOO_MANY_ATTEMPTS`; see `Retry-After`");

/// Adds the ways to sign in to the document.
pub(super) struct Schemes;

impl Modify for Schemes {
    fn modify(&self, document: &mut OpenApi) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
        let bearer = bearer.description(Some("A signed token (JWT) or an API key")).build();
        let about = "For browsers, from `POST /auth/session`; writes also need the header Origin";
        let cookie = ApiKeyValue::with_description(COOKIE_NAME, about);
        let components = document.components.get_or_insert_default();
        components.add_security_scheme(BEARER, SecurityScheme::Http(bearer));
        components.add_security_scheme(COOKIE, SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
    }
}

/// Says what an operation requires, from the access that it declares.
pub(super) fn describe(operation: &mut Operation) {
    let Some(access) = Access::declared(operation) else { return };
    let none = || Vec::<String>::new();
    let ways = [BEARER, COOKIE].map(|way| SecurityRequirement::new(way, none()));
    let is_open = access == Access::Public;
    operation.security = Some(if is_open { Vec::new() } else { ways.to_vec() });
    let roles: Vec<_> = access.roles().map(|role| role.as_str()).collect();
    let roles = if is_open { json!([]) } else { json!(roles) };
    let tenant = access.is_for_installation().then(|| ("x-tenant", json!("*")));
    let described: Vec<(&str, Value)> = [("x-roles", roles)].into_iter().chain(tenant).collect();
    operation.extensions.get_or_insert_default().merge(Extensions::from_iter(described));
    if !is_open {
        add_problems(operation, &[UNAUTHENTICATED, TOO_MANY]);
    }
}
