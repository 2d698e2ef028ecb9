//! What bare PostgreSQL can do: see [`crate::limit`]. A few connections, each in a lane of its own,
//! so that none waits for another; each statement names the day's partition and is planned once.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio_postgres::{Client, Error, Statement};
use uuid::Uuid;

use super::database;
use super::open::{self, OpenError};
use crate::limit::{HandOff, Limit, PAYLOAD};

/// More do not make it faster on the machines that it was tried on.
const CONNECTIONS: usize = 4;

/// Runs the loop on a fresh database.
pub async fn run(url: &str, tasks: usize, batch: usize) -> Result<Limit, OpenError> {
    let mut bench = Bench::open(url, tasks, batch).await?;
    let before = bench.log_bytes().await?;
    let submit = bench.all(&[Part::Submit]).await?;
    let claim = bench.all(&[Part::Claim]).await?;
    let finish = bench.all(&[Part::Finish]).await?;
    let tasks = bench.tasks();
    let log_bytes_per_task = (bench.log_bytes().await? - before) / tasks.max(1) as u64;
    Ok(Limit { tasks, submit, claim, finish, log_bytes_per_task })
}

/// Runs the shorter life on a fresh database: stored as granted, then ended.
pub async fn hand_off(url: &str, tasks: usize, batch: usize) -> Result<HandOff, OpenError> {
    let mut bench = Bench::open(url, tasks, batch).await?;
    let before = bench.log_bytes().await?;
    let cycle = bench.all(&[Part::SubmitGranted, Part::Finish]).await?;
    let tasks = bench.tasks();
    let log_bytes_per_task = (bench.log_bytes().await? - before) / tasks.max(1) as u64;
    Ok(HandOff { tasks, cycle, log_bytes_per_task })
}

/// A part of the lives of a batch.
#[derive(Clone, Copy, Debug)]
enum Part {
    Submit,
    SubmitGranted,
    Claim,
    Finish,
}

struct Bench {
    writers: Vec<Writer>,
    /// Of each writer.
    batches: usize,
    batch: usize,
}

impl Bench {
    async fn open(url: &str, tasks: usize, batch: usize) -> Result<Self, OpenError> {
        let (config, tls) = open::address(url)?;
        open::prepare(&config, &tls).await?;
        let mut writers = Vec::with_capacity(CONNECTIONS);
        for lane in (1_i32..).take(CONNECTIONS) {
            let (client, driver) = open::connect(&config, &tls).await?;
            let writer = Writer::new(client, Box::new(driver), lane, batch).await;
            writers.push(writer.map_err(|error| open::broken(&open::place(&config), &error))?);
        }
        Ok(Self { writers, batches: (tasks / batch).div_ceil(CONNECTIONS), batch })
    }

    fn tasks(&self) -> usize {
        self.writers.len() * self.batches * self.batch
    }

    /// Has every connection do these parts for each of its batches.
    async fn all(&mut self, parts: &'static [Part]) -> Result<Duration, OpenError> {
        let (start, batches) = (Instant::now(), self.batches);
        let mut running = JoinSet::new();
        for mut writer in self.writers.drain(..) {
            running.spawn(async move {
                for number in 0..batches {
                    for part in parts {
                        writer.once(*part, number).await?;
                    }
                }
                Ok::<_, Error>(writer)
            });
        }
        for ended in running.join_all().await {
            self.writers.push(ended.map_err(|error| open::broken("the limit", &error))?);
        }
        Ok(start.elapsed())
    }

    async fn log_bytes(&self) -> Result<u64, OpenError> {
        let bytes = database::log_bytes(&self.writers[0].client).await;
        bytes.map_err(|error| open::broken("the limit", &error))
    }
}

struct Writer {
    client: Client,
    _driver: Box<dyn Send + Sync>,
    statements: Statements,
    lane: i32,
    session: Uuid,
    batch: usize,
    /// The first moment of the day.
    midnight: i64,
    /// The last key that it claimed.
    cursor: (i64, Uuid),
}

impl Writer {
    async fn new(
        client: Client,
        driver: Box<dyn Send + Sync>,
        lane: i32,
        batch: usize,
    ) -> Result<Self, Error> {
        let select = "SELECT (duly.now() / 86400000)::integer, duly.make_day((duly.now() / 86400000)::integer)";
        let day: i32 = client.query_one(select, &[]).await?.try_get(0)?;
        client.batch_execute("SET plan_cache_mode = force_generic_plan").await?;
        let statements = Statements::prepare(&client, day).await?;
        let midnight = i64::from(day) * 86_400_000;
        let session = Uuid::from_u128(lane.unsigned_abs().into());
        let cursor = (0, Uuid::nil());
        Ok(Self { client, _driver: driver, statements, lane, session, batch, midnight, cursor })
    }

    async fn once(&mut self, part: Part, number: usize) -> Result<(), Error> {
        match part {
            Part::Submit => self.submit(number).await,
            Part::SubmitGranted => self.submit_granted(number).await,
            Part::Claim => self.claim(number).await,
            Part::Finish => self.finish(number).await,
        }
    }

    async fn submit(&self, number: usize) -> Result<(), Error> {
        let (client, it) = (&self.client, &self.statements);
        let (ids, at) = self.keys(number);
        let payloads = vec![PAYLOAD; ids.len()];
        // Sent at once, and answered at once.
        tokio::try_join!(
            client.batch_execute("BEGIN"),
            async { client.execute(&it.submit, &[&ids, &at, &self.lane, &payloads]).await },
            async { client.execute(&it.wait, &[&ids, &at, &self.lane]).await },
            client.batch_execute("COMMIT"),
        )?;
        Ok(())
    }

    async fn submit_granted(&self, number: usize) -> Result<(), Error> {
        let (client, it) = (&self.client, &self.statements);
        let (ids, at) = self.keys(number);
        let payloads = vec![PAYLOAD; ids.len()];
        let (epochs, sequence) = (vec![1_i32; ids.len()], sequence(number));
        tokio::try_join!(
            client.batch_execute("BEGIN"),
            async {
                client
                    .execute(
                        &it.submit_granted,
                        &[&ids, &at, &self.lane, &payloads, &self.session, &sequence],
                    )
                    .await
            },
            async {
                client.execute(&it.log, &[&self.session, &sequence, &at, &ids, &epochs]).await
            },
            client.batch_execute("COMMIT"),
        )?;
        Ok(())
    }

    async fn claim(&mut self, number: usize) -> Result<(), Error> {
        let (client, it) = (&self.client, &self.statements);
        let (_, at) = self.keys(number);
        let (limit, sequence) = (i64::try_from(self.batch).unwrap_or(i64::MAX), sequence(number));
        let ((), picked) = tokio::try_join!(client.batch_execute("BEGIN"), async {
            client.query(&it.pick, &[&self.lane, &self.cursor.0, &self.cursor.1, &limit]).await
        },)?;
        let mut keys = Vec::with_capacity(picked.len());
        for row in &picked {
            keys.push((row.try_get::<_, i64>(0)?, row.try_get::<_, Uuid>(1)?));
        }
        self.cursor = keys.iter().max().copied().unwrap_or(self.cursor);
        let ids: Vec<_> = keys.into_iter().map(|(_, id)| id).collect();
        let epochs = vec![1_i32; ids.len()];
        tokio::try_join!(
            async { client.execute(&it.grant, &[&ids, &self.session, &sequence, &at]).await },
            async {
                client.execute(&it.log, &[&self.session, &sequence, &at, &ids, &epochs]).await
            },
            client.batch_execute("COMMIT"),
        )?;
        Ok(())
    }

    async fn finish(&self, number: usize) -> Result<(), Error> {
        let (client, it) = (&self.client, &self.statements);
        let (ids, at) = self.keys(number);
        tokio::try_join!(
            client.batch_execute("BEGIN"),
            async { client.execute(&it.finish, &[&ids, &self.session, &at]).await },
            async { client.execute(&it.forget, &[&self.session, &sequence(number)]).await },
            client.batch_execute("COMMIT"),
        )?;
        Ok(())
    }

    /// The ids of a batch, and its due time.
    fn keys(&self, number: usize) -> (Vec<Uuid>, i64) {
        let at = self.midnight + sequence(number);
        let first =
            (u128::from(at.unsigned_abs()) << 80) | (u128::from(self.lane.unsigned_abs()) << 48);
        let ids = (0..self.batch).map(|place| Uuid::from_u128(first | place as u128));
        (ids.collect(), at)
    }
}

fn sequence(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

struct Statements {
    submit: Statement,
    submit_granted: Statement,
    wait: Statement,
    pick: Statement,
    grant: Statement,
    log: Statement,
    finish: Statement,
    forget: Statement,
}

impl Statements {
    async fn prepare(client: &Client, day: i32) -> Result<Self, Error> {
        let select = "SELECT 'duly.task_' || to_char(date '1970-01-01' + $1::integer, 'YYYYMMDD')";
        let table: String = client.query_one(select, &[&day]).await?.try_get(0)?;
        let prepare = async |text: &str| client.prepare(&text.replace("{table}", &table)).await;
        Ok(Self {
            submit: prepare(
                "INSERT INTO {table} (id, run_at, created_at, epoch, lane, run, charged, retries,
                                      losses, status, rank, payload)
                 SELECT u.id, $2, $2, 0, $3, 1, 0, 3, 0, 1, 4, u.payload
                 FROM unnest($1::uuid[], $4::text[]) u(id, payload)",
            )
            .await?,
            submit_granted: prepare(
                "INSERT INTO {table} (id, run_at, created_at, granted_at, session, sequence, epoch,
                                      lane, run, charged, retries, losses, status, rank, payload)
                 SELECT u.id, $2, $2, $2, $5, $6, 1, $3, 1, 0, 3, 0, 2, 4, u.payload
                 FROM unnest($1::uuid[], $4::text[]) u(id, payload)",
            )
            .await?,
            wait: prepare(
                "INSERT INTO duly.due (lane, rank, run_at, task)
                 SELECT $3, 4, $2, u.id FROM unnest($1::uuid[]) u(id)",
            )
            .await?,
            pick: prepare(
                "DELETE FROM duly.due WHERE ctid = ANY (ARRAY(
                     SELECT ctid FROM duly.due
                     WHERE lane = $1 AND rank = 4 AND (run_at, task) > ($2::bigint, $3::uuid)
                     ORDER BY run_at, task LIMIT $4 FOR UPDATE SKIP LOCKED))
                 RETURNING run_at, task",
            )
            .await?,
            grant: prepare(
                "UPDATE {table} SET status = 2, epoch = epoch + 1, session = $2, sequence = $3,
                        granted_at = $4
                 WHERE id = ANY ($1) AND status = 1",
            )
            .await?,
            log: prepare(
                "INSERT INTO duly.grant_log (session, sequence, granted_at, served_at, deadline, live,
                                             received, tasks, epochs)
                 VALUES ($1, $2, $3, $3, $3, cardinality($4::uuid[]), false, $4, $5)",
            )
            .await?,
            finish: prepare(
                "UPDATE {table} SET status = 3, finished_at = $3, charged = charged + 1
                 WHERE id = ANY ($1) AND epoch = 1 AND session = $2 AND status = 2",
            )
            .await?,
            forget: prepare("DELETE FROM duly.grant_log WHERE session = $1 AND sequence = $2").await?,
        })
    }
}
