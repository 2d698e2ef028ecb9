//! Checks a database that nodes share.

use duly_store::postgres::inspection::{Inspection, inspect};

use super::server::Expected;
use super::{Finding, State};
use crate::wiring::StoreUrl;

/// Checks the database. Also returns which server to expect.
pub(super) async fn check(url: &StoreUrl) -> (Vec<Finding>, Expected) {
    match inspect(url.reveal()).await {
        Ok(found) => (findings(&found), expected(&found)),
        Err(error) => {
            let remedy = "fix this, then run duly doctor again";
            let finding = Finding::bad("postgresql", State::Fail, error.to_string(), remedy);
            (vec![finding], Expected::Unknown)
        }
    }
}

fn findings(found: &Inspection) -> Vec<Finding> {
    let Inspection { place, version, encoding, .. } = found;
    vec![
        Finding::ok("postgresql", format!("{version} at {place}")),
        Finding::ok("encoding", encoding),
        schema(found),
        commits(found),
    ]
}

fn schema(found: &Inspection) -> Finding {
    const CHECK: &str = "schema";
    let remedy = "run duly migrate up, or start a node, which does the same";
    match (found.applied, found.known) {
        (0, _) => Finding::bad(CHECK, State::Warn, "there is no schema yet", remedy),
        (applied, known) if applied < known => {
            let detail = format!("{applied} of {known} migrations are applied");
            Finding::bad(CHECK, State::Warn, detail, remedy)
        }
        (applied, _) => Finding::ok(CHECK, format!("all {applied} migrations are applied")),
    }
}

/// Whether a commit survives a power failure.
fn commits(found: &Inspection) -> Finding {
    const CHECK: &str = "commits";
    let Inspection { synchronous_commit, fsync, .. } = found;
    if fsync == "off" {
        let detail = "fsync is off: a power failure loses tasks, or the whole database";
        let remedy = "set fsync = on in postgresql.conf";
        return Finding::bad(CHECK, State::Warn, detail, remedy);
    }
    if synchronous_commit == "off" {
        let detail = "synchronous_commit is off; nodes turn it on for themselves, but applications \
                      that call duly.submit(…) do not";
        let remedy = "ALTER DATABASE … SET synchronous_commit = on";
        return Finding::bad(CHECK, State::Warn, detail, remedy);
    }
    Finding::ok(CHECK, format!("fsync {fsync}, synchronous_commit {synchronous_commit}"))
}

fn expected(found: &Inspection) -> Expected {
    match found.addresses.first() {
        Some(address) => Expected::Running {
            why: format!("a node of this database listens on {address}"),
            remedy: format!("pass --server http://{address}"),
        },
        None if found.applied > 0 => Expected::Stopped {
            why: "no node has sent a heartbeat for a minute".to_owned(),
            remedy: "start one: duly serve --store URL".to_owned(),
        },
        None => Expected::Never { remedy: "start one: duly serve --store URL".to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> Inspection {
        Inspection {
            place: "db:5432/duly".to_owned(),
            version: "16.4".to_owned(),
            encoding: "UTF8".to_owned(),
            synchronous_commit: "on".to_owned(),
            fsync: "on".to_owned(),
            applied: 10,
            known: 10,
            addresses: Vec::new(),
        }
    }

    #[test]
    fn what_is_not_as_it_should_be_comes_with_a_remedy() {
        assert!(findings(&found()).iter().all(|finding| finding.state == State::Ok));
        for (bad, words) in [
            (Inspection { applied: 0, ..found() }, "there is no schema yet"),
            (Inspection { applied: 9, ..found() }, "9 of 10"),
            (Inspection { fsync: "off".to_owned(), ..found() }, "fsync is off"),
            (Inspection { synchronous_commit: "off".to_owned(), ..found() }, "duly.submit"),
        ] {
            let all = findings(&bad);
            let one = all.iter().find(|finding| finding.state != State::Ok).unwrap();
            assert!(one.detail.contains(words) && one.remedy.is_some(), "{one:?}");
        }
    }
}
