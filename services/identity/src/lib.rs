//! The identity service: customers, their users and user groups, permissions, and tokens.

mod account;
mod api_token;
mod audit;
mod config;
mod customer;
mod first_start;
mod invitation;
mod mail;
mod mail_sender;
mod membership;
mod password;
mod password_link;
mod reactions;
mod record;
mod revocation;
mod signing_key;
mod statement;
mod throttle;
mod token;
mod upkeep;
mod user;
mod user_group;
mod user_settings;
mod verify;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context;
use assay_auth::{Seal, Verifier, guard};
use assay_database::Database;
use assay_events::{Consumer, EVENT, EventType, Nats, RecordKind, Relay, Stream};
use assay_proto::{
    DESCRIPTORS,
    identity::{
        api_token_service_server::ApiTokenServiceServer, audit_service_server::AuditServiceServer,
        customer_service_server::CustomerServiceServer,
        statement_service_server::StatementServiceServer, token_service_server::TokenServiceServer,
        user_group_service_server::UserGroupServiceServer, user_service_server::UserServiceServer,
        user_settings_service_server::UserSettingsServiceServer,
    },
};
use assay_rpc::grpc;
use assay_runtime::Runtime;
use assay_work::{Work, watch};
use sqlx::migrate::Migrator;
use tokio::{
    net::TcpListener,
    sync::{Notify, oneshot},
};
use tonic::service::Routes;

use self::{
    api_token::ApiTokenService,
    audit::AuditService,
    customer::CustomerService,
    first_start::FirstStart,
    invitation::Invitations,
    mail::{MailNotifier, transport::Transport},
    mail_sender::Sender,
    password::Passwords,
    password_link::{Hosts, PasswordLinks},
    revocation::Revocations,
    signing_key::Keys,
    statement::StatementService,
    token::{PasswordLogin, TokenService},
    user::UserService,
    user_group::UserGroupService,
    user_settings::UserSettingsService,
};
pub use self::{
    config::{AuditConfig, Config, FirstStartConfig, LoginConfig, MailConfig},
    first_start::{FirstLogin, FirstSecret},
    signing_key::{reseal, rotate_keys},
    verify::{compare_members, customers, find_customers},
};

const DAY: Duration = Duration::from_hours(24);

/// The kinds of work that the service does in the background.
pub const WORK: &[Work] = &[EVENT, mail::MAIL, customer::purge::PURGE];

/// A started service.
#[derive(Debug)]
pub struct Started {
    /// The address of its gRPC server.
    pub address: SocketAddr,
    /// The first login, if this start creates an administrator without a configured password; fails
    /// otherwise. It must be shown once and never be logged.
    pub first_login: oneshot::Receiver<FirstLogin>,
}

/// Returns the migrations of the service's database.
pub fn migrations() -> Migrator {
    assay_events::migrations(&sqlx::migrate!())
}

/// Starts the service. It is ready when its database is migrated, the first customer exists, and
/// the keys and revocations are loaded.
pub async fn start(runtime: &Runtime, config: Config) -> anyhow::Result<Started> {
    let first_start = FirstStart::new(config.first_start)?;
    let transport = Transport::new(&config.mail)?;
    let verifier = Verifier::of_issuer();
    let keys = Keys::new(Seal::new(&config.seal)?, config.login.token_lifetime, verifier.clone());
    let passwords = Passwords::new()?;

    let database = Database::open(runtime, &config.database, migrations())?;
    let db = database.pool();
    let nats = Nats::connect(&config.nats, runtime.name()).await?;
    database.watch_reachability(runtime, nats.client());
    Relay::start(runtime, &database, &nats, Stream::of("identity"));
    let secrets =
        Consumer::new("identity", Stream::of("catalog")).only(EventType::SecretsSeen.noun());
    secrets.start(runtime, &database, &nats, reactions::Secrets);
    let executions =
        Consumer::new("identity", Stream::of("execution")).only(RecordKind::Execution.noun());
    executions.start(runtime, &database, &nats, reactions::Executions);
    let links = PasswordLinks {
        db: db.clone(),
        passwords: passwords.clone(),
        mails: MailNotifier::default(),
        hosts: Hosts {
            public: config.public.public_url,
            base_domain: config.login.base_domain.clone(),
        },
    };
    let first_login = first_start.spawn(runtime, &database, &links, &keys);
    keys.spawn(runtime, db);
    let revocations = Revocations::new(db, &nats, &verifier);
    revocations.spawn(runtime, &database);
    let has_console = config.console;
    Sender { db: db.clone(), transport, links: links.clone(), has_console }
        .start(runtime, &database);
    mail::age().spawn(runtime, &database);
    watch(runtime, &database, WORK);
    upkeep::spawn(runtime, &database, DAY * config.audit.audit_retention_days);
    let deletions = Arc::new(Notify::new());
    customer::purge::spawn(runtime, &database, deletions.clone());

    let tokens = TokenService {
        db: db.clone(),
        login: PasswordLogin {
            db: db.clone(),
            passwords,
            keys: keys.clone(),
            config: config.login,
        },
        keys,
        revocations,
    };
    let listener = TcpListener::bind(config.grpc_listen)
        .await
        .with_context(|| format!("cannot listen on {}", config.grpc_listen))?;
    let app = guard(services(tokens, links, deletions), verifier, database.shares());
    let address = grpc::serve(runtime, listener, app, DESCRIPTORS)?;
    Ok(Started { address, first_login })
}

fn services(tokens: TokenService, links: PasswordLinks, deletions: Arc<Notify>) -> Routes {
    let (db, revocations) = (&tokens.db, &tokens.revocations);
    let customers = CustomerService { db: db.clone(), revocations: revocations.clone(), deletions };
    let groups = UserGroupService { db: db.clone(), revocations: revocations.clone() };
    let users = UserService {
        db: db.clone(),
        revocations: revocations.clone(),
        mails: links.mails.clone(),
        links,
        invitations: Invitations::new(&tokens.login.config),
    };
    let api_tokens = ApiTokenService { db: db.clone(), revocations: revocations.clone() };
    let settings = UserSettingsService { db: db.clone() };
    let audit = AuditService { db: db.clone() };
    let statements = StatementService { db: db.clone() };
    Routes::new(CustomerServiceServer::new(customers))
        .add_service(UserGroupServiceServer::new(groups))
        .add_service(UserServiceServer::new(users))
        .add_service(UserSettingsServiceServer::new(settings))
        .add_service(ApiTokenServiceServer::new(api_tokens))
        .add_service(AuditServiceServer::new(audit))
        .add_service(StatementServiceServer::new(statements))
        .add_service(TokenServiceServer::new(tokens))
}
