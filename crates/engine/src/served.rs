//! Which types some live worker has a handler for.

use std::collections::{HashMap, HashSet};

use duly_core::id::SessionId;
use duly_core::name::TypeName;
use duly_core::ports::store::OpenedSession;
use parking_lot::RwLock;

/// The types of every open session.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// Of sessions that claim here.
    types: RwLock<HashMap<SessionId, Vec<TypeName>>>,
    /// Of sessions elsewhere, as they were last seen.
    elsewhere: RwLock<HashSet<TypeName>>,
}

impl Served {
    pub(crate) fn add(&self, session: SessionId, types: Vec<TypeName>) {
        self.types.write().insert(session, types);
    }

    pub(crate) fn remove(&self, session: SessionId) {
        self.types.write().remove(&session);
    }

    pub(crate) fn contains(&self, name: &TypeName) -> bool {
        self.types.read().values().any(|types| types.contains(name))
            || self.elsewhere.read().contains(name)
    }

    /// These sessions are open now; those that do not claim here serve their types elsewhere.
    pub(crate) fn learn(&self, sessions: &[OpenedSession]) {
        let here = self.types.read();
        let others = sessions.iter().filter(|session| !here.contains_key(&session.opened.id));
        let types: HashSet<_> = others.flat_map(|session| &session.opened.types).collect();
        let mut elsewhere = self.elsewhere.write();
        if types.len() != elsewhere.len() || types.iter().any(|name| !elsewhere.contains(*name)) {
            *elsewhere = types.into_iter().cloned().collect();
        }
    }
}
