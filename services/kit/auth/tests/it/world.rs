//! A fake identity service that tests control.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::Result;
use assay_auth::{Grant, Issuer, SigningKey, Verifier};
use assay_proto::{
    CustomerId, DESCRIPTORS, Fault, Permissions, UserId,
    identity::{
        ExchangeApiTokenRequest, KeySet, ListRevocationsReply, ListRevocationsRequest,
        LoginRequest, RefineRequest, Revocation, StreamToken, Token,
        token_service_server::TokenService, token_service_server::TokenServiceServer,
    },
};
use assay_rpc::grpc;
use assay_runtime::{Runtime, install_crypto};
use jsonwebtoken::jwk::JwkSet;
use tokio::net::TcpListener;
use tonic::{Request, Response, Status, service::Routes};

pub(crate) struct Identity {
    pub(crate) issuer: Issuer,
    pub(crate) runtime: Runtime,
    state: Arc<State>,
    address: SocketAddr,
    listener: Mutex<Option<TcpListener>>,
}

#[derive(Default)]
struct State {
    jwks: Mutex<String>,
    revocations: Mutex<Vec<Revocation>>,
    api_tokens: Mutex<HashMap<String, String>>,
    key_reads: AtomicUsize,
    exchanges: AtomicUsize,
}

impl Identity {
    /// Starts an identity service.
    pub(crate) async fn start() -> Result<Self> {
        let identity = Self::unreachable().await?;
        identity.serve()?;
        Ok(identity)
    }

    /// Returns an identity service that does not accept calls yet.
    pub(crate) async fn unreachable() -> Result<Self> {
        install_crypto();
        let issuer = issuer()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let identity = Self {
            address: listener.local_addr()?,
            listener: Mutex::new(Some(listener)),
            runtime: Runtime::new("identity"),
            state: Arc::default(),
            issuer,
        };
        identity.publish(&[&identity.issuer])?;
        Ok(identity)
    }

    /// Accepts calls from now on.
    pub(crate) fn serve(&self) -> Result<()> {
        let Some(listener) = self.listener.lock().unwrap().take() else { return Ok(()) };
        let services = Routes::new(TokenServiceServer::new(Tokens(self.state.clone())));
        grpc::serve(&self.runtime, listener, services.into_axum_router(), DESCRIPTORS)?;
        Ok(())
    }

    /// Starts a program that verifies tokens; returns it with its verifier.
    pub(crate) fn program(&self) -> Result<(Runtime, Verifier)> {
        let runtime = Runtime::new("program");
        let verifier = Verifier::watch(&runtime, self.channel()?);
        Ok((runtime, verifier))
    }

    /// Starts a program like [`Identity::program`] and waits until it is ready.
    pub(crate) async fn ready_program(&self) -> Result<(Runtime, Verifier)> {
        let (runtime, verifier) = self.program()?;
        runtime.ready().await;
        Ok((runtime, verifier))
    }

    pub(crate) fn channel(&self) -> Result<grpc::Channel> {
        grpc::connect(&format!("http://{}", self.address))
    }

    /// Replaces the public keys.
    pub(crate) fn publish(&self, issuers: &[&Issuer]) -> Result<()> {
        let keys = issuers.iter().map(|issuer| issuer.public().clone()).collect();
        *self.state.jwks.lock().unwrap() = serde_json::to_string(&JwkSet { keys })?;
        Ok(())
    }

    /// Revokes tokens that were issued until now.
    pub(crate) fn revoke(&self, revocation: Revocation) -> Revocation {
        let mut revocations = self.state.revocations.lock().unwrap();
        let sequence = i64::try_from(revocations.len()).unwrap() + 1;
        revocations.push(Revocation { sequence, issued_until: now(), ..revocation });
        revocations.last().unwrap().clone()
    }

    /// Exchanges an API token for this token from now on.
    pub(crate) fn accept(&self, secret: &str, token: &str) {
        self.state.api_tokens.lock().unwrap().insert(secret.to_owned(), token.to_owned());
    }

    /// Rejects an API token from now on.
    pub(crate) fn reject(&self, secret: &str) {
        self.state.api_tokens.lock().unwrap().remove(secret);
    }

    pub(crate) fn key_reads(&self) -> usize {
        self.state.key_reads.load(Ordering::Acquire)
    }

    pub(crate) fn exchanges(&self) -> usize {
        self.state.exchanges.load(Ordering::Acquire)
    }
}

/// The gRPC service.
struct Tokens(Arc<State>);

#[tonic::async_trait]
impl TokenService for Tokens {
    async fn login(&self, _: Request<LoginRequest>) -> Result<Response<Token>, Status> {
        Err(Status::unimplemented("login"))
    }

    async fn refine(&self, _: Request<RefineRequest>) -> Result<Response<Token>, Status> {
        Err(Status::unimplemented("refine"))
    }

    async fn logout(&self, _: Request<()>) -> Result<Response<()>, Status> {
        Err(Status::unimplemented("logout"))
    }

    async fn create_stream_token(&self, _: Request<()>) -> Result<Response<StreamToken>, Status> {
        Err(Status::unimplemented("create_stream_token"))
    }

    async fn list_keys(&self, _: Request<()>) -> Result<Response<KeySet>, Status> {
        self.0.key_reads.fetch_add(1, Ordering::AcqRel);
        Ok(Response::new(KeySet { jwks: self.0.jwks.lock().unwrap().clone() }))
    }

    async fn exchange_api_token(
        &self,
        request: Request<ExchangeApiTokenRequest>,
    ) -> Result<Response<Token>, Status> {
        self.0.exchanges.fetch_add(1, Ordering::AcqRel);
        let token = self.0.api_tokens.lock().unwrap().get(&request.get_ref().secret).cloned();
        Ok(Response::new(Token { token: token.ok_or(Fault::Unauthenticated)? }))
    }

    /// Returns two revocations per page, so that tests read several pages.
    async fn list_revocations(
        &self,
        request: Request<ListRevocationsRequest>,
    ) -> Result<Response<ListRevocationsReply>, Status> {
        let after = usize::try_from(request.get_ref().after).unwrap();
        let revocations = self.0.revocations.lock().unwrap();
        let items = revocations.iter().skip(after).take(2).cloned().collect();
        Ok(Response::new(ListRevocationsReply { items, expired_until: 0 }))
    }
}

pub(crate) fn issuer() -> Result<Issuer> {
    install_crypto();
    Ok(Issuer::new(&SigningKey::generate()?, Duration::from_hours(1))?)
}

/// Returns the grant of a new user of a new customer.
pub(crate) fn grant() -> Grant<'static> {
    let permissions = Permissions::parse("permissions", "Login, Read").unwrap();
    Grant::new(CustomerId::new(), UserId::new(), "Ada Lovelace", permissions)
}

/// Returns the time in microseconds since 1970-01-01 UTC.
pub(crate) fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_micros()).unwrap()
}
