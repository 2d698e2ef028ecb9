//! The judge is judged: histories made by hand, one for each way to be wrong and many that are
//! right; random ones that are right until one thing is changed; and the program itself.

mod attempts;
mod cancels;
mod clean;
mod dependencies;
mod epochs;
mod generate;
mod history;
mod leaders;
mod losses;
mod mutate;
mod outcomes;
mod program;
mod property;
mod script;
mod sets;
mod workflows;
