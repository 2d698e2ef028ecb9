//! Where the server is at the moment. It moves to another port with every start, so whoever talks
//! to it over its deaths asks here.

use duly_client::Client;
use tokio::sync::watch;

/// One start of the server.
#[derive(Clone, Debug)]
pub struct Site {
    /// Counts starts, from 1.
    pub generation: u32,
    /// A client of it.
    pub client: Client,
}

/// Tells where the server is, to all who follow.
#[derive(Clone, Debug)]
pub struct Sites(watch::Sender<Option<Site>>);

impl Default for Sites {
    fn default() -> Self {
        Self(watch::channel(None).0)
    }
}

impl Sites {
    /// The server is up.
    pub fn open(&self, site: Site) {
        self.0.send_replace(Some(site));
    }

    /// The server is gone.
    pub fn close(&self) {
        self.0.send_replace(None);
    }

    /// Waits for a server that was started after this one.
    pub async fn after(&self, generation: u32) -> Site {
        let mut sites = self.0.subscribe();
        let is_newer =
            |site: &Option<Site>| site.as_ref().is_some_and(|site| site.generation > generation);
        let found = sites.wait_for(is_newer).await.expect("the sender is borrowed meanwhile");
        found.clone().expect("a newer one is one")
    }
}
