//! The JSON of the REST interface, one file per noun. Names are camelCase; fields are only ever
//! added.

pub mod batch;
pub mod health;
pub mod order;
pub mod problem;
pub mod submit;
pub mod task;

pub use batch::{BatchAnswer, BatchItem};
pub use health::{Liveness, Readiness, Version};
pub use order::{CancelRequest, ReplayRequest};
pub use problem::{Problem, ProblemField};
pub use submit::{Backoff, SubmitRequest};
pub use task::{TaskError, TaskPage, TaskView, Warning};
