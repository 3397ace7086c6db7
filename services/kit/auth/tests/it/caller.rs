//! Context of a call that services forward.

use std::net::IpAddr;

use anyhow::Result;
use assay_auth::{Verifier, anonymous, anonymous_from, client_address};

use crate::world::{grant, issuer};

#[tokio::test]
async fn the_address_of_the_client_is_forwarded() -> Result<()> {
    let issuer = issuer()?;
    let caller = Verifier::of_keys(&issuer.jwks()?)?.verify(&issuer.issue(grant())?).await?;
    for address in ["192.0.2.7", "2001:db8::7"] {
        let address: IpAddr = address.parse()?;
        assert_eq!(client_address(&caller.clone().at(Some(address)).call(())), Some(address));
        assert_eq!(client_address(&anonymous_from(Some(address), ())), Some(address));
    }
    assert_eq!(client_address(&caller.call(())), None);
    assert_eq!(client_address(&anonymous(())), None);
    let mut request = anonymous(());
    request.metadata_mut().insert("x-client-address", "not an address".parse()?);
    assert_eq!(client_address(&request), None);
    Ok(())
}
