//! SQL Server URLs, and one storage per database and process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use crate::{
    Result,
    config::Settings,
    pool::open::Credentials,
    storage::{
        MigrationStorage, Storage,
        mssql::{MssqlOptions, MssqlStorage},
    },
};

/// By the URL as it was given.
static OPEN: Mutex<Option<HashMap<String, Weak<MssqlStorage>>>> = Mutex::new(None);

pub(super) async fn open(
    url: &str,
    settings: &Settings,
    credentials: &Credentials,
) -> Result<Arc<dyn Storage>> {
    let storage = match held(url) {
        Some(storage) => storage,
        None => connect(url, credentials).await?,
    };
    if settings.auto_migrate {
        storage.migrate().await?;
    }
    Ok(storage)
}

fn held(url: &str) -> Option<Arc<MssqlStorage>> {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.as_ref()?.get(url)?.upgrade()
}

async fn connect(url: &str, credentials: &Credentials) -> Result<Arc<MssqlStorage>> {
    let mut options = MssqlOptions::parse(url)?;
    let shared = credentials.access_tokens.is_none();
    if let Some(tokens) = &credentials.access_tokens {
        options = options.with_access_tokens(tokens.clone());
    }
    options.check_login()?;
    let storage = MssqlStorage::open(options).await?;
    if !shared {
        // Two sources of tokens may be two logins.
        return Ok(storage);
    }
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let open = open.get_or_insert_default();
    // Another call may have been faster.
    if let Some(first) = open.get(url).and_then(Weak::upgrade) {
        return Ok(first);
    }
    open.retain(|_, storage| storage.strong_count() > 0);
    open.insert(url.to_owned(), Arc::downgrade(&storage));
    Ok(storage)
}
