//! The disk of the database's server is full: what needs room there fails, and goes on afterwards.

use std::time::{Duration, Instant};

use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_testkit::raw::{Answer, Connection};
use duly_testkit::wait::{PATIENCE, eventually, observe_for, within};
use duly_testkit::{Target, report};

use super::start::{fails, order};
use super::{Cluster, TTL, executions, submit_all};

const TASKS: usize = 40;
const FULL: &str = "the disk is full at the PostgreSQL server";
/// How long the cure may take once there is room.
const CURED: Duration = Duration::from_secs(10);
/// What a server says that finds no room, whoever asks for some: rows that are new or get longer,
/// and tables.
const FILL: &str = "
    CREATE FUNCTION public.no_room() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
    END
    $$;
    CREATE FUNCTION public.no_room_for_tables() RETURNS event_trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'could not create file: No space left on device' USING ERRCODE = '53100';
    END
    $$;
    DO $$
    DECLARE
        one text;
    BEGIN
        FOREACH one IN ARRAY '{task,due,grant_log,session,node,leader,idempotency,lane}'::text[] LOOP
            EXECUTE format('CREATE TRIGGER no_room BEFORE INSERT OR UPDATE ON duly.%I
                            EXECUTE FUNCTION public.no_room()', one);
        END LOOP;
    END
    $$;
    CREATE EVENT TRIGGER no_room ON ddl_command_start WHEN TAG IN ('CREATE TABLE AS')
        EXECUTE FUNCTION public.no_room_for_tables()";
/// Small changes find a place on pages that are there.
const LEAVE_GAPS: &str = "
    DROP TRIGGER no_room ON duly.session;
    DROP TRIGGER no_room ON duly.node;
    DROP TRIGGER no_room ON duly.leader";
const CURE: &str = "
    DROP EVENT TRIGGER no_room;
    DROP FUNCTION public.no_room_for_tables();
    DROP FUNCTION public.no_room() CASCADE";

/// Two nodes that run tasks which do not end by themselves.
async fn busy_cluster() -> anyhow::Result<Option<(Cluster, Target, Vec<TaskId>)>> {
    let Some(cluster) = Cluster::start(2, &["--concurrency", "40"]).await? else { return Ok(None) };
    let target = Target::start(Duration::ZERO).await?;
    let ids = submit_all(cluster.client(), &vec![target.held_task(); TASKS]).await?;
    within("all tasks run", target.wait_for(|log| log.in_flight == TASKS)).await??;
    Ok(Some((cluster, target, ids)))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_no_room_does_not_hide_a_full_disk() -> anyhow::Result<()> {
    let Some((cluster, target, ids)) = busy_cluster().await? else { return Ok(()) };
    order(&cluster.scratch.url(), &[FILL, LEAVE_GAPS].join(";")).await?;
    for node in &cluster.nodes {
        let mut connection = Connection::open(node.url()).await?;
        assert_is_full(&submit(&mut connection).await?);
        let since = Instant::now();
        // Meanwhile its signs of life are taken.
        while since.elapsed() < 2 * TTL {
            assert_is_not_ready(&mut connection).await?;
            observe_for(TTL / 20).await;
        }
        assert_is_full(&submit(&mut connection).await?);
    }
    outcomes_wait_for_the_cure(&cluster, &target, &ids).await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_process_is_declared_dead_on_a_full_disk() -> anyhow::Result<()> {
    let Some((cluster, target, ids)) = busy_cluster().await? else { return Ok(()) };
    let url = cluster.scratch.url();
    order(&url, FILL).await?;
    observe_for(3 * TTL).await;
    for node in &cluster.nodes {
        assert_is_not_ready(&mut Connection::open(node.url()).await?).await?;
    }
    fails(&url, 1, &["cannot open the database", FULL, "free some space"]).await?;
    outcomes_wait_for_the_cure(&cluster, &target, &ids).await
}

/// What runs ends, is still known as running, and has succeeded at its first attempt soon after
/// there is room.
async fn outcomes_wait_for_the_cure(
    cluster: &Cluster,
    target: &Target,
    ids: &[TaskId],
) -> anyhow::Result<()> {
    target.release();
    within("all executions end", target.wait_for(|log| log.in_flight == 0)).await??;
    for id in ids {
        let task = cluster.client().get_task(*id, None).await?;
        assert_eq!(task.status, Status::Running, "it can be read, and nothing was written");
    }
    order(&cluster.scratch.url(), CURE).await?;
    let cured = Instant::now();
    for node in &cluster.nodes {
        let is_ready = || async { node.client.ready().await.ok()?.is_ready().then_some(()) };
        eventually("the node is ready again", PATIENCE, is_ready).await?;
    }
    let took = cured.elapsed();
    report::say(&format!("a full disk of PostgreSQL: ready {took:?} after there was room"));
    assert!(took < CURED, "it took {took:?}");
    let more = submit_all(cluster.client(), &vec![target.task(); TASKS]).await?;
    let all = [ids, &more].concat();
    for task in cluster.succeeded(&all).await? {
        assert_eq!((task.losses, task.attempt), (0, 1), "{task:?}");
    }
    let counts = executions(target);
    assert!(all.iter().all(|id| counts[id] == 1), "something ran twice");
    assert_eq!(counts.len(), all.len(), "what was refused is not there");
    Ok(())
}

async fn submit(connection: &mut Connection) -> anyhow::Result<Answer> {
    connection.post("/v1/tasks", br#"{"type":"echo"}"#).await
}

fn assert_is_full(answer: &Answer) {
    assert_eq!((answer.status, answer.code().as_str()), (503, "STORE_UNAVAILABLE"), "{answer:?}");
    assert!(answer.header("retry-after").is_some(), "{answer:?}");
    let detail = answer.json()["detail"].to_string();
    assert!(detail.contains(FULL), "{detail}");
}

async fn assert_is_not_ready(connection: &mut Connection) -> anyhow::Result<()> {
    let answer = connection.get("/readyz").await?;
    assert_eq!(answer.status, 503, "{answer:?}");
    let reasons = answer.json()["reasons"].to_string();
    assert!(reasons.contains(FULL) && reasons.contains("free some space"), "{reasons}");
    assert_eq!(connection.get("/livez").await?.status, 200);
    Ok(())
}
