package docs

import _ "embed"

// API is the HTTP reference, in Markdown: api.md.
//
//go:embed api.md
var API string
