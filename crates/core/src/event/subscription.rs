//! Which events are wanted.

use serde::{Deserialize, Serialize};

use super::{Event, EventKind, Kinds, Place};
use crate::name::{Lane, QueueName, TenantName, TypeName};

/// Which events someone wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// Of these kinds.
    pub kinds: Kinds,
    /// Of this tenant; without one, of all tenants and of the installation.
    pub tenant: Option<TenantName>,
    /// About tasks of this queue, or about the queue.
    pub queue: Option<QueueName>,
    /// About tasks of this type.
    pub task_type: Option<TypeName>,
}

impl Subscription {
    /// To all events of these kinds.
    pub fn to(kinds: Kinds) -> Self {
        Self { kinds, tenant: None, queue: None, task_type: None }
    }

    /// Whether it wants this kind of event about tasks of this lane.
    pub fn wants(&self, kind: EventKind, lane: &Lane) -> bool {
        self.covers(kind, Some(&lane.tenant), Some(&lane.queue), Some(&lane.task_type))
    }

    /// Whether it wants this event.
    pub fn matches(&self, event: &Event) -> bool {
        let Place { tenant, queue, task_type } = &event.place;
        self.covers(event.kind, tenant.as_ref(), queue.as_ref(), task_type.as_ref())
    }

    fn covers(
        &self,
        kind: EventKind,
        tenant: Option<&TenantName>,
        queue: Option<&QueueName>,
        task_type: Option<&TypeName>,
    ) -> bool {
        self.kinds.has(kind)
            && self.tenant.as_ref().is_none_or(|it| Some(it) == tenant)
            && self.queue.as_ref().is_none_or(|it| Some(it) == queue)
            && self.task_type.as_ref().is_none_or(|it| Some(it) == task_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    #[test]
    fn a_subscription_wants_what_fits_all_it_says() {
        let name = |text| TenantName::new(text).unwrap();
        let lane = Lane {
            tenant: name("a"),
            queue: QueueName::new("mail").unwrap(),
            task_type: TypeName::new("email").unwrap(),
        };
        let all = Subscription::to(Kinds::OUTCOMES);
        assert!(all.wants(EventKind::TaskFailed, &lane));
        assert!(!all.wants(EventKind::TaskCreated, &lane));
        let own = Subscription { tenant: Some(name("a")), ..all.clone() };
        assert!(own.wants(EventKind::TaskFailed, &lane));
        let foreign = Subscription { tenant: Some(name("b")), ..all.clone() };
        assert!(!foreign.wants(EventKind::TaskFailed, &lane));
        let queue = QueueName::new("other").unwrap();
        assert!(
            !Subscription { queue: Some(queue), ..all.clone() }.wants(EventKind::TaskFailed, &lane)
        );
        let settings = Event::settings_changed(2, Timestamp::EPOCH);
        assert!(Subscription::to(Kinds::ALL).matches(&settings));
        assert!(!Subscription { kinds: Kinds::ALL, ..own }.matches(&settings));
    }
}
