//! The body of a schedule: from JSON text to a checked rule and template.

use duly_client::wire::{BackfillRequest, Problem, ScheduleRequest};
use duly_core::limits::NOTE_CHARS;
use duly_core::name::ScheduleName;
use duly_core::schedule::{Overlap, Rule, ScheduleDraft, ScheduleStatus, Template};
use duly_core::submit::FieldError;
use duly_core::time::Timestamp;
use duly_engine::command::schedules::NewSchedule;

use crate::error::{ApiError, Code};
use crate::fields::{self, Field, Fields, Object, Pointer};
use crate::order_fields::read_remark;
use crate::task_fields::read_labels;
use crate::{task_fields, workflow_fields};

/// The path of the preview, and therefore no name.
const PREVIEW: &str = "preview";

/// Reads a [`ScheduleRequest`] to be stored under the name of a path.
pub(crate) fn read(
    body: &[u8],
    name: &str,
    now: Timestamp,
) -> Result<(ScheduleName, NewSchedule), ApiError> {
    let (mut fields, object) = fields::open::<ScheduleRequest>(body)?;
    let field = object.field("name");
    let given = fields.string(field);
    if given.is_some_and(|given| given != name) {
        fields.refuse(field.at, "CONFLICTING_FIELDS", "differs from the name in the path");
    }
    let name = read_name(&mut fields, field.at, name);
    let schedule = read_schedule(&mut fields, &object, Some(now));
    fields.end(name.zip(schedule))
}

/// Reads a schedule of a configuration file as `PUT /schedules/{name}` does, but accepts one that has
/// fired for the last time: the file outlives it. The error is what the request would be answered.
pub fn read_configured_schedule(body: &[u8]) -> Result<(ScheduleName, NewSchedule), Box<Problem>> {
    let read = || {
        let (mut fields, object) = fields::open::<ScheduleRequest>(body)?;
        let field = fields.required(object.field("name"));
        let given = fields.string(field);
        let name = given.and_then(|given| read_name(&mut fields, field.at, &given));
        let schedule = read_schedule(&mut fields, &object, None);
        fields.end(name.zip(schedule))
    };
    let (name, schedule) = read().map_err(|refused: ApiError| Box::new(refused.problem(None)))?;
    Ok((name, NewSchedule { managed: true, ..schedule }))
}

/// Reads a [`ScheduleRequest`] that is not to be stored; its name may be left out.
pub(crate) fn preview(body: &[u8], now: Timestamp) -> Result<Rule, ApiError> {
    let (mut fields, object) = fields::open::<ScheduleRequest>(body)?;
    let field = object.field("name");
    if let Some(name) = fields.string(field) {
        read_name(&mut fields, field.at, &name);
    }
    let schedule = read_schedule(&mut fields, &object, Some(now));
    fields.end(schedule.map(|schedule| schedule.rule))
}

/// First and last instant of a [`BackfillRequest`], and whether it is a dry run.
pub(crate) fn backfill(body: &[u8]) -> Result<(Timestamp, Timestamp, bool), ApiError> {
    let (mut fields, object) = fields::open::<BackfillRequest>(body)?;
    let from = read_instant(&mut fields, object.field("from"));
    let last = object.field("to");
    let to = read_instant(&mut fields, last);
    let dry_run = fields.flag(object.field("dryRun")).unwrap_or_default();
    if from.zip(to).is_some_and(|(from, to)| to < from) {
        fields.refuse(last.at, "OUT_OF_RANGE", "must not be before from");
    }
    let period = from.zip(to);
    fields.end(period.map(|(from, to)| (from, to, dry_run)))
}

fn read_instant(fields: &mut Fields, field: Field<'_, '_>) -> Option<Timestamp> {
    let field = fields.required(field);
    let instant = Timestamp::parse(&fields.string(field)?);
    instant.map_err(|bad| fields.refuse(field.at, "INVALID_TIME", bad.to_string())).ok()
}

fn read_name(fields: &mut Fields, at: Pointer<'_>, text: &str) -> Option<ScheduleName> {
    let name = ScheduleName::given(text).map_err(|bad| bad.to_string());
    let name = name.and_then(|name| match name.as_str() {
        PREVIEW => Err("is the path of the preview; choose another name".to_owned()),
        _ => Ok(name),
    });
    name.map_err(|why| fields.refuse(at, "INVALID_NAME", why)).ok()
}

/// All but the name. With a time, the schedule must fire after it.
fn read_schedule(
    fields: &mut Fields,
    object: &Object<'_, '_>,
    now: Option<Timestamp>,
) -> Option<NewSchedule> {
    let timing = [object.field("cron"), object.field("every"), object.field("at")];
    let [cron, every, at] = timing.map(|field| fields.string(field));
    let is_unread = timing.iter().filter(|field| field.is_given()).count()
        > [&cron, &every, &at].into_iter().flatten().count();
    let overlap = object.field("overlap");
    let draft = ScheduleDraft {
        cron,
        every,
        at,
        time_zone: fields.string(object.field("timeZone")),
        overlap: fields.string(overlap),
        misfire: fields.string(object.field("misfire")),
        catch_up_seconds: fields.number(object.field("catchUpSeconds")),
        jitter_seconds: fields.number(object.field("jitterSeconds")),
        start_at: fields.string(object.field("startAt")),
        end_at: fields.string(object.field("endAt")),
        labels: read_labels(fields, object.field("labels")),
        note: read_note(fields, object.field("note")),
    };
    let status = read_status(fields, object.field("status"));
    let is_buffered = draft.overlap.as_deref() == Some(Overlap::BufferOne.as_str());
    let (labels, note) = (draft.labels.clone(), draft.note.clone());
    let rule = match now {
        Some(now) => draft.check(now),
        None => draft.read(),
    };
    let rule = rule.map_err(|found| {
        // To the check, a field that could not be read is absent: that error is listed already.
        let follows = |error: &FieldError| is_unread && error.code == "CONFLICTING_FIELDS";
        fields.absorb(Pointer::Root, found.into_iter().filter(|it| !follows(it)).collect());
    });
    let (task, workflow) = (object.field("task"), object.field("workflow"));
    if is_buffered && workflow.is_given() && !task.is_given() {
        let detail = "only tasks can wait for the run before; with a workflow use skip, allow or \
                      cancelOther";
        fields.refuse(overlap.at, Code::UnsupportedField.as_str(), detail);
    }
    let template = read_template(fields, task, workflow);
    let (rule, template, managed) = (rule.ok()?, template?, false);
    Some(NewSchedule { rule, template, status, note, labels, managed })
}

fn read_note(fields: &mut Fields, field: Field<'_, '_>) -> Option<String> {
    field.is_given().then(|| read_remark(fields, field, NOTE_CHARS))
}

fn read_status(fields: &mut Fields, field: Field<'_, '_>) -> ScheduleStatus {
    let Some(text) = fields.string(field) else { return ScheduleStatus::default() };
    status(&text).unwrap_or_else(|| {
        fields.refuse(field.at, "UNKNOWN_WORD", "must be ACTIVE or PAUSED");
        ScheduleStatus::default()
    })
}

/// The status of this name.
pub(crate) fn status(text: &str) -> Option<ScheduleStatus> {
    let all = [ScheduleStatus::Active, ScheduleStatus::Paused];
    all.into_iter().find(|status| status.as_str() == text)
}

fn read_template(
    fields: &mut Fields,
    task: Field<'_, '_>,
    workflow: Field<'_, '_>,
) -> Option<Template> {
    match (task.is_given(), workflow.is_given()) {
        (false, false) => fields.refuse(task.at, "REQUIRED", "give a task or a workflow"),
        (true, true) => {
            let detail = "give exactly one of task and workflow";
            fields.refuse(workflow.at, "CONFLICTING_FIELDS", detail);
        }
        _ => {}
    }
    let of_task = task_fields::template(fields, task).map(|spec| (task.at, Template::task(spec)));
    let of_workflow = workflow_fields::template(fields, workflow)
        .map(|spec| (workflow.at, Template::workflow(spec)));
    let (at, template) = of_task.or(of_workflow)?;
    template.map_err(|found| fields.absorb(at, found)).ok()
}
