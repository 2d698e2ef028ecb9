//! Runs a node from start to stop, for `duly dev` and `duly serve`.

use std::net::SocketAddr;

use anyhow::{Context as _, bail};
use tokio::net::TcpListener;

use crate::exit::Ending;
use crate::output;
use crate::signals::Signals;
use crate::wiring::{Node, Plan};

/// Runs a node until a signal stops it. `print_banner` gets the URL, if it listens, and the number of
/// tasks that an earlier process left running.
pub(super) async fn serve(
    plan: &Plan,
    listen: Option<SocketAddr>,
    print_banner: impl FnOnce(Option<&str>, usize),
) -> anyhow::Result<Ending> {
    let mut signals = Signals::new().context("cannot listen for signals")?;
    let listener = match listen {
        Some(address) => Some(bind(address).await?),
        None => None,
    };
    let address = listener.as_ref().map(TcpListener::local_addr).transpose();
    let scheme = if plan.tls.is_some() { "https" } else { "http" };
    let url =
        address.context("cannot read the listener's address")?.map(|it| format!("{scheme}://{it}"));
    let node = tokio::select! {
        node = Node::start(plan, listener) => node?,
        () = signals.next() => bail!("stopped before the start was complete"),
    };
    if let Some(url) = &url {
        output::data(url)?;
    }
    print_banner(url.as_deref(), node.reclaimed());
    signals.next().await;
    output::say("stopping: running tasks may finish; a second Ctrl-C stops at once");
    tokio::select! {
        () = node.stop() => {
            output::say("stopped");
            Ok(Ending::Ok)
        }
        () = signals.next() => bail!("stopped at once; unfinished tasks run again at the next start"),
    }
}

async fn bind(listen: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(listen).await.with_context(|| {
        format!(
            "cannot listen on {listen}; if another server runs there, stop it or pass \
             --listen 127.0.0.1:0 to pick a free port"
        )
    })
}
