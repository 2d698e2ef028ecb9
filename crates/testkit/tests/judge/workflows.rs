//! Workflows: whole, in order, released once, and ended as follows from their tasks.

use crate::script::{judged, parse};

/// A workflow of two tasks, both of which succeed.
const GOOD: &str = "0 submit-workflow f ok tasks=a,b<a:success
    10-20 w1 runs a 1 success
    30-40 w2 runs b 1 success
    shown a SUCCESS 1 workflow=f
    shown b SUCCESS 1 workflow=f after=a:success
    shown-workflow f SUCCESS";

/// Judges the good one with one thing changed.
#[track_caller]
fn changed(from: &str, to: &str, expected: &[&str]) {
    assert!(GOOD.contains(from), "{from}");
    judged(&GOOD.replace(from, to), expected);
}

#[test]
fn a_workflow_that_succeeds() {
    judged(GOOD, &[]);
    let (_, figures) = parse(GOOD).judge();
    assert_eq!((figures.workflows, figures.acked, figures.tasks), (1, 2, 2));
    assert_eq!(figures.submits_ok_percent, 100.0);
}

#[test]
fn a_submit_that_was_answered_at_the_second_try() {
    let again = "0 submit-workflow f info tasks=a,b<a:success\n 5 submit-workflow f ok";
    changed("0 submit-workflow f ok", again, &[]);
    changed("f ok", "f info", &[]);
    changed("f ok", "f open", &[]);
}

#[test]
fn a_workflow_whose_submit_was_refused() {
    changed("f ok", "f fail", &["invented"]);
    judged("0 submit-workflow f fail tasks=a", &[]);
    judged("shown-workflow f SUCCESS", &["invented"]);
}

#[test]
fn an_acknowledged_workflow_that_is_gone() {
    judged("0 submit-workflow f ok tasks=a", &["lost"]);
    changed("shown-workflow f SUCCESS", "", &["lost"]);
}

#[test]
fn a_workflow_without_one_of_its_tasks() {
    let unanswered = "0 submit-workflow f info tasks=a,b
        10-20 w1 runs a 1 success
        shown a SUCCESS 1 workflow=f
        shown-workflow f SUCCESS";
    judged(unanswered, &["lost"]);
    changed("workflow=f after", "workflow=g after", &["lost"]);
}

#[test]
fn two_workflows_of_one_key() {
    changed("f SUCCESS", "f SUCCESS id=g", &["lost", "duplicated"]);
}

#[test]
fn a_workflow_that_never_ends() {
    changed("shown-workflow f SUCCESS", "shown-workflow f RUNNING", &["workflow-end"]);
    changed("shown-workflow f SUCCESS", "shown-workflow f SUCCESS open=1", &["workflow-end"]);
}

#[test]
fn a_workflow_that_ends_before_its_tasks() {
    let blocked = "0 submit-workflow f ok tasks=a,b<a:success
        10-20 w1 runs a 1 success
        shown a SUCCESS 1 workflow=f
        shown b BLOCKED 0 workflow=f after=a:success";
    judged(&format!("{blocked}\nshown-workflow f SUCCESS"), &["lost", "workflow-end"]);
    judged(&format!("{blocked}\nshown-workflow f RUNNING open=1"), &["lost"]);
}

#[test]
fn a_workflow_that_fails_although_nothing_failed() {
    changed("shown-workflow f SUCCESS", "shown-workflow f FAILED", &["workflow-end"]);
}

/// The first of two tasks fails; the second one waits for it like this and ends like that.
fn failed(on: &str, second: &str, end: &str) -> String {
    let runs = if second == "CANCELLED" { "" } else { "30-40 w2 runs b 1 success" };
    let epoch = u32::from(second != "CANCELLED");
    format!(
        "0 submit-workflow f ok tasks=a,b<a:{on}
         10-20 w1 runs a 1 fail
         {runs}
         shown a FAILED 1 failed=1 workflow=f
         shown b {second} {epoch} workflow=f after=a:{on}
         shown-workflow f {end}"
    )
}

#[test]
fn a_failure_that_no_task_handles_fails_the_workflow() {
    judged(&failed("success", "CANCELLED", "FAILED"), &[]);
    judged(&failed("success", "CANCELLED", "SUCCESS"), &["workflow-end"]);
    judged(&failed("success", "CANCELLED", "CANCELLED"), &["workflow-end"]);
}

#[test]
fn a_failure_that_a_task_handles_does_not() {
    for on in ["failure", "done"] {
        judged(&failed(on, "SUCCESS", "SUCCESS"), &[]);
        judged(&failed(on, "SUCCESS", "FAILED"), &["workflow-end"]);
    }
}

#[test]
fn a_workflow_that_fails_fast_cancels_what_is_open() {
    let script = "0 submit-workflow f ok tasks=a,b
        10-20 w1 runs a 1 fail
        shown a FAILED 1 failed=1 workflow=f
        shown b CANCELLED 0 workflow=f
        shown-workflow f FAILED";
    judged(&format!("{script} fail-fast=true"), &[]);
    judged(script, &["cancelled-unasked"]);
}

#[test]
fn a_workflow_is_cancelled_only_if_a_client_asked() {
    let script = "0 submit-workflow f ok tasks=a,b
        10-20 w1 runs a 1 success
        shown a SUCCESS 1 workflow=f
        shown b CANCELLED 0 workflow=f
        shown-workflow f CANCELLED";
    judged(script, &["cancelled-unasked", "workflow-end"]);
    judged(&format!("5 cancel-workflow f ok\n{script}"), &[]);
    judged(&format!("5 cancel-workflow f info\n{script}"), &[]);
}

#[test]
fn an_acknowledged_cancel_of_a_workflow_holds() {
    let cancel = |answer| format!("{GOOD}\n5 cancel-workflow f {answer}");
    judged(&cancel("ok"), &["cancel-undone", "workflow-end"]);
    // It may not have arrived, or come too late.
    judged(&cancel("info"), &[]);
    judged(&cancel("fail"), &[]);
}

#[test]
fn a_cancelled_workflow_releases_nothing_more() {
    let cancelled = GOOD.replace("f SUCCESS", "f CANCELLED");
    judged(&format!("{cancelled}\n15 cancel-workflow f ok"), &["cancel-undone"]);
    // The second task was released before the cancel, and ended before it was reached.
    judged(&format!("{cancelled}\n25 cancel-workflow f ok"), &[]);
}

#[test]
fn a_task_that_begins_before_its_parent_in_the_workflow() {
    changed("30-40 w2", "15-40 w2", &["child-before-parent"]);
}

#[test]
fn a_task_that_does_not_depend_on_what_was_asked_for() {
    changed(" after=a:success", "", &["edges-changed"]);
    changed(" after=a:success", " after=a:done", &["edges-changed"]);
    changed(" after=a:success", " after=a:success+z:done", &["edges-changed"]);
}

#[test]
fn a_task_that_is_released_twice() {
    // The second release takes the lease away from the first execution, whose outcome is refused.
    let twice = "30 w2 start b 1
        40 w2 end b 1
        41 w2 refused b 1 success
        50-60 w3 runs b 2 success";
    let script = GOOD.replace("30-40 w2 runs b 1 success", twice);
    let script = script.replace("shown b SUCCESS 1", "shown b SUCCESS 2");
    judged(&script, &["released-twice"]);
    // A fault that may have made the server take the lease back is a cause.
    judged(&format!("{script}\n35-36 hold link"), &[]);
    assert_eq!(parse(&format!("{script}\n35-36 hold link")).judge().1.followed_unnoted, 1);
    judged(&format!("{script}\n35 kill w2"), &[]);
    judged(&format!("{script}\n35-36 kill server\n35-36 cut link"), &[]);
    // One that the worker and its connection survive is not.
    judged(&format!("{script}\n35 kill w1"), &["released-twice"]);
    judged(&format!("{script}\n35 kill server"), &["released-twice"]);
    // Any node may have run what nodes ran.
    let by_nodes = script.replace("w2", "nodes");
    judged(&by_nodes, &["released-twice"]);
    judged(&format!("{by_nodes}\n35 kill node-1"), &[]);
}

#[test]
fn a_task_with_a_second_run() {
    let again = "30-40 w2 runs b 1 success\n50-60 w2 runs b 2 success run=2";
    let script = GOOD.replace("30-40 w2 runs b 1 success", again);
    judged(&script.replace("shown b SUCCESS 1", "shown b SUCCESS 2 run=2"), &["released-twice"]);
}
