//! Leases that are executed twice, out of order, side by side or early.

use crate::script::judged;

#[test]
fn one_lease_that_two_workers_execute() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         12 w2 start a 1
         20 w1 end a 1
         21 w1 ok a 1 success
         22 w2 refused a 1 success
         shown a SUCCESS 1",
        &["same-epoch-twice"],
    );
}

#[test]
fn one_lease_that_the_same_worker_executes_twice() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         15-20 w1 runs a 1 success
         shown a SUCCESS 1",
        &["same-epoch-twice"],
    );
}

#[test]
fn a_lower_epoch_that_begins_later_without_a_reason() {
    judged(
        "0 submit a ok
         10-20 w2 runs a 2 success
         30 w1 start a 1
         35 w1 end a 1
         36 w1 refused a 1 success
         shown a SUCCESS 2",
        &["epoch-went-back"],
    );
}

#[test]
fn a_pause_of_another_worker_explains_no_late_start() {
    judged(
        "0 submit a ok
         5-25 pause w3
         10-20 w2 runs a 2 success
         30 w1 start a 1
         35 w1 end a 1
         36 w1 refused a 1 success
         shown a SUCCESS 2",
        &["epoch-went-back"],
    );
}

#[test]
fn a_retry_that_starts_counting_again() {
    judged(
        "0 submit a ok
         10-20 w1 runs a 3 retry
         30-40 w1 runs a 1 success
         shown a SUCCESS 1 failed=3",
        &["stale-commit", "epoch-went-back"],
    );
}

#[test]
fn two_executions_at_a_time_of_a_task_that_was_never_lost() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         15 w2 start a 2
         20 w1 end a 1
         21 w1 refused a 1 success
         30 w2 end a 2
         31 w2 ok a 2 success
         shown a SUCCESS 2",
        &["overlap"],
    );
}

#[test]
fn an_execution_that_never_ended_overlaps_too() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         9000-9010 w2 runs a 2 success
         shown a SUCCESS 2",
        &["overlap"],
    );
}

#[test]
fn a_pause_long_after_the_start_needs_a_note_of_the_loss() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         1100-5000 pause w1
         3000-3010 w2 runs a 2 success
         5010 w1 end a 1
         5020 w1 refused a 1 success
         shown a SUCCESS 2",
        &["overlap"],
    );
}

#[test]
fn a_start_before_its_time() {
    judged(
        "0 submit a ok due=500
         498-510 w1 runs a 1 success
         shown a SUCCESS 1",
        &["early-start"],
    );
}

#[test]
fn a_start_before_the_send_time_and_the_delay() {
    judged(
        "100 submit a ok delay=500
         598-610 w1 runs a 1 success
         shown a SUCCESS 1",
        &["early-start"],
    );
}

#[test]
fn a_jitter_does_not_shorten_a_delay() {
    judged(
        "100 submit a ok delay=500 jitter=400
         598-610 w1 runs a 1 success
         shown a SUCCESS 1",
        &["early-start"],
    );
}

#[test]
fn a_start_before_a_submit_with_a_jitter_was_sent() {
    judged(
        "100 submit a ok jitter=400
         98-110 w1 runs a 1 success
         shown a SUCCESS 1",
        &["early-start"],
    );
}

#[test]
fn a_submit_that_was_repeated_counts_from_the_first_send() {
    let script = |start: u64| {
        format!(
            "100 submit a info delay=500
             3000 submit a ok delay=500
             {start}-3100 w1 runs a 1 success
             shown a SUCCESS 1"
        )
    };
    judged(&script(600), &[]);
    judged(&script(598), &["early-start"]);
}

#[test]
fn a_retry_and_a_second_lease_are_not_early_either() {
    judged(
        "100 submit a ok delay=500
         590-595 w1 runs a 1 retry
         700-710 w1 runs a 2 success
         shown a SUCCESS 2 failed=1",
        &["early-start"],
    );
}
