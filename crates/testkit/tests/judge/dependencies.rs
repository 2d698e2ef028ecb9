//! Tasks that do not wait for those that they depend on.

use crate::script::judged;

#[test]
fn a_task_that_begins_before_its_parent_ends() {
    judged(
        "0 submit a ok
         1 submit b ok
         10-20 w1 runs a 1 success
         15-30 w2 runs b 1 success
         shown a SUCCESS 1
         shown b SUCCESS 1 after=a:success",
        &["child-before-parent"],
    );
}

#[test]
fn a_task_that_begins_after_its_parent() {
    judged(
        "0 submit a ok
         1 submit b ok
         10-20 w1 runs a 1 success
         25-30 w2 runs b 1 success
         shown a SUCCESS 1
         shown b SUCCESS 1 after=a:success",
        &[],
    );
}

#[test]
fn a_task_that_runs_although_its_parent_ended_otherwise() {
    judged(
        "0 submit a ok
         1 submit b ok
         10-20 w1 runs a 1 success
         25-30 w2 runs b 1 success
         shown a SUCCESS 1
         shown b SUCCESS 1 after=a:failure",
        &["child-before-parent"],
    );
}

#[test]
fn a_task_that_is_cancelled_because_of_its_parent() {
    judged(
        "0 submit a ok
         1 submit b ok
         10-20 w1 runs a 1 success
         shown a SUCCESS 1
         shown b CANCELLED 0 after=a:failure",
        &[],
    );
}

#[test]
fn a_task_that_stays_blocked() {
    judged(
        "0 submit a ok
         1 submit b ok
         10-20 w1 runs a 1 success
         shown a SUCCESS 1
         shown b BLOCKED 0 after=a:success",
        &["lost"],
    );
}
