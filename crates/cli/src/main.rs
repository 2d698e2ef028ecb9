//! The `duly` binary: the server's roles and a command-line client.

mod args;
mod commands;
mod exit;
mod files;
mod output;
mod signals;
mod telemetry;
mod wiring;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Args, Command, LogLevel};

fn main() -> ExitCode {
    let args = Args::parse();
    output::color::configure(args.no_color);
    if !matches!(args.command, Command::Serve(_)) {
        telemetry::start(args.verbose, LogLevel::Warn);
    }
    let outcome = match args.command {
        // It starts logging itself, with the level of its configuration.
        Command::Serve(serve) => commands::serve::run(serve, args.verbose),
        Command::Dev(dev) => commands::dev::run(&dev),
        Command::Task(task) => commands::task::run(task),
        Command::Workflow(workflow) => commands::workflow::run(workflow),
        Command::Schedule(schedule) => commands::schedule::run(schedule),
        Command::Bulk(bulk) => commands::bulk::run(bulk),
        Command::Queue(queue) => commands::queue::run(queue),
        Command::Dlq(dlq) => commands::dlq::run(dlq),
        Command::Audit(audit) => commands::audit::run(&audit),
        Command::Settings(settings) => commands::settings::run(settings),
        Command::Tenant(tenant) => commands::tenant::run(tenant),
        Command::Key(key) => commands::key::run(key),
        Command::Event(event) => commands::event::run(event),
        Command::Node(node) => commands::node::run(node),
        Command::Migrate(migrate) => commands::migrate::run(migrate),
        Command::Handler(handler) => commands::handler::run(handler),
        Command::Notify(notify) => commands::notify::run(notify),
        Command::Token(token) => commands::token::run(&token),
        Command::Worker(worker) => commands::worker::run(worker),
        Command::Backup(backup) => commands::backup::run(&backup),
        Command::Restore(restore) => commands::restore::run(&restore),
        Command::Doctor(doctor) => commands::doctor::run(&doctor),
        Command::Bench(bench) => commands::bench::run(&bench),
        Command::Completions(completions) => commands::completions::run(&completions),
    };
    exit::report(outcome)
}
