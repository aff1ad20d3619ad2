use std::sync::atomic::AtomicBool;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use bench_script::Prng;

use super::*;

/// The memory that clients and reader share.
struct Shared {
    closed: AtomicU32,
    tallies: Vec<Tally>,
    clients: Vec<ClientIntervals>,
}

impl Shared {
    fn new(clients: usize, ring: usize) -> Self {
        Self {
            closed: AtomicU32::new(0),
            tallies: (0..ring).map(|_| Tally::default()).collect(),
            clients: (0..clients).map(|_| ClientIntervals::default()).collect(),
        }
    }

    fn ring(&self) -> Ring<'_> {
        Ring { closed: &self.closed, tallies: &self.tallies }
    }

    fn writer(&self, client: usize) -> IntervalWriter<'_> {
        IntervalWriter::new(&self.clients[client], self.ring())
    }

    /// Collects and reads the next interval of clients that are at rest.
    fn read_next(&self) -> u64 {
        let interval = self.closed.load(Relaxed);
        assert!(self.clients.iter().all(|client| self.ring().collect(client, interval)));
        self.ring().read(Tally::transactions)
    }

    fn misplaced(&self) -> u64 {
        self.clients.iter().map(|client| client.misplaced.get()).sum()
    }
}

fn count(writer: &mut IntervalWriter, interval: u32, times: usize) {
    for _ in 0..times {
        writer.announce();
        writer.tally(interval).commit(1000);
        writer.pass();
    }
}

#[test]
fn a_reader_in_time_reads_each_interval() {
    let shared = Shared::new(2, 2);
    let (mut first, mut second) = (shared.writer(0), shared.writer(1));
    for interval in 0..20 {
        count(&mut first, interval, interval as usize);
        count(&mut second, interval, 1);
        assert_eq!(shared.read_next(), u64::from(interval) + 1);
    }
    assert_eq!(shared.misplaced(), 0);
    assert!(!shared.ring().holds_more(shared.clients.iter()));
}

#[test]
fn a_late_reader_finds_each_interval_by_itself() {
    let shared = Shared::new(2, 16);
    let (mut first, mut second) = (shared.writer(0), shared.writer(1));
    for interval in 0..16 {
        count(&mut first, interval, 3);
        // The second client is idle for most of the time: what it counted waits in its cells.
        if interval % 5 == 0 {
            count(&mut second, interval, 7);
        }
    }
    let read: Vec<u64> = (0..16).map(|_| shared.read_next()).collect();
    let expected: Vec<u64> = (0..16).map(|interval| if interval % 5 == 0 { 10 } else { 3 }).collect();
    assert_eq!((read, shared.misplaced()), (expected, 0));
}

#[test]
fn beyond_the_ring_everything_is_counted_and_said_to_be_misplaced() {
    let shared = Shared::new(1, 4);
    let mut writer = shared.writer(0);
    (0..10).for_each(|interval| count(&mut writer, interval, 10));
    // 0 to 3 have places of their own; 4 to 7 do not, and went to the last of those; 8 and 9 wait in the client's cells.
    assert_eq!((0..4).map(|_| shared.read_next()).collect::<Vec<_>>(), [10, 10, 10, 50]);
    assert_eq!(shared.misplaced(), 40);
    assert!(shared.ring().holds_more(shared.clients.iter()));
    assert_eq!((4..10).map(|_| shared.read_next()).collect::<Vec<_>>(), [0, 0, 0, 0, 10, 10]);
    assert_eq!(shared.misplaced(), 40);
    assert!(!shared.ring().holds_more(shared.clients.iter()));
}

#[test]
fn a_client_in_the_middle_of_counting_is_waited_for() {
    let shared = Shared::new(1, 4);
    let mut writer = shared.writer(0);
    writer.announce();
    assert!(!shared.ring().collect(&shared.clients[0], 0));
    writer.tally(0).commit(1000);
    assert!(!shared.ring().collect(&shared.clients[0], 0));
    writer.pass();
    assert_eq!(shared.read_next(), 1);
    // One that announced itself and had nothing to count.
    writer.announce();
    writer.pass();
    assert_eq!(shared.read_next(), 0);
}

/// The reader has taken a cell and gets no processor.
#[test]
fn a_client_never_waits_for_the_reader() {
    let shared = Shared::new(1, 4);
    let mut writer = shared.writer(0);
    count(&mut writer, 0, 1);
    let cells = &shared.clients[0].cells;
    let taken = cells.iter().find(|cell| cell.label.load(Relaxed) == label_of(0)).unwrap();
    taken.label.store(label_of(0) | TAKEN, Relaxed);
    (1..4).for_each(|interval| count(&mut writer, interval, 5));
    assert!(!shared.ring().collect(&shared.clients[0], 0));
    taken.tally.move_to(shared.ring().tally(0));
    taken.label.store(0, Release);
    assert_eq!((0..4).map(|_| shared.read_next()).collect::<Vec<_>>(), [1, 5, 5, 5]);
}

/// A client that announces itself after the reader has passed it, while the reader reads all that the ring holds but one.
#[test]
fn a_place_is_left_for_a_client_that_was_passed() {
    let shared = Shared::new(1, 4);
    let mut writer = shared.writer(0);
    count(&mut writer, 7, 1);
    let through = shared.ring().readable_from(0).last().unwrap();
    assert!(shared.ring().collect(&shared.clients[0], through));
    writer.announce();
    // As it finds the ring: there is room for 0 to 3.
    let nearest = shared.ring().nearest_open(8);
    (0..=through).for_each(|_| assert_eq!(shared.ring().read(Tally::transactions), 0));
    assert_eq!(nearest, shared.closed.load(Relaxed));
    writer.tally(8).commit(1000);
    writer.pass();
}

/// Threads for clients that lose their processor at any place, and a reader that does so too.
#[test]
fn each_transaction_is_in_the_interval_in_which_it_ended() {
    const CLIENTS: usize = 4;
    const INTERVAL: Duration = Duration::from_millis(1);
    let shared = Shared::new(CLIENTS, 512);
    let began = Instant::now();
    let interval_now = || (began.elapsed().as_nanos() / INTERVAL.as_nanos()) as u32;
    let over = AtomicBool::new(false);
    // By interval, as the clients and as the reader counted.
    let (counted, read) = thread::scope(|scope| {
        let client = |index: usize| {
            let mut writer = shared.writer(index);
            let mut random = Prng::from_seed(index as u64);
            let mut lapse = |one_in: i64, most_ms: i64| {
                if random.int64_range(1, one_in) == 1 {
                    sleep(Duration::from_micros(random.int64_range(0, most_ms * 1000).unsigned_abs()));
                }
            };
            let mut counted = vec![0u64; 0];
            while !over.load(Relaxed) {
                lapse(1000, 10);
                writer.announce();
                lapse(1000, 4);
                let interval = interval_now();
                lapse(1000, 4);
                writer.tally(interval).commit(1000);
                writer.pass();
                counted.resize(counted.len().max(interval as usize + 1), 0);
                counted[interval as usize] += 1;
            }
            counted
        };
        let clients: Vec<_> = (0..CLIENTS).map(|index| scope.spawn(move || client(index))).collect();
        let mut random = Prng::from_seed(99);
        let mut read = Vec::new();
        while began.elapsed() < Duration::from_millis(500) {
            let (next, now) = (read.len() as u32, interval_now());
            if let Some(through) = shared.ring().readable_from(next).take_while(|&due| due < now).last() {
                while !shared.clients.iter().all(|client| shared.ring().collect(client, through)) {
                    thread::yield_now();
                }
                read.extend((next..=through).map(|_| shared.ring().read(Tally::transactions)));
            }
            if random.int64_range(1, 50) == 1 {
                sleep(Duration::from_millis(random.int64_range(1, 20).unsigned_abs()));
            }
        }
        over.store(true, Relaxed);
        let mut counted = Vec::new();
        for client in clients {
            let of_client = client.join().unwrap();
            counted.resize(counted.len().max(of_client.len()), 0);
            of_client.iter().zip(&mut counted).for_each(|(n, sum)| *sum += n);
        }
        while shared.ring().holds_more(shared.clients.iter()) {
            let interval = read.len() as u32;
            assert!(shared.clients.iter().all(|client| shared.ring().collect_rest(client, interval)));
            read.push(shared.ring().read(Tally::transactions));
        }
        (counted, read)
    });
    assert!(counted.iter().sum::<u64>() > 1000);
    assert_eq!(read.iter().sum::<u64>(), counted.iter().sum::<u64>());
    // On a machine that let the reader sleep for longer than the ring lasts, those that it was told of are elsewhere.
    let differences: u64 = (0..read.len().max(counted.len()))
        .map(|i| read.get(i).unwrap_or(&0).abs_diff(*counted.get(i).unwrap_or(&0)))
        .sum();
    assert!(differences <= 2 * shared.misplaced(), "{differences} for {}", shared.misplaced());
}
