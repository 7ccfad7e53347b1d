//! Executes the calls of a trace one after another in a given sequence, and compares the results.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use iosonar_files::order::{Order, Policy};
use iosonar_files::{Call, DescriptionId, Name, Resolved};
use rustix::fs::{Mode, OFlags};

use super::issue::{On, Returned, is_on_name, issue};
use super::random::Random;

/// A random sequence in which each call comes after its predecessors.
pub fn sequence(predecessors: &[Vec<u64>], random: &mut Random) -> Vec<usize> {
    let mut dependents = vec![Vec::new(); predecessors.len()];
    let mut waits: Vec<usize> = predecessors.iter().map(Vec::len).collect();
    for (call, before) in predecessors.iter().enumerate() {
        for &before in before {
            dependents[before as usize].push(call);
        }
    }
    let mut ready: Vec<usize> = (0..waits.len()).filter(|&call| waits[call] == 0).collect();
    let mut sequence = Vec::new();
    while !ready.is_empty() {
        // Late calls first in some sequences: these go farthest from the order of the trace.
        let index = if random.one_in(3) { ready.len() - 1 } else { random.below(ready.len()) };
        let call = ready.swap_remove(index);
        sequence.push(call);
        for &dependent in &dependents[call] {
            waits[dependent] -= 1;
            if waits[dependent] == 0 {
                ready.push(dependent);
            }
        }
    }
    assert_eq!(sequence.len(), predecessors.len(), "the order has a cycle");
    sequence
}

/// The predecessors of each call.
pub fn predecessors(policy: Policy, calls: &[Call], resolved: &[Resolved]) -> Vec<Vec<u64>> {
    let mut order = Order::new(policy);
    (0..)
        .zip(calls.iter().zip(resolved))
        .map(|(number, (call, resolved))| order.predecessors(number, call, resolved).to_vec())
        .collect()
}

/// Executes the calls below an empty directory. The first call with another result, and what it returned.
pub fn execute(calls: &[Call], resolved: &[Resolved], sequence: &[usize], root: &Path) -> Result<(), (usize, String)> {
    let root = rustix::fs::open(root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let mut open: HashMap<DescriptionId, OwnedFd> = HashMap::new();
    let nowhere = Name::from("");
    for &number in sequence {
        let (call, resolved) = (&calls[number], &resolved[number]);
        if resolved.skip.is_none() {
            let relative = |path: &Option<Name>| -> Vec<u8> {
                match path.as_ref().unwrap_or(&nowhere).as_bytes() {
                    b"/" => b".".to_vec(),
                    [b'/', rest @ ..] => rest.to_vec(),
                    other => other.to_vec(),
                }
            };
            let (path, path2) = (relative(&resolved.path), relative(&resolved.path2));
            let file = |id: Option<DescriptionId>| match id {
                Some(id) if !is_on_name(call.kind) => {
                    let file = open.get(&id).ok_or((number, format!("{id:?} is not open")))?;
                    Ok(Some(file.as_fd()))
                }
                _ => Ok(None),
            };
            let (fd, fd2) = (file(resolved.description)?, file(resolved.description2)?);
            // The last close of a description is one of its ends.
            let has_file = (fd.is_some() && call.kind != iosonar_files::CallKind::Close) || is_on_name(call.kind);
            if has_file {
                let returned = issue(call, On { fd, fd2, at: (root.as_fd(), &path), at2: (root.as_fd(), &path2) });
                compare(call, &returned).map_err(|difference| (number, difference))?;
                if let (Returned::Descriptor(file), Some(made)) = (returned, resolved.makes) {
                    open.insert(made, file);
                }
            }
        }
        for ended in &resolved.ends {
            open.remove(ended);
        }
    }
    Ok(())
}

fn compare(call: &Call, returned: &Returned) -> Result<(), String> {
    match returned {
        Returned::Failed(errno) if call.errno == errno.raw_os_error() => Ok(()),
        Returned::Descriptor(_) if call.succeeded() => Ok(()),
        Returned::Number(number) if call.result == Some(*number) => Ok(()),
        Returned::Failed(errno) => Err(errno.to_string()),
        Returned::Number(number) => Err(number.to_string()),
        Returned::Descriptor(_) => Err("a descriptor".to_owned()),
    }
}
