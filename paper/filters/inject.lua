-- {{run.name}} or {{run.name|format}} becomes the value of that name in the run's results.json.
--
-- Formats: printf's (%.3f); one that ends in %% shows a share as per cent; `,` groups thousands;
-- `words` spells a count from none to twelve; `p` a p value with its sign (= 0.002, < 0.001). In a
-- pipe table's cell the bar is written \|.
--
-- A table row with {{run.name.*}} is repeated for everything that the run has a run.name.x of,
-- a model as a rule; {{*}} is the x, and what is not there for it is a dash.

local common = dofile(pandoc.path.join({ pandoc.path.directory(PANDOC_SCRIPT_FILE), "common.lua" }))
local WORDS = { [0] = "none", "one", "two", "three", "four", "five", "six", "seven", "eight",
  "nine", "ten", "eleven", "twelve" }

local function shown(number, format)
  if format == "," then
    local text, times = string.format("%d", number), 1
    while times > 0 do
      text, times = text:gsub("^(-?%d+)(%d%d%d)", "%1,%2")
    end
    return text
  elseif format == "words" then
    return WORDS[number] or string.format("%d", number)
  elseif format == "p" then
    return number < 0.001 and "< 0.001" or string.format("= %.3f", number)
  end
  local scale = format:match("%%%%$") and 100 or 1
  local text = string.format(format, number * scale)
  return tonumber(text) == 0 and text:gsub("^-", "") or text
end

local function value(key, format)
  local raw = common.context.values[key]
  if raw == nil then
    common.fail("unknown value {{" .. key .. "}}")
  elseif not common.known(key) then
    common.fail("{{" .. key .. "}} has no value in this run (null)")
  elseif format == "" then
    return raw
  end
  local number = math.tointeger(tonumber(raw)) or tonumber(raw)
  local done, text = pcall(shown, number, format)
  if not done then
    common.fail("{{" .. key .. "|" .. format .. "}}: the format does not fit the value " .. raw)
  end
  return text
end

-- Every {{…}} of `text` replaced; what is between and the values go through `wrap` and `plain`.
local function inject(text, plain, wrap)
  local parts, position = {}, 1
  for before, key, format, after in text:gmatch("()%{%{([^{}|]+)|?([^{}]*)%}%}()") do
    if before > position then
      table.insert(parts, plain(text:sub(position, before - 1)))
    end
    table.insert(parts, wrap(value(key, format), key))
    position = after
  end
  if text:find("{{", position, true) then
    common.fail("cannot read '" .. text .. "'; a value is {{run.name}} or {{run.name|format}}")
  end
  if position <= #text then
    table.insert(parts, plain(text:sub(position)))
  end
  return parts
end

local function same(text) return text end

local function typeset(text, key)
  local inline = pandoc.Str((text:gsub("^-(%d)", "−%1"):gsub("^([=<]) ", "%1\u{a0}")))
  return FORMAT:match("html") and pandoc.Span(inline, { class = "value", title = key }) or inline
end

-- The x of every `prefix`x that has a value, in order.
local function endings(prefix)
  local found = pandoc.List({})
  for key in pairs(common.context.values) do
    if key:sub(1, #prefix) == prefix and common.known(key) then
      found:insert(key:sub(#prefix + 1))
    end
  end
  found:sort()
  return found
end

local function fill(row, ending)
  return row:clone():walk({
    Str = function(el)
      local key, format = el.text:match("^{{(.-)%*|?([^{}]*)}}$")
      if not key then
        return nil
      end
      local full = key .. ending
      local shown = key == "" and ending or common.known(full) and value(full, format) or "–"
      return pandoc.Str((shown:gsub("^-(%d)", "−%1")))
    end,
  })
end

local function repeat_rows(tbl)
  for _, body in ipairs(tbl.bodies) do
    local rows = pandoc.List({})
    for _, row in ipairs(body.body) do
      local text = table.concat(row.cells:map(function(cell)
        return pandoc.utils.stringify(cell.contents)
      end), " ")
      local prefix = text:match("{{([^{}|]+%.)%*")
      if prefix then
        rows:extend(endings(prefix):map(function(ending) return fill(row, ending) end))
      else
        rows:insert(row)
      end
    end
    body.body = rows
  end
  return tbl
end

return {
  { Table = repeat_rows },
  {
    Str = function(el)
      return el.text:find("{{", 1, true) and inject(el.text, pandoc.Str, typeset) or nil
    end,
    Math = function(el)
      if el.text:find("{{%a") then
        el.text = table.concat(inject(el.text, same, same))
        return el
      end
    end,
  },
}
