//! Histories in which nothing is wrong, however bad they look.

use crate::script::{judged, parse};

#[test]
fn a_task_that_runs_and_succeeds() {
    judged(
        "0 submit a ok
         10-20 w1 runs a 1 success
         shown a SUCCESS 1",
        &[],
    );
}

#[test]
fn retries_until_the_last_one_fails() {
    judged(
        "0 submit a ok
         10-20 w1 runs a 1 retry
         30-40 w2 runs a 2 retry
         shown a FAILED 2 failed=1,2",
        &[],
    );
}

#[test]
fn a_handler_that_gives_up() {
    judged(
        "0 submit a ok
         10-20 w1 runs a 1 fail
         shown a FAILED 1 failed=1",
        &[],
    );
}

#[test]
fn a_worker_that_is_killed_while_it_works() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         15 kill w1
         1500-1510 w2 runs a 2 success
         shown a SUCCESS 2 lost=1",
        &[],
    );
}

#[test]
fn a_worker_that_writes_for_a_moment_after_its_end_was_announced() {
    judged(
        "0 submit a ok
         8-12 kill w1
         10 w1 start a 1
         1500-1510 w2 runs a 2 success
         shown a SUCCESS 2 lost=1",
        &[],
    );
}

#[test]
fn a_paused_worker_that_is_refused_while_its_successor_runs() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         1100-5000 pause w1
         3000 w2 start a 2
         5010 w1 end a 1
         5020 w1 refused a 1 success
         6000 w2 end a 2
         6001 w2 ok a 2 success
         shown a SUCCESS 2 lost=1",
        &[],
    );
}

#[test]
fn a_lease_that_a_paused_worker_starts_late() {
    judged(
        "0 submit a ok
         10-3000 pause w1
         2000-2010 w2 runs a 2 success
         3001 w1 start a 1
         3005 w1 end a 1
         3006 w1 refused a 1 success
         shown a SUCCESS 2",
        &[],
    );
}

#[test]
fn a_lease_that_a_worker_starts_late_after_the_link_was_held() {
    judged(
        "0 submit a ok
         10-3000 hold link
         3001-3004 w2 runs a 2 success
         3003 w1 start a 1
         3005 w1 end a 1
         3006 w1 refused a 1 success
         shown a SUCCESS 2",
        &[],
    );
}

#[test]
fn a_lease_whose_start_was_never_heard_of_goes_back_without_a_note() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         20-3000 pause w1
         1500 w2 start a 2
         1600 w2 end a 2
         1601 w2 ok a 2 success
         3001 w1 end a 1
         3002 w1 refused a 1 success
         shown a SUCCESS 2",
        &[],
    );
}

#[test]
fn a_lease_that_a_server_forgot_while_its_worker_was_paused() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         1100-5000 pause w1
         1200 kill server
         3000-3010 w2 runs a 2 success
         5010 w1 end a 1
         5020 w1 refused a 1 success
         shown a SUCCESS 2",
        &[],
    );
}

#[test]
fn a_loss_of_which_its_worker_hears_only_after_it_has_started() {
    judged(
        "0 submit a ok
         10-9000 pause w1
         1500-1510 w2 runs a 2 success
         9001 w1 start a 1
         9005 w1 end a 1
         9006 w1 refused a 1 success
         shown a SUCCESS 2 lost=1",
        &[],
    );
}

#[test]
fn submits_whose_effect_is_unknown() {
    judged(
        "0 submit a info
         1 submit b info
         2 submit c open
         3 submit d open
         10-20 w1 runs a 1 success
         30-40 w1 runs c 1 success
         shown a SUCCESS 1
         shown c SUCCESS 1",
        &[],
    );
}

#[test]
fn a_submit_that_is_refused_and_then_repeated() {
    judged(
        "0 submit a fail
         5 submit a info
         9 submit a ok
         9 submit b fail
         10-20 w1 runs a 1 success
         shown a SUCCESS 1",
        &[],
    );
}

#[test]
fn an_outcome_whose_answer_was_lost() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         20 w1 end a 1
         21 reset link
         30 w1 unknown a 1 success
         shown a SUCCESS 1",
        &[],
    );
}

#[test]
fn an_outcome_that_was_sent_again_after_the_task_had_gone_on() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         20 w1 end a 1
         21 reset link
         30-40 w2 runs a 2 success
         50 w1 refused a 1 retry
         shown a SUCCESS 2 failed=1",
        &[],
    );
}

#[test]
fn a_worker_that_is_killed_between_its_end_and_the_answer() {
    for attempt in [1, 2] {
        judged(
            &format!(
                "0 submit a ok
                 10 w1 start a 1
                 20 w1 end a 1
                 21 kill w1
                 1500-1510 w2 runs a 2 success
                 shown a SUCCESS 2 attempt={attempt}"
            ),
            &[],
        );
    }
}

#[test]
fn a_lease_that_ran_over_its_time() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         2000-2010 w2 runs a 2 success
         3000 w1 end a 1
         3001 w1 refused a 1 success
         shown a SUCCESS 2 timeout=1",
        &[],
    );
}

#[test]
fn tasks_that_are_cancelled_before_and_while_they_run() {
    judged(
        "0 submit a ok
         5 cancel a ok
         0 submit b ok
         10 w1 start b 1
         20 cancel b ok
         30 w1 end b 1
         31 w1 refused b 1 success
         0 submit c ok
         10-20 w1 runs c 1 success
         25 cancel c fail
         0 submit d ok
         5 cancel d info
         shown a CANCELLED 0
         shown b CANCELLED 2
         shown c SUCCESS 1
         shown d CANCELLED 0",
        &[],
    );
}

#[test]
fn a_cancelled_task_that_a_paused_worker_starts_late() {
    judged(
        "0 submit a ok
         2-5000 pause w1
         5 cancel a ok
         5001 w1 start a 1
         5002 w1 end a 1
         5003 w1 refused a 1 success
         shown a CANCELLED 2",
        &[],
    );
}

#[test]
fn a_task_that_kills_its_workers_until_it_is_given_up() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         1500 w1 start a 2 pid=2
         3000 w1 start a 3 pid=3
         9000-9010 w1 runs b 1 success pid=4
         0 submit b ok
         shown a FAILED 3 lost=1,2,3
         shown b SUCCESS 1",
        &[],
    );
}

#[test]
fn a_lease_that_was_lost_before_anybody_started_it() {
    judged(
        "0 submit a ok
         10 kill w1
         1500-1510 w2 runs a 2 success
         shown a SUCCESS 2 lost=1",
        &[],
    );
}

#[test]
fn a_task_that_starts_at_its_time() {
    judged(
        "0 submit a ok due=500
         500-510 w1 runs a 1 success
         shown a SUCCESS 1",
        &[],
    );
}

#[test]
fn tasks_that_start_after_their_delay_and_some_of_their_jitter() {
    judged(
        "100 submit a ok delay=500
         600-610 w1 runs a 1 success
         100 submit b ok delay=500 jitter=300
         850-860 w1 runs b 1 success
         100 submit c ok jitter=300
         101-110 w1 runs c 1 success
         100 submit d ok delay=0
         101-110 w1 runs d 1 success
         shown a SUCCESS 1
         shown b SUCCESS 1
         shown c SUCCESS 1
         shown d SUCCESS 1",
        &[],
    );
}

#[test]
fn starts_after_a_delay_are_counted_and_not_taken_for_late() {
    let script = "0 submit a ok due=400
         410-420 w1 runs a 1 success
         0 submit b ok delay=300 jitter=400
         700-710 w1 runs b 1 success
         shown a SUCCESS 1
         shown b SUCCESS 1";
    let (findings, figures) = parse(script).judge();
    assert!(findings.is_empty());
    assert_eq!(figures.delayed_starts, 1);
    assert_eq!((figures.lateness_p50_ms, figures.lateness_p99_ms), (10.0, 10.0));
}

#[test]
fn a_replayed_task_counts_anew() {
    judged(
        "0 submit a ok
         10 w1 start a 1
         15 kill w1
         1500-1510 w2 runs a 2 fail
         1600-1610 w2 runs a 3 success run=2
         shown a SUCCESS 3 run=2 lost=1 failed=2 attempt=1 losses=0",
        &[],
    );
}

#[test]
fn the_figures_of_a_run_are_counted() {
    let script = "0 submit a ok due=400
         3 submit b info
         410 w1 start a 1
         415 kill w1
         416 kill server
         500-600 disk-full server
         1500-1510 w2 runs a 2 success
         2000 w3 refused a 1 success
         shown a SUCCESS 2 lost=1";
    let (findings, figures) = parse(script).judge();
    assert!(findings.is_empty());
    let counts = [figures.acked, figures.tasks, figures.executions, figures.tasks_executed_again];
    assert_eq!(counts, [1, 1, 2, 1]);
    let met = [figures.lease_losses, figures.refusals, figures.unknown_answers];
    assert_eq!(met, [1, 1, 1]);
    let faults = [figures.faults, figures.kills, figures.server_kills, figures.disk_full];
    assert_eq!(faults, [3, 2, 1, 1]);
    assert_eq!((figures.submits_ok_percent, figures.in_flight_percent), (50.0, 100.0));
    assert_eq!((figures.lateness_p50_ms, figures.lateness_p99_ms), (10.0, 10.0));
    assert_eq!(figures.ended_per_second, [0, 1]);
    let disk = &figures.fault_marks[2];
    assert_eq!((disk.begin_s, disk.end_s), (0.5, Some(0.6)));
}
