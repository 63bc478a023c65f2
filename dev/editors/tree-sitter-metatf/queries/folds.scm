[
  (section)
  (record)
  (type_definition)
  (group)
  (comment)
] @fold
