//! The rules of the house: what the documents say holds, and what the style forbids is not there.
//! Nothing here knows how tasks are run; it reads the tree as a reviewer would.

mod crates;
mod errors;
mod guarantees;
mod handlers;
mod licences;
mod limits;
mod links;
mod markdown;
mod sbom;
mod sql;
mod task_state;
mod tidy;
mod tour;
mod tree;
