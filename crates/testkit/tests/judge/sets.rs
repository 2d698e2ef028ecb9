//! Tasks that are lost, invented, doubled or left over.

use crate::script::judged;

#[test]
fn an_acknowledged_task_that_is_not_there_is_lost() {
    judged("0 submit a ok", &["lost"]);
}

#[test]
fn an_acknowledged_task_that_still_waits_is_lost() {
    judged(
        "0 submit a ok
         shown a PENDING 0",
        &["lost"],
    );
}

#[test]
fn an_executed_task_that_is_forgotten_is_lost() {
    judged(
        "0 submit a ok
         10-20 w1 runs a 1 success",
        &["lost"],
    );
}

#[test]
fn a_task_that_stands_for_two_keys_has_swallowed_one() {
    judged(
        "0 submit a ok
         1 submit b ok task=a
         10-20 w1 runs a 1 success
         shown a SUCCESS 1",
        &["lost"],
    );
}

#[test]
fn a_task_with_a_key_that_was_never_sent_is_invented() {
    judged("shown a CANCELLED 0", &["invented", "cancelled-unasked"]);
}

#[test]
fn a_task_that_runs_and_was_never_submitted_is_invented() {
    judged("10-20 w1 runs a 1 success", &["invented"]);
}

#[test]
fn a_task_whose_every_submit_was_refused_is_invented() {
    judged(
        "0 submit a fail
         5 submit a fail
         10-20 w1 runs a 1 success
         shown a SUCCESS 1",
        &["invented"],
    );
}

#[test]
fn two_tasks_with_one_key_are_duplicated() {
    judged(
        "0 submit a ok
         10-20 w1 runs a 1 success
         30-40 w1 runs b 1 success
         shown a SUCCESS 1
         shown b SUCCESS 1 key=a",
        &["duplicated"],
    );
}

#[test]
fn two_answers_for_one_key_with_different_tasks_are_duplicated() {
    judged(
        "0 submit a ok
         5 submit a ok task=b
         10-20 w1 runs a 1 success
         shown a SUCCESS 1",
        &["lost", "duplicated"],
    );
}

#[test]
fn a_task_that_was_never_acknowledged_must_end_too() {
    judged(
        "0 submit a info
         shown a RUNNING 1",
        &["unfinished"],
    );
}
