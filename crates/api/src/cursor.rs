//! Opaque places in a list. A cursor holds for the list and the tenant it was made for and for
//! nobody else, so that a foreign one is refused instead of silently showing something.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use duly_core::id::TaskId;
use duly_core::name::TenantName;
use sha2::{Digest, Sha256};

use crate::error::{ApiError, Code};

/// Raised when the meaning of the bytes changes.
const VERSION: u8 = 1;
const TAG: usize = 8;
const ID: usize = 16;
const BYTES: usize = 1 + TAG + ID;

/// The lists that can be paged through.
#[derive(Clone, Copy, Debug)]
pub(crate) enum List {
    Tasks,
}

/// The place after `last`.
pub(crate) fn encode(list: List, tenant: &TenantName, last: TaskId) -> String {
    let mut bytes = [0; BYTES];
    bytes[0] = VERSION;
    bytes[1..=TAG].copy_from_slice(&tag(list, tenant));
    bytes[1 + TAG..].copy_from_slice(last.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The id a cursor stands for.
pub(crate) fn decode(list: List, tenant: &TenantName, cursor: &str) -> Result<TaskId, ApiError> {
    let detail = "take `cursor` from the `nextCursor` of the same list, unchanged";
    read(list, tenant, cursor).ok_or_else(|| ApiError::new(Code::InvalidCursor, detail))
}

fn read(list: List, tenant: &TenantName, cursor: &str) -> Option<TaskId> {
    let mut bytes = [0; BYTES];
    let length = URL_SAFE_NO_PAD.decode_slice(cursor, &mut bytes).ok()?;
    let (head, id) = bytes.split_last_chunk::<ID>().expect("the array is longer than an id");
    let known = length == BYTES && head[0] == VERSION && head[1..] == tag(list, tenant);
    known.then(|| TaskId::from_bytes(*id))
}

fn tag(list: List, tenant: &TenantName) -> [u8; TAG] {
    let kind = match list {
        List::Tasks => "tasks",
    };
    let mut hasher = Sha256::new();
    hasher.update(kind);
    hasher.update([0]);
    hasher.update(tenant.as_str());
    let digest: [u8; 32] = hasher.finalize().into();
    *digest.first_chunk().expect("a digest is longer than a tag")
}

#[cfg(test)]
mod tests {
    use duly_core::time::Timestamp;

    use super::*;

    fn id() -> TaskId {
        TaskId::mint(Timestamp::from_millis(1_900_000_000_000), 3, 4)
    }

    #[test]
    fn a_cursor_leads_back_to_its_id() {
        let tenant = TenantName::default_tenant();
        let cursor = encode(List::Tasks, &tenant, id());
        assert_eq!(decode(List::Tasks, &tenant, &cursor).unwrap(), id());
    }

    #[test]
    fn foreign_and_garbled_cursors_are_refused() {
        let tenant = TenantName::default_tenant();
        let cursor = encode(List::Tasks, &tenant, id());
        let other = TenantName::new("other").unwrap();
        assert!(decode(List::Tasks, &other, &cursor).is_err());
        let mut next_version = cursor.clone();
        next_version.replace_range(0..2, "Ag");
        let padded = format!("{cursor}==");
        let long = cursor.repeat(1000);
        for bad in ["", "x", "💥", "' or 1=1 --", &cursor[1..], &next_version, &padded, &long] {
            let error = decode(List::Tasks, &tenant, bad).unwrap_err();
            assert_eq!(error.code(), Code::InvalidCursor, "{bad}");
        }
    }
}
