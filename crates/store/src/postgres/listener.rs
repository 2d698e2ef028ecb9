//! Receives notifications of the other nodes, on its own connection, which is opened again when it
//! breaks.

use std::future::poll_fn;
use std::time::Duration;

use tokio_postgres::{AsyncMessage, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::Result;
use super::node::Node;
use super::notifier::{CHANNEL, Notification, announce};

/// Nodes that listen are counted by this name.
pub(super) const NAME: &str = "duly-listener";
/// How long to wait before trying again, at first and at the most.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

type Stream = <MakeRustlsConnect as tokio_postgres::tls::MakeTlsConnect<Socket>>::Stream;

/// Receives notifications of the other nodes, for ever.
pub(super) async fn run(node: &Node, mut config: Config, tls: MakeRustlsConnect) {
    config.application_name(NAME);
    let (least, most) = BACK_OFF;
    let mut back_off = least;
    loop {
        match listen(node, &config, &tls, &mut back_off).await {
            Ok(()) => tracing::info!("the connection to the other nodes was closed"),
            Err(fault) => tracing::warn!(%fault, "notifications of other nodes cannot be received"),
        }
        tokio::time::sleep(back_off).await;
        back_off = (back_off * 2).min(most);
    }
}

async fn listen(
    node: &Node,
    config: &Config,
    tls: &MakeRustlsConnect,
    back_off: &mut Duration,
) -> Result<()> {
    let (client, mut connection) = config.connect(tls.clone()).await?;
    let start = async {
        client.batch_execute(&format!("LISTEN {CHANNEL}")).await?;
        announce(&node.pool, node.id).await?;
        // Notifications of the meantime were lost.
        node.poll().await
    };
    tokio::select! {
        started = start => started?,
        ended = receive(node, &mut connection) => return ended,
    }
    *back_off = BACK_OFF.0;
    receive(node, &mut connection).await
}

/// Drives the connection and applies the notifications that come.
async fn receive(node: &Node, connection: &mut Connection<Socket, Stream>) -> Result<()> {
    loop {
        match poll_fn(|context| connection.poll_message(context)).await {
            Some(Ok(AsyncMessage::Notification(message))) => {
                if let Some((from, notification)) = Notification::decode(message.payload())
                    && from != node.id
                {
                    node.receive(notification).await?;
                }
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(error.into()),
            None => return Ok(()),
        }
    }
}
