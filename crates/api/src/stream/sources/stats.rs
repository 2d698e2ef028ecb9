//! The figures of a tenant's queues.

use bytes::Bytes;
use duly_client::wire::{QueueStatsView, QueueView, StatsView};
use duly_engine::{QueueSample, Sample, SampleFeed};

use super::Source;
use crate::stream::ending::Closed;
use crate::stream::frame::Frame;

pub(super) struct StatsSource(pub(super) SampleFeed);

impl Source for StatsSource {
    async fn next(&mut self) -> Result<Option<Bytes>, Closed> {
        let sample = self.0.next().await;
        Ok(Some(Frame::message("stats", &view(&sample))))
    }
}

fn view(sample: &Sample) -> StatsView {
    let queue = |it: &QueueSample| QueueStatsView {
        queue: QueueView::new(it.state.clone(), it.rate.submitted, it.rate.started),
        lateness_seconds: it.lateness.as_secs_f64(),
    };
    StatsView::new(sample.at, sample.queues.iter().map(queue).collect(), sample.more)
}
