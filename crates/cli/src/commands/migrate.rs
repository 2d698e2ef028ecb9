//! `duly migrate …`: the schema of a shared database.

use duly_core::time::Timestamp;
use serde::Serialize;

use crate::args::{MigrateArgs, MigrateCommand, Output};
use crate::exit::Ending;
use crate::output;
use crate::wiring::{self, Migration};

/// What is printed as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    /// How many migrations this call has applied.
    applied: usize,
    items: Vec<Item>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    version: u32,
    applied_at: Option<Timestamp>,
}

pub(crate) fn run(command: MigrateCommand) -> anyhow::Result<Ending> {
    super::block_on(async {
        match command {
            MigrateCommand::Up(args) => {
                let applied = wiring::migrate(&args.store).await?;
                print(&args, applied, &wiring::migrations(&args.store).await?)?;
                output::say(&format!("applied {}", output::count(applied as u64, "migration")));
                report_missing_roles(&wiring::grant_rights(&args.store).await?);
                Ok(Ending::Ok)
            }
            MigrateCommand::Status(args) => {
                let migrations = wiring::migrations(&args.store).await?;
                print(&args, 0, &migrations)?;
                let missing = migrations.iter().filter(|it| it.applied_at.is_none()).count();
                if missing == 0 {
                    return Ok(Ending::Ok);
                }
                let pending = output::count(missing as u64, "migration");
                output::say(&format!("{pending} pending; next: duly migrate up"));
                Ok(Ending::Unsuccessful)
            }
        }
    })
}

/// Says how to create roles that the schema's owner may not create.
fn report_missing_roles(missing: &[String]) {
    if let [first, ..] = missing {
        output::say(&format!(
            "missing roles: {}; nodes and applications need them to use their own users; let an \
             administrator create each (CREATE ROLE {first}), then run this again",
            missing.join(", ")
        ));
    }
}

fn print(args: &MigrateArgs, applied: usize, migrations: &[Migration]) -> anyhow::Result<()> {
    match args.output {
        Output::Json => {
            let item = |it: &Migration| Item { version: it.version, applied_at: it.applied_at };
            output::json(&Status { applied, items: migrations.iter().map(item).collect() })
        }
        Output::Table => {
            let mut table = output::table(&["version", "applied at"]);
            for it in migrations {
                table.add_row([it.version.to_string(), output::instant(it.applied_at)]);
            }
            output::data(&output::render(&table))
        }
        Output::Id => migrations.iter().try_for_each(|it| output::data(&it.version.to_string())),
    }
}
