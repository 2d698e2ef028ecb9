//! What callers can ask for, one file per verb.

pub mod control;
pub mod submit;
pub mod wait;
