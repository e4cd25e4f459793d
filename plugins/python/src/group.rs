//! Which repositories an answer is made of: the one that is asked, or a group's members. A name that a hosted member has hides
//! the same name of every proxy: nobody outside can slip a higher version of it in.

use crate::records;
use crate::settings::Settings;
use packhouse_sdk::{Context, Failure, Repository};

/// All members, in their order; of what is no group, itself.
pub(crate) fn members(cx: &Context) -> Result<Vec<&Repository>, Failure> {
    let target = cx.target()?;
    Ok(match target.kind().as_str() {
        "group" => cx.others().iter().collect(),
        _ => vec![target],
    })
}

/// Those that may answer for this project, in their order.
pub(crate) fn serving<'a>(cx: &'a Context, project: &str) -> Result<Vec<&'a Repository>, Failure> {
    let members = members(cx)?;
    let mut hosted = Vec::new();
    for member in &members {
        if member.kind() == "hosted" && member.get(&records::project(project))?.is_some() {
            hosted.push(*member);
        }
    }
    if !hosted.is_empty() || is_claimed(cx.target()?, &members, project)? {
        return Ok(hosted);
    }
    Ok(members.into_iter().filter(|member| member.kind() == "proxy").collect())
}

/// Whether the group or one of its members claims this name.
fn is_claimed(target: &Repository, members: &[&Repository], project: &str) -> Result<bool, Failure> {
    for repository in members.iter().copied().chain([target]) {
        if Settings::of(repository)?.claims(project) {
            return Ok(true);
        }
    }
    Ok(false)
}
