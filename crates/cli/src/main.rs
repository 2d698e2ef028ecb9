//! The `duly` binary: the server's roles and a client for people, in one program.

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

use crate::args::{Args, Command};

fn main() -> ExitCode {
    let args = Args::parse();
    telemetry::start(&args);
    let outcome = match args.command {
        Command::Dev(dev) => commands::dev::run(&dev),
        Command::Task(task) => commands::task::run(task),
        Command::Bulk(bulk) => commands::bulk::run(bulk),
        Command::Queue(queue) => commands::queue::run(queue),
        Command::Dlq(dlq) => commands::dlq::run(dlq),
        Command::Settings(settings) => commands::settings::run(settings),
        Command::Worker(worker) => commands::worker::run(worker),
        Command::Doctor(doctor) => commands::doctor::run(&doctor),
        Command::Bench(bench) => commands::bench::run(&bench),
        Command::Completions(completions) => commands::completions::run(&completions),
    };
    exit::report(outcome)
}
