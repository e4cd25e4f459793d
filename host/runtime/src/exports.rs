//! The functions of `format` that requests call, found in an instance one by one: the generated code finds all of them each time, and
//! compares the types of each, where a call needs one. All were found and compared when the plugin was asked for its description.

use wasmtime::component::{ComponentExportIndex, Instance, InstancePre, Resource};

use crate::bindings::packhouse::format::http::{Failure, Response};
use crate::state::HostState;
use crate::state::http::{IntentRep, RequestRep};
use crate::state::records::RepositoryRep;

/// The interface, as the contract calls it.
const FORMAT: &str = "packhouse:format/format@0.1.0";

type Guest = wasmtime::Store<HostState>;
type Request = Resource<RequestRep>;
type Repository = Resource<RepositoryRep>;

/// Where a component has them.
pub(crate) struct FormatExports {
    route: ComponentExportIndex,
    check: ComponentExportIndex,
    handle: ComponentExportIndex,
}

impl FormatExports {
    /// Those of a linked component. An error where it does not export one.
    pub(crate) fn of(linked: &InstancePre<HostState>) -> wasmtime::Result<FormatExports> {
        let component = linked.component();
        let missing = |name: &str| wasmtime::Error::msg(format!("it exports no {name}"));
        let format = component.get_export_index(None, FORMAT).ok_or_else(|| missing(FORMAT))?;
        let function = |name| component.get_export_index(Some(&format), name).ok_or_else(|| missing(name));
        Ok(FormatExports {
            route: function("route")?,
            check: function("check")?,
            handle: function("handle")?,
        })
    }

    /// `format.route`.
    pub(crate) async fn route(
        &self,
        guest: &mut Guest,
        instance: &Instance,
        kind: &str,
        request: Request,
    ) -> wasmtime::Result<Result<Resource<IntentRep>, Failure>> {
        type Answer = (Result<Resource<IntentRep>, Failure>,);
        guest.data_mut().note_arguments(&[&kind]);
        guest.data_mut().note_request(&request);
        let function = instance.get_typed_func::<(&str, Request), Answer>(&mut *guest, &self.route)?;
        let answer = function.call_async(&mut *guest, (kind, request)).await?.0;
        guest.data_mut().note_answer(&answer);
        Ok(answer)
    }

    /// `format.check`.
    pub(crate) async fn check(
        &self,
        guest: &mut Guest,
        instance: &Instance,
        asked: Asked<'_>,
    ) -> wasmtime::Result<Result<(), Failure>> {
        type Answer = (Result<(), Failure>,);
        guest.data_mut().note_request(&asked.0);
        let function = instance.get_typed_func::<Asked<'_>, Answer>(&mut *guest, &self.check)?;
        let answer = function.call_async(&mut *guest, asked).await?.0;
        guest.data_mut().note_answer(&answer);
        Ok(answer)
    }

    /// `format.handle`.
    pub(crate) async fn handle(
        &self,
        guest: &mut Guest,
        instance: &Instance,
        asked: Asked<'_>,
    ) -> wasmtime::Result<Result<Response, Failure>> {
        type Answer = (Result<Response, Failure>,);
        guest.data_mut().note_request(&asked.0);
        let function = instance.get_typed_func::<Asked<'_>, Answer>(&mut *guest, &self.handle)?;
        let answer = function.call_async(&mut *guest, asked).await?.0;
        guest.data_mut().note_answer(&answer);
        Ok(answer)
    }
}

/// A request, its target and the other repositories.
pub(crate) type Asked<'a> = (Request, Option<Repository>, &'a [Repository]);
