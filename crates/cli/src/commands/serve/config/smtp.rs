//! The key `smtp` of the configuration file: the server that sends mails.

use std::path::{Path, PathBuf};
use std::time::Duration;

use duly_core::mail::Mailbox;
use duly_worker::mail::{Encryption, Login, Mailer, Smtp, SmtpConfig, Templates};
use serde::Deserialize;

use super::file::duration;
use crate::exit::Usage;

/// How long one mail may take, if the file does not say.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Holds the password, in place of a file.
const PASSWORD: &str = "DULY_SMTP_PASSWORD";

/// The fields of the key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::commands::serve) struct SmtpFields {
    host: String,
    port: Option<u16>,
    #[serde(default)]
    tls: Encryption,
    user: Option<String>,
    password_file: Option<PathBuf>,
    from: String,
    templates: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    #[serde(default, deserialize_with = "duration")]
    timeout: Option<Duration>,
}

/// The password in the environment.
#[expect(clippy::disallowed_methods, reason = "a part of the configuration that is never a flag")]
pub(super) fn password_variable() -> Option<String> {
    std::env::var(PASSWORD).ok().filter(|password| !password.is_empty())
}

/// Reads the files that the fields name. It calls no server.
pub(super) fn mailer(fields: SmtpFields, password: Option<String>) -> Result<Mailer, Usage> {
    let from: Mailbox = fields.from.parse().map_err(|why| bad("from", why))?;
    if fields.host.is_empty() {
        return Err(bad("host", "is empty"));
    }
    let password = match (&fields.password_file, password) {
        (Some(_), Some(_)) => {
            return Err(bad("passwordFile", format!("and {PASSWORD} are both given; keep one")));
        }
        (Some(path), None) => {
            Some(read(path, "passwordFile")?.trim_end_matches(['\r', '\n']).to_owned())
        }
        (None, password) => password,
    };
    let login = match (fields.user, password) {
        (Some(user), Some(password)) => Some(Login { user, password }),
        (None, None) => None,
        (Some(_), None) => {
            return Err(bad(
                "user",
                format!("needs passwordFile, or {PASSWORD} in the environment"),
            ));
        }
        (None, Some(_)) => return Err(bad("user", "is missing beside the password")),
    };
    let authority = fields.ca_file.map(|path| read(&path, "caFile")).transpose()?;
    let config = SmtpConfig {
        port: fields.port.unwrap_or(match fields.tls {
            Encryption::StartTls => 587,
            Encryption::Tls => 465,
            Encryption::None => 25,
        }),
        host: fields.host,
        encryption: fields.tls,
        login,
        authority: authority.map(String::into_bytes),
        hello: from.domain().to_owned(),
        timeout: fields.timeout.unwrap_or(TIMEOUT),
    };
    let smtp = Smtp::new(config).map_err(|why| Usage::new(format!("smtp: {why}")))?;
    let templates = match &fields.templates {
        Some(folder) => Templates::with_folder(folder).map_err(|why| bad("templates", why))?,
        None => Templates::built_in(),
    };
    Ok(Mailer::smtp(from, templates, smtp))
}

fn read(path: &Path, key: &str) -> Result<String, Usage> {
    let text = std::fs::read_to_string(path);
    text.map_err(|why| bad(key, format!("{}: cannot be read: {why}", path.display())))
}

fn bad(key: &str, why: impl std::fmt::Display) -> Usage {
    Usage::new(format!("smtp.{key}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, password: Option<&str>) -> Result<Mailer, String> {
        let fields: SmtpFields = serde_yaml_ng::from_str(text).map_err(|why| why.to_string())?;
        mailer(fields, password.map(str::to_owned)).map_err(|why| why.to_string())
    }

    #[test]
    fn a_server_is_described_by_a_few_keys() {
        let mailer = parsed("{host: mail.example.com, from: Duly <duly@example.com>}", None);
        let shown = format!("{:?}", mailer.unwrap());
        for part in ["port: 587", "StartTls", "login: None", "hello: \"example.com\""] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let mailer = parsed("{host: 127.0.0.1, tls: none, from: a@b, timeout: 2m}", None);
        let shown = format!("{:?}", mailer.unwrap());
        assert!(shown.contains("port: 25") && shown.contains("timeout: 120s"), "{shown}");
    }

    #[test]
    fn s10_a_password_comes_from_a_file_or_the_environment_and_is_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "canary\n").unwrap();
        let by_file = format!("{{host: h, user: u, from: a@b, passwordFile: {}}}", file.display());
        for mailer in
            [parsed(&by_file, None), parsed("{host: h, user: u, from: a@b}", Some("canary"))]
        {
            let shown = format!("{:?}", mailer.unwrap());
            assert!(shown.contains("user: \"u\"") && !shown.contains("canary"), "{shown}");
        }
        let both = parsed(&by_file, Some("canary")).unwrap_err();
        assert!(both.contains("both given") && !both.contains("canary"), "{both}");
    }

    #[test]
    fn mistakes_name_the_key() {
        for (text, words) in [
            ("{host: h}", "missing field `from`"),
            ("{host: h, from: nobody}", "smtp.from: is not an address"),
            ("{host: '', from: a@b}", "smtp.host: is empty"),
            ("{host: h, from: a@b, tls: none}", "loopback only"),
            ("{host: h, from: a@b, tls: ssl}", "unknown variant `ssl`"),
            ("{host: h, from: a@b, password: x}", "unknown field `password`"),
            ("{host: h, from: a@b, user: u}", "smtp.user: needs passwordFile"),
            ("{host: h, from: a@b, templates: nowhere}", "smtp.templates: nowhere"),
            ("{host: h, from: a@b, caFile: nowhere}", "smtp.caFile: nowhere"),
            ("{host: h, from: a@b, user: u, passwordFile: nowhere}", "smtp.passwordFile: nowhere"),
            ("{host: h, from: a@b, timeout: soon}", "not a duration"),
        ] {
            let why = parsed(text, None).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
        assert!(parsed("{host: h, from: a@b}", Some("x")).unwrap_err().contains("smtp.user"));
    }
}
