//! The REST interface: parse, call the engine, render. Holds no rule about tasks beyond their
//! spelling in JSON, and never names a store.
//!
//! [`router`] builds the routes, [`serve`] puts them on a socket.

mod access;
mod app;
mod attempts;
mod auth;
mod back_off_fields;
mod body;
mod bulk_fields;
mod caller;
mod caller_rights;
mod config;
mod cursor;
mod edge;
mod error;
mod event_schemas;
mod fields;
#[cfg(fuzzing)]
pub mod fuzzing;
mod guard;
mod if_match;
mod key_fields;
mod lease_fields;
mod openapi;
mod order_fields;
mod peer;
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
mod shares;
mod stream;
mod task_fields;
mod tenant_fields;
mod throttle;
mod tls;
mod workflow_fields;

pub use access::Access;
pub use auth::{
    Algorithm, AuthConfig, Authenticator, BadKey, KeyConfig, KeySource, NewToken, Secret,
    SigningKey,
};
pub use caller::Tenants;
pub use config::{Config, Limits};
pub use error::Code;
pub use guard::HostPolicy;
pub use openapi::{document, document_text};
pub use route_table::RouteTable;
pub use router::{route_table, router};
pub use schedule_fields::read_configured_schedule;
pub use server::serve;
pub use tls::{BadCertificate, Tls, TlsFiles};
pub use workflow_fields::check_workflow;
