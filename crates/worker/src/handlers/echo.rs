//! Succeeds with its own payload: the smallest handler, for trying things out and for measuring.

use async_trait::async_trait;

use crate::handler::{Context, Handler, HandlerError, Output};

/// The type `echo`.
#[derive(Clone, Copy, Debug)]
pub struct Echo;

#[async_trait]
impl Handler for Echo {
    async fn run(&self, context: Context) -> Result<Output, HandlerError> {
        Ok(Output::payload_of(&context))
    }
}
