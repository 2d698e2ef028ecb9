//! Who may call a server with keys, and how it is found out.

mod claims;
pub(crate) mod issuer;
mod keys;
mod matrix;
mod published;
mod sign_in;
mod signatures;
mod table;
mod tenants;
