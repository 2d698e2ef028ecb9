//! Reports: what running attempts tell, all of it in one call and at most one call a second. While
//! nobody tells anything, nothing happens here. Outcomes do not wait for reports.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use duly_core::limits::{REPORT_INTERVAL, STORE_BATCH, STORE_BATCH_BYTES};
use duly_core::ports::store::Reported;
use duly_core::ports::work_source::{TakenBack, Unheard, Why, WorkSource};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::{Instant, Sleep};

use crate::notes::{Board, News};

/// How long news waits at least. An attempt that is over by then tells it with its outcome.
const MOMENT: Duration = Duration::from_millis(200);

/// Reports on their way to the source.
pub(super) struct Reporter {
    source: Arc<dyn WorkSource>,
    board: Arc<Board>,
    /// Goes off when news is to be told. There is none while there is no news.
    timer: Option<Pin<Box<Sleep>>>,
    last: Option<Instant>,
    call: Option<Call>,
}

/// A `report` that was not answered yet.
struct Call {
    news: Vec<News>,
    answer: BoxFuture<'static, Result<Vec<Reported>, Unheard>>,
}

impl Reporter {
    pub(super) fn new(source: Arc<dyn WorkSource>, board: Arc<Board>) -> Self {
        Self { source, board, timer: None, last: None, call: None }
    }

    /// Waits for news, tells it in time and waits for the answer, until it turns out that leases
    /// are gone. Dropping it loses nothing.
    pub(super) async fn reported(&mut self) -> Vec<TakenBack> {
        loop {
            if let Some(call) = &mut self.call {
                let answer = (&mut call.answer).await;
                let news = self.call.take().map(|call| call.news).unwrap_or_default();
                let gone = settle(&news, answer);
                if gone.is_empty() {
                    continue;
                }
                return gone;
            }
            if self.timer.is_none() {
                self.board.filled().await;
                let soon = Instant::now() + MOMENT;
                let due = self.last.map_or(soon, |last| soon.max(last + REPORT_INTERVAL));
                self.timer = Some(Box::pin(tokio::time::sleep_until(due)));
            }
            if let Some(timer) = &mut self.timer {
                timer.as_mut().await;
            }
            self.timer = None;
            self.call = self.next_call();
        }
    }

    /// The next call, unless all who had something to tell are done. What one call cannot take
    /// along waits for the next.
    fn next_call(&mut self) -> Option<Call> {
        let (mut news, mut bytes) = (Vec::new(), 0);
        for notes in self.board.take() {
            if news.len() == STORE_BATCH || bytes > STORE_BATCH_BYTES {
                notes.put_off();
                continue;
            }
            let Some(next) = notes.news() else { continue };
            bytes += bytes_of(&next);
            news.push(next);
        }
        if news.is_empty() {
            return None;
        }
        self.last = Some(Instant::now());
        let batch = news.iter().map(|news| news.item.clone()).collect();
        let source = Arc::clone(&self.source);
        Some(Call { news, answer: async move { source.report(batch).await }.boxed() })
    }
}

fn settle(news: &[News], answer: Result<Vec<Reported>, Unheard>) -> Vec<TakenBack> {
    let answers = answer.unwrap_or_default();
    let mut gone = Vec::new();
    for (place, news) in news.iter().enumerate() {
        match answers.get(place) {
            Some(Reported::Done) => news.heard(),
            // What ended by itself meanwhile was not taken from anybody.
            Some(Reported::LeaseLost) if news.is_open() => {
                let (task, epoch) = (news.item.task, news.item.epoch);
                gone.push(TakenBack { task, epoch, why: Why::Lost });
            }
            Some(Reported::LeaseLost | Reported::Unknown) => {}
            None => news.notes.relist(),
        }
    }
    gone
}

fn bytes_of(news: &News) -> usize {
    let checkpoint = news.item.progress.as_ref().and_then(|it| it.checkpoint.as_ref());
    let log = news.item.log.as_ref().map(|log| &log.text);
    [checkpoint, log].into_iter().flatten().map(|text| text.len()).sum()
}
