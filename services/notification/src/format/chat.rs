//! Messages for chats.

use serde_json::{Value, json};

use super::{
    span::{Line, Span, markdown, text},
    summary::Summary,
};

/// Colours of messages: bad, good and neither.
const RED: u32 = 0x00c6_2828;
const GREEN: u32 = 0x002e_7d32;
const GREY: u32 = 0x0060_7d8b;

impl Summary {
    fn colour(&self) -> u32 {
        match self.is_good {
            Some(false) => RED,
            Some(true) => GREEN,
            None => GREY,
        }
    }

    /// The title and the lines.
    fn all(&self) -> impl Iterator<Item = (bool, &Line)> {
        let title = std::iter::once((true, &self.title));
        title.chain(self.lines.iter().map(|line| (false, line)))
    }
}

/// Returns a message of Slack. The elements of rich text are literal: Slack looks for neither markup,
/// mentions nor links in them. The text is for notifications.
/// <https://docs.slack.dev/reference/block-kit/blocks/rich-text-block>
pub(super) fn slack(summary: &Summary) -> Value {
    let mut elements = Vec::new();
    for (is_title, line) in summary.all() {
        for span in line {
            let style = json!({"bold": is_title});
            elements.push(match span {
                Span::Words(text) | Span::Name(text) if text.is_empty() => continue,
                Span::Words(text) | Span::Name(text) => {
                    json!({"type": "text", "text": text, "style": style})
                }
                Span::Link(text, url) => {
                    json!({"type": "link", "text": text, "url": url.as_str(), "style": style})
                }
            });
        }
        elements.push(json!({"type": "text", "text": "\n"}));
    }
    elements.pop();
    let title = text(&summary.title);
    let title = title.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let section = json!({"type": "rich_text_section", "elements": elements});
    json!({
        "text": title,
        "link_names": false,
        "unfurl_links": false,
        "unfurl_media": false,
        "blocks": [{"type": "rich_text", "elements": [section]}],
    })
}

/// Returns an Adaptive Card, as a workflow of Microsoft Teams posts it. Its runs of text are literal.
/// <https://adaptivecards.io/explorer/RichTextBlock.html>
pub(super) fn teams(summary: &Summary) -> Value {
    let blocks = summary.all().map(|(is_title, line)| {
        let runs: Vec<_> = line.iter().map(|span| run(span, is_title)).collect();
        let spacing = if is_title { "Default" } else { "Small" };
        json!({"type": "RichTextBlock", "inlines": runs, "spacing": spacing})
    });
    let body: Vec<_> = blocks.collect();
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": null,
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.4",
                "fallbackText": text(&summary.title),
                "msteams": {"width": "Full"},
                "body": body,
            },
        }],
    })
}

fn run(span: &Span, is_title: bool) -> Value {
    let weight = if is_title { "Bolder" } else { "Default" };
    let size = if is_title { "Medium" } else { "Default" };
    let mut run = json!({"type": "TextRun", "text": span.text(), "weight": weight, "size": size});
    if let Span::Link(_, url) = span {
        run["selectAction"] = json!({"type": "Action.OpenUrl", "url": url.as_str()});
    }
    run
}

/// Returns a message of Mattermost.
/// <https://developers.mattermost.com/integrate/reference/message-attachments/>
pub(super) fn mattermost(summary: &Summary) -> Value {
    let lines: Vec<_> = summary.lines.iter().map(|line| markdown(line)).collect();
    json!({
        "text": format!("**{}**", markdown(&summary.title)),
        "props": {"disable_group_highlight": true},
        "attachments": [{
            "fallback": text(&summary.title),
            "color": format!("#{:06x}", summary.colour()),
            // A line needs two spaces at its end, or else the next one continues it.
            "text": lines.join("  \n"),
        }],
    })
}

/// Returns a message of Discord, which mentions nobody.
/// <https://discord.com/developers/docs/resources/webhook#execute-webhook>
pub(super) fn discord(summary: &Summary) -> Value {
    let lines = summary.all().map(|(is_title, line)| {
        let line = markdown(line);
        if is_title { format!("**{line}**") } else { line }
    });
    let description: Vec<_> = lines.collect();
    json!({
        "allowed_mentions": {"parse": []},
        "embeds": [{"description": description.join("\n"), "color": summary.colour()}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::span::{link, name, words};

    const HOSTILE: &str = "<!channel> @everyone `x` **b** [a](https://evil.example) <@U1> &lt; \"";

    fn hostile() -> Summary {
        let url = "https://assay.example/executions/1";
        Summary {
            title: vec![name(HOSTILE), words(" failed")],
            lines: vec![
                vec![words("Branch: "), name(HOSTILE)],
                vec![link("Open in Assay", url).unwrap()],
            ],
            is_good: Some(false),
        }
    }

    /// Returns all values of a member, at any depth.
    fn all<'a>(value: &'a Value, member: &str) -> Vec<&'a Value> {
        let found = value.get(member).into_iter();
        let below: Vec<&Value> = match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(members) => members.values().collect(),
            _ => Vec::new(),
        };
        found.chain(below.into_iter().flat_map(|below| all(below, member))).collect()
    }

    #[test]
    fn slack_gets_literal_elements_and_an_escaped_text() {
        let message = slack(&hostile());
        assert_eq!(all(&message, "type").iter().filter(|kind| **kind == "mrkdwn").count(), 0);
        let urls = all(&message, "url");
        assert_eq!(urls, ["https://assay.example/executions/1"]);
        let text = message["text"].as_str().unwrap();
        assert!(text.starts_with("&lt;!channel&gt; ") && !text.contains('<'), "{text}");
        assert!(all(&message, "text").iter().any(|text| *text == HOSTILE));
    }

    #[test]
    fn teams_gets_an_adaptive_card_without_markdown() {
        let message = teams(&hostile());
        let card = &message["attachments"][0]["content"];
        assert_eq!((&card["type"], &card["version"]), (&json!("AdaptiveCard"), &json!("1.4")));
        assert!(all(card, "type").iter().all(|kind| *kind != "TextBlock" && *kind != "FactSet"));
        assert_eq!(all(card, "url"), ["https://assay.example/executions/1"]);
    }

    #[test]
    fn mattermost_and_discord_get_names_as_code_and_mention_nobody() {
        let (mattermost, discord) = (mattermost(&hostile()), discord(&hostile()));
        let code =
            "`<!channel> @everyone \u{2bc}x\u{2bc} **b** [a](https://evil.example) <@U1> &lt; \"`";
        assert_eq!(mattermost["text"], format!("**{code} failed**"));
        let lines = mattermost["attachments"][0]["text"].as_str().unwrap();
        let link = "[Open in Assay](https://assay.example/executions/1)";
        assert_eq!(lines, format!("Branch: {code}  \n{link}"));
        assert_eq!(discord["allowed_mentions"], json!({"parse": []}));
        assert_eq!(discord["content"], Value::Null);
        let description = discord["embeds"][0]["description"].as_str().unwrap();
        assert_eq!(description, format!("**{code} failed**\nBranch: {code}\n{link}"));
        assert_eq!(discord["embeds"][0]["color"], RED);
    }
}
