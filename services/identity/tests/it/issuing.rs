//! Credentials and grants: a caller whose token was revoked creates none.

use std::collections::HashSet;

use anyhow::{Context, Result};
use assay_auth::Caller;
use assay_proto::{
    Needs, POLICY, Reading, Reference,
    identity::{
        AcceptMembershipRequest, CreateCustomerRequest, CreateUserGroupRequest, CreateUserRequest,
        CustomerInput, DeleteApiTokenRequest, DeleteCustomerRequest, DeleteUserApiTokenRequest,
        DeleteUserGroupRequest, DeleteUserRequest, UpdateCustomerRequest, UpdateUserGroupRequest,
        UpdateUserRequest, UpdateUserSettingsRequest, UserGroupInput, UserInput, UserSettingsInput,
    },
    issues,
};
use assay_testkit::{Broker, eventually};
use futures::future::join_all;
use tonic::{Code, Status};

use crate::{
    api_token,
    world::{ADMIN, Identity, PASSWORD, Settings, customer_input, reason},
};

const GRACE: &str = "grace@example.com";
const NEW: &str = "a password that is new";

/// Records that calls change. Each method has its own.
struct Records {
    customer: String,
    group: String,
    user: String,
    api_token: String,
    invitation: String,
}

async fn records(identity: &Identity, manager: &Caller, name: &str) -> Result<Records> {
    let visitor = identity.visitor(name).await?;
    let group = UserGroupInput {
        name: format!("Group {name}"),
        usage_permission: "Login".to_owned(),
        ..UserGroupInput::default()
    };
    let request = CreateUserGroupRequest { user_group: Some(group) };
    let group = identity.groups().create_user_group(manager.call(request)).await?.into_inner();
    let user = identity.user(manager, &format!("{name}@example.com"), "Viewers").await?;
    let api_token = api_token::create(identity, manager, "Read", None).await?;
    let invitation = identity.user(&visitor, GRACE, "Viewers").await?;
    Ok(Records {
        customer: visitor.customer.to_string(),
        group: group.id,
        user: user.id,
        api_token: api_token.id,
        invitation: invitation.id,
    })
}

/// Calls a method with a request that is valid, apart from the caller's token. Returns whether the
/// response is a credential, or `None` if this test does not know the method.
async fn call(
    identity: &Identity,
    caller: &Caller,
    method: &str,
    records: &Records,
) -> Option<Result<bool, Status>> {
    let Records { customer, group, user, api_token: token, invitation } = records;
    let id = || user.clone();
    let fields = |name: &str| vec![name.to_owned()];
    let done = match method {
        "Refine" => return Some(identity.refine(caller, customer).await.map(|_| true)),
        "CreateStreamToken" => {
            return Some(
                identity.tokens().create_stream_token(caller.call(())).await.map(|_| true),
            );
        }
        "CreateApiToken" => {
            return Some(api_token::create(identity, caller, "Read", None).await.map(|_| true));
        }
        "Logout" => identity.tokens().logout(caller.call(())).await,
        "DeleteApiToken" => {
            let request = DeleteApiTokenRequest { id: token.clone() };
            identity.api_tokens().delete_api_token(caller.call(request)).await
        }
        "DeleteUserApiToken" => {
            let user_id = caller.user.to_string();
            let request = DeleteUserApiTokenRequest { user_id, id: token.clone() };
            identity.api_tokens().delete_user_api_token(caller.call(request)).await
        }
        "CreateCustomer" => {
            let request = CreateCustomerRequest { customer: Some(customer_input("thief")) };
            identity.customers().create_customer(caller.call(request)).await.map(drop_body)
        }
        "UpdateCustomer" => {
            let changes = CustomerInput { archived: false, ..CustomerInput::default() };
            let (changes, fields) = (Some(changes), fields("Archived"));
            let request =
                UpdateCustomerRequest { id: customer.clone(), data_version: None, changes, fields };
            let archive = format!("update customer set archived = true where id = '{customer}'");
            sqlx::query(sqlx::AssertSqlSafe(archive)).execute(&identity.db).await.unwrap();
            identity.customers().update_customer(caller.call(request)).await.map(drop_body)
        }
        "DeleteCustomer" => {
            let request = DeleteCustomerRequest { id: customer.clone() };
            identity.customers().delete_customer(caller.call(request)).await
        }
        "CreateUser" => {
            let user = UserInput {
                email: "thief@example.com".to_owned(),
                display_name: "Thief".to_owned(),
                user_group: Some(Reference { id: group.clone() }),
            };
            let request = CreateUserRequest { user: Some(user) };
            identity.users().create_user(caller.call(request)).await.map(drop_body)
        }
        "UpdateUser" => {
            let user_group = Some(Reference { id: group.clone() });
            let changes = Some(UserInput { user_group, ..UserInput::default() });
            let fields = fields("UserGroup");
            let request = UpdateUserRequest { id: id(), data_version: None, changes, fields };
            identity.users().update_user(caller.call(request)).await.map(drop_body)
        }
        "DeleteUser" => {
            identity.users().delete_user(caller.call(DeleteUserRequest { id: id() })).await
        }
        "AcceptMembership" => {
            let request = AcceptMembershipRequest { id: invitation.clone() };
            identity.users().accept_membership(caller.call(request)).await
        }
        "CreateUserGroup" => {
            let name = "Thieves".to_owned();
            let usage_permission = "Login, UserManagement".to_owned();
            let group = UserGroupInput { name, usage_permission, ..UserGroupInput::default() };
            let request = CreateUserGroupRequest { user_group: Some(group) };
            identity.groups().create_user_group(caller.call(request)).await.map(drop_body)
        }
        "UpdateUserGroup" => {
            let usage_permission = "Login, UserManagement".to_owned();
            let changes = Some(UserGroupInput { usage_permission, ..UserGroupInput::default() });
            let (id, fields) = (group.clone(), fields("UsagePermission"));
            let request = UpdateUserGroupRequest { id, data_version: None, changes, fields };
            identity.groups().update_user_group(caller.call(request)).await.map(drop_body)
        }
        "DeleteUserGroup" => {
            let request = DeleteUserGroupRequest { id: group.clone() };
            identity.groups().delete_user_group(caller.call(request)).await
        }
        "UpdateUserSettings" => {
            let changes = Some(UserSettingsInput { mail_when_execution_ends: true });
            let fields = fields("MailWhenExecutionEnds");
            let request = UpdateUserSettingsRequest { data_version: None, changes, fields };
            identity.settings().update_user_settings(caller.call(request)).await.map(drop_body)
        }
        _ => return None,
    };
    Some(done.map(|_| false))
}

fn drop_body<T>(_: tonic::Response<T>) -> tonic::Response<()> {
    tonic::Response::new(())
}

/// All credentials, and all rows that give someone access.
async fn credentials(identity: &Identity) -> Result<HashSet<String>> {
    let rows: Vec<String> = sqlx::query_scalar(
        "select 'account ' || id || email || password_revision from account
         union all select 'customer ' || id from customer
                   where not archived and deleted_at is null
         union all select 'group ' || id || usage_permission from user_group
         union all select 'membership ' || concat(id, account_id, user_group_id, archived)
                   from membership
         union all select 'invitation ' || user_id || email from invitation
         union all select 'link ' || encode(token_hash, 'hex') from password_link
         union all select 'api token ' || id || usage_permission from api_token",
    )
    .fetch_all(&identity.db)
    .await?;
    Ok(rows.into_iter().collect())
}

/// Revokes the session of a caller as another replica does; this one has not received it yet.
async fn revoke_elsewhere(identity: &Identity, caller: &Caller) -> Result<()> {
    sqlx::query(
        "insert into revocation (user_id, session_id, issued_until)
         values ($1, $2, extract(epoch from clock_timestamp()) * 1000000)",
    )
    .bind(caller.user)
    .bind(caller.session.context("a session")?.id)
    .execute(&identity.db)
    .await?;
    Ok(())
}

#[tokio::test]
async fn methods_that_create_credentials_or_grants_refuse_a_revoked_token() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    identity.member(&admin, GRACE, "Administrators").await?;
    let mut issuing = 0;
    for (path, needs) in POLICY {
        let Some((service, method)) = path.trim_start_matches('/').split_once('/') else {
            panic!("{path}")
        };
        let is_public = matches!(needs, Needs::Nothing);
        if !service.starts_with("assay.identity.") || is_public || Reading::of(path).is_some() {
            continue;
        }
        let manager = identity.caller_of(GRACE).await?;
        let records = records(&identity, &manager, &method.to_lowercase()).await?;
        // The links of its invitations are credentials too.
        identity.no_mail_is_queued().await;
        let before = credentials(&identity).await?;
        revoke_elsewhere(&identity, &manager).await?;
        let result = call(&identity, &manager, method, &records).await;
        let result = result.unwrap_or_else(|| panic!("add a call of {path} to this test"));
        let created: Vec<_> = credentials(&identity).await?.difference(&before).cloned().collect();
        assert_eq!(created, [""; 0], "{path} has created them with a revoked token");
        if issues(path) {
            let code = result.map_err(|status| status.code());
            assert_eq!(code, Err(Code::Unauthenticated), "{path}");
            issuing += 1;
        } else {
            assert!(!result.is_ok_and(|issued| issued), "{path} lacks the option assay.issues");
        }
    }
    assert!(issuing >= 9, "{issuing}");
    Ok(())
}

/// Creates API tokens at two replicas in turn until both refuse; returns the secrets.
async fn steal(replicas: [&Identity; 2], stolen: &Caller) -> Vec<String> {
    let (mut secrets, mut refusals) = (Vec::new(), 0);
    for replica in replicas.iter().cycle() {
        match api_token::create(replica, stolen, "Read", None).await {
            Ok(token) => secrets.push(token.secret),
            Err(status) if status.code() == Code::Unauthenticated => refusals += 1,
            Err(status) if reason(&status) == "too_many_api_tokens" => {}
            // The thief waits until the limit of creations allows more.
            Err(status) if status.code() == Code::ResourceExhausted => {
                sqlx::query("delete from throttle").execute(&replica.db).await.unwrap();
            }
            Err(status) => panic!("{status}"),
        }
        if refusals > 20 {
            break;
        }
    }
    secrets
}

async fn evict_a_thief(nats_url: Option<&str>) -> Result<()> {
    let settings = Settings::new().await?.with_administrator();
    let settings = nats_url.map_or(settings.clone(), |url| settings.with_nats(url));
    let (first, second) = (Identity::start(&settings).await?, Identity::start(&settings).await?);
    for round in 0..3 {
        let password = if round == 0 { PASSWORD } else { NEW };
        let stolen = first.caller(&first.login(ADMIN, password).await?).await?;
        first.prepare_reset(ADMIN, "").await?;
        let link = first.token(round + 1).await?;
        let thieves = (0..4).map(|_| steal([&second, &first], &stolen));
        let owner = async {
            eventually("API tokens of the thief", async || {
                let count = sqlx::query_scalar("select count(*) from api_token");
                let count: i64 = count.fetch_one(&first.db).await.ok()?;
                (count > 8).then_some(())
            })
            .await;
            first.reset(&link, NEW).await
        };
        let (secrets, reset) = futures::join!(join_all(thieves), owner);
        reset?;
        let left: i64 =
            sqlx::query_scalar("select count(*) from api_token").fetch_one(&first.db).await?;
        assert_eq!(left, 0, "API tokens survive the reset in round {round}");
        for secret in secrets.concat().iter().rev().take(20) {
            for replica in [&first, &second] {
                assert!(api_token::exchange(replica, secret).await.is_err(), "round {round}");
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_password_reset_evicts_a_thief_who_creates_api_tokens_meanwhile() -> Result<()> {
    let mut broker = Broker::new().await;
    broker.start().await;
    evict_a_thief(Some(&broker.url())).await
}

#[tokio::test]
async fn a_password_reset_evicts_a_thief_without_nats() -> Result<()> {
    evict_a_thief(None).await
}
