//! The audit log: who changed what, when, and in which request.

use std::sync::Arc;

use crate::name::TenantName;
use crate::time::Timestamp;

/// Who makes a change, and in which request. A store that acts for an author writes each of its changes
/// to the audit log, in the commit of the change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Author {
    /// Who: `key:` and the id of an API key, `token:` and the subject of a token, or `anonymous`.
    pub actor: Arc<str>,
    /// The id of the request, as its answer has it.
    pub request_id: Option<Arc<str>>,
}

impl Author {
    /// The actor of callers whom the server does not ask who they are.
    pub const ANONYMOUS: &str = "anonymous";

    /// Who owns what this author opens: nobody in particular if the author is anonymous.
    pub fn owner(&self) -> Option<&Arc<str>> {
        Some(&self.actor).filter(|actor| &***actor != Self::ANONYMOUS)
    }
}

/// A change that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Counts the entries of the installation; a later one is higher.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// Who; see [`Author::actor`].
    pub actor: String,
    /// Whose object it is; of the installation if absent.
    pub tenant: Option<TenantName>,
    /// What was done: the noun and the verb of the API, such as `task.cancel`.
    pub action: String,
    /// To what: the id or name of a task, queue, schedule, key and so on.
    pub target: String,
    /// How the object was before, as JSON text; absent if there was none.
    pub before: Option<Arc<str>>,
    /// How it is now, as JSON text; absent if it is gone.
    pub after: Option<Arc<str>>,
    /// The request that did it.
    pub request_id: Option<String>,
}
