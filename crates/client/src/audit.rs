//! The audit log over HTTP.

use std::time::Duration;

use reqwest::Method;

use crate::error::Error;
use crate::http::{Client, append_page};
use crate::wire::AuditPage;

/// Which entries of the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only those of this actor.
    pub actor: Option<String>,
    /// Only this action, or those of a noun, such as `task`.
    pub action: Option<String>,
    /// Only those about this object.
    pub target: Option<String>,
    /// Only those made since then: an instant, or a time ago such as `24h`.
    pub since: Option<String>,
    /// Also those of other tenants and of the installation itself.
    pub installation: bool,
}

impl Client {
    /// Reads one page of the audit log, newest first.
    pub async fn audit_log(
        &self,
        query: &AuditQuery,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<AuditPage, Error> {
        let mut url = self.url(&["v1", "audit"]);
        let AuditQuery { actor, action, target, since, installation } = query;
        let pairs = [("actor", actor), ("action", action), ("target", target), ("since", since)];
        for (name, value) in pairs {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        if *installation {
            url.query_pairs_mut().append_pair("installation", "true");
        }
        append_page(&mut url, "", limit, cursor);
        self.call(Method::GET, url, None, Duration::ZERO).await
    }
}
