; Later patterns win over earlier ones of the same node.
(name) @variable
(comment) @comment
(string) @string
(int) @number
(bit_number) @number

["section" "type"] @keyword
["none" "default" "delta" "stride" "baseOffset" "sectionOffset" "sectionStride" "predicted"] @keyword
["lastValue" "fcm" "dfcm" "heap" "allocated" "freed" "used" "by"] @keyword
["bytes" "until" "rest"] @keyword

(section name: (name) @module)
(record name: (name) @type)
(field (name) @variable.member)
(typed name: (name) @variable.member)
(repetition name: (name) @variable.member)
(repetition count: (name) @variable.member)
(target property: (name) @property)
(assignment property: (name) @property)
(type_definition name: (name) @type)
(type name: (name) @type)
(word (name) @constant)
((word (name) @keyword) (#eq? @keyword "rest"))

["=" "+" "-" "*" "/" "%" "==" "!=" "<=" "<" ">=" ">"] @operator
["(" ")" "{" "}"] @punctuation.bracket
["," ";" ":" "."] @punctuation.delimiter
