//! `duly doctor`: checks the most frequent problems and says what to do.

mod database;
mod disk;
mod server;

use serde::Serialize;

use crate::args::{DoctorArgs, Output};
use crate::exit::Ending;
use crate::output::{self, Paint};
use crate::wiring::{DATABASE, StoreLocation};

/// The result of one check.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding {
    check: &'static str,
    state: State,
    detail: String,
    /// What to do, unless the check passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    Warn,
    /// Not running, which may be intended.
    Absent,
    Fail,
}

impl Finding {
    fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self { check, state: State::Ok, detail: detail.into(), remedy: None }
    }

    fn bad(
        check: &'static str,
        state: State,
        detail: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { check, state, detail: detail.into(), remedy: Some(remedy.into()) }
    }
}

pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<Ending> {
    let findings = super::block_on(run_checks(args))?;
    match args.output {
        Output::Json => output::json(&findings)?,
        Output::Table | Output::Id => output::data(&table(&findings))?,
    }
    let failed = findings.iter().filter(|finding| finding.state == State::Fail).count() as u64;
    if failed > 0 {
        output::say(&format!("{} failed; see above what to do", output::count(failed, "check")));
        return Ok(Ending::Unsuccessful);
    }
    let absent = findings.iter().find(|finding| finding.state == State::Absent);
    output::say(&match absent.and_then(|finding| finding.remedy.as_ref()) {
        None => "all checks passed; next: duly task list".to_owned(),
        Some(start) => format!("all checks passed, but no server runs yet; {start}"),
    });
    Ok(Ending::Ok)
}

async fn run_checks(args: &DoctorArgs) -> anyhow::Result<Vec<Finding>> {
    let location = match &args.store {
        Some(url) => url.clone().location()?,
        None => StoreLocation::Sqlite(args.data.join(DATABASE)),
    };
    let (mut findings, expected) = match location {
        StoreLocation::Sqlite(path) => disk::check(&path),
        StoreLocation::Postgres(url) => database::check(&url).await,
    };
    findings.extend(server::check(args, expected).await?);
    Ok(findings)
}

fn table(findings: &[Finding]) -> String {
    let header = ["check", "state", "detail"];
    let mut table = output::table(&header).wrap_last().paint("state", Paint::HEALTH);
    for finding in findings {
        let state = match finding.state {
            State::Ok => "ok",
            State::Warn => "warning",
            State::Absent => "not running",
            State::Fail => "FAILED",
        };
        let remedy = finding.remedy.as_ref().map(|remedy| format!("\n→ {remedy}"));
        let detail = format!("{}{}", finding.detail, remedy.unwrap_or_default());
        table.add_row([finding.check.to_owned(), state.to_owned(), detail]);
    }
    output::render(&table)
}
