//! `duly completions`: what shells need to complete commands and flags.

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::{Args, CompletionsArgs};
use crate::exit::Ending;
use crate::output;

pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<Ending> {
    output::data(script(args.shell)?.trim_end())?;
    output::say(&format!("next: {}", install(args.shell)));
    Ok(Ending::Ok)
}

fn script(shell: Shell) -> anyhow::Result<String> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "duly", &mut script);
    String::from_utf8(script).context("the script is not text")
}

/// How to have the script read by every new shell.
fn install(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => {
            "mkdir -p ~/.local/share/bash-completion/completions && duly completions bash > \
             ~/.local/share/bash-completion/completions/duly, then open a new shell"
        }
        Shell::Zsh => {
            "mkdir -p ~/.zfunc && duly completions zsh > ~/.zfunc/_duly, put `fpath+=~/.zfunc` \
             before `compinit` in ~/.zshrc, then open a new shell"
        }
        Shell::Fish => {
            "mkdir -p ~/.config/fish/completions && duly completions fish > \
             ~/.config/fish/completions/duly.fish"
        }
        Shell::Elvish => {
            "duly completions elvish > ~/.config/elvish/lib/duly.elv, and put `use duly` into \
             ~/.config/elvish/rc.elv"
        }
        Shell::PowerShell => "duly completions powershell >> $PROFILE, then open a new shell",
        // More shells may come with a new version of the library.
        _ => "have your shell read this script when it starts",
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn every_shell_learns_the_commands() {
        for &shell in Shell::value_variants() {
            let script = script(shell).unwrap();
            assert!(script.contains("import") && script.contains("checkpoint"), "{shell}");
            assert!(install(shell).contains(&format!("duly completions {shell}")), "{shell}");
        }
    }
}
