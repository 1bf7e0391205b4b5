//! SQLite URLs, and one storage per file and process.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use crate::{
    Error, Result,
    config::Settings,
    storage::{
        Storage,
        sqlite::{Location, SqliteOptions, SqliteStorage, Synchronous},
    },
};

static OPEN: Mutex<Option<HashMap<PathBuf, Weak<SqliteStorage>>>> = Mutex::new(None);

pub(super) async fn open(url: &str, settings: &Settings) -> Result<Arc<dyn Storage>> {
    let (location, options) = parse(url, settings)?;
    let opened = tokio::task::spawn_blocking(move || match location {
        Location::Memory => SqliteStorage::open(Location::Memory, options),
        Location::File(path) => open_file(path, options),
    });
    let storage = opened
        .await
        .map_err(|e| Error::permanent("opening the database failed", Some(e.into())))??;
    Ok(storage)
}

/// Two openings of one file at the same time wait for each other, so that there is never a second writer.
fn open_file(path: PathBuf, options: SqliteOptions) -> Result<Arc<SqliteStorage>> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let open = open.get_or_insert_default();
    let key = canonical(&path);
    if let Some(storage) = open.get(&key).and_then(Weak::upgrade) {
        return Ok(storage);
    }
    open.retain(|_, storage| storage.strong_count() > 0);
    let storage = SqliteStorage::open(Location::File(path), options)?;
    open.insert(key, Arc::downgrade(&storage));
    Ok(storage)
}

/// The same file by whatever name; the file itself may not exist yet.
fn canonical(path: &Path) -> PathBuf {
    if let Ok(whole) = path.canonicalize() {
        return whole;
    }
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new(".")).canonicalize();
    match (parent, path.file_name()) {
        (Ok(parent), Some(name)) => parent.join(name),
        _ => path.to_owned(),
    }
}

fn parse(url: &str, settings: &Settings) -> Result<(Location, SqliteOptions)> {
    let rest = url.strip_prefix("sqlite:").unwrap_or(url);
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path = path.strip_prefix("//").unwrap_or(path);
    let mut options =
        SqliteOptions { synchronous: settings.sqlite_synchronous, ..SqliteOptions::default() };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        options.synchronous = match pair {
            "synchronous=full" => Synchronous::Full,
            "synchronous=normal" => Synchronous::Normal,
            _ => {
                // Its value stays out of the message: it may be a key.
                let name = pair.split('=').next().unwrap_or_default();
                return Err(Error::config(format!(
                    "the SQLite URL has the option {name:?}: the only one is `synchronous=full` or `synchronous=normal`"
                )));
            }
        };
    }
    match path {
        "" => Err(Error::config(
            "the SQLite URL names no file: write `sqlite:jobs.db`, or `sqlite::memory:`",
        )),
        ":memory:" => Ok((Location::Memory, options)),
        path => Ok((Location::File(path.into()), options)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(url: &str) -> Location {
        parse(url, &Settings::default()).expect(url).0
    }

    #[test]
    fn paths_are_taken_as_they_are_written() {
        assert_eq!(location("sqlite:jobs.db"), Location::File("jobs.db".into()));
        assert_eq!(location("sqlite:/var/jobs.db"), Location::File("/var/jobs.db".into()));
        assert_eq!(location("sqlite:///var/jobs.db"), Location::File("/var/jobs.db".into()));
        assert_eq!(location("sqlite::memory:"), Location::Memory);
    }

    #[test]
    fn an_unknown_option_is_refused_by_name_without_its_value() {
        let url = "sqlite:a.db?key=secret";
        let error = parse(url, &Settings::default()).expect_err("unknown").to_string();
        assert!(error.contains("\"key\"") && !error.contains("secret"), "{error}");
    }
}
