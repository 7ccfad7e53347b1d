//! The known answer for the order `fs`: 29 calls with their direct predecessors.

use std::collections::{BTreeSet, HashMap};

use super::super::Options;
use super::script::Script;
use crate::{Access, Call, ObjectId, Resource};

/// The last call that modified each object that a call touches.
fn predecessors(script: &Script) -> Vec<BTreeSet<usize>> {
    let (_, resolved) = script.run(Options::default());
    let mut modified: HashMap<ObjectId, usize> = HashMap::new();
    let mut all = Vec::new();
    for (number, resolved) in (1..).zip(resolved) {
        assert_eq!(resolved.skip, None, "{number}");
        let mut before = BTreeSet::new();
        for touch in &resolved.touches {
            if let Resource::Object(object) = touch.resource {
                before.extend(modified.get(&object));
            }
        }
        for touch in &resolved.touches {
            if let (Resource::Object(object), Access::Modify) = (touch.resource, touch.access) {
                modified.insert(object, number);
            }
        }
        all.push(before);
    }
    all
}

fn path(path: &str) -> impl FnOnce(&mut Call) {
    let path = path.to_owned();
    move |call| call.path = Some(path.as_str().into())
}

fn paths(path: &str, path2: &str) -> impl FnOnce(&mut Call) {
    let (path, path2) = (path.to_owned(), path2.to_owned());
    move |call| {
        call.path = Some(path.as_str().into());
        call.path2 = Some(path2.as_str().into());
    }
}

fn failing(name: &str) -> impl FnOnce(&mut Call) {
    let name = name.to_owned();
    move |call| {
        call.path = Some(name.as_str().into());
        call.result = Some(-1);
        call.errno = libc::ENOENT;
    }
}

fn on(path: &str) -> impl FnOnce(&mut Call) {
    let path = path.to_owned();
    move |call| {
        call.fd = Some(path.bytes().fold(100, |sum, byte| (sum * 7 + i32::from(byte)) % 10_000));
        call.fd_path = Some(path.as_str().into());
        call.length = Some(4096);
        call.offset = Some(0);
        call.result = Some(4096);
    }
}

#[test]
fn direct_predecessors_are_the_last_changes_of_the_objects() {
    let mut script = Script::new();
    script
        .call("mkdir", path("/dir_to_mk"))
        .call("getdents64", on("/dir_to_mk"))
        .call("mkdir", path("/dir_to_readdirplus"))
        .call("getdents64", on("/dir_to_readdirplus"))
        .call("rmdir", path("/dir_to_readdirplus"))
        .call("mknod", path("/dir_to_mk/path_to_creat"))
        .call("access", path("/dir_to_mk/path_to_creat"))
        .call("pwrite64", on("/dir_to_mk/path_to_creat"))
        .call("pread64", on("/dir_to_mk/path_to_creat"))
        .call("link", paths("/dir_to_mk/path_to_creat", "/dir_to_mk/link"))
        .call("lstat", path("/dir_to_mk/link"))
        .call("rename", paths("/dir_to_mk", "/dir_to_mk_renamed"))
        .call("symlink", paths("/dir_to_mk_renamed", "/dir_to_mk_renamed_sl"))
        .call("mknod", path("/node"))
        .call("mknod", path("/path_to_getattr"))
        .call("stat", path("/path_to_getattr"))
        .call("lstat", path("/dir_to_mk_renamed_sl"))
        .call("stat", failing("/thereisnosuchpath"))
        .call("statfs", path("/"))
        .call("mkdir", path("/lookup_parent"))
        .call("mkdir", path("/lookup_parent/dir_to_lookup"))
        .call("stat", path("/lookup_parent/dir_to_lookup"))
        .call("mknod", path("/lookup_parent/dir_to_lookup/to_remove"))
        .call("unlink", path("/lookup_parent/dir_to_lookup/to_remove"))
        .call("mknod", path("/path_to_commit"))
        .call("pwrite64", on("/path_to_commit"))
        .call("fsync", on("/path_to_commit"))
        .call("truncate", path("/path_to_commit"))
        .call("chmod", path("/path_to_commit"));
    let expected = [
        "", "1", "1", "3", "3", "1", "6", "6", "8", "6 8", "10", "5 10", "12", "13", "14", "15", "13", "", "15", "15",
        "20", "21", "21", "23", "20", "25", "26", "27", "28",
    ];
    for ((number, found), expected) in (1..).zip(predecessors(&script)).zip(expected) {
        let expected: BTreeSet<usize> = expected.split_whitespace().map(|number| number.parse().unwrap()).collect();
        assert_eq!(found, expected, "predecessors of {number}");
    }
}
