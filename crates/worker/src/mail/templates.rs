//! Templates of mails: the built-in ones, and those of a folder, which replace built-in ones of the
//! same name. A template `welcome` has the files `welcome.subject`, `welcome.txt` and `welcome.html`,
//! or some of them. Values are escaped in HTML; a value that is missing fails the template.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use duly_core::limits::{MAIL_BODY_BYTES, MAIL_TEMPLATE_FUEL};
use duly_core::mail::check_subject;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};

use crate::error_chain::chain;

/// A part of a template, by the end of its file's name.
const PARTS: [&str; 3] = ["subject", "txt", "html"];

const BUILT_IN: [(&str, &str); 6] = [
    ("notice.subject", include_str!("../../templates/notice.subject")),
    ("notice.txt", include_str!("../../templates/notice.txt")),
    ("notice.html", include_str!("../../templates/notice.html")),
    ("welcome.subject", include_str!("../../templates/welcome.subject")),
    ("welcome.txt", include_str!("../../templates/welcome.txt")),
    ("welcome.html", include_str!("../../templates/welcome.html")),
];

/// The templates that a mail can name.
#[derive(Debug)]
pub struct Templates {
    environment: Environment<'static>,
    files: BTreeSet<String>,
}

/// Why a folder of templates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadTemplates {
    /// A file or the folder cannot be read.
    #[error("{path}: cannot be read: {why}", path = path.display())]
    Unreadable {
        /// Which one.
        path: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// A file holds no template.
    #[error("{path}: {why}", path = path.display())]
    Invalid {
        /// Which one.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// Why a template cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// There is no such template.
    #[error("there is no template `{name}`; there are {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// It does not fit the data.
    #[error("{file}: {why}")]
    Failed {
        /// The part of the template.
        file: String,
        /// What is wrong.
        why: String,
    },
}

/// A rendered template.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Rendered {
    /// The subject, on one line.
    pub subject: Option<String>,
    /// The text.
    pub text: Option<String>,
    /// The HTML.
    pub html: Option<String>,
}

impl Templates {
    /// The built-in templates.
    pub fn built_in() -> Self {
        let sources = BUILT_IN.map(|(file, source)| (file.to_owned(), Cow::from(source)));
        Self::new(sources.into()).expect("built-in templates can be read")
    }

    /// The built-in templates and those of a folder. Other files of the folder are left alone.
    pub fn with_folder(folder: &Path) -> Result<Self, BadTemplates> {
        let own = read_folder(folder)?;
        let is_own = |name: &str| own.keys().any(|file| name_of(file) == Some(name));
        let mut sources = own.clone();
        for (file, source) in BUILT_IN {
            // All files of a template go together: half of one would fit no data.
            if !name_of(file).is_some_and(is_own) {
                sources.insert(file.to_owned(), Cow::from(source));
            }
        }
        Self::new(sources)
            .map_err(|(file, why)| BadTemplates::Invalid { path: folder.join(file), why })
    }

    fn new(sources: BTreeMap<String, Cow<'static, str>>) -> Result<Self, (String, String)> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
        environment.set_fuel(Some(MAIL_TEMPLATE_FUEL));
        environment.set_auto_escape_callback(|file| {
            if file.ends_with(".html") { AutoEscape::Html } else { AutoEscape::None }
        });
        let files = sources.keys().cloned().collect();
        for (file, source) in sources {
            let added = environment.add_template_owned(file.clone(), source.into_owned());
            added.map_err(|error| (file, chain(&error)))?;
        }
        Ok(Self { environment, files })
    }

    /// The names of the templates.
    pub fn names(&self) -> Vec<String> {
        let names: BTreeSet<&str> = self.files.iter().filter_map(|file| name_of(file)).collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// Renders a template with this data.
    pub fn render(&self, name: &str, data: &serde_json::Value) -> Result<Rendered, TemplateError> {
        let data = Value::from(Serde(data));
        let part = |part: &str| self.render_part(&format!("{name}.{part}"), &data);
        let rendered =
            Rendered { subject: part("subject")?, text: part("txt")?, html: part("html")? };
        if rendered == Rendered::default() {
            return Err(TemplateError::Unknown { name: name.to_owned(), known: self.names() });
        }
        let Some(subject) = &rendered.subject else { return Ok(rendered) };
        let subject = subject.trim().to_owned();
        check_subject(&subject).map_err(|why| TemplateError::Failed {
            file: format!("{name}.subject"),
            why: format!("the subject {why}"),
        })?;
        Ok(Rendered { subject: Some(subject), ..rendered })
    }

    fn render_part(&self, file: &str, data: &Value) -> Result<Option<String>, TemplateError> {
        if !self.files.contains(file) {
            return Ok(None);
        }
        let failed = |why: String| TemplateError::Failed { file: file.to_owned(), why };
        let template = self.environment.get_template(file).map_err(|e| failed(chain(&e)))?;
        let mut text = Bounded(Vec::new());
        let done = template.render_captured_to(data.clone(), &mut text);
        done.map_err(|error| failed(chain(&error)))?;
        Ok(Some(String::from_utf8(text.0).map_err(|error| failed(chain(&error)))?))
    }
}

/// Takes at most [`MAIL_BODY_BYTES`].
struct Bounded(Vec<u8>);

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > MAIL_BODY_BYTES {
            let why = format!("it becomes larger than {MAIL_BODY_BYTES} bytes");
            return Err(std::io::Error::other(why));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The name of the template that a file is a part of.
fn name_of(file: &str) -> Option<&str> {
    let (name, part) = file.rsplit_once('.')?;
    (!name.is_empty() && PARTS.contains(&part)).then_some(name)
}

fn read_folder(folder: &Path) -> Result<BTreeMap<String, Cow<'static, str>>, BadTemplates> {
    let unreadable = |path: &Path, why| BadTemplates::Unreadable { path: path.to_owned(), why };
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(|why| unreadable(folder, why))? {
        let path = entry.map_err(|why| unreadable(folder, why))?.path();
        let Some(file) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if name_of(file).is_none() {
            continue;
        }
        let source = std::fs::read_to_string(&path).map_err(|why| unreadable(&path, why))?;
        found.insert(file.to_owned(), Cow::from(source));
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
