//! `duly notify …`: mails that were kept in place of being sent, and templates of mails. It calls no
//! server.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use duly_core::time::Timestamp;
use duly_worker::mail::{StoredMail, Templates};
use serde::Serialize;

use super::task::read_payload;
use crate::args::{NotifyCommand, NotifyOutboxArgs, NotifyPreviewArgs, Output};
use crate::exit::{Ending, Usage};
use crate::output;
use crate::wiring;

#[derive(Serialize)]
struct List {
    items: Vec<StoredMail>,
}

pub(crate) fn run(command: NotifyCommand) -> anyhow::Result<Ending> {
    match command {
        NotifyCommand::Outbox(args) => outbox(&args),
        NotifyCommand::Preview(args) => preview(&args),
    }
}

fn outbox(args: &NotifyOutboxArgs) -> anyhow::Result<Ending> {
    let mails = wiring::outbox(&args.data).read();
    let mails = mails.with_context(|| format!("cannot read {}", args.data.display()))?;
    match &args.id {
        Some(id) => show(&mails, id, args.output),
        None => list(mails, args.output),
    }
}

fn list(mails: Vec<(SystemTime, StoredMail)>, format: Output) -> anyhow::Result<Ending> {
    match format {
        Output::Json => {
            output::json(&List { items: mails.into_iter().map(|(_, mail)| mail).collect() })?;
        }
        Output::Id => {
            for (_, mail) in mails {
                output::data(&mail.id)?;
            }
        }
        Output::Table => {
            let mut table = output::table(&["id", "stored", "to", "subject"]);
            for (at, mail) in &mails {
                let to = output::sanitize(&mail.to.join(", "));
                let subject = output::sanitize(&mail.subject);
                table.add_row([mail.id.clone(), output::instant(instant(*at)), to, subject]);
            }
            output::data(&output::render(&table))?;
            match mails.first() {
                Some((_, mail)) => output::say(&format!("next: duly notify outbox {}", mail.id)),
                None => output::say(NO_MAILS),
            }
        }
    }
    Ok(Ending::Ok)
}

const NO_MAILS: &str = "next: duly task run email -d '{\"to\":\"user@example.com\",\
                        \"subject\":\"Welcome\"}' --wait";

fn show(mails: &[(SystemTime, StoredMail)], id: &str, format: Output) -> anyhow::Result<Ending> {
    let mut found = mails.iter().map(|(_, mail)| mail).filter(|mail| mail.id.starts_with(id));
    let Some(mail) = found.next() else {
        output::error(&format!("there is no mail {id} in the outbox; see `duly notify outbox`"));
        return Ok(Ending::Failed(3));
    };
    if found.next().is_some() && mail.id != id {
        bail!("several mails begin with {id}; give more of the id");
    }
    match format {
        Output::Json => output::json(mail)?,
        Output::Id => output::data(&mail.id)?,
        Output::Table => output::data(&text_of(mail))?,
    }
    Ok(Ending::Ok)
}

/// A mail for people, with escaped control characters.
fn text_of(mail: &StoredMail) -> String {
    let mut lines = vec![format!("From: {}", mail.from), format!("To: {}", mail.to.join(", "))];
    if !mail.cc.is_empty() {
        lines.push(format!("Cc: {}", mail.cc.join(", ")));
    }
    lines.push(format!("Subject: {}", mail.subject));
    lines.push(format!("Message-ID: <{}>", mail.message_id));
    for part in [&mail.text, &mail.html].into_iter().flatten() {
        lines.push(String::new());
        lines.extend(part.trim_end().lines().map(str::to_owned));
    }
    let lines: Vec<String> = lines.iter().map(|line| output::sanitize(line)).collect();
    lines.join("\n")
}

fn preview(args: &NotifyPreviewArgs) -> anyhow::Result<Ending> {
    let data = read_payload(&args.data)?;
    let data: serde_json::Value = serde_json::from_str(data.get())?;
    if !data.is_object() {
        return Err(
            Usage::new("--data: must be a JSON object, such as '{\"title\":\"Done\"}'").into()
        );
    }
    let templates = match &args.templates {
        Some(folder) => Templates::with_folder(folder)?,
        None => Templates::built_in(),
    };
    let rendered = templates.render(&args.template, &data)?;
    if args.json {
        output::json(&rendered)?;
        return Ok(Ending::Ok);
    }
    let subject = rendered.subject.map(|subject| format!("Subject: {subject}"));
    let parts = [subject, rendered.text, rendered.html].into_iter().flatten();
    let parts: Vec<String> = parts.map(|part| part.trim_end().to_owned()).collect();
    output::data(&parts.join("\n\n"))?;
    Ok(Ending::Ok)
}

fn instant(at: SystemTime) -> Option<Timestamp> {
    let millis = at.duration_since(UNIX_EPOCH).ok()?.as_millis();
    Some(Timestamp::from_millis(i64::try_from(millis).ok()?))
}
