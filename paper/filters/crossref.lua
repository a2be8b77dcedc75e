-- Numbers figures, tables, equations and sections, and resolves @fig-x, @tbl-x, @eq-x, @sec-x.
--
-- An equation's label follows it: $$ … $$ {#eq-x}. Typst and LaTeX number by themselves, from
-- the labels set here; HTML gets the numbers as text. Runs before --citeproc.

local common = dofile(pandoc.path.join({ pandoc.path.directory(PANDOC_SCRIPT_FILE), "common.lua" }))
local typst, latex = FORMAT == "typst", FORMAT == "latex"
local NAMES = { fig = "Figure", tbl = "Table", eq = "Equation", sec = "Section" }
local counts = { fig = 0, tbl = 0, eq = 0 }
local sections = {}
local numbers = {}

local function kind(id)
  local prefix = id:match("^(%a+)%-")
  return NAMES[prefix] and prefix
end

local function define(id, number)
  if numbers[id] then
    common.fail("the label " .. id .. " is defined twice")
  end
  numbers[id] = tostring(number)
end

local function count(id)
  local prefix = kind(id)
  counts[prefix] = counts[prefix] + 1
  define(id, counts[prefix])
end

local function count_header(header)
  if header.classes:includes("unnumbered") then
    return
  end
  for level = #sections, header.level + 1, -1 do
    sections[level] = nil
  end
  for level = #sections + 1, header.level do
    sections[level] = 0
  end
  sections[header.level] = sections[header.level] + 1
  define(header.identifier, table.concat(sections, "."))
end

-- "Figure 3: " before the caption, where the format does not write it.
local function label_caption(el)
  local prefix = kind(el.identifier)
  if not prefix then
    common.fail("a figure or table has no label such as #fig-x or #tbl-x")
  end
  count(el.identifier)
  if not (typst or latex) then
    local label = pandoc.Span(NAMES[prefix] .. " " .. numbers[el.identifier] .. ".",
      { class = "label" })
    el.caption.long[1].content:insert(1, label)
    el.caption.long[1].content:insert(2, pandoc.Space())
  end
  return el
end

-- In HTML a table is a figure of its own, so that it can scroll below a caption that does not.
local function label_table(el)
  label_caption(el)
  if typst or latex then
    return el
  end
  local caption, id = el.caption, el.identifier
  el.caption, el.identifier = {}, ""
  return pandoc.Figure({ pandoc.Div(el, { class = "scroll" }) }, caption, { id = id, class = "table" })
end

local function equation(id, text)
  count(id)
  if typst then
    return { pandoc.Math("DisplayMath", text), pandoc.RawInline("typst", "<" .. id .. ">") }
  elseif latex then
    return pandoc.RawInline("latex",
      "\\begin{equation}\\label{" .. id .. "}" .. text .. "\\end{equation}")
  end
  local number = pandoc.Span("(" .. numbers[id] .. ")", { class = "number" })
  return pandoc.Span({ pandoc.Math("DisplayMath", text), number }, { id = id, class = "equation" })
end

local function label_equations(inlines)
  local out = pandoc.Inlines({})
  local i = 1
  while i <= #inlines do
    local el = inlines[i]
    if el.t == "Math" and el.mathtype == "DisplayMath" then
      local space = inlines[i + 1] and inlines[i + 1].t:match("Space") and 1
        or inlines[i + 1] and inlines[i + 1].t == "SoftBreak" and 1 or 0
      local tag = inlines[i + 1 + space]
      local id, rest = (tag and tag.t == "Str" and tag.text or ""):match("^{#(eq%-[%w-]+)}(.*)$")
      if not id then
        common.fail("an equation has no label such as {#eq-x}: " .. el.text)
      end
      out:extend(pandoc.Inlines(equation(id, el.text)))
      if rest ~= "" then
        out:insert(pandoc.Str(rest))
      end
      i = i + 2 + space
    else
      out:insert(el)
      i = i + 1
    end
  end
  return out
end

local function reference(id)
  local name = NAMES[kind(id)]
  if not numbers[id] then
    common.fail("undefined reference @" .. id)
  elseif typst then
    return pandoc.RawInline("typst", "#ref(<" .. id .. ">);")
  elseif latex then
    return pandoc.RawInline("latex", name .. "~\\ref{" .. id .. "}")
  end
  return pandoc.Link(name .. "\u{a0}" .. numbers[id], "#" .. id)
end

return {
  {
    Header = count_header,
    Figure = label_caption,
    Table = label_table,
    Inlines = label_equations,
  },
  {
    Cite = function(cite)
      local id = cite.citations[1].id
      if kind(id) then
        if #cite.citations > 1 or cite.citations[1].mode ~= "AuthorInText" then
          common.fail("write @" .. id .. " alone and without brackets")
        end
        return reference(id)
      end
    end,
  },
}
