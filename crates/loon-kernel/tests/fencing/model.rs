//! What processes do with a journal's files, as `store/file/{fence,open,writer}.rs` do it, one step a
//! system call that others can see. A process can be stopped between any two steps (it is just not
//! chosen) and can die between any two.

use stateright::{Checker, Model, Property};

/// What a process is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Has the journal open and appends so many records, the last of them a cancel if `ends`.
    Owner { records: u8, ends: bool },
    /// Takes the journal over and appends one record.
    Taker,
    /// Takes it over and appends the cancel, unless there is one.
    Canceller,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Record {
    fence: u8,
    by: usize,
    terminal: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct FenceFile {
    number: u8,
    /// It was written by somebody who opened the journal, not by somebody who displaced a file.
    marked: bool,
    locked_by: Option<usize>,
}

/// What a process holds open, by the number of the file behind the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Handles {
    fence: usize,
    journal: usize,
    number: u8,
    left: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    // Opening.
    OpenJournal,
    OpenFence,
    LockToOpen,
    LookInPlace,
    LockFolderToDisplace,
    LookToDisplace,
    Displace,
    LockFolderToMove,
    LookToMove,
    Copy,
    PutCopy(usize),
    TakeNumber,
    UnlockOpened,
    Read,
    // Appending.
    Lock,
    Check,
    Write,
    LookAfter,
    Unlock,
    // Ends.
    Done,
    Refused,
    Busy,
    Dead,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    fence_at: usize,
    fences: Vec<FenceFile>,
    journal_at: usize,
    journals: Vec<Vec<Record>>,
    folder: Option<usize>,
    processes: Vec<(Step, Handles)>,
    acknowledged: Vec<Record>,
    /// The newest fence whose taker went on with it.
    taken: u8,
    /// A record was acknowledged although a newer fence had been.
    late: bool,
    deaths: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Action {
    Go(usize),
    GiveUp(usize),
    Die(usize),
}

struct Protocol {
    roles: Vec<Role>,
    /// How many processes may die.
    deaths: u8,
    /// How often the fence file may be displaced.
    displacements: usize,
    /// The highest number that a fence may get.
    takes: u8,
    /// The writer looks once more after it wrote. Without it the protocol is wrong.
    looks_after: bool,
    /// The journal is moved after a fence file was displaced. Without it the protocol is wrong.
    moves: bool,
}

impl Protocol {
    fn new(roles: &[Role]) -> Self {
        let roles = roles.to_vec();
        let (deaths, displacements, takes) = (1, 1, 5);
        Self { roles, deaths, displacements, takes, looks_after: true, moves: true }
    }

    fn is_ender(&self, process: usize, left: u8) -> bool {
        match self.roles[process] {
            Role::Owner { ends, .. } => ends && left == 1,
            Role::Taker => false,
            Role::Canceller => true,
        }
    }

    /// One step of `process`; nothing if it has to wait.
    fn step(&self, state: &mut State, process: usize) -> Option<()> {
        let (step, mut has) = state.processes[process];
        let in_place = state.fence_at == has.fence;
        let next = match step {
            Step::OpenJournal => {
                has.journal = state.journal_at;
                Step::OpenFence
            }
            Step::OpenFence => {
                has.fence = state.fence_at;
                Step::LockToOpen
            }
            Step::LockToOpen => {
                state.lock(process, has)?;
                Step::LookInPlace
            }
            Step::LookInPlace => {
                if !in_place || state.journal_at != has.journal {
                    state.unlock(process, has);
                    Step::OpenJournal
                } else if state.fences[has.fence].marked || !self.moves {
                    Step::TakeNumber
                } else {
                    Step::LockFolderToMove
                }
            }
            Step::LockFolderToDisplace => {
                state.lock_folder(process)?;
                Step::LookToDisplace
            }
            Step::LookToDisplace if in_place => Step::Displace,
            Step::LookToDisplace => {
                state.folder = None;
                Step::OpenJournal
            }
            Step::Displace => {
                let number = state.fences[has.fence].number + 1;
                state.fences.push(FenceFile { number, ..FenceFile::default() });
                state.fence_at = state.fences.len() - 1;
                state.folder = None;
                Step::OpenJournal
            }
            Step::LockFolderToMove => {
                state.lock_folder(process)?;
                Step::LookToMove
            }
            Step::LookToMove if in_place => Step::Copy,
            Step::LookToMove => {
                state.folder = None;
                state.unlock(process, has);
                Step::OpenJournal
            }
            Step::Copy => {
                let copy = state.journals[has.journal].clone();
                state.journals.push(copy);
                Step::PutCopy(state.journals.len() - 1)
            }
            Step::PutCopy(copy) => {
                (state.journal_at, has.journal) = (copy, copy);
                state.folder = None;
                Step::TakeNumber
            }
            Step::TakeNumber => {
                let last = state.journals[has.journal].last().map_or(0, |record| record.fence);
                let file = &mut state.fences[has.fence];
                has.number = file.number.max(last) + 1;
                (file.number, file.marked) = (has.number, true);
                Step::UnlockOpened
            }
            Step::UnlockOpened => {
                state.unlock(process, has);
                state.taken = state.taken.max(has.number);
                Step::Read
            }
            Step::Read => {
                let is_over = state.journals[state.journal_at].iter().any(|it| it.terminal);
                if is_over { Step::Refused } else { Step::Lock }
            }
            Step::Lock => {
                state.lock(process, has)?;
                Step::Check
            }
            Step::Check if in_place && state.fences[has.fence].number == has.number => Step::Write,
            Step::Write => {
                let terminal = self.is_ender(process, has.left);
                let record = Record { fence: has.number, by: process, terminal };
                state.journals[has.journal].push(record);
                Step::LookAfter
            }
            Step::LookAfter if in_place || !self.looks_after => {
                let record = *state.journals[has.journal].last()?;
                state.acknowledged.push(record);
                state.late |= record.fence < state.taken;
                has.left -= 1;
                Step::Unlock
            }
            Step::Check | Step::LookAfter => self.fenced(state, process, has),
            Step::Unlock => {
                state.unlock(process, has);
                if has.left == 0 { Step::Done } else { Step::Lock }
            }
            Step::Done | Step::Refused | Step::Busy | Step::Dead => return None,
        };
        state.processes[process] = (next, has);
        Some(())
    }

    /// An owner that is fenced ends; a canceller looks again.
    fn fenced(&self, state: &mut State, process: usize, has: Handles) -> Step {
        state.unlock(process, has);
        match self.roles[process] {
            Role::Canceller => Step::OpenJournal,
            Role::Owner { .. } | Role::Taker => Step::Refused,
        }
    }

    /// What a process does that has waited for a lock in vain.
    fn give_up(state: &mut State, process: usize) -> Option<()> {
        let (step, has) = state.processes[process];
        let locked = state.fences[has.fence].locked_by.is_some();
        let next = match step {
            Step::LockToOpen if locked => Step::LockFolderToDisplace,
            Step::Lock if locked => Step::Busy,
            Step::LockFolderToDisplace | Step::LockFolderToMove if state.folder.is_some() => {
                state.unlock(process, has);
                Step::Busy
            }
            _ => return None,
        };
        state.processes[process].0 = next;
        Some(())
    }
}

impl State {
    fn lock(&mut self, process: usize, has: Handles) -> Option<()> {
        let lock = &mut self.fences[has.fence].locked_by;
        lock.is_none().then(|| *lock = Some(process))
    }

    fn unlock(&mut self, process: usize, has: Handles) {
        self.fences[has.fence].locked_by.take_if(|owner| *owner == process);
    }

    fn lock_folder(&mut self, process: usize) -> Option<()> {
        self.folder.is_none().then(|| self.folder = Some(process))
    }

    fn journal(&self) -> &[Record] {
        &self.journals[self.journal_at]
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let owner = FenceFile { number: 1, marked: true, locked_by: None };
        let processes = self.roles.iter().map(|role| match *role {
            Role::Owner { records, .. } => {
                (Step::Lock, Handles { number: 1, left: records, ..Handles::default() })
            }
            Role::Taker | Role::Canceller => {
                (Step::OpenJournal, Handles { left: 1, ..Handles::default() })
            }
        });
        vec![State {
            fence_at: 0,
            fences: vec![owner],
            journal_at: 0,
            journals: vec![vec![]],
            folder: None,
            processes: processes.collect(),
            acknowledged: vec![],
            taken: 1,
            late: false,
            deaths: 0,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (process, (step, _)) in state.processes.iter().enumerate() {
            if !matches!(step, Step::Done | Step::Refused | Step::Busy | Step::Dead) {
                actions.extend([Action::Go(process), Action::GiveUp(process)]);
                if state.deaths < self.deaths {
                    actions.push(Action::Die(process));
                }
            }
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Go(process) => self.step(&mut next, process)?,
            Action::GiveUp(process) => Self::give_up(&mut next, process)?,
            Action::Die(process) => {
                let (_, has) = next.processes[process];
                next.unlock(process, has);
                next.folder.take_if(|owner| *owner == process);
                next.processes[process].0 = Step::Dead;
                next.deaths += 1;
            }
        }
        Some(next)
    }

    fn within_boundary(&self, state: &State) -> bool {
        // Two cancellers could shut each other out for ever.
        let newest = state.fences.iter().map(|file| file.number).max();
        state.fences.len() <= 1 + self.displacements && newest <= Some(self.takes)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("one cancel, and nothing after it", |_: &Self, state: &State| {
                let journal = state.journal();
                journal.iter().rev().skip(1).all(|record| !record.terminal)
            }),
            Property::always("what was acknowledged is there", |_: &Self, state: &State| {
                state.acknowledged.iter().all(|record| state.journal().contains(record))
            }),
            Property::always("fences never go back", |_: &Self, state: &State| {
                state.journal().windows(2).all(|pair| pair[0].fence <= pair[1].fence)
            }),
            Property::always("no old fence after a newer one", |_: &Self, state: &State| {
                !state.late
            }),
            Property::sometimes("a cancel is recorded", |_: &Self, state: &State| {
                state.acknowledged.iter().any(|record| record.terminal)
            }),
            Property::sometimes(
                "past a process that is stopped under the lock",
                |_: &Self, state: &State| {
                    state.fences[0].locked_by == Some(0)
                        && state.acknowledged.iter().any(|record| record.terminal && record.by != 0)
                },
            ),
        ]
    }
}

const OWNER: Role = Role::Owner { records: 2, ends: false };

fn holds(protocol: Protocol) {
    protocol.checker().spawn_bfs().join().assert_properties();
}

#[test]
fn k029_no_interleaving_with_a_death_lets_an_old_fence_write() {
    for owner in [OWNER, Role::Owner { records: 2, ends: true }] {
        let two = Protocol::new(&[owner, Role::Canceller]);
        holds(Protocol { deaths: 2, displacements: 3, ..two });
    }
}

#[test]
fn k029_no_interleaving_of_three_lets_an_old_fence_write() {
    for other in [Role::Canceller, Role::Taker] {
        holds(Protocol::new(&[OWNER, other, Role::Canceller]));
    }
}

#[test]
fn the_model_finds_what_each_precaution_is_for() {
    let roles = [OWNER, Role::Canceller];
    let careless = Protocol { looks_after: false, ..Protocol::new(&roles) };
    let found = careless.checker().spawn_bfs().join();
    assert!(found.discovery("what was acknowledged is there").is_some());
    let hasty = Protocol { moves: false, ..Protocol::new(&roles) };
    let found = hasty.checker().spawn_bfs().join();
    assert!(found.discovery("one cancel, and nothing after it").is_some());
}
