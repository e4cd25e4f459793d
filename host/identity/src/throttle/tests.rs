//! The throttle with a clock in the tests' hands.

use super::*;

struct World {
    throttle: Throttle,
    now: Instant,
}

impl World {
    fn new() -> World {
        World { throttle: Throttle::new(), now: Instant::now() }
    }

    fn later(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    fn begin(&self, account: &str, network: &str) -> Turn {
        self.throttle.begin(who(account, network), self.now)
    }

    fn wait(&self, account: &str, network: &str) -> u64 {
        match self.begin(account, network) {
            Turn::Now(ticket) => {
                self.throttle.undecided(&ticket);
                0
            }
            Turn::Later => panic!("nothing is under way"),
            Turn::Wait(seconds) => seconds,
        }
    }

    /// A wrong attempt, or the seconds that it has to wait.
    fn wrong(&self, account: &str, network: &str) -> u64 {
        match self.begin(account, network) {
            Turn::Now(ticket) => {
                self.throttle.wrong(ticket, 1, self.now);
                0
            }
            Turn::Later => panic!("nothing is under way"),
            Turn::Wait(seconds) => seconds,
        }
    }

    fn right(&self, account: &str, network: &str) {
        match self.begin(account, network) {
            Turn::Now(ticket) => self.throttle.right(ticket),
            other => panic!("{other:?}"),
        }
    }
}

fn who<'a>(account: &'a str, network: &str) -> Who<'a> {
    Who { account, network: ClientNetwork::of(network.parse().unwrap()) }
}

const OFFICE: &str = "192.0.2.1";
const ELSEWHERE: &str = "198.51.100.7";

#[test]
fn the_wait_grows_with_each_wrong_attempt_and_ends_with_a_right_one() {
    let mut world = World::new();
    let waits: Vec<u64> = (0..14)
        .map(|_| {
            assert_eq!(world.wrong("a@x", OFFICE), 0);
            let wait = world.wait("a@x", OFFICE);
            world.later(wait);
            wait
        })
        .collect();
    assert_eq!(waits, [0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
    assert_eq!(world.wait("b@x", OFFICE), 0);
    world.right("a@x", OFFICE);
    assert_eq!(world.wrong("a@x", OFFICE), 0);
    assert_eq!(world.wait("a@x", OFFICE), 0);
}

#[test]
fn a_wait_is_rounded_up_and_forgotten_in_the_end() {
    let mut world = World::new();
    (0..6).for_each(|_| assert_eq!(world.wrong("a@x", OFFICE), 0));
    world.now += Duration::from_millis(300);
    assert_eq!(world.wait("a@x", OFFICE), 1, "no less than it takes");
    world.later(16 * 60);
    assert_eq!(world.wait("a@x", OFFICE), 0);
    assert_eq!(world.wrong("a@x", OFFICE), 0);
    assert_eq!(world.wait("a@x", OFFICE), 0, "the count begins anew");
}

#[test]
fn one_account_holds_up_no_other_of_its_network() {
    let mut world = World::new();
    for _ in 0..500 {
        world.wrong("a@x", OFFICE);
        world.later(1);
    }
    for other in ["b@x", "c@x", "new@x"] {
        assert_eq!(world.wait(other, OFFICE), 0, "{other}");
    }
    assert!(world.wait("a@x", OFFICE) > 0);
    assert!(world.wait("a@x", ELSEWHERE) > 0, "the account is guarded everywhere");
}

#[test]
fn many_accounts_are_not_tried_from_one_network() {
    let mut world = World::new();
    world.right("known@x", "2001:db8::7");
    let mut tried = 0;
    for number in 0..1000 {
        let host = format!("2001:db8::{:x}", number + 1);
        tried += u32::from(world.wrong(&format!("{number}@x"), &host) == 0);
    }
    assert_eq!(tried, MANY as u32 + 1, "all of a /64 is one network");
    assert!(world.wait("new@x", "2001:db8::ffff:1") > 0);
    assert_eq!(world.wait("known@x", "2001:db8::8"), 0, "who signed in there goes on");
    assert_eq!(world.wait("new@x", "2001:db8:0:1::1"), 0);
    world.later(1);
    assert_eq!(world.wait("new@x", "2001:db8::1"), 0, "one attempt in a growing while");
    world.wrong("new@x", "2001:db8::1");
    assert_eq!(world.wait("newer@x", "2001:db8::1"), 2);
}

#[test]
fn an_account_of_ones_own_clears_nothing() {
    let world = World::new();
    (0..=MANY).for_each(|number| assert_eq!(world.wrong(&format!("{number}@x"), OFFICE), 0));
    let waits = world.wait("new@x", OFFICE);
    assert!(waits > 0);
    let ticket = Ticket {
        known: false,
        ..world.throttle.lock().ticket(world.throttle.names_of(who("own@x", OFFICE)))
    };
    world.throttle.right(ticket);
    assert_eq!(world.wait("new@x", OFFICE), waits);
}

#[test]
fn guesses_from_elsewhere_hold_up_nobody_who_signed_in_here_before() {
    let mut world = World::new();
    world.right("a@x", OFFICE);
    for _ in 0..50 {
        world.wrong("a@x", ELSEWHERE);
        world.later(60);
    }
    world.wrong("a@x", ELSEWHERE);
    assert_eq!(world.wait("a@x", ELSEWHERE), LONGEST.as_secs());
    assert_eq!(world.wait("a@x", "203.0.113.3"), LONGEST.as_secs(), "the account is guarded");
    assert_eq!(world.wait("a@x", OFFICE), 0);
    (0..6).for_each(|_| assert_eq!(world.wrong("a@x", OFFICE), 0));
    assert_eq!(world.wait("a@x", OFFICE), 1, "and here too, for what is tried here");
}

#[test]
fn attempts_under_way_are_no_failures_and_cannot_outrun_the_count() {
    let world = World::new();
    let tickets: Vec<Ticket> = (0..FREE)
        .map(|_| match world.begin("a@x", OFFICE) {
            Turn::Now(ticket) => ticket,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(matches!(world.begin("a@x", OFFICE), Turn::Later), "it waits for one of those");
    assert!(matches!(world.begin("b@x", OFFICE), Turn::Now(_)));
    for ticket in tickets {
        world.throttle.wrong(ticket, 1, world.now);
    }
    let Turn::Now(last) = world.begin("a@x", OFFICE) else { panic!("five are free") };
    assert!(matches!(world.begin("a@x", OFFICE), Turn::Later), "now one at a time");
    world.throttle.wrong(last, 1, world.now);
    assert!(matches!(world.begin("a@x", OFFICE), Turn::Wait(1)));
}

#[test]
fn a_password_that_was_right_goes_on_where_nobody_guesses() {
    let mut world = World::new();
    world.right("a@x", OFFICE);
    for _ in 0..100 {
        world.wrong("a@x", OFFICE);
        world.throttle.held_up(who("a@x", OFFICE), 1, world.now);
    }
    assert!(world.wait("a@x", OFFICE) > 0);
    assert!(world.throttle.goes_on(who("a@x", OFFICE), world.now), "a script repeats itself");
    (0..7).for_each(|_| {
        world.wrong("a@x", ELSEWHERE);
    });
    assert!(!world.throttle.goes_on(who("a@x", ELSEWHERE), world.now), "nobody signed in there");
    for guess in 0..u64::from(GUESSES) {
        world.throttle.held_up(who("a@x", OFFICE), 100 + guess, world.now);
    }
    assert!(!world.throttle.goes_on(who("a@x", OFFICE), world.now), "somebody guesses");
    world.later(20 * 60);
    assert!(world.throttle.goes_on(who("a@x", OFFICE), world.now));
}

#[test]
fn a_flood_of_names_is_bounded_and_clears_no_account_that_is_guessed_at() {
    let mut world = World::new();
    for _ in 0..12 {
        world.wrong("victim@x", ELSEWHERE);
        let wait = world.wait("victim@x", ELSEWHERE);
        world.later(wait);
    }
    for number in 0..100_000_u32 {
        world.wrong(&format!("{number}@x"), &std::net::Ipv4Addr::from_bits(0x0a00_0000 + number).to_string());
    }
    world.wrong("victim@x", ELSEWHERE);
    assert_eq!(world.wait("victim@x", ELSEWHERE), 60);
    let state = world.throttle.lock();
    assert!(state.accounts.len() <= REMEMBERED && state.networks.len() <= REMEMBERED);
    assert!(state.under_way.is_empty());
}
