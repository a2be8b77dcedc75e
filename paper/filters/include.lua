-- Tables and figures of the runs.
--
--   ::: {#tbl-x src="run/tables/stem" widths="1 3"}      the run's table with this caption;
--                                                        long=yes lets it run over pages in the PDF
--   ![caption](run/figures/stem){#fig-x alt="…"}          the run's figure, PDF or SVG

local common = dofile(pandoc.path.join({ pandoc.path.directory(PANDOC_SCRIPT_FILE), "common.lua" }))
local typst, latex, html = FORMAT == "typst", FORMAT == "latex", FORMAT:match("html")
local suffix = html and ".svg" or ".pdf"
local GREEK = { ["δ"] = "\\delta", ["Δ"] = "\\Delta", ["κ"] = "\\kappa", ["ρ"] = "\\rho",
  ["τ"] = "\\tau", ["π"] = "\\pi", ["−"] = "-", ["≥"] = "\\geq", ["≤"] = "\\leq",
  ["→"] = "\\to", ["×"] = "\\times", ["₊"] = "_{+}", ["₋"] = "_{-}", ["⁺"] = "^{+}" }

local function read_table(div)
  local path = common.path(div.attributes.src, ".md")
  local file = io.open(path)
  if not file then
    common.fail(path .. ": no such table; run the figures stage of that run first")
  end
  -- columns: a long line of a pipe table must not turn into relative widths
  local content = pandoc.read(file:read("a"), "markdown-citations", { columns = 100000 }).blocks
  file:close()
  local found = content:filter(function(block) return block.t == "Table" end)[1]
  if not found then
    common.fail(path .. ": holds no table")
  end
  found.identifier = div.identifier
  found.caption.long = div.content
  return found
end

-- "1 3" to column widths that fill the line; without it columns are as wide as their text.
local function set_widths(found, widths)
  local parts, sum = {}, 0
  for part in widths:gmatch("%S+") do
    table.insert(parts, tonumber(part))
    sum = sum + tonumber(part)
  end
  if #parts ~= #found.colspecs then
    common.fail(found.identifier .. ": widths names " .. #parts .. " columns, the table has "
      .. #found.colspecs)
  end
  for i, part in ipairs(parts) do
    found.colspecs[i] = { found.colspecs[i][1], part / sum }
  end
end

local function place_image(image)
  local path = common.path(image.src, suffix)
  if not common.exists(path) then
    common.fail(path .. ": no such figure; run the figures stage of that run first")
  end
  if typst then -- pandoc drops the alternative text here
    local alt = pandoc.utils.stringify(image.caption):gsub('["\\]', "\\%0")
    local width = image.attributes.width and ", width: " .. image.attributes.width or ""
    return pandoc.RawInline("typst",
      '#image("' .. common.absolute(path) .. '"' .. width .. ', alt: "' .. alt .. '")')
  end
  image.src = path
  if latex then
    local folder = common.absolute(common.context.folder)
    image.src = pandoc.path.make_relative(common.absolute(path), folder, true)
  end
  return image
end

-- What LaTeX calls thanks stands below the author elsewhere.
local function place_note(meta)
  meta.thanks = meta.note
  return meta
end

return {
  {
    Meta = latex and place_note or nil,
    Div = function(div)
      if div.attributes.src then
        local found = read_table(div)
        if div.attributes.widths then
          set_widths(found, div.attributes.widths)
        end
        if typst and div.attributes.long then
          return { pandoc.RawBlock("typst", "#[#set figure(placement: none)\n#long.update(true)"),
            found, pandoc.RawBlock("typst", "#long.update(false)]") }
        end
        return found
      end
    end,
    Image = place_image,
  },
  {
    Str = latex and function(el) -- text fonts of LaTeX have no Greek
      local parts, plain = {}, ""
      for _, code in utf8.codes(el.text) do
        local char = utf8.char(code)
        if GREEK[char] then
          table.insert(parts, pandoc.Str(plain))
          table.insert(parts, pandoc.Math("InlineMath", GREEK[char]))
          plain = ""
        else
          plain = plain .. char
        end
      end
      if #parts > 0 then
        table.insert(parts, pandoc.Str(plain))
        return parts
      end
    end or nil,
  },
}
