//! Lua without files, clock, addresses and differences between machines, and with limits.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use iosonar_trace::human;
use mlua::chunk::ChunkMode;
use mlua::{Error, Function, HookTriggers, Lua, LuaOptions, Result, StdLib, Table, Value, Variadic, VmState};

use super::settings::lock;
use super::source::{CHUNK, Source};

/// The most operations of an event.
pub const MAX_OPERATIONS: u64 = 1_000_000;
/// How often they are counted.
const COUNTED_EVERY: u32 = 1000;
/// An operation on a long text can take long, so time is limited as well. This ends the program, so it changes no result.
const LONGEST_EVENT: Duration = Duration::from_secs(5);
/// The memory of all instances of a stream, and that of each.
const MEMORY: usize = 16 << 20;
const MEMORY_OF_INSTANCE: usize = 16 << 10;

/// The memory that a script with so many instances may have, in bytes.
pub const fn memory_for(instances: u32) -> usize {
    MEMORY + MEMORY_OF_INSTANCE * instances as usize
}

/// What the present event has used.
#[derive(Default)]
struct EventUsage {
    operations: AtomicU64,
    since: Mutex<Option<Instant>>,
}

/// Lua, and what all instances share.
pub(super) struct Sandbox {
    pub lua: Lua,
    /// The functions and constants of all instances.
    pub shared: Table,
    /// Makes the names of `shared` visible in the variables of an instance.
    meta: Table,
    used: Arc<EventUsage>,
}

/// The parts of Lua's own library that have the same results everywhere and need little time.
const BASE: [&str; 6] = ["assert", "error", "ipairs", "select", "tonumber", "type"];
const MATH: [&str; 15] = [
    "abs",
    "ceil",
    "floor",
    "fmod",
    "huge",
    "max",
    "maxinteger",
    "min",
    "mininteger",
    "modf",
    "pi",
    "sqrt",
    "tointeger",
    "type",
    "ult",
];
const TABLE: [&str; 3] = ["concat", "pack", "unpack"];

/// In Lua, so that their operations count.
const PRELUDE: &str = r#"
local error = error
function table.insert(list, at, value)
  local n = #list
  if value == nil then list[n + 1] = at return end
  if at < 1 or at > n + 1 then error("table.insert: the position is outside of the list", 2) end
  for i = n, at, -1 do list[i + 1] = list[i] end
  list[at] = value
end
function table.remove(list, at)
  local n = #list
  if n == 0 then return nil end
  at = at or n
  if at < 1 or at > n then error("table.remove: the position is outside of the list", 2) end
  local value = list[at]
  for i = at, n do list[i] = list[i + 1] end
  return value
end
local function less(a, b) return a < b end
function table.sort(list, before)
  before = before or less
  local n, from, to, width = #list, list, {}, 1
  while width < n do
    for first = 1, n, 2 * width do
      local a, b, at = first, first + width, first
      local ends_a, ends_b = b, first + 2 * width
      if ends_a > n + 1 then ends_a = n + 1 end
      if ends_b > n + 1 then ends_b = n + 1 end
      while a < ends_a or b < ends_b do
        if a < ends_a and (b >= ends_b or not before(from[b], from[a])) then
          to[at] = from[a]; a = a + 1
        else
          to[at] = from[b]; b = b + 1
        end
        at = at + 1
      end
    end
    if from == list then from, to = to, {} else from, to = to, from end
    width = 2 * width
  end
  if from ~= list then for i = 1, n do list[i] = from[i] end end
end
"#;

impl Sandbox {
    pub fn new(instances: u32) -> Result<Self> {
        let lua = Lua::new_with(StdLib::MATH | StdLib::TABLE, LuaOptions::default())?;
        let globals = lua.globals();
        let shared = lua.create_table()?;
        let all = picked(&lua, &globals, &BASE)?;
        for pair in all.pairs::<String, Value>() {
            let (name, value) = pair?;
            shared.raw_set(name, value)?;
        }
        let math = picked(&lua, &globals.get("math")?, &MATH)?;
        add_functions_of_numbers(&lua, &math)?;
        shared.raw_set("math", math)?;
        shared.raw_set("table", picked(&lua, &globals.get("table")?, &TABLE)?)?;
        shared.raw_set("pairs", lua.create_function(pairs)?)?;
        shared.raw_set("tostring", lua.create_function(to_string)?)?;
        lua.load(PRELUDE).set_name("=lua").set_environment(shared.clone()).exec()?;
        let meta = lua.create_table()?;
        meta.raw_set("__index", &shared)?;
        let used = Arc::new(EventUsage::default());
        let counted = Arc::clone(&used);
        lua.set_hook(HookTriggers::new().every_nth_instruction(COUNTED_EVERY), move |lua, _| counted.check(lua))?;
        lua.set_memory_limit(memory_for(instances))?;
        Ok(Self { lua, shared, meta, used })
    }

    /// Variables of an instance.
    pub fn variables(&self) -> Result<Table> {
        let variables = self.lua.create_table()?;
        variables.set_metatable(Some(self.meta.clone()))?;
        Ok(variables)
    }

    /// An event begins.
    pub fn begin(&self) {
        self.used.operations.store(0, Ordering::Relaxed);
    }

    /// The text as a function of the variables of an instance.
    pub fn compile(&self, source: &Source) -> Result<Function> {
        let load = |text: String| self.lua.load(text).set_name(format!("={CHUNK}")).set_mode(ChunkMode::Text);
        // Alone first, so that errors are about this text.
        load(source.in_place("", "")).into_function()?;
        load(source.in_place("return function(_ENV, ...) ", "\nend")).eval()
    }
}

impl EventUsage {
    fn check(&self, lua: &Lua) -> Result<VmState> {
        let used = self.operations.fetch_add(u64::from(COUNTED_EVERY), Ordering::Relaxed) + u64::from(COUNTED_EVERY);
        if used > MAX_OPERATIONS {
            let most = human::count(MAX_OPERATIONS);
            return Err(here(
                lua,
                &format!(
                    "one event takes more than {most} operations: end the loop earlier, or go on at a timer (wake_in)"
                ),
            ));
        }
        let mut since = lock(&self.since);
        if used == u64::from(COUNTED_EVERY) {
            *since = Some(Instant::now());
        }
        if since.is_some_and(|since| since.elapsed() > LONGEST_EVENT) {
            let most = LONGEST_EVENT.as_secs();
            return Err(here(lua, &format!("one event takes more than {most} s: join fewer and shorter texts")));
        }
        Ok(VmState::Continue)
    }
}

/// An error at the line of the script that runs.
fn here(lua: &Lua, message: &str) -> Error {
    let line_of = |debug: &mlua::debug::Debug<'_>| {
        let is_script = debug.source().short_src.is_some_and(|name| name == CHUNK);
        debug.current_line().filter(|_| is_script)
    };
    let line = (0..8).find_map(|level| lua.inspect_stack(level, line_of).flatten());
    Error::runtime(line.map_or_else(|| message.to_owned(), |line| format!("{CHUNK}:{line}: {message}")))
}

fn picked(lua: &Lua, from: &Table, names: &[&str]) -> Result<Table> {
    let table = lua.create_table()?;
    for name in names {
        table.raw_set(*name, from.raw_get::<Value>(*name)?)?;
    }
    Ok(table)
}

/// Those of the C library differ between machines in the last digit.
fn add_functions_of_numbers(lua: &Lua, math: &Table) -> Result<()> {
    type Unary = (&'static str, fn(f64) -> f64);
    const UNARY: [Unary; 6] = [
        ("exp", libm::exp),
        ("log", libm::log),
        ("sin", libm::sin),
        ("cos", libm::cos),
        ("log2", libm::log2),
        ("atan", libm::atan),
    ];
    for (name, function) in UNARY {
        math.raw_set(name, lua.create_function(move |_, x: f64| Ok(function(x)))?)?;
    }
    math.raw_set("pow", lua.create_function(|_, (x, y): (f64, f64)| Ok(libm::pow(x, y)))?)
}

/// Traverses a table in the order of its keys: numbers, then texts. The order of Lua's own differs from run to run.
fn pairs(lua: &Lua, table: Table) -> Result<Function> {
    let (mut numbers, mut texts) = (Vec::new(), Vec::new());
    for pair in table.pairs::<Value, Value>() {
        match pair? {
            (key @ (Value::Integer(_) | Value::Number(_)), _) => numbers.push(key),
            (Value::String(text), _) => texts.push(text),
            (key, _) => {
                return Err(Error::runtime(format!(
                    "pairs: a key is a {}, which has no order; use keys that are numbers or texts",
                    key.type_name()
                )));
            }
        }
    }
    let value = |key: &Value| match key {
        Value::Integer(number) => *number as f64,
        Value::Number(number) => *number,
        _ => 0.0,
    };
    numbers.sort_by(|a, b| match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
        _ => value(a).total_cmp(&value(b)),
    });
    texts.sort_by_key(|text| text.as_bytes().to_vec());
    let mut keys = numbers.into_iter().chain(texts.into_iter().map(Value::String)).collect::<Vec<_>>().into_iter();
    lua.create_function_mut(move |_, _: Variadic<Value>| {
        for key in keys.by_ref() {
            let value: Value = table.raw_get(&key)?;
            // It may have been removed meanwhile.
            if !value.is_nil() {
                return Ok((key, value));
            }
        }
        Ok((Value::Nil, Value::Nil))
    })
}

/// The text of a value; that of a table or function has no address, which differs from run to run.
fn to_string(lua: &Lua, value: Value) -> Result<Value> {
    match value {
        Value::String(_) => Ok(value),
        Value::Nil | Value::Boolean(_) | Value::Integer(_) | Value::Number(_) => {
            let text = value.to_string()?;
            Ok(Value::String(lua.create_string(text)?))
        }
        other => Ok(Value::String(lua.create_string(other.type_name())?)),
    }
}
