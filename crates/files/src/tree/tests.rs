//! Snapshots, and roots that are made from them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use iosonar_pacing::payload::DataSpec;

use super::*;
use crate::state::{Ignore, Needs, PathMap};

fn settings() -> Settings {
    Settings { data: DataSpec::Zero, seed: 0, is_sparse: false, reset: false, special_files: false }
}

fn plan(tree: &Tree) -> Plan {
    Plan::new(&Needs::default(), Some(tree), &PathMap::default(), &Ignore::default())
}

/// A tree with one of everything that needs no privileges.
fn example(dir: &Path) {
    fs::create_dir_all(dir.join("sub/empty")).unwrap();
    fs::write(dir.join("file"), vec![1; 10_000]).unwrap();
    fs::hard_link(dir.join("file"), dir.join("sub/same")).unwrap();
    symlink("../file", dir.join("sub/link")).unwrap();
    symlink("/etc/passwd", dir.join("absolute")).unwrap();
    let sparse = fs::File::create(dir.join("sparse")).unwrap();
    sparse.set_len(1 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"data", 512 << 10).unwrap();
    fs::set_permissions(dir.join("file"), fs::Permissions::from_mode(0o4751)).unwrap();
    fs::set_permissions(dir.join("sub/empty"), fs::Permissions::from_mode(0o500)).unwrap();
}

#[test]
fn a_snapshot_survives_its_file_and_makes_the_same_tree() {
    let dir = tempfile::tempdir().unwrap();
    let (source, root, file) = (dir.path().join("source"), dir.path().join("root"), dir.path().join("x.tree.parquet"));
    example(&source);
    let tree = Tree::capture(&source, b"/").unwrap();
    tree.save(&file).unwrap();
    let loaded = Tree::load(&file).unwrap();
    let entries = |tree: &Tree| {
        let mut all: Vec<_> = tree.entries().map(|(id, entry)| (tree.path(id), entry.clone())).collect();
        all.iter_mut().for_each(|(_, entry)| entry.parent = EntryId::ROOT);
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    };
    assert_eq!(entries(&tree), entries(&loaded));
    let done = prepare(&RootPath::of(&root), &plan(&loaded), &settings(), |_| {}).unwrap();
    assert_eq!((done.directories, done.files, done.symlinks, done.hard_links), (2, 2, 2, 1));
    let made = Tree::capture(&root, b"/").unwrap();
    for ((path, a), (_, b)) in entries(&tree).into_iter().zip(entries(&made)) {
        let path = String::from_utf8(path).unwrap();
        assert_eq!(
            (a.kind, a.bytes, &a.target, a.group.is_some()),
            (b.kind, b.bytes, &b.target, b.group.is_some()),
            "{path}"
        );
        assert_eq!(a.modified_ns, b.modified_ns, "{path}");
        assert_eq!(a.mode & 0o777, b.mode, "{path}");
        assert_eq!(a.holes.is_empty(), b.holes.is_empty(), "{path}");
    }
    assert_eq!(made.len(), tree.len());
    let again = prepare(&RootPath::of(&root), &plan(&loaded), &settings(), |_| {}).unwrap();
    assert!(again.is_nothing(), "{again:?}");
}

#[test]
fn a_snapshot_under_another_path_is_below_its_path() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("f"), "x").unwrap();
    let tree = Tree::capture(dir.path(), b"/home/u").unwrap();
    let paths: Vec<_> = tree.entries().map(|(id, entry)| (tree.path(id), entry.is_captured)).collect();
    assert_eq!(paths, [(b"/home".to_vec(), false), (b"/home/u".to_vec(), true), (b"/home/u/f".to_vec(), true)]);
}

#[test]
fn reset_brings_the_root_back_and_only_a_root_of_ours() {
    let dir = tempfile::tempdir().unwrap();
    let (source, root) = (dir.path().join("source"), dir.path().join("root"));
    example(&source);
    let plan = plan(&Tree::capture(&source, b"/").unwrap());
    let reset = Settings { reset: true, ..settings() };
    prepare(&RootPath::of(&root), &plan, &settings(), |_| {}).unwrap();
    fs::remove_file(root.join("sub/link")).unwrap();
    fs::write(root.join("file"), vec![1; 20_000]).unwrap();
    fs::create_dir_all(root.join("more/and/more")).unwrap();
    fs::remove_file(root.join("absolute")).unwrap();
    fs::create_dir(root.join("absolute")).unwrap();
    let outside = dir.path().join("outside");
    fs::write(&outside, "untouched").unwrap();
    symlink(&outside, root.join("more/planted")).unwrap();
    let refused = prepare(&RootPath::of(&root), &plan, &settings(), |_| {}).unwrap_err().to_string();
    assert!(refused.contains("/file: too long") && refused.contains("--reset"), "{refused}");
    let done = prepare(&RootPath::of(&root), &plan, &reset, |_| {}).unwrap();
    assert_eq!((done.removed, done.shortened, done.symlinks), (5, 1, 2), "{done:?}");
    assert!(prepare(&RootPath::of(&root), &plan, &reset, |_| {}).unwrap().is_nothing());
    assert_eq!(fs::read(&outside).unwrap(), b"untouched");
    let foreign = dir.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("precious"), "x").unwrap();
    let refused = prepare(&RootPath::of(&foreign), &plan, &reset, |_| {}).unwrap_err().to_string();
    assert!(refused.contains("neither empty nor made"), "{refused}");
    assert!(foreign.join("precious").exists());
    let refused = prepare(&RootPath::of(Path::new("/")), &plan, &settings(), |_| {}).unwrap_err().to_string();
    assert!(refused.contains("root directory"), "{refused}");
}

#[test]
fn planted_links_lead_nowhere_out_of_the_root() {
    let dir = tempfile::tempdir().unwrap();
    let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&outside).unwrap();
    symlink(&outside, root.join("d")).unwrap();
    symlink("../../outside", root.join("up")).unwrap();
    let mut tree = Tree::default();
    for name in [b"d".as_slice(), b"up"] {
        let directory = tree.directory(name);
        tree.add(Entry::new(directory, b"f", Kind::File));
    }
    let result = prepare(&RootPath::of(&root), &plan(&tree), &settings(), |_| {});
    assert!(result.is_err(), "{result:?}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn files_that_are_too_short_grow_and_keep_their_data() {
    let dir = tempfile::tempdir().unwrap();
    let mut tree = Tree::default();
    let mut entry = Entry::new(EntryId::ROOT, b"f", Kind::File);
    (entry.bytes, entry.is_captured, entry.modified_ns) = (3 << 20, true, 1);
    (entry.uid, entry.gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    tree.add(entry);
    let file = dir.path().join("f");
    fs::write(&file, "old").unwrap();
    let root = Confined::open(dir.path()).unwrap();
    let found = differences(&root, &plan(&tree), false, || {});
    assert_eq!(found, [Difference { item: 0, problem: Problem::TooShort { has: 3, needs: 3 << 20 } }]);
    let done = prepare(&RootPath::of(dir.path()), &plan(&tree), &settings(), |_| {}).unwrap();
    assert_eq!((done.extended, done.bytes), (1, (3 << 20) - 3));
    assert_eq!((file.metadata().unwrap().len(), &fs::read(&file).unwrap()[..4]), (3 << 20, b"old\0".as_slice()));
}

#[test]
fn too_little_space_is_found_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let mut tree = Tree::default();
    let mut entry = Entry::new(EntryId::ROOT, b"huge", Kind::File);
    (entry.bytes, entry.is_captured) = (1 << 60, true);
    tree.add(entry);
    let refused = prepare(&RootPath::of(dir.path()), &plan(&tree), &settings(), |_| {}).unwrap_err().to_string();
    assert!(refused.contains("free, but the files need"), "{refused}");
    assert!(!dir.path().join("huge").exists());
}

#[test]
fn hostile_tables_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.tree.parquet");
    for path in [&b"relative"[..], b"/a/../../b", b"/a/."] {
        let mut tree = Tree::default();
        let mut entry = Entry::new(EntryId::ROOT, path.strip_prefix(b"/").unwrap_or(path), Kind::File);
        entry.is_captured = true;
        tree.add(entry);
        tree.save(&file).unwrap();
        let is_relative = path[0] != b'/';
        assert_eq!(Tree::load(&file).is_ok(), is_relative, "saved below the root");
        fs::remove_file(&file).unwrap();
    }
    assert_eq!(beside(Path::new("/x/a.calls.parquet")), Path::new("/x/a.tree.parquet"));
    assert!(dir.path().metadata().unwrap().nlink() > 0);
}

#[test]
fn a_map_moves_absolute_symlink_targets_with_their_files() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    fs::create_dir_all(source.join("etc")).unwrap();
    fs::write(source.join("etc/alias"), "x").unwrap();
    symlink("/etc/alias", source.join("link")).unwrap();
    symlink("etc/alias", source.join("relative")).unwrap();
    let tree = Tree::capture(&source, b"/").unwrap();
    let map = PathMap::parse(b"/ /i0\n").unwrap();
    let plan = Plan::new(&Needs::default(), Some(&tree), &map, &Ignore::default());
    let target = |path: &str| {
        let item = plan.items.iter().find(|item| *item.path == *path.as_bytes()).unwrap();
        String::from_utf8(item.target.as_deref().unwrap().into()).unwrap()
    };
    assert_eq!((target("/i0/link"), target("/i0/relative")), ("/i0/etc/alias".into(), "etc/alias".into()));
}
