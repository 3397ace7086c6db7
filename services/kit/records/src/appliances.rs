//! Appliances: the target groups that the environments of a customer may name, and its engines may serve.

use assay_proto::Fault;

/// Returns the target groups of a text, which separates them by commas.
pub fn appliances(text: &str) -> Vec<String> {
    let mut groups: Vec<String> = Vec::new();
    for group in text.split(',').map(str::trim).filter(|group| !group.is_empty()) {
        if !groups.iter().any(|known| known == group) {
            groups.push(group.to_owned());
        }
    }
    groups
}

/// Fails if a target group is not among the appliances. Without any, all target groups are. No target group
/// always is.
pub fn check_target_group(appliances: &[String], group: &str) -> Result<(), Fault> {
    if appliances.is_empty() || group.is_empty() || appliances.iter().any(|known| known == group) {
        return Ok(());
    }
    let groups = appliances.join(", ");
    let problem = format!(
        "must be one of the Appliances of the customer: {groups}; ask the operator for others"
    );
    Err(Fault::invalid("TargetGroup", problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appliances_are_separated_by_commas() {
        assert_eq!(appliances(" linux, windows ,,linux,"), ["linux", "windows"]);
        assert_eq!(appliances(" , "), [""; 0]);
    }

    #[test]
    fn only_appliances_are_target_groups_unless_there_are_none() {
        let some = appliances("linux, windows");
        for (appliances, group, is_valid) in [
            (&some, "linux", true),
            (&some, "", true),
            (&some, "mac", false),
            (&some, "Linux", false),
            (&Vec::new(), "mac", true),
        ] {
            assert_eq!(check_target_group(appliances, group).is_ok(), is_valid, "{group}");
        }
    }
}
