//! Attempts that are not charged, or charged twice.

use crate::script::judged;

#[test]
fn a_retry_that_was_not_charged() {
    judged(
        "0 submit a ok
         10-20 w1 runs a 1 retry
         30-40 w1 runs a 2 success
         shown a SUCCESS 2 failed=1 attempt=1",
        &["attempts-miscounted"],
    );
}

#[test]
fn a_retry_that_was_neither_charged_nor_kept() {
    judged(
        "0 submit a ok
         10-20 w1 runs a 1 retry
         30-40 w1 runs a 2 success
         shown a SUCCESS 2",
        &["attempts-miscounted"],
    );
}

#[test]
fn a_loss_that_was_charged() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         15 kill w1
         1500-1510 w2 runs a 2 success
         shown a SUCCESS 2 lost=1 attempt=2",
        &["attempts-miscounted"],
    );
}

#[test]
fn an_outcome_that_is_open_counts_once_at_the_most() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         20 w1 end a 1
         21 kill w1
         1500-1510 w2 runs a 2 success
         shown a SUCCESS 2 attempt=3",
        &["attempts-miscounted"],
    );
}

#[test]
fn a_lease_over_its_time_that_was_not_charged() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         2000-2010 w2 runs a 2 success
         shown a SUCCESS 2 timeout=1 attempt=1",
        &["attempts-miscounted"],
    );
}
