//! The REST interface: parse, call the engine, render. Holds no rule about tasks beyond their
//! spelling in JSON, and never names a store.
//!
//! [`router`] builds the routes, [`serve`] puts them on a socket.

mod access;
mod app;
mod back_off_fields;
mod body;
mod bulk_fields;
mod caller;
mod caller_rights;
mod config;
mod cursor;
mod edge;
mod error;
mod fields;
mod guard;
mod if_match;
mod key_fields;
mod lease_fields;
mod openapi;
mod order_fields;
mod query;
mod redacted;
mod request_id;
mod responses;
mod route_table;
mod router;
mod routes;
mod schedule_fields;
mod server;
mod session_fields;
mod settings_fields;
mod task_fields;
mod tenant_fields;
mod workflow_fields;

pub use access::Access;
pub use caller::Tenants;
pub use config::Config;
pub use error::Code;
pub use guard::HostPolicy;
pub use openapi::document;
pub use route_table::RouteTable;
pub use router::{route_table, router};
pub use schedule_fields::read_configured_schedule;
pub use server::serve;
pub use workflow_fields::check_workflow;
