//! Read and change the records of tenants, and refuse what they may not do.

use duly_core::name::TenantName;
use duly_core::ports::store::{self, Expected, PutTenant, TenantChange};
use duly_core::settings::Settings;
use duly_core::tenant::{Quotas, TenantRecord, TenantSettings};
use tokio::sync::oneshot;

use crate::engine::Engine;
use crate::quotas::QuotaExceeded;

/// What is recorded about a tenant, beside whether it is suspended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TenantDraft {
    /// For people.
    pub note: Option<String>,
    /// Its limits.
    pub quotas: Quotas,
    /// What it sets for itself.
    pub settings: TenantSettings,
}

/// A change to a tenant's record.
#[derive(Clone, Debug, PartialEq)]
pub enum TenantOrder {
    /// Replaces everything but whether it is suspended.
    Put(TenantDraft),
    /// Grants and submits nothing more; the note stays if there is no other.
    Suspend {
        /// Why, for people.
        note: Option<String>,
    },
    /// Goes on.
    Resume,
}

/// Why a record was not changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It was changed, or exists although it should not, or the other way round.
    #[error("the record of the tenant was changed")]
    Conflict {
        /// Its version; none if there is no record.
        version: Option<u64>,
    },
    /// There are as many records as there may be.
    #[error("there are as many tenants with a record as there may be")]
    TooMany,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Why a tenant may not do something now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// It is suspended.
    #[error("tenant {tenant} is suspended; an admin of the installation can resume it")]
    Suspended {
        /// Whose.
        tenant: TenantName,
    },
    /// It would exceed a quota.
    #[error(transparent)]
    Quota(#[from] QuotaExceeded),
}

impl Engine {
    /// Records by name, behind `after`.
    pub async fn tenants(
        &self,
        after: Option<TenantName>,
        limit: u32,
    ) -> store::Result<Vec<TenantRecord>> {
        self.store().tenants(after, limit).await
    }

    /// One record.
    pub async fn tenant(&self, name: &TenantName) -> store::Result<Option<TenantRecord>> {
        self.store().tenant(name).await
    }

    /// Changes a record. It holds on this node when the call returns, also if the caller goes away. After
    /// a suspension no node grants a task of the tenant; the other nodes refuse its submits within a third
    /// of the time to live of a node. Answers whether the record is new.
    pub async fn change_tenant(
        &self,
        name: TenantName,
        order: TenantOrder,
        expected: Expected,
    ) -> Result<(TenantRecord, bool), Error> {
        let (answer, made) = oneshot::channel();
        // In a task of its own: if the caller goes away, this node must still learn of the change.
        let engine = self.clone();
        self.spawn(async move {
            answer.send(engine.make_tenant(name, order, expected).await).ok();
        });
        let lost = |_| store::Error::Unavailable { reason: "the change was given up".to_owned() };
        made.await.map_err(lost)?
    }

    async fn make_tenant(
        &self,
        name: TenantName,
        order: TenantOrder,
        expected: Expected,
    ) -> Result<(TenantRecord, bool), Error> {
        loop {
            let before = self.store().tenant(&name).await?;
            let version = before.as_ref().map(|before| before.version);
            let put = put(name.clone(), before, &order, expected);
            match self.store().put_tenant(put).await? {
                TenantChange::Done { record, created } => {
                    self.known_tenants().note((*record).clone());
                    return Ok((*record, created));
                }
                TenantChange::TooMany => return Err(Error::TooMany),
                // Another change was faster, and the caller did not name a version.
                TenantChange::Conflict { version: now }
                    if expected == Expected::Any && now != version => {}
                TenantChange::Conflict { version } => return Err(Error::Conflict { version }),
            }
        }
    }

    /// What tasks of a tenant go by that do not say.
    pub(crate) async fn defaults_of(&self, tenant: &TenantName) -> store::Result<Settings> {
        let installation = self.settings_in_effect().await?.settings.clone();
        self.known_tenants().settings(tenant, installation).await
    }

    /// Refuses submits of a suspended tenant, and those beyond its quotas; counts them otherwise.
    pub(crate) async fn admit_tasks(
        &self,
        tenant: &TenantName,
        tasks: usize,
    ) -> store::Result<Result<(), Denied>> {
        let Some(known) = self.known_tenants().get(tenant).await? else { return Ok(Ok(())) };
        if known.record.suspended_at.is_some() {
            return Ok(Err(Denied::Suspended { tenant: tenant.clone() }));
        }
        // Those of the system are not the tenant's: with them an operator clears a backlog.
        if tasks == 0 {
            return Ok(Ok(()));
        }
        let quotas = &known.record.quotas;
        let admitted = known.gate.admit(self.store(), tenant, quotas, tasks).await?;
        Ok(admitted.map_err(Denied::from))
    }

    /// The tenant's quotas; none if it has no record.
    pub(crate) async fn quotas_of(&self, tenant: &TenantName) -> store::Result<Quotas> {
        let known = self.known_tenants().get(tenant).await?;
        Ok(known.map_or_else(Quotas::default, |known| known.record.quotas))
    }
}

/// The order as the store takes it. A change of a part is based on what was read, so that a change in
/// between is not undone.
fn put(
    name: TenantName,
    before: Option<TenantRecord>,
    order: &TenantOrder,
    expected: Expected,
) -> PutTenant {
    let read = before.as_ref().map_or(Expected::Absent, |it| Expected::Version(it.version));
    let expected = if expected == Expected::Any { read } else { expected };
    let suspended = before.as_ref().is_some_and(|before| before.suspended_at.is_some());
    let kept = before.map_or_else(TenantDraft::default, |before| TenantDraft {
        note: before.note,
        quotas: before.quotas,
        settings: before.settings,
    });
    let (suspended, draft) = match order {
        TenantOrder::Put(draft) => (suspended, draft.clone()),
        TenantOrder::Suspend { note } => {
            (true, TenantDraft { note: note.clone().or(kept.note.clone()), ..kept })
        }
        TenantOrder::Resume => (false, kept),
    };
    let TenantDraft { note, quotas, settings } = draft;
    PutTenant { name, suspended, note, quotas, settings, expected }
}
