use wasmtime::Result;

use crate::bindings::packhouse::format::host::Host;
use crate::error::CallError;
use crate::state::host::{LineOutcome, LogAndClock};
use crate::state::{HostState, Phase};

const MAX_LINE_BYTES: usize = 8 << 10;

impl Host for HostState {
    fn log(&mut self, level: String, message: String, fields: Vec<(String, String)>) -> Result<()> {
        // The call ends here. The error includes the guest's message, so that the text of a panic
        // reaches the log.
        if let Err(CallError::Trap(refused)) = self.reach(Phase::Serve, "host.log") {
            let text = cut(&message, MAX_LINE_BYTES);
            return Err(CallError::Trap(format!("{refused}: {text}")).into());
        }
        match self.host.line() {
            LineOutcome::Written => {}
            LineOutcome::FirstCut => {
                let most = LogAndClock::MAX_LINES;
                tracing::warn!(plugin = %self.plugin, "a plugin wrote more than {most} log lines; further \
                    ones are dropped");
                return Ok(());
            }
            LineOutcome::Cut => return Ok(()),
        }
        let message = cut(&message, MAX_LINE_BYTES);
        let fields = render(&fields, MAX_LINE_BYTES.saturating_sub(message.len()));
        let plugin: &str = &self.plugin;
        let request_id = &*self.head.request_id;
        // tracing's levels are part of the call site, so each level has its own.
        match level.as_str() {
            "error" => tracing::error!(target: "packhouse::plugin", plugin, request_id, fields, "{message}"),
            "warn" => tracing::warn!(target: "packhouse::plugin", plugin, request_id, fields, "{message}"),
            "debug" => tracing::debug!(target: "packhouse::plugin", plugin, request_id, fields, "{message}"),
            "trace" => tracing::trace!(target: "packhouse::plugin", plugin, request_id, fields, "{message}"),
            _ => tracing::info!(target: "packhouse::plugin", plugin, request_id, fields, "{message}"),
        }
        Ok(())
    }

    fn now(&mut self) -> Result<u64> {
        self.reach(Phase::Serve, "host.now")?;
        self.uncacheable = true;
        Ok(self.host.now())
    }
}

fn cut(text: &str, bytes: usize) -> &str {
    let end = text.floor_char_boundary(bytes);
    text.get(..end).unwrap_or_default()
}

/// Renders fields as `name=value`, with quoted values so that a value cannot pass for another
/// field.
fn render(fields: &[(String, String)], room: usize) -> String {
    let mut text = String::new();
    for (name, value) in fields {
        let field = format!("{}{name}={value:?}", if text.is_empty() { "" } else { " " });
        if text.len() + field.len() > room {
            break;
        }
        text.push_str(&field);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_between_characters() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
    }

    #[test]
    fn fields_are_quoted_and_bounded() {
        let fields = [("a".to_owned(), "x b=\"y\"".to_owned()), ("c".to_owned(), "z".to_owned())];
        assert_eq!(render(&fields, 100), r#"a="x b=\"y\"" c="z""#);
        assert_eq!(render(&fields, 15), r#"a="x b=\"y\"""#);
    }
}
