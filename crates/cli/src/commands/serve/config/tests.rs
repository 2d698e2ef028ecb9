//! Configuration files and flags.

use std::time::Duration;

use clap::Parser as _;

use super::*;
use crate::args::{Args, Command};

fn config(flags: &[&str], text: &str) -> Result<Config, String> {
    let line = ["duly", "serve"].iter().chain(flags);
    let Command::Serve(args) = Args::try_parse_from(line).unwrap().command else {
        panic!("another command")
    };
    let file = File::parse(text).map_err(|error| error.to_string())?;
    Config::new(args, file).map_err(|error| error.to_string())
}

const WHOLE: &str = "
store: postgres://duly:secret@db/duly
listen: 127.0.0.1:9999
name: one
roles: [worker, api]
insecure: true
worker: {concurrency: 7, lossLimit: 3}
session: {ttl: 2s}
outbound: {allow: [10.1.0.0/16], ports: [443, 9000]}
log: {level: debug}
";

#[test]
fn every_key_counts() {
    let config = config(&[], WHOLE).unwrap();
    assert_eq!(config.listen.port(), 9999);
    assert_eq!((config.insecure, config.log_level), (true, LogLevel::Debug));
    let plan = config.plan;
    assert_eq!(
        (plan.name.as_str(), plan.roles.as_slice()),
        ("one", &[Role::Api, Role::Worker][..])
    );
    assert_eq!((plan.concurrency, plan.loss_limit), (7, 3));
    assert_eq!(plan.session_ttl, Duration::from_secs(2));
    assert!(plan.outbound.contains(&"10.1.0.0/16".parse().unwrap()));
    assert_eq!(plan.outbound_ports, Some(vec![443, 9000]));
}

#[test]
fn a_flag_overrides_the_file() {
    let flags = ["--listen", "127.0.0.1:1", "--roles", "scheduler", "--concurrency", "9"];
    let config = config(&flags, WHOLE).unwrap();
    assert_eq!((config.listen.port(), config.plan.concurrency), (1, 9));
    assert_eq!(config.plan.roles, [Role::Scheduler]);
}

#[test]
fn absent_values_get_their_default() {
    let config = config(&["--store", "sqlite:x.db"], "").unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!((config.insecure, config.log_level), (false, LogLevel::Warn));
    assert_eq!((config.plan.roles.len(), config.plan.concurrency), (3, DEFAULT_CONCURRENCY));
    assert_eq!(config.plan.session_ttl, SESSION_TTL);
}

#[test]
fn a_mistake_is_named_and_never_shows_the_password() {
    for (text, words) in [
        ("stroe: x", "unknown field `stroe`, expected one of `store`, `listen`"),
        ("worker: {threads: 1}", "unknown field `threads`, expected `concurrency`"),
        ("roles: [api, cook]", "`cook` must be one of api, scheduler, worker"),
        ("roles: []", "at least one"),
        ("session: {ttl: soon}", "not a duration"),
        ("worker: {concurrency: 0}", "worker: concurrency must be a number from 1"),
        ("store: mysql://duly:secret@db/x", "the store must be"),
        ("listen: here", "listen: not an address and a port"),
        ("name: ''", "name: must have"),
    ] {
        let flags: &[&str] = if text.starts_with("store") { &[] } else { &["--store", "sqlite:x"] };
        let why = config(flags, text).unwrap_err();
        assert!(why.contains(words), "{text}: {why}");
        assert!(!why.contains("secret"), "{why}");
    }
    assert!(config(&[], "listen: 127.0.0.1:1").unwrap_err().contains("--store"));
}

#[test]
fn what_is_not_given_is_limited_only_where_others_may_call() {
    let limits = |text: &str| config(&["--store", "sqlite:x.db"], text).unwrap().plan.limits;
    let local = limits("");
    assert_eq!((local.requests_per_second, local.connections_per_address), (None, 0));
    assert_eq!((local.failed_sign_ins, local.streams_per_caller), (10, 1000));
    let open = limits("listen: 0.0.0.0:80");
    assert_eq!(
        (open.requests_per_second.unwrap().get(), open.connections_per_address),
        (1000, 1000)
    );
    let given = limits(
        "listen: {address: '0.0.0.0:80'}\nlimits: {failedSignIns: 3, requestsPerSecond: 0, \
         connectionsPerAddress: 7, streamsPerCaller: 5, proxies: [10.0.0.0/8]}",
    );
    assert_eq!((given.requests_per_second, given.connections_per_address), (None, 7));
    assert_eq!((given.failed_sign_ins, given.streams_per_caller, given.proxies.len()), (3, 5, 1));
}

#[test]
fn an_address_may_stand_beside_a_certificate() {
    let why = |text: &str| config(&["--store", "sqlite:x.db"], text).unwrap_err();
    for (text, words) in [
        ("listen: 5", "HOST:PORT"),
        ("listen: {adress: '127.0.0.1:1'}", "unknown field `adress`"),
        ("listen: {tls: {certFile: a}}", "keyFile"),
        ("listen: {tls: {certFile: absent, keyFile: absent}}", "listen.tls: cannot read absent"),
    ] {
        assert!(why(text).contains(words), "{text}: {}", why(text));
    }
}

const SCHEDULE: &str = "{tenant: default, name: report, cron: '0 8 * * *', task: {type: echo}}";

#[test]
fn schedules_are_read_as_the_interface_reads_them() {
    let passed = "{tenant: acme, name: once, at: '2001-01-01T00:00:00Z', task: {type: echo}}";
    let schedules = |list: &str| {
        let text = format!("schedules: {list}");
        config(&["--store", "sqlite:x.db"], &text).map(|config| config.plan.schedules)
    };
    let read = schedules(&format!("[{SCHEDULE}, {passed}]")).unwrap().unwrap();
    let found: Vec<_> = read.iter().map(|it| (it.tenant.as_str(), it.name.as_str())).collect();
    assert_eq!(found, [("default", "report"), ("acme", "once")]);
    assert!(read.iter().all(|it| it.schedule.managed));
    assert!(schedules("[]").unwrap().unwrap().is_empty());
    let absent = config(&["--store", "sqlite:x.db"], "").unwrap();
    assert!(absent.plan.schedules.is_none());
    for (list, words) in [
        ("[{name: x}]", ["schedules[0]: /tenant is required", "/cron give exactly one"]),
        ("[{tenant: Bad, name: x, every: 1s, task: {type: echo}}]", ["/tenant", "must match"]),
        ("[{tenant: a, name: x, every: 0s, task: {typ: echo}}]", ["/every", "/task/typ"]),
        (&format!("[{SCHEDULE}, {SCHEDULE}]"), ["schedules[1]", "report is given twice"]),
    ] {
        let error = schedules(list).unwrap_err();
        for word in words {
            assert!(error.contains(word), "{word:?} is not in {error:?}");
        }
    }
}

#[test]
fn events_go_to_a_file_that_is_named() {
    let file = |flags: &[&str], text: &str| {
        let text = format!("store: sqlite:x.db\n{text}");
        config(flags, &text).map(|config| config.plan.event_file)
    };
    let of = |path: &str, kinds: &str| {
        Ok(Some(EventFile { path: path.into(), kinds: kinds.parse().unwrap() }))
    };
    assert_eq!(file(&[], ""), Ok(None));
    let outcomes = "task.succeeded,task.failed,task.cancelled";
    assert_eq!(file(&["--events-file", "a"], ""), of("a", outcomes));
    let both = "events: {file: b, kinds: \"task.lost, workflow.*\"}";
    assert_eq!(file(&[], both), of("b", "task.lost,workflow.started,workflow.ended"));
    assert_eq!(file(&["--events-kinds", "node.*"], both), of("b", "node.joined,node.left"));
    assert!(file(&["--events-kinds", "task.*"], "").unwrap_err().contains("--events-file"));
    assert!(file(&[], "events: {file: b, kinds: task}").unwrap_err().contains("task.failed"));
}
