-- An executed notebook as a page: what a cell printed is data, so HTML in it is never obeyed.
--
-- Tables (pandas' HTML, pipe tables) are read and rewritten as plain tables, any other HTML is shown as text,
-- and only pictures that the notebook itself holds are shown. Timings are left out.

local MARKDOWN = "markdown-raw_html-raw_tex-raw_attribute-native_divs-native_spans-citations"

local function as_text(el)
  return el.t == "RawBlock" and pandoc.CodeBlock(el.text) or pandoc.Str(el.text)
end

return {
  {
    RawBlock = function(el)
      if el.format == "html" and el.text:find("<table", 1, true) then
        return pandoc.read(el.text, "html-raw_html").blocks
      elseif el.format == "markdown" then
        return pandoc.read(el.text, MARKDOWN, { columns = 100000 }).blocks
      end
      return as_text(el)
    end,
    RawInline = as_text,
    Div = function(div)
      if div.classes:includes("cell") or div.classes:includes("output") then
        div.attributes = {}
        return div
      end
    end,
  },
  {
    Image = function(image)
      if not pandoc.mediabag.lookup(image.src) then
        return pandoc.Str(image.src)
      end
    end,
    Link = function(link)
      if not link.target:match("^https?:") and not link.target:match("^#") then
        return link.content
      end
    end,
  },
}
