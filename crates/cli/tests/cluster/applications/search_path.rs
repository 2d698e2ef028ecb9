//! Nodes name their schema in every statement: the search path of a database changes nothing for them.

use duly_client::wire::SubmitRequest;
use duly_core::state::Status;
use duly_testkit::wait::PATIENCE;
use duly_worker::Registry;
use duly_worker::handlers::Echo;

use super::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn nodes_do_not_depend_on_the_search_path() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    let database = app.text("SELECT current_database()::text").await;
    let alter = format!("ALTER ROLE CURRENT_USER IN DATABASE {database}");
    app.batch_execute(&format!("{alter} SET search_path = nowhere")).await.unwrap();

    let mut late = world.beside().await;
    late.work(&Registry::new().with("echo", Echo)).await;
    let path = late.connect().await.text("SHOW search_path").await;
    let submitted = late.rest.submit(&SubmitRequest::new("echo")).await.unwrap();
    let task = late.rest.get_task(submitted.task_id, Some(PATIENCE)).await.unwrap();

    // Other tests use this database again.
    app.batch_execute(&format!("{alter} RESET search_path")).await.unwrap();
    assert_eq!((path.as_str(), task.status), ("nowhere", Status::Success), "{task:?}");
}
