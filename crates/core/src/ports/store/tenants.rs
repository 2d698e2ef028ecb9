//! What the installation's admins have recorded about tenants.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::{Counted, Expected, Result};
use crate::name::TenantName;
use crate::settings::OwnRetention;
use crate::tenant::{Quotas, TenantRecord, TenantSettings};

/// A tenant's record, to create or to replace.
#[derive(Clone, Debug)]
pub struct PutTenant {
    /// Whose.
    pub name: TenantName,
    /// Whether it is suspended: it may not submit, and none of its tasks is granted.
    pub suspended: bool,
    /// For people.
    pub note: Option<String>,
    /// Its limits.
    pub quotas: Quotas,
    /// What it sets for itself.
    pub settings: TenantSettings,
    /// The version that it is based on.
    pub expected: Expected,
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq)]
pub enum TenantChange {
    /// The record is so now.
    Done {
        /// As it is stored.
        record: Box<TenantRecord>,
        /// Whether there was none before.
        created: bool,
    },
    /// It is at another version, or there is one although none was expected. Nothing changed.
    Conflict {
        /// Its version; none if there is no record.
        version: Option<u64>,
    },
    /// There are [`crate::limits::TENANTS`] records.
    TooMany,
}

/// What a tenant may have only so many of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Usage {
    /// Tasks that wait or are blocked.
    WaitingTasks,
    /// Schedules.
    Schedules,
    /// Workflows that have not ended.
    Workflows,
}

/// Tenants. Who has no record has no limits of its own.
#[async_trait]
pub trait TenantRecords {
    /// Records by name, behind `after`; at most `limit`.
    async fn tenants(&self, after: Option<TenantName>, limit: u32) -> Result<Vec<TenantRecord>>;

    /// One record.
    async fn tenant(&self, name: &TenantName) -> Result<Option<TenantRecord>>;

    /// How long those keep ended tasks that have a retention of their own. A record that cannot be read
    /// counts as one that keeps them for ever: no task is deleted that the record may keep.
    async fn own_retention(&self) -> Result<BTreeMap<TenantName, OwnRetention>>;

    /// Creates or replaces a record. After a suspension is answered, no task of the tenant is granted; what
    /// was granted goes on. A record that has this content already is not changed, whatever was expected;
    /// one that was expected to be absent counts as created if it was never changed.
    async fn put_tenant(&self, put: PutTenant) -> Result<TenantChange>;

    /// How many of these a tenant has, counted up to a bound.
    async fn usage(&self, tenant: &TenantName, of: Usage, up_to: u32) -> Result<Counted>;
}
