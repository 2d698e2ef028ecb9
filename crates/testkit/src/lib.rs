//! What tests of the real program share: starting and killing the binary, runs under chaos and the
//! judge of them, a target that logs executions, and small disks. For development only.
//!
//! Nothing here looks inside the server: all knowledge of it comes from its interfaces, from the
//! system, or from the target that its tasks call.

pub mod attempt;
pub mod bench_page;
pub mod chaos;
pub mod command;
pub mod disk;
pub mod effects;
pub mod fan_in;
pub mod history;
pub mod journal;
pub mod judge;
pub mod keys;
pub mod mail_server;
pub mod matrix;
pub mod node;
pub mod page;
pub mod postgres;
pub mod process;
pub mod proxy;
pub mod raw;
pub mod report;
pub mod sbom;
pub mod server;
pub mod stalls;
pub mod target;
pub mod tasks;
pub mod terminal;
pub mod trace;
pub mod wait;
pub mod worker;

pub use self::mail_server::MailServer;
pub use self::node::Node;
pub use self::server::Server;
pub use self::target::Target;
pub use self::worker::Worker;
