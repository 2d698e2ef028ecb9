//! The tenants' records as this node knows them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use duly_core::name::TenantName;
use duly_core::ports::store::{self, Store};
use duly_core::settings::{OwnRetention, Settings};
use duly_core::tenant::TenantRecord;
use parking_lot::RwLock;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use crate::quotas::Gate;

/// Records that are read at once.
const PAGE: u32 = 1_000;
/// Reading all records takes at most one part in this many of the time.
const SHARE: u32 = 50;

/// A record, and how much of its quotas is used on this node.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) record: Arc<TenantRecord>,
    pub(crate) gate: Arc<Gate>,
}

type ByName = HashMap<TenantName, Known>;

/// All records at one moment.
#[derive(Clone, Default)]
pub(crate) struct AllKnown(Arc<ByName>);

impl AllKnown {
    /// The settings that hold for a tenant's tasks.
    pub(crate) fn settings(&self, tenant: &TenantName, installation: Settings) -> Settings {
        match self.0.get(tenant) {
            Some(known) => known.record.settings.over(installation),
            None => installation,
        }
    }

    /// The paths that a tenant has masked, if it does not leave that to the installation.
    pub(crate) fn redact(&self, tenant: &TenantName) -> Option<&Vec<String>> {
        self.0.get(tenant)?.record.settings.redact.as_ref()
    }

    /// Whether a tenant is suspended.
    pub(crate) fn is_suspended(&self, tenant: &TenantName) -> bool {
        self.0.get(tenant).is_some_and(|known| known.record.suspended_at.is_some())
    }
}

/// All records. This node learns of its own changes at once, and of those of other nodes with its next
/// sign of life. A tenant without a record costs one look into memory.
pub(crate) struct Tenants {
    store: Arc<dyn Store>,
    known: RwLock<Option<AllKnown>>,
    /// Held while they are read, with the moment before which they are not read again.
    reading: Mutex<Option<Instant>>,
    /// By the tenants that have one of their own.
    own_retention: watch::Sender<BTreeMap<TenantName, OwnRetention>>,
}

impl Tenants {
    /// Knows nothing yet: the first call of [`Self::get`] reads the store.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let own_retention = watch::Sender::default();
        Self { store, known: RwLock::default(), reading: Mutex::default(), own_retention }
    }

    /// What is known of a tenant that has a record.
    pub(crate) async fn get(&self, tenant: &TenantName) -> store::Result<Option<Known>> {
        Ok(self.all().await?.0.get(tenant).cloned())
    }

    /// The settings that hold for a tenant's tasks.
    pub(crate) async fn settings(
        &self,
        tenant: &TenantName,
        installation: Settings,
    ) -> store::Result<Settings> {
        Ok(self.all().await?.settings(tenant, installation))
    }

    /// All records; the store is read only the first time.
    pub(crate) async fn all(&self) -> store::Result<AllKnown> {
        if let Some(known) = &*self.known.read() {
            return Ok(known.clone());
        }
        let _reading = self.reading.lock().await;
        if let Some(known) = &*self.known.read() {
            return Ok(known.clone());
        }
        self.replace().await
    }

    /// Tells when a tenant's own retention changes, as far as this node knows. Tasks are deleted by what
    /// the store says.
    pub(crate) fn own_retention(&self) -> watch::Receiver<BTreeMap<TenantName, OwnRetention>> {
        self.own_retention.subscribe()
    }

    /// Reads the records again, unless that would take too much of the time.
    pub(crate) async fn refresh(&self) -> store::Result<()> {
        let mut reading = self.reading.lock().await;
        let start = Instant::now();
        if reading.is_some_and(|rest| start < rest) {
            return Ok(());
        }
        self.replace().await?;
        let rest: Duration = start.elapsed() * (SHARE - 1);
        *reading = Some(Instant::now() + rest);
        Ok(())
    }

    async fn replace(&self) -> store::Result<AllKnown> {
        let mut read = Vec::new();
        loop {
            let after = read.last().map(|last: &TenantRecord| last.name.clone());
            let page = self.store.tenants(after, PAGE).await?;
            let is_last = page.len() < PAGE as usize;
            read.extend(page);
            if is_last {
                break;
            }
        }
        let mut known = self.known.write();
        let before = known.take().unwrap_or_default();
        let all = read.into_iter().map(|record| {
            let name = record.name.clone();
            (name, newest(before.0.get(&record.name), record))
        });
        let all = AllKnown(Arc::new(all.collect()));
        *known = Some(all.clone());
        self.note_retention(&all);
        Ok(all)
    }

    /// Remembers a record that was just stored.
    pub(crate) fn note(&self, record: TenantRecord) {
        if let Some(known) = &mut *self.known.write() {
            let name = record.name.clone();
            let newest = newest(known.0.get(&name), record);
            Arc::make_mut(&mut known.0).insert(name, newest);
            self.note_retention(known);
        }
    }

    /// Tells of a change; the caller holds what is known, so that the newest is told last.
    fn note_retention(&self, known: &AllKnown) {
        let all = known.0.iter();
        let own = all.filter_map(|(name, it)| Some((name.clone(), it.record.settings.retention?)));
        let own: BTreeMap<_, _> = own.collect();
        self.own_retention.send_if_modified(|before| {
            let is_new = *before != own;
            *before = own;
            is_new
        });
    }
}

/// A record, with what is known of its use; the one that is known if it is newer.
fn newest(before: Option<&Known>, record: TenantRecord) -> Known {
    let Some(before) = before else {
        return Known { record: Arc::new(record), gate: Arc::default() };
    };
    let is_newer = before.record.version < record.version;
    let record = if is_newer { Arc::new(record) } else { Arc::clone(&before.record) };
    Known { record, gate: Arc::clone(&before.gate) }
}
