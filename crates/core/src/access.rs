//! What a caller may do, and for which tenants.

use std::fmt;
use std::str::FromStr;

use crate::name::{BadName, TenantName};

/// One of the things that a caller may be allowed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessRole {
    /// Reads.
    Viewer,
    /// Submits and cancels tasks.
    Submitter,
    /// Opens sessions, claims leases and finishes them; nothing else.
    Worker,
    /// Controls tasks, queues, workers, schedules and workflows.
    Operator,
    /// Manages settings and keys, and reads the audit log.
    Admin,
}

/// There is no role of this name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be one of viewer, submitter, worker, operator, admin")]
pub struct UnknownAccessRole;

impl AccessRole {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Viewer, Self::Submitter, Self::Worker, Self::Operator, Self::Admin];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Submitter => "submitter",
            Self::Worker => "worker",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// The roles whose holders may do what this role may: itself and those above it. Nothing is above
    /// a worker, since people should not hold leases by accident.
    const fn granted_by(self) -> &'static [Self] {
        match self {
            Self::Viewer => &[Self::Viewer, Self::Submitter, Self::Operator, Self::Admin],
            Self::Submitter => &[Self::Submitter, Self::Operator, Self::Admin],
            Self::Worker => &[Self::Worker],
            Self::Operator => &[Self::Operator, Self::Admin],
            Self::Admin => &[Self::Admin],
        }
    }
}

impl fmt::Display for AccessRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for AccessRole {
    type Err = UnknownAccessRole;

    fn from_str(text: &str) -> Result<Self, UnknownAccessRole> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or(UnknownAccessRole)
    }
}

/// The roles that a caller holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AccessRoles(u8);

impl AccessRoles {
    /// No role.
    pub const NONE: Self = Self(0);

    /// Every role.
    pub fn all() -> Self {
        AccessRole::ALL.into_iter().collect()
    }

    /// Whether they allow what this role allows.
    pub fn allow(self, role: AccessRole) -> bool {
        role.granted_by().iter().any(|&holder| self.0 & bit(holder) != 0)
    }

    /// Whether they allow all that these allow.
    pub fn include(self, others: Self) -> bool {
        others.iter().all(|role| self.allow(role))
    }

    /// Those that were given, lowest first.
    pub fn iter(self) -> impl Iterator<Item = AccessRole> {
        AccessRole::ALL.into_iter().filter(move |&role| self.0 & bit(role) != 0)
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<AccessRole> for AccessRoles {
    fn from_iter<I: IntoIterator<Item = AccessRole>>(roles: I) -> Self {
        Self(roles.into_iter().fold(0, |bits, role| bits | bit(role)))
    }
}

const fn bit(role: AccessRole) -> u8 {
    1 << role as u8
}

/// The tenants for which a caller holds its roles.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TenantGrant {
    /// This one alone.
    One(TenantName),
    /// All of them: the whole installation. Written `*`.
    Installation,
}

impl TenantGrant {
    /// How the installation is written.
    const INSTALLATION: &'static str = "*";

    /// Its text: the tenant's name, or `*`.
    pub fn as_str(&self) -> &str {
        match self {
            Self::One(tenant) => tenant.as_str(),
            Self::Installation => Self::INSTALLATION,
        }
    }
}

impl fmt::Display for TenantGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for TenantGrant {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        match text {
            Self::INSTALLATION => Ok(Self::Installation),
            name => TenantName::given(name).map(Self::One),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_allows_what_the_roles_below_it_allow() {
        let allowed = |role: AccessRole| {
            let held: AccessRoles = [role].into_iter().collect();
            AccessRole::ALL.into_iter().filter(|&it| held.allow(it)).collect::<Vec<_>>()
        };
        use AccessRole::*;
        assert_eq!(allowed(Viewer), [Viewer]);
        assert_eq!(allowed(Submitter), [Viewer, Submitter]);
        assert_eq!(allowed(Worker), [Worker]);
        assert_eq!(allowed(Operator), [Viewer, Submitter, Operator]);
        assert_eq!(allowed(Admin), [Viewer, Submitter, Operator, Admin]);
    }

    #[test]
    fn roles_are_given_on_only_by_those_who_hold_them() {
        let admin: AccessRoles = [AccessRole::Admin].into_iter().collect();
        let worker: AccessRoles = [AccessRole::Worker].into_iter().collect();
        assert!(admin.include([AccessRole::Viewer].into_iter().collect()));
        assert!(!admin.include(worker), "an admin does not run tasks");
        assert!(AccessRoles::all().include(worker));
        assert!(AccessRoles::NONE.is_empty() && !worker.is_empty());
    }

    #[test]
    fn a_grant_is_for_one_tenant_or_for_the_installation() {
        assert_eq!("*".parse(), Ok(TenantGrant::Installation));
        let acme = TenantName::new("acme").unwrap();
        assert_eq!("acme".parse(), Ok(TenantGrant::One(acme)));
        for bad in ["", "**", "Acme", "duly.system"] {
            assert!(bad.parse::<TenantGrant>().is_err(), "{bad:?}");
        }
    }
}
