//! Functions of `format` that requests call. A call looks up only its own function in an instance.
//! The generated code would look up all functions and compare all their types for each call. The
//! host has checked all of them once, before it called `describe`.

use wasmtime::component::{ComponentExportIndex, Instance, InstancePre, Resource};

use crate::bindings::packhouse::format::http::{Failure, Response};
use crate::state::HostState;
use crate::state::http::{IntentRep, RequestRep};
use crate::state::records::RepositoryRep;

/// Name of the interface in the contract.
const FORMAT: &str = "packhouse:format/format@0.1.0";

type Guest = wasmtime::Store<HostState>;
type RequestHandle = Resource<RequestRep>;
type RepositoryHandle = Resource<RepositoryRep>;

/// Positions of the exports in a component.
pub(crate) struct FormatExports {
    route: ComponentExportIndex,
    check: ComponentExportIndex,
    handle: ComponentExportIndex,
}

impl FormatExports {
    /// Finds the exports of a linked component. Returns an error if one is missing.
    pub(crate) fn of(linked: &InstancePre<HostState>) -> wasmtime::Result<FormatExports> {
        let component = linked.component();
        let missing = |name: &str| wasmtime::Error::msg(format!("it does not export {name}"));
        let format = component.get_export_index(None, FORMAT).ok_or_else(|| missing(FORMAT))?;
        let function = |name| component.get_export_index(Some(&format), name).ok_or_else(|| missing(name));
        Ok(FormatExports {
            route: function("route")?,
            check: function("check")?,
            handle: function("handle")?,
        })
    }

    /// Calls `format.route` in an instance.
    pub(crate) async fn route(
        &self,
        guest: &mut Guest,
        instance: &Instance,
        kind: &str,
        request: RequestHandle,
    ) -> wasmtime::Result<Result<Resource<IntentRep>, Failure>> {
        type Results = (Result<Resource<IntentRep>, Failure>,);
        guest.data_mut().note_arguments(&[&kind]);
        guest.data_mut().note_request(&request);
        let function = instance.get_typed_func::<(&str, RequestHandle), Results>(&mut *guest, &self.route)?;
        let answer = function.call_async(&mut *guest, (kind, request)).await?.0;
        guest.data_mut().note_answer(&answer);
        Ok(answer)
    }

    /// Calls `format.check` in an instance.
    pub(crate) async fn check(
        &self,
        guest: &mut Guest,
        instance: &Instance,
        arguments: CallArguments<'_>,
    ) -> wasmtime::Result<Result<(), Failure>> {
        type Results = (Result<(), Failure>,);
        guest.data_mut().note_request(&arguments.0);
        let function = instance.get_typed_func::<CallArguments<'_>, Results>(&mut *guest, &self.check)?;
        let answer = function.call_async(&mut *guest, arguments).await?.0;
        guest.data_mut().note_answer(&answer);
        Ok(answer)
    }

    /// Calls `format.handle` in an instance.
    pub(crate) async fn handle(
        &self,
        guest: &mut Guest,
        instance: &Instance,
        arguments: CallArguments<'_>,
    ) -> wasmtime::Result<Result<Response, Failure>> {
        type Results = (Result<Response, Failure>,);
        guest.data_mut().note_request(&arguments.0);
        let function = instance.get_typed_func::<CallArguments<'_>, Results>(&mut *guest, &self.handle)?;
        let answer = function.call_async(&mut *guest, arguments).await?.0;
        guest.data_mut().note_answer(&answer);
        Ok(answer)
    }
}

/// Arguments of a call: a request, its target and the other repositories.
pub(crate) type CallArguments<'a> = (RequestHandle, Option<RepositoryHandle>, &'a [RepositoryHandle]);
