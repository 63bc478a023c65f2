-- Checks Neovim's support for a DTD with an error. dev/editors/try/run runs this with an init.lua made from the blocks in
-- the book.
local function check(holds, what)
  if not holds then
    io.stderr:write("Neovim: " .. what .. "\n")
    vim.cmd("cquit")
  end
end

check(vim.bo.filetype == "metatf", "the file type is " .. vim.bo.filetype)
check(vim.wait(20000, function() return #vim.diagnostic.get(0) > 0 end), "no diagnostics arrived")
local found = vim.iter(vim.diagnostic.get(0)):find(function(found) return found.message:find("no field `sise`", 1, true) end)
check(found and found.lnum == 2, "the diagnostics are " .. vim.inspect(vim.diagnostic.get(0)))

local client = vim.lsp.get_clients({ name = "metatfc" })[1]
local function ask(method, params)
  local answer, problem = client:request_sync(method, params, 20000, 0)
  check(answer and not answer.err, method .. " failed: " .. vim.inspect(answer or problem))
  return answer.result
end
local line = vim.api.nvim_buf_get_lines(0, 2, 3, false)[1]
local document = { uri = vim.uri_from_bufnr(0) }
local place = { textDocument = document, position = { line = 2, character = line:find("size)", 1, true) } }
local hover = ask("textDocument/hover", place)
check(hover.contents.value:find("size", 1, true), "hover is " .. vim.inspect(hover))
check(#ask("textDocument/references", vim.tbl_extend("force", place, { context = { includeDeclaration = true } })) == 2, "expected two references")

-- Apply the correction that the message proposes, as a user would.
vim.lsp.buf.code_action({ context = { diagnostics = { found.user_data.lsp }, only = { "quickfix" } }, apply = true, range = { start = { 3, found.col }, ["end"] = { 3, found.end_col } } })
check(vim.wait(20000, function() return vim.api.nvim_buf_get_lines(0, 2, 3, false)[1]:find("size.width", 1, true) end), "the correction was not applied")
check(vim.wait(20000, function() return #vim.diagnostic.get(0, { severity = vim.diagnostic.severity.ERROR }) == 0 end), "the error is still shown")

-- The highlighting by the grammar.
check(vim.treesitter.get_parser(0):lang() == "metatf", "there is no tree-sitter parser")
check(vim.treesitter.highlighter.active[vim.api.nvim_get_current_buf()], "tree-sitter highlighting is not active")
check(vim.treesitter.get_captures_at_pos(0, 0, 0)[1].capture:find("^keyword"), "`section` is not a keyword")
print("Neovim: an error, its correction, hover, references and highlighting\n")
vim.cmd("quitall!")
