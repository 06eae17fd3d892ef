//! Clients whose devices are in several processes.

use std::collections::BTreeSet;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use defn_core::device::DeviceError;
use defn_core::{Error, ErrorKind, Result};

use super::caller;
use super::process::Process;
use super::registry;
use crate::api::{Client, KeyValues};
use crate::plugin::Attribute;
use crate::store::{Member, StoreError};

/// The environment variables for what a call does not say.
const COORDINATOR: &str = "DEFN_COORDINATOR";
const RANK: &str = "DEFN_RANK";
const WORLD: &str = "DEFN_WORLD";

/// The processes to join. What is `None` is read from the environment: `DEFN_COORDINATOR`, `DEFN_RANK`, `DEFN_WORLD`.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The address, as `host:port`, at which the process of rank 0 listens.
    pub coordinator: Option<String>,
    /// The number of this process, in `0..world`.
    pub rank: Option<i64>,
    /// The number of processes.
    pub world: Option<i64>,
    /// How long to wait for the other processes.
    pub timeout: Duration,
}

impl Default for Options {
    /// All from the environment, and five minutes.
    fn default() -> Options {
        Options { coordinator: None, rank: None, world: None, timeout: Duration::from_secs(300) }
    }
}

/// This process among the others, once it has joined them, and the process that it then was.
static MEMBER: Mutex<Option<(Process, Arc<Member>)>> = Mutex::new(None);

fn member() -> MutexGuard<'static, Option<(Process, Arc<Member>)>> {
    MEMBER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Joins the processes of a job, so that a client that is started after it has the devices of all of them. Each process
/// calls it once, before it starts a client, with the same address and world and a rank of its own. It returns when all
/// have called it. The process of rank 0 listens on the address; whoever reaches it can join, so it must be one of a
/// network that only the job uses.
///
/// A client is for all processes if its plugin supports that, as those for CUDA and ROCm do; else it does not start.
/// [`ClientSpec::local`](crate::ClientSpec::local) is for clients of one process.
///
/// ```
/// use defn_pjrt::distributed::{Options, initialize};
///
/// # let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
/// # let address = free.to_string();
/// // Such as "10.0.0.1:4321", the same in all processes.
/// let coordinator = Some(address);
/// let alone = Options { coordinator, rank: Some(0), world: Some(1), ..Options::default() };
/// initialize(&alone)?;
/// assert!(initialize(&alone).unwrap_err().to_string().contains("has joined others before, as rank 0 of 1"));
/// # Ok::<(), defn_core::Error>(())
/// ```
///
/// # Errors
/// An option that is missing or out of range (`Option`). A second call, a client that runs, an address that is not this
/// machine's or not reachable, two processes of one rank, processes that differ in their world, and processes that did
/// not call it within the timeout (`Backend`). A call that fails can be repeated.
pub fn initialize(options: &Options) -> Result<()> {
    let given = options.coordinator.clone().or_else(|| std::env::var(COORDINATOR).ok());
    let required = || format!("the address host:port at which rank 0 listens, here or in {COORDINATOR}");
    let bad_address = |given: String| bad("coordinator", given, required());
    let address = given.ok_or_else(|| bad_address("None".to_owned()))?;
    let world = number("world", options.world, WORLD)?;
    let rank = number("rank", options.rank, RANK)?;
    let required = format!("the number of processes, at least 1, here or in {WORLD}");
    let world = usize::try_from(world).ok().filter(|world| *world > 0);
    let world = world.ok_or_else(|| bad("world", number_text(options.world, WORLD), required))?;
    let required = format!("the number of this process, in 0..{world}, here or in {RANK}");
    let rank = usize::try_from(rank).ok().filter(|rank| *rank < world);
    let rank = rank.ok_or_else(|| bad("rank", number_text(options.rank, RANK), required))?;
    let peer = resolve(&address).ok_or_else(|| bad_address(format!("{address:?}")))?;
    let mut joined = member();
    if let Some((process, member)) = &*joined
        && process.is_this()
    {
        return Err(refused(StoreError::Twice {
            address: member.address().to_owned(),
            rank: member.rank(),
            world: member.world(),
        }));
    }
    require_no_client()?;
    let poll = || caller::poll().map_err(Stopped::Interrupted);
    let joining = Member::join((&address, peer), (rank, world), options.timeout, &poll);
    let member = joining.map_err(|stopped| match stopped {
        Stopped::Refused(error) => refused(error),
        Stopped::Interrupted(error) => error,
    })?;
    // One may have been started meanwhile.
    require_no_client()?;
    *joined = Some((Process::this(), Arc::new(member)));
    Ok(())
}

/// Why joining stopped.
enum Stopped {
    Refused(StoreError),
    Interrupted(Error),
}

impl From<StoreError> for Stopped {
    fn from(error: StoreError) -> Stopped {
        Stopped::Refused(error)
    }
}

fn require_no_client() -> Result<()> {
    match registry::running_client() {
        Some(client) => Err(refused(StoreError::ClientRuns { client })),
        None => Ok(()),
    }
}

#[cold]
fn refused(error: StoreError) -> Error {
    DeviceError::Plugin { error: Arc::new(error) }.into()
}

#[cold]
fn bad(option: &'static str, given: String, required: String) -> Error {
    ErrorKind::OptionValue { op: "initialize", option, given, required }.into()
}

/// An option as it was given, for messages.
fn number_text(given: Option<i64>, variable: &str) -> String {
    given.map(|given| given.to_string()).or_else(|| std::env::var(variable).ok()).unwrap_or("None".to_owned())
}

/// The value of an option, or of its variable.
fn number(option: &'static str, given: Option<i64>, variable: &str) -> Result<i64> {
    let from_variable = || std::env::var(variable).ok()?.trim().parse().ok();
    given.or_else(from_variable).ok_or_else(|| {
        bad(option, number_text(given, variable), format!("an integer, here or in {variable}"))
    })
}

/// The first address of `host:port`.
fn resolve(address: &str) -> Option<SocketAddr> {
    address.to_socket_addrs().ok()?.next().filter(|address| address.port() != 0)
}

/// This process among the others, if it has joined them.
///
/// # Errors
/// It was forked from a process that has.
pub(super) fn joined() -> Result<Option<Arc<Member>>> {
    match &*member() {
        None => Ok(None),
        Some((process, member)) if process.is_this() => Ok(Some(member.clone())),
        Some((_, member)) => Err(refused(StoreError::Forked {
            address: member.address().to_owned(),
            rank: member.rank(),
            world: member.world(),
        })),
    }
}

/// The options that tell a GPU's plugin about the other processes. Others take no such options.
pub(super) fn client_options(member: &Member) -> [(String, Attribute); 2] {
    let number = |value: usize| Attribute::Int(i64::try_from(value).unwrap_or(i64::MAX));
    [("node_id".to_owned(), number(member.rank())), ("num_nodes".to_owned(), number(member.world()))]
}

/// Rejects a client that does not have the devices of all processes.
///
/// # Errors
/// As said, and an error of the plugin.
pub(super) fn require_all(
    (name, plugin): (&str, &str),
    client: &Client,
    member: &Member,
    (key_values, given): (&KeyValues, &[(String, Attribute)]),
) -> Result<()> {
    let world = member.world();
    let listed = client.devices().and_then(|devices| {
        devices.iter().map(|device| Ok(device.description()?.process_index)).collect::<crate::Result<_>>()
    });
    let there: BTreeSet<i32> = listed.map_err(super::failure::plugin)?;
    if (0..world).all(|rank| i32::try_from(rank).is_ok_and(|rank| there.contains(&rank))) {
        return Ok(());
    }
    let list = |numbers: &BTreeSet<i32>| numbers.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
    let options: String = given.iter().map(|(name, value)| format!(", {name}={value}")).collect();
    let tried = format!(
        "it was given the key-value store{options}, made {} requests to it, and has devices of process {} only",
        key_values.requests(),
        list(&there),
    );
    let (client, plugin) = (name.to_owned(), plugin.to_owned());
    Err(DeviceError::OneProcess { client, plugin, world, tried }.into())
}
