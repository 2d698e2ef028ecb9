//! Opaque places in a list. A cursor holds for the list, the tenant and the filter it was made for
//! and for no others, so that a foreign one is refused instead of silently showing something.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use duly_core::id::{KeyId, TaskId, WorkflowId};
use duly_core::limits::{COUNT, LOG_BYTES};
use duly_core::name::{QueueName, ScheduleName, TenantName};
use duly_core::ports::store::{DeadPosition, LogPosition};
use duly_core::time::Timestamp;
use sha2::{Digest, Sha256};

use crate::error::{ApiError, Code};

/// Raised when the meaning of the bytes changes.
const VERSION: u8 = 1;
const TAG: usize = 8;
/// More than any cursor has, the name of a queue in it: reading must stay cheap.
const MAX_CHARS: usize = 256;

/// A place in one list.
pub(crate) trait CursorValue: Sized {
    /// Names the list.
    const LIST: &'static str;

    fn write(&self, bytes: &mut Vec<u8>);

    fn read(bytes: &[u8]) -> Option<Self>;
}

impl CursorValue for TaskId {
    const LIST: &'static str = "tasks";

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_bytes)
    }
}

impl CursorValue for WorkflowId {
    const LIST: &'static str = "workflows";

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_bytes)
    }
}

impl CursorValue for KeyId {
    const LIST: &'static str = "keys";

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_bytes)
    }
}

impl CursorValue for DeadPosition {
    const LIST: &'static str = "dlq";

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.failed_at.millis().to_be_bytes());
        self.task.write(bytes);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (millis, task) = bytes.split_first_chunk()?;
        let failed_at = Timestamp::clamped(i64::from_be_bytes(*millis));
        Some(Self { failed_at, task: TaskId::read(task)? })
    }
}

impl CursorValue for QueueName {
    const LIST: &'static str = "queues";

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.as_str().as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Self::new(std::str::from_utf8(bytes).ok()?).ok()
    }
}

impl CursorValue for ScheduleName {
    const LIST: &'static str = "schedules";

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.as_str().as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Self::new(std::str::from_utf8(bytes).ok()?).ok()
    }
}

impl CursorValue for TenantName {
    const LIST: &'static str = "tenants";

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.as_str().as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Self::new(std::str::from_utf8(bytes).ok()?).ok()
    }
}

/// A version of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SettingsPosition(pub(crate) u64);

impl CursorValue for SettingsPosition {
    const LIST: &'static str = "settings";

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.0.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(u64::from_be_bytes).map(Self)
    }
}

/// A number of an entry of the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AuditPosition(pub(crate) u64);

impl CursorValue for AuditPosition {
    const LIST: &'static str = "audit";

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.0.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(u64::from_be_bytes).map(Self)
    }
}

impl CursorValue for LogPosition {
    const LIST: &'static str = "logs";

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.epoch.to_be_bytes());
        bytes.extend_from_slice(&self.offset.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (epoch, offset) = bytes.split_first_chunk()?;
        let offset = u64::from_be_bytes(offset.try_into().ok()?);
        // A store that counts in signed numbers takes no more.
        let offset = Some(offset).filter(|offset| *offset <= COUNT + LOG_BYTES as u64)?;
        Some(Self { epoch: u32::from_be_bytes(*epoch), offset })
    }
}

/// What a cursor holds for beside its list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) tenant: &'a TenantName,
    /// As it was written: times ago mean another instant in every request.
    pub(crate) filter: &'a str,
}

/// The place after `last`.
pub(crate) fn encode<P: CursorValue>(scope: Scope<'_>, last: &P) -> String {
    let mut bytes = vec![VERSION];
    bytes.extend_from_slice(&tag(P::LIST, scope));
    last.write(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The place a cursor stands for.
pub(crate) fn decode<P: CursorValue>(scope: Scope<'_>, cursor: &str) -> Result<P, ApiError> {
    let detail = "take `cursor` from the `nextCursor` of the same list with the same filter, \
                  both unchanged";
    read(scope, cursor).ok_or_else(|| ApiError::new(Code::InvalidCursor, detail))
}

fn read<P: CursorValue>(scope: Scope<'_>, cursor: &str) -> Option<P> {
    if cursor.len() > MAX_CHARS {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let rest = bytes.strip_prefix(&[VERSION])?;
    P::read(rest.strip_prefix(&tag(P::LIST, scope))?)
}

fn tag(list: &str, scope: Scope<'_>) -> [u8; TAG] {
    let mut hasher = Sha256::new();
    hasher.update(list);
    hasher.update([0]);
    hasher.update(scope.tenant.as_str());
    let filter = scope.filter.trim();
    if !filter.is_empty() {
        hasher.update([0]);
        hasher.update(filter);
    }
    let digest: [u8; 32] = hasher.finalize().into();
    *digest.first_chunk().expect("a digest is longer than a tag")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> TaskId {
        TaskId::mint(Timestamp::from_millis(1_900_000_000_000), 3, 4)
    }

    fn dead() -> DeadPosition {
        DeadPosition { failed_at: Timestamp::from_millis(1_900_000_000_007), task: id() }
    }

    fn scope<'a>(tenant: &'a TenantName, filter: &'a str) -> Scope<'a> {
        Scope { tenant, filter }
    }

    #[test]
    fn a_cursor_leads_back_to_its_place() {
        let tenant = TenantName::default_tenant();
        let scope = scope(&tenant, "queue:mail");
        assert_eq!(decode::<TaskId>(scope, &encode(scope, &id())).unwrap(), id());
        assert_eq!(decode::<DeadPosition>(scope, &encode(scope, &dead())).unwrap(), dead());
        let version = SettingsPosition(7);
        assert_eq!(decode::<SettingsPosition>(scope, &encode(scope, &version)).unwrap(), version);
    }

    #[test]
    fn a_cursor_belongs_to_one_list() {
        let tenant = TenantName::default_tenant();
        let scope = scope(&tenant, "");
        assert!(decode::<DeadPosition>(scope, &encode(scope, &id())).is_err());
        assert!(decode::<TaskId>(scope, &encode(scope, &dead())).is_err());
        assert!(decode::<SettingsPosition>(scope, &encode(scope, &id())).is_err());
    }

    #[test]
    fn a_cursor_belongs_to_one_filter() {
        let tenant = TenantName::default_tenant();
        let cursor = encode(scope(&tenant, "queue:mail since:24h"), &id());
        assert!(decode::<TaskId>(scope(&tenant, " queue:mail since:24h "), &cursor).is_ok());
        for other in ["", "queue:mail", "queue:mail since:25h", "since:24h queue:mail"] {
            assert!(decode::<TaskId>(scope(&tenant, other), &cursor).is_err(), "{other}");
        }
        let unfiltered = encode(scope(&tenant, " "), &id());
        assert!(decode::<TaskId>(scope(&tenant, ""), &unfiltered).is_ok());
    }

    #[test]
    fn foreign_and_garbled_cursors_are_refused() {
        let tenant = TenantName::default_tenant();
        let own = scope(&tenant, "");
        let cursor = encode(own, &id());
        let other = TenantName::new("other").unwrap();
        assert!(decode::<TaskId>(scope(&other, ""), &cursor).is_err());
        let mut next_version = cursor.clone();
        next_version.replace_range(0..2, "Ag");
        let padded = format!("{cursor}==");
        let long = cursor.repeat(1000);
        for bad in ["", "x", "💥", "' or 1=1 --", &cursor[1..], &next_version, &padded, &long] {
            let error = decode::<TaskId>(own, bad).unwrap_err();
            assert_eq!(error.code(), Code::InvalidCursor, "{bad}");
            assert!(decode::<DeadPosition>(own, bad).is_err(), "{bad}");
        }
    }
}
