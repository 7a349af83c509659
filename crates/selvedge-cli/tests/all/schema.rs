//! A checker for the part of JSON Schema that our own schemas use: `type`, `required`, `properties`,
//! `additionalProperties: false`, `items`, `minItems`, `enum`, `minimum`, `prefix` (of strings), and
//! `$ref` to a part of the schema.

use serde_json::Value;

/// Everything in `value` that `schema` does not allow.
pub(crate) fn violations(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Checker { root: schema }.check(schema, value, "$", &mut found);
    found
}

struct Checker<'a> {
    root: &'a Value,
}

impl Checker<'_> {
    fn check(&self, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
        if let Some(name) = schema["$ref"].as_str() {
            let schema = self.root.pointer(name.trim_start_matches('#'));
            let schema = schema.unwrap_or(&Value::Null);
            assert!(schema.is_object(), "no definition of {name}");
            return self.check(schema, value, at, found);
        }
        let has_type = |name: &str| match name {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            other => panic!("unknown type {other}"),
        };
        let allowed = match &schema["type"] {
            Value::String(name) => has_type(name),
            Value::Array(names) => names.iter().filter_map(Value::as_str).any(has_type),
            _ => true,
        };
        let mut complain = |what: String| found.push(format!("{at}: {what}: {value}"));
        if !allowed {
            return complain(format!("not of type {}", schema["type"]));
        }
        if let Some(values) = schema["enum"].as_array()
            && !values.contains(value)
        {
            complain(format!("not one of {values:?}"));
        }
        if let (Some(least), Some(number)) = (schema["minimum"].as_f64(), value.as_f64())
            && number < least
        {
            complain(format!("less than {least}"));
        }
        if let (Some(prefix), Some(text)) = (schema["prefix"].as_str(), value.as_str())
            && !text.starts_with(prefix)
        {
            complain(format!("does not begin with {prefix}"));
        }
        if let (Some(least), Some(items)) = (schema["minItems"].as_u64(), value.as_array())
            && (items.len() as u64) < least
        {
            complain(format!("fewer than {least} items"));
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            let name = name.as_str().expect("a name");
            if value.get(name).is_none() {
                found.push(format!("{at}: {name} is missing"));
            }
        }
        for (name, member) in value.as_object().into_iter().flatten() {
            match schema["properties"].get(name) {
                Some(schema) => self.check(schema, member, &format!("{at}.{name}"), found),
                None if schema["additionalProperties"] == false => {
                    found.push(format!("{at}: {name} is not allowed"));
                }
                None => {}
            }
        }
        if schema["items"].is_object() {
            for (n, item) in value.as_array().into_iter().flatten().enumerate() {
                self.check(&schema["items"], item, &format!("{at}[{n}]"), found);
            }
        }
    }
}

#[test]
fn violations_are_found() {
    let schema = serde_json::json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": { "a": { "type": "array", "minItems": 2, "items": { "enum": [1, 2] } } },
    });
    let count = |value| violations(&schema, &value).len();
    assert_eq!(count(serde_json::json!({ "a": [1, 2] })), 0);
    assert_eq!(count(serde_json::json!({ "a": [3] })), 2);
    assert_eq!(count(serde_json::json!({ "b": 1 })), 2);
    assert_eq!(count(serde_json::json!([])), 1);
}
