//! The task types for which a live worker has a handler.

use std::collections::{HashMap, HashSet};

use duly_core::id::SessionId;
use duly_core::name::TypeName;
use duly_core::ports::store::OpenedSession;
use parking_lot::RwLock;

/// The types of every open session.
#[derive(Debug, Default)]
pub(crate) struct ServedTypes {
    /// By session, for sessions that claim through this node.
    attached: RwLock<HashMap<SessionId, Vec<TypeName>>>,
    /// Of all other sessions, as the store last listed them.
    other: RwLock<HashSet<TypeName>>,
}

impl ServedTypes {
    pub(crate) fn add(&self, session: SessionId, types: Vec<TypeName>) {
        self.attached.write().insert(session, types);
    }

    pub(crate) fn remove(&self, session: SessionId) {
        self.attached.write().remove(&session);
    }

    pub(crate) fn contains(&self, name: &TypeName) -> bool {
        self.attached.read().values().any(|types| types.contains(name))
            || self.other.read().contains(name)
    }

    /// Replaces the types of other sessions by those of the open sessions that do not claim
    /// through this node. Those that did before the list was read may have ended since.
    pub(crate) fn update_other(&self, open: &[OpenedSession], before: &[SessionId]) {
        let attached = self.attached.read();
        let is_own = |id: SessionId| attached.contains_key(&id) || before.contains(&id);
        let others = open.iter().filter(|session| !is_own(session.opened.id));
        let types: HashSet<_> = others.flat_map(|session| &session.opened.types).collect();
        let mut other = self.other.write();
        if types.len() != other.len() || types.iter().any(|name| !other.contains(*name)) {
            *other = types.into_iter().cloned().collect();
        }
    }
}
