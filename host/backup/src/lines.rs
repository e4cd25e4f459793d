//! Rows as text: a JSON array a line. Bytes are written as `{"text": …}` if they are UTF-8, else as
//! `{"hex": …}`.

use anyhow::{Context, bail};
use packhouse_store::Cell;
use serde_json::{Value, json};

/// Appends a row and a line feed.
pub(crate) fn write(row: Vec<Cell>, to: &mut Vec<u8>) -> anyhow::Result<()> {
    let values: Vec<Value> = row.into_iter().map(value).collect();
    serde_json::to_writer(&mut *to, &values).context("failed to write JSON")?;
    to.push(b'\n');
    Ok(())
}

/// Parses a row from a line.
pub(crate) fn read(line: &str) -> anyhow::Result<Vec<Cell>> {
    let values: Vec<Value> = serde_json::from_str(line).context("a row is not a JSON array")?;
    values.into_iter().map(cell).collect()
}

fn value(cell: Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Int(number) => json!(number),
        Cell::Text(text) => Value::String(text),
        Cell::Bytes(bytes) => match String::from_utf8(bytes) {
            Ok(text) => json!({"text": text}),
            Err(other) => json!({"hex": hex::encode(other.into_bytes())}),
        },
    }
}

fn cell(value: Value) -> anyhow::Result<Cell> {
    Ok(match value {
        Value::Null => Cell::Null,
        Value::Number(number) => {
            Cell::Int(number.as_i64().context("a row has a number that is not a 64-bit integer")?)
        }
        Value::String(text) => Cell::Text(text),
        Value::Object(object) => match (object.get("text"), object.get("hex")) {
            (Some(Value::String(text)), None) => Cell::Bytes(text.clone().into_bytes()),
            (None, Some(Value::String(text))) => {
                Cell::Bytes(hex::decode(text).context("a row has bytes that are not hexadecimal")?)
            }
            _ => bail!("a row has an object that is neither text nor hex"),
        },
        Value::Bool(_) | Value::Array(_) => bail!("a row has a value of an unsupported type"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let row = vec![
            Cell::Null,
            Cell::Int(i64::MIN),
            Cell::Int(i64::MAX),
            Cell::Text("a\"\n\u{0}ü".to_owned()),
            Cell::Bytes(Vec::new()),
            Cell::Bytes(b"{\"a\": 1}".to_vec()),
            Cell::Bytes(vec![0xff, 0, 0xfe]),
        ];
        let mut line = Vec::new();
        write(row.clone(), &mut line).unwrap();
        let text = String::from_utf8(line).unwrap();
        assert_eq!(text.lines().count(), 1);
        assert_eq!(read(text.trim_end()).unwrap(), row);
    }

    #[test]
    fn lines_that_are_not_rows_are_refused() {
        for line in [
            "",
            "{}",
            "[true]",
            "[[]]",
            "[{\"text\": 1}]",
            "[{\"hex\": \"x\"}]",
            "[1.5]",
            "[18446744073709551615]",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
