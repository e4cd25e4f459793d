//! Versions around the border of a range: the border itself, its neighbours, its pre-releases, and
//! other spellings of it.

/// Returns the versions around this one, for this ecosystem.
pub(crate) fn around(ecosystem: &str, version: &str) -> Vec<String> {
    let mut all = vec![version.to_owned()];
    let base = base(version);
    all.extend(beside(base));
    let of = |ends: &[&str]| -> Vec<String> {
        let bases = if base == version { vec![version] } else { vec![version, base] };
        bases.into_iter().flat_map(|base| ends.iter().map(move |end| format!("{base}{end}"))).collect()
    };
    all.extend(match ecosystem {
        "PyPI" => of(&[
            ".dev1",
            "a1",
            "b2",
            "rc1",
            ".post1",
            ".0",
            ".1",
            "+local.1",
            "-1",
            ".post0.dev1",
            "a1.dev2",
        ]),
        "Maven" => of(&[
            "-SNAPSHOT",
            "-alpha-1",
            "-beta2",
            "-M1",
            "-rc1",
            ".RELEASE",
            ".Final",
            "-sp1",
            "-1",
            ".1",
            ".0",
            "-jre",
            ".v20200101",
            "-redhat-1",
        ]),
        "RubyGems" => of(&[".pre", ".rc1", ".alpha", ".beta2", ".0", ".1", ".a.1"]),
        "Packagist" => of(&["-dev", "-alpha1", "-beta2", "-RC1", "-p1", ".1", ".0"]),
        _ => of(&["-0", "-alpha", "-alpha.1", "-rc.1", "-z", "+build.1"]),
    });
    match ecosystem {
        "Packagist" => all.extend([format!("v{version}"), "dev-main".to_owned()]),
        "PyPI" => all.extend([format!("v{version}"), format!("1!{version}"), "no version".to_owned()]),
        "Go" => all.extend([
            format!("v{}", version.trim_start_matches('v')),
            format!("{base}-0.20200101000000-abcdefabcdef"),
        ]),
        "npm" | "crates.io" => all.push("no version".to_owned()),
        _ => {}
    }
    all.sort();
    all.dedup();
    all
}

/// Returns the numeric prefix of a version.
fn base(version: &str) -> &str {
    let end = version.find(|symbol: char| !symbol.is_ascii_digit() && symbol != '.').unwrap_or(version.len());
    let base = version[..end].trim_end_matches('.');
    if base.is_empty() { version } else { base }
}

/// Returns the versions with one number increased or decreased.
fn beside(base: &str) -> Vec<String> {
    let Ok(numbers) = base.split('.').map(str::parse::<u64>).collect::<Result<Vec<_>, _>>() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for at in 0..numbers.len() {
        for other in [numbers[at].saturating_add(1), numbers[at].saturating_sub(1)] {
            let mut changed = numbers.clone();
            changed[at] = other;
            found.push(changed.iter().map(u64::to_string).collect::<Vec<_>>().join("."));
        }
    }
    found
}
