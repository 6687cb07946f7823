//! A worker over HTTP: `POST /run`, `POST /cancel`, `GET /health`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use loon_api::{ErrorCode, ErrorInfo};
use loon_kernel::{CancelRequest, Dispatch, Dispatcher as _, FromWorker, Settled};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::{Prompts, Token};
use crate::failure::Failure;
use crate::signals::{Asked, Signals};

/// Most bytes of a request.
const MAX_BODY: usize = 20 * 1024 * 1024;
/// How long the body of a request may take.
const BODY_TIME: Duration = Duration::from_secs(30);
/// Executions at a time. Each may start processes of its own.
const MAX_RUNS: usize = 16;
/// Events that may wait for a slow reader before the execution waits too.
const CAPACITY: usize = 64;
/// How long readers may take for the last lines once the process is asked to end.
const LAST_LINES: Duration = Duration::from_secs(1);

/// What all requests share.
#[derive(Clone)]
struct Shared {
    prompts: Arc<Prompts>,
    token: Option<Token>,
    places: Arc<Semaphore>,
}

/// Serves until a signal asks for an end. `told` hears the address. Gives the exit status.
pub(crate) async fn serve(
    address: SocketAddr,
    token: Option<Token>,
    prompts: Arc<Prompts>,
    told: impl FnOnce(SocketAddr) -> Result<(), Failure>,
) -> Result<u8, Failure> {
    let mut signals = Signals::listen()?;
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| Failure::usage(format!("Cannot listen on {address}: {error}")))?;
    told(listener.local_addr()?)?;
    let shared = Shared { prompts, token, places: Arc::new(Semaphore::new(MAX_RUNS)) };
    let router = Router::new()
        .route("/run", post(run))
        .route("/cancel", post(cancel))
        .layer(from_fn_with_state(shared.clone(), admit))
        .route("/health", get(health))
        .with_state(shared.clone());
    let closing = CancellationToken::new();
    let serving =
        axum::serve(listener, router).with_graceful_shutdown(closing.clone().cancelled_owned());
    let mut serving = std::pin::pin!(std::future::IntoFuture::into_future(serving));
    let asked = tokio::select! {
        served = &mut serving => {
            served?;
            return Ok(1);
        }
        asked = signals.next() => asked,
    };
    closing.cancel();
    shared.prompts.terminate().await;
    // The last lines are on their way; a reader that takes nothing is not waited for.
    let _ = tokio::time::timeout(LAST_LINES, serving).await;
    Ok(match asked {
        Asked::Interrupt => 130,
        Asked::Terminate => 143,
    })
}

/// Lets a request in that brings the token. Without a token only this machine can send requests, and
/// then a page in a browser must not be able to: it would name its own origin, or a name that it made
/// point here.
async fn admit(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let admitted = match &shared.token {
        Some(token) => {
            headers.get(header::AUTHORIZATION).is_some_and(|value| token.opens(value.as_bytes()))
        }
        None => !headers.contains_key(header::ORIGIN) && names_this_machine(headers),
    };
    if admitted {
        return next.run(request).await;
    }
    let message = match &shared.token {
        Some(_) => "The request lacks the worker's token.",
        None => "Only programs on this machine may send requests.",
    };
    let mut refusal = refuse(StatusCode::UNAUTHORIZED, ErrorCode::Auth, message);
    if let Ok(value) = "Bearer".parse() {
        refusal.headers_mut().insert(header::WWW_AUTHENTICATE, value);
    }
    refusal
}

fn names_this_machine(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    matches!(name, "127.0.0.1" | "localhost" | "[::1]")
}

async fn health(State(shared): State<Shared>) -> Response {
    let running = MAX_RUNS - shared.places.available_permits();
    answer(&json!({"status": "ok", "loon": env!("CARGO_PKG_VERSION"), "running": running}))
}

/// Runs one execution and streams its events, one a line, and at last how it settled. A reader that
/// leaves does not end it.
async fn run(State(shared): State<Shared>, request: Request) -> Response {
    let dispatch: Dispatch = match read(request).await {
        Ok(dispatch) => dispatch,
        Err(refusal) => return refusal,
    };
    let Ok(place) = Arc::clone(&shared.places).try_acquire_owned() else {
        let message = format!("The worker runs {MAX_RUNS} executions already.");
        return refuse(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::Overloaded, &message);
    };
    let (lines, arriving) = mpsc::channel(CAPACITY);
    tokio::spawn(work(Arc::clone(&shared.prompts), dispatch, place, lines));
    let stream = futures_util::stream::unfold(arriving, |mut arriving| async move {
        let line: Bytes = arriving.recv().await?;
        Some((Ok::<_, std::convert::Infallible>(line), arriving))
    });
    let headers = [(header::CONTENT_TYPE, "application/x-ndjson")];
    (headers, Body::from_stream(stream)).into_response()
}

/// Sees one execution to its rest.
async fn work(
    prompts: Arc<Prompts>,
    dispatch: Dispatch,
    _place: OwnedSemaphorePermit,
    lines: mpsc::Sender<Bytes>,
) {
    let (events, mut arriving) = mpsc::channel(1);
    let tell = async {
        while let Some(event) = arriving.recv().await {
            if lines.send(line(&FromWorker::Event(event))).await.is_err() {
                // The reader left: what comes is dropped, so that nothing waits for it.
                arriving.close();
            }
        }
    };
    let (settled, ()) = futures_util::future::join(prompts.dispatch(dispatch, events), tell).await;
    let settled = settled.unwrap_or_else(|error| Settled::Failed { error: error.info() });
    let _ = lines.send(line(&FromWorker::Settled(settled))).await;
}

/// A message with its line end.
fn line(message: &FromWorker) -> Bytes {
    // Every message can be written as JSON.
    let mut line = message.line().unwrap_or_default();
    line.push(b'\n');
    line.into()
}

async fn cancel(State(shared): State<Shared>, request: Request) -> Response {
    match read::<CancelRequest>(request).await {
        Ok(CancelRequest { execution_id, reason }) => {
            let cancelled = shared.prompts.cancel(execution_id, reason).await;
            answer(&json!({"cancelled": cancelled}))
        }
        Err(refusal) => refusal,
    }
}

/// Reads a body of JSON within its bounds.
async fn read<T: DeserializeOwned>(request: Request) -> Result<T, Response> {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("application/json")) {
        let message = "The body must be application/json.";
        return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorCode::Invalid, message));
    }
    let body = match tokio::time::timeout(BODY_TIME, to_bytes(request.into_body(), MAX_BODY)).await
    {
        Ok(Ok(body)) => body,
        Ok(Err(error)) => {
            let message = format!("The body cannot be read, or has over {MAX_BODY} bytes: {error}");
            return Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::Invalid, &message));
        }
        Err(_) => {
            let message = "The body did not come in time.";
            return Err(refuse(StatusCode::REQUEST_TIMEOUT, ErrorCode::Invalid, message));
        }
    };
    serde_json::from_slice(&body).map_err(|error| {
        let message = format!("The body does not fit: {error}");
        refuse(StatusCode::BAD_REQUEST, ErrorCode::Invalid, &message)
    })
}

fn refuse(status: StatusCode, code: ErrorCode, message: &str) -> Response {
    let mut response = answer(&json!({"error": ErrorInfo::new(code, message)}));
    *response.status_mut() = status;
    response
}

fn answer(value: &impl Serialize) -> Response {
    let body = serde_json::to_vec(value).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
