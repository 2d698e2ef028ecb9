//! Who calls: the tenant whose tasks a request may see, and the caller's identity.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};
use duly_core::access::{AccessRoles, TenantGrant};
use duly_core::audit::Author;
use duly_core::key::{ApiKey, KeyHash};
use duly_core::name::TenantName;
use tokio::time::Instant;

use crate::app::App;
use crate::auth::admit;
use crate::error::{ApiError, Code};
use crate::query;
use crate::request_id::RequestId;

/// Selects the tenant, where the caller may choose.
const HEADER: &str = "duly-tenant";
/// The same for streams, to which browsers can give no headers. Only routes that declare it take it.
const PARAMETER: &str = "tenant";

/// The caller of a request. Handlers take it as an argument and use its tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Owns the tasks that the request is about.
    pub(crate) tenant: TenantName,
    /// Who sent the request.
    pub(crate) identity: Identity,
    /// What the caller may do.
    pub(crate) roles: AccessRoles,
    /// For which tenants.
    pub(crate) grant: TenantGrant,
    /// The id of the request.
    request_id: Option<RequestId>,
}

impl Caller {
    /// Who makes the changes that the request asks for.
    pub(crate) fn author(&self) -> Author {
        let request_id = self.request_id.as_ref().map(|id| Arc::from(id.as_str()));
        Author { actor: self.identity.actor().into(), request_id }
    }
}

/// Who sent a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The server does not ask callers who they are.
    Anonymous,
    /// The holder of a token.
    Token {
        /// The claim `sub`.
        subject: Arc<str>,
    },
    /// The holder of an API key, or of a token that it was exchanged for.
    Key(Arc<ApiKey>),
}

impl Identity {
    /// How it is named where callers are told apart.
    pub(crate) fn actor(&self) -> Cow<'static, str> {
        match self {
            Self::Anonymous => Author::ANONYMOUS.into(),
            Self::Token { subject } => format!("token:{subject}").into(),
            Self::Key(key) => format!("key:{}", key.id).into(),
        }
    }
}

/// What is known of a caller before the tenant of the request is.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    pub(crate) identity: Identity,
    pub(crate) roles: AccessRoles,
    pub(crate) grant: TenantGrant,
    pub(crate) validity: Validity,
}

/// For how long credentials count; for ever by default. Only answers that go on for long look at it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Validity {
    /// When the token is refused.
    pub(crate) ends: Option<Instant>,
    /// They count as long as this key does.
    pub(crate) key: Option<KeyHash>,
}

impl FromRequestParts<App> for Credentials {
    type Rejection = ApiError;

    /// What the layer around all routes found out; a server without keys asks nobody.
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        Ok(parts.extensions.get().cloned().unwrap_or_else(admit::anonymous))
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let tenant = match parts.extensions.get::<Credentials>() {
            Some(_) if parts.extensions.get::<ForInstallation>().is_some() => {
                TenantName::default_tenant()
            }
            Some(known) => granted_tenant(&known.grant, &parts.headers, &parts.uri)?,
            None => app.config.tenants.select(&parts.headers, &parts.uri)?,
        };
        let Credentials { identity, roles, grant, .. } =
            Credentials::from_request_parts(parts, app).await?;
        let request_id = parts.extensions.get().cloned();
        Ok(Self { tenant, identity, roles, grant, request_id })
    }
}

/// Goes with a request to a route that is about the installation: it needs to name no tenant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForInstallation;

/// The tenant of a request by a caller with this grant.
fn granted_tenant(
    grant: &TenantGrant,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<TenantName, ApiError> {
    match (grant, named(headers, uri)?) {
        (TenantGrant::One(own), Some(named)) if *own != named => {
            let detail = format!("the token or key is for the tenant `{own}` alone");
            Err(ApiError::new(Code::Forbidden, detail))
        }
        (TenantGrant::One(own), _) => Ok(own.clone()),
        (TenantGrant::Installation, Some(named)) => Ok(named),
        (TenantGrant::Installation, None) => Err(ApiError::new(
            Code::TenantRequired,
            "the token or key is for all tenants; name one with the header Duly-Tenant",
        )),
    }
}

/// How the tenant of a request is selected on a server that trusts every caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tenants {
    /// All callers belong to this tenant.
    One(TenantName),
    /// The `Duly-Tenant` header selects the tenant; without the header it is the default tenant.
    /// Only for servers that trust every caller that can reach them.
    ByHeader,
}

impl Default for Tenants {
    fn default() -> Self {
        Self::One(TenantName::default_tenant())
    }
}

impl Tenants {
    fn select(&self, headers: &HeaderMap, uri: &Uri) -> Result<TenantName, ApiError> {
        match self {
            Self::One(tenant) => Ok(tenant.clone()),
            Self::ByHeader => Ok(named(headers, uri)?.unwrap_or_else(TenantName::default_tenant)),
        }
    }
}

/// The tenant that a request names, in its header or in its query.
fn named(headers: &HeaderMap, uri: &Uri) -> Result<Option<TenantName>, ApiError> {
    match named_in_header(headers)? {
        Some(name) => Ok(Some(name)),
        None => named_in_query(uri),
    }
}

fn named_in_header(headers: &HeaderMap) -> Result<Option<TenantName>, ApiError> {
    let mut names = headers.get_all(HEADER).iter();
    let Some(name) = names.next() else { return Ok(None) };
    let refused = |why: String| {
        ApiError::new(Code::InvalidParameter, format!("the header Duly-Tenant {why}"))
    };
    if names.next().is_some() {
        return Err(refused("is given twice; send it once".to_owned()));
    }
    let name = name.to_str().map_err(|_| refused("must be plain text".to_owned()))?;
    TenantName::given(name).map(Some).map_err(|why| refused(why.to_string()))
}

fn named_in_query(uri: &Uri) -> Result<Option<TenantName>, ApiError> {
    if !uri.query().is_some_and(|query| query.contains(PARAMETER)) {
        return Ok(None);
    }
    let pairs = query::pairs(uri)?;
    let Some((_, name)) = pairs.iter().find(|(name, _)| name == PARAMETER) else { return Ok(None) };
    let refused = |why| query::invalid(format!("`{PARAMETER}` {why}"));
    TenantName::given(name).map(Some).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(tenant: Option<&str>) -> HeaderMap {
        let named = tenant.map(|name| (HEADER.parse().unwrap(), name.parse().unwrap()));
        HeaderMap::from_iter(named)
    }

    #[test]
    fn the_header_counts_only_where_callers_are_trusted() {
        let tenant = |tenants: &Tenants, name| {
            let uri = Uri::from_static("/");
            tenants.select(&headers(name), &uri).ok().map(|name| name.to_string())
        };
        let one = Tenants::default();
        assert_eq!(tenant(&one, Some("other")).as_deref(), Some("default"));
        assert_eq!(tenant(&Tenants::ByHeader, Some("other")).as_deref(), Some("other"));
        assert_eq!(tenant(&Tenants::ByHeader, None).as_deref(), Some("default"));
        for bad in ["", "Other", "a b", "duly.system", "é"] {
            assert_eq!(tenant(&Tenants::ByHeader, Some(bad)), None, "{bad}");
        }
    }

    #[test]
    fn a_stream_selects_the_tenant_in_its_query() {
        let uri = Uri::from_static("/?tenant=other");
        let tenant = |tenants: Tenants, header| {
            tenants.select(&headers(header), &uri).map(|name| name.to_string()).unwrap()
        };
        assert_eq!(tenant(Tenants::ByHeader, None), "other");
        assert_eq!(tenant(Tenants::ByHeader, Some("own")), "own");
        assert_eq!(tenant(Tenants::default(), None), "default");
    }

    #[test]
    fn a_caller_acts_for_the_tenants_of_its_grant_alone() {
        let select = |grant: &str, header, uri| {
            let uri = Uri::from_static(uri);
            let found = granted_tenant(&grant.parse().unwrap(), &headers(header), &uri);
            found.map(|name| name.to_string()).map_err(|error| error.code())
        };
        assert_eq!(select("ada", None, "/").as_deref(), Ok("ada"));
        assert_eq!(select("ada", Some("ada"), "/").as_deref(), Ok("ada"));
        assert_eq!(select("ada", Some("bob"), "/"), Err(Code::Forbidden));
        assert_eq!(select("ada", None, "/?tenant=bob"), Err(Code::Forbidden));
        assert_eq!(select("*", Some("bob"), "/").as_deref(), Ok("bob"));
        assert_eq!(select("*", None, "/?a=b&tenant=bob").as_deref(), Ok("bob"));
        assert_eq!(select("*", None, "/"), Err(Code::TenantRequired));
        assert_eq!(select("*", Some("*"), "/"), Err(Code::InvalidParameter));
    }
}
