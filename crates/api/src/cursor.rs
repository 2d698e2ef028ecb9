//! Opaque places in a list. A cursor holds for the list and the tenant it was made for and for
//! nobody else, so that a foreign one is refused instead of silently showing something.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use duly_core::id::TaskId;
use duly_core::name::TenantName;
use duly_core::ports::store::DeadPlace;
use duly_core::time::Timestamp;
use sha2::{Digest, Sha256};

use crate::error::{ApiError, Code};

/// Raised when the meaning of the bytes changes.
const VERSION: u8 = 1;
const TAG: usize = 8;
/// More than any cursor has: reading must stay cheap.
const MAX_CHARS: usize = 128;

/// A place in one list.
pub(crate) trait Place: Sized {
    /// Names the list.
    const LIST: &'static str;

    fn write(&self, bytes: &mut Vec<u8>);

    fn read(bytes: &[u8]) -> Option<Self>;
}

impl Place for TaskId {
    const LIST: &'static str = "tasks";

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_bytes)
    }
}

impl Place for DeadPlace {
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

/// The place after `last`.
pub(crate) fn encode<P: Place>(tenant: &TenantName, last: &P) -> String {
    let mut bytes = vec![VERSION];
    bytes.extend_from_slice(&tag(P::LIST, tenant));
    last.write(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The place a cursor stands for.
pub(crate) fn decode<P: Place>(tenant: &TenantName, cursor: &str) -> Result<P, ApiError> {
    let detail = "take `cursor` from the `nextCursor` of the same list, unchanged";
    read(tenant, cursor).ok_or_else(|| ApiError::new(Code::InvalidCursor, detail))
}

fn read<P: Place>(tenant: &TenantName, cursor: &str) -> Option<P> {
    if cursor.len() > MAX_CHARS {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let rest = bytes.strip_prefix(&[VERSION])?;
    P::read(rest.strip_prefix(&tag(P::LIST, tenant))?)
}

fn tag(list: &str, tenant: &TenantName) -> [u8; TAG] {
    let mut hasher = Sha256::new();
    hasher.update(list);
    hasher.update([0]);
    hasher.update(tenant.as_str());
    let digest: [u8; 32] = hasher.finalize().into();
    *digest.first_chunk().expect("a digest is longer than a tag")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> TaskId {
        TaskId::mint(Timestamp::from_millis(1_900_000_000_000), 3, 4)
    }

    fn dead() -> DeadPlace {
        DeadPlace { failed_at: Timestamp::from_millis(1_900_000_000_007), task: id() }
    }

    #[test]
    fn a_cursor_leads_back_to_its_place() {
        let tenant = TenantName::default_tenant();
        assert_eq!(decode::<TaskId>(&tenant, &encode(&tenant, &id())).unwrap(), id());
        assert_eq!(decode::<DeadPlace>(&tenant, &encode(&tenant, &dead())).unwrap(), dead());
    }

    #[test]
    fn a_cursor_belongs_to_one_list() {
        let tenant = TenantName::default_tenant();
        assert!(decode::<DeadPlace>(&tenant, &encode(&tenant, &id())).is_err());
        assert!(decode::<TaskId>(&tenant, &encode(&tenant, &dead())).is_err());
    }

    #[test]
    fn foreign_and_garbled_cursors_are_refused() {
        let tenant = TenantName::default_tenant();
        let cursor = encode(&tenant, &id());
        let other = TenantName::new("other").unwrap();
        assert!(decode::<TaskId>(&other, &cursor).is_err());
        let mut next_version = cursor.clone();
        next_version.replace_range(0..2, "Ag");
        let padded = format!("{cursor}==");
        let long = cursor.repeat(1000);
        for bad in ["", "x", "💥", "' or 1=1 --", &cursor[1..], &next_version, &padded, &long] {
            let error = decode::<TaskId>(&tenant, bad).unwrap_err();
            assert_eq!(error.code(), Code::InvalidCursor, "{bad}");
            assert!(decode::<DeadPlace>(&tenant, bad).is_err(), "{bad}");
        }
    }
}
