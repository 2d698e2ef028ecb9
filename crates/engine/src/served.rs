//! Which types some live worker has a handler for.

use std::collections::HashMap;

use duly_core::id::SessionId;
use duly_core::name::TypeName;
use parking_lot::RwLock;

/// The types of every open session.
#[derive(Debug, Default)]
pub(crate) struct Served {
    types: RwLock<HashMap<SessionId, Vec<TypeName>>>,
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
    }
}
