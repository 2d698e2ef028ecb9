//! Tenants over HTTP.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::IF_MATCH;

use crate::error::Error;
use crate::http::{Client, append_page, encode};
use crate::wire::{PauseRequest, TenantPage, TenantRequest, TenantView};

impl Client {
    /// Reads one page of the records of tenants, by name.
    pub async fn list_tenants(
        &self,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<TenantPage, Error> {
        let mut url = self.url(&["v1", "tenants"]);
        append_page(&mut url, "", limit, cursor);
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// Reads the record of a tenant.
    pub async fn get_tenant(&self, name: &str) -> Result<TenantView, Error> {
        let url = self.url(&["v1", "tenants", name]);
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// Creates or replaces the record of a tenant; only a record at this version, if one is given.
    pub async fn put_tenant(
        &self,
        name: &str,
        request: &TenantRequest,
        version: Option<u64>,
    ) -> Result<TenantView, Error> {
        let (url, body) = (self.url(&["v1", "tenants", name]), encode(request));
        match version {
            None => self.call(Method::PUT, url, Some(body), Duration::ZERO).await,
            Some(version) => {
                let expected = (IF_MATCH, format!("\"{version}\""));
                self.call_with(expected, Method::PUT, url, body).await
            }
        }
    }

    /// Suspends a tenant: it submits nothing, and none of its tasks starts.
    pub async fn suspend_tenant(
        &self,
        name: &str,
        order: &PauseRequest,
    ) -> Result<TenantView, Error> {
        let url = self.url(&["v1", "tenants", name, "suspend"]);
        self.call(Method::POST, url, Some(encode(order)), Duration::ZERO).await
    }

    /// Ends the suspension of a tenant.
    pub async fn resume_tenant(&self, name: &str) -> Result<TenantView, Error> {
        let url = self.url(&["v1", "tenants", name, "resume"]);
        self.call(Method::POST, url, Some("{}".into()), Duration::ZERO).await
    }
}
