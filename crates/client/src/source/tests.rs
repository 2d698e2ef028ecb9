//! The worker's side of the protocol against a scripted server.

mod server;

use duly_core::id::TaskId;
use duly_core::lease::Outcome;
use duly_core::log::LogChunk;
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::ports::work_source::Why;
use duly_core::progress::Progress;
use duly_core::task::Failure;
use duly_core::time::Timestamp;
use serde_json::json;

use self::server::{Server, session_id};
use super::*;

/// A heartbeat interval for tests without heartbeats.
const NEVER: f64 = 1000.0;

struct Zero;

impl Random for Zero {
    fn fill(&self, numbers: &mut [u64]) {
        numbers.fill(0);
    }
}

pub(super) fn lease(number: u32) -> Lease {
    let now = Timestamp::from_millis(1_900_000_000_000);
    Lease {
        task: TaskId::mint(now, number, 0),
        epoch: 1,
        run: 1,
        attempt: 1,
        retries: 3,
        lane: Lane {
            tenant: TenantName::default_tenant(),
            queue: QueueName::default_queue(),
            task_type: TypeName::new("echo").unwrap(),
        },
        timeout: None,
        granted_at: now,
        run_at: now,
        payload: "1".into(),
        has_parents: false,
        has_children: false,
        renders: false,
        parents: None,
    }
}

fn success(lease: &Lease) -> Finish {
    Finish::new(lease.task, lease.epoch, Outcome::Success { result: None })
}

async fn connect(heartbeat_seconds: f64) -> (Server, Arc<RemoteSource>) {
    let mut server = Server::start().await;
    let client = Client::new(&server.url, None).unwrap();
    let worker = RegisterRequest { types: vec!["echo".to_owned()], ..Default::default() };
    let connecting = RemoteSource::connect(client, worker, Arc::new(Zero));
    let admitting = async {
        let asked = server.registrations.recv().await.unwrap();
        assert_eq!(asked.body, json!({"types": ["echo"]}));
        asked.admit(1, heartbeat_seconds);
    };
    let (source, ()) = tokio::join!(connecting, admitting);
    (server, source.unwrap())
}

/// A source that holds these leases.
async fn holding(heartbeat_seconds: f64, leases: &[Lease]) -> (Server, Arc<RemoteSource>) {
    let (mut server, source) = connect(heartbeat_seconds).await;
    let granting = async { server.claims.recv().await.unwrap().grant(leases) };
    let (claimed, ()) = tokio::join!(source.claim(leases.len()), granting);
    assert_eq!(claimed.unwrap(), leases);
    (server, source)
}

#[tokio::test]
async fn a_claim_is_repeated_by_its_number_until_leases_arrive() {
    let (mut server, source) = connect(NEVER).await;
    let answering = async {
        let mut asked = Vec::new();
        for case in 0..5 {
            let claim = server.claims.recv().await.unwrap();
            asked.push(claim.body.clone());
            match case {
                0 => drop(claim),
                1 => claim.refuse(503, "STORE_UNAVAILABLE"),
                2 => claim.answer(502, &json!("a proxy")),
                3 => claim.grant(&[]),
                _ => claim.grant(&[lease(1)]),
            }
        }
        asked
    };
    let (leases, asked) = tokio::join!(source.claim(3), answering);
    assert_eq!(leases.unwrap(), [lease(1)]);
    let same = json!({"sessionId": session_id(1), "seq": 1, "max": 3, "waitSeconds": 30.0});
    assert!(asked.iter().all(|claim| *claim == same), "{asked:?}");
    let granting = async {
        let claim = server.claims.recv().await.unwrap();
        assert_eq!(claim.body["seq"], 2);
        claim.grant(&[lease(2)]);
    };
    assert_eq!(tokio::join!(source.claim(1), granting).0.unwrap(), [lease(2)]);
}

#[tokio::test]
async fn what_a_dropped_claim_would_have_got_comes_with_the_next() {
    let (mut server, source) = connect(NEVER).await;
    let asked = tokio::select! {
        _ = source.claim(3) => unreachable!("nothing was granted"),
        asked = server.claims.recv() => asked.unwrap(),
    };
    asked.grant(&[lease(1), lease(2), lease(3)]);
    assert_eq!(source.claim(2).await.unwrap(), [lease(1), lease(2)]);
    assert_eq!(source.claim(2).await.unwrap(), [lease(3)]);
}

#[tokio::test]
async fn leases_that_no_claim_takes_are_released() {
    let (mut server, source) = connect(NEVER).await;
    let asked = tokio::select! {
        _ = source.claim(1) => unreachable!("nothing was granted"),
        asked = server.claims.recv() => asked.unwrap(),
    };
    asked.grant(&[lease(1)]);
    let finish = server.finishes.recv().await.unwrap();
    assert_eq!(finish.body["outcomes"][0]["outcome"], "release");
    finish.commit();
}

#[tokio::test]
async fn outcomes_are_sent_until_they_are_answered() {
    let (mut server, source) = holding(NEVER, &[lease(1), lease(2)]).await;
    let batch = vec![success(&lease(1)), success(&lease(2))];
    let answering = async {
        let mut asked = Vec::new();
        for case in 0..4 {
            let finish = server.finishes.recv().await.unwrap();
            asked.push(finish.body.clone());
            match case {
                0 => finish.refuse(503, "STORE_UNAVAILABLE"),
                1 => drop(finish),
                2 => finish.ok(&json!({"items": []})),
                _ => finish.commit(),
            }
        }
        asked
    };
    let (answers, asked) = tokio::join!(source.finish(batch), answering);
    assert_eq!(answers.unwrap(), [Finished::Done; 2]);
    assert!(asked.iter().all(|finish| *finish == asked[0]));
    assert_eq!(asked[0]["outcomes"][1]["taskId"], json!(lease(2).task));
}

#[tokio::test]
async fn a_bad_outcome_does_not_hold_the_others() {
    let leases: Vec<_> = (0..5).map(lease).collect();
    let (mut server, source) = holding(NEVER, &leases).await;
    let mut batch: Vec<_> = leases.iter().map(success).collect();
    batch[3].outcome = Outcome::Fail { error: Failure::new("BAD", "") };
    let answering = async {
        let mut failed = None;
        while failed.is_none() {
            let finish = server.finishes.recv().await.unwrap();
            let outcomes = finish.body["outcomes"].as_array().unwrap();
            if outcomes.iter().any(|outcome| outcome["outcome"] == "fail") {
                finish.refuse(422, "INVALID_FIELDS");
                continue;
            }
            failed = outcomes
                .iter()
                .find(|outcome| outcome["error"]["code"] == "OUTCOME_REFUSED")
                .cloned();
            finish.commit();
        }
        // The last item is still to come.
        server.finishes.recv().await.unwrap().commit();
        failed.unwrap()
    };
    let (answers, failed) = tokio::join!(source.finish(batch), answering);
    let mut expected = [Finished::Done; 5];
    expected[3] = Finished::Unknown;
    assert_eq!(answers.unwrap(), expected);
    assert_eq!(failed["taskId"], json!(leases[3].task));
}

fn report_item(lease: &Lease, done: Option<u64>, log: Option<(u64, &str)>) -> ReportItem {
    let progress = done.map(|done| Progress::new(done, Some(9)).with_message("at it"));
    let log = log.map(|(offset, text)| LogChunk { offset, text: text.into() });
    ReportItem { task: lease.task, epoch: lease.epoch, progress, log }
}

#[tokio::test]
async fn a_report_is_two_calls_and_tried_once() {
    let leases = [lease(1), lease(2), lease(3)];
    let (mut server, source) = holding(NEVER, &leases).await;
    let mut both = report_item(&leases[0], Some(3), Some((7, "x\n")));
    both.progress.as_mut().unwrap().checkpoint = Some(r#"{"row": 1.0}"#.into());
    let batch = vec![
        both,
        report_item(&leases[1], None, Some((0, "y"))),
        report_item(&leases[2], Some(4), None),
    ];
    let answering = async {
        let asked = server.reports.recv().await.unwrap();
        assert_eq!(asked.path, "/v1/leases/progress");
        let item = |lease: &Lease, done: u64| json!({"taskId": lease.task, "epoch": 1, "done": done, "total": 9, "message": "at it"});
        let mut first = item(&leases[0], 3);
        first["checkpoint"] = json!({"row": 1.0});
        let items = json!([first, item(&leases[2], 4)]);
        assert_eq!(asked.body, json!({"sessionId": session_id(1), "items": items}));
        asked.answer_all("DONE");
        let asked = server.reports.recv().await.unwrap();
        assert_eq!(asked.path, "/v1/leases/logs");
        let item = |lease: &Lease, offset: u64, text: &str| json!({"taskId": lease.task, "epoch": 1, "offset": offset, "text": text});
        let items = json!([item(&leases[0], 7, "x\n"), item(&leases[1], 0, "y")]);
        assert_eq!(asked.body, json!({"sessionId": session_id(1), "items": items}));
        asked.answer_all("LEASE_LOST");
    };
    let (answers, ()) = tokio::join!(source.report(batch), answering);
    let expected = [Reported::LeaseLost, Reported::LeaseLost, Reported::Done];
    assert_eq!(answers.unwrap(), expected, "both calls decide about an item");
    for case in 0..3 {
        let refusing = async {
            let asked = server.reports.recv().await.unwrap();
            match case {
                0 => asked.refuse(503, "STORE_UNAVAILABLE"),
                1 => asked.ok(&json!({"items": []})),
                _ => drop(asked),
            }
        };
        let batch = vec![report_item(&leases[1], Some(1), None)];
        let (answers, ()) = tokio::join!(source.report(batch), refusing);
        assert_eq!(answers, Err(ReportFailed), "case {case}");
    }
}

#[tokio::test]
async fn what_is_reported_under_a_lost_session_is_lost() {
    let (mut server, source) = holding(NEVER, &[lease(1)]).await;
    let refusing = async {
        server.reports.recv().await.unwrap().refuse(404, "SESSION_NOT_FOUND");
    };
    let batch = vec![report_item(&lease(1), None, Some((0, "x")))];
    let (answers, ()) = tokio::join!(source.report(batch), refusing);
    assert_eq!(answers.unwrap(), [Reported::LeaseLost]);
}

#[tokio::test]
async fn a_heartbeat_names_what_was_received_and_what_has_not_started() {
    let (mut server, source) = holding(0.01, &[lease(1), lease(2)]).await;
    // Heartbeats from before the leases arrived still wait for their answers.
    let heartbeat = loop {
        let calling = async {
            let call = source.unstarted_request().await;
            call(vec![lease(2).task]);
        };
        let heartbeat = tokio::select! {
            biased;
            () = calling => continue,
            heartbeat = server.heartbeats.recv() => heartbeat.unwrap(),
        };
        assert_eq!(heartbeat.path, format!("/v1/sessions/{}/heartbeat", session_id(1)));
        if heartbeat.body["unstarted"] != json!([]) {
            break heartbeat;
        }
        heartbeat.ok(&json!({"lost": [], "cancel": [], "drain": false}));
    };
    let expected = json!({"received": [1], "unstarted": [lease(2).task], "waitSeconds": 0.01});
    assert_eq!(heartbeat.body, expected, "the answer may wait until the next heartbeat is due");
    let named = |lease: &Lease| json!([{"taskId": lease.task, "epoch": lease.epoch}]);
    let answer = json!({"lost": named(&lease(1)), "cancel": named(&lease(2)), "drain": false});
    heartbeat.ok(&answer);
    let gone = source.taken_back().await;
    let why: Vec<_> = gone.iter().map(|gone| (gone.task, gone.why)).collect();
    assert_eq!(why, [(lease(1).task, Why::Lost), (lease(2).task, Why::Cancelled)]);
}

#[tokio::test]
async fn a_batch_is_no_longer_named_once_all_of_it_has_ended() {
    let (mut server, source) = holding(0.01, &[lease(1)]).await;
    let committing = async { server.finishes.recv().await.unwrap().commit() };
    let (answers, ()) = tokio::join!(source.finish(vec![success(&lease(1))]), committing);
    assert_eq!(answers.unwrap(), [Finished::Done]);
    loop {
        let heartbeat = server.heartbeats.recv().await.unwrap();
        if heartbeat.body["received"] == json!([]) {
            break;
        }
        heartbeat.ok(&json!({}));
    }
}

#[tokio::test]
async fn a_lost_session_is_opened_anew() {
    let (mut server, source) = holding(0.01, &[lease(1)]).await;
    server.heartbeats.recv().await.unwrap().refuse(404, "SESSION_NOT_FOUND");
    server.registrations.recv().await.unwrap().refuse(503, "STORE_UNAVAILABLE");
    server.registrations.recv().await.unwrap().admit(2, NEVER);
    let lost = TakenBack { task: lease(1).task, epoch: 1, why: Why::Lost };
    assert_eq!(source.taken_back().await, [lost]);
    assert_eq!(source.session(), session_id(2));
    let answering = async {
        let finish = server.finishes.recv().await.unwrap();
        assert_eq!(finish.body["sessionId"], json!(session_id(1)));
        finish.refuse(404, "SESSION_NOT_FOUND");
        let claim = server.claims.recv().await.unwrap();
        assert_eq!(claim.body["sessionId"], json!(session_id(2)));
        assert_eq!(claim.body["seq"], 1);
        claim.grant(&[lease(2)]);
    };
    let batch = vec![success(&lease(1))];
    let (answers, leases, ()) = tokio::join!(source.finish(batch), source.claim(1), answering);
    assert_eq!(answers.unwrap(), [Finished::LeaseLost]);
    assert_eq!(leases.unwrap(), [lease(2)]);
}

#[tokio::test]
async fn a_claim_notices_a_lost_session_too() {
    let (mut server, source) = connect(NEVER).await;
    let answering = async {
        server.claims.recv().await.unwrap().refuse(404, "SESSION_NOT_FOUND");
        server.registrations.recv().await.unwrap().admit(2, NEVER);
        server.claims.recv().await.unwrap().grant(&[lease(1)]);
    };
    assert_eq!(tokio::join!(source.claim(1), answering).0.unwrap(), [lease(1)]);
}

#[tokio::test]
async fn closing_ends_the_session_and_every_call() {
    let (mut server, source) = connect(NEVER).await;
    let answering = async {
        drop(server.session_ends.recv().await.unwrap());
        let end = server.session_ends.recv().await.unwrap();
        assert_eq!(end.path, format!("/v1/sessions/{}", session_id(1)));
        end.answer(204, &json!(null));
    };
    let (claimed, (), ()) = tokio::join!(source.claim(1), source.close(), answering);
    assert_eq!(claimed, Err(Closed));
    assert_eq!(source.finish(vec![success(&lease(1))]).await, Err(Closed));
}

#[tokio::test]
async fn dropping_the_source_ends_its_loops() {
    let (_server, source) = connect(NEVER).await;
    let loops = source.loops.clone();
    drop(source);
    loops.wait().await;
}
