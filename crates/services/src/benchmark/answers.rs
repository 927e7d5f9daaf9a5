//! Where answers come from, and each once it has been asked for.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::generate::generate;
use super::{Form, QUERY_COUNT};
use crate::Error;
use crate::server::Document;

/// Largest file that is served: NAM's huge class ends at 50 MB.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// The answers of all queries in all forms, each made when first asked for and then kept.
#[derive(Debug)]
pub struct Answers {
    source: Source,
    /// By form and number.
    documents: Vec<OnceLock<Document>>,
}

#[derive(Debug)]
enum Source {
    Files(PathBuf),
    Generated(u64),
}

impl Answers {
    /// The files `qNN.FORM.xml` of a directory, such as `q03.soap.xml`; not all have to be there.
    ///
    /// # Errors
    /// [`Error::Caller`] when there is none or one is too large.
    pub fn of_files(directory: &Path) -> Result<Self, Error> {
        let mut found = 0;
        for form in Form::ALL {
            for number in 1..=QUERY_COUNT {
                let path = path(directory, form, number);
                let Ok(metadata) = fs::metadata(&path) else { continue };
                found += 1;
                if metadata.len() > MAX_FILE_BYTES {
                    let (path, bytes) = (path.display(), metadata.len());
                    let line = format!(
                        "{path} has {bytes} bytes, over the limit of {MAX_FILE_BYTES}; leave it out"
                    );
                    return Err(Error::Caller(line));
                }
            }
        }
        if found == 0 {
            let line = format!(
                "no answers in {}; 'interop/tpch-files DIR' fills a directory with q01.soap.xml \
                 and the like",
                directory.display()
            );
            return Err(Error::Caller(line));
        }
        Ok(Self::new(Source::Files(directory.to_owned())))
    }

    /// Tables of chance, as many rows and the same kinds of columns as TPC-H's answers at scale 1.
    #[must_use]
    pub fn generated(seed: u64) -> Self {
        Self::new(Source::Generated(seed))
    }

    fn new(source: Source) -> Self {
        let documents = (0..Form::ALL.len() * QUERY_COUNT).map(|_| OnceLock::new()).collect();
        Self { source, documents }
    }

    /// The answer of query `number` (from 1 to 22).
    ///
    /// # Errors
    /// A line: there is no such query, or its file is not there or cannot be read.
    pub fn get(&self, form: Form, number: usize) -> Result<&Document, String> {
        let none = || format!("no query {number}; the numbers are 1 to {QUERY_COUNT}");
        let at = number.checked_sub(1).filter(|at| *at < QUERY_COUNT).ok_or_else(none)?;
        let document = self.documents.get(form as usize * QUERY_COUNT + at).ok_or_else(none)?;
        if let Some(made) = document.get() {
            return Ok(made);
        }
        let content = match &self.source {
            Source::Generated(seed) => generate(*seed, form, number).into_bytes(),
            Source::Files(directory) => {
                let read = fs::read(path(directory, form, number));
                let name = file_name(form, number);
                read.map_err(|error| format!("no answer of query {number}: {name}: {error}"))?
            }
        };
        Ok(document.get_or_init(|| Document::new(content)))
    }
}

fn path(directory: &Path, form: Form, number: usize) -> PathBuf {
    directory.join(file_name(form, number))
}

fn file_name(form: Form, number: usize) -> String {
    format!("q{number:02}.{}.xml", form.name())
}
