//! An application needs the right to call two functions, and none to the tables.

use super::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn an_application_may_submit_and_see_nothing() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    app.batch_execute("SET ROLE duly_application").await.unwrap();
    // A new lane and a new day among them.
    let id = app.submit("'email', delay => '90 days', idempotency_key => 'k'").await.unwrap();
    let forbidden = [
        "SELECT * FROM duly.task".to_owned(),
        "SELECT * FROM duly.due".to_owned(),
        "SELECT * FROM duly.idempotency".to_owned(),
        format!("DELETE FROM duly.task WHERE id = '{id}'"),
        "INSERT INTO duly.lane (tenant, queue, type) VALUES ('a', 'b', 'c')".to_owned(),
        "SELECT duly.make_day(99999)".to_owned(),
        "SELECT duly.lane_of('a', 'b', 'c')".to_owned(),
        format!("SELECT duly.take_key('a', 'b', '{id}', 1)"),
        "SELECT nextval('duly.ordinal')".to_owned(),
    ];
    for statement in forbidden {
        let refused = app.batch_execute(&statement).await.expect_err(&statement);
        assert_eq!(refused.code().unwrap().code(), "42501", "{statement}");
    }
    assert!(world.rest.get_task(id, None).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn others_may_not_submit() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    app.batch_execute("SET ROLE duly_query").await.unwrap();
    let refused = app.submit("'email'").await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "42501");
    let finish = "SELECT duly.finish(gen_random_uuid(), 1, gen_random_uuid())";
    let refused = app.batch_execute(finish).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "42501");
}

/// What runs with the rights of the owner must not find what others have put in its way.
#[tokio::test(flavor = "multi_thread")]
async fn names_of_the_caller_mean_nothing_inside() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    app.batch_execute(
        "DROP SCHEMA IF EXISTS trap CASCADE; CREATE SCHEMA trap;
         CREATE FUNCTION trap.btrim(text, text) RETURNS text LANGUAGE sql AS $$ SELECT 'trap' $$;
         CREATE FUNCTION trap.starts_with(text, text) RETURNS boolean LANGUAGE sql
             AS $$ SELECT true $$;
         CREATE FUNCTION trap.sha256(bytea) RETURNS bytea LANGUAGE sql AS $$ SELECT 'trap'::bytea $$;
         CREATE TEMP TABLE pg_roles (rolname text);
         SET search_path = trap, pg_temp, pg_catalog",
    )
    .await
    .unwrap();
    let id = app.submit("'email', '1', idempotency_key => 'k'").await.unwrap();
    let payload = format!("SELECT payload FROM duly.task WHERE id = '{id}'");
    assert_eq!(app.text(&payload).await, "1");
    let traps = "SELECT count(*) FROM duly.idempotency WHERE 'trap' IN (key, body)";
    assert_eq!(app.count(traps).await, 0);
}
