//! The events of a transaction, as one row keeps them. Each begins with its kind and its time. One about a
//! task goes on with id, lane, run and epoch; any other with a text of this length, see
//! [`crate::other_event`]. Numbers are little-endian.

use duly_core::event::{Event, EventKind};
use duly_core::id::TaskId;
use duly_core::name::Lane;
use duly_core::time::Timestamp;

use crate::other_event;
use crate::sqlite::error::{Fault, Result};
use crate::sqlite::index::lanes::LaneId;

/// What stands between kind and time of an event and the next event.
enum Rest<'a> {
    Task { id: TaskId, lane: LaneId, run: u32, epoch: u32 },
    Other(&'a str),
}

/// Appends an event about a task.
pub(super) fn pack_task(
    body: &mut Vec<u8>,
    (kind, at): (EventKind, Timestamp),
    (id, lane, run, epoch): (TaskId, LaneId, u32, u32),
) {
    body.push(kind.number());
    body.extend(at.millis().to_le_bytes());
    body.extend(id.as_bytes());
    body.extend(lane.to_le_bytes());
    body.extend(run.to_le_bytes());
    body.extend(epoch.to_le_bytes());
}

/// Appends an event about anything else.
pub(super) fn pack_other(body: &mut Vec<u8>, event: &Event) {
    let Some(text) = other_event::encode(event) else { return };
    body.push(event.kind.number());
    body.extend(event.at.millis().to_le_bytes());
    body.extend(u32::try_from(text.len()).expect("far below").to_le_bytes());
    body.extend(text.as_bytes());
}

/// The events of a row, in order. `lane` finds a lane by its number.
pub(super) fn unpack(
    number: i64,
    mut body: &[u8],
    mut lane: impl FnMut(LaneId) -> Result<Lane>,
) -> Result<Vec<Event>> {
    let damaged = || Fault::Corrupt { table: "outbox", column: "body", id: number.to_string() };
    let mut events = Vec::new();
    while !body.is_empty() {
        let (kind, at, rest) = one(&mut body).ok_or_else(damaged)?;
        events.push(match rest {
            Rest::Task { id, lane: in_lane, run, epoch } => {
                Event::of_task(kind, &lane(in_lane)?, (id, run, epoch), at)
            }
            Rest::Other(text) => other_event::decode(text, at).ok_or_else(damaged)?,
        });
    }
    Ok(events)
}

fn one<'a>(body: &mut &'a [u8]) -> Option<(EventKind, Timestamp, Rest<'a>)> {
    let kind = EventKind::from_number(u8::from_le_bytes(take(body)?))?;
    let at = Timestamp::clamped(i64::from_le_bytes(take(body)?));
    if kind <= EventKind::TaskDeleted {
        let id = TaskId::from_bytes(take(body)?);
        let lane = LaneId::from_le_bytes(take(body)?);
        let (run, epoch) = (u32::from_le_bytes(take(body)?), u32::from_le_bytes(take(body)?));
        return Some((kind, at, Rest::Task { id, lane, run, epoch }));
    }
    let length = usize::try_from(u32::from_le_bytes(take(body)?)).ok()?;
    let (text, left) = body.split_at_checked(length)?;
    *body = left;
    Some((kind, at, Rest::Other(std::str::from_utf8(text).ok()?)))
}

fn take<const N: usize>(body: &mut &[u8]) -> Option<[u8; N]> {
    let (first, left) = body.split_first_chunk()?;
    *body = left;
    Some(*first)
}
