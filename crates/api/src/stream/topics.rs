//! What a stream is about.

use std::collections::BTreeSet;

use crate::error::ApiError;
use crate::query;

/// Topics of one stream.
const TOPICS: usize = 100;

const STATS: &str = "stats";
const EVENTS: &str = "events";
const TASK: &str = "task";
const WORKFLOW: &str = "workflow";

/// One topic. Ids are as they were written: one that cannot be an id is one that is not there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    Stats,
    Events,
    Task(String),
    Workflow(String),
}

impl Topic {
    fn parse(text: &str) -> Option<Self> {
        match text.split_once(':') {
            None if text == STATS => Some(Self::Stats),
            None if text == EVENTS => Some(Self::Events),
            Some((TASK, id)) if !id.is_empty() => Some(Self::Task(id.to_owned())),
            Some((WORKFLOW, id)) if !id.is_empty() => Some(Self::Workflow(id.to_owned())),
            _ => None,
        }
    }

    /// As it is written.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Stats => STATS.to_owned(),
            Self::Events => EVENTS.to_owned(),
            Self::Task(id) => format!("{TASK}:{id}"),
            Self::Workflow(id) => format!("{WORKFLOW}:{id}"),
        }
    }
}

/// The topics that the parameter `topics` names, each once.
pub(crate) fn read_topics(text: &str) -> Result<BTreeSet<Topic>, ApiError> {
    if text.split(',').count() > TOPICS {
        return Err(query::invalid(format!("`topics` must be at most {TOPICS}")));
    }
    let topics: Option<_> = text.split(',').map(Topic::parse).collect();
    topics.ok_or_else(|| {
        query::invalid(
            "`topics` must be `stats`, `events`, `task:` or `workflow:` with an id, or several of \
             these with commas between them",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_read_once_each() {
        let read =
            |text: &str| read_topics(text).ok().map(|it| it.iter().map(Topic::text).collect());
        let topics: Vec<String> = read("workflow:b,stats,task:a,events,task:a").unwrap();
        assert_eq!(topics, ["stats", "events", "task:a", "workflow:b"]);
        for bad in ["", ",", "stats,", "stat", "task", "task:", "stats:x", "Stats", "queue:a"] {
            assert_eq!(read(bad), None, "{bad}");
        }
        assert!(read(&["stats"; TOPICS].join(",")).is_some());
        assert_eq!(read(&["stats"; TOPICS + 1].join(",")), None);
    }
}
