//! Nodes over HTTP.

use std::time::Duration;

use reqwest::Method;

use crate::error::Error;
use crate::http::Client;
use crate::wire::NodeList;

impl Client {
    /// Lists the nodes, and which of them leads.
    pub async fn list_nodes(&self) -> Result<NodeList, Error> {
        let url = self.url(&["v1", "nodes"]);
        self.call(Method::GET, url, None, Duration::ZERO).await
    }
}
