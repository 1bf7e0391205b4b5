//! Opens a connection: the name's addresses, the login, and where the server sends it on to.

use std::{io, net::SocketAddr, time::Duration};

use socket2::{SockRef, TcpKeepalive};
use tiberius::{AuthMethod, Client, error::Error as DriverError};
use tokio::{
    net::{TcpStream, lookup_host},
    task::JoinSet,
};
use tokio_util::compat::TokioAsyncWriteCompatExt;

use crate::storage::mssql::{
    explain::Step,
    failure::Failure,
    numbers::History,
    options::{Authentication, MssqlOptions, Place},
    quiet::quietly,
    session::{Role, Session},
};

/// Azure's gateway sends a connection on to the node that has the database, an availability group's listener to a
/// replica. More than twice is a loop.
const MOST_REDIRECTIONS: usize = 2;

/// A name with several addresses, such as a listener's in several subnets, has one that answers: the next is tried
/// beside the ones before after this long.
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);

/// Opens a session within the connect limit.
pub(super) async fn open(
    options: &MssqlOptions,
    role: Role,
    history: History,
) -> Result<Session, Failure> {
    let mut step = Step::Resolving;
    let limit = options.connect_timeout;
    let opened = tokio::time::timeout(limit, steps(options, role, history, &mut step)).await;
    opened.unwrap_or_else(|_| Err(options.place().connect_timed_out(step, limit)))
}

async fn steps(
    options: &MssqlOptions,
    role: Role,
    history: History,
    step: &mut Step,
) -> Result<Session, Failure> {
    *step = Step::AskingForToken;
    let login = login(options).await?;
    let mut place = options.place();
    let mut redirections = 0;
    let driver = loop {
        let stream = reach(&place, step).await?;
        *step = Step::LoggingIn;
        let config = options.driver_config(&place.host, place.port, role, login.clone());
        match quietly(Box::pin(Client::connect(config, stream.compat_write()))).await {
            Ok(driver) => break driver,
            Err(DriverError::Routing { host, port }) if redirections < MOST_REDIRECTIONS => {
                tracing::debug!(from = %place, to = %format_args!("{host}:{port}"), "sent on by the server");
                redirections += 1;
                place = Place { host: without_instance(host), port, ..place };
            }
            Err(error) => return Err(place.not_logged_in(&error, history)),
        }
    };
    *step = Step::PreparingSession;
    Session::prepare(driver, options, role).await
}

/// Azure may name the instance too: the port says it already.
fn without_instance(host: String) -> String {
    host.split_once('\\').map(|(host, _)| host.to_owned()).unwrap_or(host)
}

async fn login(options: &MssqlOptions) -> Result<AuthMethod, Failure> {
    match &options.authentication {
        Some(Authentication::Login { user, password }) => {
            Ok(AuthMethod::sql_server(user, &password.0))
        }
        Some(Authentication::AccessTokens(tokens)) => {
            let token = tokens.next().await.map_err(|error| options.place().no_token(&error))?;
            Ok(AuthMethod::aad_token(token))
        }
        None => Err(Failure::permanent(format!(
            "{}: the URL names no user: write `mssql://user:password@...`, or give a source of access tokens",
            options.place()
        ))),
    }
}

async fn reach(place: &Place, step: &mut Step) -> Result<TcpStream, Failure> {
    *step = Step::Resolving;
    let addresses = lookup_host((&*place.host, place.port)).await;
    let addresses: Vec<_> = addresses.map_err(|error| place.not_resolved(&error))?.collect();
    *step = Step::Reaching;
    let stream = first_to_answer(addresses).await.map_err(|error| place.not_reached(&error))?;
    stream
        .set_nodelay(true)
        .and_then(|()| keep_alive(&stream))
        .map_err(|error| place.not_reached(&error))?;
    Ok(stream)
}

/// As Microsoft's drivers have it: a peer that vanished without a word is noticed within a minute.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    let times = TcpKeepalive::new()
        .with_time(Duration::from_secs(30))
        .with_interval(Duration::from_secs(1));
    SockRef::from(stream).set_tcp_keepalive(&times)
}

async fn first_to_answer(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut tries = JoinSet::new();
    let mut waiting = addresses.into_iter();
    let mut error = io::Error::new(io::ErrorKind::AddrNotAvailable, "the name has no address");
    loop {
        let next = waiting.next();
        let is_last = next.is_none();
        if let Some(address) = next {
            tries.spawn(TcpStream::connect(address));
        }
        let patience = if is_last { Duration::MAX } else { NEXT_ADDRESS_AFTER };
        match tokio::time::timeout(patience, tries.join_next()).await {
            Ok(Some(Ok(Ok(stream)))) => return Ok(stream),
            Ok(Some(Ok(Err(refused)))) => error = refused,
            Ok(Some(Err(stopped))) => error = io::Error::other(stopped),
            Ok(None) if is_last => return Err(error),
            Ok(None) | Err(_) => {}
        }
    }
}
