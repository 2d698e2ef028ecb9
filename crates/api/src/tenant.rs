//! Whose tasks a caller sees, while there are no keys that say so.

use axum::http::HeaderMap;
use duly_core::name::TenantName;

use crate::error::{ApiError, Code};

/// Names the tenant, where callers are believed.
const HEADER: &str = "duly-tenant";

/// How a caller's tenant is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tenants {
    /// All callers are of this one.
    One(TenantName),
    /// The header `Duly-Tenant` says it, and whoever does not say is of the default tenant. Only for
    /// servers that trust whoever reaches them.
    ByHeader,
}

impl Default for Tenants {
    fn default() -> Self {
        Self::One(TenantName::default_tenant())
    }
}

impl Tenants {
    /// The tenant of a request.
    pub(crate) fn of(&self, headers: &HeaderMap) -> Result<TenantName, ApiError> {
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
        tenants.of(&headers).ok().map(|name| name.to_string())
    }

    #[test]
    fn a_header_counts_only_where_callers_are_believed() {
        let one = Tenants::default();
        assert_eq!(tenant(&one, Some("other")).as_deref(), Some("default"));
        assert_eq!(tenant(&Tenants::ByHeader, Some("other")).as_deref(), Some("other"));
        assert_eq!(tenant(&Tenants::ByHeader, None).as_deref(), Some("default"));
        for bad in ["", "Other", "a b", "duly.system", "é"] {
            assert_eq!(tenant(&Tenants::ByHeader, Some(bad)), None, "{bad}");
        }
    }
}
