//! `duly doctor`: looks at what goes wrong most often and says what to do about it.

mod database;
mod disk;
mod server;

use serde::Serialize;

use crate::args::{DoctorArgs, Output};
use crate::exit::Ending;
use crate::output::{self, Paint};
use crate::wiring::{DATABASE, StorePlace};

/// What one check found.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding {
    check: &'static str,
    state: State,
    detail: String,
    /// What to do, unless all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    Warn,
    /// Not there, which may be as it should.
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
    let findings = super::block_on(look(args))?;
    match args.output {
        Output::Json => output::json(&findings)?,
        Output::Table | Output::Id => output::data(&table(&findings))?,
    }
    let failed = findings.iter().filter(|finding| finding.state == State::Fail).count() as u64;
    if failed > 0 {
        output::say(&format!("{} failed", output::count(failed, "check")));
        return Ok(Ending::Unwell);
    }
    let absent = findings.iter().find(|finding| finding.state == State::Absent);
    output::say(&match absent.and_then(|finding| finding.remedy.as_ref()) {
        None => "nothing is in the way; next: duly task list".to_owned(),
        Some(start) => format!("nothing is in the way, but no server runs yet; {start}"),
    });
    Ok(Ending::Ok)
}

async fn look(args: &DoctorArgs) -> anyhow::Result<Vec<Finding>> {
    let place = match &args.store {
        Some(url) => url.clone().place()?,
        None => StorePlace::Sqlite(args.data.join(DATABASE)),
    };
    let (mut findings, expected) = match place {
        StorePlace::Sqlite(path) => disk::check(&path),
        StorePlace::Postgres(url) => database::check(&url).await,
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
