//! Lists of IP networks in settings.

use std::{net::IpAddr, str::FromStr, sync::Arc};

use ipnet::IpNet;

/// A list of IP networks, empty by default.
#[derive(Clone, Debug, Default)]
pub struct Networks(Arc<[IpNet]>);

/// Parses addresses and networks that are separated by commas.
impl FromStr for Networks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let network = |name: &str| {
            let address = name.parse::<IpAddr>().map(IpNet::from);
            let network = address.or_else(|_| name.parse());
            network.map_err(|_| {
                format!("{name} is neither an IP address nor a network such as 10.0.0.0/8")
            })
        };
        names.map(network).collect::<Result<_, _>>().map(Self)
    }
}

impl Networks {
    pub fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_contained_if_one_network_contains_it() {
        let networks: Networks = "10.0.0.0/8, 2001:db8::1".parse().unwrap();
        for (address, is_in) in [
            ("10.9.9.9", true),
            ("::ffff:10.9.9.9", true),
            ("2001:db8::1", true),
            ("2001:db8::2", false),
            ("11.0.0.1", false),
        ] {
            assert_eq!(networks.contain(address.parse().unwrap()), is_in, "{address}");
        }
        assert!("".parse::<Networks>().unwrap().is_empty());
    }

    #[test]
    fn texts_that_are_not_networks_are_rejected() {
        for wrong in ["proxy.example", "10.0.0.0/33", "10.0.0.0/8;10.1.0.0/16"] {
            assert!(wrong.parse::<Networks>().is_err(), "{wrong}");
        }
    }
}
