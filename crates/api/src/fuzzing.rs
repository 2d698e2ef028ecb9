//! Doors for the fuzz targets in `fuzz/`, which alone are built with `--cfg fuzzing`: what reads texts
//! of callers, and must never panic.

use duly_core::id::{TaskId, WorkflowId};
use duly_core::name::{QueueName, ScheduleName, TenantName};
use duly_core::ports::store::{DeadPosition, LogPosition};
use futures_util::FutureExt as _;

use crate::auth::Authenticator;
use crate::cursor::{self, CursorValue, Scope, SettingsPosition};
use crate::task_fields;

/// Reads a text as a cursor of every list; what is read must be written the same.
pub fn read_cursor(text: &str) {
    let tenant = TenantName::default_tenant();
    read::<TaskId>(&tenant, text);
    read::<WorkflowId>(&tenant, text);
    read::<DeadPosition>(&tenant, text);
    read::<QueueName>(&tenant, text);
    read::<ScheduleName>(&tenant, text);
    read::<SettingsPosition>(&tenant, text);
    read::<LogPosition>(&tenant, text);
}

fn read<P: CursorValue>(tenant: &TenantName, text: &str) {
    let scope = Scope { tenant, filter: "" };
    let _ = cursor::decode::<P>(scope, text);
    // No text has the tag of a list by chance, so the place behind it is read by itself.
    if let Some(place) = P::read(text.as_bytes()) {
        let again = cursor::encode(scope, &place);
        assert!(cursor::decode::<P>(scope, &again).is_ok(), "{again} is not read again");
    }
}

/// Reads a body as a task, and as a change to one.
pub fn read_task(body: &[u8]) {
    let _ = task_fields::read(body, None);
    let _ = task_fields::read_change(body);
}

/// Checks a token that no key has signed; it must never be believed.
pub fn check_token(authenticator: &Authenticator, text: &str) {
    // Nothing is waited for where no keys are fetched.
    let checked = authenticator.check(text).now_or_never().flatten();
    assert!(checked.is_none(), "believed: {text}");
}
