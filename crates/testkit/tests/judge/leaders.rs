//! Leaders that are killed, and faults of nodes and their database.

use crate::script::{judged, parse};

#[test]
fn another_node_leads_within_twice_the_ttl() {
    judged("10-1990 leaderless node-1", &[]);
    judged("10-2011 leaderless node-1", &["leaderless"]);
    judged(
        "10-1990 leaderless node-1
         3000-9000 leaderless node-2",
        &["leaderless"],
    );
}

#[test]
fn the_time_in_which_the_machine_let_no_process_run_does_not_count() {
    judged(
        "10-2500 leaderless node-1
         100-700 stall server",
        &[],
    );
    judged(
        "10-2500 leaderless node-1
         100-200 stall server
         2600-9000 stall server",
        &["leaderless"],
    );
}

#[test]
fn whatever_happens_to_a_node_or_the_database_may_cost_any_worker_its_leases() {
    for fault in [
        "900 kill node-2",
        "900-1200 pause node-0",
        "900-1200 cut node-1",
        "900-1200 hold database",
        "900-1200 restart database",
        "900 terminate database",
    ] {
        let script = format!(
            "0 submit a ok
             10 w1 start a 1
             {fault}
             1500-1510 w2 runs a 2 success
             2000 w1 end a 1
             2001 w1 refused a 1 success
             shown a SUCCESS 2 lost=1"
        );
        judged(&script, &[]);
    }
}

#[test]
fn they_are_counted() {
    let history = parse(
        "10 kill node-0
         20-320 leaderless node-0
         400 kill w1
         500-600 restart database
         700-800 restart node-1
         900 terminate database
         1000-1100 cut node-1
         1200-1300 cut database",
    );
    let (_, it) = history.judge();
    assert_eq!((it.kills, it.server_kills, it.leader_kills, it.leaderless_ms), (2, 1, 1, 300));
    assert_eq!((it.restarts, it.database_restarts, it.terminations, it.cuts), (2, 1, 1, 2));
    assert_eq!(it.faults, 7, "what a kill leads to is no fault of its own");
}
