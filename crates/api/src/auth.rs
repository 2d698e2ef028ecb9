//! Who calls: tokens and their keys, and what each route requires.
//!
//! [`AuthConfig`] is what an operator writes, [`Authenticator`] checks the tokens of requests by it, and
//! [`SigningKey`] signs new ones, for the server and the command line alike.

pub(crate) mod admit;
mod authenticator;
mod config;
mod key;
mod remote_keys;
mod sign;
mod token;

pub use authenticator::Authenticator;
pub use config::{Algorithm, AuthConfig, KeyConfig, Secret};
pub use key::BadKey;
pub use remote_keys::KeySource;
pub use sign::{NewToken, SigningKey};
