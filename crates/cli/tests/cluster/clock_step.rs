//! The clock of the database server is set forward and back under a node that runs.

use std::time::Duration;

use duly_testkit::Target;

use super::start::order;
use super::{Cluster, delayed};

/// Makes the database's clock one that can be set, under the connections that nodes have. The
/// database is not used for another test afterwards: those know by the event trigger.
const MAKE_CLOCK: &str = "
    CREATE TABLE public.clock_step (ms bigint NOT NULL);
    INSERT INTO public.clock_step VALUES (0);
    CREATE OR REPLACE FUNCTION duly.now() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS $$
        SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + s.ms
        FROM public.clock_step s
    $$;
    CREATE FUNCTION public.changed() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
    CREATE EVENT TRIGGER changed ON ddl_command_start WHEN TAG IN ('CREATE CONVERSION')
        EXECUTE FUNCTION public.changed()";
/// Where the clock stands against the right time, in milliseconds: it is set forward and back.
const STEPS: [i64; 5] = [30_000, 0, -30_000, 0, 30_000];
const DELAY: Duration = Duration::from_secs(1);

/// A delay counts from the time that the database's clock shows when the task is stored, wherever
/// the clock stood before.
#[tokio::test(flavor = "multi_thread")]
async fn a_delay_counts_from_the_databases_time_at_the_submit() -> anyhow::Result<()> {
    let Some(cluster) = Cluster::start(1, &[]).await? else { return Ok(()) };
    let url = cluster.scratch.url();
    order(&url, MAKE_CLOCK).await?;
    let target = Target::start(Duration::ZERO).await?;
    let client = cluster.client();
    // The node has heard of the clock before it is set.
    let first = delayed::submit(client, &target, DELAY).await?;
    assert!(delayed::find_early(&target, &[first]).await?.is_empty());
    for step in STEPS {
        order(&url, &format!("UPDATE public.clock_step SET ms = {step}")).await?;
        let now = cluster.ask("SELECT duly.now()").await?;
        let submit = delayed::submit(client, &target, DELAY).await?;
        let task = client.get_task(submit.task, None).await?;
        let (run_at, created_at) = (task.run_at.millis(), task.created_at.millis());
        assert!(created_at >= now, "{step}: created {} ms before it was sent", now - created_at);
        let due = now + i64::try_from(DELAY.as_millis())?;
        assert!(run_at >= due, "{step}: due {} ms early", due - run_at);
        let early = delayed::find_early_starts(&target, &[submit]).await?;
        assert!(early.is_empty(), "{step}: {early:?}");
    }
    Ok(())
}
