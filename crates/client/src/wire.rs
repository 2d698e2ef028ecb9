//! The JSON of the REST interface, one file per noun. Names are camelCase; fields are only ever
//! added.

pub mod attempt;
pub mod audit;
pub mod auth;
pub mod backup;
pub mod batch;
pub mod bulk;
pub mod dead_letter;
pub mod event;
pub mod health;
pub mod key;
pub mod lease;
pub mod log;
pub mod node;
pub mod order;
pub mod problem;
pub mod progress;
pub mod queue;
pub mod schedule;
pub mod session;
pub mod settings;
pub mod sink;
pub mod stream;
pub mod submit;
pub mod task;
pub mod tenant;
pub mod worker;
pub mod workflow;

pub use attempt::{AttemptPage, AttemptView};
pub use audit::{AuditEntryView, AuditPage};
pub use auth::TokenAnswer;
pub use backup::BackupState;
pub use batch::{BatchAnswer, BatchItem};
pub use bulk::{BulkAnswer, BulkPage, BulkPreview, BulkRequest, BulkView};
pub use dead_letter::{
    DeadLetter, DeadLetterPage, ErrorGroupPage, ErrorGroupView, PurgeDeadAnswer, PurgeDeadRequest,
    ReplayDeadAnswer, ReplayDeadRequest,
};
pub use event::CloudEvent;
pub use health::{Liveness, Readiness, Version};
pub use key::{CreatedKeyView, KeyPage, KeyRequest, KeyView};
pub use lease::finish::{
    ExtendAnswer, ExtendRequest, ExtendedView, Extension, FinishAnswer, FinishRequest,
    FinishedView, LeaseStatus, OutcomeKind, OutcomeView,
};
pub use lease::report::{
    LastProgress, LogItem, LogsRequest, ProgressItem, ProgressRequest, ReportAnswer, ReportedView,
};
pub use lease::{ClaimAnswer, ClaimRequest, LeaseView, LeasedTask};
pub use log::{LogPageView, LogPartView};
pub use node::{LeaderView, NodeLife, NodeList, NodeView};
pub use order::{CancelRequest, EditRequest, ReplayRequest};
pub use problem::{Problem, ProblemField};
pub use progress::ProgressView;
pub use queue::{
    Count, ExplainView, OpenParent, PauseRequest, PauseView, QueuePage, QueueView, ReasonCode,
    ReasonView,
};
pub use schedule::{
    BackfillAnswer, BackfillRequest, BackfillSlotView, NextSlots, SchedulePage, SchedulePreview,
    ScheduleRequest, ScheduleSlot, ScheduleView, SlotPage, SlotTime, SlotView,
};
pub use session::{HeartbeatAnswer, HeartbeatRequest, LeaseRef, RegisterRequest, Registration};
pub use settings::{
    EffectiveSettings, RetentionView, RollbackRequest, SettingsAnswer, SettingsPage,
    SettingsRequest, SettingsVersion, SettingsView,
};
pub use sink::{RelayView, SinkList, SinkView, SuspensionView};
pub use stream::{QueueStatsView, StatsTotals, StatsView, StreamClosed, StreamMessage, TopicGone};
pub use submit::{Backoff, SubmitRequest};
pub use task::{TaskError, TaskPage, TaskView, Warning};
pub use tenant::{
    OwnRetentionView, QuotasView, TenantPage, TenantRequest, TenantSettingsView, TenantView,
};
pub use worker::{DrainRequest, WorkerHome, WorkerLife, WorkerList, WorkerView};
pub use workflow::{
    DependencyOn, DependencyView, EdgeView, GraphView, NeededOn, NeededTask, NodeInGraph,
    PathStepView, ThenView, WorkflowAnswer, WorkflowPage, WorkflowRequest, WorkflowSummary,
    WorkflowView,
};
