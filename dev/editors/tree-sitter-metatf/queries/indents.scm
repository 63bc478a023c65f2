[
  (section)
  (block)
  (type_block)
  (group)
  (model)
] @indent.begin

["}" ")"] @indent.branch
["}" ")"] @indent.end
(comment) @indent.auto
