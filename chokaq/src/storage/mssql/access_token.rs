//! Where access tokens come from: a callback of the program, asked for every new connection.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use crate::error::BoxError;

type Token = Pin<Box<dyn Future<Output = Result<String, BoxError>> + Send>>;

/// A source of Microsoft Entra ID access tokens for `https://database.windows.net/`.
///
/// It is asked once for every connection that is opened and should answer from its cache while the token is good;
/// open connections outlive the token they were opened with.
#[derive(Clone)]
pub struct AccessTokens(Arc<dyn Fn() -> Token + Send + Sync>);

impl AccessTokens {
    /// A source from a function.
    pub fn new<F, T, E>(source: F) -> Self
    where
        F: Fn() -> T + Send + Sync + 'static,
        T: Future<Output = Result<String, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self(Arc::new(move || {
            let token = source();
            Box::pin(async move { token.await.map_err(Into::into) })
        }))
    }

    pub(super) async fn next(&self) -> Result<String, BoxError> {
        (self.0)().await
    }
}

impl fmt::Debug for AccessTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessTokens(..)")
    }
}
