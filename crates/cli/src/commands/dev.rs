//! `duly dev`: everything in one process, on one file, on loopback.

use anyhow::{Context as _, bail};
use tokio::net::TcpListener;

use crate::args::DevArgs;
use crate::exit::Ending;
use crate::output;
use crate::signals::Signals;
use crate::wiring::{DATABASE, Node};

pub(crate) fn run(args: &DevArgs) -> anyhow::Result<Ending> {
    if !args.listen.ip().is_loopback() {
        bail!(
            "`duly dev` has no keys, so it listens on loopback only, not on {}; use 127.0.0.1",
            args.listen.ip()
        );
    }
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    runtime.block_on(serve(args))
}

async fn serve(args: &DevArgs) -> anyhow::Result<Ending> {
    let mut signals = Signals::new().context("cannot listen for signals")?;
    let listener = bind(args).await?;
    let address = listener.local_addr().context("cannot tell the address")?;
    let node = Node::start(args, listener).await?;
    output::data(&format!("http://{address}"))?;
    welcome(args, &format!("http://{address}"), node.reclaimed());
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

async fn bind(args: &DevArgs) -> anyhow::Result<TcpListener> {
    TcpListener::bind(args.listen).await.with_context(|| {
        format!(
            "cannot listen on {}; if another server runs there, stop it or pass \
             --listen 127.0.0.1:0 to pick a free port",
            args.listen
        )
    })
}

fn welcome(args: &DevArgs, url: &str, reclaimed: usize) {
    output::say(&format!("  API docs  {url}/docs"));
    output::say(&format!("  data      {}", args.data.join(DATABASE).display()));
    if reclaimed > 0 {
        let tasks = output::count(u32::try_from(reclaimed).unwrap_or(u32::MAX), "task");
        output::say(&format!("  recovered {tasks} that an earlier process left running"));
    }
    let server =
        if args.listen.port() == 8080 { String::new() } else { format!(" --server {url}") };
    output::say(&format!(
        "  next      duly task run echo -d '{{\"hi\":1}}' --wait{server}   (Ctrl-C stops)"
    ));
}
