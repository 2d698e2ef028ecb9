//! The ways into the system: one server, or as many as there are nodes.

use duly_client::Client;

/// Clients of all servers, any of which may be away.
#[derive(Clone, Debug)]
pub(super) struct Doors(Vec<Client>);

impl Doors {
    /// Those at these addresses, for clients with this token.
    pub(super) fn to(urls: &[String], token: Option<&str>) -> anyhow::Result<Self> {
        let clients = urls.iter().map(|url| Client::new(url, token));
        Ok(Self(clients.collect::<Result<_, _>>()?))
    }

    /// The door of this number; they begin anew behind the last one.
    pub(super) fn door(&self, number: usize) -> &Client {
        &self.0[number % self.0.len()]
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}
