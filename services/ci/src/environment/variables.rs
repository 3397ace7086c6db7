//! Environment variables of a process, and texts that are composed of them.

/// Environment variables of a process. Empty ones count as unset.
pub(crate) struct Variables<'a> {
    environment: &'a dyn Fn(&str) -> Option<String>,
    /// Variables from files of the CI system. They have names that no variable has.
    more: Vec<(&'static str, String)>,
}

impl<'a> Variables<'a> {
    pub(crate) fn new(environment: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { environment, more: Vec::new() }
    }

    /// Returns the variables with further ones.
    pub(super) fn with(&self, more: Vec<(&'static str, String)>) -> Self {
        Self { environment: self.environment, more }
    }

    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let more = self.more.iter().find(|(known, _)| *known == name);
        let value = more.map(|(_, value)| value.clone()).or_else(|| (self.environment)(name));
        value.filter(|value| !value.is_empty())
    }

    /// Returns whether a variable is set, `NAME`, or has a value, `NAME=value`.
    pub(super) fn has(&self, marker: &str) -> bool {
        match marker.split_once('=') {
            Some((name, value)) => self.get(name).as_deref() == Some(value),
            None => self.get(marker).is_some(),
        }
    }

    /// Returns the first of several texts whose variables are all set. Each is the name of a variable, or
    /// has names in braces; `|` separates them.
    pub(super) fn first(&self, texts: &str) -> Option<String> {
        texts
            .split('|')
            .find_map(|text| if text.contains('{') { self.filled(text) } else { self.get(text) })
    }

    fn filled(&self, template: &str) -> Option<String> {
        let mut parts = template.split('{');
        let mut text = parts.next()?.to_owned();
        for part in parts {
            let (name, rest) = part.split_once('}')?;
            text.push_str(&self.get(name)?);
            text.push_str(rest);
        }
        Some(text)
    }
}
