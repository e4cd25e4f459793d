//! Tests of the throttle with a simulated clock.

use super::*;

struct Fixture {
    throttle: Throttle,
    now: Instant,
}

impl Fixture {
    fn new() -> Fixture {
        Fixture { throttle: Throttle::new(), now: Instant::now() }
    }

    fn later(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    fn begin(&self, account: &str, network: &str) -> Admission {
        self.throttle.begin(who(account, network), self.now)
    }

    fn wait(&self, account: &str, network: &str) -> u64 {
        match self.begin(account, network) {
            Admission::Now(ticket) => {
                self.throttle.undecided(&ticket);
                0
            }
            Admission::Later => panic!("nothing is under way"),
            Admission::Wait(seconds) => seconds,
        }
    }

    /// Makes a wrong attempt. Returns the seconds that it has to wait, 0 if it was admitted.
    fn wrong(&self, account: &str, network: &str) -> u64 {
        match self.begin(account, network) {
            Admission::Now(ticket) => {
                self.throttle.wrong(ticket, 1, self.now);
                0
            }
            Admission::Later => panic!("nothing is under way"),
            Admission::Wait(seconds) => seconds,
        }
    }

    fn right(&self, account: &str, network: &str) {
        match self.begin(account, network) {
            Admission::Now(ticket) => self.throttle.right(ticket),
            other => panic!("{other:?}"),
        }
    }
}

fn who<'a>(account: &'a str, network: &str) -> SignInSource<'a> {
    SignInSource { account, network: ClientNetwork::of(network.parse().unwrap()) }
}

const OFFICE: &str = "192.0.2.1";
const ELSEWHERE: &str = "198.51.100.7";

#[test]
fn the_wait_grows_with_each_wrong_attempt_and_ends_with_a_right_one() {
    let mut fixture = Fixture::new();
    let waits: Vec<u64> = (0..14)
        .map(|_| {
            assert_eq!(fixture.wrong("a@x", OFFICE), 0);
            let wait = fixture.wait("a@x", OFFICE);
            fixture.later(wait);
            wait
        })
        .collect();
    assert_eq!(waits, [0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
    assert_eq!(fixture.wait("b@x", OFFICE), 0);
    fixture.right("a@x", OFFICE);
    assert_eq!(fixture.wrong("a@x", OFFICE), 0);
    assert_eq!(fixture.wait("a@x", OFFICE), 0);
}

#[test]
fn a_wait_is_rounded_up_and_forgotten_in_the_end() {
    let mut fixture = Fixture::new();
    (0..6).for_each(|_| assert_eq!(fixture.wrong("a@x", OFFICE), 0));
    fixture.now += Duration::from_millis(300);
    assert_eq!(fixture.wait("a@x", OFFICE), 1, "rounded up");
    fixture.later(16 * 60);
    assert_eq!(fixture.wait("a@x", OFFICE), 0);
    assert_eq!(fixture.wrong("a@x", OFFICE), 0);
    assert_eq!(fixture.wait("a@x", OFFICE), 0, "the count starts again");
}

#[test]
fn one_account_does_not_delay_others_in_its_network() {
    let mut fixture = Fixture::new();
    for _ in 0..500 {
        fixture.wrong("a@x", OFFICE);
        fixture.later(1);
    }
    for other in ["b@x", "c@x", "new@x"] {
        assert_eq!(fixture.wait(other, OFFICE), 0, "{other}");
    }
    assert!(fixture.wait("a@x", OFFICE) > 0);
    assert!(fixture.wait("a@x", ELSEWHERE) > 0, "the account is guarded everywhere");
}

#[test]
fn many_accounts_are_not_tried_from_one_network() {
    let mut fixture = Fixture::new();
    fixture.right("known@x", "2001:db8::7");
    let mut tried = 0;
    for number in 0..1000 {
        let host = format!("2001:db8::{:x}", number + 1);
        tried += u32::from(fixture.wrong(&format!("{number}@x"), &host) == 0);
    }
    assert_eq!(tried, MANY as u32 + 1, "all of a /64 is one network");
    assert!(fixture.wait("new@x", "2001:db8::ffff:1") > 0);
    assert_eq!(
        fixture.wait("known@x", "2001:db8::8"),
        0,
        "an account that has signed in there is not delayed"
    );
    assert_eq!(fixture.wait("new@x", "2001:db8:0:1::1"), 0);
    fixture.later(1);
    assert_eq!(fixture.wait("new@x", "2001:db8::1"), 0, "one attempt after each growing delay");
    fixture.wrong("new@x", "2001:db8::1");
    assert_eq!(fixture.wait("newer@x", "2001:db8::1"), 2);
}

#[test]
fn an_attackers_own_account_clears_no_failures() {
    let fixture = Fixture::new();
    (0..=MANY).for_each(|number| assert_eq!(fixture.wrong(&format!("{number}@x"), OFFICE), 0));
    let waits = fixture.wait("new@x", OFFICE);
    assert!(waits > 0);
    let ticket = AttemptTicket {
        known: false,
        ..fixture.throttle.lock().ticket(fixture.throttle.keys_of(who("own@x", OFFICE)))
    };
    fixture.throttle.right(ticket);
    assert_eq!(fixture.wait("new@x", OFFICE), waits);
}

#[test]
fn guesses_from_elsewhere_do_not_delay_an_account_in_a_known_network() {
    let mut fixture = Fixture::new();
    fixture.right("a@x", OFFICE);
    for _ in 0..50 {
        fixture.wrong("a@x", ELSEWHERE);
        fixture.later(60);
    }
    fixture.wrong("a@x", ELSEWHERE);
    assert_eq!(fixture.wait("a@x", ELSEWHERE), LONGEST.as_secs());
    assert_eq!(fixture.wait("a@x", "203.0.113.3"), LONGEST.as_secs(), "the account is guarded");
    assert_eq!(fixture.wait("a@x", OFFICE), 0);
    (0..6).for_each(|_| assert_eq!(fixture.wrong("a@x", OFFICE), 0));
    assert_eq!(fixture.wait("a@x", OFFICE), 1, "wrong attempts from this network delay the account here");
}

#[test]
fn attempts_under_way_are_not_failures_and_cannot_outrun_the_count() {
    let fixture = Fixture::new();
    let tickets: Vec<AttemptTicket> = (0..FREE)
        .map(|_| match fixture.begin("a@x", OFFICE) {
            Admission::Now(ticket) => ticket,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(matches!(fixture.begin("a@x", OFFICE), Admission::Later), "the attempt waits for one under way");
    assert!(matches!(fixture.begin("b@x", OFFICE), Admission::Now(_)));
    for ticket in tickets {
        fixture.throttle.wrong(ticket, 1, fixture.now);
    }
    let Admission::Now(last) = fixture.begin("a@x", OFFICE) else { panic!("five are free") };
    assert!(matches!(fixture.begin("a@x", OFFICE), Admission::Later), "now one at a time");
    fixture.throttle.wrong(last, 1, fixture.now);
    assert!(matches!(fixture.begin("a@x", OFFICE), Admission::Wait(1)));
}

#[test]
fn a_remembered_password_is_accepted_where_nobody_guesses() {
    let mut fixture = Fixture::new();
    fixture.right("a@x", OFFICE);
    for _ in 0..100 {
        fixture.wrong("a@x", OFFICE);
        fixture.throttle.held_up(who("a@x", OFFICE), 1, fixture.now);
    }
    assert!(fixture.wait("a@x", OFFICE) > 0);
    assert!(
        fixture.throttle.accepts_remembered(who("a@x", OFFICE), fixture.now),
        "a repeated password is one guess"
    );
    (0..7).for_each(|_| {
        fixture.wrong("a@x", ELSEWHERE);
    });
    assert!(
        !fixture.throttle.accepts_remembered(who("a@x", ELSEWHERE), fixture.now),
        "the account has not signed in from this network"
    );
    for guess in 0..u64::from(GUESSES) {
        fixture.throttle.held_up(who("a@x", OFFICE), 100 + guess, fixture.now);
    }
    assert!(
        !fixture.throttle.accepts_remembered(who("a@x", OFFICE), fixture.now),
        "too many different passwords were tried"
    );
    fixture.later(20 * 60);
    assert!(fixture.throttle.accepts_remembered(who("a@x", OFFICE), fixture.now));
}

#[test]
fn a_flood_of_names_is_bounded_and_clears_no_guessed_account() {
    let mut fixture = Fixture::new();
    for _ in 0..12 {
        fixture.wrong("victim@x", ELSEWHERE);
        let wait = fixture.wait("victim@x", ELSEWHERE);
        fixture.later(wait);
    }
    for number in 0..100_000_u32 {
        fixture
            .wrong(&format!("{number}@x"), &std::net::Ipv4Addr::from_bits(0x0a00_0000 + number).to_string());
    }
    fixture.wrong("victim@x", ELSEWHERE);
    assert_eq!(fixture.wait("victim@x", ELSEWHERE), 60);
    let state = fixture.throttle.lock();
    assert!(state.accounts.len() <= REMEMBERED && state.networks.len() <= REMEMBERED);
    assert!(state.under_way.is_empty());
}
