//! `duly token`: signs tokens with the keys of the configuration file.

use std::time::Duration;

use duly_api::{AuthConfig, NewToken, SigningKey};
use duly_core::ports::clock::Clock as _;
use duly_store::clock::SystemClock;

use super::serve;
use crate::args::{TokenCommand, TokenCreateArgs};
use crate::exit::{Ending, Usage};
use crate::output;

/// The longest life of a token: a caller who needs more should use an API key, which can be revoked.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// Characters of a subject.
const SUBJECT_CHARS: usize = 200;

pub(crate) fn run(command: &TokenCommand) -> anyhow::Result<Ending> {
    match command {
        TokenCommand::Create(args) => create(args),
    }
}

fn create(args: &TokenCreateArgs) -> anyhow::Result<Ending> {
    let auth = serve::read_auth(&args.config)?.ok_or_else(|| {
        let file = args.config.display();
        Usage::new(format!("{file} has no `auth:`; docs/security.md shows how to make a key"))
    })?;
    check(args)?;
    let signing = signing_key(&auth, args)?;
    let new = NewToken {
        subject: args.subject.clone(),
        grant: args.tenant.clone(),
        roles: args.roles.iter().copied().collect(),
        expires_in: args.expires_in,
        key: None,
    };
    let (token, expires) = signing.sign(new, SystemClock::default().now());
    output::data(&token)?;
    output::say(&format!(
        "signed with the key {}; expires at {expires}; use it by DULY_TOKEN or --token-file",
        signing.id()
    ));
    Ok(Ending::Ok)
}

fn check(args: &TokenCreateArgs) -> Result<(), Usage> {
    let chars = args.subject.chars().count();
    if chars == 0 || chars > SUBJECT_CHARS || args.subject.chars().any(char::is_control) {
        let rule = format!("1 to {SUBJECT_CHARS} characters, none of them a control character");
        return Err(Usage::new(format!("--subject must have {rule}")));
    }
    if args.expires_in.is_zero() || args.expires_in > LONGEST {
        return Err(Usage::new(
            "--expires-in must be from 1s to 366 days (8784h); an API key, which can be revoked, \
             may live longer",
        ));
    }
    Ok(())
}

fn signing_key(auth: &AuthConfig, args: &TokenCreateArgs) -> Result<SigningKey, Usage> {
    let found = SigningKey::of(auth, args.key.as_deref());
    found.map_err(|bad| Usage::new(bad.to_string()))?.ok_or_else(|| {
        let which = match &args.key {
            Some(id) => format!("there is no key {id} that signs"),
            None => "no key signs".to_owned(),
        };
        let file = args.config.display();
        Usage::new(format!(
            "{which} in {file}: it needs `secretFile`, or `privateKeyFile` beside `publicKeyFile`"
        ))
    })
}
