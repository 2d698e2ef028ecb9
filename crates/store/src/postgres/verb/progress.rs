//! How far tasks have come. The caller holds the locks of their rows.

use duly_core::progress::Progress;
use uuid::Uuid;

use super::Scope;
use crate::postgres::error::Result;

/// Keeps how far tasks have come. What comes later in the list counts; a checkpoint stays until
/// there is another.
pub(super) async fn keep(scope: &Scope<'_>, news: Vec<(Uuid, &Progress)>) -> Result<()> {
    let news = last_of_each(news);
    if news.is_empty() {
        return Ok(());
    }
    let insert = "/* report.progress */ INSERT INTO duly.progress AS known
            (task, at, done, total, message, checkpoint)
        SELECT n.task, $6, n.done, n.total, n.message, n.checkpoint
        FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::text[])
             n(task, done, total, message, checkpoint)
        ON CONFLICT (task) DO UPDATE SET at = excluded.at, done = excluded.done,
            total = excluded.total, message = excluded.message,
            checkpoint = coalesce(excluded.checkpoint, known.checkpoint)";
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let tasks: Vec<_> = news.iter().map(|(task, _)| *task).collect();
    let done: Vec<_> = news.iter().map(|(_, it)| number(it.done)).collect();
    let total: Vec<_> = news.iter().map(|(_, it)| it.total.map(number)).collect();
    let messages: Vec<_> = news.iter().map(|(_, it)| it.message.as_deref()).collect();
    let checkpoints: Vec<_> = news.iter().map(|(_, it)| it.checkpoint.as_deref()).collect();
    let now = scope.now.millis();
    scope.execute(insert, &[&tasks, &done, &total, &messages, &checkpoints, &now]).await?;
    Ok(())
}

/// One for each task, in the order of their ids.
fn last_of_each(mut news: Vec<(Uuid, &Progress)>) -> Vec<(Uuid, Progress)> {
    news.sort_by_key(|(task, _)| *task);
    let mut last: Vec<(Uuid, Progress)> = Vec::with_capacity(news.len());
    for (task, progress) in news {
        match last.last_mut() {
            Some((known, before)) if *known == task => {
                let checkpoint = progress.checkpoint.clone().or(before.checkpoint.take());
                *before = Progress { checkpoint, ..progress.clone() };
            }
            _ => last.push((task, progress.clone())),
        }
    }
    last
}

/// Drops how far tasks are: their next run starts from nothing.
pub(super) async fn forget(scope: &Scope<'_>, tasks: &[Uuid]) -> Result<()> {
    let delete = "/* report.forget_progress */ DELETE FROM duly.progress WHERE task = ANY($1)";
    scope.execute(delete, &[&tasks]).await?;
    Ok(())
}
