-- What the three filters share: the runs and their values, and one way to fail.

local common = {}

-- Written by esfp/paper.py: `values` by dotted name (as strings, or null), `runs` by name
-- (folders), `folder` of the document that is being built.
local file = assert(io.open(os.getenv("ESFP_PAPER")))
common.context = pandoc.json.decode(file:read("a"), false)
file:close()

-- Ends pandoc; esfp/paper.py shows what follows the mark as its one line.
function common.fail(message)
  error("@@" .. message .. "@@", 0)
end

-- 'run/tables/stem' and a suffix to the path of that run's file.
function common.path(name, suffix)
  local run, rest = name:match("^([^/]+)/(.+)$")
  local folder = run and common.context.runs[run]
  if not folder then
    common.fail("'" .. name .. "' does not begin with the name of a run")
  end
  return pandoc.path.join({ folder, rest .. suffix })
end

function common.absolute(path)
  return pandoc.path.join({ pandoc.system.get_working_directory(), path })
end

-- Whether a run has a number of that name.
function common.known(key)
  local value = common.context.values[key]
  return value ~= nil and value ~= pandoc.json.null
end

function common.exists(path)
  local handle = io.open(path)
  return handle ~= nil and handle:close()
end

return common
