//! Our metadata in the footer of a Parquet file.

use crate::model::metadata::FOOTER_KEY;

/// The key `kind` in the JSON of a footer.
#[derive(serde::Deserialize)]
pub struct KindInFooter {
    #[serde(default)]
    pub kind: String,
}

/// The JSON of the metadata among the pairs of a footer.
pub fn json_in(pairs: Option<&Vec<::parquet::file::metadata::KeyValue>>) -> Option<&str> {
    pairs?.iter().find(|pair| pair.key == FOOTER_KEY)?.value.as_deref()
}
