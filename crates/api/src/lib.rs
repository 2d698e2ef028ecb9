//! The REST interface: parse, call the engine, render. Holds no rule about tasks beyond their
//! spelling in JSON, and never names a store.
//!
//! [`router`] builds the routes, [`serve`] puts them on a socket.

mod app;
mod body;
mod bulk_fields;
mod config;
mod cursor;
mod duration;
mod edge;
mod error;
mod fields;
mod guard;
mod if_match;
mod lease_fields;
mod openapi;
mod order_fields;
mod parameters;
mod query;
mod request_id;
mod router;
mod routes;
mod server;
mod session_fields;
mod settings_fields;
mod task_fields;
mod tenant;

pub use config::Config;
pub use error::Code;
pub use guard::HostPolicy;
pub use openapi::document;
pub use router::router;
pub use server::serve;
pub use tenant::Tenants;
