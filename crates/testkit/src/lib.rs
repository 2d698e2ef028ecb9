//! What tests of the real program share: starting and killing the binary, loading it over REST,
//! a target that logs executions, and small disks. For development only.
//!
//! Nothing here looks inside the server: whatever is known of it was read over its interfaces,
//! from the system, or by the target that its tasks call.

pub mod bench_page;
pub mod chaos;
pub mod checker;
pub mod command;
pub mod crash;
pub mod disk;
pub mod effects;
pub mod history;
pub mod journal;
pub mod judge;
pub mod load;
pub mod node;
pub mod page;
pub mod postgres;
pub mod process;
pub mod proxy;
pub mod raw;
pub mod reader;
pub mod report;
pub mod server;
pub mod site;
pub mod stalls;
pub mod target;
pub mod terminal;
pub mod trace;
pub mod wait;
pub mod worker;

pub use self::node::Node;
pub use self::server::Server;
pub use self::target::Target;
pub use self::worker::Worker;
