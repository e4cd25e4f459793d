//! Present state of a server, read through its API and written as documents.

use crate::cli::json::Members as _;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::canonical::canonical;
use super::kinds::DocumentKind;
use crate::cli::remote::{ApiClient, names_of, pick, text};

/// Object on the server, as a document would describe it.
#[derive(Clone, Debug)]
pub(super) struct CurrentObject {
    pub(super) kind: DocumentKind,
    pub(super) id: String,
    /// Name in documents. A trusted publisher has none in the API and gets a descriptive one.
    pub(super) name: String,
    /// Complete spec in its canonical form, with names instead of ids.
    pub(super) spec: Map<String, Value>,
    /// True for a repository with packages. Groups have no packages of their own.
    pub(super) has_content: bool,
    /// Members of a team that joined through an external group.
    pub(super) external: BTreeSet<String>,
}

/// Ids of objects by their names in documents.
#[derive(Clone, Debug, Default)]
pub(super) struct NameIds {
    pub(super) repositories: BTreeMap<String, String>,
    pub(super) teams: BTreeMap<String, String>,
    /// Members by their e-mail addresses, and service accounts by their names.
    pub(super) members: BTreeMap<String, String>,
}

/// State of a server, as far as the kinds in question need it.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerState {
    pub(super) objects: Vec<CurrentObject>,
    pub(super) ids: NameIds,
    /// Id of the owner of the API token.
    pub(super) own_id: String,
    /// Ids of the teams of the API token's owner.
    pub(super) own_teams: BTreeSet<String>,
}

impl ServerState {
    /// Reads all objects of these kinds.
    pub(super) async fn read(api: &ApiClient, kinds: &BTreeSet<DocumentKind>) -> anyhow::Result<ServerState> {
        let has = |kind: DocumentKind| kinds.contains(&kind);
        let me = api.get(&["me"]).await?;
        let mut reader = StateReader::new(api, &me);
        reader.repositories().await?;
        if has(DocumentKind::Team) || has(DocumentKind::ServiceAccount) {
            reader.members().await?;
            reader.teams(has(DocumentKind::Team)).await?;
        }
        for kind in [
            DocumentKind::TrustedPublisher,
            DocumentKind::Policy,
            DocumentKind::RetentionPolicy,
            DocumentKind::Webhook,
        ] {
            if has(kind) {
                reader.add_all(kind).await?;
            }
        }
        let mut state = reader.state;
        state.objects.retain(|object| has(object.kind));
        Ok(state)
    }
}

/// Reads the state of a server, one kind after the other.
struct StateReader<'a> {
    api: &'a ApiClient,
    state: ServerState,
    /// Views of all repositories, for their names.
    all_repositories: Vec<Value>,
    /// Views of all service accounts.
    service_accounts: Vec<Value>,
    /// E-mail addresses of members and names of service accounts, by their ids.
    member_names: BTreeMap<String, String>,
}

impl<'a> StateReader<'a> {
    fn new(api: &'a ApiClient, me: &Value) -> StateReader<'a> {
        let own_teams = me.at("teams").as_array().into_iter().flatten();
        let own_teams = own_teams.map(|team| text(team, "id").to_owned()).collect();
        let state = ServerState { own_id: text(me, "id").to_owned(), own_teams, ..ServerState::default() };
        StateReader {
            api,
            state,
            all_repositories: Vec::new(),
            service_accounts: Vec::new(),
            member_names: BTreeMap::new(),
        }
    }

    async fn repositories(&mut self) -> anyhow::Result<()> {
        self.all_repositories = self.api.list(&["repositories"]).await?;
        for repository in self.all_repositories.clone() {
            let (name, id) = (text(&repository, "name").to_owned(), text(&repository, "id").to_owned());
            self.state.ids.repositories.insert(name, id);
            let spec = repository_spec(&repository, &self.all_repositories);
            let name = text(&repository, "name").to_owned();
            let object = self.object(DocumentKind::Repository, &repository, name, spec);
            self.state.objects.push(CurrentObject { has_content: has_content(&repository), ..object });
        }
        Ok(())
    }

    async fn members(&mut self) -> anyhow::Result<()> {
        for member in self.api.list(&["members"]).await? {
            self.add_member(text(&member, "id"), text(&member, "email"));
        }
        self.service_accounts = self.api.list(&["service-accounts"]).await?;
        for account in self.service_accounts.clone() {
            self.add_member(text(&account, "id"), text(&account, "name"));
        }
        Ok(())
    }

    fn add_member(&mut self, id: &str, name: &str) {
        self.member_names.insert(id.to_owned(), name.to_owned());
        self.state.ids.members.insert(name.to_owned(), id.to_owned());
    }

    /// Reads the teams, and the service accounts, which name their teams.
    async fn teams(&mut self, with_members: bool) -> anyhow::Result<()> {
        let teams = self.api.list(&["teams"]).await?;
        for team in &teams {
            let (id, name) = (text(team, "id").to_owned(), text(team, "name").to_owned());
            let (mut manual, mut external) = (BTreeSet::new(), BTreeSet::new());
            if with_members {
                for member in self.api.list(&["teams", &id, "members"]).await? {
                    let named = self.member_names.get(text(&member, "id")).cloned();
                    let named = named.unwrap_or_else(|| text(&member, "name").to_owned());
                    let source = text(&member, "source");
                    if source == "external" {
                        external.insert(named)
                    } else {
                        manual.insert(named)
                    };
                }
            }
            let spec = json!({
                "description": team.at("description"), "permissions": self.with_names(team.at("permissions")),
                "external_groups": team.at("external_groups"), "members": manual,
            });
            let object = self.object(DocumentKind::Team, team, name.clone(), spec);
            self.state.ids.teams.insert(name, id);
            self.state.objects.push(CurrentObject { external, ..object });
        }
        for account in self.service_accounts.clone() {
            let spec = json!({
                "permissions": self.with_names(account.at("permissions")),
                "teams": names_of(&teams, account.at("teams")),
            });
            let name = text(&account, "name").to_owned();
            let object = self.object(DocumentKind::ServiceAccount, &account, name, spec);
            self.state.objects.push(object);
        }
        Ok(())
    }

    async fn add_all(&mut self, kind: DocumentKind) -> anyhow::Result<()> {
        for view in self.api.list(&[kind.segment()]).await? {
            let (name, spec) = match kind {
                DocumentKind::TrustedPublisher => {
                    let mut spec = pick(&view, &["provider", "issuer", "claims", "packages", "scope"]);
                    spec.set("repository", view.at("repository_name").clone());
                    (publisher_name(&view), spec)
                }
                DocumentKind::Policy => {
                    let mut spec = pick(&view, &["component", "settings", "packages", "mode"]);
                    spec.set("repositories", self.reach(&view));
                    (text(&view, "name").to_owned(), spec)
                }
                DocumentKind::RetentionPolicy => {
                    let mut spec = pick(&view, &["match", "delete", "keep", "max_deletes", "mode"]);
                    spec.set("repositories", self.reach(&view));
                    (text(&view, "name").to_owned(), spec)
                }
                _ => {
                    let mut spec = pick(&view, &["events", "state"]);
                    spec.set("repositories", self.reach(&view));
                    (text(&view, "url").to_owned(), spec)
                }
            };
            let object = self.object(kind, &view, name, spec);
            self.state.objects.push(object);
        }
        Ok(())
    }

    fn object(&self, kind: DocumentKind, view: &Value, name: String, spec: Value) -> CurrentObject {
        let spec = match spec {
            Value::Object(spec) => spec,
            _ => Map::new(),
        };
        CurrentObject {
            kind,
            id: text(view, "id").to_owned(),
            name,
            spec: canonical(kind, spec),
            has_content: false,
            external: BTreeSet::new(),
        }
    }

    /// Returns the names of the repositories in question, or `*`.
    fn reach(&self, view: &Value) -> Value {
        match view.at("repositories") {
            Value::Array(_) => json!(names_of(&self.all_repositories, view.at("repositories"))),
            all => all.clone(),
        }
    }

    /// Replaces ids of repositories by names. Entries for deleted repositories permit nothing and
    /// are left out.
    fn with_names(&self, permissions: &Value) -> Value {
        let mut entries = Vec::new();
        for entry in permissions.at("repositories").as_array().into_iter().flatten() {
            let mut entry = entry.clone();
            if let Some(id) = entry.at("repository").as_str().filter(|id| *id != "*") {
                match names_of(&self.all_repositories, &json!([id])).pop() {
                    Some(name) => entry.set("repository", json!(name)),
                    None => continue,
                }
            }
            entries.push(entry);
        }
        json!({"organization": permissions.at("organization"), "repositories": entries})
    }
}

/// Returns whether a repository, as the API shows it, has packages.
pub(super) fn has_content(view: &Value) -> bool {
    ["packages", "versions", "bytes"].iter().any(|field| view[*field].as_u64().is_some_and(|count| count > 0))
}

fn repository_spec(view: &Value, all: &[Value]) -> Value {
    let mut spec = pick(view, &["format", "kind", "settings"]);
    if view.at("upstream").is_object() {
        spec.set("upstream", view.at("upstream").clone());
    }
    if text(view, "kind") == "group" {
        spec.set("members", json!(names_of(all, view.at("members"))));
    }
    spec
}

/// Describes a publisher by its repository and its workflow.
fn publisher_name(view: &Value) -> String {
    let claims = view.at("claims");
    let texts = ["repository_owner", "namespace", "repository", "project", "workflow", "environment", "sub"];
    let parts: Vec<&str> = texts.iter().filter_map(|claim| claims[*claim].as_str()).collect();
    format!("{} by {} {}", text(view, "repository_name"), text(view, "provider"), parts.join("/"))
}
