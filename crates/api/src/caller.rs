//! Who calls: the tenant whose tasks a request may see, and the caller's identity.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use duly_core::audit::Author;
use duly_core::name::TenantName;

use crate::app::App;
use crate::error::{ApiError, Code};
use crate::request_id::RequestId;

/// Selects the tenant, where [`Tenants::ByHeader`] is in effect.
const HEADER: &str = "duly-tenant";

/// The caller of a request. Handlers take it as an argument and use its tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Owns the tasks that the request is about.
    pub(crate) tenant: TenantName,
    /// Who sent the request.
    pub(crate) identity: Identity,
    /// The id of the request.
    request_id: Option<RequestId>,
}

impl Caller {
    /// Who makes the changes that the request asks for.
    pub(crate) fn author(&self) -> Author {
        let actor = match self.identity {
            Identity::Anonymous => Arc::from(Author::ANONYMOUS),
        };
        let request_id = self.request_id.as_ref().map(|id| Arc::from(id.as_str()));
        Author { actor, request_id }
    }

    /// Whether the caller's roles are for the whole installation.
    pub(crate) fn is_of_installation(&self) -> bool {
        match self.identity {
            Identity::Anonymous => true,
        }
    }
}

/// Who sent a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The server does not ask callers who they are.
    Anonymous,
}

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let tenant = app.config.tenants.select(&parts.headers)?;
        let request_id = parts.extensions.get().cloned();
        Ok(Self { tenant, identity: Identity::Anonymous, request_id })
    }
}

/// How the tenant of a request is selected.
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
    fn select(&self, headers: &HeaderMap) -> Result<TenantName, ApiError> {
        let mut names = match self {
            Self::One(tenant) => return Ok(tenant.clone()),
            Self::ByHeader => headers.get_all(HEADER).iter(),
        };
        let Some(name) = names.next() else { return Ok(TenantName::default_tenant()) };
        let refused = |why: String| {
            ApiError::new(Code::InvalidParameter, format!("the header Duly-Tenant {why}"))
        };
        if names.next().is_some() {
            return Err(refused("is given twice; send it once".to_owned()));
        }
        let name = name.to_str().map_err(|_| refused("must be plain text".to_owned()))?;
        TenantName::given(name).map_err(|why| refused(why.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(tenants: &Tenants, header: Option<&str>) -> Option<String> {
        let mut headers = HeaderMap::new();
        if let Some(value) = header {
            headers.insert(HEADER, value.parse().unwrap());
        }
        tenants.select(&headers).ok().map(|name| name.to_string())
    }

    #[test]
    fn the_header_counts_only_where_callers_are_trusted() {
        let one = Tenants::default();
        assert_eq!(tenant(&one, Some("other")).as_deref(), Some("default"));
        assert_eq!(tenant(&Tenants::ByHeader, Some("other")).as_deref(), Some("other"));
        assert_eq!(tenant(&Tenants::ByHeader, None).as_deref(), Some("default"));
        for bad in ["", "Other", "a b", "duly.system", "é"] {
            assert_eq!(tenant(&Tenants::ByHeader, Some(bad)), None, "{bad}");
        }
    }
}
