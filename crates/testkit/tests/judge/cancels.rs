//! Cancels that are forgotten.

use crate::script::judged;

#[test]
fn a_cancelled_task_that_succeeds_all_the_same() {
    judged(
        "0 submit a ok
         5 cancel a ok
         10-20 w1 runs a 1 success
         shown a SUCCESS 1",
        &["cancel-undone"],
    );
}

#[test]
fn a_cancelled_task_that_starts_long_after() {
    judged(
        "0 submit a ok
         5 cancel a ok
         5000 w1 start a 1
         5002 w1 end a 1
         5003 w1 refused a 1 success
         shown a CANCELLED 2",
        &["cancel-undone"],
    );
}

#[test]
fn a_task_that_is_cancelled_unasked() {
    judged(
        "0 submit a ok
         shown a CANCELLED 0",
        &["cancelled-unasked"],
    );
}
