//! Invitations: the owner of a mailbox confirms each membership and each change of address.

use std::time::Instant;

use anyhow::Result;
use assay_auth::Caller;
use assay_proto::{
    CustomerId,
    identity::{AcceptMembershipRequest, UpdateUserRequest, User, UserInput},
};
use assay_testkit::eventually;
use tonic::{Code, Status};

use crate::{
    api_token,
    membership::memberships,
    world::{ADMIN, Identity, PASSWORD, link, readable, reason},
};

const NEW: &str = "a password that is new";

pub(crate) async fn rename(
    identity: &Identity,
    caller: &Caller,
    id: &str,
    email: &str,
) -> Result<User, Status> {
    let changes = UserInput { email: email.to_owned(), ..UserInput::default() };
    let request = UpdateUserRequest {
        id: id.to_owned(),
        data_version: None,
        changes: Some(changes),
        fields: vec!["Email".to_owned()],
    };
    Ok(identity.users().update_user(caller.call(request)).await?.into_inner())
}

pub(crate) async fn accept(identity: &Identity, caller: &Caller, id: &str) -> Result<(), Status> {
    let request = caller.call(AcceptMembershipRequest { id: id.to_owned() });
    identity.users().accept_membership(request).await.map(drop)
}

/// Waits for the only mail to this address; returns the token of its link.
pub(crate) async fn token_for(identity: &Identity, email: &str) -> Result<String> {
    let mail = eventually("a mail to the address", async || {
        let files = std::fs::read_dir(&identity.mail_dir).ok()?.flatten();
        let mails = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        mails.into_iter().find(|mail| mail.contains(&format!("To: {email}\r\n")))
    })
    .await;
    Ok(link(&mail)?.1)
}

/// Regression test: with this sequence a manager took over an account of another customer.
#[tokio::test]
async fn a_changed_address_gives_no_access_to_another_customer() -> Result<()> {
    let identity = Identity::new().await?;
    let (attacker, victim) =
        (identity.visitor("attacker").await?, identity.visitor("victim").await?);
    let user = identity.user(&attacker, "mallory@evil.example", "Administrators").await?;
    let token = token_for(&identity, "mallory@evil.example").await?;
    identity.reset(&token, PASSWORD).await?;
    let mallory = identity.caller_of("mallory@evil.example").await?;

    let renamed = rename(&identity, &mallory, &user.id, "ceo@victim.example").await?;
    assert_eq!(renamed.email, "mallory@evil.example", "the new address is not confirmed yet");
    identity.user(&victim, "ceo@victim.example", "Administrators").await?;
    let refused = identity.login("ceo@victim.example", PASSWORD).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    let victims = victim.customer.to_string();
    let refused = identity.refine(&mallory, &victims).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);

    let invitation = eventually("the invitation", async || {
        let files = std::fs::read_dir(&identity.mail_dir).ok()?.flatten();
        let mut mails = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        mails.find(|mail| readable(mail).contains("Customer victim has invited you"))
    })
    .await;
    assert!(invitation.contains("To: ceo@victim.example\r\n"), "{invitation}");
    identity.reset(&link(&invitation)?.1, NEW).await?;
    let ceo = identity.caller(&identity.login("ceo@victim.example", NEW).await?).await?;
    assert_eq!(ceo.customer, victim.customer);
    let refused = identity.login("ceo@victim.example", PASSWORD).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    let refused = identity.refine(&mallory, &victims).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert_eq!(memberships(&identity, &ceo).await?.len(), 2, "one is the attacker's invitation");
    let own = identity.refine(&ceo, &attacker.customer.to_string()).await.unwrap_err();
    assert_eq!(own.code(), Code::PermissionDenied, "the invitation is not accepted");
    Ok(())
}

#[tokio::test]
async fn a_confirmed_new_address_replaces_the_old_one_and_revokes_its_sessions() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let member = identity.member(&admin, "grace@example.com", "Testers").await?;
    let secret = api_token::create(&identity, &member, "Read", None).await?.secret;
    let machine = api_token::exchange(&identity, &secret).await?;
    identity.mails(1).await;
    identity.prepare_reset("grace@example.com", "").await?;
    let reset = identity.token(2).await?;

    let id = member.user.to_string();
    assert_eq!(
        rename(&identity, &admin, &id, "hopper@example.com").await?.email,
        "grace@example.com"
    );
    let mails = identity.mails(4).await;
    let notice = mails.iter().find(|mail| readable(mail).contains("change the email address"));
    assert!(notice.expect("a notice").contains("To: grace@example.com\r\n"));
    let invitation = mails.iter().find(|mail| mail.contains("To: hopper@example.com\r\n"));
    let token = link(invitation.expect("an invitation"))?.1;
    assert!(identity.accepts(&member).await);
    identity.caller_of("grace@example.com").await?;

    identity.reset(&token, NEW).await?;
    eventually("the session to be revoked", async || {
        (!identity.accepts(&member).await && !identity.accepts(&machine).await).then_some(())
    })
    .await;
    api_token::exchange(&identity, &secret).await.unwrap_err();
    for (email, password) in [
        ("grace@example.com", PASSWORD),
        ("grace@example.com", NEW),
        ("hopper@example.com", PASSWORD),
    ] {
        let refused = identity.login(email, password).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated, "{email}");
    }
    identity.reset(&reset, NEW).await.unwrap_err();
    let hopper = identity.caller(&identity.login("hopper@example.com", NEW).await?).await?;
    assert_eq!(hopper.user, member.user, "the user id is unchanged");
    Ok(())
}

#[tokio::test]
async fn an_existing_account_joins_a_customer_when_its_owner_accepts() -> Result<()> {
    let identity = Identity::new().await?;
    let (first, second) = (identity.visitor("first").await?, identity.visitor("second").await?);
    let member = identity.member(&first, "grace@example.com", "Testers").await?;
    let user = identity.user(&second, "GRACE@example.com", "Viewers").await?;
    assert_eq!(user.email, "GRACE@example.com", "the address is shown as the manager wrote it");
    let there = second.customer.to_string();
    let refused = identity.refine(&member, &there).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);

    let [own, pending] = &memberships(&identity, &member).await?[..] else {
        panic!("expected two memberships")
    };
    assert_eq!((pending.id.as_str(), pending.pending), (user.id.as_str(), true));
    assert_eq!((own.id.as_str(), own.pending), (member.user.to_string().as_str(), false));
    let stranger = identity.member(&first, "alan@example.com", "Testers").await?;
    let refused = accept(&identity, &stranger, &user.id).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    accept(&identity, &member, &user.id).await?;
    let again = accept(&identity, &member, &user.id).await.unwrap_err();
    assert_eq!(again.code(), Code::NotFound);

    let refined = identity.caller(&identity.refine(&member, &there).await?).await?;
    assert_eq!(refined.user.to_string(), user.id);
    assert_ne!(refined.user, member.user);
    let request = UpdateUserRequest {
        id: user.id,
        data_version: None,
        changes: Some(UserInput { display_name: "Miss Hopper".to_owned(), ..UserInput::default() }),
        fields: vec!["DisplayName".to_owned()],
    };
    identity.users().update_user(second.call(request)).await?;
    let here = identity.users().get_current_user(member.call(())).await?.into_inner();
    assert_eq!(
        (here.display_name.as_str(), here.email.as_str()),
        ("Grace Hopper", "grace@example.com"),
        "each customer has separate data of the user"
    );
    identity.login("grace@example.com", PASSWORD).await?;
    Ok(())
}

#[tokio::test]
async fn accepting_by_link_keeps_the_password() -> Result<()> {
    let identity = Identity::new().await?;
    let (first, second) = (identity.visitor("first").await?, identity.visitor("second").await?);
    let member = identity.member(&first, "grace@example.com", "Testers").await?;
    identity.mails(1).await;
    identity.user(&second, "grace@example.com", "Viewers").await?;
    let token = identity.token(2).await?;
    let refused = identity.reset(&token, NEW).await.unwrap_err();
    assert_eq!(reason(&refused), "account_exists", "an invitation sets the first password only");
    identity.login("grace@example.com", PASSWORD).await?;
    identity.accept(&token).await?;
    let again = identity.accept(&token).await.unwrap_err();
    assert_eq!(reason(&again), "invalid_reset_token");
    assert!(identity.accepts(&member).await, "the session is still valid");
    identity.refine(&member, &second.customer.to_string()).await?;

    identity.user(&second, "new@example.com", "Viewers").await?;
    let token = identity.token(3).await?;
    let refused = identity.accept(&token).await.unwrap_err();
    assert_eq!(reason(&refused), "password_needed");
    identity.reset(&token, NEW).await?;
    identity.login("new@example.com", NEW).await?;
    Ok(())
}

#[tokio::test]
async fn accepting_an_invitation_leaves_others_pending() -> Result<()> {
    let identity = Identity::new().await?;
    let (first, second) = (identity.visitor("first").await?, identity.visitor("second").await?);
    identity.user(&first, "grace@example.com", "Testers").await?;
    let token = identity.token(1).await?;
    let other = identity.user(&second, "grace@example.com", "Testers").await?;
    identity.mails(2).await;
    identity.reset(&token, PASSWORD).await?;
    let grace = identity.caller_of("grace@example.com").await?;
    assert_eq!(grace.customer, first.customer);
    let pending: Vec<_> =
        memberships(&identity, &grace).await?.into_iter().filter(|one| one.pending).collect();
    assert_eq!(pending.iter().map(|one| &one.id).collect::<Vec<_>>(), [&other.id]);
    let refused = identity.refine(&grace, &second.customer.to_string()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    Ok(())
}

#[tokio::test]
async fn inviting_an_address_does_not_reveal_whether_it_has_an_account() -> Result<()> {
    let identity = Identity::new().await?;
    let (home, prober) = (identity.visitor("home").await?, identity.visitor("prober").await?);
    for number in 0..15 {
        identity.member(&home, &format!("known{number}@example.com"), "Testers").await?;
    }
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for number in 0..15 {
        for (times, kind) in [(&mut known, "known"), (&mut unknown, "other")] {
            let email = format!("{kind}{number}@example.com");
            let start = Instant::now();
            let user = identity.user(&prober, &email, "Testers").await?;
            times.push(start.elapsed());
            let id = user.id.parse::<uuid::Uuid>()?;
            let made_at = id.get_timestamp().expect("a time").to_unix().0;
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
            assert!(now - made_at < 60, "the id is as new as the membership");
            let blank = User { id: String::new(), email: String::new(), ..user };
            assert_eq!((blank.last_login, blank.data_version.as_str()), (None, "1"));
            let again = identity.user(&prober, &email, "Testers").await.unwrap_err();
            assert_eq!(again.downcast::<Status>()?.code(), Code::AlreadyExists);
        }
    }
    known.sort_unstable();
    unknown.sort_unstable();
    let ratio = known[7].as_secs_f64() / unknown[7].as_secs_f64();
    assert!((0.4..2.5).contains(&ratio), "{ratio}");

    // Changing the address of the prober's user to it reveals nothing either.
    let own = identity.member(&prober, "own@example.com", "Testers").await?;
    let own = own.user.to_string();
    for email in [ADMIN, "nobody@example.com"] {
        let renamed = rename(&identity, &prober, &own, email).await?;
        assert_eq!(renamed.email, "own@example.com");
    }
    for email in ["known0@example.com", "other0@example.com"] {
        let refused = rename(&identity, &prober, &own, email).await.unwrap_err();
        assert_eq!(refused.code(), Code::AlreadyExists, "the prober has invited both addresses");
    }
    Ok(())
}

#[tokio::test]
async fn a_customer_cannot_change_an_address_that_another_customer_uses() -> Result<()> {
    let identity = Identity::new().await?;
    let (first, second) = (identity.visitor("first").await?, identity.visitor("second").await?);
    let member = identity.member(&first, "grace@example.com", "Testers").await?;
    let id = member.user.to_string();
    identity.user(&second, "grace@example.com", "Testers").await?;
    rename(&identity, &first, &id, "pending@example.com").await?;
    identity.member(&second, "alan@example.com", "Testers").await?;
    let both = identity.member(&first, "alan@example.com", "Testers").await?;
    let refused =
        rename(&identity, &first, &both.user.to_string(), "turing@example.com").await.unwrap_err();
    assert_eq!(reason(&refused), "email_of_other_customers");
    let duplicate = rename(&identity, &first, &id, "alan@example.com").await.unwrap_err();
    assert_eq!(
        duplicate.code(),
        Code::AlreadyExists,
        "the address of another user of the customer"
    );
    Ok(())
}

#[tokio::test]
async fn correcting_an_invited_address_invalidates_the_first_link() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let user = identity.user(&admin, "grcae@example.com", "Testers").await?;
    let wrong = identity.token(1).await?;
    let corrected = rename(&identity, &admin, &user.id, "grace@example.com").await?;
    assert_eq!(corrected.email, "grace@example.com");
    let right = identity.token(2).await?;
    let refused = identity.reset(&wrong, NEW).await.unwrap_err();
    assert_eq!(reason(&refused), "invalid_reset_token");
    identity.reset(&right, NEW).await?;
    let grace = identity.caller(&identity.login("grace@example.com", NEW).await?).await?;
    assert_eq!(grace.user.to_string(), user.id);
    assert_ne!(grace.customer, CustomerId::new());
    Ok(())
}
