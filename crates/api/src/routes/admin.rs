//! `/admin`: what concerns the whole installation.

use std::io::Read;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use duly_client::wire::{BackupState, Problem};
use duly_core::ports::store::Snapshot;
use futures_util::stream;
use tokio::sync::mpsc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::Access;
use crate::app::App;
use crate::error::{ApiError, Code};

/// Bytes that are read at once.
const CHUNK: usize = 256 * 1024;
/// Chunks that are read ahead of a client.
const AHEAD: usize = 4;

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(make_backup, get_backup))
}

/// Make a backup
///
/// Answers with a consistent copy of the embedded store, while the server goes on working: an SQLite file
/// that `duly restore` puts in place. The answer begins once the copy is complete; `GET /admin/backup`
/// tells how far it is. A server on PostgreSQL is backed up with the tools of the database.
#[utoipa::path(
    post, path = "/admin/backup", operation_id = "make_backup", tag = "admin",
    extensions(("x-duly-access" = json!(Access::InstallationAdmin))),
    responses(
        (status = 200, description = "The copy", content_type = "application/vnd.sqlite3"),
        (status = 409, description = "`BACKUP_NOT_HERE`: use pg_dump or pg_basebackup",
            body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`STORE_UNAVAILABLE`: another backup is being made, or the disk \
            has no room for a copy; see `Retry-After`",
            body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn make_backup(State(app): State<App>) -> Result<Response, ApiError> {
    let snapshot = app.engine.snapshot().await?.ok_or_else(not_here)?;
    let now = app.engine.now().await?.to_string();
    let name: String = now.chars().filter(char::is_ascii_alphanumeric).collect();
    let headers = [
        (CONTENT_TYPE, "application/vnd.sqlite3".to_owned()),
        (CONTENT_LENGTH, snapshot.bytes.to_string()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"duly-{name}.db\"")),
    ];
    Ok((headers, body(snapshot)).into_response())
}

/// See how far a backup is
#[utoipa::path(
    get, path = "/admin/backup", operation_id = "get_backup", tag = "admin",
    extensions(("x-duly-access" = json!(Access::InstallationAdmin))),
    responses((status = 200, description = "Whether one is being made", body = BackupState)),
)]
pub(crate) async fn get_backup(State(app): State<App>) -> Json<BackupState> {
    let progress = app.engine.copy_progress();
    Json(BackupState {
        running: progress.is_some(),
        copied_bytes: progress.map(|it| it.copied_bytes),
        total_bytes: progress.map(|it| it.total_bytes),
    })
}

fn not_here() -> ApiError {
    let detail = "this server keeps its tasks in PostgreSQL: use pg_dump or pg_basebackup, as \
                  docs/operations.md describes";
    ApiError::new(Code::BackupNotHere, detail)
}

/// The copy as a body. It is read by a thread that may block, no further ahead than the client reads.
fn body(snapshot: Snapshot) -> Body {
    let (sender, chunks) = mpsc::channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        let mut content = snapshot.content;
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = match content.read(&mut chunk) {
                Ok(0) => return,
                Ok(count) => Ok(Bytes::copy_from_slice(&chunk[..count])),
                Err(error) => Err(error),
            };
            // A client that gets an error knows that it has not all.
            let is_broken = read.is_err();
            // A client that has gone needs no more.
            if sender.blocking_send(read).is_err() || is_broken {
                return;
            }
        }
    });
    Body::from_stream(stream::unfold(chunks, |mut chunks| async {
        chunks.recv().await.map(|chunk| (chunk, chunks))
    }))
}
