//! Cost of the first read of a large package's index after a publish, compared with a package of
//! ten versions.

use crate::bench_server::{publish_npm, publish_python};
use crate::options::Options;
use crate::table::{Goal, ResultRow, ResultTable, Unit};
use packhouse_benches::{cpu_ms, median};
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::python::{PythonRepository, SIMPLE_JSON};
use packhouse_tests::{Client, Request, Server};

const FEW: usize = 10;
/// Number of measured publishes.
const ROUNDS: usize = 15;

struct IndexBench<'a> {
    client: &'a Client,
    publish: &'a dyn Fn(&str, usize),
    path: &'a dyn Fn(&str) -> String,
    /// Name and `Accept` of each form of the index.
    forms: [(&'a str, &'a str); 2],
}

/// Measures both formats.
pub(crate) fn measure(options: &Options, table: &mut ResultTable) {
    let server = Server::start();
    let npm = NpmRepository::create(&server, "npm");
    let python = PythonRepository::create(&server, "python");
    IndexBench {
        client: &npm.client,
        publish: &|package, number| publish_npm(&npm.client, "npm", package, number),
        path: &|package| npm.path(package),
        forms: [
            ("packument", "application/json"),
            ("short packument", "application/vnd.npm.install-v1+json"),
        ],
    }
    .measure(&server, options, table);
    IndexBench {
        client: &python.client,
        publish: &|project, number| publish_python(&python.client, "python", project, number),
        path: &|project| python.path(&format!("simple/{project}/")),
        forms: [("JSON index", SIMPLE_JSON), ("HTML index", "text/html")],
    }
    .measure(&server, options, table);
}

impl IndexBench<'_> {
    fn measure(&self, server: &Server, options: &Options, table: &mut ResultTable) {
        (0..options.versions).for_each(|number| (self.publish)("large", number));
        (0..FEW).for_each(|number| (self.publish)("small", number));
        let mut costs = self.forms.map(|_| [Vec::new(), Vec::new()]);
        for round in 0..ROUNDS {
            for (at, (package, first)) in
                [("large", options.versions), ("small", FEW)].into_iter().enumerate()
            {
                // These reads put the index as it was before the publish into the cache.
                self.forms.iter().for_each(|(_, accept)| self.read(package, accept));
                (self.publish)(package, first + round);
                for ((_, accept), costs) in self.forms.iter().zip(&mut costs) {
                    let before = cpu_ms(server.pid());
                    self.read(package, accept);
                    costs[at].push(cpu_ms(server.pid()) - before);
                }
            }
        }
        for ((form, _), [large, small]) in self.forms.iter().zip(costs) {
            let name = format!("next {form} after a publish into {}", options.versions);
            let (ours, peer) = (median(large), Some(median(small)));
            table.add(ResultRow { name, unit: Unit::CpuMillis, ours, peer, goal: Goal::AtMost(2.0) });
        }
    }

    fn read(&self, package: &str, accept: &str) {
        let request = Request::new("GET", &(self.path)(package)).header("Accept", accept);
        self.client.send(request).expect(200);
    }
}
