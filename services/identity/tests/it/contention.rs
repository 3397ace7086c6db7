//! Tokens of users who are changed or deleted at the same time. A transaction that issues a token and one that revokes
//! tokens must not wait for each other: PostgreSQL would end one of them, so that its call fails, and only after a
//! second, in which no token is issued.

use anyhow::Result;
use assay_auth::{Caller, anonymous};
use assay_proto::identity::{
    DeleteUserRequest, ExchangeApiTokenRequest, UpdateUserRequest, UserInput,
};
use futures::future::join_all;
use tonic::{Code, Status};

use crate::{
    api_token,
    world::{ADMIN, Identity, PASSWORD},
};

const GRACE: &str = "grace@example.com";
const ROUNDS: usize = 30;

async fn rename(identity: &Identity, caller: &Caller, id: &str, name: &str) -> Result<(), Status> {
    let changes = UserInput { display_name: name.to_owned(), ..UserInput::default() };
    let request = UpdateUserRequest {
        id: id.to_owned(),
        data_version: None,
        changes: Some(changes),
        fields: vec!["DisplayName".to_owned()],
    };
    identity.users().update_user(caller.call(request)).await.map(drop)
}

async fn exchange(identity: &Identity, secret: &str) -> Result<(), Status> {
    let request = anonymous(ExchangeApiTokenRequest { secret: secret.to_owned() });
    identity.tokens().exchange_api_token(request).await.map(drop)
}

#[tokio::test]
async fn tokens_are_issued_to_a_user_who_is_renamed_meanwhile() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let member = identity.member(&admin, GRACE, "Testers").await?;
    let (id, customer) = (member.user.to_string(), member.customer.to_string());
    let renames = async {
        for round in 0..ROUNDS {
            rename(&identity, &admin, &id, &format!("Grace {round}")).await?;
        }
        Ok::<_, Status>(())
    };
    let refines = join_all((0..3).map(|_| async {
        for _ in 0..ROUNDS {
            identity.refine(&member, &customer).await?;
        }
        Ok::<_, Status>(())
    }));
    let logins = async {
        for _ in 0..ROUNDS / 3 {
            identity.login(GRACE, PASSWORD).await?;
        }
        Ok::<_, Status>(())
    };
    let (of_renames, of_refines, of_logins) = futures::join!(renames, refines, logins);
    of_renames?;
    of_logins?;
    of_refines.into_iter().collect::<Result<(), _>>()?;
    Ok(())
}

#[tokio::test]
async fn tokens_end_with_a_user_who_is_deleted_while_they_are_issued() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    for round in 0..4 {
        let email = format!("grace{round}@example.com");
        let member = identity.member(&admin, &email, "Testers").await?;
        let customer = member.customer.to_string();
        let mut secrets = Vec::new();
        for _ in 0..8 {
            secrets.push(api_token::create(&identity, &member, "Read", None).await?.secret);
        }
        let exchanges = || join_all(secrets.iter().map(|secret| exchange(&identity, secret)));
        let refines = join_all((0..8).map(|_| identity.refine(&member, &customer)));
        let logins = join_all((0..4).map(|_| identity.login(&email, PASSWORD)));
        let mut users = identity.users();
        let delete =
            users.delete_user(admin.call(DeleteUserRequest { id: member.user.to_string() }));
        let (done, of_exchanges, of_refines, of_logins) =
            futures::join!(delete, exchanges(), refines, logins);
        done?;
        let refused = of_exchanges.into_iter().filter_map(Result::err);
        let refused = refused.chain(of_refines.into_iter().filter_map(Result::err));
        for refused in refused.chain(of_logins.into_iter().filter_map(Result::err)) {
            assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
        }
        for late in exchanges().await {
            assert_eq!(late.unwrap_err().code(), Code::Unauthenticated);
        }
    }
    Ok(())
}
