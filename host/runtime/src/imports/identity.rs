//! `identity`: functions for a client's own sign-in and token commands. The server's services know
//! the caller, so the guest does not pass one.

use std::sync::Arc;

use wasmtime::component::Resource;

use crate::bindings::packhouse::format::identity::{Host, Login, LoginState, Token};
use crate::host_error::HostError;
use crate::services::{self, TokenView};
use crate::state::records::RepositoryRep;
use crate::state::{HostState, Phase};

impl Host for HostState {
    async fn begin_login(&mut self, target: Resource<RepositoryRep>) -> Result<Login, HostError> {
        self.uncacheable = true;
        let view = self.held(&target)?.view.clone();
        let login = Arc::clone(&self.services.identity).begin_login(&view).await?;
        Ok(Login { id: login.id, url: login.url })
    }

    async fn finish_login(&mut self, id: String) -> Result<LoginState, HostError> {
        self.reach(Phase::Serve, "identity.finish-login")?;
        self.uncacheable = true;
        Ok(match Arc::clone(&self.services.identity).finish_login(&id).await? {
            services::LoginState::Waiting(seconds) => LoginState::Waiting(seconds),
            services::LoginState::Granted(placeholder) => LoginState::Granted(placeholder),
            services::LoginState::Gone => LoginState::Gone,
        })
    }

    async fn tokens(&mut self) -> Result<Vec<Token>, HostError> {
        self.reach(Phase::Serve, "identity.tokens")?;
        self.uncacheable = true;
        let tokens = Arc::clone(&self.services.identity).tokens().await?;
        Ok(tokens.into_iter().map(token).collect())
    }

    async fn revoke(&mut self, id: String) -> Result<bool, HostError> {
        self.reach(Phase::Serve, "identity.revoke")?;
        self.uncacheable = true;
        Ok(Arc::clone(&self.services.identity).revoke(&id).await?)
    }
}

fn token(token: TokenView) -> Token {
    Token {
        id: token.id,
        name: token.name,
        hint: token.hint,
        scope: token.scope,
        created: token.created,
        expires: token.expires,
    }
}
