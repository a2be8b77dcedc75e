-- Parts of the text that depend on what a run holds.
--
--   ::: {if="run/figures/stem run.name"}     dropped unless the run has all that is named
--   ::: {holds="run.name < run.other; …"}     stops the build where a comparison (<, >, =) fails:
--                                             for what the prose says in words; = also of words

local common = dofile(pandoc.path.join({ pandoc.path.directory(PANDOC_SCRIPT_FILE), "common.lua" }))

local function there(name)
  if not name:find("/", 1, true) then
    return common.known(name)
  end
  return common.exists(common.path(name, name:find("/tables/", 1, true) and ".md" or ".svg"))
end

local function number(word)
  local raw = common.known(word) and common.context.values[word] or word
  return tonumber(raw) or common.fail("'" .. word .. "' is not a number of a run")
end

local function fail(left, sign, right, is)
  common.fail("the text says " .. left .. " " .. sign .. " " .. right .. ", but it is " .. is
    .. "; change the sentence there")
end

local function check(claim)
  local left, sign, right = claim:match("^%s*(%S+)%s+([<>=])%s+(%S+)%s*$")
  if not left then
    common.fail("cannot read the comparison '" .. claim .. "'")
  end
  local word = common.known(left) and common.context.values[left]
  if word and sign == "=" and not tonumber(word) then
    return word == right or fail(left, sign, right, word)
  end
  local a, b = number(left), number(right)
  if not (sign == "<" and a < b or sign == ">" and a > b or sign == "=" and a == b) then
    fail(left, sign, right, a .. " and " .. b)
  end
end

return {
  {
    traverse = "topdown", -- what is dropped need not exist
    Div = function(div)
      if div.attributes["if"] then
        for name in div.attributes["if"]:gmatch("%S+") do
          if not there(name) then
            return {}, false
          end
        end
        return div.content
      elseif div.attributes.holds then
        for claim in div.attributes.holds:gmatch("[^;]+") do
          check(claim)
        end
        return div.content
      end
    end,
  },
}
