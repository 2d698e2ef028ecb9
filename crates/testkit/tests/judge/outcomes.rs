//! Runs with two outcomes, or with one that should have been refused.

use crate::script::judged;

#[test]
fn two_outcomes_that_end_a_run() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         15 kill w1
         1500-1510 w2 runs a 2 success
         2000-2010 w3 runs a 3 success
         shown a SUCCESS 3 lost=1 attempt=2",
        &["double-outcome"],
    );
}

#[test]
fn a_success_that_is_shown_as_a_failure() {
    judged(
        "0 submit a ok
         10-20 w1 runs a 1 success
         shown a FAILED 1 failed=1",
        &["double-outcome"],
    );
}

#[test]
fn an_outcome_under_another_epoch_than_is_shown() {
    judged(
        "0 submit a ok
         10-20 w1 runs a 1 fail
         shown a FAILED 2 failed=1",
        &["double-outcome"],
    );
}

#[test]
fn a_success_that_was_cancelled_afterwards() {
    judged(
        "0 submit a ok
         10-20 w1 runs a 1 success
         30 cancel a ok
         shown a CANCELLED 1",
        &["double-outcome"],
    );
}

#[test]
fn one_lease_that_two_workers_committed() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         20 w1 end a 1
         21 w1 ok a 1 retry
         22 w2 ok a 1 retry
         30-40 w1 runs a 2 success
         shown a SUCCESS 2 failed=1",
        &["double-outcome"],
    );
}

#[test]
fn a_lease_that_was_committed_and_lost() {
    judged(
        "0 submit a ok
         10-20 w1 runs a 1 retry
         25 kill w1
         1500-1510 w2 runs a 2 success
         shown a SUCCESS 2 lost=1 attempt=2",
        &["double-outcome"],
    );
}

#[test]
fn a_retry_of_the_execution_that_is_shown_to_have_succeeded() {
    judged(
        "0 submit a ok
         10-20 w1 runs a 1 retry
         shown a SUCCESS 1",
        &["double-outcome"],
    );
}

#[test]
fn a_paused_worker_that_is_believed_although_its_successor_runs() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         1100-5000 pause w1
         3000 w2 start a 2
         5010 w1 end a 1
         5011 w1 ok a 1 retry
         6000 w2 end a 2
         6001 w2 ok a 2 success
         shown a SUCCESS 2 timeout=1",
        &["stale-commit"],
    );
}

#[test]
fn a_success_of_which_no_worker_knows() {
    judged(
        "0 submit a ok
         shown a SUCCESS 1",
        &["success-without-execution"],
    );
}

#[test]
fn a_success_of_an_execution_that_was_killed_before_its_end() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         15 kill w1
         shown a SUCCESS 1",
        &["success-without-execution"],
    );
}
