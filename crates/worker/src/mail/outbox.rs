//! A folder that takes mails where there is no server: each as JSON, and as a message that mail
//! programs open. The newest are kept.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use duly_core::limits::OUTBOX_MAILS;
use duly_core::mail::Mailbox;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::message::message;
use super::{Mail, MailError};

/// The end of a file that holds a mail, and of the message beside it.
const MAIL: &str = "json";
const MESSAGE: &str = "eml";
/// The end of a file that is not complete.
const NEW: &str = "new";

/// A folder of mails.
#[derive(Debug)]
pub struct Outbox {
    folder: PathBuf,
    /// One writer at a time.
    writing: Mutex<()>,
}

/// A mail in the outbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredMail {
    /// Its name in the outbox.
    pub id: String,
    /// Its `Message-ID`, without the angle brackets.
    pub message_id: String,
    /// Who it is from.
    pub from: String,
    /// Whom it is for.
    pub to: Vec<String>,
    /// Who gets a copy.
    pub cc: Vec<String>,
    /// Its subject.
    pub subject: String,
    /// Its text.
    pub text: Option<String>,
    /// Its HTML.
    pub html: Option<String>,
}

impl Outbox {
    /// The outbox in a folder, which is made with the first mail.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, writing: Mutex::new(()) }
    }

    /// Stores a mail; one that is sent twice is stored once.
    pub(super) async fn store(&self, from: &Mailbox, mail: &Mail) -> Result<String, MailError> {
        let message = message(from, mail)?.formatted();
        let stored = StoredMail {
            id: mail.key.clone(),
            message_id: mail.message_id(from),
            from: from.to_string(),
            to: mail.to.iter().map(ToString::to_string).collect(),
            cc: mail.cc.iter().map(ToString::to_string).collect(),
            subject: mail.subject.clone(),
            text: mail.text.clone(),
            html: mail.html.clone(),
        };
        let done = {
            let _writing = self.writing.lock();
            write(&self.folder, &stored, &message)
        };
        done.map_err(|why| MailError::Outbox(format!("{}: {why}", self.folder.display())))?;
        Ok(format!("stored in the outbox; to see it: duly notify outbox {}", stored.id))
    }

    /// The mails and when they were stored, the newest first.
    pub fn read(&self) -> io::Result<Vec<(SystemTime, StoredMail)>> {
        let mut mails = Vec::new();
        for (at, path) in mails_in(&self.folder)? {
            // A file that is gone was the oldest, and another mail has come.
            let Ok(text) = fs::read(&path) else { continue };
            let mail = serde_json::from_slice(&text);
            mails.push((at, mail.map_err(|why| io::Error::other(format!("{path:?}: {why}")))?));
        }
        mails.reverse();
        Ok(mails)
    }
}

fn write(folder: &Path, mail: &StoredMail, message: &[u8]) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let path = |end: &str| folder.join(format!("{}.{end}", mail.id));
    fs::write(path(MESSAGE), message)?;
    fs::write(path(NEW), serde_json::to_vec(mail)?)?;
    fs::rename(path(NEW), path(MAIL))?;
    let mails = mails_in(folder)?;
    for (_, old) in &mails[..mails.len().saturating_sub(OUTBOX_MAILS)] {
        fs::remove_file(old)?;
        fs::remove_file(old.with_extension(MESSAGE))?;
    }
    Ok(())
}

/// The files of mails, the oldest first.
fn mails_in(folder: &Path) -> io::Result<Vec<(SystemTime, PathBuf)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == MAIL) {
            found.push((fs::metadata(&path)?.modified()?, path));
        }
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail(key: &str) -> Mail {
        Mail {
            key: key.to_owned(),
            to: vec!["Ada <ada@example.com>".parse().unwrap()],
            cc: Vec::new(),
            subject: format!("about {key}"),
            text: Some("words".to_owned()),
            html: None,
        }
    }

    async fn store(outbox: &Outbox, key: &str) {
        outbox.store(&"duly@localhost".parse().unwrap(), &mail(key)).await.unwrap();
    }

    #[tokio::test]
    async fn mails_are_read_as_they_were_stored() {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::new(folder.path().join("outbox"));
        assert!(outbox.read().unwrap().is_empty(), "there is no folder yet");
        store(&outbox, "a-1").await;
        store(&outbox, "b-1").await;
        store(&outbox, "b-1").await;
        let mails: Vec<StoredMail> = outbox.read().unwrap().into_iter().map(|(_, it)| it).collect();
        assert_eq!(mails.len(), 2, "{mails:?}");
        let first = mails.iter().find(|mail| mail.id == "a-1").unwrap();
        assert_eq!(first.to, ["Ada <ada@example.com>"]);
        assert_eq!(first.message_id, "a-1@localhost");
        let message = fs::read_to_string(folder.path().join("outbox/a-1.eml")).unwrap();
        assert!(message.contains("Subject: about a-1\r\n"), "{message}");
    }

    #[tokio::test]
    async fn the_oldest_mails_make_room() {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::new(folder.path().to_owned());
        for index in 0..OUTBOX_MAILS {
            fs::write(folder.path().join(format!("{index:04}.{MAIL}")), "{}").unwrap();
            fs::write(folder.path().join(format!("{index:04}.{MESSAGE}")), "").unwrap();
        }
        let oldest = folder.path().join(format!("0500.{MAIL}"));
        fs::File::open(&oldest).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        store(&outbox, "new").await;
        assert!(!oldest.exists() && !oldest.with_extension(MESSAGE).exists());
        assert_eq!(mails_in(folder.path()).unwrap().len(), OUTBOX_MAILS);
    }
}
