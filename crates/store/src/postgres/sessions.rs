//! Sessions as this node knows them: what each was opened with never changes, so it is read once,
//! and with it which lanes it serves.

use std::sync::Arc;

use deadpool_postgres::GenericClient;
use duly_core::id::SessionId;
use duly_core::name::{QueueName, TenantName, TypeName};
use duly_core::ports::store::{Home, OpenSession};
use foldhash::{HashMap, HashSet};
use parking_lot::{Mutex, RwLock};
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::Result;
use super::lanes::Lanes;
use super::range::LaneId;
use super::row;

/// A session that was open when this node last looked.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) opened: OpenSession,
    served: Mutex<Served>,
}

/// Which of the first so many lanes a session serves.
#[derive(Debug, Default)]
struct Served {
    lanes: Arc<HashSet<LaneId>>,
    of_first: usize,
}

impl Session {
    fn new(opened: OpenSession) -> Self {
        Self { opened, served: Mutex::default() }
    }

    /// Whether it serves a lane.
    pub(super) fn serves(&self, lanes: &Lanes) -> impl Fn(LaneId) -> bool + use<> {
        let mut served = self.served.lock();
        let new = lanes.after(served.of_first);
        if !new.is_empty() {
            served.of_first += new.len();
            let wanted = new.iter().filter(|(_, lane)| self.opened.serves(lane));
            Arc::make_mut(&mut served.lanes).extend(wanted.map(|(id, _)| *id));
        }
        let lanes = Arc::clone(&served.lanes);
        move |lane| lanes.contains(&lane)
    }
}

#[derive(Debug, Default)]
pub(super) struct Sessions {
    known: RwLock<HashMap<SessionId, Arc<Session>>>,
}

impl Sessions {
    pub(super) fn remember(&self, opened: OpenSession) -> Arc<Session> {
        let session = Arc::new(Session::new(opened));
        self.known.write().insert(session.opened.id, Arc::clone(&session));
        session
    }

    pub(super) fn forget(&self, id: SessionId) {
        self.known.write().remove(&id);
    }

    /// Forgets those that have ended.
    pub(super) fn retain(&self, is_open: impl Fn(&OpenSession) -> bool) {
        self.known.write().retain(|_, session| is_open(&session.opened));
    }

    pub(super) fn get(&self, id: SessionId) -> Option<Arc<Session>> {
        self.known.read().get(&id).cloned()
    }

    /// A session, read from the database if another node opened it; `None` if it is not open.
    pub(super) async fn fetch(
        &self,
        client: &impl GenericClient,
        id: SessionId,
    ) -> Result<Option<Arc<Session>>> {
        if let Some(session) = self.get(id) {
            return Ok(Some(session));
        }
        let select = format!(
            "/* session.fetch */ SELECT {COLUMNS} FROM duly.session
             WHERE id = $1 AND ended_at IS NULL"
        );
        let found = client.query_opt(&select, &[&row::session_uuid(id)]).await?;
        let opened = found.as_ref().map(opened).transpose()?;
        Ok(opened.map(|opened| self.remember(opened)))
    }
}

/// The columns that [`opened`] reads, in its order.
pub(super) const COLUMNS: &str = "id, name, tenant, types, queues, node, owner";

/// Reads what a session was opened with.
pub(super) fn opened(row: &Row) -> Result<OpenSession> {
    let id: Uuid = row.try_get(0)?;
    let damaged = |column| row::corrupt("session", column, id);
    let tenant: Option<&str> = row.try_get(2)?;
    let types: Vec<&str> = row.try_get(3)?;
    let queues: Vec<&str> = row.try_get(4)?;
    let types: Result<_> =
        types.into_iter().map(|it| TypeName::new(it).map_err(|_| damaged("types"))).collect();
    let queues: Result<_> =
        queues.into_iter().map(|it| QueueName::new(it).map_err(|_| damaged("queues"))).collect();
    let node: Option<Uuid> = row.try_get(5)?;
    let owner: Option<&str> = row.try_get(6)?;
    Ok(OpenSession {
        id: row::session_id(id),
        name: row.try_get(1)?,
        tenant: tenant.map(TenantName::new).transpose().map_err(|_| damaged("tenant"))?,
        types: types?,
        queues: queues?,
        home: if node.is_some() { Home::Local } else { Home::Remote },
        owner: owner.map(Arc::from),
    })
}
