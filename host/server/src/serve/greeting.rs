//! The message that a person at a terminal reads once the server is ready.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

use packhouse_app::App;

/// Prints the addresses of packages and portal, the data folder, and how to create the first token.
/// Prints only to a terminal: otherwise the log contains the addresses.
pub(super) fn greet(app: &App) {
    let mut terminal = std::io::stdout();
    if terminal.is_terminal() {
        // If the terminal is closed, the server continues.
        let _ = terminal.write_all(text(app).as_bytes()).and_then(|()| terminal.flush());
    }
}

fn text(app: &App) -> String {
    let (config, owner) = (&app.config, &app.config.owner.email);
    let data = config.data.canonicalize().unwrap_or_else(|_| config.data.clone());
    let format = app.runtime.current().plugins().first().map(|plugin| plugin.description().format.clone());
    lines(&app.base_url(), &app.api_url(), owner, &data, format.as_deref().unwrap_or("FORMAT"))
}

fn lines(packages: &str, portal: &str, owner: &str, data: &Path, format: &str) -> String {
    let folder = data.display();
    format!(
        "Packages: {packages}/repositories/NAME\n\
         Portal:   {portal}/ (sign in as {owner}; API under {portal}/v1)\n\
         Data:     {folder}; a first token: packhouse repo create libs --format {format} --data {folder} && \
         packhouse token create --name first --member {owner} --repository libs --scope read,write --expires-in 90d --data {folder}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_lines_say_it_all() {
        let text = lines(
            "http://127.0.0.1:1",
            "http://127.0.0.1:2",
            "owner@localhost",
            Path::new("/srv/x"),
            "fifth",
        );
        assert_eq!(text.lines().count(), 3, "{text}");
        for word in [
            "http://127.0.0.1:1/repositories/",
            "http://127.0.0.1:2/",
            "/srv/x",
            "token create",
            "--format fifth",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}
