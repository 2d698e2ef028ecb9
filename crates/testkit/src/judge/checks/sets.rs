//! What goes in must come out: no acknowledged task is lost, none is invented, and a key leads to
//! one task.

use super::Case;
use crate::judge::book::Book;
use crate::judge::class::Class;
use crate::judge::findings::{Findings, Violation};

pub(super) fn check(case: &Case<'_>, found: &mut Findings) {
    check_ended(case, found);
    let task = case.task;
    let exists = task.end.is_some() || !task.marks.is_empty();
    let attempted = task.is_named || case.key.is_some_and(|key| key.may_exist());
    if exists && !attempted {
        let first = task.marks.iter().map(|mark| mark.at).min();
        let at = first.or(task.end.as_ref().map(|end| end.at)).unwrap_or(0);
        let detail = match case.key {
            Some(key) if key.sent > 0 => format!("every submit of {} was refused", key.name),
            _ => "no submit was sent that can have made it".to_owned(),
        };
        found.add(case.violation(Class::Invented, at, detail));
    }
}

fn check_ended(case: &Case<'_>, found: &mut Findings) {
    let open = case.task.end.as_ref().filter(|end| !end.status.is_terminal());
    match (case.task.acked_at, &case.task.end, open) {
        (Some(at), None, _) => {
            let detail = "it was acknowledged and is not shown at the end".to_owned();
            found.add(case.violation(Class::Lost, at, detail));
        }
        (Some(at), _, Some(end)) => {
            let detail = format!("it was acknowledged and is {} at the end", end.status);
            found.add(case.violation(Class::Lost, at, detail));
        }
        (None, _, Some(end)) => {
            let detail = format!("it is {} at the end", end.status);
            found.add(case.violation(Class::Unfinished, end.at, detail));
        }
        _ => {}
    }
}

/// Keys with two tasks, tasks with two keys, and keys whose answer named no task.
pub(super) fn check_keys(book: &Book, found: &mut Findings) {
    for twins in &book.twins {
        let [one, two] = twins.keys.map(|key| book.keys[key].name.to_string());
        let [first, second] = twins.tasks;
        let (class, detail) = if first == second {
            (Class::Lost, format!("{one} and {two} lead to the one task {first}"))
        } else {
            (Class::Duplicated, format!("{one} leads to {first} and to {second}"))
        };
        let keys = if one == two { vec![one] } else { vec![one, two] };
        let tasks = if first == second { vec![first] } else { vec![first, second] };
        found.add(Violation { class, detail, mono_ns: twins.at, tasks, keys });
    }
    for key in &book.keys {
        let Some(at) = key.acked_at else { continue };
        if key.acked.is_none() && key.shown.is_none() {
            let detail = format!("{} was acknowledged and no task shows it", key.name);
            let keys = vec![key.name.to_string()];
            found.add(Violation { class: Class::Lost, detail, mono_ns: at, tasks: vec![], keys });
        }
    }
}
