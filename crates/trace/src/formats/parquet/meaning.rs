//! What the schema says that the whole numbers of a column mean: nanoseconds of their own unit, cents of a decimal, no sign.
//!
//! The types are those of <https://github.com/apache/parquet-format/blob/master/LogicalTypes.md>. What newer producers say
//! as a logical type older ones say as a converted type; the newer one counts.

use ::parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use ::parquet::schema::types::ColumnDescriptor;

use super::column::Column;

/// What a column's whole numbers mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// What they are.
    Plain,
    /// 32 bits without a sign.
    Unsigned,
    /// That many nanoseconds each.
    Times(i64),
}

/// What stands for a time that has no place in 64 bits of nanoseconds. No product of [`Meaning::Times`] is this.
pub const TOO_LARGE: i64 = i64::MIN;

/// What the numbers of that column of a file mean for ours, or why they can't be taken for it.
pub fn meaning(column: &Column, found: &ColumnDescriptor) -> Result<Meaning, String> {
    let whole = matches!(found.physical_type(), Physical::INT32 | Physical::INT64);
    let decimals = match found.logical_type_ref() {
        Some(LogicalType::Decimal(decimal)) => decimal.scale,
        _ if found.converted_type() == ConvertedType::DECIMAL => found.type_scale(),
        _ => 0,
    };
    if whole && decimals != 0 {
        return Err(format!("its column {} has decimals ({decimals} of them), and not whole numbers", found.name()));
    }
    if found.converted_type() == ConvertedType::DATE {
        return Err(format!("its column {} holds dates", found.name()));
    }
    match unit(found).filter(|_| whole) {
        Some(_) if !column.name.ends_with("_ns") => Err(format!("its column {} holds times", found.name())),
        Some(1) => Ok(Meaning::Plain),
        Some(nanos) => Ok(Meaning::Times(nanos)),
        None if found.converted_type() == ConvertedType::UINT_32 => Ok(Meaning::Unsigned),
        None => Ok(Meaning::Plain),
    }
}

/// Nanoseconds of the unit, if the column holds times.
fn unit(found: &ColumnDescriptor) -> Option<i64> {
    let of = |unit: &TimeUnit| match unit {
        TimeUnit::MILLIS => 1_000_000,
        TimeUnit::MICROS => 1000,
        TimeUnit::NANOS => 1,
    };
    match found.logical_type_ref() {
        Some(LogicalType::Timestamp(time)) => return Some(of(&time.unit)),
        Some(LogicalType::Time(time)) => return Some(of(&time.unit)),
        _ => {}
    }
    match found.converted_type() {
        ConvertedType::TIMESTAMP_MILLIS | ConvertedType::TIME_MILLIS => Some(1_000_000),
        ConvertedType::TIMESTAMP_MICROS | ConvertedType::TIME_MICROS => Some(1000),
        _ => None,
    }
}

impl Meaning {
    /// The number as a cell has it.
    pub fn of(self, value: i64) -> i64 {
        match self {
            Self::Plain => value,
            // Of what the library has as a signed number.
            Self::Unsigned => i64::from(value as u32),
            Self::Times(nanos) => value.checked_mul(nanos).unwrap_or(TOO_LARGE),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;
    use std::sync::Arc;

    use ::parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
    use ::parquet::file::writer::SerializedFileWriter;
    use ::parquet::schema::parser::parse_message_type;

    use crate::formats::format::Opened;
    use crate::model::metadata::Metadata;
    use crate::model::request::Request;

    /// A load of two reads, of which the schema says that of times, sectors and latencies.
    fn table(path: &Path, [at, sector, latency]: [&str; 3], times: [i64; 2]) {
        let schema = parse_message_type(&format!(
            "message m {{ required int64 at_ns {at}; required int64 sector {sector}; required int64 sectors;
                          required binary op (UTF8); required int32 latency_ns {latency}; }}"
        ));
        let schema = Arc::new(schema.unwrap());
        let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        for numbers in [Some(times), Some([100, 200]), Some([8, 8]), None] {
            let mut column = group.next_column().unwrap().unwrap();
            match numbers {
                Some(numbers) => column.typed::<Int64Type>().write_batch(&numbers, None, None).unwrap(),
                None => {
                    let reads = [ByteArray::from("read"), ByteArray::from("read")];
                    column.typed::<ByteArrayType>().write_batch(&reads, None, None).unwrap()
                }
            };
            column.close().unwrap();
        }
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(&[5, 6], None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
    }

    fn read(types: [&str; 3], times: [i64; 2]) -> Result<(Vec<Request>, Metadata), String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.parquet");
        table(&path, types, times);
        let Opened::Load(mut reader) = crate::open(&path).map_err(|e| e.to_string())? else { panic!("not a load") };
        let rows = std::iter::from_fn(|| reader.next().unwrap()).collect();
        Ok((rows, reader.metadata().clone()))
    }

    #[test]
    fn times_are_of_their_unit() {
        for (at, latency, [at_unit, latency_unit]) in [
            ("", "", [1, 1]),
            ("(TIMESTAMP(NANOS,false))", "", [1, 1]),
            ("(TIMESTAMP(MICROS,false))", "(TIME(MILLIS,true))", [1000, 1_000_000]),
            ("(TIMESTAMP(MILLIS,true))", "(TIME_MILLIS)", [1_000_000, 1_000_000]),
            ("(TIMESTAMP_MILLIS)", "(UINT_32)", [1_000_000, 1]),
            ("(TIMESTAMP_MICROS)", "(DECIMAL(9,0))", [1000, 1]),
            ("(TIME_MICROS)", "", [1000, 1]),
            ("(TIME(NANOS,true))", "", [1, 1]),
        ] {
            let (rows, about) = read([at, "", latency], [1, 2000]).unwrap();
            let times: Vec<_> = rows.iter().map(|row| (row.at.0, row.latency.unwrap().0)).collect();
            assert_eq!(times, [(at_unit, 5 * latency_unit), (2000 * at_unit, 6 * latency_unit)], "{at} {latency}");
            assert_eq!(about.counts.bad_lines, 0);
        }
    }

    #[test]
    fn a_time_beyond_64_bits_of_nanoseconds_is_a_bad_row() {
        // The end of the year 9999, which stands for "never" in some databases.
        let (rows, about) = read(["(TIMESTAMP(MILLIS,true))", "", ""], [7, 253_402_300_799_000]).unwrap();
        assert_eq!((rows.len(), rows[0].at.0, about.counts.bad_lines), (1, 7_000_000, 1));
        assert!(about.notices[0].contains("row 1 left out: a time is too large"), "{:?}", about.notices);
    }

    #[test]
    fn what_is_no_whole_number_of_its_unit_is_refused() {
        assert_eq!(read(["", "(DECIMAL(10,0))", ""], [1, 2]).unwrap().0[0].sector.0, 100);
        let said = |types| read(types, [1, 2]).unwrap_err();
        assert!(said(["", "(DECIMAL(10,2))", ""]).contains("its column sector has decimals (2 of them)"));
        assert!(said(["", "(TIMESTAMP(MICROS,true))", ""]).contains("its column sector holds times"));
        assert!(said(["", "", "(DATE)"]).contains("its column latency_ns holds dates"));
    }
}
