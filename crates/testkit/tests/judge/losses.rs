//! Losses without a cause, and losses that are not counted.

use crate::script::judged;

#[test]
fn a_healthy_worker_that_was_declared_lost() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         1500-1510 w2 runs a 2 success
         2000 w1 end a 1
         2001 w1 refused a 1 success
         shown a SUCCESS 2 lost=1",
        &["lost-without-cause"],
    );
}

#[test]
fn what_happened_to_another_worker_is_no_cause() {
    judged(
        "0 submit a ok
         5 kill w3
         10 w1 start a 1
         1500-1510 w2 runs a 2 success
         2000 w1 end a 1
         2001 w1 refused a 1 success
         shown a SUCCESS 2 lost=1",
        &["lost-without-cause"],
    );
}

#[test]
fn what_happened_afterwards_is_no_cause() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         1500-1510 w2 runs a 2 success
         1600 kill w1
         shown a SUCCESS 2 lost=1",
        &["lost-without-cause"],
    );
}

#[test]
fn a_loss_that_was_not_seen_needs_a_fault_since_the_submit() {
    judged(
        "10 kill w1
         5000 submit a ok
         9000-9010 w2 runs a 2 success
         shown a SUCCESS 2 lost=1",
        &["lost-without-cause"],
    );
    // Behind a backlog the next start may come long after the loss.
    judged(
        "0 submit a ok
         10 kill w1
         9000-9010 w2 runs a 2 success
         shown a SUCCESS 2 lost=1",
        &[],
    );
}

#[test]
fn losses_that_were_not_counted() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         15 kill w1
         1500-1510 w2 runs a 2 success
         shown a SUCCESS 2 lost=1 losses=0",
        &["losses-miscounted"],
    );
}

#[test]
fn losses_that_there_were_not() {
    judged(
        "0 submit a ok
         10-20 w1 runs a 1 success
         shown a SUCCESS 1 losses=1",
        &["losses-miscounted"],
    );
}
