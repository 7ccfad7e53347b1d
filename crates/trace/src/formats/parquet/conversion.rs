//! Converts whole numbers according to their type in the schema: times in other units, unsigned numbers. Decimals with
//! fractions and dates are refused.
//!
//! The types are those of <https://github.com/apache/parquet-format/blob/master/LogicalTypes.md>. Newer producers write a
//! logical type, older ones a converted type; the logical type takes precedence.

use ::parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use ::parquet::schema::types::ColumnDescriptor;

use super::column::Column;

/// The conversion of a column's whole numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conversion {
    None,
    /// Unsigned 32 bits, which the library reads as signed.
    Unsigned,
    /// Times in units of that many nanoseconds.
    ToNanos(i64),
}

/// The result for a time that exceeds 64 bits of nanoseconds. No valid product of [`Conversion::ToNanos`] has this value.
const TOO_LARGE: i64 = i64::MIN;

/// The conversion from a column of a file to `column`, or why there is none.
pub fn conversion(column: &Column, found: &ColumnDescriptor) -> Result<Conversion, String> {
    let whole = matches!(found.physical_type(), Physical::INT32 | Physical::INT64);
    let decimals = match found.logical_type_ref() {
        Some(LogicalType::Decimal(decimal)) => decimal.scale,
        _ if found.converted_type() == ConvertedType::DECIMAL => found.type_scale(),
        _ => 0,
    };
    if whole && decimals != 0 {
        return Err(format!("its column {} has {decimals} decimal places instead of whole numbers", found.name()));
    }
    if found.converted_type() == ConvertedType::DATE {
        return Err(format!("its column {} holds dates", found.name()));
    }
    match unit(found).filter(|_| whole) {
        Some(_) if !column.name.ends_with("_ns") => Err(format!("its column {} holds times", found.name())),
        Some(1) => Ok(Conversion::None),
        Some(nanos) => Ok(Conversion::ToNanos(nanos)),
        None if found.converted_type() == ConvertedType::UINT_32 => Ok(Conversion::Unsigned),
        None => Ok(Conversion::None),
    }
}

/// The unit of a column of times, in nanoseconds.
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

impl Conversion {
    /// Converts a number.
    pub fn apply(self, value: i64) -> i64 {
        match self {
            Self::None => value,
            Self::Unsigned => i64::from(value as u32),
            Self::ToNanos(nanos) => value.checked_mul(nanos).unwrap_or(TOO_LARGE),
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

    /// A load of two reads, with these types of times, sectors and latencies in its schema.
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
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.parquet");
        table(&path, types, times);
        let Opened::Load(mut reader) = crate::open(&path).map_err(|e| e.to_string())? else { panic!("not a load") };
        let rows = std::iter::from_fn(|| reader.next().unwrap()).collect();
        Ok((rows, reader.metadata().clone()))
    }

    #[test]
    fn times_are_converted_from_their_unit() {
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
        assert!(about.warnings[0].contains("row 1 left out: a time is 292 years or more"), "{:?}", about.warnings);
    }

    #[test]
    fn decimal_places_dates_and_misplaced_times_are_refused() {
        assert_eq!(read(["", "(DECIMAL(10,0))", ""], [1, 2]).unwrap().0[0].sector.0, 100);
        let error = |types| read(types, [1, 2]).unwrap_err();
        assert!(error(["", "(DECIMAL(10,2))", ""]).contains("its column sector has 2 decimal places"));
        assert!(error(["", "(TIMESTAMP(MICROS,true))", ""]).contains("its column sector holds times"));
        assert!(error(["", "", "(DATE)"]).contains("its column latency_ns holds dates"));
    }
}
