//! Schedules: when their slots are, and what becomes of slots that come late.
//!
//! A *slot* is an instant at which a schedule wants its task or workflow to run: a whole second. The
//! *position* of a schedule is the instant up to which its slots are decided. A slot that is decided
//! runs or is skipped, and is never decided again.
//!
//! Here are the rules alone. What is run, and whether an earlier run has ended, is the store's concern.

mod backfill;
mod cron;
mod draft;
mod due;
mod note;
mod policy;
mod rule;
mod slot_id;
mod slots;
mod stored;
mod template;
mod zone;

pub use self::backfill::{BackfillNote, BackfillOrder};
pub use self::cron::Cron;
pub use self::draft::ScheduleDraft;
pub use self::due::{Due, DueSlot, Verdict};
pub use self::policy::{Misfire, Overlap, SkipReason};
pub use self::rule::{Rule, Timing};
pub use self::slot_id::{slot_task_id, slot_workflow_id};
pub use self::stored::{
    Definition, SCHEDULE_CHANGED, SCHEDULE_LABEL, SLOT_LABEL, SLOT_REPLACED, Schedule,
    ScheduleStatus, SlotRun,
};
pub use self::template::Template;
pub use self::zone::Zone;
