//! Metadata of transformed loads: epoch, warnings and losses.

use super::joined::file_with;
use super::*;

pub fn with(change: impl FnOnce(&mut Metadata), requests: Vec<Request>) -> Rows {
    let mut metadata = load(Vec::new()).metadata().clone();
    change(&mut metadata);
    Box::new(Given { requests: requests.into_iter(), metadata })
}

#[test]
fn the_epoch_moves_with_time_zero() {
    for (pipeline, epoch) in [
        ("select from=3", Some(7 * SECOND)),
        ("select from=3 base=zero", Some(10 * SECOND)),
        ("scale time=1", Some(7 * SECOND)),
        // Not known in advance to begin at zero.
        ("scale time=2", None),
        ("derived snippet=2", None),
        ("ramped slope=2", None),
        ("cmd", None),
    ] {
        let rows = with(|metadata| metadata.epoch_unix_ns = Some(7 * SECOND), regular(10));
        let (_, metadata) = all(parse(pipeline).unwrap().apply(rows).unwrap());
        assert_eq!(metadata.epoch_unix_ns, epoch, "{pipeline}");
    }
}

#[test]
fn derived_lists_its_snippets_in_one_warning() {
    let requests = (0..300).flat_map(|n| vec![Request { at: Nanos(n * SECOND), ..regular(1)[0] }; n as usize + 1]);
    let rows = parse("derived snippet=1").unwrap().apply(load(requests.collect())).unwrap();
    let (_, metadata) = all(rows);
    let [warning] = metadata.warnings.as_slice() else { panic!("{:?}", metadata.warnings) };
    assert!(warning.starts_with("derived: 299 snippets of 1 s, as IOPS@SECOND: 299@298 298@297 "), "{warning}");
    assert!(warning.ends_with(" 2@1 1@0"), "{warning}");
    // Above the limit.
    let requests = (0..1002).map(|n| Request { at: Nanos(n * SECOND), ..regular(1)[0] });
    let rows = parse("derived snippet=1").unwrap().apply(load(requests.collect())).unwrap();
    let warning = all(rows).1.warnings.remove(0);
    assert!(warning.ends_with(" 1@999 … down to 1"), "{warning}");
}

#[test]
fn joined_loads_keep_their_warnings() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cut.load");
    std::fs::write(&file, "start ; sector; length ; op\n0.0 ; 8 ; 8 ; R\n1.0 ; x ; 8 ; R\n2.0 ; 8 ; 8 ; R\n3.0 ; 8")
        .unwrap();
    for transform in ["merge", "append", "adjacent"] {
        let rows = with(|metadata| metadata.warning("the first is strange"), regular(3));
        let mut rows = parse(&format!("{transform} with={}", file.display())).unwrap().apply(rows).unwrap();
        while rows.next().unwrap().is_some() {}
        let warnings = &rows.metadata().warnings;
        let count = |text: &str| warnings.iter().filter(|warning| warning.starts_with(text)).count();
        assert_eq!(count("the first is strange"), 1, "{transform}: {warnings:?}");
        assert_eq!(count("load 2: line 3 left out"), 1, "{transform}: {warnings:?}");
        assert_eq!(count("load 2: line 5 has no newline"), 1, "{transform}: {warnings:?}");
    }
}

#[test]
fn scale_keeps_the_epoch_of_loads_known_to_begin_at_zero() {
    let directory = tempfile::tempdir().unwrap();
    for (from, epoch) in [(0, Some(7 * SECOND)), (1, None)] {
        let file = file_with(&directory, "x.load.parquet", from, |metadata| metadata.epoch_unix_ns = Some(7 * SECOND));
        let rows = parse("scale time=2").unwrap().apply(crate::open_load(&file).unwrap()).unwrap();
        assert_eq!(rows.metadata().epoch_unix_ns, epoch, "from {from} s on");
    }
}

#[test]
fn losses_are_counted_before_the_load_ends() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("bad.load");
    let rows: String = (1..9).map(|n| format!("{n}.0 ; 8 ; 8 ; R\n")).collect();
    std::fs::write(&file, format!("start ; sector; length ; op\n0.0 ; 8 ; 8 ; R\n0.5 ; x ; 8 ; R\n{rows}")).unwrap();
    let merge = format!("merge with={} | slip", file.display());
    for pipeline in ["slip", "slip | select to=5 | scale time=2", "repeat | slip", "remap map=0:x", merge.as_str()] {
        let mut rows = parse(pipeline).unwrap().apply(crate::open_load(&file).unwrap()).unwrap();
        // A merge counts the losses of both loads.
        (0..5).for_each(|_| assert!(rows.next().unwrap().is_some()));
        let (metadata, loads) = (rows.metadata(), if pipeline == merge { 2 } else { 1 });
        assert_eq!((metadata.counts.bad_lines, metadata.warnings.len()), (loads, loads as usize), "{pipeline}");
        assert_eq!((metadata.counts.requests, metadata.counts.reads), (5, 5), "{pipeline}");
    }
}

#[test]
fn anonymise_reports_devices_on_which_no_region_moved() {
    let edited_warnings = |pipeline: &str| all(parse(pipeline).unwrap().apply(load(regular(100))).unwrap()).1.warnings;
    let warnings = edited_warnings("anonymise key=secret");
    assert!(
        warnings[0].contains("no position changed on 1 of 2 devices, which have too few regions of 131072"),
        "{warnings:?}"
    );
    assert!(edited_warnings("anonymise key=secret region=8s").is_empty());
    // Of two regions, both or none move.
    let both_ways: BTreeSet<bool> = (0..20)
        .map(|key| {
            let rows = parse(&format!("anonymise region=8s key={key}")).unwrap().apply(load(regular(2))).unwrap();
            let (requests, metadata) = all(rows);
            let is_unmoved = requests.iter().map(|request| request.sector.0).eq([0, 8]);
            assert_eq!(metadata.warnings.len(), usize::from(is_unmoved));
            is_unmoved
        })
        .collect();
    assert_eq!(both_ways.len(), 2);
}

#[test]
fn anonymise_drops_epoch_and_clocks() {
    let rows = with(
        |metadata| {
            metadata.epoch_unix_ns = Some(7 * SECOND);
            metadata.clocks = Some(crate::Clocks { unix_ns: 7 * SECOND, monotonic_ns: SECOND });
        },
        regular(10),
    );
    let rows = parse("anonymise key=secret").unwrap().apply(rows).unwrap();
    assert_eq!((rows.metadata().epoch_unix_ns, rows.metadata().clocks), (None, None));
}

#[test]
fn anonymise_permutes_loads_of_one_device_alike() {
    let sectors = |pipeline: &str, rows: Rows| {
        let (requests, metadata) = all(parse(pipeline).unwrap().apply(rows).unwrap());
        (requests.iter().map(|request| request.sector.0).collect::<Vec<_>>(), metadata)
    };
    // 100 and 120 regions are both rounded up to 128.
    let pipeline = "anonymise region=8s key=secret";
    let (shorter, longer) = (sectors(pipeline, load(regular(100))).0, sectors(pipeline, load(regular(120))).0);
    assert_eq!(shorter, longer[..100]);
    assert!(longer.iter().all(|sector| *sector < 128 * 8));
    // If the size is known: all regions, including the partial one at the end.
    let sized = |count: u64| {
        with(
            |metadata| metadata.devices = vec![Device { name: "sda".into(), sectors: Some(8 * 99 + 3) }],
            regular(count),
        )
    };
    let ((shorter, metadata), (longer, _)) = (sectors(pipeline, sized(10)), sectors(pipeline, sized(99)));
    assert_eq!(shorter, longer[..10]);
    assert_eq!(metadata.devices[0].sectors, Some(800));
    assert_eq!(longer.iter().collect::<BTreeSet<_>>().len(), 99);
    assert!(longer.iter().all(|sector| *sector < 800));
    assert!((1..20).any(|key| {
        let last = [Request { sector: Sector(792), sectors: Sectors(3), ..regular(1)[0] }];
        let rows = with(|metadata| metadata.devices = sized(0).metadata().devices.clone(), last.to_vec());
        sectors(&format!("anonymise region=8s key={key}"), rows).0 != [792]
    }));
}

#[test]
fn subst_to_flush_drops_position_and_length() {
    let (requests, _) = all(parse("subst from=R to=flush").unwrap().apply(load(regular(3))).unwrap());
    assert_eq!((requests[1].op, requests[1].sector.0, requests[1].sectors.0), (Op::Flush, 0, 0));
    assert_eq!((requests[0].op, requests[0].sectors.0), (Op::Write, 8));
    for to in ["W", "read", "discard"] {
        let error = parse(&format!("subst from=flush to={to}")).unwrap_err().to_string();
        assert!(error.contains("a flush cannot become a"), "{error}");
    }
    assert!(parse("subst from=flush to=flush").is_ok());
}
